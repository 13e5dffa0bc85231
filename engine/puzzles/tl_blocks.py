"""Triton's language on small arrays: what a kernel's blocks are, and what its loads and stores touch. Plain
Python without a library, because a page runs it (``judging``).

A kernel is run program by program, as Triton's own interpreter runs it. Numbers are double precision here. What
a GPU would do in silence is said: an address outside of a tensor, two programs that store to one
element, a masked lane whose value nobody gave.
"""

import math

from engine.puzzles.judging import Slip, shown

LARGEST = 1 << 14  # elements of a block: more than a puzzle can need
WHOLES = ("int1", "int32", "int64")
LEAST_DOT = 16  # Triton's tensor cores take no smaller side
OFFERED = (
    "program_id, num_programs, arange, zeros, full, load, store, atomic_add, where, maximum, minimum, exp, exp2, "
    "log, log2, sqrt, rsqrt, abs, sigmoid, sum, max, min, dot, trans, cdiv, static_range, constexpr, float32, "
    "float16, bfloat16, int32, int64, int1"
)


class DType:
    """The type of a block's elements."""

    def __init__(self, name, element_ty=None):
        self.name, self.element_ty = name, element_ty

    def __eq__(self, other):
        return isinstance(other, DType) and self.name == other.name

    def __repr__(self):
        return "tl." + self.name


class Tensor:
    """A tensor in the GPU's memory, flat, with the name that messages give it."""

    def __init__(self, name, values, dtype="float32"):
        self.name, self.values, self.dtype = name, list(values), dtype


class Block:
    """A value of a kernel: a scalar, or a block of elements. Pointers are a block of places in a tensor."""

    def __init__(self, shape, values, dtype, tensor=None):
        self.shape, self.values, self.kind, self.tensor = tuple(shape), values, dtype, tensor

    @property
    def dtype(self):
        """The type, of which a pointer's has the type that it points to."""
        if self.tensor is not None:
            return DType("pointer", DType(self.tensor.dtype))
        return DType(self.kind)

    def to(self, dtype):
        """The block in another type."""
        if dtype.name in WHOLES:
            return Block(self.shape, [int(value) for value in self.values], dtype.name)
        return Block(self.shape, [float(value) for value in self.values], dtype.name)

    def __getitem__(self, place):
        places = place if isinstance(place, tuple) else (place,)
        shape, left = [], list(self.shape)
        for each in places:
            if each is None:
                shape.append(1)
            elif isinstance(each, slice) and each.start is None and each.stop is None and left:
                shape.append(left.pop(0))
            else:
                raise Slip(
                    f"A block of shape {list(self.shape)} was indexed with [{shown(each)}]. There are no single "
                    "elements to take: write [:, None] or [None, :] to add a dimension, and load what you need."
                )
        return Block(shape + left, self.values, self.kind, self.tensor)

    def __setitem__(self, place, value):
        raise Slip("A block cannot be changed in place. Make a new one, for example with tl.where.")

    def __iter__(self):
        raise Slip(
            "A block cannot be gone through element by element: every operation takes all of it at once."
        )

    def __len__(self):
        raise Slip("A block has a shape and no len.")

    def one(self, why):
        """The only value; a Slip if there are several."""
        if self.shape != ():
            raise Slip(f"{why}, and this is a block of shape {list(self.shape)}.")
        return self.values[0]

    def __bool__(self):
        return bool(
            self.one(
                "Python's if, and, or and chained comparisons need a single value (take & and | and tl.where)"
            )
        )

    def __index__(self):
        return int(self.one("A single whole number is needed here"))

    def __int__(self):
        return int(self.one("int() needs a single value"))

    def __float__(self):
        return float(self.one("float() needs a single value (of a block, take .to(tl.float32))"))

    def __add__(self, other):
        return together("+", self, other)

    def __radd__(self, other):
        return together("+", other, self)

    def __sub__(self, other):
        return together("-", self, other)

    def __rsub__(self, other):
        return together("-", other, self)

    def __mul__(self, other):
        return together("*", self, other)

    def __rmul__(self, other):
        return together("*", other, self)

    def __truediv__(self, other):
        return together("/", self, other)

    def __rtruediv__(self, other):
        return together("/", other, self)

    def __floordiv__(self, other):
        return together("//", self, other)

    def __rfloordiv__(self, other):
        return together("//", other, self)

    def __mod__(self, other):
        return together("%", self, other)

    def __rmod__(self, other):
        return together("%", other, self)

    def __and__(self, other):
        return together("&", self, other)

    def __rand__(self, other):
        return together("&", other, self)

    def __or__(self, other):
        return together("|", self, other)

    def __ror__(self, other):
        return together("|", other, self)

    def __lt__(self, other):
        return together("<", self, other)

    def __le__(self, other):
        return together("<=", self, other)

    def __gt__(self, other):
        return together(">", self, other)

    def __ge__(self, other):
        return together(">=", self, other)

    def __eq__(self, other):
        return together("==", self, other)

    def __ne__(self, other):
        return together("!=", self, other)

    def __neg__(self):
        return together("-", 0, self)

    def __invert__(self):
        if self.kind != "int1":
            raise Slip("~ turns a mask over, and this is no mask: it has no true and false.")
        return Block(self.shape, [not value for value in self.values], "int1")


