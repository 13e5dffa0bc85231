"""What Triton's compiler makes of lesson 17's matmul for two GPUs: shared memory, registers and spills, tile
by tile.

This needs no GPU, because Triton includes NVIDIA's assembler.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

RUNS_ON = ("triton",)
CHIPS = {"a100-80": 80, "h100-sxm": 90}  # compute capability, as a whole number
TILES = [  # BLOCK_M, BLOCK_N, BLOCK_K, stages, warps
    (32, 32, 32, 2, 4),
    (64, 64, 32, 3, 4),
    (64, 128, 64, 4, 4),
    (64, 256, 32, 4, 4),
    (128, 128, 32, 4, 4),
    (128, 128, 64, 3, 4),
    (128, 128, 64, 3, 8),
    (128, 256, 64, 3, 8),
    (128, 256, 64, 4, 8),
    (256, 128, 64, 3, 8),
    (256, 256, 64, 2, 8),
]
POINTERS, NUMBERS = (
    ("a_ptr", "b_ptr", "c_ptr", "bias_ptr"),
    ("m", "n", "k", "stride_a", "stride_b", "stride_c"),
)


def compiled(block_m, block_n, block_k, stages, warps, capability):
    """The kernel for one GPU, with pointers and sizes that are multiples of 16, as in a real call."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from kernels.matmul import matmul_kernel

    constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP": 8, "BIAS_GELU": False}
    types = (
        dict.fromkeys(POINTERS, "*bf16")
        | dict.fromkeys(NUMBERS, "i32")
        | dict.fromkeys(constants, "constexpr")
    )
    divisible = {(place,): [["tt.divisibility", 16]] for place in range(len(POINTERS) + len(NUMBERS))}
    source = ASTSource(fn=matmul_kernel, signature=types, constexprs=constants, attrs=divisible)
    return triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_stages": stages, "num_warps": warps}
    )


def needs(kernel) -> dict:
    """The requirements that NVIDIA's own tool reads from the binary; registers that do not fit are spilled to
    a stack."""
    from triton.backends import nvidia

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(kernel.asm["cubin"])
        tool = Path(nvidia.__file__).parent / "bin" / "cuobjdump"
        said = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    return {
        "smem_bytes": kernel.metadata.shared,
        "registers": int(re.search(r"REG:(\d+)", said)[1]),
        "spilled_bytes": int(re.search(r"STACK:(\d+)", said)[1]),
    }


def record() -> dict:
    """For each GPU the tiles, each with what it needs."""
    names = ("block_m", "block_n", "block_k", "stages", "warps")
    return {
        "kernel": "kernels/matmul.py, bf16",
        "tiles": {
            gpu: [dict(zip(names, tile)) | needs(compiled(*tile, capability)) for tile in TILES]
            for gpu, capability in CHIPS.items()
        },
    }
