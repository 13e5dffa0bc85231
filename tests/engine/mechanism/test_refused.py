"""What is no number is refused by every function that could be given it, and not carried along.

The arguments are found by their annotation, so that a new function is tested without an entry here. Those
that are taken as they are, since a caller has checked them, are listed.
"""

import importlib
import inspect
import pkgutil

import pytest

import engine.mechanism
from engine import catalog
from engine.calibration import known
from engine.mechanism import experts, hierarchy, pipeline
from engine.mechanism.adapters import Adapter
from engine.mechanism.shape import shape
from engine.step.layout import machine

AT, MODEL = machine(catalog.gpu("h100-sxm")), catalog.model("mixtral-8x7b")
# what an argument is given that is no number, by its annotation …
THINGS = {
    "Gpu": AT.gpu,
    "ExpertNode": experts.ExpertNode.of(catalog.node_of("h100-sxm")),
    "Wires": AT.wires,
    "Chip": AT.chip,
    "matmul.Chip": AT.chip,
    "Gemm": known.gemm("h100-sxm").rates,
    "Link": catalog.link("ib-ndr"),
    "Torus": AT.wires.torus,
    "Hierarchy": hierarchy.hierarchies()["h100-sxm"],
    "Copies": experts.Copies(1.75, 0.0),
    "Schedule": pipeline.SCHEDULES["interleaved"],
    "Model": MODEL,
    "models.Model": MODEL,
    "Model | None": MODEL,
    "Shape": shape(MODEL),
    "Shape | models.Model": MODEL,
    "ExpertSizes | models.Model": MODEL,
    "Recipe": catalog.recipe("bf16-adam"),
    "Recipe | None": catalog.recipe("bf16-adam"),
    "Adapter": Adapter(base="nf4"),
    "Adapter | None": None,
    "bool": False,
    "tuple[str, ...]": (),
}
# … or by its name; of the numbers all are 2 that may be
USUAL = {
    "adapters": 2,
    "operation": "all_reduce",
    "op": "all_reduce",
    "precision": "bf16",
    "key": "1f1b",
    "stage": 0,
    "ranks": 8,
    "tolerance": 0.1,
    "mfu": 0.5,
    "share": 0.5,
    "causal": 1,
    "flash": 1,
    "sequence_parallel": 0,
    "nic_bytes_per_s": 50e9,
    "useful": 0.5,
    "best_useful": 0.5,
    "far": 0.1,
    "narrowed_share": 0.5,
    "overhead_share": 0.1,
    "ceilings": [2.0] * 3,
    "ratios": [2.0] * 4,
    "loads": [2.0] * 3,
}
NUMBERS = {"Real", "Real | None", "float", "int", "Truth"}
AS_THEY_ARE = """
adapters.layer_parameters tp ep expert_tp
adapters.unpacked_bytes tp
adapters.saved_flops_per_token matmul_params
budget.rebuilds_most params
budget.slider_at_wall totals
collectives.pipelined_s hops_s transfer_s
collectives.as_fast times_s best_s tolerance
compute.streamed_bytes tp whole_ranks width
compute.moved_bytes tp whole_ranks width
compute.eager_bytes tp whole_ranks width
compute.operator_bytes hidden width
compute.head chunks
compute.repeated_flops_per_token causal
context_parallel.position rank token block order
context_parallel.block_owner rank step
context_parallel.user_of owner step
context_parallel.step_of rank owner
context_parallel.used_share moment rank owner
context_parallel.seen_keys rank token owner block order
context_parallel.tokens_that_see_fewer keys rank owner block order
context_parallel.block_pairs rank step order
context_parallel.step_pairs step order
context_parallel.mean_pairs order
context_parallel.ring_busy_share order
context_parallel.hidden_from_tokens order value_bytes
context_parallel.hidden_from_tokens_with_latency order
context_parallel.ring_step_s step
context_parallel.ring_axis_s whole_block_s message_s
experts.expert_flops gated
experts.layer_share_of_peak fp8
experts.share_of_peak gated
experts.distinct_groups experts
experts.copies experts
experts.visited experts node_limit
experts.nodes_allowed nodes expert_groups top_groups
experts.rows_of top_k
experts.in_a_node ep
experts.held_bytes bytes_per_param
mesh.node rank
pipeline.imbalance slowest_s all_s stages
pipeline.against_1f1b held
pipeline.chunks_of chunks
pipeline.held_layers layers missing flight stages micro_batches chunks stage
pipeline.stage_layers layers stages chunks
placement.coordinate gpu size stride
placement.group gpu size stride
placement.leaving sent_bytes ranks together
reliability.far_from_best far
roofline.binding_ceiling ceilings
roofline.attained_share ceilings
sharding.exposed_once_s zero
sharding.exposed_each_time_s micro_batches
torus.span ranks
torus.hops_s ranks
torus.gather_s buffer_bytes ranks
torus.all_reduce_s buffer_bytes ranks
torus.all_to_all_s sent_bytes ranks
walls.first_wall ratios
walls.largest_params ratios
walls.binding_load loads
wires.scaled link nic
wires.plain gpus_per_node link_bytes_per_s nic_bytes_per_s link_hop_s network_hop_s start_s
"""
# these are refused by the function that is called, which names its own argument
BY_ANOTHER_NAME = """
adapters.layer_s tokens tp ep expert_tp imbalance
compute.cast_s rows width
compute.joined tokens tp
context_parallel.ring_sent_bytes seq
experts.gather_s expert_tp
experts.shared_s tokens hidden width gated
experts.share_of_peak local
experts.visited ep per_node
experts.exchange_s ep
experts.layer_share_of_peak tokens imbalance experts_time_s
interconnect.all_gather_s buffer_bytes
interconnect.ring_s buffer_bytes
interconnect.tree_s buffer_bytes
interconnect.nvls_s buffer_bytes
interconnect.one_shot_s buffer_bytes
interconnect.all_reduce_s buffer_bytes
interconnect.all_to_all_s sent_bytes
roofline.critical_batch hbm_bytes_per_s
roofline.held_sequences bytes_per_kv_value
sharding.scatter_s pieces
sharding.gather_s pieces
sharding.reduce_s pieces
sharding.across_replicas_s replicas
sharding.exposed_once_s scatter gather replicas forward_s backward_s
sharding.exposed_scattering_s micro_batches scatter gather replicas forward_s backward_s
sharding.exposed_each_time_s scatter gather replicas forward_s backward_s again
walls.step_ratio tokens_per_step
walls.wall_ratios tokens_per_step
"""
# bits and integers, of which the figure's callers make no mistake
LEFT_OUT = {"precision", "pipeline_orders", "timeline"}

