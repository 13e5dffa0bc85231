"""Every public function of the cost model's parts, over its allowed domain and against bad input.

An argument of one name means one thing everywhere in these modules; so one strategy for each name tests them
all. ``domain`` derives it from the name unless DOMAIN lists it. Functions of whole jobs and layouts are
tested in test_layout.py, test_search.py and test_inference.py.
"""

import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.calibration import products
from engine.catalog.software import CHOICES
from engine.mechanism import (
    collectives,
    compute,
    experts,
    interconnect,
    matmul,
    pipeline,
    reliability,
    sequence,
    sharding,
)
from engine.mechanism.shape import shape
from tests.engine.mechanism import domain

MODULES = (interconnect, matmul, compute, sharding, sequence, experts, pipeline, reliability)
NOT_NUMBERS = {
    "wires",
    "burst_attention",
    "chip",
    "machine",
    "schedule",
    "algorithm",
    "supported_precision",
    "run",
    # functions of experts and pipelines that take objects or other functions' results; tested in their own
    # files
    "block",
    "layer",
    "every_other",
    "layer_share_of_peak",
    "total_s",
    "wires_s",
    "against",
    "collective",
    "exchange_s",
    "copies",
    "held_layers",
    "visited",
    "share_of_peak",
    "imbalance",
    "far_from_best",
    "shares",
}
FUNCTIONS = [
    f
    for module in MODULES
    for name, f in vars(module).items()
    if inspect.isfunction(f)
    and f.__module__ == module.__name__
    and not name.startswith("_")
    and name not in NOT_NUMBERS
] + [products.trained_product_s]

