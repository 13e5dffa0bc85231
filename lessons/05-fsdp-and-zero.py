"""The numbers of lesson 05, FSDP and ZeRO."""

from typing import Any

from engine.catalog import gpu, link, model, models, node, recipe
from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.executed import executed_training, fully_sharded, zero
from engine.executed.fully_sharded import ShardedLayer
from engine.executed.zero import StepTraffic
from engine.mechanism import budget, hiding, matmul, memory, sharding, start_ups
from engine.mechanism.adapters import Adapter
from engine.one_gpu import recordings
from engine.step import layout
from engine.step.layout import Estimate

llama_8b = model("llama3-8b")  # Llama 3 8B
llama_70b = model("llama3-70b")  # Llama 3 70B
llama_13b = model("llama2-13b")  # Llama 2 13B
deepseek = model("deepseek-v3")  # DeepSeek-V3
h100 = gpu("h100-sxm")  # an H100
a100 = gpu("a100-40")  # the smaller A100
adam = recipe("bf16-adam")  # bf16 with Adam in fp32
cards = node("dgx-h100").outgoing_bytes_per_s  # the eight cards of a DGX node together
kernels = matmul.product_flops_per_s(h100)  # the FLOP/s of an H100 while its kernels run (lesson 01)


def layer(
    tokens: int = 4096, ranks: int = 64, alpha_s: float = start_ups.mean_hop_s(node("dgx-h100"))
) -> ShardedLayer:
    """A layer of 8B: its arithmetic and its collectives."""
    return fully_sharded.transformer_layer(
        llama_8b, tokens, ranks, flops_per_s=kernels, wire_bytes_per_s=400e9, alpha_s=alpha_s
    )


def waits(prefetch: int) -> dict[str, Any]:
    """Eight of these layers, with so many gathered ahead."""
    return fully_sharded.run(layer(), layers=8, prefetch=prefetch)


task = executed_training.problem()  # the small network that is trained on this page


def traffic(
    group: int, stage: int, nic_bytes_per_s: float = 12.5e9 / 8, micro_batches: int = 8
) -> StepTraffic:
    """What the run on 64 H100s sends in a step, with one slow card a node and eight micro-batches unless
    said."""
    return zero.step_traffic(
        7.5e9,
        ranks=64,
        group=group,
        stage=stage,
        recipe=adam,
        gpu=h100,
        nic_bytes_per_s=nic_bytes_per_s,
        micro_batches=micro_batches,
    )


def arithmetic_s(micro_batches: int = 8) -> float:
    """Seconds that it computes in a step."""
    return zero.arithmetic_s(7.5e9, tokens=4096, flops_per_s=kernels, micro_batches=micro_batches)


def pressure(stage: int) -> float:
    """The longest wire time of a pass, over the pass it must hide behind."""
    return zero.behind_passes(traffic(64, stage), stage, arithmetic_s(), micro_batches=8).pressure


def exposed_s(group: int, stage: int) -> float:
    """Seconds that it waits in a step."""
    return zero.exposed_s(traffic(group, stage), stage, arithmetic_s(), micro_batches=8)


def tokens_to_hide(wire_bytes_per_s: float) -> float:
    """Tokens on each of 64 H100s that hide a gather."""
    return hiding.tokens_to_hide(ranks=64, wire_bytes_per_s=wire_bytes_per_s, flops_per_s=kernels)


def recomputed_bytes(of: Model, seq: int) -> float:
    """Activations with full checkpointing."""
    return memory.peak_activation_bytes(of, seq=seq, micro_batch=1, recompute=memory.FULL)


