"""Three tokens of an answer, one step each; and the same three from four drafted tokens and one check."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.serving import decoding
from engine.step import layout

MODEL, DRAFT, GPU, RANKS, CONTEXT = "llama3-70b", "llama3.2-1b", "h100-sxm", 8, 4096
KEPT = (True, True, False, False)  # of the drafted tokens, in this example
HIGH = 26.0


def times_s() -> tuple[float, float]:
    """Seconds of a step for one user, and of a step of the draft."""
    at = layout.machine(catalog.gpu(GPU))
    step_s, draft_s = (
        float(decoding.split(catalog.model(key), at, tp=RANKS, batch=1, context=CONTEXT).total_s)
        for key in (MODEL, DRAFT)
    )
    return step_s, draft_s


def draw(width: float) -> Picture:
    step_s, draft_s = times_s()
    gained = KEPT.index(False) + 1
    plain, drafted = units.human(gained * step_s, "seconds"), units.human(4 * draft_s + step_s, "seconds")
    picture = Picture(
        f"{gained} tokens take {plain} one by one, and {drafted} with four drafts and one check.",
        "Two lanes on one axis of time. Above three long steps, below four short ones of a draft and one "
        "long step that checks them all. Under it the five places of the check.",
        width,
    )
    scale = (width - 2) / (gained * step_s)
    y = picture.key(1, [("hbm", "the large model reads its weights"), ("forward", "the draft")]) + 8
    picture.text(0, y + 8, f"one by one: {plain}", bold=True)
    y += 20
    for token in range(gained):
        picture.box(token * step_s * scale, y, step_s * scale - 1, HIGH, "hbm", str(token + 1), took_s=step_s)
    y += HIGH + 14
    picture.text(0, y + 8, f"drafted and checked: {drafted}", bold=True)
    y += 20
    for place in range(len(KEPT)):
        picture.box(place * draft_s * scale, y, draft_s * scale - 1, HIGH, "forward", took_s=draft_s)
    begin = len(KEPT) * draft_s * scale
    picture.box(begin, y, step_s * scale - 1, HIGH, "hbm", "checks all", took_s=step_s)
    y += HIGH + 14
    each = width / (len(KEPT) + 1)
    words = ["kept" if kept else "replaced" for kept in KEPT[:gained]]
    words += ["unused"] * (len(KEPT) + 1 - gained)
    for place, word in enumerate(words):
        look = {"kept": "forward", "replaced": "hbm", "unused": "idle"}[word]
        picture.box(place * each, y, each - 3, HIGH, look, word, place=place, fate=word)
    picture.tell(
        "the large model reads its weights; the draft",
        f"one by one: {plain} for tokens 1, 2, 3",
        f"drafted and checked: {drafted}; one step checks all",
        "the five places: kept, kept, replaced, unused, unused",
    )
    return picture
