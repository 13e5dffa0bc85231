"""Every public function over its whole allowed domain, and against bad input, found by the names of its
arguments.

An argument of one name means one thing everywhere in these modules; so one strategy for each name tests them
all. ``domain`` derives it from the name unless DOMAIN lists it.
"""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.catalog import hardware, models
from engine.mechanism import cost, flops, memory, roofline, walls
from tests.cases import in_one_test
from tests.engine.mechanism import domain

# of models: what makes a model or takes it apart, see test_layers.py
NOT_NUMBERS = (
    "described", "group_from", "sizes_of", "resized", "together", "attentions", "attended", "mlps", "blocks",
    "of_kind", "is_routed", "is_mixer", "has_mixers", "in_short_keys", "state_bytes", "expert_places",
)  # fmt: skip
MODULES = (memory, flops, roofline, walls, cost, models, hardware)
FUNCTIONS = [
    f
    for module in MODULES
    for name, f in vars(module).items()
    if inspect.isfunction(f)
    and f.__module__ == module.__name__
    and not name.startswith("_")
    and name not in ("layer_tensors", "contradiction", "bill")
    and not (module is models and name in NOT_NUMBERS)
]  # for ordinary attention alone; a model's numbers together; either hours or tokens: see
# test_data_parallel.py, test_own.py, test_cost.py

many, wide = st.integers(1, 10**6), st.floats(1e-3, 1e12)
flag = st.integers(0, 1)
DOMAIN = dict(
    tokens_per_param=st.floats(1, 1e4),
    params=st.floats(1e6, 1e13),
    tokens=st.floats(1, 1e14),
    tokens_per_step=st.floats(1, 1e9),
    tokens_per_gpu=st.floats(1, 1e9),
    recipe=st.sampled_from(list(catalog.uniform_recipes().values())),
    model=st.sampled_from(list(catalog.all_models().values())),
    gpu=st.sampled_from(list(catalog.all_gpus().values())),
    precision=st.sampled_from(hardware.PRECISIONS),
    ranks=st.integers(2, 10**6),
    stage=st.just(0),
    formats=st.sampled_from(["", "experts mxfp4", "rest fp8-block", "attention bf16, rest nvfp4"]),
    adapter=st.none(),  # see test_adapters.py; a model with linear attention has none
    loss=st.sampled_from(["plain", "chunked", "fused"]),
    pytorch=st.booleans(),
    modules=st.sampled_from([(), ("layernorm",), ("mlp", "moe_act"), ("moe",), ("core_attn",)]),
    micro_batches=many,
    rows=many,
    columns=many,
    inner=many,
    seq=many,
    batch=many,
    hidden=many,
    sequence_parallel=flag,
    flash=flag,
    causal=flag,
    block=st.just(0),
    saves_fp8=st.booleans(),
    weighs_early=st.booleans(),
    eager=st.booleans(),
    compiled=st.booleans(),
    recompute=st.integers(0, 2),
    bytes_per_logit=st.floats(2, 10),
    gradient_bytes=st.floats(1, 4),
    context_tokens=many,
    sequences=many,
    gpus=many,
    reserved_bytes_per_gpu=st.floats(0, 10e9),
    mfu=st.floats(0.01, 0.5),
    achievable_mfu=st.floats(0.5, 1),
    ceilings=st.lists(wide, min_size=3, max_size=3).map(np.array),
    ratios=st.lists(wide, min_size=4, max_size=4).map(np.array),
    loads=st.lists(wide, min_size=3, max_size=3).map(np.array),
    dollars_per_gpu_hour=st.floats(0.01, 1e3),
    gpu_hours=st.floats(0, 1e10),
    overhead_share=st.floats(0, 2),
    dollars=st.floats(0, 1e12),
    ratio=wide,
)
MAY_BE_MINUS_ONE = {"first_wall"}
THINGS = {"modules", "model", "recipe", "gpu", "precision", "block", "adapter"}
THINGS |= {"saves_fp8", "weighs_early", "eager", "compiled"}
VECTORS = {"ceilings", "ratios", "loads"}


def arguments(function):
    return list(inspect.signature(function).parameters)


def numeric_arguments(function):
    """The names of the arguments that are numbers, which a caller could get wrong."""
    return [a for a in arguments(function) if a not in VECTORS | THINGS]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.__module__.split('.')[1]}.{f.__name__}")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_finite_and_never_negative(function, data):
    values = {name: data.draw(domain.of(name, DOMAIN), name) for name in arguments(function)}
    result = domain.called(function, values, DOMAIN, __file__)
    if isinstance(result, models.Model):
        return
    assert np.isfinite(result).all()
    assert (np.asarray(result) >= (-1 if function.__name__ in MAY_BE_MINUS_ONE else 0)).all()


GOOD = dict(
    params=1e9,
    tokens=1e9,
    tokens_per_step=1e6,
    tokens_per_gpu=1e3,
    recipe=catalog.recipe("bf16-adam"),
    model=catalog.model("mixtral-8x7b"),
    gpu=catalog.gpu("h100-sxm"),
    precision="bf16",
    block=0,
    saves_fp8=False,
    weighs_early=False,
    eager=False,
    compiled=False,
    adapter=None,
    stage=0,
    ceilings=np.ones(3),
    ratios=np.ones(4),
    loads=np.ones(3),
    achievable_mfu=1.0,
    mfu=0.5,
    overhead_share=0.1,
    sequence_parallel=0,
    flash=1,
    causal=1,
    recompute=0,
    modules=(),
    reserved_bytes_per_gpu=0.0,
    ranks=8,
)


@in_one_test("bad", [float("nan"), float("inf"), -1, "seven"], ids=str)
@in_one_test(
    "function, name",
    [(f, a) for f in FUNCTIONS for a in numeric_arguments(f)],
    ids=lambda v: v if isinstance(v, str) else f"{v.__module__.split('.')[1]}.{v.__name__}",
)
def test_bad_numbers_are_refused_by_name(function, name, bad):
    good = {a: GOOD.get(a, 2) for a in arguments(function)}
    with pytest.raises(ValueError, match="must be"):
        function(**{**good, name: bad})


@in_one_test("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_function_says_what_it_does(function):
    assert len(function.__doc__ or "") > 20