# the run of the envelope as the engine estimates it
envelope = layout.estimate(
    llama_70b,
    layout.machine(h100),
    layout.Job(global_batch=64, seq=8192),
    layout.Layout(gpus=64, zero=3, recompute="full"),
)
# what it sends
envelope_traffic = zero.step_traffic(
    models.parameters(llama_70b), ranks=64, group=64, stage=3, recipe=adam, gpu=h100, nic_bytes_per_s=50e9
)
# seconds that it computes
envelope_arithmetic_s = zero.arithmetic_s(models.parameters(llama_70b), tokens=8192, flops_per_s=kernels)
seventy = recordings.load("fsdp_70b")  # what PyTorch counts of the program on this page
collectives_70b = seventy["gathers"] + seventy["scatters"]  # its gathers and scatters in a step
# the logits of one sequence at their worst
logits_70b = memory.logits_peak_bytes(llama_70b, seq=8192, micro_batch=1)
layers_70b = 2 * memory.weight_bytes(models.layer_parameters(llama_70b))  # the weights of two layers
# what a GPU holds, added up by hand
by_hand_70b = (
    memory.sharded_state_bytes(models.parameters(llama_70b), ranks=64, stage=3)
    + 2 * layers_70b
    + recomputed_bytes(llama_70b, seq=8192)
    + logits_70b
    + memory.FRAMEWORK_BYTES
)
# the opening case under stage 3 and full checkpointing
opening = layout.estimate(
    llama_13b,
    layout.machine(a100),
    layout.Job(global_batch=256, seq=4096),
    layout.Layout(gpus=16, zero=3, recompute="full"),
)


def fsdp2(kind: Recipe, seq: int = 8192) -> Estimate:
    """A step of 70B under FSDP2 on eight DGX H100 nodes, as the engine estimates it."""
    return layout.estimate(
        llama_70b,
        layout.machine(h100),
        layout.Job(global_batch=64, seq=seq, recipe=kind),
        layout.Layout(gpus=64, zero=3, recompute="full"),
    )


def fsdp2_wires_s(kind: Recipe) -> float:
    """Seconds of its gathers and scatters, layer by layer."""
    return 2 * sharding.gather_s(
        models.parameters(llama_70b), 64, 1, kind, 80, layout.machine(h100).wires
    ) + sharding.scatter_s(models.parameters(llama_70b), 64, 1, kind, 80, layout.machine(h100).wires)


params_of_a_stage = models.parameters(llama_70b) / 8  # Llama 3 70B cut into eight pipeline stages


def pipeline_sent_bytes(stage: int, micro_batches: int = 16) -> float:
    """Bytes that each of eight data-parallel GPUs of a pipeline stage sends in a step: by the rule for
    micro-batches, two bytes an element."""
    elements = {1: 2, 2: micro_batches + 1, 3: 3 * micro_batches}[stage]
    return 2 * elements * params_of_a_stage * 7 / 8


# what stage 3 frees beyond stage 1 on each of the GPUs of such a pipeline stage
stage_3_frees_of_a_stage = memory.sharded_state_bytes(
    params_of_a_stage, ranks=8, stage=1
) - memory.sharded_state_bytes(params_of_a_stage, ranks=8, stage=3)
# what stage 3 sends there over what stage 1 sends
stage_3_sends_over_stage_1 = pipeline_sent_bytes(stage=3) / pipeline_sent_bytes(stage=1)
lora = Adapter(rank=16)  # adapters on all matrices of a layer, over frozen weights in bf16
qlora = Adapter(rank=16, base="nf4-double")  # the same over four bits, their scales quantised too


# all that fine-tuning a round 8B needs on one GPU, as the figure counts it
full_8b_bytes = budget.total_bytes(8e9, models.typical(8e9), adam, 4096, 1, memory.FULL)


def tuned(adapter: Adapter | None) -> Estimate:
    """Fine-tuning Llama 3 8B on one H100, one sequence of 4,096 tokens, full checkpointing."""
    return layout.estimate(
        llama_8b,
        layout.machine(h100),
        layout.Job(global_batch=1, seq=4096, adapter=adapter),
        layout.Layout(gpus=1, zero=0, recompute="full"),
    )


def on_eight(stage: int) -> float:
    """State of 7B on each of eight GPUs."""
    return memory.sharded_state_bytes(7e9, ranks=8, stage=stage)


def least_ranks(kind: Recipe) -> float:
    """H100s that hold 13B with a sharded optimizer."""
    return zero.ranks_to_fit(13e9, hbm_bytes=h100.hbm_bytes, recipe=kind, stage=1)


def two_layers(prefetch: int) -> dict[str, Any]:
    """The timeline of the exercise."""
    return fully_sharded.run(
        fully_sharded.ShardedLayer(
            forward_s=2e-3,
            backward_s=4e-3,
            gather_s=1e-3,
            scatter_s=1e-3,
            weight_bytes=1.0,
            gradient_bytes=1.0,
            activation_bytes=0.0,
        ),
        layers=2,
        prefetch=prefetch,
    )


