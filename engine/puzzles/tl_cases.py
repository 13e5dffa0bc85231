"""What the Triton puzzles share: a launch that is judged, and the picture of what its programs touched."""

import math

from engine.puzzles.judging import Slip, box, picture
from engine.puzzles.tl_language import Kernel

LOOK_OF = ("compute", "link", "hbm", "network")  # of programs, in turns


def launched(kernel, grid, arguments, draw, **constants):
    """Launch a reader's kernel. A Slip on the way gets the picture of what was touched until then."""
    if not isinstance(kernel, Kernel):
        raise Slip("The kernel needs @triton.jit above its first line.")
    try:
        return kernel[grid](*arguments, **constants)
    except Slip as slip:
        if slip.drawn is not None:
            name, places = slip.drawn["wrong"]
            slip.drawn = draw(slip.drawn["launch"], {(name, place) for place in places})
        raise


def by_element(launch, names, sizes, wrong):
    """A picture with a line for each tensor: which program touched each element, and which are wrong."""
    lines = []
    for name, size in zip(names, sizes):
        by = {place: program for program, tensor, place in launch.loads + launch.stores if tensor == name}
        beyond = [place for tensor, place in wrong if tensor == name]
        cells = []
        for place in range(max([size, *[place + 1 for place in beyond]])):
            look = LOOK_OF[by[place] % len(LOOK_OF)] if place in by else "idle"
            cells.append(
                box(place, place + 1, by.get(place, ""), "wrong" if (name, place) in wrong else look)
            )
        lines.append((name, cells))
    return picture(
        lines,
        {"compute": "touched by a program, whose number it has", "idle": "by none", "wrong": "wrong"},
        "For each tensor, element by element, the number of the program that loaded or stored it.",
    )


def by_tile(launch, name, shape, block, wrong, found=None):
    """A picture of a matrix in its tiles, row of tiles by row: which program stored each, and which are
    wrong."""
    (rows, columns), (high, wide) = shape, block
    by = {}
    for program, tensor, place in launch.stores:
        if tensor == name:
            by.setdefault((place // columns // high, place % columns // wide), set()).add(program)
    bad = {(place // columns // high, place % columns // wide) for tensor, place in wrong if tensor == name}
    lines = []
    for row in range(-(-rows // high)):
        cells = []
        for column in range(-(-columns // wide)):
            programs = sorted(by.get((row, column), ()))
            look = "wrong" if (row, column) in bad or len(programs) > 1 else "compute" if programs else "idle"
            cells.append(box(column, column + 1, ", ".join([str(each) for each in programs[:3]]), look))
        lines.append((f"rows {row * high} …", cells))
    return picture(
        lines,
        {
            "compute": "a tile, with the number of the program that stored it",
            "idle": "stored by none",
            "wrong": "wrong",
        },
        f"The tiles of {name}, row by row, each with the program that stored it.",
    )


def compared(launch, tensor, wanted, draw, why):
    """A Slip at the first element of a tensor that is not what it must be. ``why`` gives more words for the
    place and the value there."""
    wrong = wrong_places(tensor.values, wanted)
    if not wrong:
        return
    place = wrong[0]
    value = tensor.values[place]
    if value != value and (tensor.name, place) not in launch.stored:
        words = f"No program stores {tensor.name}[{place}]. {why(place, value)}"
    elif value != value and launch.unsaid:
        words = (
            f"{tensor.name}[{place}] is no number. A lane that the mask leaves out holds anything at all, and here it was "
            "computed with: give tl.load an other= that does no harm."
        )
    else:
        shown = "no number" if value != value else f"{value:.4g}"
        words = f"{tensor.name}[{place}] must be {wanted[place]:.4g} and is {shown}. {why(place, value)}"
    raise Slip(words, draw(launch, {(tensor.name, each) for each in wrong}))


def wrong_places(found, wanted):
    """The places at which two lists of floats differ by more than rounding; no number is wanted where it does not
    matter."""
    return [
        place
        for place in range(len(wanted))
        if wanted[place] == wanted[place]
        and not abs(found[place] - wanted[place]) <= 1e-4 * max(1.0, abs(wanted[place]))
    ]


def empty(count):
    """The values of a tensor that nobody has written yet."""
    return [math.nan] * count


def some(count, seed):
    """Values between -2 and 2 that follow no pattern."""
    values, state = [], seed
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2147483648
        values.append(round(state / 536870912 - 2.0, 3))
    return values
