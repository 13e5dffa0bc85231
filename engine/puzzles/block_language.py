"""A small interpreter of Triton's language: a reader's kernel runs program by program, on arrays of a few
hundred elements, in the page's Python as in CPython. This is plain Python without a library.

A kernel is launched by a puzzle's judge (``launched``) and gets ``tl`` and ``triton`` as ``NAMES`` has them.
Each load and store is written down with its program and line. What a GPU would do silently raises a
``KernelFault`` at its line: an address outside of an array, a value that no load has filled, two programs at one
element. Types, broadcasting and rounding are Triton's. Not here: descriptors, atomics, bf16, fp64, loads of
strided views, and all that only decides how fast a kernel is.

What is done for every element goes through lists by index and calls nothing: in the page's Python a call, a pair
out of ``zip`` and a comparison of tuples take about a microsecond each, four times the arithmetic itself.
"""

import math
from typing import Any

from engine.puzzles.judging import Slip, shown

BITS = {"int1": 1, "int32": 32, "int64": 64, "float16": 16, "float32": 32}
RANKS = ("int1", "int32", "int64", "float16", "float32")  # of two types the later one is the result's
MOST_ELEMENTS = 16384  # of a block on the page


class KernelFault(Slip):
    """What is wrong with a kernel at the line that does it."""

    here = True


