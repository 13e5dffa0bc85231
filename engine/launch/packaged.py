"""A deployment in containers: a file for docker compose, for one node, or objects of Kubernetes.

Each replica is a container of its own, with the program's own image and its flags. The forms are JSON's part
of YAML, which both programs read.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from engine import catalog
from engine.base import check
from engine.frameworks import registry
from engine.frameworks.servers import USUAL_NODE, Group, Pool, ServerCommand, checkpoint, pools
from engine.launch.commands import commands

if TYPE_CHECKING:
    from engine.serving.deployment import Deployment

SCRIPT, COMPOSE, KUBERNETES = FORMS = ("script", "compose", "kubernetes")
CACHE = "/root/.cache/huggingface"  # where a checkpoint is kept inside a container
TOKEN = "HF_TOKEN"  # of one that is gated


def packaged(of: Deployment, program: str, form: str = SCRIPT, name: str = "") -> str:
    """What starts a deployment with one of the servers, in one of FORMS; ``name`` is the checkpoint's, unless
    given the public one. ValueError where the form or the program cannot have it."""
    check.one_of(FORMS, form=form)
    if form == SCRIPT:
        return commands(of, program, name)
    known = registry.servers()
    check.one_of(tuple(known), program=program)
    server = known[program]
    if not isinstance(server, ServerCommand) or not server.image:
        some = ", ".join(key for key, one in known.items() if isinstance(one, ServerCommand) and one.image)
        raise ValueError(f"program must be one whose containers are written here ({some}), got {program!r}")
    largest = max(pool.of.gpus for pool in pools(of))
    if largest > USUAL_NODE:
        raise ValueError(
            f"form must be {SCRIPT} for a replica of {largest} GPUs, which takes several nodes; got {form!r}"
        )
    if form == COMPOSE and of.gpus > USUAL_NODE:
        raise ValueError(
            f"form must be {SCRIPT} or {KUBERNETES} for {of.gpus} GPUs, as compose has one node; got {form!r}"
        )
    chosen = name or server.served(of)
    if chosen.startswith('"$'):
        raise ValueError(
            f"name must be given for weights in {of.weights}, of which no public checkpoint is known"
        )
    write = compose if form == COMPOSE else kubernetes
    told = [f"# {line}" for line in server.told(of, bool(name))]
    return "\n".join([*told, write(server, of, chosen)]) + "\n"


def argument_words(server: ServerCommand, of: Deployment, name: str, pool: Pool, port: int) -> list[str]:
    """The words of a container's command: all of the program's, or its flags where the image starts it."""
    lines = server.started(of, name, pool._replace(replicas=1), f"{port}")
    words = shlex.split(" ".join(line.removesuffix("\\") for line in lines))
    return words[len(server.image_runs) :] if server.image_starts else words


def is_gated(of: Deployment) -> bool:
    """Whether the public checkpoint asks for a token."""
    known = catalog.all_models()
    return bool(checkpoint(of)) and known[of.model].access == "gated"


def written(value: Any, depth: int = 0) -> list[str]:
    """Plain values as the lines of YAML, texts as JSON writes them."""
    space = "  " * depth
    if isinstance(value, dict):
        found = []
        for key, inside in value.items():
            nested = isinstance(inside, (dict, list)) and inside
            found.append(f"{space}{key}:" if nested else f"{space}{key}: {_plain(inside)}")
            found += written(inside, depth + 1) if nested else []
        return found
    found = []
    for inside in value:
        if isinstance(inside, dict):
            first, *rest = written(inside, depth + 1)
            found += [f"{space}- {first.strip()}", *rest]
        else:
            found.append(f"{space}- {_plain(inside)}")
    return found


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def variables(server: ServerCommand, of: Deployment, pool: Pool, first: int, alone: bool) -> dict[str, str]:
    """Variables of a container whose GPUs begin at ``first``."""
    group = Group(pool._replace(replicas=1), 1, 1, 1, pool.of.gpus, first, alone)
    told = [one.split("=", 1) for one in server.variables(of, group, False)]
    return dict(told)


def compose(server: ServerCommand, of: Deployment, name: str) -> str:
    """A service for each replica, with its own GPUs and at its own port of the host. Two pools send each
    other caches at ports of their own, so they share the host's network."""
    services: dict[str, Any] = {}
    first = 0
    for pool in pools(of):
        for _ in range(pool.replicas):
            ids = [f"{gpu}" for gpu in range(first, first + pool.of.gpus)]
            gpus = {"driver": "nvidia", "device_ids": ids, "capabilities": ["gpu"]}
            token = {TOKEN: f"${{{TOKEN}:-}}"} if is_gated(of) else {}
            port = server.port + server.port_step * len(services)
            inside = port if of.apart else server.port
            services[f"{pool.role or 'server'}-{len(services)}"] = {
                "image": server.image,
                "command": argument_words(server, of, name, pool, inside),
                "network_mode": "host" if of.apart else "",
                "ports": [] if of.apart else [f"{port}:{server.port}"],
                "ipc": "host",
                "environment": token | variables(server, of, pool, first, False),
                "volumes": [f"${{HOME}}/.cache/huggingface:{CACHE}"],
                "deploy": {"resources": {"reservations": {"devices": [gpus]}}},
            }
            first += pool.of.gpus
    some = {key: {what: of_it for what, of_it in one.items() if of_it} for key, one in services.items()}
    return "\n".join(written({"services": some}))


def kubernetes(server: ServerCommand, of: Deployment, name: str) -> str:
    """A Deployment for each pool, and a Service in front of it."""
    objects = []
    for pool in pools(of):
        called = f"{of.model}-{pool.role or 'server'}".replace(".", "-").lower()
        label = {"app": called}
        words = argument_words(server, of, name, pool, server.port)
        secret = {"name": TOKEN, "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": TOKEN}}}
        env: list[dict[str, Any]] = [secret] if is_gated(of) else []
        for key, value in variables(server, of, pool, 0, of.apart).items():
            own = {"fieldRef": {"fieldPath": "status.podIP"}}  # a pod's own address, where one is asked for
            env.append({"name": key, **({"valueFrom": own} if "${" in value else {"value": value})})
        container = {
            "name": "server",
            "image": server.image,
            **({"args": words} if server.image_starts else {"command": words}),
            "ports": [{"containerPort": server.port}],
            **({"env": env} if env else {}),
            "resources": {"limits": {"nvidia.com/gpu": f"{pool.of.gpus}"}},
            "readinessProbe": {
                "httpGet": {"path": "/health", "port": server.port},
                "periodSeconds": 10,
                "failureThreshold": 180,  # half an hour, for a checkpoint that is still to be loaded
            },
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "cache", "mountPath": CACHE}],
        }
        volumes = [
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "cache", "emptyDir": {"medium": ""}},
        ]
        objects.append(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": called},
                "spec": {
                    "replicas": pool.replicas,
                    "selector": {"matchLabels": label},
                    "template": {
                        "metadata": {"labels": label},
                        "spec": {"containers": [container], "volumes": volumes},
                    },
                },
            }
        )
        port = {"port": server.port, "targetPort": server.port}
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": called},
                "spec": {"selector": label, "ports": [port]},
            }
        )
    return "\n---\n".join("\n".join(written(one)) for one in objects)