MODULES = [
    importlib.import_module(f"engine.mechanism.{one.name}")
    for one in pkgutil.iter_modules(engine.mechanism.__path__)
    if one.name not in LEFT_OUT
]


def listed(text: str, stem: str) -> dict[str, set[str]]:
    """The arguments that a list has, by function, of the functions of a module."""
    rows = [line.split() for line in text.strip().splitlines()]
    return {function: set(names) for function, *names in rows if function.startswith(f"{stem}.")}


def given(function) -> dict | None:
    """An argument of each name; None where one is a thing that no other test's business is to make."""
    found = {}
    for name, one in inspect.signature(function).parameters.items():
        if name in USUAL or one.annotation in NUMBERS:
            found[name] = USUAL.get(name, 2)
        elif one.annotation in THINGS:
            found[name] = THINGS[one.annotation]
        elif name == "model":
            found[name] = MODEL
        elif one.default is not inspect.Parameter.empty:
            found[name] = one.default
        else:
            return None
    return found


def functions(module) -> list:
    return [
        each
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rsplit(".", 1)[1])
def test_a_number_that_is_none_is_refused(module):
    carried, renamed, stem = {}, {}, module.__name__.rsplit(".", 1)[1]
    for function in functions(module):
        good = given(function)
        if good is None:
            continue
        for name, one in inspect.signature(function).parameters.items():
            if one.annotation != "Real":
                continue
            try:
                function(**{**good, name: float("nan")})
                said = ""
            except Exception as error:
                said = str(error)
            if f"{name} must be finite" != said[: len(name) + 15]:
                found = renamed if "must be finite" in said else carried
                found.setdefault(f"{stem}.{function.__name__}", set()).add(name)
    assert carried == listed(AS_THEY_ARE, stem) and renamed == listed(BY_ANOTHER_NAME, stem)


def test_most_functions_are_asked():
    every = [function for module in MODULES for function in functions(module)]
    assert sum(given(function) is not None for function in every) > 0.75 * len(every)
