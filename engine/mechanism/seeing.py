"""Pictures in a training job: what the tower that reads them computes and keeps beside the decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from engine.base import check
from engine.base.types import Real
from engine.calibration.attention import fused_s
from engine.calibration.products import trained_product_s
from engine.mechanism.matmul import stream_s

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.catalog.towers import Tower
    from engine.mechanism.matmul import Chip
    from engine.mechanism.shape import Shape

GRADIENT_SUM_BYTES = 8.0  # a weight gradient is added to an fp32 sum, which is read and written
HEAD_DIM = 72.0  # of the towers in the catalogue, 64 to 88: their heads are 16
BACKWARD_OF_ATTENTION = 2.7  # over the forward pass, as in ``mechanism.compute``
# bytes per patch and layer, in 16 bits, for each value of the width and of the MLP's inside: that the kernels
# between the products read and write; that are kept for the backward pass
MOVED, KEPT = (40.0, 8.0), (16.0, 4.0)


@dataclass(frozen=True)
class Pictures:
    """Pictures among the tokens of a training job: so many in each sequence, of so many pixels.

    A tower turns a picture into tokens, which are among the sequence's ``seq``. It is ``trained`` with the
    rest, or frozen (as in most fine-tuning), and then computes forward alone and keeps nothing.

    >>> few = engine.Pictures(each=4, pixels=1024 * 1024)
    >>> job = engine.Job(64, 8192, pictures=few)
    >>> at = engine.Layout(gpus=64, zero=3)
    >>> step = engine.estimate("qwen3-vl-8b", "h100-sxm", job, at)
    >>> f"{few.tokens(engine.model('qwen3-vl-8b')):,.0f}"
    """

    each: float  # pictures of a sequence
    pixels: float  # of a picture
    trained: bool = False

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.positive(each=self.each, pixels=self.pixels)

    def tokens(self, model: Model) -> Real:
        """Tokens of a sequence that are pictures."""
        return self.each * tower_of(model).tokens(self.pixels)


def tower_of(model: Model | Shape) -> Tower:
    """The tower of a model that reads pictures; ValueError for one that has none."""
    if model.tower is None:
        raise ValueError(f"pictures must be None for {model.name}, which has no tower that is known here")
    return model.tower


def require(model: Model, pictures: Pictures, seq: int, degrees: dict[str, int]) -> None:
    """ValueError unless the model reads pictures, a sequence has room for them, and each GPU has the whole
    tower."""
    read = pictures.tokens(model)
    if read > seq:
        raise ValueError(
            f"each must be so many pictures that their tokens are at most the {seq:,} of a sequence, got "
            f"{pictures.each:g} of {read / pictures.each:,.0f} tokens"
        )
    for name, degree in degrees.items():
        if degree > 1:
            raise ValueError(
                f"{name} must be 1 with pictures, since how ranks share a tower is not modelled; got {degree}"
            )


def params(shape: Shape) -> Real:
    """Parameters of the tower and of what brings its results to the decoder's width."""
    return shape.extra_params + tower_of(shape).left_out


def flops_per_sequence(model: Model | Shape, pictures: Pictures) -> Real:
    """FLOPs of a step's pass over a sequence's pictures: two for each weight and patch and 4·n·h of attention
    over all n patches, in each layer; three times that if the tower is trained. Leaves out what joins its
    results to the decoder."""
    tower = tower_of(model)
    patches = tower.patches(pictures.pixels)
    of_one = tower.layers * patches * (2.0 * tower.layer_params + 4.0 * patches * tower.hidden)
    return pictures.each * of_one * (3.0 if pictures.trained else 1.0)


class TowerTime(NamedTuple):
    """Seconds of a tower for one micro-batch."""

    forward_s: Real
    backward_s: Real


def tower_s(shape: Shape, pictures: Pictures, sequences: Real, at: Chip) -> TowerTime:
    """The tower over the pictures of these sequences: products, attention of all patches to each other, and
    the kernels between. A frozen one has no backward pass. Leaves out what joins its results to the decoder,
    less than a layer of either."""
    if not check.is_trusted():
        check.positive(sequences=sequences)
    tower = tower_of(shape)
    patches, count = tower.patches(pictures.pixels), sequences * pictures.each
    rows, h, w = count * patches, float(tower.hidden), float(tower.width)
    forward_s = backward_s = 0.0
    for k, n in ((h, 3.0 * h), (h, h), (h, (1.0 + tower.gated) * w), (w, h)):
        f, by_input, by_weight = trained_product_s(rows, k, n, GRADIENT_SUM_BYTES, at.wide)
        forward_s, backward_s = forward_s + f, backward_s + by_input + by_weight
    heads = h / HEAD_DIM
    attention_s = fused_s(count, patches, heads, heads, HEAD_DIM, at.attention, causal=0.0)
    moved_s = stream_s(rows * (MOVED[0] * h + MOVED[1] * w), at)
    forward_s = tower.layers * (forward_s + attention_s + moved_s)
    backward_s = tower.layers * (backward_s + BACKWARD_OF_ATTENTION * attention_s + 2.0 * moved_s)
    return TowerTime(forward_s, backward_s if pictures.trained else 0.0)


def kept_bytes(shape: Shape, pictures: Pictures, sequences: Real) -> Real:
    """Bytes that the tower keeps of these sequences' pictures until its backward pass: norms, queries, keys
    and values, the attention's result, both sides of the activation function; of a frozen one, what a layer
    works on."""
    tower = tower_of(shape)
    a_layer = KEPT[0] * tower.hidden + (KEPT[1] + 2.0 * tower.gated) * tower.width
    patches = sequences * pictures.each * tower.patches(pictures.pixels)
    return patches * a_layer * (tower.layers if pictures.trained else 1.0)
