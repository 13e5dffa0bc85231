"""What Triton's compiler makes of lesson 17's other kernels for an H100: how long a row the softmax holds in
registers, how wide its offsets are, which instructions a descriptor's load becomes, and which loops stand
around loads, products and stores of the persistent product, with its loops flattened and without.

This needs no GPU, as in record/triton_tiles.py.
"""

from __future__ import annotations

import re

from record.triton_tiles import CHIPS, needs

RUNS_ON = ("triton",)
CAPABILITY = CHIPS["h100-sxm"]
ROWS, WARPS = (8192, 16384, 32768, 65536, 131072), (8, 32)
TILE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 8}


def compiled(kernel, pointers, numbers, constants, stages, warps):
    """A kernel for the H100, with pointers and sizes that are multiples of 16, as in a real call."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = pointers | dict.fromkeys(numbers, "i32") | dict.fromkeys(constants, "constexpr")
    divisible = {(place,): [["tt.divisibility", 16]] for place in range(len(pointers) + len(numbers))}
    source = ASTSource(fn=kernel, signature=types, constexprs=constants, attrs=divisible)
    return triton.compile(
        source, target=GPUTarget("cuda", CAPABILITY, 32), options={"num_stages": stages, "num_warps": warps}
    )


def softmax(columns, warps):
    """The compiled softmax kernel for rows of this many columns."""
    from kernels.softmax import softmax_kernel

    pointers = dict.fromkeys(("x_ptr", "y_ptr"), "*fp32")
    return compiled(softmax_kernel, pointers, ("columns", "stride"), {"BLOCK": columns}, 3, warps)


def copies(ptx: str) -> dict[str, int]:
    """How often the assembly loads and stores global memory by thread, and by descriptor."""
    return {
        "by_thread": len(re.findall(r"\b(?:cp\.async\.cg|ld\.global|st\.global)", ptx)),
        "by_descriptor": len(re.findall(r"cp\.async\.bulk\.tensor", ptx)),
    }


NAMED = {
    "scf.for": "for",
    "ttng.async_tma_copy_global_to_local": "load",
    "ttng.warp_group_dot": "product",
    "ttng.async_tma_copy_local_to_global": "store",
}


def course_of(ttgir: str) -> list[str]:
    """The loops, loads, products and stores of a kernel in the order in which Triton's own intermediate code
    has them, each with a dot before it for each loop around it."""
    found, ends, depth = [], [], 0  # of each loop that is open, the braces around it
    for line in ttgir.splitlines():
        name = next((word for op, word in NAMED.items() if re.search(rf"{re.escape(op)} ", line)), None)
        if name:
            found.append("." * len(ends) + name)
        if name == "for":
            ends.append(depth)
        depth += line.count("{") - line.count("}")
        while ends and depth <= ends[-1]:
            ends.pop()
    return found


def record() -> dict:
    """The recording, as its JSON file holds it."""
    from kernels.persistent import persistent_kernel

    pointers = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*bf16")
    persistent, flattened = (
        compiled(
            persistent_kernel,
            pointers,
            ("m", "n", "k"),
            {"PROGRAMS": 132, "FLATTEN": flatten} | TILE,
            stages=3,
            warps=8,
        )
        for flatten in (False, True)
    )
    found = [
        {"columns": columns, "warps": warps} | needs(softmax(columns, warps))
        for columns in ROWS
        for warps in WARPS
    ]
    return {
        "chip": "h100-sxm",
        "softmax": found,
        "softmax_offset_bits": 64 if "i64" in softmax(8192, 8).asm["ttir"] else 32,
        "persistent": copies(persistent.asm["ptx"])
        | needs(persistent)
        | {"course": course_of(persistent.asm["ttgir"])},
        "flattened": needs(flattened) | {"course": course_of(flattened.asm["ttgir"])},
    }
