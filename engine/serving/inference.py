"""Serving: the time of a prefill and of a decode step, the KV cache, and a steady batch of requests.

A decode step reads every weight once for the whole batch, and the keys and values of every sequence; its
kernels are too short to hide their launches, and its AllReduces so small that latency dominates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.base import check, ops, printing
from engine.base.types import Real
from engine.calibration import bands, launch_costs
from engine.calibration.attention import decode_s, latent_decode_s, latent_prefill_s, prefill_s
from engine.calibration.grouped import experts_s
from engine.calibration.products import gemm_s
from engine.catalog import models
from engine.catalog.models import Model
from engine.mechanism import memory, mixing
from engine.mechanism.interconnect import all_reduce_s, nvls_s, one_shot_s, ranks_per_node, ring_s, tree_s
from engine.mechanism.matmul import stream_s
from engine.mechanism.memory import BYTES_PER_VALUE
from engine.mechanism.shape import mean_of, reading, shape
from engine.step.layout import Machine

if TYPE_CHECKING:
    from engine.mechanism.interconnect import Wires
    from engine.mechanism.matmul import Chip
    from engine.mechanism.shape import Routed, Shape

# kernels of a layer besides products, attention (which writes the cache) and experts: two norms, each with
# the addition before it, the rotation and the activation
KERNELS_PER_LAYER = 4.0
HEAD_ROWS = 256.0  # the most rows of the output layer, since a prompt needs it only for its last token
ALL_REDUCES = {"ring": ring_s, "tree": tree_s, "nvls": nvls_s, "one_shot": one_shot_s, "nccl": all_reduce_s}
ALGORITHMS = ("auto", *ALL_REDUCES)
NARROW = ("fp8", "int8", "fp4")  # precisions of products with which keys and values stay in 16 bits


@dataclass(frozen=True)
class Serving:
    """How a model is served. The products run in the machine's precision; weights and cache can be stored in
    others. Leaves out weights that are cut in two dimensions or gathered, and caches that are split over the
    batch, as TPUs serve multi-query models."""

    tp: Real = 1
    batch: Real = 1
    prompt: Real = 1024
    output: Real = 128
    kv_precision: str = "bf16"
    all_reduce: str = "auto"
    weight_precision: str | Real | None = (
        None  # format of a stored weight, or its bytes; widened for the product; None for the machine's
    )
    pp: Real = 1  # pipeline stages …
    dp: Real = 1  # … or groups of ``tp`` GPUs that share the experts and have requests of their own
    ep: Real = 1  # ``tp`` if each of the tensor ranks keeps whole experts instead of a part of every expert
    shares_reads: bool = (
        True  # the query heads of a group read keys and values once; some software before 2024 did not
    )

    def __post_init__(self) -> None:
        check.whole(tp=self.tp, batch=self.batch, prompt=self.prompt, output=self.output)
        check.whole(pp=self.pp, dp=self.dp, ep=self.ep)
        if self.pp > 1 and self.dp > 1:
            raise ValueError(
                f"pp must be 1 where dp groups share the experts, got {self.pp} and dp {self.dp}"
            )
        if self.ep not in (1, self.tp):
            raise ValueError(f"ep must be 1 or the {self.tp} tensor ranks, got {self.ep}")
        check.one_of(BYTES_PER_VALUE, kv_precision=self.kv_precision)
        if isinstance(self.weight_precision, (int, float)):
            check.positive(weight_precision=self.weight_precision)
        else:
            check.one_of((None, *BYTES_PER_VALUE), weight_precision=self.weight_precision)
        check.one_of(ALGORITHMS, all_reduce=self.all_reduce)

    @property
    def gpus(self) -> Real:
        """GPUs of the replica."""
        return self.tp * self.pp * self.dp


@dataclass(frozen=True)
class StepTime:
    """Seconds of one prefill or decode step, by what takes them."""

    weights_s: float  # matrix products; in decoding, reading the weights
    attention_s: float  # in decoding, reading keys and values
    other_s: float  # norms and similar kernels, launches
    communication_s: float

    @property
    def total_s(self) -> float:
        """Seconds of the whole step."""
        return self.weights_s + self.attention_s + self.other_s + self.communication_s

    def __add__(self, after: StepTime) -> StepTime:
        """The times of two steps in a row, added up."""
        return StepTime(
            self.weights_s + after.weights_s,
            self.attention_s + after.attention_s,
            self.other_s + after.other_s,
            self.communication_s + after.communication_s,
        )


def reduce_s(message_bytes: Real, tp: Real, algorithm: str, net: Wires) -> Real:
    """One AllReduce over the tensor-parallel group; ``auto`` uses the fastest algorithm."""
    per_node = ranks_per_node(tp, 1.0, net.gpus_per_node)
    if algorithm != "auto":
        return ALL_REDUCES[algorithm](message_bytes, tp, per_node, net)
    return ops.minimum(
        all_reduce_s(message_bytes, tp, per_node, net), one_shot_s(message_bytes, tp, per_node, net)
    )


def experts_touched(experts: Real, top_k: Real, tokens: Real) -> Real:
    """The number of experts that at least one of this many tokens goes to, if all are equally likely: E·(1 −
    (1 − k/E)ᵗ)."""
    return experts * (1.0 - (1.0 - top_k / ops.maximum(experts, 1.0)) ** tokens)


def stored_bytes(at: Machine, weight_precision: str | Real | None) -> Real:
    """Bytes per stored weight: the machine's precision unless another is named or the bytes are given."""
    if weight_precision is None:
        return at.chip.operand_bytes
    return BYTES_PER_VALUE[weight_precision] if isinstance(weight_precision, str) else weight_precision


