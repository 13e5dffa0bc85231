"""The solutions of the puzzles with kernels, as they stand, run by Triton's own interpreter on the arrays of
their puzzles: prints, as JSON, how far each result is from what the course's interpreter stored.
test_claims_triton.py starts it in a process of its own."""

import importlib.util
import json
import tempfile
from pathlib import Path

import numpy as np

from engine import puzzles
from engine.puzzles import block_language, kernel_judging
from engine.puzzles.block_language import NamedArray


class Storage:
    """The memory of an array, as Triton's interpreter asks a tensor of PyTorch for it."""

    def __init__(self, numbers):
        self.numbers = numbers

    def data_ptr(self):
        return self.numbers.ctypes.data

    def cpu(self):
        return Storage(self.numbers.copy())

    def copy_(self, other):
        self.numbers[:] = other.numbers


class Tensor:
    """As much of a tensor of PyTorch as a launch under Triton's interpreter needs."""

    dtype = "torch.float32"

    def __init__(self, numbers):
        self.storage = Storage(np.array(numbers, dtype=np.float32))

    def data_ptr(self):
        return self.storage.data_ptr()

    def untyped_storage(self):
        return self.storage

    def new_empty(self, count, device):
        return Tensor([])

    def set_(self, storage, offset, size, stride):
        self.storage = storage

    def storage_offset(self):
        return 0

    def size(self):
        return (len(self.storage.numbers),)

    def stride(self):
        return (1,)


def real_kernel(code, name, folder):
    """The kernel of a solution, out of a file, since Triton reads its source."""
    file = Path(folder) / "solution.py"
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("solution", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def distances(name):
    """For each launch of a puzzle's check: the largest difference between the two interpreters' results."""
    puzzle, found = puzzles.puzzle(name), []
    with tempfile.TemporaryDirectory() as folder:
        real = real_kernel(puzzle.SOLUTION, puzzle.FUNCTION, folder)
        ours = block_language.launched

        def both(kernel, programs, arguments, constants):
            """Launch in Triton first, on copies, then as the puzzle does."""
            given = [Tensor(each.numbers) if isinstance(each, NamedArray) else each for each in arguments]
            real[(programs,)](*given, **constants)
            ours(kernel, programs, arguments, constants)
            for theirs, mine in zip(given, arguments):
                if isinstance(mine, NamedArray):
                    found.append(float(np.abs(theirs.storage.numbers - np.array(mine.numbers)).max()))

        kernel_judging.launched = both
        try:
            judged = puzzles.tried(name, puzzle.SOLUTION)
        finally:
            kernel_judging.launched = ours
    assert judged["right"], judged
    return found


if __name__ == "__main__":
    names = [name for name in puzzles.names() if name.startswith("kernel_")]
    print(json.dumps({name: distances(name) for name in names}))
