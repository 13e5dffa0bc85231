"""What the puzzles with kernels share: launching one on arrays, comparing what it stored, and the picture of
what each program loads and stores."""

from engine.puzzles.block_language import KernelFault, launched
from engine.puzzles.judging import Slip, box, picture

HUES = ("hbm", "link", "network", "compute", "deep")  # of the programs, in turn
MOST_LINES_DRAWN = 16


def numbers(count, seed):
    """Numbers between -2 and 2 in quarters, different ones next to each other."""
    return [((7 * at * at + 11 * at + seed * 5) % 17 - 8) / 4 for at in range(count)]


def ran(kernel, programs, arrays, arguments, constants):
    """Launch a kernel on arrays and further arguments; a Slip has the picture of what it did up to there."""
    try:
        launched(kernel, programs, [*arrays, *arguments], constants)
    except KernelFault as fault:
        memory, places = (fault.drawn or {}).get("fault", (None, []))
        fault.drawn = drawn(arrays, programs, memory, places)
        raise


def require(result, wanted, arrays, programs, within, why):
    """Raise a Slip at the first element of the result that is not as wanted. ``why`` gives words for a number
    that was found and the element's place."""
    for at in range(len(wanted)):
        if at not in result.writer:
            raise Slip(
                f"No program stores {result.place(at)}. There are {programs} programs, numbered from 0. {why(None, at)}".strip(),
                drawn(arrays, programs, result, [at]),
            )
        found = result.numbers[at]
        if not abs(found - wanted[at]) <= within * max(1.0, abs(wanted[at])):
            raise Slip(
                f"{result.place(at)} must be {wanted[at]:.5g}, and program {result.writer[at]} stores {found:.5g}. {why(found, at)}".strip(),
                drawn(arrays, programs, result, [at]),
                result.line[at],
            )


def drawn(arrays, programs, wrong=None, places=()):
    """The picture: a line for each array, or for each band of its rows, with the programs that load or store
    its elements."""
    lines = [line for each in arrays for line in lines_of(each, places if each is wrong else ())]
    key = {HUES[number]: f"program {number}" for number in range(min(programs, len(HUES)))}
    if programs > len(HUES):
        key = {HUES[number]: f"programs {number}, {number + len(HUES)} …" for number in range(len(HUES))}
    looks = [each[3] for _, boxes in lines for each in boxes]
    key |= {"idle": "no program"} if "idle" in looks else {}
    key |= {"wrong": "what is wrong"} if "wrong" in looks else {}
    says = "The elements of each array, in the colour of the program that loads or stores them."
    return picture(lines[:MOST_LINES_DRAWN], key, says)


def lines_of(memory, places):
    """The lines of an array: rows next to each other that look alike are one."""
    tall, bands = len(memory.numbers) // memory.row, []
    for row in range(tall):
        looks = [look_of(memory, row * memory.row + at, places) for at in range(memory.row)]
        boxes = runs(looks)
        if bands and bands[-1][2] == boxes:
            bands[-1][1] = row
        else:
            bands.append([row, row, boxes])
    lines = []
    for first, last, boxes in bands:
        name = memory.name
        if tall > 1:
            name += f", row {first}" if first == last else f", rows {first} to {last}"
        lines.append((name, boxes))
    beyond = sorted([at for at in places if not 0 <= at < len(memory.numbers)])
    if beyond and tall == 1 and beyond[0] >= len(memory.numbers):
        start = min(
            beyond[0], 2 * len(memory.numbers) - 1
        )  # further off it would leave no room for the array
        end = min(beyond[-1] + 1, 2 * len(memory.numbers))
        lines[-1][1].append(box(start, end, "outside", "wrong"))
    elif beyond:
        lines.append((memory.name + ", outside", [box(0, min(len(beyond), memory.row), "outside", "wrong")]))
    return lines


def look_of(memory, at, places):
    """The text and the look of an element."""
    who = [memory.writer[at]] if at in memory.writer else memory.reader.get(at, [])
    if not who and at not in places:
        return ("", "idle")
    text = " ".join([str(each) for each in who[:4]]) + (" …" if len(who) > 4 else "")
    return (text or "–", "wrong") if at in places else (text, HUES[who[0] % len(HUES)])


def runs(looks):
    """Boxes for elements in a row that look alike."""
    boxes, first = [], 0
    for at in range(1, len(looks) + 1):
        if at == len(looks) or looks[at] != looks[first]:
            text, look = looks[first]
            boxes.append(box(first, at, text, look))
            first = at
    return boxes
