"""A request on eight GPUs in time: one long pass reads the prompt, then each token takes a short one."""

from __future__ import annotations

from course.drawing import text
from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.serving import decoding, inference
from engine.step import layout

MODEL, GPU, RANKS = "llama3-70b", "h100-sxm", 8
PROMPT, ANSWER = 2000, 8  # tokens; of the answer, so many are drawn


def times_s() -> tuple[float, float]:
    """Seconds to read the prompt, and for one token of the answer."""
    model, at = catalog.model(MODEL), layout.machine(catalog.gpu(GPU))
    read_s = inference.prefill(model, at, tp=RANKS, batch=1, prompt=PROMPT).total_s
    token_s = decoding.split(model, at, tp=RANKS, batch=1, context=PROMPT).total_s
    return float(read_s), float(token_s)


def draw(width: float) -> Picture:
    read_s, token_s = times_s()
    reading, writing = units.human(read_s, "seconds"), units.human(token_s, "seconds")
    first = f"prefill: {PROMPT:,} tokens in one pass, {reading}"
    then = f"decode: a pass of {writing} for each token"
    picture = Picture(
        f"Two phases of a request: {first}; then {then}.",
        f"A time axis. One long block reads the prompt, {ANSWER} short blocks write the first tokens of "
        f"the answer.",
        width,
    )
    whole_s = read_s + ANSWER * token_s
    scale = (width - 2) / whole_s
    end = read_s * scale
    y = 0.0
    for words, look in ((first, "forward"), (then, "hbm")):
        picture.box(0, y + 3, 14, 12, look)
        y = picture.paragraph(20, y, words, width - 20, ink="ink")
    y += 8
    picture.box(0, y, end, 34, "forward", "prefill" if end > 60 else "", start_s=0.0, end_s=read_s)
    for token in range(ANSWER):
        start_s = read_s + token * token_s
        picture.box(
            start_s * scale,
            y,
            token_s * scale,
            34,
            "hbm",
            str(token + 1),
            start_s=start_s,
            end_s=start_s + token_s,
        )
    y += 46
    for words, left, right in (("TTFT", 0.0, end), ("time per output token", end, end + token_s * scale)):
        picture.line((left, y - 4), (left, y + 4))
        picture.line((right, y - 4), (right, y + 4))
        picture.line((left, y), (right, y))
        picture.text(
            min(right, width - text.width(words)) if words != "TTFT" else (left + right) / 2,
            y + 13,
            words,
            anchor="start" if words != "TTFT" else "middle",
            ink="ink-soft",
        )
    picture.tell(
        first,
        f"TTFT: the time to the first token, {reading}",
        then,
        f"time per output token: {writing}; tokens "
        + ", ".join(str(token + 1) for token in range(ANSWER))
        + " are drawn",
    )
    return picture
