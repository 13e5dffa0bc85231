"""A deployment as the commands that start it, in the words of one of the servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.base import check
from engine.frameworks import registry

if TYPE_CHECKING:
    from engine.serving.deployment import Deployment


def commands(of: Deployment, program: str = "", name: str = "") -> str:
    """The lines that start a deployment with one of the servers, else the first, each pool by one command;
    ``name`` is the checkpoint's, unless given the model's public repository on Hugging Face, or the
    catalogue's key where there is none."""
    known = registry.servers()
    if program:
        check.one_of(tuple(known), program=program)
    return known[program or next(iter(known))].write(of, name=name)