class DType:
    """A type of numbers, ``tl.float32`` for one."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, DType) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return "tl." + self.name


class PointerType:
    """The type of a pointer; ``element_ty`` is the type of what it points at."""

    def __init__(self, element):
        self.element_ty = element


class NamedArray:
    """An array in the GPU's memory: its name, its numbers, and by its place for each element the programs that
    have read it (``reader``, in their order), the one that has written it (``writer``), and in which line."""

    def __init__(self, name, numbers, dtype="float32", row=0):
        self.name, self.dtype, self.row = name, dtype, row or max(1, len(numbers))
        self.numbers = all_cast(numbers, dtype)
        self.reader, self.writer, self.line = {}, {}, {}

    def place(self, at):
        """An element by its name, as ``x[3]`` or ``c[1, 2]``."""
        if self.row < len(self.numbers):
            return f"{self.name}[{at // self.row}, {at % self.row}]"
        return f"{self.name}[{at}]"


class Now:
    """The launch that runs: which program it is at, and how many there are; a grid has one axis here."""

    def __init__(self):
        self.program, self.grid, self.running = 0, 1, False
        self.work = self.line = 0


NOW = Now()
SPLIT, HALF_INT32 = 2.0**29 + 1, 2**31
MOST_WORK = 3_000_000  # elements that one launch may compute


def cast(value: Any, dtype: str) -> Any:
    """A number as this type holds it; None stays what no load has filled."""
    if value is None:
        return None
    if dtype == "int1":
        return bool(value)
    if dtype in ("int32", "int64"):
        half = 1 << (BITS[dtype] - 1)
        whole_part = int(value)
        return whole_part if -half <= whole_part < half else (whole_part + half) % (2 * half) - half
    value = float(value)
    if value != value or value in (math.inf, -math.inf) or value == 0:
        return value
    if dtype == "float32" and 1e-37 < abs(value) < 1e38:
        split = value * SPLIT  # Veltkamp: what stays of a double's 53 digits are the first 24
        return split - (split - value)
    digits, least, most = (24, -125, 128) if dtype == "float32" else (11, -13, 16)
    _, exponent = math.frexp(value)
    step = max(exponent, least) - digits
    near = math.ldexp(float(round(math.ldexp(value, -step))), step)
    return near if abs(near) < math.ldexp(1.0, most) else math.copysign(math.inf, value)


def all_cast(values, dtype):
    """Numbers as this type holds them, each as ``cast`` has it."""
    if dtype != "float32":
        return [cast(each, dtype) for each in values]
    return [
        each * SPLIT - (each * SPLIT - each)
        if each is not None and (1e-37 < each < 1e38 or each == 0 or -1e38 < each < -1e-37)
        else cast(each, dtype)
        for each in values
    ]


class NumberBlock:
    """A block of numbers, or of pointers into an array (``memory``): its shape, and its elements row by row.
    ``unfilled`` is the line of a load that left lanes of it without a value."""

    def __init__(self, shape, elements, dtype, memory=None, unfilled=0):
        self.shape, self.elements, self.type_name = shape, elements, dtype
        self.memory, self.unfilled = memory, unfilled
        self.dtype = PointerType(DType(memory.dtype)) if memory else DType(dtype)
        NOW.work += len(elements)
        if len(elements) > MOST_ELEMENTS:
            raise KernelFault(
                f"This makes a block of {len(elements)} elements; the page holds {MOST_ELEMENTS}. Is the block's shape what you mean?"
            )
        if NOW.work > MOST_WORK:
            raise KernelFault("This computes more than the page can. Is there a loop that goes on and on?")

    # -- arithmetic ----------------------------------------------------------------------------------------------
    def __add__(self, other):
        return binary(self, other, "+")

    def __radd__(self, other):
        return binary(other, self, "+")

    def __sub__(self, other):
        return binary(self, other, "-")

    def __rsub__(self, other):
        return binary(other, self, "-")

    def __mul__(self, other):
        return binary(self, other, "*")

    def __rmul__(self, other):
        return binary(other, self, "*")

    def __truediv__(self, other):
        return binary(self, other, "/")

    def __rtruediv__(self, other):
        return binary(other, self, "/")

    def __floordiv__(self, other):
        return binary(self, other, "//")

    def __rfloordiv__(self, other):
        return binary(other, self, "//")

    def __mod__(self, other):
        return binary(self, other, "%")

    def __rmod__(self, other):
        return binary(other, self, "%")

    def __neg__(self):
        return binary(0, self, "-")

    def __and__(self, other):
        return binary(self, other, "&")

    def __rand__(self, other):
        return binary(other, self, "&")

    def __or__(self, other):
        return binary(self, other, "|")

    def __ror__(self, other):
        return binary(other, self, "|")

    def __invert__(self):
        if self.type_name != "int1":
            raise KernelFault(
                "~ turns a mask round, a block of True and False; this block has other numbers."
            )
        return binary(self, True, "!=")

    def __lt__(self, other):
        return binary(self, other, "<")

    def __le__(self, other):
        return binary(self, other, "<=")

    def __gt__(self, other):
        return binary(self, other, ">")

    def __ge__(self, other):
        return binary(self, other, ">=")

    def __eq__(self, other):  # pyright: ignore[reportIncompatibleMethodOverride]
        return binary(self, other, "==")

    def __ne__(self, other):  # pyright: ignore[reportIncompatibleMethodOverride]
        return binary(self, other, "!=")

    def __hash__(self):
        return id(self)

    def __pow__(self, other):
        raise KernelFault("Triton has no ** for blocks: write x * x, or tl.exp and tl.sqrt.")

    def __matmul__(self, other):
        raise KernelFault("Triton has no @: the product of two blocks is tl.dot(a, b).")

    # -- what Python would take a block for ------------------------------------------------------------------------
    def one(self, wanted):
        """The one number of this block; a KernelFault if there are several."""
        if len(self.elements) != 1 or self.memory:
            raise KernelFault(wanted)
        [value] = self.elements
        if value is None:
            raise KernelFault(f"This number was never loaded: the load of line {self.unfilled} masked it.")
        return value

    def __bool__(self):
        return bool(
            self.one(
                "A block of several numbers is neither true nor false, so Python's if, and, or and not cannot take it. For masks write & and |, each side in "
                "parentheses; to choose by element, tl.where."
            )
        )

    def __index__(self):
        value = self.one("A whole number is wanted here, and this is a block of several.")
        if not isinstance(value, int):
            raise KernelFault(f"A whole number is wanted here, and this is {value}.")
        return int(value)

    def __int__(self):
        return self.__index__()

    def __float__(self):
        raise TypeError("must be real number, not NumberBlock")  # as the page's Python has it in any case

    def __iter__(self):
        raise KernelFault(
            "Nobody goes through a block element by element: tl.sum, tl.max and arithmetic take it whole."
        )

    def __len__(self):
        raise KernelFault("A block's length is the constant that you made it with, or its shape[0].")

    def __repr__(self):
        return shown(self.elements) if not self.memory else f"pointers into {self.memory.name}"

    def __getitem__(self, key):
        """A new dimension of 1 where None stands: the only index that Triton has."""
        keys = key if isinstance(key, tuple) else (key,)
        shape, old = [], list(self.shape)
        for each in keys:
            if each is None:
                shape.append(1)
            elif isinstance(each, slice) and each == slice(None, None, None) and old:
                shape.append(old.pop(0))
            else:
                raise KernelFault(
                    "A block takes no index but [:, None] and [None, :], which make a column and a row of it. To read an array, tl.load a pointer plus offsets."
                )
        if old:
            raise KernelFault(f"This block has {len(self.shape)} dimensions; name each of them with a colon.")
        return self.shaped(tuple(shape))

    def __setitem__(self, key, value):
        raise KernelFault("No element of a block can be set: compute a new block, with tl.where by element.")

    def shaped(self, shape):
        """The same elements in another shape."""
        return NumberBlock(shape, self.elements, self.type_name, self.memory, self.unfilled)

    def to(self, dtype):
        """The block with its numbers as another type."""
        name = type_named(dtype)
        if self.memory:
            raise KernelFault("A pointer stays a pointer: convert the number that is loaded from it.")
        return NumberBlock(self.shape, all_cast(self.elements, name), name, None, self.unfilled)


def type_named(dtype):
    """The name of a type that was given as ``tl.float32``."""
    if not isinstance(dtype, DType):
        raise KernelFault(f"A type is wanted here, tl.float32 for one, and this is {shown(dtype)}.")
    return dtype.name


def block_of(value):
    """A block: itself, or a number as a block without dimensions."""
    if isinstance(value, NumberBlock):
        return value
    if isinstance(value, bool):
        return NumberBlock((), [value], "int1")
    if isinstance(value, int):
        return NumberBlock((), [value], "int32" if -(2**31) <= value < 2**31 else "int64")
    if isinstance(value, float):
        return NumberBlock((), [cast(value, "float32")], "float32")
    raise KernelFault(f"Triton computes with blocks and numbers, and this is {shown(value)}.")


def common_shape(one, other):
    """The shape of two blocks together: from the last dimension on, lengths are equal or 1."""
    if one == other:
        return one
    longest = max(len(one), len(other))
    left, right = (1,) * (longest - len(one)) + one, (1,) * (longest - len(other)) + other
    shape = []
    for a, b in zip(left, right):
        if a != b and a != 1 and b != 1:
            raise KernelFault(
                f"Blocks of {by(one)} and of {by(other)} do not fit: each dimension must have one length, or be 1. [:, None] makes a column of a block, [None, :] a row."
            )
        shape.append(b if a == 1 else a)
    return tuple(shape)


def by(shape):
    """A shape in words."""
    return " × ".join([str(each) for each in shape]) if shape else "one number"


def spread(block, shape):
    """The elements of a block, repeated to fill a shape."""
    if block.shape == shape:
        return block.elements
    if len(block.elements) == 1:
        return block.elements * size(shape)
    own, elements, inner = (1,) * (len(shape) - len(block.shape)) + block.shape, block.elements, 1
    for axis in range(len(shape) - 1, -1, -1):
        if own[axis] != shape[axis]:  # of length 1: what lies inside of it, again and again
            starts = range(0, len(elements), inner)
            elements = [each for at in starts for each in elements[at : at + inner] * shape[axis]]
        inner *= shape[axis]
    return elements


def size(shape):
    """How many elements a shape has."""
    count = 1
    for each in shape:
        count *= each
    return count


def kind_of(one, other, left, right):
    """The type of what two blocks give; a plain Python number takes the block's type where that can hold it."""
    if isinstance(one, NumberBlock) != isinstance(other, NumberBlock):
        block, number = (left, other) if isinstance(one, NumberBlock) else (right, one)
        floats = block.type_name in ("float16", "float32")
        if not block.memory and (floats or (isinstance(number, int) and block.type_name != "int1")):
            return block.type_name
    return RANKS[max(RANKS.index(left.type_name), RANKS.index(right.type_name))]


