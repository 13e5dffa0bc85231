"""The numbers of lesson 06, Tensor parallel."""

from engine import validation
from engine.catalog import gpu, link, model, models
from engine.catalog.hardware import Gpu, Link
from engine.catalog.models import Model
from engine.executed import tensor
from engine.mechanism import interconnect, memory
from engine.step import layout
from engine.step.layout import Estimate

llama = model("llama3-70b")  # Llama 3 70B
llama_8b = model("llama3-8b")  # Llama 3 8B
h100 = gpu("h100-sxm")  # an H100
nvlink = link("nvlink4")  # its NVLink
parameters = models.parameters(llama)  # parameters of 70B
# the sizes of a layer of 70B, with 8,192 tokens in one sequence
sizes = {"tokens": 8192, "hidden": 8192, "ffn": 28672, "seq": 8192, "matrices_of_mlp": 3, "kv_share": 1 / 8}
layer_flops = tensor.layer_flops(**sizes)  # arithmetic of a layer of 70B
reached = 0.6 * h100.bf16_flops_per_s  # the FLOP/s of its products, at 60 % of the peak


def compute_s(ranks: int) -> float:
    """Seconds that it takes on so many ranks."""
    return tensor.layer_compute_s(ranks=ranks, flops_per_s=reached, **sizes)


def all_reduces_s(ranks: int) -> float:
    """Seconds of the layer's AllReduces."""
    return tensor.layer_all_reduces_s(tokens=8192, hidden=8192, ranks=ranks, net=interconnect.wires(h100))


def layer_s(ranks: int) -> float:
    """Both together."""
    return tensor.layer_s(ranks=ranks, flops_per_s=reached, net=interconnect.wires(h100), **sizes)


# the same with sequence parallelism on eight ranks: ReduceScatters and AllGathers, without the switch's help
halves_s = 8 * interconnect.all_gather_s(8192 * 8192 * 2, 8, 8, interconnect.wires(h100))
# what one GPU of eight sends for an AllReduce
sent_bytes = tensor.column_row_bytes(tokens=8192, hidden=8192, ranks=8)
# the same if the MLP is cut by rows, then by columns
wrongly_cut_bytes = tensor.row_column_bytes(tokens=8192, hidden=8192, ffn=28672, ranks=8, matrices_of_mlp=3)
# the wrong cut over the right one for GPT-3
wrongly_cut_gpt3 = tensor.row_column_bytes(
    tokens=2048, hidden=12288, ffn=49152, ranks=2
) / tensor.column_row_bytes(tokens=2048, hidden=12288, ranks=2)


def useful_ranks(of: Model, wire: Link, each: Gpu, matrices: int = 2) -> float:
    """Ranks up to which a GPU computes longer than it sends, for an MLP of two matrices or three."""
    return tensor.largest_useful_ranks(
        of.ffn, wire.bytes_per_s, each.bf16_flops_per_s, matrices_of_mlp=matrices
    )


def lost_share(wire: Link, each: Gpu, ranks: int, of: Model = llama) -> float:
    """The share of a gated MLP's forward pass that so many ranks spend sending, at the vendors' figures."""
    return (ranks - 1) / (ranks - 1 + useful_ranks(of, wire, each, matrices=3) - 1)


def activations_bytes(sharded: float) -> float:
    """What a sequence of 8,192 tokens leaves on each of eight tensor ranks; 1 with sequence parallelism."""
    return memory.activation_bytes(llama, 8192, micro_batch=1, tensor=8, sequence_parallel=sharded)


def kempner_share(tokens_per_s: float, gpus: int) -> float:
    """Tokens a second of each GPU in the sweep, over what one GPU alone reached there."""
    return tokens_per_s / gpus / 10471


def torchtitan_s(precision: str, way: str = "") -> float:
    """The step that torchtitan measured on 256 H100s."""
    return validation.row(f"torchtitan_70b_256_{precision}_tp8{way}").measured


def async_gain(precision: str) -> float:
    """How much shorter that step became when the tensor ranks exchanged tokens in pieces."""
    return 1 - torchtitan_s(precision, "_async") / torchtitan_s(precision)


# what a GPU sends for the layers of 70B, fully sharded over eight
fsdp_bytes = 3 * 7 / 8 * memory.weight_bytes(80 * models.layer_parameters(llama))


def run(tp: int, zero: int, recompute: str = "none") -> Estimate:
    """70B on 64 H100s with 32 sequences in a step."""
    return layout.estimate(
        llama,
        layout.machine(h100),
        layout.Job(global_batch=32, seq=8192),
        layout.Layout(gpus=64, tp=tp, zero=zero, recompute=recompute),
    )


def legal(of: Model) -> str:
    """The numbers of tensor ranks, up to 16, over which a model's heads can be shared out."""
    found = [t for t in range(1, 17) if tensor.legal_ranks(of.heads, kv_heads=of.kv_heads, ranks=t)]
    return ", ".join(str(ranks) for ranks in found)


# -- what single sentences say -------------------------------------------------------------------------------
# seconds of the MLP's three products forward, on one of eight GPUs at the peak
products_s = 2 * 8192 * 3 * 8192 * 28672 / 8 / h100.bf16_flops_per_s
# the share that four H200s would lose by the rule, for a model of 8B
kempner_rule_share = lost_share(nvlink, gpu("h200"), ranks=4, of=llama_8b)
# ranks on NVLink that attention with fewer key heads allows
grouped_ranks = 1 + 1.125 * 8192 * nvlink.bytes_per_s / h100.bf16_flops_per_s
sixteen_gain = layer_s(ranks=8) / layer_s(ranks=16)  # a layer's time on 8 GPUs over that on 16
# state on each of 64 GPUs: TP 8 and ZeRO 1
state_on_64 = memory.sharded_state_bytes(params=parameters / 8, ranks=8, stage=1)
# the share of a layer that is arithmetic on eight GPUs
arithmetic_share = tensor.efficiency(compute_s(ranks=8), all_reduces_s=all_reduces_s(ranks=8))
# ranks that 8B affords on PCIe
pcie_ranks = useful_ranks(llama_8b, wire=link("pcie5"), each=gpu("h100-pcie"), matrices=3)
state_8b = memory.state_bytes(models.parameters(llama_8b))  # training state of Llama 3 8B
two_sums_s = compute_s(ranks=8) + all_reduces_s(ranks=8) / 2  # a layer with two AllReduces instead of four
# tokens at which TP sends as much as FSDP
equal_tokens = fsdp_bytes / (80 * 4 * tensor.column_row_bytes(tokens=1, hidden=8192, ranks=8))
tp_4_mfu = run(tp=4, zero=3).mfu()  # the MFU of TP 4 with ZeRO 3
