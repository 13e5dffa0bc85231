"""``triton`` and ``triton.language`` for the puzzles of lesson 17: kernels run program by program, and every
element that they load or store is noted (``Launch``)."""

import math

from engine.puzzles.judging import Slip, shown
from engine.puzzles.tl_blocks import (
    LARGEST,
    LEAST_DOT,
    OFFERED,
    WHOLES,
    Block,
    DType,
    Tensor,
    block,
    broadcast,
    divided,
    lanes,
    spread,
    together,
)

MOST_PROGRAMS = 512
NOW = []  # the launch that is going on, if there is one


class Launch:
    """A kernel that is being run over a grid: which program is on, and who has touched which element."""

    def __init__(self, grid):
        self.grid, self.program = grid, (0, 0, 0)
        self.loaded, self.stored = {}, {}  # (tensor's name, place) -> the program that did
        self.loads, self.stores = [], []  # (program, tensor's name, place), in order
        self.unsaid = False  # whether a masked lane was loaded without a value for it

    def number(self):
        """The program's number, counted along the grid."""
        return self.program[0] + self.grid[0] * (self.program[1] + self.grid[1] * self.program[2])


def now():
    """The launch that is going on."""
    if not NOW:
        raise Slip("tl works inside a kernel that was launched, and nothing is launched here.")
    return NOW[-1]


# -- memory --------------------------------------------------------------------------------------------------
def masked(pointer, mask):
    """The mask of an access, an entry for each of its elements."""
    if mask is None:
        return [True] * len(pointer.values)
    given = block(mask)
    if broadcast(pointer.shape, given.shape) != pointer.shape:
        raise Slip(f"The mask has shape {list(given.shape)}, and the pointers have {list(pointer.shape)}.")
    return [bool(value) for value in spread(given, pointer.shape)]


def reached(pointer, mask, verb):
    """The places that an access touches, a Slip for those outside of the tensor; None for masked lanes."""
    if not isinstance(pointer, Block) or pointer.tensor is None:
        raise Slip(f"tl.{verb} takes pointers: a name that ends in _ptr, plus offsets.")
    inside = masked(pointer, mask)
    tensor, count = pointer.tensor, len(pointer.tensor.values)
    outside = [place for place, on in zip(pointer.values, inside) if on and not 0 <= place < count]
    if outside:
        where = f"program {now().number()} {verb}s {tensor.name}[{lanes(outside)}]"
        does = "reads whatever lies there" if verb == "load" else "writes over what belongs to somebody else"
        raise Slip(
            f"Out of bounds: {where}, and {tensor.name} has {count} elements, 0 to {count - 1}. A GPU {does} and says "
            f"nothing. {'Mask those lanes.' if mask is None else 'Your mask lets these lanes through.'}",
            {"launch": now(), "wrong": (tensor.name, outside)},
        )
    return [place if on else None for place, on in zip(pointer.values, inside)]


def tl_load(pointer, mask=None, other=None, **_hints):
    """The elements at the pointers. A masked lane has ``other``, or, if nobody says what, anything."""
    launch, places = now(), reached(pointer, mask, "load")
    tensor, kind = pointer.tensor, pointer.tensor.dtype
    rest = spread(block(other), pointer.shape) if other is not None else None
    values = []
    for lane in range(len(places)):
        place = places[lane]
        if place is None:
            launch.unsaid = launch.unsaid or rest is None
            values.append(rest[lane] if rest is not None else 0 if kind in WHOLES else math.nan)
            continue
        by = launch.stored.get((tensor.name, place), launch.number())
        if by != launch.number():
            raise Slip(
                f"A race: program {launch.number()} loads {tensor.name}[{place}], which program {by} stores in the same "
                "launch. Programs run in no order, so nobody knows which value it gets.",
                {"launch": launch, "wrong": (tensor.name, [place])},
            )
        launch.loaded[(tensor.name, place)] = launch.number()
        launch.loads.append((launch.number(), tensor.name, place))
        values.append(tensor.values[place])
    return Block(pointer.shape, values, kind)


