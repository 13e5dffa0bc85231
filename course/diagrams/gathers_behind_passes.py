"""Two steps of FSDP on two streams, as they were executed: with enough tokens behind each gather, and with a
quarter of them."""

from __future__ import annotations

from course.drawing import text
from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.executed import fully_sharded
from engine.executed.fully_sharded import COMPUTE, GATHER, SCATTER
from engine.mechanism import matmul

MODEL, GPU, NODE, RANKS, LAYERS = "llama3-8b", "h100-sxm", "dgx-h100", 64, 3
TOKENS = (4096, 1024)
LOOK = ("network", "forward", "backward", "network-pale")  # by kind of task
STREAMS = ("compute", "NCCL")
ROW, GAP, BETWEEN = 24.0, 6.0, 22.0


def executed(tokens: int) -> dict:
    """The step with this many tokens on each GPU, one layer gathered ahead; hops start for nothing."""
    layer = fully_sharded.transformer_layer(
        catalog.model(MODEL),
        tokens,
        RANKS,
        matmul.product_flops_per_s(catalog.gpu(GPU)),
        catalog.node(NODE).outgoing_bytes_per_s,
        0.0,
    )
    return fully_sharded.run(layer, LAYERS, prefetch=1)


def heading(tokens: int, run: dict) -> tuple[str, str]:
    """The case, and what came of it."""
    step, waited = float(run["total_s"]), float(run["exposed_share"])
    return (
        f"{tokens:,} tokens on each GPU:",
        f"{units.human(step, 'seconds')}, {units.human(waited, 'percent', 2)} of it waiting",
    )


def tasks(run: dict) -> list[tuple[int, int, float, float]]:
    """(kind, layer, start, end) of each task."""
    rows = zip(*(run[name] for name in ("kind", "layer", "start_s", "end_s")), strict=True)
    return [
        (int(kind), int(layer), float(start), float(end)) for kind, layer, start, end in rows if end == end
    ]


def draw(width: float) -> Picture:
    runs = [executed(tokens) for tokens in TOKENS]
    picture = Picture(
        f"{LAYERS} layers under FSDP with {TOKENS[0]:,} and with {TOKENS[1]:,} tokens on each GPU.",
        "Two pairs of lanes on one time axis. The upper lane of a pair is arithmetic, the lower one what "
        "NCCL sends. White stretches of the upper lane are waiting.",
        width,
    )
    left = 70.0 if picture.wide else 0.0
    scale = (width - left) / max(float(run["total_s"]) for run in runs)
    y = 0.0
    for tokens, run in zip(TOKENS, runs, strict=True):
        words = heading(tokens, run)
        for line in [" ".join(words)] if picture.wide else words:
            picture.text(0, y + 10, line, bold=True)
            y += text.LINE
        y += 8
        for stream, name in enumerate(STREAMS):
            if picture.wide:
                picture.text(0, y + ROW / 2, name, ink="ink-soft")
            else:
                picture.text(0, y + 6, name, ink="ink-soft")
                y += text.LINE
            picture.box(left, y, float(run["total_s"]) * scale, ROW, "idle", stream=stream, tokens=tokens)
            for kind, layer, start_s, end_s in tasks(run):
                if (kind in (GATHER, SCATTER)) == (stream != COMPUTE):
                    long = (end_s - start_s) * scale
                    number = str(layer) if text.width(str(layer)) < long - 2 else ""
                    picture.box(
                        left + start_s * scale,
                        y,
                        long,
                        ROW,
                        LOOK[kind],
                        number,
                        kind=kind,
                        tokens=tokens,
                        start_s=start_s,
                        end_s=end_s,
                    )
            y += ROW + GAP
        y += BETWEEN - GAP
        picture.tell(
            " ".join(words),
            *(
                f"{fully_sharded.KINDS[kind]} of layer {layer}: from {units.human(start_s, 'seconds')} to "
                f"{units.human(end_s, 'seconds')}"
                for kind, layer, start_s, end_s in tasks(run)
            ),
        )
    entries = [(LOOK[kind], words) for kind, words in enumerate(fully_sharded.KINDS)]
    picture.key(y - 4, [*entries, ("idle", "waiting")])
    picture.tell("Compute lane and NCCL lane; " + ", ".join((*fully_sharded.KINDS, "waiting")))
    return picture