def products_s(size: Shape, rows: Real, tp: Real, weight_bytes: Real, at: Chip, ep: Real = 1.0) -> Real:
    """Seconds of the matrix products of all layers for ``rows`` tokens, with weights of ``weight_bytes``
    each; for routed experts also of the kernels around their products."""
    return dense_s(size, rows, tp, weight_bytes, at) + all_routed_s(size, rows, tp, weight_bytes, at, ep)


def all_routed_s(size: Shape, rows: Real, tp: Real, weight_bytes: Real, at: Chip, ep: Real = 1.0) -> Real:
    """The part of ``products_s`` that routed experts take: each cut over the tensor ranks, or kept whole on
    one of ``ep`` ranks."""
    found = 0.0
    for part in size.routed:
        layer_s = (
            kept_whole_s(part, rows, ep, weight_bytes, at)
            if ep > 1
            else routed_s(size, part, rows, tp, weight_bytes, at)
        )
        found = found + size.depth * part.share * layer_s
    return found


def dense_s(size: Shape, rows: Real, tp: Real, weight_bytes: Real, at: Chip) -> Real:
    """``products_s`` without routed experts."""

    def chain(products):
        return sum(
            p.there
            * gemm_s(
                rows,
                p.n / (1.0 + (tp - 1.0) * p.splits_n),
                p.k / (1.0 + (tp - 1.0) * p.splits_k),
                at.served.product,
                weight_bytes=weight_bytes,
            )
            for p in products
        )

    layer_s = chain(size.attention)
    for part in size.dense:
        layer_s = layer_s + part.share * chain(part.products)
    for part in size.routed:
        layer_s = layer_s + part.share * chain(part.shared)
    return size.depth * layer_s


def routed_s(size: Shape, part: Routed, rows: Real, tp: Real, weight_bytes: Real, at: Chip) -> Real:
    """One layer of routed experts, each cut over the tensor ranks."""
    # all numbers are at least one, because a symbol may stand for a model without experts, whose share is
    # zero
    experts, top_k = ops.maximum(1.0, part.experts), ops.maximum(1.0, part.top_k)
    width = ops.maximum(1.0, part.width) / tp
    touched = experts_touched(experts, top_k, rows)
    return experts_s(
        rows * top_k, touched, experts, rows, part.hidden, width, part.gated, at.served.experts, weight_bytes
    )


def busiest_touched(experts: Real, top_k: Real, tokens: Real, ranks: Real) -> Real:
    """The number of experts in use on the rank that has the most of them in use, where each of ``ranks``
    holds as many whole ones. Each is in use with the probability p = 1 − (1 − k/E)ᵗ, so that a rank's number
    has a variance of E/R · p(1 − p)(1 − 1/R), and the largest of R numbers lies about √ln R deviations above
    their mean (0.8 to 2.0 for 2 to 64; of normal numbers it is 0.6 to 2.4). Leaves out that some experts are
    more popular than others."""
    held = experts / ranks
    used = experts_touched(experts, top_k, tokens) / experts
    spread = ops.sqrt(held * used * (1.0 - used) * (1.0 - 1.0 / ranks) * np.log(ranks))
    return ops.minimum(held, held * used + spread)