def tl_store(pointer, value, mask=None, **_hints):
    """Put values at the pointers."""
    launch, places = now(), reached(pointer, mask, "store")
    tensor, given = pointer.tensor, block(value)
    if given.tensor is not None:
        raise Slip("tl.store was given pointers as values. Load what they point to first.")
    if broadcast(pointer.shape, given.shape) != pointer.shape:
        raise Slip(
            f"tl.store puts a block of shape {list(given.shape)} at pointers of shape {list(pointer.shape)}."
        )
    values = spread(given, pointer.shape)
    for lane in range(len(places)):
        place = places[lane]
        if place is None:
            continue
        key = (tensor.name, place)
        for touched, verb in ((launch.stored, "stores"), (launch.loaded, "loads")):
            by = touched.get(key, launch.number())
            if by != launch.number():
                raise Slip(
                    f"A race: programs {by} and {launch.number()} both touch {tensor.name}[{place}]: the first {verb} it, "
                    "the second stores to it. Programs run in no order, so the result is a matter of luck.",
                    {"launch": launch, "wrong": (tensor.name, [place])},
                )
        launch.stored[key] = launch.number()
        launch.stores.append((launch.number(), tensor.name, place))
        tensor.values[place] = int(values[lane]) if tensor.dtype in WHOLES else float(values[lane])


def tl_atomic_add(pointer, value, mask=None, **_hints):
    """Add to the elements at the pointers, one program after the other, and give what was there."""
    launch, places = now(), reached(pointer, mask, "store")
    tensor, values, old = pointer.tensor, spread(block(value), pointer.shape), []
    for lane in range(len(places)):
        place = places[lane]
        if place is None:
            old.append(0.0)
            continue
        launch.stores.append((launch.number(), tensor.name, place))
        old.append(tensor.values[place])
        tensor.values[place] = tensor.values[place] + values[lane]
    return Block(pointer.shape, old, tensor.dtype)


# -- making blocks -------------------------------------------------------------------------------------------
def fixed(value, what):
    """A whole number that is known when the kernel is compiled."""
    if isinstance(value, Block):
        raise Slip(
            f"{what} must be known when the kernel is compiled: mark the argument with `: tl.constexpr`."
        )
    if not isinstance(value, int) or isinstance(value, bool):
        raise Slip(f"{what} must be a whole number, and is {shown(value)}.")
    return value


def tl_arange(start, end):
    """start, start + 1, … below end."""
    first, last = fixed(start, "The start of tl.arange"), fixed(end, "The end of tl.arange")
    count = last - first
    if count < 1 or count & (count - 1):
        raise Slip(
            f"tl.arange({first}, {last}) has {count} elements, and Triton's blocks are powers of two. Mask the rest."
        )
    if count > LARGEST:
        raise Slip(f"tl.arange({first}, {last}) is larger than the {LARGEST:,} that are meant here.")
    return Block((count,), list(range(first, last)), "int32")


def tl_full(shape, value, dtype):
    """A block of one value."""
    sides = shape if isinstance(shape, (tuple, list)) else (shape,)
    size = 1
    for side in sides:
        each = fixed(side, "Each side of a shape")
        if each < 1 or each & (each - 1):
            raise Slip(f"A block of shape {list(sides)}: each side must be a power of two.")
        size *= each
    if size > LARGEST:
        raise Slip(
            f"A block of shape {list(sides)} is larger than the {LARGEST:,} elements that are meant here."
        )
    filled = block(value).one("A block is filled with one value")
    return Block(tuple(sides), [int(filled) if dtype.name in WHOLES else float(filled)] * size, dtype.name)


def tl_zeros(shape, dtype):
    """A block of zeros."""
    return tl_full(shape, 0, dtype)


def tl_program_id(axis):
    """Which program this is, along an axis of the grid."""
    return Block((), [now().program[fixed(axis, "The axis")]], "int32")


def tl_num_programs(axis):
    """How many programs there are along an axis of the grid."""
    return Block((), [now().grid[fixed(axis, "The axis")]], "int32")


# -- computing -----------------------------------------------------------------------------------------------
def each(apply):
    """A function of one float for every element of a block."""

    def of_block(x):
        given = block(x)
        if given.tensor is not None:
            raise Slip("This computes with pointers. Load what they point to first.")
        return Block(given.shape, [apply(value) for value in given.values], "float32")

    return of_block


def exp(value):
    """e to the power of it; infinity where that is too large."""
    return value if value != value else math.inf if value > 709.0 else math.exp(value)


def log(value):
    """The natural logarithm; no number below zero."""
    return (
        value if value != value else math.log(value) if value > 0 else -math.inf if value == 0 else math.nan
    )


def root(value):
    """The square root; no number below zero."""
    return math.sqrt(value) if value >= 0 else math.nan


def tl_abs(x):
    """The value without its sign."""
    given = block(x)
    return Block(given.shape, [abs(value) for value in given.values], given.kind)


