"""Faults that beginners make in any kernel of Triton: what is wrong -> the code, made of a right one, and some
of the words that it gets."""


def of_any(solution: str) -> dict[str, tuple[str, str]]:
    """The faults in this solution."""
    head = solution[solution.index("def ") : solution.index("):\n") + 3]
    load = next(line for line in solution.splitlines() if "tl.load(" in line)
    store = next(line for line in solution.splitlines() if "tl.store(" in line)

    def with_line(line: str) -> str:
        """The kernel with a line before its store."""
        return solution.replace(store, f"    {line}\n{store}")

    block = load.split("=")[0].strip()
    return {
        "no decorator": (solution.replace("@triton.jit\n", ""), "write @triton.jit"),
        "constants that are not marked": (solution.replace(": tl.constexpr", ""), "BLOCK: tl.constexpr")
        if "DIM" not in head
        else (solution.replace("BLOCK: tl.constexpr", "BLOCK"), "BLOCK: tl.constexpr"),
        "nothing stored": (solution.replace(store, "    pass"), "No program stores"),
        "returned instead of stored": (
            solution.replace(store, f"    return {block}"),
            "returns nothing: it stores",
        ),
        "a length that is no power of two": (
            with_line("tl.arange(0, 12)"),
            "a block's length is a power of two",
        ),
        "numpy's names": (with_line("tl.softmax(x_ptr)"), "no tl.softmax"),
        "if on a block": (with_line("if tl.arange(0, 4) < 2: pass"), "neither true nor false"),
        "and for masks": (with_line("tl.arange(0, 4) < 2 and True"), "write & and |"),
        "an element of a block": (with_line("tl.arange(0, 4)[0]"), "takes no index but"),
        "a block gone through": (with_line("sum(tl.arange(0, 4))"), "goes through a block"),
        "python's exp": (
            with_line("import math; math.exp(tl.zeros((4,), tl.float32))"),
            "Python's math takes single numbers",
        ),
        "shapes that do not fit": (with_line("tl.arange(0, 4) + tl.arange(0, 8)"), "do not fit"),
        "the product sign": (
            with_line("tl.zeros((4, 4), tl.float32) @ tl.zeros((4, 4), tl.float32)"),
            "tl.dot",
        ),
        "exp of whole numbers": (with_line("tl.exp(tl.arange(0, 4))"), "takes float32"),
        "an array as a list": (with_line(f"tl.load({block})"), "needs pointers"),
        "too large a block": (with_line("tl.zeros((65536,), tl.float32)"), "holds 16384"),
        "PyTorch's keepdims": (
            with_line("tl.sum(tl.zeros((4, 4), tl.float32), axis=1, keepdims=True)"),
            "tl.sum has no argument keepdims; it takes input, axis and keep_dims",
        ),
        "a kept dimension taken for none": (
            with_line("tl.sum(tl.zeros((4, 4), tl.float32), 1, keep_dims=True)[:, None]"),
            "name each of them with a colon",
        ),
        "an axis that is not there": (
            with_line("tl.sum(tl.zeros((4,), tl.float32), axis=1)"),
            "has axis 0 alone",
        ),
        "an argument of load misspelt": (
            with_line("tl.load(x_ptr, others=0.0)" if "x_ptr" in head else "tl.load(0, others=0.0)"),
            "tl.load has no argument others",
        ),
        "arange without a start": (with_line("tl.arange(4)"), "tl.arange(0, BLOCK)"),
        "a program's number without an axis": (with_line("tl.program_id()"), "which is meant: 0"),
        "store without numbers": (with_line("tl.store(tl.arange(0, 4))"), "the numbers to put there"),
        "an argument forgotten": (
            solution.replace(head, head.replace("(", "(more, ", 1)),
            "This kernel takes",
        ),
        "an element set": (with_line(f"{block}[0] = 1"), "No element of a block can be set"),
        "called like a function": (solution + "\nkernel = triton.jit(print)\nkernel(1)\n", "it is launched"),
    }
