"""A prompt that arrives while others are being answered: in one pool it stops them, in two pools it does
not."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.serving import decoding, inference
from engine.step import layout

MODEL, GPU, RANKS, USERS, PROMPT = "llama3-70b", "h100-sxm", 4, 16, 2000
BEFORE, AFTER = 3, 5  # tokens of the others that are drawn before and after the prompt
HIGH = 24.0


def times_s() -> tuple[float, float]:
    """Seconds to read the prompt, and for a token of those that are being answered."""
    model, at = catalog.model(MODEL), layout.machine(catalog.gpu(GPU))
    read_s = inference.prefill(model, at, tp=RANKS, batch=1, prompt=PROMPT).total_s
    token_s = decoding.split(model, at, tp=RANKS, batch=USERS, context=PROMPT).total_s
    return float(read_s), float(token_s)


def draw(width: float) -> Picture:
    read_s, token_s = times_s()
    pause = f"nobody gets a token for {units.human(read_s, 'seconds')}"
    picture = Picture(
        f"In one pool a prompt of {PROMPT:,} tokens stops {USERS} answers for "
        f"{units.human(read_s, 'seconds')}; in two pools it stops none.",
        "Three lanes on one axis of time: a pool that does both, then a pool that reads prompts and one that "
        "writes answers.",
        width,
    )
    scale = width / ((BEFORE + AFTER) * token_s + read_s)
    begin = BEFORE * token_s * scale
    y = picture.key(1, [("forward", "a prompt is read"), ("hbm", f"a token for each of {USERS}")]) + 6
    y = _lane(picture, y, "one pool")
    _tokens(picture, y, BEFORE, 0.0, token_s * scale)
    picture.box(begin, y, read_s * scale, HIGH, "forward", start_s=BEFORE * token_s, took_s=read_s)
    _tokens(picture, y, AFTER, begin + read_s * scale, token_s * scale)
    picture.bracket(begin, begin + read_s * scale, y + HIGH + 8, pause)
    y = _lane(picture, y + HIGH + 38, "two pools: prefill")
    picture.box(begin, y, read_s * scale, HIGH, "forward")
    end = begin + read_s * scale
    picture.arrow((end, y + HIGH + 1), (end, y + HIGH + 30), ink="network")
    sent = "its cache is sent"
    if picture.wide:
        picture.text(end + 8, y + HIGH + 14, sent, ink="ink-soft")
    else:
        picture.text(end - 8, y + HIGH + 14, sent, anchor="end", ink="ink-soft")
    y = _lane(picture, y + HIGH + 16, "decode")
    _tokens(picture, y, int(width / (token_s * scale)), 0.0, token_s * scale)
    picture.tell(
        f"a prompt is read: {units.human(read_s, 'seconds')}; a token for each of {USERS}: "
        f"{units.human(token_s, 'seconds')}",
        f"one pool: tokens, the prompt, tokens; while it is read {pause}",
        f"two pools: prefill reads the prompt and then {sent}; decode goes on without a pause",
    )
    return picture


def _lane(picture: Picture, y: float, name: str) -> float:
    picture.text(0, y + 8, name, bold=True)
    return y + 20


def _tokens(picture: Picture, y: float, count: int, left: float, step: float) -> None:
    for token in range(count):
        picture.box(left + token * step, y, step, HIGH, "hbm")