def tl_where(condition, yes, no):
    """Of two blocks, element by element, the one that the condition chooses."""
    mask, a, b = block(condition), block(yes), block(no)
    shape = broadcast(broadcast(a.shape, b.shape), mask.shape)
    chosen = [x if on else y for on, x, y in zip(spread(mask, shape), spread(a, shape), spread(b, shape))]
    return Block(shape, chosen, a.kind if a.kind not in WHOLES else b.kind, a.tensor)


def tl_maximum(x, y):
    """The larger of two, element by element."""
    return together("max", x, y)


def tl_minimum(x, y):
    """The smaller of two, element by element."""
    return together("min", x, y)


def reduced(x, axis, join, name):
    """A block with one dimension less."""
    given = block(x)
    if given.shape == ():
        raise Slip(f"tl.{name} takes a block, and this is a single value.")
    if axis is None or len(given.shape) == 1:
        if axis not in (None, 0):
            raise Slip(f"tl.{name} over axis {axis}: this block has one dimension, axis 0.")
        return Block((), [join(given.values)], given.kind)
    if axis not in (0, 1):
        raise Slip(f"tl.{name} over axis {shown(axis)}: this block has the axes 0 and 1.")
    rows, columns = given.shape
    if axis == 1:
        values = [join(given.values[row * columns : (row + 1) * columns]) for row in range(rows)]
    else:
        values = [join(given.values[column::columns]) for column in range(columns)]
    return Block((rows if axis == 1 else columns,), values, given.kind)


def summed(values):
    """Their sum."""
    total = 0
    for value in values:
        total += value
    return total


def greatest(values):
    """The largest, or no number if one of them is none."""
    return math.nan if any([value != value for value in values]) else max(values)


def least(values):
    """The smallest, or no number if one of them is none."""
    return math.nan if any([value != value for value in values]) else min(values)


def tl_sum(x, axis=None, **_hints):
    """The sum along an axis."""
    return reduced(x, axis, summed, "sum")


def tl_max(x, axis=None, **_hints):
    """The largest along an axis."""
    return reduced(x, axis, greatest, "max")


def tl_min(x, axis=None, **_hints):
    """The smallest along an axis."""
    return reduced(x, axis, least, "min")


def tl_trans(x):
    """Rows for columns."""
    given = block(x)
    if len(given.shape) != 2:
        raise Slip(f"tl.trans takes a block of two dimensions, and this has shape {list(given.shape)}.")
    rows, columns = given.shape
    turned = [given.values[row * columns + column] for column in range(columns) for row in range(rows)]
    return Block((columns, rows), turned, given.kind, given.tensor)


def tl_dot(a, b, acc=None, **_hints):
    """The matrix product of two blocks, added to ``acc``."""
    one, other = block(a), block(b)
    if len(one.shape) != 2 or len(other.shape) != 2 or one.shape[1] != other.shape[0]:
        raise Slip(
            f"tl.dot multiplies [M, K] by [K, N], and here are {list(one.shape)} and {list(other.shape)}."
        )
    (rows, inner), columns = one.shape, other.shape[1]
    if min(rows, inner, columns) < LEAST_DOT:
        raise Slip(
            f"tl.dot takes blocks of at least {LEAST_DOT} each way, and here are {list(one.shape)} and {list(other.shape)}."
        )
    turned, values = [other.values[column::columns] for column in range(columns)], []
    for row in range(rows):
        left = one.values[row * inner : (row + 1) * inner]
        for right in turned:
            total = 0.0
            for place in range(inner):
                total += left[place] * right[place]
            values.append(total)
    found = Block((rows, columns), values, "float32")
    return found if acc is None else together("+", acc, found)


