"""When PyTorch allocates and frees memory: every storage that operations make, in order."""

from __future__ import annotations

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Storages(TorchDispatchMode):
    """Records each new storage's size, and the moment when its last tensor is freed."""

    def __init__(self):
        super().__init__()
        self.bytes: list[int] = []
        self.events: list[int] = []  # n + 1 where storage n is made, -(n + 1) where it is freed
        self.known: set[int] = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if isinstance(leaf, torch.Tensor):
                self.note(leaf.untyped_storage())
        return made

    def note(self, storage) -> None:
        if storage.nbytes() == 0 or storage._cdata in self.known:
            return
        self.known.add(storage._cdata)
        self.bytes.append(storage.nbytes())
        number = len(self.bytes)
        self.events.append(number)
        weakref.finalize(storage, self.gone, storage._cdata, number)

    def gone(self, address: int, number: int) -> None:
        self.known.discard(address)
        self.events.append(-number)