# what an operator does with two elements
APPLIED = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "max": lambda a, b: a if a != a or a > b else b,
    "min": lambda a, b: a if a != a or a < b else b,
}
COMPARES = ("<", "<=", ">", ">=", "==", "!=")


def block(value):
    """A number as a block without dimensions; a block as it is."""
    if isinstance(value, Block):
        return value
    if isinstance(value, bool):
        return Block((), [value], "int1")
    if isinstance(value, int):
        return Block((), [value], "int32")
    if isinstance(value, float):
        return Block((), [value], "float32")
    raise Slip(f"A kernel computes with blocks and numbers, and here is {shown(value)}.")


def broadcast(a, b):
    """The shape that two shapes have together."""
    first = [1] * (len(b) - len(a)) + list(a)  # as numpy does it: missing dimensions are in front
    second = [1] * (len(a) - len(b)) + list(b)
    shape = []
    for one, other in zip(first, second):
        if one != other and 1 not in (one, other):
            raise Slip(
                f"A block of shape {list(a)} and one of shape {list(b)} do not fit. [:, None] makes a column of a block, "
                "and [None, :] a row."
            )
        shape.append(max(one, other))
    size = 1
    for each in shape:
        size *= each
    if size > LARGEST:
        raise Slip(f"A block of shape {shape} has more elements than the {LARGEST:,} that are meant here.")
    return tuple(shape)


def spread(one, shape):
    """The values of a block, repeated to a shape that it fits."""
    if one.shape == tuple(shape):
        return one.values
    if len(one.values) == 1:
        size = 1
        for each in shape:
            size *= each
        return one.values * size
    rows, columns = shape
    if len(one.shape) == 1 or one.shape[0] == 1:
        return one.values * rows
    return [one.values[row] for row in range(rows) for _ in range(columns)]


def together(sign, one, other):
    """What an operator makes of two blocks or numbers."""
    a, b = block(one), block(other)
    if a.tensor is not None or b.tensor is not None:
        return pointed(sign, a, b)
    shape = broadcast(a.shape, b.shape)
    first, second = spread(a, shape), spread(b, shape)
    of_whole = a.kind in WHOLES and b.kind in WHOLES
    if sign in ("&", "|"):
        if not of_whole:
            raise Slip(
                f"{sign} joins masks, and here is a block of {a.kind if a.kind not in WHOLES else b.kind}."
            )
        joined = (lambda x, y: x & y) if sign == "&" else (lambda x, y: x | y)
        kind = "int1" if a.kind == b.kind == "int1" else "int32"
        return Block(shape, [joined(x, y) for x, y in zip(first, second)], kind)
    if sign in ("//", "%"):
        if not of_whole:
            raise Slip(f"{sign} takes whole numbers, and one of these is a block of floats.")
        if 0 in second:
            raise Slip(f"{sign} divides by zero.")
        if sign == "//":  # towards zero, as C does it, where Python's own rounds down
            return Block(shape, [int(math.trunc(x / y)) for x, y in zip(first, second)], "int32")
        return Block(shape, [int(math.fmod(x, y)) for x, y in zip(first, second)], "int32")
    if sign == "/":
        return Block(shape, [divided(x, y) for x, y in zip(first, second)], "float32")
    apply = APPLIED[sign]
    if sign in COMPARES:
        return Block(shape, [apply(x, y) for x, y in zip(first, second)], "int1")
    wide = "int64" if "int64" in (a.kind, b.kind) else "int32"
    kind = wide if of_whole else next(each.kind for each in (a, b) if each.kind not in WHOLES)
    return Block(shape, [apply(x, y) for x, y in zip(first, second)], kind)


def divided(a, b):
    """A quotient of floats, with infinities and no number where IEEE has them."""
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a)
    return a / b


def pointed(sign, a, b):
    """A pointer and an offset."""
    if sign not in ("+", "-") or (b.tensor is not None and (a.tensor is not None or sign == "-")):
        raise Slip(f"Pointers are added to offsets, and {sign} is something else. Load first, then compute.")
    pointer, offset = (a, b) if a.tensor is not None else (b, a)
    if offset.kind not in WHOLES:
        raise Slip("An offset must be a whole number, and this is a block of floats.")
    shape = broadcast(pointer.shape, offset.shape)
    apply = APPLIED[sign]
    places = [apply(x, y) for x, y in zip(spread(pointer, shape), spread(offset, shape))]
    return Block(shape, places, "pointer", pointer.tensor)


def lanes(numbers):
    """A few places in words: 30, 31 … 39."""
    ends = sorted(set(numbers))
    if len(ends) == 1:
        return str(ends[0])
    if ends[-1] - ends[0] == len(ends) - 1 and len(ends) > 2:
        return f"{ends[0]} to {ends[-1]}"
    return ", ".join([str(each) for each in ends[:4]]) + (" …" if len(ends) > 4 else "")
