"""Dynamo, which starts vLLM's workers and stands in front of them; it hands vLLM's flags on.

Its own: ai-dynamo/dynamo components/src/dynamo/vllm/backend_args.py at commit d195d280 and
common/configuration/groups/router_args.py at 028cab44.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.frameworks import vllm
from engine.frameworks.framework import Framework
from engine.frameworks.servers import USUAL_NODE, Pool, command

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
    image = ""
    written_for = "1.6"

    def front(self, of: Deployment) -> list[str]:
        """The front end, which sends a request where its prefix is held, or to the worker that has least to
        do; prompts go to the workers that prefill, if there are any."""
        mode = "kv" if of.load.prefix_share else "least-loaded"
        return command([self.flag("router-mode", mode), *self.found_by(of)], "python -m dynamo.frontend")

    def found_by(self, of: Deployment) -> list[tuple[str, ...]]:
        """How front end and workers find each other: on one node by a file, else by etcd, the default."""
        return [self.flag("discovery-backend", "file")] if _on_a_node(of) else []

    def started(self, of: Deployment, name: str, pool: Pool, port: str = "") -> list[str]:
        """One worker, which answers at the front end's port alone."""
        flags = [self.flag("model", name)]
        if pool.role:
            flags.append(self.flag("disaggregation-mode", pool.role))
        flags += self.found_by(of)
        return command([*flags, *self.replica(of, pool, 0)], "python -m dynamo.vllm")

    def beside_pools(self, of: Deployment) -> list[str]:
        """How workers are found, and what the router follows."""
        told = []
        if not _on_a_node(of):
            told.append("the workers find the front end by etcd, which has to run (ETCD_ENDPOINTS names it)")
        if of.load.prefix_share:
            told.append(
                "the router follows the events of the workers' caches: --kv-events-config, a port for"
            )
            told.append("each worker")
        return told


def _on_a_node(of: Deployment) -> bool:
    return of.gpus <= USUAL_NODE


FRAMEWORK: Framework = Dynamo()
