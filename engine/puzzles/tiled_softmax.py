"""Online softmax: one pass over tiles of scores, with a running maximum."""

import math

from engine.puzzles.judging import Slip, box, number, picture, shown, something
from engine.puzzles.merge_partials import part

TITLE = "softmax in one pass over tiles"
LESSON = "16-custom-kernels-and-fusion"
STATEMENT = """
A query's scores and values come in `tiles`, one after the other, each a list of `(score, value)`. Return the mean of the values,
weighted by the softmax of all the scores. You may go through the tiles **once**: on a GPU each of them is read from memory and gone
afterwards. Scores may be as large as 10,000, and a score that the mask hides is `-math.inf`.
"""
FUNCTION = "attention"
START = '''import math

def attention(tiles):
    """The mean of the values, weighted by the softmax of the scores."""
    total, weighted = 0.0, 0.0
    for tile in tiles:
        for score, value in tile:
            total += math.exp(score)
            weighted += math.exp(score) * value
    return weighted / total
'''
HINTS = (
    "exp(10000) is too large for any number format. Softmax does not change if the same number is taken off all scores: which one is safe?",
    "You only know the largest score so far. When a larger one comes, rescale what you have summed by exp(old - new).",
    "Skip scores of -inf: nothing is known of the maximum before the first score that counts, and -inf - (-inf) is no number.",
)
SOLUTION = '''import math

def attention(tiles):
    """The mean of the values, weighted by the softmax of the scores."""
    largest, total, weighted = -math.inf, 0.0, 0.0
    for tile in tiles:
        for score, value in tile:
            if score == -math.inf:
                continue
            if score > largest:
                rescale = math.exp(largest - score)
                total, weighted, largest = total * rescale, weighted * rescale, score
            weight = math.exp(score - largest)
            total += weight
            weighted += weight * value
    return weighted / total
'''
OPEN = (
    "A kernel rescales once a tile, not once a score, because it takes a tile's maximum first. Do that. How many exponentials do you "
    "save if the largest score comes last?"
)

CASES = (  # tiles of scores and values
    (((1.0, 2.0), (3.0, 4.0)), ((2.0, -1.0), (0.0, 6.0))),
    (((5.0, 1.0),), ((4.0, 2.0),), ((3.0, 3.0),)),
    (((9000.0, 1.0), (10000.0, 2.0)), ((9999.0, 3.0),)),
    (((-9000.0, 1.0),), ((-9001.0, 4.0),)),
    (((10000.0, 1.0),), ((0.0, 5.0),)),
    (((-math.inf, 100.0), (1.0, 2.0)), ((-math.inf, 100.0), (2.0, 5.0))),
    (((-math.inf, 100.0), (-math.inf, 50.0)), ((0.0, 3.0),)),
)


class Once:
    """A sequence of tiles that can be iterated over once, one tile at a time."""

    def __init__(self, tiles):
        self.tiles, self.begun, self.open = tiles, False, 0

    def __iter__(self):
        if self.begun:
            raise Slip(
                "The tiles are gone through a second time. On the GPU each is read once: keep a running maximum instead."
            )
        self.begun = True
        return Tiles(self.tiles)

    def __getitem__(self, place):
        raise Slip(
            f"No tile can be asked for by its place, as [{place}] does: they come one after the other."
        )


class Tiles:
    """The iterator over the tiles. A tile becomes unreadable when the next one is requested."""

    def __init__(self, tiles):
        self.tiles, self.at, self.last = tiles, 0, None

    def __iter__(self):
        return self

    def __next__(self):
        if self.last is not None:
            self.last.gone = True
        if self.at == len(self.tiles):
            raise StopIteration
        self.last = LentTile(self.tiles[self.at])
        self.at += 1
        return self.last


class LentTile:
    """The scores and values of a tile, which can be read only until the next tile is requested."""

    def __init__(self, entries):
        self.entries, self.gone = entries, False

    def __iter__(self):
        if self.gone:
            raise Slip(
                "This keeps more than one tile at a time: when the next tile is read, the one before is gone."
            )
        return iter(self.entries)

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, place):
        if self.gone:
            raise Slip(
                "This keeps more than one tile at a time: when the next tile is read, the one before is gone."
            )
        return self.entries[place]