def kept_whole_s(part: Routed, rows: Real, ranks: Real, weight_bytes: Real, at: Chip) -> Real:
    """One layer of routed experts on the busiest of ``ranks``, each of which keeps whole experts and sees all
    tokens, as it does under tensor parallel attention."""
    touched = busiest_touched(part.experts, part.top_k, rows, ranks)
    return experts_s(
        rows * part.top_k / ranks,
        touched,
        part.experts / ranks,
        rows,
        part.hidden,
        part.width,
        part.gated,
        at.served.experts,
        weight_bytes,
    )


def head_s(size: Shape, rows: Real, tp: Real, at: Chip) -> Real:
    """The output layer, in 16 bits."""
    return gemm_s(rows, size.vocab / tp, size.hidden, at.served.wide)


def reading_s(size: Shape, rows: Real, tp: Real, weight_bytes: Real, at: Chip) -> Real:
    """Seconds that a step for ``rows`` tokens takes to read the weights of one GPU; of the experts only those
    in use."""

    def of(products):
        return sum(p.there * p.k * p.n / (1.0 + (tp - 1.0) * (p.splits_k + p.splits_n)) for p in products)

    dense, routed = of(size.attention), 0.0
    for part in size.dense:
        dense = dense + part.share * of(part.products)
    for part in size.routed:
        touched = experts_touched(part.experts, part.top_k, rows)
        dense = dense + part.share * of(part.shared)
        routed = routed + part.share * touched * of(part.products)
    layer_s = dense / at.served.product.memory_bytes_per_s + routed / at.served.experts.memory_bytes_per_s
    head = size.vocab / tp * size.hidden * at.wide_bytes
    return size.depth * weight_bytes * layer_s + head / at.served.wide.memory_bytes_per_s


def attention_s(
    size: Shape, batch: Real, context: Real, tp: Real, value_bytes: Real, at: Chip, shares_reads: bool = True
) -> Real:
    """All layers' attention of one new token for each of ``batch`` sequences, over a cache of ``context``
    tokens with ``value_bytes`` a value. Without ``shares_reads`` each query head reads its keys and values by
    itself, as in TensorRT-LLM before its XQA kernels (January 2024)."""
    cached, wide, narrow = ops.maximum(1.0, context), at.decode, at.narrow_decode

    def layer_s(kind):
        if kind.mixer is not None:
            return mixing.token_s(kind.mixer, batch, cached, tp, value_bytes, at)
        heads, kv_heads = kind.heads / tp, kind.kv_heads / ops.minimum(tp, kind.kv_heads)
        read = batch, cached, heads, kv_heads if shares_reads else heads, 0.5 * (kind.qk_dim + kind.value_dim)
        return ops.choose(
            kind.is_latent,
            lambda: latent_decode_s(batch, cached, heads, at.latent, value_bytes),
            lambda: ops.choose(
                value_bytes >= 2.0,
                lambda: decode_s(*read, wide, kind.window, value_bytes),
                lambda: decode_s(*read, narrow, kind.window, value_bytes),
            ),
        )

    return size.depth * mean_of(size.attended, [layer_s(kind) for kind in size.attended])


def prompt_attention_s(size: Shape, batch: Real, prompt: Real, tp: Real, at: Chip) -> Real:
    """All layers' attention of ``batch`` prompts."""

    def layer_s(kind):
        if kind.mixer is not None:
            return mixing.sequence_s(kind.mixer, batch, prompt, tp, at.served.attention, at)
        heads, kv_heads = kind.heads / tp, kind.kv_heads / ops.minimum(tp, kind.kv_heads)
        width = 0.5 * (kind.qk_dim + kind.value_dim)
        return ops.choose(
            kind.is_latent,
            lambda: latent_prefill_s(batch, prompt, heads, at.latent_prefill),
            lambda: prefill_s(batch, prompt, heads, kv_heads, width, at.served.attention, kind.window),
        )

    return size.depth * mean_of(size.attended, [layer_s(kind) for kind in size.attended])


def moved_bytes(size: Shape, rows: Real, tp: Real) -> Real:
    """Bytes that norms, activations and rotary embedding move in one layer; those of routed experts are
    counted with their products. A norm adds the residual in the same kernel: it reads both and writes both,
    8h."""
    width = 0.0
    for part in size.dense:
        width = width + part.width * part.share
    for part in size.routed:
        width = width + part.share * part.shared_width
    turned = 4.0 * (size.query_values + size.key_values)
    return rows * (16.0 * size.hidden + (turned + 6.0 * width) / tp)