# An operator -> what it gives for two lists, element by element.
COMPARED = {
    "<": lambda a, b: [a[at] < b[at] for at in range(len(a))],
    "<=": lambda a, b: [a[at] <= b[at] for at in range(len(a))],
    ">": lambda a, b: [a[at] > b[at] for at in range(len(a))],
    ">=": lambda a, b: [a[at] >= b[at] for at in range(len(a))],
    "==": lambda a, b: [a[at] == b[at] for at in range(len(a))],
    "!=": lambda a, b: [a[at] != b[at] for at in range(len(a))],
}


def quotient(a, b):
    """a / b of floating point: inf and nan where b is 0."""
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def cut(a, b):
    """a // b of whole numbers, towards zero, as a GPU divides."""
    if b == 0:
        raise KernelFault("This divides by zero.")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


COMPUTED = {
    "+": lambda a, b: [a[at] + b[at] for at in range(len(a))],
    "-": lambda a, b: [a[at] - b[at] for at in range(len(a))],
    "*": lambda a, b: [a[at] * b[at] for at in range(len(a))],
    "/": lambda a, b: [quotient(a[at], b[at]) for at in range(len(a))],
    "//": lambda a, b: [cut(a[at], b[at]) for at in range(len(a))],
    "%": lambda a, b: [a[at] - b[at] * cut(a[at], b[at]) for at in range(len(a))],
    "&": lambda a, b: [a[at] & b[at] for at in range(len(a))],
    "|": lambda a, b: [a[at] | b[at] for at in range(len(a))],
}


