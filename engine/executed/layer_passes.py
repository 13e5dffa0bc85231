"""What the passes of a step keep of each layer, run pass by pass: activations, and recomputation.

Lists and numbers alone, because a puzzle of lesson 01 runs these lines in the page.
"""

from __future__ import annotations

from typing import Any


def held_bytes(inputs: Any, inside: Any, recompute: Any) -> list:
    """What is held after each forward pass, then during each backward pass, last layer first.

    A layer keeps its input and what is ``inside`` it. With recomputation it keeps its input alone, and what
    is inside exists again while its backward pass runs. Leaves out gradients and what a pass uses for a
    moment (Korthikanti et al., arXiv:2205.05198, section 5).
    """
    kept, held = {}, []
    for layer in range(len(inputs)):
        kept[layer] = inputs[layer] + (0 if recompute else inside[layer])
        held.append(sum(kept.values()))
    for layer in range(len(inputs) - 1, -1, -1):
        kept[layer] = inputs[layer] + inside[layer]
        held.append(sum(kept.values()))
        del kept[layer]
    return held