def other_s(size: Shape, rows: Real, tp: Real, at: Chip) -> Real:
    """Seconds of norms, activations and rotary embedding: for each kernel a launch, and the bytes that it
    moves."""
    launch_s = launch_costs.served_s(at.launch_s, rows)
    return size.depth * (stream_s(moved_bytes(size, rows, tp), at) + KERNELS_PER_LAYER * launch_s)


def starts_s(size: Shape, at: Chip) -> Real:
    """Seconds that a step's products, attention and experts take to start, before they compute anything."""
    dense = sum(p.there for p in (*size.attention, *size.mlp_products))
    attention = mean_of(
        size.attended,
        [
            ops.where(kind.is_latent, at.latent.launch_s, at.decode.launch_s)
            if kind.mixer is None
            else kind.mixer.kernels * at.decode.launch_s
            for kind in size.attended
        ],
    )
    experts = sum(part.share * at.served.experts.launch_s for part in size.routed)
    return size.depth * (dense * at.served.product.launch_s + attention + experts) + at.served.wide.launch_s


def communication_s(size: Shape, rows: Real, tp: Real, algorithm: str, net: Wires) -> Real:
    """The AllReduces of all layers."""
    return size.depth * size.all_reduces * reduce_s(rows * size.hidden * 2.0, tp, algorithm, net)


def kv_shards(size: Shape, tp: Real) -> Real:
    """The number of parts that the cache is split into: tensor ranks divide the key and value heads, and
    where there are more ranks than heads, several ranks hold copies of a head. A latent cache is never
    split."""
    kind = reading(size)[0]
    return ops.where(kind.is_latent, 1.0, ops.minimum(tp, size.kv_heads))


def kept_bytes(size: Shape, context: Real, sequences: Real, value_bytes: Real, tp: Real) -> Real:
    """Bytes that this many sequences of a context keep on each GPU: their cache, in as many parts as
    ``kv_shards`` says, and their states, which tensor ranks divide."""
    whole = memory.kv_bytes(size, context, sequences, value_bytes)
    if ops.is_zero(size.state_bytes):
        return whole / kv_shards(size, tp)
    states = sequences * size.state_bytes
    return (whole - states) / kv_shards(size, tp) + states / tp


def read_bytes(size: Shape, context: Real, sequences: Real, value_bytes: Real, tp: Real) -> Real:
    """Bytes that each GPU reads to attend from one new token of this many sequences: what they keep, but for
    layers that read only a part of it, and with what they write back of a state."""
    if not any(kind.mixer for kind in size.attended):
        return kept_bytes(size, context, sequences, value_bytes, tp)

    def layer_bytes(kind):
        if kind.mixer is not None:
            work = kind.mixer.decoding(context, value_bytes)
            return sequences * (work.moved_bytes / tp + work.repeated_bytes)
        seen = ops.minimum(context, kind.window) if kind.windowed else context
        return sequences * kind.cached * seen * value_bytes / kv_shards(size, tp)

    return size.depth * mean_of(size.attended, [layer_bytes(kind) for kind in size.attended])


def decode_step(
    model: Model,
    at: Machine,
    tp: Real,
    batch: Real,
    context: Real,
    kv_precision: str = "bf16",
    all_reduce: str = "auto",
    weight_precision: str | Real | None = None,
    shares_reads: bool = True,
    ep: Real = 1,
) -> StepTime:
    """One token for each of ``batch`` sequences with ``context`` tokens."""
    check.whole(tp=tp, batch=batch)
    check.non_negative(context=context)
    size, chip = shape(model), at.chip
    tp, batch, context = tp * 1.0, batch * 1.0, context * 1.0
    with check.trusted():
        return StepTime(
            products_s(size, batch, tp, stored_bytes(at, weight_precision), chip, ep)
            + head_s(size, batch, tp, chip),
            attention_s(size, batch, context, tp, BYTES_PER_VALUE[kv_precision], chip, shares_reads),
            other_s(size, batch, tp, chip),
            communication_s(size, batch, tp, all_reduce, at.wires),
        )


