"""The part of a message that no computation hides, and by which a step is longer."""

from __future__ import annotations

from course.drawing.picture import Picture

COMPUTES, STARTS, SENDS = 6.0, 3.5, 4.0  # the message starts while the GPU computes, and outlasts it
HIGH, BETWEEN = 26.0, 6.0


def exposed() -> float:
    """How much longer the message takes than the computation beside it."""
    return max(0.0, STARTS + SENDS - COMPUTES)


def draw(width: float) -> Picture:
    picture = Picture(
        "Sending that ends after the computation makes the step longer by what is left.",
        "Two lanes on one axis of time: the GPU's computation, and a message that begins during it and ends "
        "after it.",
        width,
    )
    scale = width / (STARTS + SENDS)
    end, low = COMPUTES * scale, HIGH + BETWEEN
    picture.box(0, 0, end, HIGH, "compute", "computes")
    picture.box(end, 0, exposed() * scale, HIGH, "idle", "waits")
    picture.box(STARTS * scale, low, end - STARTS * scale, HIGH, "network", "hidden")
    picture.box(end, low, exposed() * scale, HIGH, "past", "exposed")
    y = low + HIGH + 10
    picture.bracket(0, end, y, "the step, if sending cost nothing" if picture.wide else "without sending")
    picture.bracket(end, end + exposed() * scale, y, "so much longer")
    picture.tell(
        "computes, then waits",
        "the message: hidden while the GPU computes, exposed while it waits",
        "the step, if sending cost nothing; so much longer, by the exposed part",
        "without sending",
    )
    return picture
