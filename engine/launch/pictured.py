"""What pictures add to a training launch whose texts do not say how many they are.

They can fill a sequence at most: a program drops a longer one, or ends (modelscope/ms-swift
swift/llm/template/base.py at commit 005674fa, ``max_length``). Where nothing limits a sequence, its framework
says so (``HuggingFace.limits``), and there is no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.frameworks.settings import Assumed
from engine.mechanism import seeing
from engine.mechanism.seeing import Pictures
from engine.mechanism.shape import shape

if TYPE_CHECKING:
    from engine.frameworks.described import Launch

FILLED = "a frozen tower reads as many as a sequence holds"


def added_bytes(launch: Launch) -> float:
    """What a frozen tower works on where pictures fill every sequence of a micro-batch; 0 for a model that
    reads none, and where ranks share layers, since how they share a tower is not modelled. Leaves out
    attention of the tower that is not fused."""
    assert launch.job is not None and launch.layout is not None
    tower, n = launch.model.tower, launch.layout
    if tower is None or launch.job.pictures is not None or max(n.tp, n.pp, n.cp) > 1:
        return 0.0
    pictures = Pictures(1.0, float(launch.job.seq) * tower.merged * tower.patch**2)
    return float(seeing.kept_bytes(shape(launch.model), pictures, n.micro_batch))


def assumed(launch: Launch) -> Assumed:
    """The line that says so."""
    assert launch.job is not None
    return Assumed("pictures", f"{launch.job.seq:,} tokens of a sequence", FILLED)