def binary(one, other, sign):
    """What an operator gives for two blocks, or a block and a number."""
    left, right = block_of(one), block_of(other)
    if left.memory or right.memory:
        return moved(left, right, sign)
    shape, kind = common_shape(left.shape, right.shape), kind_of(one, other, left, right)
    if sign in ("//", "%", "&", "|") and kind in ("float16", "float32"):
        raise KernelFault(f"{sign} is for whole numbers and masks, and one of these is {kind}.")
    if sign == "/" and kind not in ("float16", "float32"):
        kind = "float32"
    if kind == "int1" and sign in ("+", "-", "*", "//", "%"):
        kind = "int32"
    compare, compute = sign in COMPARED, COMPARED.get(sign) or COMPUTED[sign]
    result = "int1" if compare else kind
    unfilled = left.unfilled or right.unfilled
    elements = paired(
        spread(as_kind(left, kind), shape), spread(as_kind(right, kind), shape), compute, unfilled
    )
    return NumberBlock(shape, elements if compare else rounded(elements, result), result, None, unfilled)


def as_kind(block, kind):
    """A block with its numbers as another type."""
    if block.type_name == kind:
        return block
    return NumberBlock(block.shape, all_cast(block.elements, kind), kind, None, block.unfilled)


def rounded(elements, kind):
    """What arithmetic in this type has given, as the type holds it."""
    if kind == "int32":
        return [
            each if each is None or -HALF_INT32 <= each < HALF_INT32 else cast(each, kind)
            for each in elements
        ]
    return elements if kind == "int1" else all_cast(elements, kind)


def paired(left, right, compute, unfilled):
    """Compute element by element; without a value where one side has none."""
    if not unfilled:
        return compute(left, right)
    known = [at for at in range(len(left)) if left[at] is not None and right[at] is not None]
    results, found = [None] * len(left), compute([left[at] for at in known], [right[at] for at in known])
    for rank in range(len(known)):
        results[known[rank]] = found[rank]
    return results


def moved(left, right, sign):
    """Pointers moved by offsets, in elements."""
    if right.memory and left.memory:
        raise KernelFault(
            "Two pointers cannot be combined. Load what they point at, with tl.load, and compute with that."
        )
    pointer, offset = (left, right) if left.memory else (right, left)
    if sign not in ("+", "-") or (sign == "-" and right.memory):
        raise KernelFault(
            f"A pointer into {pointer.memory.name} is an address, not its numbers: {sign} is not for it. Load what it points at, with tl.load."
        )
    if offset.type_name not in ("int32", "int64"):
        raise KernelFault(
            f"A pointer moves by whole numbers, and these are {offset.type_name}. Is // meant instead of /?"
        )
    shape = common_shape(left.shape, right.shape)
    unfilled = left.unfilled or right.unfilled
    elements = paired(spread(pointer, shape), spread(offset, shape), COMPUTED[sign], unfilled)
    return NumberBlock(shape, elements, pointer.type_name, pointer.memory, unfilled)


# -- memory --------------------------------------------------------------------------------------------------
def lanes(places):
    """Numbers in words: 3, or 3 to 7."""
    return f"{places[0]}" if len(places) == 1 else f"{places[0]} to {places[-1]}"


def addressed(pointer, mask, does):
    """The memory and the elements that a load or store reaches: for each lane its element, or None where it
    is masked. Elements beyond the array are a fault, and those beside them that exist count as read."""
    if not isinstance(pointer, NumberBlock) or not pointer.memory:
        raise KernelFault(
            f"tl.{does} needs pointers: the array's own, plus offsets. This is {shown(pointer)}."
        )
    on = [True] * len(pointer.elements)
    if mask is not None:
        masks = block_of(mask)
        if masks.type_name != "int1":
            raise KernelFault(
                f"A mask is a block of True and False, as offsets < n gives, and this is one of {masks.type_name}."
            )
        fits(masks, pointer, "mask")
        on = spread(masks, pointer.shape)
    memory, reached, there = pointer.memory, pointer.elements, len(pointer.memory.numbers)
    if None in on or (pointer.unfilled and [at for at in range(len(on)) if on[at] and reached[at] is None]):
        raise KernelFault(
            f"Where this {does}s depends on what was never loaded: the load of line {pointer.unfilled} has masked it."
        )
    found = [reached[at] if on[at] else None for at in range(len(on))]
    outside = [at for at in found if at is not None and not 0 <= at < there]
    if outside:
        for at in found:
            if at is not None and 0 <= at < there:
                read_by(memory, at, NOW.program)
        first, last = outside[0], outside[-1]
        where = f"element {first}" if len(outside) == 1 else f"elements {first} to {last}"
        why = (
            "No mask stops these lanes: give it one, as mask=offsets < n."
            if mask is None
            else "The mask lets these lanes through."
        )
        raise KernelFault(
            f"Program {NOW.program} {does}s {where} of {memory.name}, which has {len(memory.numbers)}. A GPU would {'read' if does == 'load' else 'overwrite'} somebody "
            f"else's memory. {why}",
            at_fault(memory, outside),
        )
    return memory, found