# tokens on each of 16 A100s that hide a gather
a100_tokens_to_hide = hiding.tokens_to_hide(
    ranks=16, wire_bytes_per_s=8 * a100.nic_bytes_per_s, flops_per_s=matmul.product_flops_per_s(a100)
)

# -- what single sentences say -------------------------------------------------------------------------------
state_13b = memory.state_bytes(models.parameters(llama_13b))  # training state of Llama 2 13B
# that state over the memory of an A100
state_13b_over_a100 = memory.against_hbm(memory.state_bytes(models.parameters(llama_13b)), a100)
# the most parameters that an H100 ever holds under stage 1
most_under_stage_1 = zero.largest_params(h100.hbm_bytes, recipe=adam, ranks=10**9, stage=1)
# the most under stage 2
most_under_stage_2 = zero.largest_params(h100.hbm_bytes, recipe=adam, ranks=10**9, stage=2)
# what stage 3 sends
stage_3_bytes = fully_sharded.traffic_bytes(params=7.5e9, ranks=64, stage=3, recipe=adam)
# what stage 2 sends
stage_2_bytes = fully_sharded.traffic_bytes(params=7.5e9, ranks=64, stage=2, recipe=adam)
# weights that stage 3 has gathered at its fullest moment
gathered_weights = executed_training.train(task, ranks=4, stage=3, steps=5).peak_gathered
# tokens that hide the traffic behind a single card of Ethernet
one_card_tokens = tokens_to_hide(link("eth-100").bytes_per_s)
# all parameters of DeepSeek-V3 over those that a token uses
experts_factor = models.parameters(deepseek) / models.active_parameters(deepseek)
# state of Llama 3 70B on each of 64 GPUs
state_of_70b = memory.sharded_state_bytes(models.parameters(llama_70b), ranks=64, stage=3)
layer_weights_70b = memory.weight_bytes(models.layer_parameters(llama_70b))  # weights of one of its layers
# two layers gathered, and two layers' gradients
layers_gathered_70b = 4 * memory.weight_bytes(models.layer_parameters(llama_70b))
hop_s = start_ups.mean_hop_s(node("dgx-h100"))  # the mean start-up of a hop in a ring through DGX nodes
# what leaves the node of each GPU's traffic, in groups of eight
leaves_the_node_bytes = 2 * fully_sharded.replica_elements(params=7.5e9, shard_ranks=8, replicas=8)
step_of_eight_s = arithmetic_s() + exposed_s(group=8, stage=3)  # the step with groups of eight
step_of_64_s = arithmetic_s() + exposed_s(group=64, stage=3)  # the step fully sharded
# state of Llama 3 8B on each of 64 GPUs
state_of_8b = memory.sharded_state_bytes(models.parameters(llama_8b), ranks=64, stage=3)
# state of Llama 2 13B on each of 16 GPUs under stage 3
sharded_13b = memory.sharded_state_bytes(models.parameters(llama_13b), ranks=16, stage=3)
# seconds that gradients and weights of 13B take over PCIe in a step
offload_s = 2 * memory.weight_bytes(13e9) / link("pcie4").bytes_per_s
# start-ups of all gathers and scatters of the 70B's step
start_ups_70b_s = collectives_70b * 63 * start_ups.mean_hop_s(node("dgx-h100"), 64)
stage_3_frees = on_eight(stage=1) - on_eight(stage=3)  # what stage 3 frees beyond stage 1, on eight GPUs
least_ranks_8bit = least_ranks(recipe("adam-8bit"))  # the least GPUs for 13B with Adam in eight bits
# weights that stage 2 keeps whole
whole_weights = zero.whole_bytes(models.parameters(llama_13b), recipe=adam, stage=2)
# state of 13B on each of 16 GPUs under stage 2
stage_2_state = memory.sharded_state_bytes(models.parameters(llama_13b), ranks=16, stage=2)
# the arithmetic of Muon's five rounds on a matrix of width 4,096, over a step of 4M tokens: s·m/B at most
muon_overhead = 5 * 4096 / 4e6
