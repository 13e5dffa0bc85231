"""Serving: the time of a prefill and of a decode step, the KV cache, and a steady batch of requests.

A decode step reads every weight once for the whole batch and every sequence's keys and values; its kernels are too
short to hide their launches, and its AllReduces too small for anything but their latency.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import check, memory, ops
from engine.compute import seen_per_query
from engine.interconnect import all_reduce_s, nvls_s, one_shot_s, ranks_per_node, ring_s, tree_s
from engine.layout import Machine
from engine.matmul import fused_attention_s, product_s, stream_s
from engine.memory import BYTES_PER_VALUE
from engine.shape import shape

KERNELS_PER_LAYER = 8.0         # beside the matrix products: norms, rotary, cache write, attention, activation, adds
ALL_REDUCES = {"ring": ring_s, "tree": tree_s, "nvls": nvls_s, "one_shot": one_shot_s}
ALGORITHMS = ("auto", *ALL_REDUCES)


@dataclass(frozen=True)
class Serving:
    """How a model is served. The machine's precision is that of the products; weights and cache can be kept in
    others."""

    tp: int = 1
    batch: int = 1
    prompt: int = 1024
    output: int = 128
    kv_precision: str = "bf16"
    all_reduce: str = "auto"
    weight_precision: str | None = None     # as stored, widened on the way to the product; None for the machine's

    def __post_init__(self):
        check.whole(tp=self.tp, batch=self.batch, prompt=self.prompt, output=self.output)
        check.one_of(BYTES_PER_VALUE, kv_precision=self.kv_precision)
        check.one_of((None, *BYTES_PER_VALUE), weight_precision=self.weight_precision)
        check.one_of(ALGORITHMS, all_reduce=self.all_reduce)


@dataclass(frozen=True)
class StepTime:
    """Seconds of one prefill or decode step, split by what they are spent on."""

    weights_s: float                # matrix products: in decoding, the reading of the weights
    attention_s: float              # in decoding, the reading of keys and values
    other_s: float                  # norms and the like, launches
    communication_s: float

    @property
    def total_s(self) -> float:
        return self.weights_s + self.attention_s + self.other_s + self.communication_s


def reduce_s(message_bytes, tp, algorithm: str, net):
    """One AllReduce over the tensor group; ``auto`` takes the fastest."""
    per_node = ranks_per_node(tp, 1.0, net.gpus_per_node)
    if algorithm != "auto":
        return ALL_REDUCES[algorithm](message_bytes, tp, per_node, net)
    return ops.minimum(all_reduce_s(message_bytes, tp, per_node, net), one_shot_s(message_bytes, tp, per_node, net))


def experts_touched(experts, top_k, tokens):
    """How many of the experts at least one of so many tokens goes to, if all are as likely: E·(1 − (1 − k/E)ᵗ)."""
    return experts * (1.0 - (1.0 - top_k / ops.maximum(experts, 1.0)) ** tokens)


def stored_bytes(at: Machine, weight_precision):
    """Bytes of a stored weight: the machine's precision unless another is named, or its bytes are given."""
    if weight_precision is None:
        return at.chip.operand_bytes
    return BYTES_PER_VALUE[weight_precision] if isinstance(weight_precision, str) else weight_precision


def products_s(size, rows, tp, weight_bytes, at, flops_per_s=None):
    """Matrix products of all layers for so many rows (tokens), their weights stored in ``weight_bytes`` each.

    With another rate than the chip's, say an endless one, what remains is the reading.
    """
    rate = at.matmul_flops_per_s if flops_per_s is None else flops_per_s

    def chain(products, m, batch=1.0):
        return sum(product_s(m, p.n / (1.0 + (tp - 1.0) * p.splits_n), p.k / (1.0 + (tp - 1.0) * p.splits_k), batch,
                             rate, weight_bytes, 2.0, at) for p in products)

    layer_s = chain(size.attention, rows)
    if size.mlp:
        layer_s = layer_s + (1.0 - size.moe_share) * chain(size.mlp, rows)
    if size.experts:
        touched = experts_touched(size.experts, size.top_k, rows)
        layer_s = layer_s + size.moe_share * (
            chain(size.expert, rows * size.top_k / touched, touched) + chain(size.shared, rows))
    return size.layers * layer_s


def other_s(size, rows, tp, at):
    """Norms, activations and rotary embedding, and one launch for every kernel of the step."""
    width = size.ffn * (1.0 - size.moe_share) + size.moe_share * (
        size.top_k * size.expert_ffn + size.shared_experts * size.shared_ffn)
    moved = rows * (20.0 * size.hidden + (4.0 * (size.heads + size.kv_heads) * size.qk_dim + 6.0 * width) / tp)
    kernels = KERNELS_PER_LAYER + len(size.attention) + len(size.mlp) + len(size.expert) + len(size.shared)
    return size.layers * (stream_s(moved, at) + kernels * at.launch_s)


def communication_s(size, rows, tp, algorithm, net):
    """The AllReduces of all layers."""
    return size.layers * size.all_reduces * reduce_s(rows * size.hidden * 2.0, tp, algorithm, net)


def kv_shards(size, tp):
    """Tensor ranks divide the key and value heads; past one head each they hold copies. A latent cache is always
    whole."""
    return ops.where(size.kv_lora > 0.0, 1.0, ops.minimum(tp, size.kv_heads))


