"""When an AllReduce hides: a backward pass in eight pieces, and the sum of each piece's gradient beside it,
once with enough tokens on each GPU and once with too few. Start-ups are left out, so that its times are those
of the rule; what is exposed with them is for the lesson's figure to say."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.catalog import models
from engine.executed import data_parallel
from engine.mechanism import flops, matmul

MODEL, GPU, CARD, RANKS = "llama3-8b", "h100-sxm", "ib-ndr", 256  # one GPU in each node, its own card
PIECES = 8
ENOUGH, TOO_FEW = 16384, 8192  # tokens on each GPU
LANE, BETWEEN, TITLE = 26.0, 6.0, 22.0


class Pass(NamedTuple):
    """When each piece of the backward pass, and of the AllReduce, begins and ends."""

    ready_s: list[float]
    start_s: list[float]
    end_s: list[float]

    @property
    def exposed_s(self) -> float:
        """Seconds from the last gradient until the last AllReduce is done."""
        return self.end_s[-1] - self.ready_s[-1]

    @property
    def share(self) -> float:
        """The time of the AllReduce, over the backward pass that is to hide it."""
        sending_s = sum(end - start for start, end in zip(self.start_s, self.end_s, strict=True))
        return sending_s / self.ready_s[-1]


def run(tokens: int) -> Pass:
    """The gradient leaves the backward pass in equal pieces, and each is summed once the wire is free."""
    params, card = models.parameters(catalog.model(MODEL)), catalog.link(CARD)
    backward_s = flops.backward_flops(params, tokens) / matmul.product_flops_per_s(catalog.gpu(GPU))
    gradient = data_parallel.gradient_bytes(params)
    cut = gradient, gradient / PIECES, gradient / PIECES
    wire = RANKS, card.bytes_per_s, 0.0
    ready = [float(data_parallel.ready_s(k, backward_s, *cut)) for k in range(PIECES)]
    end = [float(data_parallel.bucket_end_s(k, backward_s, *wire, *cut)) for k in range(PIECES)]
    each_s = float(data_parallel.sent_s(0, *wire, *cut))
    return Pass(ready, [done - each_s for done in end], end)


def draw(width: float) -> Picture:
    enough, too_few = run(ENOUGH), run(TOO_FEW)
    longest_s = max(enough.end_s[-1], too_few.end_s[-1])
    picture = Picture(
        f"With {ENOUGH:,} tokens all but the last piece of the AllReduce hides; with {TOO_FEW:,} much "
        f"of it does not.",
        "Two pairs of lanes on one time axis. The upper lane of a pair is the backward pass in eight pieces, "
        "the lower one the AllReduce of each piece's gradient.",
        width,
    )
    scale, y = (width - 2) / longest_s, 0.0
    for tokens, found in ((ENOUGH, enough), (TOO_FEW, too_few)):
        share = units.in_unit(found.share, "%")
        y = picture.paragraph(
            0, y, f"{tokens:,} tokens: the AllReduce takes {share} of the backward pass", width, ink="ink"
        )
        y += BETWEEN
        begin = 0.0
        for piece, ready in enumerate(found.ready_s):
            left, right = begin * scale, ready * scale
            name = str(PIECES - piece) if right - left > 14 else ""
            picture.box(left, y, right - left, LANE, "backward", name, start_s=begin, end_s=ready)
            begin = ready
        waits = (found.end_s[-1] - found.ready_s[-1]) * scale
        picture.box(begin * scale, y, waits, LANE, "idle", "waits" if waits > 44 else "")
        low = y + LANE + BETWEEN
        for piece, (start, end) in enumerate(zip(found.start_s, found.end_s, strict=True)):
            box = start * scale, low, (end - start) * scale, LANE
            picture.box(*box, "network", str(PIECES - piece) if box[2] > 14 else "", start_s=start, end_s=end)
        picture.tell(
            f"{tokens:,} tokens: the AllReduce takes {share} of the backward pass; the GPU waits from the "
            "end of the pass to the end of the AllReduce"
        )
        picture.tell("pieces " + ", ".join(str(PIECES - piece) for piece in range(PIECES)) + " in this order")
        y = low + LANE + TITLE
    picture.key(
        y - 8, [("backward", "backward pass"), ("network", "AllReduce of that piece"), ("idle", "idle")]
    )
    picture.tell("backward pass; AllReduce of that piece; idle")
    return picture
