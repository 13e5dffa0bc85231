"""A profile as a picture: one lane with its name for each thread or stream, with its events on a common time
axis, nested ones below those that called them. A name that does not fit in its box is replaced by a number
and written out below the picture."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from course.drawing import text
from course.drawing.picture import NARROW, WIDE, Picture
from engine.base import units
from engine.executed.profile import Event, Lane, Profile

ROW = 19.0
TELLING = 14  # characters of a name's beginning, below which its number alone says more
MARGIN = 3.0  # on both sides of a name in its box
MESSAGES = ("nccl", "gloo:")
ASKS = ("c10d::", "record_param_comms", "torch.distributed")
LAUNCHES = ("cuda", "cu")
ROUND = (1, 2, 5)


def look(event: Event, works: bool) -> str:
    """The network's hue for events that send or request a message; compute's hue for work, pale for events
    that only call others."""
    if event.name.startswith(MESSAGES):
        return "network"
    if event.name.startswith(ASKS):
        return "network-pale"
    if event.name.startswith(LAUNCHES):
        return "plain"
    if event.name.startswith("backward-compute"):
        return "backward"
    return "forward" if works else "compute-pale"


def workers(lane: Lane) -> Iterator[tuple[Event, bool]]:
    """Each event, and whether it works itself for at least half of its time instead of calling others."""
    for at, event in enumerate(lane.events):
        called_s = 0.0
        for other in lane.events[at + 1 :]:
            if other.depth <= event.depth:
                break
            called_s += other.end_s - other.start_s if other.depth == event.depth + 1 else 0
        yield event, 2 * called_s <= event.end_s - event.start_s


def ticks(first_s: float, last_s: float, most: int) -> list[float]:
    """Round times between two, at most this many."""
    scale = 10.0**-9
    while True:
        for factor in ROUND:
            step = scale * factor
            if (last_s - first_s) / step <= most:
                return [step * at for at in range(int(-(-first_s // step)), int(last_s // step) + 1)]
        scale *= 10


def numbered(shown: Profile, window: tuple[float, float]) -> dict[str, int]:
    """The names that do not fit in some box that has room for a number, in either of the two arrangements,
    numbered in order."""
    found: dict[str, int] = {}
    for lane in shown.lanes:
        for event in lane.events:
            for width in (WIDE, NARROW):
                room = _room(event, window, width)
                if text.width("00") <= room < text.width(event.name):
                    found.setdefault(event.name, len(found) + 1)
    return found


def _room(event: Event, window: tuple[float, float], width: float) -> float:
    start_s, end_s = max(event.start_s, window[0]), min(event.end_s, window[1])
    return (end_s - start_s) / (window[1] - window[0]) * width - 2 * MARGIN


def draw(shown: Profile, window: tuple[float, float], title: str, width: float) -> Picture:
    """The events of a profile between two times."""
    scale = width / (window[1] - window[0])
    numbers = numbered(shown, window)
    picture = Picture(
        title,
        "Lanes of events on one axis of time, as a profiler shows them. Nested events stand below those that "
        f"call them. Source: {shown.source}.",
        width,
    )
    y = 0.0
    for lane in shown.lanes:
        picture.text(0, y + 9, lane.name, bold=True)
        y += 20
        deepest = max((event.depth for event in lane.events), default=0)
        picture.line((0, y + ROW * (deepest + 1) + 3), (width, y + ROW * (deepest + 1) + 3), thick=0.6)
        for event, works in workers(lane):
            start_s, end_s = max(event.start_s, window[0]), min(event.end_s, window[1])
            picture.box(
                (start_s - window[0]) * scale,
                y + event.depth * ROW,
                max((end_s - start_s) * scale, 0.75),
                ROW - 1,
                look(event, works),
                _words(event, _room(event, window, width), numbers),
                **event._asdict(),
            )
        y += ROW * (deepest + 1) + 10
    _axis(picture, window, y, scale)
    _tell(picture, shown, numbers)
    return picture


def _words(event: Event, room: float, numbers: dict[str, int]) -> str:
    """The text in an event's box: its name, or its number and as much of the name as tells it: all before its
    arguments, a long beginning, or nothing."""
    if text.width(event.name) <= room:
        return event.name
    number = str(numbers.get(event.name, ""))
    left = room - text.width(f"{number} ")
    stem, beginning = event.name.partition("(")[0], text.shortened(event.name, left)
    if text.width(stem) <= left:
        return f"{number} {stem}"
    if len(beginning) >= TELLING:
        return f"{number} {beginning}"
    return number if text.width(number) <= room + MARGIN else ""


def _axis(picture: Picture, window: tuple[float, float], y: float, scale: float) -> None:
    for at_s in ticks(*window, most=8 if picture.wide else 4):
        x = (at_s - window[0]) * scale
        words = units.human(at_s, "seconds") if at_s else "0"
        half = text.width(words) / 2
        picture.line((x, y - 7), (x, y - 2))
        picture.text(min(max(x, half), picture.width - half), y + 7, words, anchor="middle", ink="ink-soft")


def _tell(picture: Picture, shown: Profile, numbers: dict[str, int]) -> None:
    """A line for each lane. Events of one name and length that follow one another are told together."""
    for lane in shown.lanes:
        alike = groupby(lane.events, lambda event: (event.name, units.human(_long_s(event), "seconds")))
        words = []
        for (name, took), events in alike:
            each = list(events)
            named = f"{name} ({numbers[name]})" if name in numbers else name
            start = units.human(each[0].start_s, "seconds") if each[0].start_s else "0"
            end = units.human(each[-1].end_s, "seconds")
            together = f"{len(each)} times {named} for {took} each, from {start} to {end}"
            words.append(together if len(each) > 1 else f"{named} from {start} for {took}")
        picture.tell(f"{lane.name}: {'; '.join(words)}")


def _long_s(event: Event) -> float:
    return event.end_s - event.start_s


def totals(shown: Profile, numbers: dict[str, int]) -> list[tuple[int, str, int, str]]:
    """(number, name, how often, total time) of each numbered name."""
    rows = []
    for name, number in numbers.items():
        took = [one.end_s - one.start_s for lane in shown.lanes for one in lane.events if one.name == name]
        rows.append((number, name, len(took), units.human(sum(took), "seconds")))
    return rows