def decode_step(model, at: Machine, tp, batch, context, kv_precision="bf16", all_reduce="auto",
                weight_precision=None) -> StepTime:
    """One token for each of ``batch`` sequences that hold ``context`` tokens."""
    check.whole(tp=tp, batch=batch)
    check.non_negative(context=context)
    size, chip = shape(model), at.chip
    tp, batch, context = tp * 1.0, batch * 1.0, context * 1.0
    with check.trusted():
        kv_bytes = memory.kv_bytes(size, context, batch, BYTES_PER_VALUE[kv_precision]) / kv_shards(size, tp)
        head_s = product_s(batch, size.vocab / tp, size.hidden, 1.0, chip.wide_flops_per_s, chip.wide_bytes, 2.0, chip)
        return StepTime(
            products_s(size, batch, tp, stored_bytes(at, weight_precision), chip) + head_s,
            stream_s(kv_bytes, chip),
            other_s(size, batch, tp, chip),
            communication_s(size, batch, tp, all_reduce, at.wires))


def prefill(model, at: Machine, tp, batch, prompt, all_reduce="auto", weight_precision=None) -> StepTime:
    """The prompts of ``batch`` sequences at once, up to each one's first token."""
    check.whole(tp=tp, batch=batch, prompt=prompt)
    size, chip = shape(model), at.chip
    tp, rows, prompt = tp * 1.0, batch * prompt * 1.0, prompt * 1.0
    with check.trusted():
        attention_s = size.layers * fused_attention_s(
            rows * seen_per_query(size, prompt, 1.0) * size.heads / tp, prompt, size.qk_dim, size.value_dim, 1.0, chip)
        head_s = product_s(batch * 1.0, size.vocab / tp, size.hidden, 1.0, chip.wide_flops_per_s, chip.wide_bytes, 2.0,
                           chip)
        return StepTime(
            products_s(size, rows, tp, stored_bytes(at, weight_precision), chip) + head_s, attention_s,
            other_s(size, rows, tp, chip), communication_s(size, rows, tp, all_reduce, at.wires))


def weight_bytes_per_gpu(model, at: Machine, tp, weight_precision=None) -> float:
    """Weights as served: matrices as they are stored, embedding and output layer in 16 bits."""
    size = shape(model)
    embeddings = size.embedding_params + size.head_params
    matrices = size.total_params - embeddings
    return (matrices * stored_bytes(at, weight_precision) + embeddings * at.chip.wide_bytes) / tp


def largest_batch(model, at: Machine, serving: Serving) -> int:
    """Sequences of prompt + output tokens whose cache fits beside the weights; 0 where the weights alone do not."""
    size = shape(model)
    weights = weight_bytes_per_gpu(model, at, serving.tp, serving.weight_precision)
    free = at.gpu.hbm_bytes - memory.FRAMEWORK_BYTES - weights
    with check.trusted():
        one = memory.kv_bytes(size, float(serving.prompt + serving.output), 1.0, BYTES_PER_VALUE[serving.kv_precision])
    return max(0, int(free // (one / kv_shards(size, float(serving.tp)))))


def require_servable(model, serving: Serving) -> None:
    """ValueError where the tensor ranks do not divide the heads; it names the nearest degrees that do."""
    if model.heads % serving.tp:
        legal = [d for d in range(1, model.heads + 1) if model.heads % d == 0]
        near = [d for d in legal if d < serving.tp][-1:] + [d for d in legal if d > serving.tp][:1]
        raise ValueError(f"tp must divide the {model.heads} attention heads, got {serving.tp}; nearest legal: "
                         + " and ".join(map(str, near)))


def infer(model, at: Machine, serving: Serving) -> dict:
    """What ``batch`` requests of prompt + output tokens experience together, in the keys of the command line.

    Continuous batching in its steady state: the batch stays full, the context is on average prompt + output/2, and each
    output token's step also pays its share of the prefills that refill the batch.
    """
    require_servable(model, serving)
    s = serving
    first = prefill(model, at, s.tp, 1, s.prompt, s.all_reduce, s.weight_precision)
    together = prefill(model, at, s.tp, s.batch, s.prompt, s.all_reduce, s.weight_precision)
    each = decode_step(model, at, s.tp, s.batch, s.prompt + s.output / 2.0, s.kv_precision, s.all_reduce,
                       s.weight_precision)
    latency_s = together.total_s + (s.output - 1) * each.total_s
    fitting = largest_batch(model, at, s)
    return {
        "model": model.key, "gpu": at.gpu.key, "tp": s.tp, "batch": s.batch, "prompt": s.prompt, "output": s.output,
        "precision": at.precision, "weight_precision": s.weight_precision or at.precision,
        "kv_precision": s.kv_precision,
        "ttft_s": together.total_s,
        "ttft_one_request_s": first.total_s,
        "time_per_output_token_s": each.total_s,
        "latency_s": latency_s,
        "tokens_per_s": s.batch * s.output / latency_s,
        "tokens_per_s_per_gpu": s.batch * s.output / latency_s / s.tp,
        "kv_bytes_per_token": float(memory.kv_bytes_per_token(shape(model), BYTES_PER_VALUE[s.kv_precision])),
        "weight_bytes_per_gpu": weight_bytes_per_gpu(model, at, s.tp, s.weight_precision),
        "largest_batch": fitting, "fits": s.batch <= fitting,
        "prefill_time_s": _parts(together), "decode_time_s": _parts(each), "all_reduce": s.all_reduce,
    }


def _parts(step: StepTime) -> dict:
    return {"weights": step.weights_s, "attention": step.attention_s, "other": step.other_s,
            "communication": step.communication_s}