def prefill(
    model: Model,
    at: Machine,
    tp: Real,
    batch: Real,
    prompt: Real,
    all_reduce: str = "auto",
    weight_precision: str | Real | None = None,
    ep: Real = 1,
) -> StepTime:
    """The prompts of ``batch`` sequences at once, up to the first token of each."""
    check.whole(tp=tp, batch=batch, prompt=prompt)
    size, chip = shape(model), at.chip
    tp, rows, prompt = tp * 1.0, batch * prompt * 1.0, prompt * 1.0
    with check.trusted():
        return StepTime(
            products_s(size, rows, tp, stored_bytes(at, weight_precision), chip, ep)
            + head_s(size, batch * 1.0, tp, chip),
            prompt_attention_s(size, batch * 1.0, prompt, tp, chip),
            other_s(size, rows, tp, chip),
            communication_s(size, rows, tp, all_reduce, at.wires),
        )


def weight_bytes_per_gpu(
    model: Model, at: Machine, tp: Real, weight_precision: str | Real | None = None
) -> float:
    """Bytes of weights as served: matrices in their stored format, embedding and output layer in 16 bits."""
    size = shape(model)
    embeddings = size.embedding_params + size.head_params
    matrices = size.total_params - embeddings
    return (matrices * stored_bytes(at, weight_precision) + embeddings * at.chip.wide_bytes) / tp