def fits(block, pointer, name):
    """Refuse a block that is larger than the pointers beside it."""
    if common_shape(block.shape, pointer.shape) != pointer.shape:
        raise KernelFault(
            f"The {name} is a block of {by(block.shape)}, and the pointers are {by(pointer.shape)}: one pointer for each element is needed."
        )


def read_by(memory, at, program):
    """Write down that a program has read an element. Programs run one after the other, so it is new where the
    last reader is another."""
    readers = memory.reader.setdefault(at, [])
    if not readers or readers[-1] != program:
        readers.append(program)


def at_fault(memory, places):
    """What a judge draws of a fault: which array, and which of its elements are wrong."""
    return {"fault": (memory, places)}


def loaded(pointer, mask=None, other=None):
    """tl.load: the numbers that pointers point at; ``other`` where the mask is off, or else no value."""
    memory, found = addressed(pointer, mask, "load")
    line, program, numbers, writer = NOW.line, NOW.program, memory.numbers, memory.writer
    filling = [None] * len(found)
    if other is not None:
        block = block_of(other)
        fits(block, pointer, "other")
        filling = all_cast(spread(block, pointer.shape), memory.dtype)
    for at in found:
        if at is None:
            continue
        if at in writer and writer[at] != program:
            raise KernelFault(
                f"Program {program} loads {memory.place(at)}, which program {writer[at]} stores in line {memory.line[at]}. Programs run at the same time, so which comes "
                "first is left to chance: this is a race.",
                at_fault(memory, [at]),
            )
        read_by(memory, at, program)
    elements = [filling[lane] if found[lane] is None else numbers[found[lane]] for lane in range(len(found))]
    return NumberBlock(
        pointer.shape, elements, memory.dtype, None, line if other is None and None in found else 0
    )


def stored(pointer, value, mask=None):
    """tl.store: put numbers where pointers point, except where the mask is off."""
    memory, found = addressed(pointer, mask, "store")
    block = block_of(value)
    if block.memory:
        raise KernelFault("This stores pointers. Store numbers: tl.load what they point at.")
    fits(block, pointer, "value")
    line, program, writer = NOW.line, NOW.program, memory.writer
    values, mine = all_cast(spread(block, pointer.shape), memory.dtype), {}
    for lane in range(len(found)):
        at, number = found[lane], values[lane]
        if at is None:
            continue
        if number is None:
            raise KernelFault(
                f"{memory.place(at)} would be a value that was never loaded: line {block.unfilled} masks it and gives no other=. There a GPU has whatever it happens to have.",
                at_fault(memory, [at]),
            )
        others = [each for each in memory.reader.get(at, ()) if each != program]
        if others or (at in writer and writer[at] != program):
            by_store = at in writer and writer[at] != program
            who = writer[at] if by_store else others[0]
            does = f"stores to in line {memory.line[at]}" if by_store else "loads"
            raise KernelFault(
                f"Program {program} stores to {memory.place(at)}, which program {who} {does}, too. Programs run at the same time, so which comes last is left to chance: "
                "this is a race.",
                at_fault(memory, [at]),
            )
        if at in mine and not mine[at] == number:
            raise KernelFault(
                f"Two lanes of program {program} store different numbers to {memory.place(at)}: which of them stays is left to chance.",
                at_fault(memory, [at]),
            )
        mine[at] = number
    for at in mine:
        memory.numbers[at], memory.writer[at], memory.line[at] = mine[at], program, line


# -- functions of tl -----------------------------------------------------------------------------------------
def each_of(block, compute, name, floats=True):
    """Compute of each element."""
    block = block_of(block)
    if block.memory:
        raise KernelFault(f"tl.{name} takes numbers, and these are pointers: tl.load them first.")
    if floats and block.type_name != "float32":
        raise KernelFault(
            f"tl.{name} takes float32, and this is {block.type_name}: convert it with .to(tl.float32)."
        )
    elements = [None if each is None else compute(each) for each in block.elements]
    return NumberBlock(
        block.shape, all_cast(elements, block.type_name), block.type_name, None, block.unfilled
    )


def exponential(a):
    """exp without an error where the result is too large."""
    return math.exp(a) if a < 709 else (a if a != a else math.inf)