NET = interconnect.wires(catalog.gpu("h100-sxm"))
SHAPES = [
    shape(catalog.model(key)) for key in ("gpt2", "llama3-70b", "mixtral-8x7b", "deepseek-v3", "gemma3-12b")
]
whole, few = st.integers(1, 10**6).map(float), st.integers(1, 64).map(float)
seconds, size = st.floats(1e-9, 1e6), st.floats(0, 1e15)
# groups of ranks: (number of nodes, ranks in each)
DOMAIN = dict(
    cut=st.tuples(few, few, few)
    .map(sorted)
    .map(lambda each: pipeline.StageLayers(each[2], each[0], each[1])),
    buffer_bytes=size,
    sent_bytes=size,
    message_bytes=size,
    kv_bytes=size,
    window_bytes=size,
    expert_groups=st.sampled_from([0.0, 8.0]),
    top_groups=st.sampled_from([1.0, 4.0]),
    moved_bytes=size,
    params=st.floats(0, 1e13),
    ranks=st.integers(1, 64).map(lambda n: 8.0 * n),
    per_node=st.sampled_from([1.0, 2.0, 4.0, 8.0]),
    leaves_node=st.booleans(),
    in_a_node=st.booleans(),
    net=st.just(NET),
    spread=st.sampled_from(
        [interconnect.Spread(*each) for each in ((8, 1, 8, 8), (8, 2, 1, 7), (4, 3, 1, 2))]
    ),
    operation=st.sampled_from(collectives.OPERATIONS),
    gpu=st.sampled_from(list(catalog.all_gpus().values())),
    precision=st.sampled_from(["bf16", "fp8"]),
    calibration=st.just(interconnect.DEFAULT),
    filled=st.floats(0.01, 1.0),
    n=whole,
    k=whole,
    rows=whole,
    sum_bytes=st.just(8.0),
    at=st.sampled_from([matmul.chip(catalog.gpu("h100-sxm"), p) for p in ("bf16", "fp8")]),
    rates=st.just(matmul.chip(catalog.gpu("h100-sxm")).product),
    seq=whole,
    causal=st.sampled_from([0.0, 1.0]),
    shape=st.sampled_from(SHAPES),
    tokens=whole,
    ep=st.sampled_from([1.0, 2.0, 4.0]),
    expert_tp=st.sampled_from([1.0, 2.0]),
    imbalance=st.floats(1, 10),
    flash=st.booleans(),
    by_operators=st.booleans(),
    again=st.sampled_from([0.0, 1.0]),
    kernels=st.sampled_from(CHOICES["kernels"]),
    fused=st.booleans(),
    width=whole,
    products=st.sampled_from([s.attention for s in SHAPES]),
    recipe=st.sampled_from(list(catalog.uniform_recipes().values())),
    overlap=st.booleans(),
    zero=st.sampled_from([0.0, 1.0, 2.0, 3.0]),
    scatter=seconds,
    gather=seconds,
    micro_batches=whole,
    modules=st.sampled_from([(), ("layernorm", "mla_up_proj"), ("mlp", "moe_act"), ("moe", "core_attn")]),
    first=st.just(0.0),  # as an even cut has it
    last=st.just(0.0),
    loss=st.sampled_from(["plain", "chunked", "fused"]),
    stage=st.just(0.0),  # the only one that each pipeline has
    group=st.none(),  # follows from the others
    layers=whole,
    backward_over_forward=st.floats(0.1, 10),
    key=st.sampled_from(list(pipeline.SCHEDULES)),
    plan=st.sampled_from(list(pipeline.SCHEDULES.values())),
    gpus=st.integers(1, 10**6),
    failures=whole,
    failures_per_gpu_s=st.floats(1e-12, 1e-3),
    top_k=st.sampled_from([1.0, 2.0, 8.0]),
    experts=st.sampled_from([8.0, 64.0, 256.0]),
    capacity_factor=st.floats(0.1, 10),
    hidden=whole,
    gated=st.sampled_from([0.0, 1.0]),
    copies_per_choice=st.floats(0.01, 1),
    both_ways_bytes=st.sampled_from([3.0, 4.0]),
    matrices=st.sampled_from([2.0, 3.0]),
    bytes_per_param=st.sampled_from([1.0, 2.0]),
    model=st.sampled_from([catalog.model(key) for key in ("mixtral-8x7b", "deepseek-v3")]),
    activation_bytes=size,
    held=whole,
    per_year=st.floats(1e-3, 1e3),
    useful=st.floats(0, 1),
)
NUMBERS = {
    "buffer_bytes",
    "sent_bytes",
    "message_bytes",
    "kv_bytes",
    "moved_bytes",
    "params",
    "ranks",
    "m",
    "k",
    "rows",
    "tiles",
    "tokens",
    "stages",
    "layers",
    "checkpoint_s",
    "mtbf_s",
    "gpus",
    "score_pairs",
    "memory_bytes_per_s",
    "communication_s",
}


def drawn(data, function) -> dict:
    parameters = inspect.signature(function).parameters
    values = {name: data.draw(domain.of(name, DOMAIN), name) for name in parameters}
    if function in (sharding.exposed_once_s, sharding.exposed_scattering_s, sharding.exposed_each_time_s):
        values["replicas"] = data.draw(seconds)  # there the time that they take, not their number
    return values


def numbers_of(value):
    """All numbers in a result: a number, a tuple or a named tuple of them."""
    return [float(part) for part in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.__module__.split('.')[1]}.{f.__name__}")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_finite_and_never_negative(function, data):
    found = list(numbers_of(domain.called(function, drawn(data, function), DOMAIN, __file__)))
    assert found and all(np.isfinite(number) and number >= 0 for number in found)


CHECKED = [(f, name) for f in FUNCTIONS for name in inspect.signature(f).parameters if name in NUMBERS]


@pytest.mark.parametrize(("function", "name"), CHECKED, ids=lambda x: x if isinstance(x, str) else x.__name__)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), bad=st.sampled_from([-1.0, float("nan"), float("inf"), "many", None]))
def test_bad_numbers_are_refused(function, name, data, bad):
    with pytest.raises(ValueError, match=" must be "):
        function(**{**drawn(data, function), name: bad})
