"""The choice among deployments that a figure makes at every move: the planner's own answers, and the same in
loops as over arrays."""

import random

import numpy as np
import pytest

from engine import catalog
from engine.serving import replica
from engine.serving.deployment import Limits, Load, choice, columns, finder
from engine.serving.deployment.frontier import frontier
from engine.step.layout import machine
from tests import node
from tests.cases import in_one_test
from widgets.kit.compiler import writer
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.symbols import control

USUAL = {
    "per_s": 8.0,
    "prompt": 2000.0,
    "spread": 0.6,
    "output": 200.0,
    "prefix": 0.0,
    "ttft": 1.0,
    "tpot": 0.05,
}
MODELS = ("llama3-8b", "qwen3-32b", "llama3-70b", "gpt-oss-120b", "deepseek-v3")
GPUS = ("h100-sxm", "h200", "b200", "mi300x")


def asked(model="llama3-70b", gpu="h100-sxm", weights=0, share=0.9, **change) -> tuple:
    """The arguments of ``choice``."""
    at = USUAL | change
    how = choice.FORMATS[weights]
    lengths = (at["prompt"], at["spread"], at["output"], at["spread"])
    costs = choice.costs(catalog.model(model), machine(catalog.gpu(gpu), how.precision), how.bytes, *lengths)
    return (at["per_s"], *lengths, at["prefix"], at["ttft"], at["tpot"], at.get("pause", 1e9), share, *costs)


def drawn(count: int) -> list[dict]:
    dice, found = random.Random(25), [{}, {"tpot": 0.02}, {"tpot": 0.005}, {"ttft": 0.05}]
    for _ in range(count):
        found.append(
            {
                "model": dice.choice(MODELS),
                "gpu": dice.choice(GPUS),
                "weights": dice.randrange(3),
                "share": dice.choice([0.5, 0.9, 0.99]),
                "per_s": 10 ** dice.uniform(-1, 2.5),
                "prompt": float(round(10 ** dice.uniform(1.5, 4.5))),
                "output": float(round(10 ** dice.uniform(0.5, 3.5))),
                "spread": dice.choice([0.0, 0.6, 1.2]),
                "prefix": dice.choice([0.0, 0.5, 0.9]),
                "ttft": 10 ** dice.uniform(-1, 1),
                "tpot": 10 ** dice.uniform(-2, -0.7),
                "pause": dice.choice([1e9, 1e9, 10 ** dice.uniform(-1.8, 0)]),
            }
        )
    return found


def test_the_loops_of_the_page_find_what_the_arrays_of_python_find():
    jobs, expected = [], []
    for given in (asked(**change) for change in drawn(8)):
        graph, names = Graph(), [f"n{i}" for i in range(len(given))]
        numbers = {name: each for name, each in zip(names, given) if not isinstance(each, np.ndarray)}
        symbols = [control(graph, n) if n in numbers else each for n, each in zip(names, given)]
        jobs.append((writer.function(graph, choice.choice(*symbols)), [numbers]))
        expected.append(choice.choice(*given))
    for [loops], arrays in zip(node.run(jobs), expected):
        for name, column in arrays.items():
            np.testing.assert_allclose(loops[name], column, 1e-9, 1e-9, err_msg=name)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tpot": 0.02},
        {"weights": 1},
        {"per_s": 40.0},
        {"prompt": 4000.0, "prefix": 0.8, "tpot": 0.03},
        {"model": "qwen3-32b", "gpu": "h200", "weights": 1, "ttft": 0.4},
    ],
)
def test_it_is_what_the_planner_expects_of_one_format(change):
    """The GPUs of the cheapest deployment in closed form, without pipelines, which cost more here."""
    at = USUAL | change
    how = choice.FORMATS[at.get("weights", 0)]
    load = Load(at["per_s"], int(at["prompt"]), int(at["output"]), at["spread"], at["spread"], at["prefix"])
    plan = finder.prepared(
        catalog.model(at.get("model", "llama3-70b")),
        machine(catalog.gpu(at.get("gpu", "h100-sxm"))),
        load,
        Limits(at["ttft"], at["tpot"]),
        (how.key,),
        ("bf16",),
        True,
        (),
        None,
    )
    found, best = choice.found(*asked(**change)), plan.expected()
    assert found.gpus[int(found.best)] == best.gpus
    assert best.replica.pp == 1
    assert found.kind_gpu[int(found.best)] == pytest.approx(best.tokens_per_s_per_gpu)
    all_of = frontier(plan)
    for speed, most in zip(choice.PER_USER[::12], found.frontier[::12]):
        reached = all_of.within & (all_of.per_user > speed)
        assert most <= np.max(np.where(reached, all_of.per_gpu, 0.0)) * (1 + 1e-9)


def test_one_replica_less_misses_what_it_is_bound_by():
    for change in ({}, {"tpot": 0.02}, {"per_s": 40.0}):
        found = choice.found(*asked(**change))
        for kind in np.flatnonzero(found.gpus > 0):
            reads, writes = int(found.prefill[kind]), int(found.decode[kind])
            assert found.bound[kind] != choice.SMALLEST or (writes == 1 and reads <= 1)


def test_a_tight_limit_binds_in_the_pool_that_writes():
    """At 20 ms a second replica that writes is there for the time of a token alone: at 25 ms one carries the
    same load. At 15 ms its TP 8 is: a replica of half the GPUs would carry the load, and be too slow."""

    def best(**change):
        found = choice.found(*asked(**change))
        kind = int(found.best)
        return found.prefill[kind], found.decode[kind], found.bound[kind]

    assert best(tpot=0.025) == (2, 1, columns.CAPACITY)
    assert best(tpot=0.02) == (2, 2, columns.TPOT)
    assert best(tpot=0.015) == (2, 1, columns.TPOT)


def test_a_tighter_limit_never_takes_fewer_and_nothing_is_kept_in_the_end():
    gpus = []
    for tpot in (0.1, 0.05, 0.03, 0.02, 0.015):
        found = choice.found(*asked(tpot=tpot))
        gpus.append(found.gpus[int(found.best)])
    assert gpus == sorted(gpus)
    none = choice.found(*asked(tpot=0.004))
    assert none.best == none.second == choice.NONE and max(none.why) == choice.SLOW
    assert max(choice.found(*asked(ttft=0.05)).why) == choice.LATE
    assert max(choice.found(*asked(model="deepseek-v3")).why) == choice.NO_ROOM


@in_one_test("model", [*MODELS, "llama3.1-405b"])
@in_one_test("gpu", GPUS)
def test_its_degrees_are_those_of_a_node(model, gpu):
    found = replica.in_a_node(catalog.model(model), machine(catalog.gpu(gpu)))
    assert tuple(one.tp for one in found) == choice.DEGREES