def reduced(block, axis, start, compute, name, keep_dims=False):
    """A block with one dimension less, or one number: all elements along an axis taken together. With
    ``keep_dims`` the dimension stays, and is 1."""
    block = block_of(block)
    if block.memory:
        raise KernelFault(f"tl.{name} takes numbers, and these are pointers: tl.load them first.")
    kind = "int32" if block.type_name == "int1" else block.type_name
    rank = len(block.shape)
    if rank == 0:
        raise KernelFault(f"tl.{name} takes a block, and this is one number.")
    if axis is None:
        outer, length, inner, shape = 1, len(block.elements), 1, (1,) * rank if keep_dims else ()
    else:
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise KernelFault(
                f"axis is {shown(axis)}, and this block of {by(block.shape)} has "
                + ("axis 0 alone." if rank == 1 else f"axes 0 to {rank - 1}.")
            )
        axis %= rank
        outer, inner = size(block.shape[:axis]), size(block.shape[axis + 1 :])
        left = (1,) if keep_dims else ()
        length, shape = block.shape[axis], block.shape[:axis] + left + block.shape[axis + 1 :]
    results = []
    for far in range(outer):
        for near in range(inner):
            strip = block.elements[far * length * inner + near : (far + 1) * length * inner : inner]
            if block.unfilled and None in strip:
                raise KernelFault(
                    f"tl.{name} takes in {strip.count(None)} of {length} lanes that no load has filled: line {block.unfilled} masks them and gives no other=. For a sum that "
                    'is 0.0, for a maximum -float("inf").'
                )
            total = start
            for each in strip:
                total = compute(total, each)
            results.append(total)
    return NumberBlock(shape, all_cast(results, kind), kind)


def product_of(a, b, acc):
    """tl.dot: the product of two blocks; its sum is float32."""
    for block in (a, b):
        if not isinstance(block, NumberBlock) or block.memory or len(block.shape) != 2:
            raise KernelFault("tl.dot takes two blocks of two dimensions, loaded before.")
    if a.type_name != b.type_name or a.type_name not in ("float16", "float32"):
        raise KernelFault(
            f"tl.dot takes two blocks of one type, and these are {a.type_name} and {b.type_name}: .to(...) converts."
        )
    rows, inner, columns = a.shape[0], a.shape[1], b.shape[1]
    if b.shape[0] != inner:
        raise KernelFault(
            f"tl.dot multiplies blocks of m × k and k × n, and these are {by(a.shape)} and {by(b.shape)}. tl.trans turns one round."
        )
    least = 16 if a.type_name == "float16" else 8
    if inner < least:
        raise KernelFault(f"tl.dot needs at least {least} along k, and there are {inner}.")
    if acc is not None and (block_of(acc).shape != (rows, columns) or block_of(acc).type_name != "float32"):
        raise KernelFault(f"The accumulator must be a block of {rows} × {columns} in float32.")
    sums = block_of(acc).elements if acc is not None else [0.0] * (rows * columns)
    NOW.work += rows * inner * columns
    strips = [b.elements[column::columns] for column in range(columns)]
    unfilled = a.unfilled or b.unfilled or (block_of(acc).unfilled if acc is not None else 0)
    gone = [unfilled and None in strip for strip in strips]
    elements = []
    for row in range(rows):
        mine = a.elements[row * inner : (row + 1) * inner]
        lost = unfilled and None in mine
        for column in range(columns):
            start, other = sums[row * columns + column], strips[column]
            if lost or gone[column] or start is None:
                elements.append(None)
            else:
                elements.append(start + sum([mine[at] * other[at] for at in range(inner)]))
    return NumberBlock((rows, columns), all_cast(elements, "float32"), "float32", None, unfilled)


def refuse(others, name, takes):
    """A KernelFault where a function of tl was given an argument that it does not have."""
    for each in others:
        hint = {"keepdims": "keep_dims", "keepdim": "keep_dims", "dim": "axis", "dtype": ".to(...)"}.get(
            each, ""
        )
        instead = f" What is meant is {hint}." if hint else ""
        raise KernelFault(f"tl.{name} has no argument {each}; it takes {takes}.{instead}")


def whole_constant(value, name):
    """A whole number that is known before the kernel runs."""
    if isinstance(value, NumberBlock):
        raise KernelFault(
            f"{name} must be known when the kernel is compiled: a number, or an argument marked tl.constexpr."
        )
    if not isinstance(value, int) or isinstance(value, bool):
        raise KernelFault(f"{name} must be a whole number, and is {shown(value)}.")
    return value


def shape_of(shape):
    """A shape of powers of two, as a tuple."""
    lengths = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    for length in lengths:
        if not is_power(whole_constant(length, "A block's length")):
            raise KernelFault(f"A block's length is a power of two, and {length} is none.")
    return tuple(lengths)


def is_power(count):
    """Whether this is a power of two."""
    return count > 0 and count & (count - 1) == 0


