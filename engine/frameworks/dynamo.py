"""Dynamo, which starts vLLM's workers and stands in front of them; it hands vLLM's flags on.

Its own: ai-dynamo/dynamo components/src/dynamo/vllm/backend_args.py at commit d195d280 and
common/configuration/groups/router_args.py at 028cab44.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.frameworks import vllm
from engine.frameworks.framework import Framework
from engine.frameworks.servers import Pool, command, each

if TYPE_CHECKING:
    from engine.serving.deployment import Deployment


class Dynamo(vllm.Vllm):
    """A worker is one replica."""

    key = "dynamo"
    name = "Dynamo"
    place = 80
    program = ""
    module = ""
    by_one_command = False

    def front(self, of: Deployment) -> list[str]:
        """The front end, which sends a request where its prefix is held, or to the worker that has least to
        do; prompts go to the workers that prefill, if there are any."""
        mode = "kv" if of.load.prefix_share else "least-loaded"
        return command([self.flag("router-mode", mode)], "python -m dynamo.frontend")

    def started(self, of: Deployment, name: str, pool: Pool) -> list[str]:
        """One worker, and how many of them."""
        flags = [self.flag("model", name)]
        if pool.role:
            flags.append(self.flag("disaggregation-mode", pool.role))
        return [each(pool), *command([*flags, *self.replica(of, pool, 0)], "python -m dynamo.vllm")]

    def beside_pools(self, of: Deployment) -> list[str]:
        """How workers are found, and what the router follows."""
        told = ["the workers find the front end by etcd and NATS, which have to run"]
        if of.load.prefix_share:
            told.append(
                "the router follows the events of the workers' caches: --kv-events-config, a port for"
            )
            told.append("each worker")
        return told


FRAMEWORK: Framework = Dynamo()
