"""The caches of three requests: reserved in one piece each, and in pages given out as tokens come."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture

PAGE, MOST = 16, 8  # tokens of a page, and pages of the longest answer that is allowed
TOKENS = {"A": 70, "B": 43, "C": 52}
SHARED = 2  # pages with which C begins as B does
POOL = 12
HIGH = 26.0


class Given(NamedTuple):
    """A page that was given out: its place in the pool, whose it is, and how many of its tokens are used."""

    place: int
    owners: str
    used: int


def given() -> tuple[list[Given], dict[str, list[int]]]:
    """The pages as they are given out, one after another to whoever needs the next, and each request's table
    of pages."""
    tables: dict[str, list[int]] = {name: [] for name in TOKENS}
    pages: list[Given] = []
    for turn in range(MOST):
        for name, tokens in TOKENS.items():
            left = tokens - turn * PAGE
            if left <= 0:
                continue
            if name == "C" and turn < SHARED:
                place = tables["B"][turn]
                pages[place] = pages[place]._replace(owners="BC")
            else:
                place = len(pages)
                pages.append(Given(place, name, min(PAGE, left)))
            tables[name].append(place)
    return pages, tables


def draw(width: float) -> Picture:
    pages, tables = given()
    waste = sum(PAGE - page.used for page in pages)
    reserved = MOST * PAGE * len(TOKENS)
    picture = Picture(
        f"Three requests reserve room for {reserved} tokens, or take {len(pages)} pages of {PAGE}, in which "
        f"{waste} places are empty.",
        "Above three bars, each filled in part. Below a row of pages, nearly all full, with the table that "
        "says which belong to whom and in which order.",
        width,
    )
    y = (
        picture.key(1, [("hbm", "holds tokens"), ("idle", "reserved or free"), ("hbm-pale", "held for two")])
        + 8
    )
    picture.text(0, y + 8, "reserved in one piece", bold=True)
    y += 20
    for name, tokens in TOKENS.items():
        room = width - 20
        picture.text(0, y + HIGH / 2, name)
        end = room * tokens / (MOST * PAGE)
        picture.box(20, y, end, HIGH, "hbm", f"{tokens} tokens", reserved=tokens)
        picture.box(20 + end, y, room - end, HIGH, "idle", reserved=0)
        y += HIGH + 4
    picture.tell(
        "reserved in one piece: "
        + ", ".join(f"{name} holds {tokens} tokens of {MOST * PAGE}" for name, tokens in TOKENS.items())
    )
    y += 12
    picture.text(0, y + 8, f"in pages of {PAGE}", bold=True)
    y += 20
    across = POOL if picture.wide else POOL // 2
    each = width / across
    for place in range(POOL):
        left, top = place % across * each, y + place // across * (HIGH + 22)
        page = pages[place] if place < len(pages) else None
        part = page.used / PAGE if page else 0.0
        words = " ".join(page.owners) if page else ""
        if page:
            look = "hbm-pale" if len(page.owners) > 1 else "hbm"
            picture.box(left, top, part * (each - 4), HIGH, look, words, page=place, used=page.used)
        if part < 1:
            picture.box(
                left + part * (each - 4), top, (1 - part) * (each - 4), HIGH, "idle", page=place, used=0
            )
        picture.text(left + (each - 4) / 2, top + HIGH + 10, str(place), anchor="middle", ink="ink-faint")
    y += -(-POOL // across) * (HIGH + 22) + 6
    for name, table in tables.items():
        line = f"{name}: pages {', '.join(map(str, table))}"
        picture.text(0, y + 8, line)
        picture.tell(f"in pages of {PAGE}: {line}")
        y += 18
    numbers = ", ".join(str(place) for place in range(POOL))
    picture.tell(f"places {numbers}; B C stands on the pages that both begin with")
    picture.tell("holds tokens; reserved or free; held for two")
    return picture