class ConstExpr:
    """Marks an argument that is known when a kernel is compiled."""


class Language:
    """What the page has of ``triton.language``."""

    def __init__(self):
        self.constexpr = ConstExpr
        self.float32, self.float16 = DType("float32"), DType("float16")
        self.int32, self.int64, self.int1 = DType("int32"), DType("int64"), DType("int1")

    def __getattr__(self, name):
        raise KernelFault(
            f"The page's Triton has no tl.{name}. It has program_id, num_programs, arange, zeros, full, load, store, dot, trans, sum, max, min, exp, exp2, log, sqrt, abs, erf, "
            "maximum, minimum, where, cdiv, range, static_range, constexpr, float16, float32, int1, int32 and int64."
        )

    def on(self, line):
        """The same, for a call in a line of the reader's code (``judging.with_lines`` puts it in)."""
        NOW.line = line
        return self

    def program_id(self, axis=None):
        """The number of the running program along an axis of the grid."""
        return NumberBlock((), [0 if axis_of(axis) else NOW.program], "int32")

    def num_programs(self, axis=None):
        """How many programs the grid has along an axis."""
        return NumberBlock((), [1 if axis_of(axis) else NOW.grid], "int32")

    def arange(self, start, end=None):
        """Whole numbers from start up to end, as many as a power of two."""
        if end is None:
            raise KernelFault("tl.arange takes where to start and where to end: tl.arange(0, BLOCK).")
        first, last = whole_constant(start, "arange's start"), whole_constant(end, "arange's end")
        if not is_power(last - first):
            raise KernelFault(
                f"arange({first}, {last}) has {last - first} numbers, and a block's length is a power of two. Take the next one, and mask what is too much."
            )
        return NumberBlock((last - first,), list(range(first, last)), "int32")

    def zeros(self, shape, dtype):
        """A block of zeros."""
        return self.full(shape, 0, dtype)

    def full(self, shape, value, dtype):
        """A block with one number everywhere."""
        lengths, name = shape_of(shape), type_named(dtype)
        number = block_of(value).one("tl.full fills a block with one number.")
        return NumberBlock(lengths, [cast(number, name)] * size(lengths), name)

    def load(self, pointer, mask=None, other=None, **others):
        """The numbers at a block of pointers."""
        refuse(others, "load", "a block of pointers, mask and other")
        return loaded(pointer, mask, other)

    def store(self, pointer, value=None, mask=None, **others):
        """Put numbers at a block of pointers."""
        refuse(others, "store", "a block of pointers, the numbers to put there, and mask")
        if value is None:
            raise KernelFault("tl.store takes a block of pointers and the numbers to put there.")
        stored(pointer, value, mask)

    def dot(self, input, other, acc=None, input_precision=None):
        """The product of two blocks, added to acc in float32."""
        return product_of(input, other, acc)

    def trans(self, block):
        """A block of two dimensions turned round."""
        if len(block.shape) != 2:
            raise KernelFault("tl.trans turns a block of two dimensions round.")
        rows, columns = block.shape
        turned = [block.elements[row * columns + column] for column in range(columns) for row in range(rows)]
        return NumberBlock((columns, rows), turned, block.type_name, block.memory, block.unfilled)

    def sum(self, input, axis=None, keep_dims=False, **others):
        """The sum along an axis."""
        refuse(others, "sum", "input, axis and keep_dims")
        return reduced(input, axis, 0, lambda a, b: a + b, "sum", keep_dims)

    def max(self, input, axis=None, keep_dims=False, **others):
        """The largest number along an axis."""
        refuse(others, "max", "input, axis and keep_dims")
        return reduced(input, axis, -math.inf, lambda a, b: b if b > a else a, "max", keep_dims)

    def min(self, input, axis=None, keep_dims=False, **others):
        """The smallest number along an axis."""
        refuse(others, "min", "input, axis and keep_dims")
        return reduced(input, axis, math.inf, lambda a, b: b if b < a else a, "min", keep_dims)

    def exp(self, x):
        """The exponential of each element."""
        return each_of(x, exponential, "exp")

    def exp2(self, x):
        """Two to the power of each element."""
        return each_of(x, lambda a: exponential(a * math.log(2)), "exp2")

    def log(self, x):
        """The natural logarithm of each element."""
        return each_of(x, lambda a: math.log(a) if a > 0 else (-math.inf if a == 0 else math.nan), "log")

    def sqrt(self, x):
        """The square root of each element."""
        return each_of(x, lambda a: math.sqrt(a) if a >= 0 else math.nan, "sqrt")

    def erf(self, x):
        """The error function of each element."""
        return each_of(x, math.erf, "erf")

    def abs(self, x):
        """Each element without its sign."""
        return each_of(x, abs, "abs", False)

    def maximum(self, x, y):
        """The larger of two blocks, element by element."""
        return self.where(binary(x, y, ">"), x, y)

    def minimum(self, x, y):
        """The smaller of two blocks, element by element."""
        return self.where(binary(x, y, "<"), x, y)

    def where(self, condition, x, y):
        """x where the condition is true, y elsewhere."""
        chosen, yes, no = block_of(condition), block_of(x), block_of(y)
        shape = common_shape(chosen.shape, common_shape(yes.shape, no.shape))
        kind = kind_of(x, y, yes, no)
        choice, on, off = spread(chosen, shape), spread(yes, shape), spread(no, shape)
        elements = [
            None if choice[at] is None else (on[at] if choice[at] else off[at]) for at in range(len(choice))
        ]
        unfilled = chosen.unfilled or yes.unfilled or no.unfilled
        return NumberBlock(shape, all_cast(elements, kind), kind, None, unfilled)

    def cdiv(self, x, div):
        """x / div, rounded up."""
        return (x + div - 1) // div

    def range(self, *bounds, num_stages=None, flatten=None, warp_specialize=None):
        """Python's range; how its steps overlap is the compiler's matter."""
        return range(*[int(each) for each in bounds])

    def static_range(self, *bounds):
        """A range whose bounds are known when the kernel is compiled."""
        return range(*[whole_constant(each, "static_range's bounds") for each in bounds])