def run(function):
    """Run the reader's function for the first case; returns the result in words, and the figure."""
    found = asked(function, CASES[0])
    return (
        f"{len(CASES[0])} tiles: your mean is {found:.6g}, and softmax over all scores gives {wanted(CASES[0]):.6g}.",
        drawn(CASES[0], found),
    )


def check(function):
    """Check the reader's function for all cases; a Slip at the first wrong answer."""
    for tiles in CASES:
        found, right = asked(function, tiles), wanted(tiles)
        if abs(found - right) > 1e-9 * max(1.0, abs(right)):
            raise Slip(
                f"For the tiles {shown(tiles)}, the mean must be {right:.6g} and is {found:.6g}. {why(tiles, found)}",
                drawn(tiles, found),
            )
    words, picture = run(function)
    return f"Right, for {len(CASES)} rows, scores of 10,000 and hidden ones among them. {words}", picture


def why(tiles, found):
    """The words that help with this wrong mean: the typical mistake that gives it, or else a question to
    ask."""
    seen = [entry for tile in tiles for entry in tile if entry[0] > -math.inf]
    maximum, total, weighted = part(seen)
    each = [part([entry for entry in tile if entry[0] > -math.inf]) for tile in tiles]
    means = [one[2] / one[1] for one in each if one[1]]
    flat = [value for tile in tiles for _, value in tile]
    for value, words in (
        (weighted, "This is the weighted sum: divide it by the sum of the weights."),
        (
            total / weighted if weighted else 0.0,
            "This is turned over: divide the values' sum by the weights'.",
        ),
        (sum(flat) / len(flat), "This is the plain mean: the softmax weighs the values by their scores."),
        (max(seen)[1], "This is the value of the largest score alone: softmax gives the others their share."),
        (means[0], "This is the first tile's mean: all the tiles count."),
        (means[-1], "This is the last tile's mean: what was summed before is lost."),
        (
            sum(means) / len(means),
            "This is the mean of the tiles' means: a tile with larger scores weighs more.",
        ),
        (sum([score for score, _ in seen]), "These are scores, not values."),
    ):
        if abs(found - value) <= 1e-9 * max(1.0, abs(value)):
            return words
    if found > max(flat) or found < min(flat):
        return "No mean lies outside of its values: are both sums rescaled by the same factor, when a new maximum comes?"
    if len(seen) < len(flat):
        return "A hidden score has no weight at all. Are both sums relative to the same maximum?"
    return "Are both sums relative to the same maximum, from the first score to the last?"


def wanted(tiles):
    """The mean by definition."""
    seen = [entry for tile in tiles for entry in tile if entry[0] > -math.inf]
    _, total, weighted = part(seen)
    return weighted / total


def asked(function, tiles):
    """The mean that the reader's function returns."""
    found = function(Once(tiles))
    something(found, FUNCTION)
    if isinstance(found, (tuple, list)):
        raise Slip(f"{FUNCTION} gave {shown(found)}; the mean is one number: divide the two sums.")
    if not number(found) or found != found:
        raise Slip(
            f"For the tiles {shown(tiles)}, {FUNCTION} gave {shown(found)}, which is no number. What is -inf - (-inf)?"
        )
    return found


def drawn(tiles, found):
    """The picture of the tiles in order, the weight of each value, and the reader's and the right mean."""
    seen = [entry for tile in tiles for entry in tile]
    largest, total, _ = part([entry for entry in seen if entry[0] > -math.inf])
    right = abs(found - wanted(tiles)) <= 1e-9 * max(1.0, abs(wanted(tiles)))
    cells, weights, at = [], [], 0
    for number_of in range(len(tiles)):
        for score, value in tiles[number_of]:
            weight = math.exp(score - largest) / total if score > -math.inf else 0.0
            cells.append(box(at, at + 1, f"{value:g}", "hbm" if number_of % 2 else "link"))
            weights.append(box(at, at + 1, f"{weight:.2f}", "compute" if weight >= 0.005 else "idle"))
            at += 1
    lines = [("values", cells), ("weights", weights)]
    lines.append(("your mean", [box(0, at, f"{found:.4g}", "compute" if right else "wrong")]))
    lines.append(("softmax's", [box(0, at, f"{wanted(tiles):.4g}", "plain")]))
    return picture(
        lines,
        {"link": "a tile", "hbm": "the next one"},
        "The values tile by tile, their softmax weights, and the two means.",
    )