def largest_batch(model: Model, at: Machine, serving: Serving) -> int:
    """The number of sequences of prompt + output tokens whose cache fits beside the weights; 0 if not even
    the weights fit."""
    size = shape(model)
    weights = weight_bytes_per_gpu(model, at, serving.tp, serving.weight_precision)
    free = memory.server_bytes(at.gpu) - weights
    tokens, value_bytes = float(serving.prompt + serving.output), BYTES_PER_VALUE[serving.kv_precision]
    with check.trusted():
        one = kept_bytes(size, tokens, 1.0, value_bytes, float(serving.tp))
    return max(0, int(free // one))


def require_servable(model: Model, at: Machine, serving: Serving) -> None:
    """ValueError if the tensor ranks do not divide the heads (it names the nearest degrees that do), or if
    the layout is one that nobody chooses: over several TPUs the only key head of a multi-query model would be
    on each of them, where their servers give each a part of the batch (arXiv:2211.05102 section 3.3)."""
    if model.heads % serving.tp:
        legal = [d for d in range(1, model.heads + 1) if model.heads % d == 0]
        near = [d for d in legal if d < serving.tp][-1:] + [d for d in legal if d > serving.tp][:1]
        raise ValueError(
            f"tp must divide the {model.heads} attention heads, got {serving.tp}; nearest legal: "
            + " and ".join(map(str, near))
        )
    if at.wires.torus.axes > 0 and model.kv_heads == 1 and serving.tp > 1 and serving.batch > 1:
        raise ValueError(
            f"tp must be 1 for {model.name} on {at.gpu.name}, got {serving.tp}: TPUs that share a model with "
            "one key head split its cache over the batch, and cut or gather its weights in two dimensions, "
            "which is not modelled"
        )


def cache_precision(at: Machine) -> str:
    """The default precision of keys and values: the machine's, but at least 16 bits."""
    return "bf16" if at.precision in NARROW else at.precision


def server_kind(software: str, experts: bool) -> str:
    """The class of served models that a program and a kind of model belong to; "all" without a program."""
    return f"{software}, {'experts' if experts else 'dense'}" if software else "all"


@dataclass(frozen=True)
class Served(printing.Printed):
    """The latencies and throughput of a full batch of requests, and the memory it leaves."""

    model: Model
    at: Machine
    serving: Serving
    prefill: StepTime  # the prompts of the whole batch
    prefill_one: StepTime  # the prompt of one request
    decode: StepTime  # one token for every request
    largest_batch: int  # the largest batch whose cache fits beside the weights
    weight_bytes_per_gpu: float  # as stored
    software: str = ""  # the program that runs it, where one is named

    @property
    def ttft_s(self) -> float:
        """Time to first token, if all prompts of the batch are processed together."""
        return self.prefill.total_s

    @property
    def time_per_output_token_s(self) -> float:
        """The time from one token of a request to the next."""
        return self.decode.total_s

    @property
    def latency_s(self) -> float:
        """The time from a prompt to its last token."""
        return self.ttft_s + (self.serving.output - 1) * self.time_per_output_token_s

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second of the whole batch."""
        return self.serving.batch * self.serving.output / self.latency_s

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Output tokens per second for each GPU: the figure that scales with replicas."""
        return self.tokens_per_s / self.serving.gpus

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of the cache per token, over all GPUs."""
        value_bytes = BYTES_PER_VALUE[self.serving.kv_precision]
        return float(memory.kv_bytes_per_token(shape(self.model), value_bytes))

    @property
    def fits(self) -> bool:
        """Whether weights and the batch's cache fit the GPUs."""
        return self.serving.batch <= self.largest_batch

    @property
    def kind(self) -> str:
        """The class of runs from which its accuracy is taken: those of its program, dense or with experts."""
        return server_kind(self.software, self.model.experts > 0)

    @property
    def band_s(self) -> dict[str, tuple[float, float]]:
        """80 % bands of the latencies: the 10th and 90th percentile over published runs that were not used
        for fitting."""
        what = "latency" if self.software else bands.BARE
        said = {}
        for name, kind in (("ttft_s", bands.FIRST), ("time_per_output_token_s", self.kind)):
            low, high = bands.band(what, kind)
            if self.extrapolates:
                low, high = bands.beyond(what, (low, high))
            said[name] = (low * getattr(self, name), high * getattr(self, name))
        return said

    @property
    def band_tokens_per_s(self) -> tuple[float, float]:
        """80 % band of the throughput, from the same runs."""
        low, high = bands.band("throughput", self.kind)
        return low * self.tokens_per_s, high * self.tokens_per_s

    @property
    def extrapolates(self) -> tuple[str, ...]:
        """The arguments that lie outside all runs behind the bands, by name; and weights narrower than the
        product, which no measured product had."""
        s = self.serving
        found = bands.outside_serving(self.at.gpu.key, self.model.experts > 0, s.tp, s.batch)
        narrower = stored_bytes(self.at, s.weight_precision) < self.at.chip.operand_bytes
        found = (*found, "weight_precision") if narrower else found
        return (*found, "attention") if models.has_mixers(self.model) else found

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        s = self.serving
        return {
            "model": self.model.key,
            "gpu": self.at.gpu.key,
            "tp": s.tp,
            "pp": s.pp,
            "dp": s.dp,
            "batch": s.batch,
            "prompt": s.prompt,
            "output": s.output,
            "precision": self.at.precision,
            "weight_precision": s.weight_precision or self.at.precision,
            "kv_precision": s.kv_precision,
            "ttft_s": self.ttft_s,
            "ttft_one_request_s": self.prefill_one.total_s,
            "time_per_output_token_s": self.time_per_output_token_s,
            "latency_s": self.latency_s,
            "tokens_per_s": self.tokens_per_s,
            "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu,
            "ttft_band_s": list(self.band_s["ttft_s"]),
            "time_per_output_token_band_s": list(self.band_s["time_per_output_token_s"]),
            "band_tokens_per_s": list(self.band_tokens_per_s),
            "extrapolates": list(self.extrapolates),
            "rates_from": self.at.rates_from,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "weight_bytes_per_gpu": self.weight_bytes_per_gpu,
            "largest_batch": self.largest_batch,
            "fits": self.fits,
            "prefill_time_s": _parts(self.prefill),
            "decode_time_s": _parts(self.decode),
            "all_reduce": s.all_reduce,
            "ep": s.ep,
            "software": self.software,
        }


@printing.parts.register
def _shown(found: Served) -> list[printing.Part]:
    """All figures, but for what is as usual."""
    return [
        printing.beyond(found.as_dict(), {"pp": 1, "dp": 1, "ep": 1, "software": "", "all_reduce": "auto"})
    ]


def infer(model: Model, at: Machine, serving: Serving) -> Served:
    """The latencies and throughput of ``batch`` requests of prompt + output tokens, served together.

    Continuous batching in its steady state: the batch stays full, the context averages prompt + output/2, and
    each output token's step also pays its share of the prefills that refill the batch.
    """
    require_servable(model, at, serving)
    s = serving
    first = prefill(model, at, s.tp, 1, s.prompt, s.all_reduce, s.weight_precision, s.ep)
    together = prefill(model, at, s.tp, s.batch, s.prompt, s.all_reduce, s.weight_precision, s.ep)
    context = s.prompt + s.output / 2.0
    how = s.kv_precision, s.all_reduce, s.weight_precision, s.shares_reads, s.ep
    each = decode_step(model, at, s.tp, s.batch, context, *how)
    weights = weight_bytes_per_gpu(model, at, s.tp, s.weight_precision)
    return Served(model, at, s, together, first, each, largest_batch(model, at, s), weights)


def _parts(step: StepTime) -> dict:
    return {
        "weights": step.weights_s,
        "attention": step.attention_s,
        "other": step.other_s,
        "communication": step.communication_s,
    }