def axis_of(axis):
    """The number of a grid's axis."""
    if axis is None:
        raise KernelFault(
            "A grid has up to three axes, and this must say which is meant: 0, for a grid of one."
        )
    if axis not in (0, 1, 2):
        raise KernelFault(f"A grid has axes 0, 1 and 2, and this asks for {shown(axis)}.")
    return axis


class JitFunction:
    """A function under ``@triton.jit``."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *values, **named):
        """Call it from another kernel."""
        if not NOW.running:
            raise KernelFault(
                "A kernel is not called like a function: it is launched on a grid, and here the page launches it."
            )
        return self.function(*values, **named)

    def __getitem__(self, grid):
        raise KernelFault("The page launches this kernel itself: take the launch out, and keep the kernel.")


class Triton:
    """What the page has of ``triton``."""

    def __init__(self):
        self.language = TL

    def jit(self, function):
        """Make a kernel of a function."""
        return JitFunction(function)

    def cdiv(self, x, y):
        """x / div, rounded up."""
        return -(-x // y)

    def next_power_of_2(self, n):
        """The next power of two, or n itself if it is one."""
        power = 1
        while power < n:
            power *= 2
        return power


TL = Language()


def smaller(*values):
    """min, which in a kernel is tl.minimum where a block is among two values."""
    return TL.minimum(*values) if len(values) == 2 and has_block(values) else min(*values)


def larger(*values):
    """max, which in a kernel is tl.maximum where a block is among two values."""
    return TL.maximum(*values) if len(values) == 2 and has_block(values) else max(*values)


def has_block(values):
    """Whether a block is among these."""
    return any(isinstance(each, NumberBlock) for each in values)


NAMES = {"tl": TL, "triton": Triton(), "min": smaller, "max": larger}


def argument_names(function):
    """The names of a function's arguments; None where Python does not tell, or where it takes any number."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & 12 or function.__defaults__:
        return None
    return list(code.co_varnames[: code.co_argcount])


def launched(kernel, programs, arguments, constants):
    """Run a kernel's programs one after the other. ``arguments`` are arrays and numbers in order, and
    ``constants`` what is known when it is compiled. A Slip where this is no kernel."""
    if not isinstance(kernel, JitFunction):
        raise Slip("This is a plain function, which no GPU can run: write @triton.jit on the line above def.")
    marks = getattr(kernel.function, "__annotations__", {})
    for name in constants:
        if marks.get(name) is not ConstExpr:
            raise Slip(f"{name} is a constant of the compilation: mark it as {name}: tl.constexpr.")
    wanted, own = len(arguments) + len(constants), argument_names(kernel.function)
    if own is not None and len(own) != wanted:
        raise Slip(
            f"The launch passes {wanted} arguments: {len(arguments)} in order, and {', '.join(constants)} by name. This kernel takes {len(own)}: {', '.join(own)}."
        )
    NOW.grid, NOW.running, NOW.work = programs, True, 0
    try:
        for number in range(programs):
            NOW.program = number
            given = [
                NumberBlock((), [0], each.dtype, each) if isinstance(each, NamedArray) else block_of(each)
                for each in arguments
            ]
            if kernel.function(*given, **constants) is not None:
                raise Slip("A kernel returns nothing: it stores its result, with tl.store.")
    finally:
        NOW.running = False
