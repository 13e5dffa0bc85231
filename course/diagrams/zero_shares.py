"""What each of four ranks holds of the training state: under plain data parallelism and ZeRO's three
stages."""

from __future__ import annotations

from course.drawing import text
from course.drawing.picture import Picture
from engine.base import units
from engine.catalog import model as named
from engine.catalog import models, recipe
from engine.mechanism import memory

RANKS, MODEL = 4, "llama3-8b"
STAGES = ("data parallel", "ZeRO-1", "ZeRO-2", "ZeRO-3, FSDP")
KINDS = ("weights", "gradients", "optimizer state")
BAR, BETWEEN = 12.0, 3.0


def bytes_of_kinds() -> list[float]:
    """Bytes per parameter of the weight, the gradient and the optimizer's part."""
    kept = recipe("bf16-adam")
    return [kept.weight_bytes, kept.gradient_bytes, kept.optimizer_bytes]


def held_bytes(stage: int) -> float:
    """Training state on one rank."""
    return float(
        memory.sharded_state_bytes(models.parameters(named(MODEL)), recipe("bf16-adam"), RANKS, stage)
    )


def cut(stage: int) -> tuple[bool, bool, bool]:
    """Which of these a stage divides into shares."""
    return (stage >= 3, stage >= 2, stage >= 1)


def draw(width: float) -> Picture:
    name = named(MODEL).name
    picture = Picture(
        f"What each of {RANKS} ranks holds of {name}'s training state: {units.human(held_bytes(0), 'bytes')} "
        f"of copies, {units.human(held_bytes(3), 'bytes')} of shares.",
        "Four groups of four bars, a bar a rank, its length the bytes of weights, gradients and optimizer "
        "state. What a rank holds is filled, what another one holds for it is outlined.",
        width,
    )
    left = 160.0 if picture.wide else 0.0
    room, whole = width - left - 2 * 4, sum(bytes_of_kinds())
    y = 0.0
    starts = [left + sum(bytes_of_kinds()[:kind]) / whole * room + 4 * kind for kind in range(3)]
    for kind, words in enumerate(KINDS):  # the second, whose column is narrow, is a line lower
        picture.text(starts[kind], 9 + (kind == 1) * text.LINE, words, bold=True)
    y = 22.0 + text.LINE
    for stage, title in enumerate(STAGES):
        amount = f"{units.human(held_bytes(stage), 'bytes')} on each"
        if picture.wide:
            picture.text(0, y + 14, title, bold=True)
            picture.text(0, y + 14 + text.LINE, amount, ink="ink-soft")
        else:
            picture.text(0, y + 8, title, bold=True)
            picture.text(width, y + 8, amount, anchor="end", ink="ink-soft")
            y += 20
        for rank in range(RANKS):
            for kind, is_cut in enumerate(cut(stage)):
                share = bytes_of_kinds()[kind] / whole * room
                own = share / RANKS if is_cut else share
                if is_cut:
                    picture.box(starts[kind], y, share, BAR, "elsewhere", stage=stage, rank=rank)
                at = starts[kind] + (own * rank if is_cut else 0)
                picture.box(
                    at, y, own, BAR, "hbm", stage=stage, rank=rank, kind=kind, held=own / room * whole
                )
            y += BAR + BETWEEN
        y += 12
    picture.key(y, [("hbm", "held"), ("elsewhere", "held by another rank")])
    picture.tell(
        f"weights, {bytes_of_kinds()[0]:g} bytes a parameter; gradients, {bytes_of_kinds()[1]:g}; "
        f"optimizer state, {bytes_of_kinds()[2]:g}",
        *(
            f"{title}: {units.human(held_bytes(stage), 'bytes')} on each of {RANKS} ranks; "
            + ", ".join(
                f"{kind} {'cut into shares' if is_cut else 'whole'}"
                for kind, is_cut in zip(KINDS, cut(stage))
            )
            for stage, title in enumerate(STAGES)
        ),
        "held; held by another rank",
    )
    return picture
