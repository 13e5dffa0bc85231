"""Choose the batch sizes to capture as CUDA graphs, so that the fewest rows are padded."""

from engine.puzzles.judging import Slip, box, picture, rows, shown, whole
from engine.serving.shape_buckets import LARGEST, best, buckets_of, padding

TITLE = "pick the sizes to capture"
LESSON = "19-cuda-graphs"
STATEMENT = """
`counts[b]` is how many steps ran with a batch of `b` sequences, for `b` from 0 to 128. You may capture `kept` graphs, each for one
batch size. A step runs the smallest captured size that its batch fits into and pads the rest, so that 128 has to be among them. Return
the sizes that pad the fewest rows in all.
"""
FUNCTION = "sizes_to_capture"
START = '''def sizes_to_capture(counts, kept):
    """The batch sizes to capture, the largest among them."""
    largest = len(counts) - 1
    return [largest * (i + 1) // kept for i in range(kept)]
'''
HINTS = (
    "Equal steps spend graphs on batches that hardly ever come. Let the counts decide where the sizes lie.",
    "Suppose that the largest of n sizes is j, and the one before it is i. Then batches from i + 1 to j are padded to j, and the rest is the "
    "same question with n - 1 sizes, the largest of which is i.",
    "Keep least[n][j], the fewest padded rows for batches up to j with n sizes: the least over i of least[n - 1][i] plus the rows that "
    "batches i + 1 … j lack. Remember each i to walk back.",
)
SOLUTION = '''def sizes_to_capture(counts, kept):
    """The batch sizes to capture, the largest among them."""
    largest = len(counts) - 1
    steps, rows = [0], [0]  # of batches up to each size: how many steps, and how many rows they have
    for b in range(1, largest + 1):
        steps.append(steps[-1] + counts[b])
        rows.append(rows[-1] + b * counts[b])
    least = [0] + [float("inf")] * largest
    came_from = []
    for _ in range(kept):
        following, chosen = [0], [0]
        for j in range(1, largest + 1):
            fewest, last = float("inf"), 0
            for i in range(j):
                if least[i] < fewest:
                    padded = least[i] + j * (steps[j] - steps[i]) - (rows[j] - rows[i])
                    if padded < fewest:
                        fewest, last = padded, i
            following.append(fewest)
            chosen.append(last)
        least = following
        came_from.append(chosen)
    sizes, j = [], largest
    for chosen in reversed(came_from):
        if j > 0:
            sizes.append(j)
            j = chosen[j]
    return sizes[::-1]
'''
OPEN = (
    "Each graph holds memory of its own, and each captured size costs the server start-up time. For how many graphs is the next one "
    "not worth it any more, with these counts?"
)


def bell(middle, width):
    """How often each batch size occurs: bell-shaped counts around ``middle``."""
    return [0] + [max(0, round(1000 * 2 ** (-(((b - middle) / width) ** 2)))) for b in range(1, LARGEST + 1)]


def two_hills():
    """How often each batch size occurs: counts with two peaks."""
    low, high = bell(12, 6), bell(70, 15)
    return [low[b] + high[b] for b in range(LARGEST + 1)]


def cases():
    """The cases: the counts of batch sizes, and the number of graphs."""
    return ((bell(40, 12), 2), (two_hills(), 3), (bell(5, 40), 1))


def run(function):
    """Run the reader's function for the first counts; returns the result in words, and the figure."""
    counts, kept = cases()[0]
    sizes = sizes_of(function, counts, kept)
    return told(counts, kept, sizes), drawn(counts, kept, sizes)


def told(counts, kept, sizes):
    """The words for the padding with these sizes and with the best ones."""
    padded, fewest = padded_by(counts, sizes), padded_by(counts, best(counts, kept))
    return f"Batches around 40, {kept} graphs: {shown(sizes)} pad {padded:,.0f} rows, the best sizes {fewest:,.0f}."


def check(function):
    """Check the reader's function for all counts, calling it once for each, because the page's Python is
    slow."""
    asked, given = cases(), []
    for counts, kept in asked:
        sizes, wanted = sizes_of(function, counts, kept), best(counts, kept)
        given.append(sizes)
        padded, fewest = padded_by(counts, sizes), padded_by(counts, wanted)
        if padded > fewest:
            peak = counts.index(max(counts))
            raise Slip(
                f"With {kept} graphs and batches that are mostly near {peak}, {shown(sizes)} pad {padded:,.0f} rows. The best sizes pad "
                f"{fewest:,.0f}, with {shown([int(size) for size in wanted])[1:-1].split(',')[0]} as the smallest. {worst(counts, kept, sizes)}",
                drawn(counts, kept, sizes),
            )
    return f"Right, for {len(given)} kinds of traffic. {told(*asked[0], given[0])}", drawn(
        *asked[0], given[0]
    )


def worst(counts, kept, sizes):
    """The words for the graph that causes most of the padding."""
    if len(sizes) < kept:
        return f"You may capture {kept}, and {len(sizes)} are used: one more never pads more."
    first, most = 0, (-1.0, 0, 0)
    for size in sizes:
        rows_more = sum([counts[b] * (size - b) for b in range(first + 1, size)])
        most = max(most, (rows_more, first + 1, size))
        first = size
    return (
        f"{most[0]:,.0f} of yours are in batches of {most[1]} to {most[2] - 1}, which all run with {most[2]}."
    )


def padded_by(counts, sizes):
    """The number of padded rows, by the engine's count."""
    return padding(counts, buckets_of(list(sizes)))


def sizes_of(function, counts, kept):
    """The sizes that the reader's function picks, ascending."""
    call = f"{FUNCTION}(counts, {kept})"
    given = rows(function(list(counts), kept), call, "a list of batch sizes", 1000)
    for each in given:
        if not whole(each) or not 1 <= each <= LARGEST:
            raise Slip(f"{call} has {shown(each)}; sizes are whole numbers from 1 to {LARGEST}.")
    sizes = sorted(set(given))
    if len(sizes) > kept:
        raise Slip(f"{call} gave {len(sizes)} sizes; you may capture {kept}.")
    if LARGEST not in sizes:
        raise Slip(
            f"{call} gave {shown(sizes)}; {LARGEST} must be among them, or the largest batches fit into none."
        )
    return sizes


def drawn(counts, kept, sizes):
    """The picture of which batches run in which graph, in the reader's choice and in the best one, and of
    where most of the batches are."""
    lines = []
    for name, picked, look in (
        ("yours", sizes, "compute"),
        ("best", [int(size) for size in best(counts, kept)], "hbm"),
    ):
        first, boxes = 0, []
        for size in sorted(set(picked)):
            boxes.append(box(first, size, f"to {size}", look))
            first = size
        lines.append((name, boxes))
    many = [b for b in range(len(counts)) if counts[b] * 2 >= max(counts)]
    lines.append(("often", [box(b - 1, b, "", "network") for b in many]))
    return picture(
        lines,
        {"network": "batches at least half as frequent as the commonest"},
        "The batches that each captured size serves, in your choice and in the best.",
        "sequences",
    )
