"""A best-fit allocator that splits blocks and merges them again."""

from engine.one_gpu.allocator import FREE, USED, add_segment, best_fit, cut, join, put_in, take_out, unused
from engine.puzzles.judging import Slip, box, one_for_each, picture, shown, whole

TITLE = "a best-fit allocator"
LESSON = "15-caching-allocator"
STATEMENT = """
Serve `requests` out of one segment of `capacity` bytes that begins at address 0. A request is `("take", name, size)` or
`("free", name)`. Return one entry for each request: the address for a `take`, `None` where no free block is large enough, and `None`
for a `free`. Choose the **smallest** free block that is large enough, of equal ones the lowest, and split it: what is asked for comes
first, the rest stays free. A block that is freed merges with its free neighbours at once. A name that got no room is never freed.
"""
FUNCTION = "addresses"
START = '''def addresses(requests, capacity):
    """The address of each request, or None."""
    free = [(0, capacity)]  # (address, size) of each free block
    taken = {}              # name -> (address, size)
    given = []
    for request in requests:
        if request[0] == "free":
            free.append(taken.pop(request[1]))
            given.append(None)
            continue
        _, name, size = request
        for block in free:
            if block[1] >= size:
                free.remove(block)
                free.append((block[0] + size, block[1] - size))
                taken[name] = (block[0], size)
                given.append(block[0])
                break
        else:
            given.append(None)
    return given
'''
HINTS = (
    "The code takes the first block that is large enough. Look at all that are, and choose by (size, address).",
    "Two free blocks that touch are one. Sort the free blocks by address after each free, and go through neighbours.",
    "After freeing: for each block in sorted(free), add its size to the one before if that ends where it begins, else append it. Leave out "
    "blocks of size 0.",
)
SOLUTION = '''def addresses(requests, capacity):
    """The address of each request, or None."""
    free, taken, given = [(0, capacity)], {}, []
    for request in requests:
        if request[0] == "free":
            free = merged(free + [taken.pop(request[1])])
            given.append(None)
            continue
        _, name, size = request
        fitting = [(length, start) for start, length in free if length >= size]
        if not fitting:
            given.append(None)
            continue
        length, start = min(fitting)
        free.remove((start, length))
        if length > size:
            free.append((start + size, length - size))
        taken[name] = (start, size)
        given.append(start)
    return given


def merged(blocks):
    """The same free bytes in as few blocks as can be."""
    found = []
    for start, length in sorted(blocks):
        if found and found[-1][0] + found[-1][1] == start:
            found[-1] = (found[-1][0], found[-1][1] + length)
        else:
            found.append((start, length))
    return found
'''
OPEN = (
    "PyTorch splits a large block only if more than 1 MiB remains. Write a list of requests for which best fit runs out of room and "
    "first fit does not. It is shorter than you think."
)

CASES = (  # capacity, and requests: a letter with a size allocates a block, a letter alone frees it
    (100, "a10 b20 c30 d40"),
    (100, "a40 b10 c20 d10 a c e15 f30"),
    (100, "a50 b10 c20 d20 a c e20 f40"),
    (100, "a20 b20 c20 d40 b c e40 f10"),
    (100, "a20 b20 c20 d40 a c b e60 d f40"),
    (100, "a20 b10 c20 d10 a c e20 f20 g40 h1"),
    (100, "a60 b60 a b100"),
    (64, "a8 b8 c8 d8 e8 f8 g8 h8 a c e g i16 b j24 d f k40 h l56 m16"),
)


def run(function):
    """Run the reader's function for the second case; returns the result in words, and the figure."""
    capacity, text = CASES[1]
    asked = parsed(text)
    given = addresses_of(function, asked, capacity)
    said = [f"{worded(asked[at])} → {given[at]}" for at in range(len(asked)) if asked[at][0] == "take"]
    return f"Of {capacity} bytes, {', '.join(said)}.", drawn(given, asked, capacity)


def check(function):
    """Check the reader's function for all cases; a Slip at the first wrong answer."""
    for capacity, text in CASES:
        asked = parsed(text)
        compare(addresses_of(function, asked, capacity), asked, capacity)
    words, picture = run(function)
    return f"Right, for {len(CASES)} lists of requests. {words}", picture


def parsed(text):
    """("take", name, size) or ("free", name) of each word."""
    return [("take", word[0], int(word[1:])) if len(word) > 1 else ("free", word) for word in text.split()]


def worded(request):
    """A request in words."""
    return f"take {request[1]} of {request[2]}" if request[0] == "take" else f"free {request[1]}"