def cdiv(x, y):
    """A quotient rounded up."""
    if isinstance(x, Block) or isinstance(y, Block):
        return together("//", together("+", x, together("-", y, 1)), y)
    return -(-x // y)


def whole_range(*ends, **_hints):
    """range, whose ends may be values of a kernel."""
    return range(*[int(end) if isinstance(end, Block) else end for end in ends])


# -- the two modules -----------------------------------------------------------------------------------------
class Language:
    """What stands for ``triton.language``."""

    def __init__(self):
        self.constexpr, self.static_range, self.range = "constexpr", whole_range, whole_range
        for name in ("float16", "bfloat16", "float32", "int1", "int32", "int64"):
            setattr(self, name, DType(name))
        self.program_id, self.num_programs, self.arange = tl_program_id, tl_num_programs, tl_arange
        self.zeros, self.full, self.load, self.store = tl_zeros, tl_full, tl_load, tl_store
        self.atomic_add, self.where, self.maximum, self.minimum = (
            tl_atomic_add,
            tl_where,
            tl_maximum,
            tl_minimum,
        )
        self.exp, self.log, self.sqrt, self.abs = each(exp), each(log), each(root), tl_abs
        self.exp2 = each(lambda value: exp(value * math.log(2.0)))
        self.log2 = each(lambda value: log(value) / math.log(2.0))
        self.rsqrt = each(lambda value: divided(1.0, root(value)))
        self.sigmoid = each(lambda value: divided(1.0, 1.0 + exp(-value)))
        self.sum, self.max, self.min, self.dot, self.trans, self.cdiv = (
            tl_sum,
            tl_max,
            tl_min,
            tl_dot,
            tl_trans,
            cdiv,
        )

    def __getattr__(self, name):
        raise Slip(f"tl.{name} is not offered here. There are {OFFERED}.")


class Kernel:
    """A function under ``triton.jit``."""

    def __init__(self, function):
        self.function, code = function, function.__code__
        self.names = list(code.co_varnames[: code.co_argcount])
        self.marked = [name for name in self.names if function.__annotations__.get(name) == "constexpr"]

    def __call__(self, *values, **named):
        if not NOW:
            raise Slip("A kernel is launched over a grid, kernel[(programs,)](…), and not called.")
        return self.function(*values, **named)  # a function that a kernel uses

    def __getitem__(self, grid):
        """Launch it: ``kernel[grid](tensors and numbers)`` runs it once for each program of the grid."""
        sides = [*(grid if isinstance(grid, (tuple, list)) else (grid,)), 1, 1][:3]
        if sides[0] * sides[1] * sides[2] > MOST_PROGRAMS:
            raise Slip(
                f"A grid of {shown(grid)} is more programs than the {MOST_PROGRAMS} that are meant here."
            )

        def launched(*values, **named):
            given = {
                **dict(zip(self.names, values)),
                **{name: named[name] for name in named if name in self.names},
            }
            missing = [name for name in self.names if name not in given]
            if missing or len(values) > len(self.names):
                raise Slip(
                    f"The kernel is launched with {', '.join([*given])}, and takes {', '.join(self.names)}. Keep its first line."
                )
            for name in given:
                value = given[name]
                if isinstance(value, Tensor):
                    given[name] = Block((), [0], "pointer", value)
                elif name not in self.marked:
                    given[name] = block(value)
            launch = Launch(tuple(sides))
            NOW.append(launch)
            try:
                for z in range(sides[2]):
                    for y in range(sides[1]):
                        for x in range(sides[0]):
                            launch.program = (x, y, z)
                            self.function(**given)
            finally:
                NOW.pop()
            return launch

        return launched


class Triton:
    """What stands for ``triton``."""

    def __init__(self):
        self.jit, self.cdiv, self.next_power_of_2 = Kernel, cdiv, next_power_of_2


def next_power_of_2(count):
    """The least power of two that is no less."""
    power = 1
    while power < count:
        power *= 2
    return power


IMPORTS = ("import triton", "from triton", "import torch")


def chained(line):
    """Whether two comparisons follow one another without anything that joins them, as in 0 <= x < n."""
    counts, word = [0], ""
    for place in range(len(line)):
        sign = line[place]
        word = word + sign if sign.isalpha() else ""
        if sign == "#":
            return False
        if sign in "([":
            counts.append(0)
        elif sign in ")]" and len(counts) > 1:
            counts.pop()
        elif (
            sign in ",&|:="
            and line[place - 1 : place] not in ("<", ">")
            or word in ("and", "or", "if", "else")
        ):
            counts[-1] = 0
        elif sign in "<>" and line[place - 1 : place] != "-":
            counts[-1] += 1
            if counts[-1] == 2:
                return True
    return False


def given(code):
    """The reader's code without the imports of what is given here, and what is given."""
    for number_of, line in enumerate(code.split("\n"), 1):
        if chained(line):
            raise Slip("Triton takes no chained comparison: write (a <= x) & (x < b).", None, number_of)
    lines = [
        line[: len(line) - len(line.lstrip())] + "pass" if line.strip().startswith(IMPORTS) else line
        for line in code.split("\n")
    ]
    return "\n".join(lines), {"tl": Language(), "triton": Triton(), "range": whole_range}