def addresses_of(function, asked, capacity):
    """The reader's answers, one for each request."""
    given = one_for_each(
        function(list(asked), capacity),
        f"{FUNCTION}(requests, {capacity})",
        "a list with an entry for each request",
        len(asked),
        "requests; a free has one too, None",
    )
    for each in given:
        if each is not None and not whole(each):
            raise Slip(f"Each entry must be an address, a whole number, or None; {shown(each)} is neither.")
    return given


class OneSegment:
    """One segment of the engine's allocator without PyTorch's rounding: a block is as large as its
    request."""

    def __init__(self, capacity):
        self.memory, self.taken = unused(capacity, 0), {}
        put_in(self.memory, add_segment(self.memory, 1, capacity, FREE))

    def take(self, name, size):
        """Allocate a block by best fit; returns its address, or None if there is no room."""
        place = best_fit(self.memory, 1, size)
        if place < 0:
            return None
        number = self.memory.caches[1].blocks[place]
        take_out(self.memory, number)
        block = self.memory.blocks[number]
        if block.size > size:
            put_in(self.memory, cut(self.memory, number, size, FREE))
        block.state, self.taken[name] = USED, number
        return block.start

    def free(self, name):
        """Free the block of a name, and merge it with free neighbours."""
        number = self.taken.pop(name)
        self.memory.blocks[number].state = FREE
        join(self.memory, number)
        put_in(self.memory, number)

    def room(self):
        """The free blocks by address: (start, size)."""
        free = [self.memory.blocks[number] for number in self.memory.caches[1].blocks]
        return sorted([(block.start, block.size) for block in free])


def compare(given, asked, capacity):
    """Raise a Slip at the first request for which the reader's answer differs from the engine's allocator."""
    segment = OneSegment(capacity)
    for at in range(len(asked)):
        request, before, wanted = asked[at], segment.room(), None
        if request[0] == "free":
            segment.free(request[1])
        else:
            wanted = segment.take(request[1], request[2])
        if given[at] != wanted:
            raise Slip(explained(given[at], wanted, asked, at, before), drawn(given, asked, capacity, at))


def explained(given, wanted, asked, at, free):
    """The words that explain why an answer is not that of best fit."""
    so_far = ", ".join([worded(each) for each in asked[:at]]) or "nothing"
    blocks = ", ".join([f"{length} at {start}" for start, length in free]) or "nothing"
    where = f"After {so_far}: {worded(asked[at])} must give {wanted}, and gave {given}."
    if asked[at][0] == "free":
        return f"{where} A free takes nothing, so it has no address."
    where, size = f"{where} Free are {blocks}", asked[at][2]
    if wanted is None:
        apart = (
            " Together they would be, but they do not touch."
            if sum([each[1] for each in free]) >= size
            else ""
        )
        return f"{where}: no block is large enough.{apart} None says so."
    if given is None:
        freed = [each for each in asked[:at] if each[0] == "free"]
        exact = size in [length for _, length in free]
        why = (
            "Freed neighbours merge, on both sides and at once"
            if freed
            else "A block of just that size is large enough"
            if exact
            else "Split the block: what is not asked for stays free"
        )
        return f"{where}. {why}."
    if [start for start, length in free if start < given < start + length]:
        return f"{where}: what is asked for comes first in its block, the rest stays free."
    there = [length for start, length in free if start == given]
    if not there:
        return f"{where}: no free block begins at {given}, so that what lies there would be written over."
    if there[0] < size:
        return f"{where}: the {there[0]} at {given} are too few."
    smallest = [length for start, length in free if start == wanted][0]
    if there[0] > smallest:
        return f"{where}: {there[0]} at {given} would do, but choose the smallest of these that is large enough, {smallest} at {wanted}."
    return f"{where}: {there[0]} at {given} would do, but of equal ones the lowest is taken."


def drawn(given, asked, capacity, wrong=-1):
    """The picture of the segment after each request: the blocks where the reader's answers put them."""
    taken, lines, last = {}, [], len(asked) - 1 if wrong < 0 else wrong
    for at in range(last + 1):
        name = asked[at][1]
        if asked[at][0] == "free":
            taken.pop(name, None)
        elif given[at] is not None:
            taken[name] = (given[at], asked[at][2])
        boxes = []
        for each in taken:
            start = max(0, min(capacity, taken[each][0]))
            end = max(start, min(capacity, taken[each][0] + taken[each][1]))
            boxes.append(box(start, end, each, "wrong" if at == wrong and each == name else "hbm"))
        lines.append((worded(asked[at]), [box(0, capacity, "", "idle")] + boxes))
    key = {"hbm": "taken", "idle": "free"}
    if wrong >= 0:
        key["wrong"] = "not where best fit puts it"
    return picture(lines, key, f"The {capacity} bytes after each request.", "bytes")
