"""The search over deployments: by hand, against the equilibrium and published runs, monotone, legal."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import catalog, validation
from engine.catalog.models import described
from engine.mechanism import memory
from engine.serving import step_costs, under_traffic, wide
from engine.serving.deployment import Limits, Load, finder, rehearsal
from engine.serving.deployment.closed_forms import above
from engine.serving.deployment.columns import Tables
from engine.serving.deployment.forms import Forms, Plans
from engine.serving.deployment.rehearsal import Fleet
from engine.serving.drafts import Drafts
from engine.serving.replica import Replica
from engine.serving.under_traffic import MODES, Service, Traffic
from engine.step.layout import Machine

SMALL, LARGE = catalog.model("llama3.1-8b"), catalog.model("llama3-70b")
H100 = Machine.of("h100-sxm")
CHAT = Load(8, 1500, 200, 0.5, 0.5)
LIMITS = Limits(1.0, 0.05)
QUICK = {"formats": ("bf16", "fp8"), "top": 1}
PUBLISHED = Path(validation.__file__).parent / "published" / "serving.json"


def found(load=CHAT, limits=LIMITS, model=LARGE, at=H100, **how):
    return finder.deploy(model, at, load, limits, **(QUICK | how))


# -- by hand -------------------------------------------------------------------------------------------------
def test_one_request_at_a_time_on_one_gpu_is_two_steps_by_hand():
    """A prompt of 1,000 tokens is one step of 1,000 rows with its half million pairs; each of the 199 other
    tokens is a step of one row that reads a cache of 1,000 to 1,200 tokens."""
    best = found(Load(0.01, 1000, 200), Limits(1.0, 0.1), SMALL, formats=("bf16",)).best
    at = step_costs.costs(SMALL, H100, 1, 1000)
    prompt_s = np.interp(1000, at.rows, at.rows_s) + 1000 * 1000 / 2 * at.pair_s
    token_s = at.rows_s[0] + 1100 * at.cached_s
    assert (best.gpus, best.replica.tp, best.replicas, best.apart, best.binding) == (
        1,
        1,
        1,
        False,
        "smallest",
    )
    assert best.felt.tpot_s == pytest.approx(token_s, rel=0.01)
    chunks = -(-1000 // best.chunk)
    assert best.felt.ttft_s >= prompt_s * 0.99 and best.felt.ttft_s <= prompt_s + chunks * at.rows_s[0] * 1.5
    price = catalog.price("h100-sxm").dollars_per_hour
    assert best.dollars_per_million == pytest.approx(price / 3600 / (0.01 * 200) * 1e6)


def test_pools_of_two_degrees_read_at_one_speed_and_write_at_the_other():
    """One request at a time: the first token comes after the prompt on the front's GPUs, the others after the
    cache is sent, at the pace of the back's."""
    two, four = (step_costs.costs(LARGE, H100, tp, 1000) for tp in (2, 4))
    load = Load(0.01, 1000, 200)
    fleet = Fleet(four, 1, 1, 1, 8192.0, 64.0, 50e9, front=two)
    felt = rehearsal.run(fleet, load, LIMITS, 400)
    prompt_s = np.interp(1000, two.rows, two.rows_s) + 1000 * 1000 / 2 * two.pair_s
    token_s = four.rows_s[0] + 1100 * four.cached_s
    assert felt.ttft_s == pytest.approx(prompt_s, rel=1e-6)
    assert felt.tpot_s == pytest.approx(token_s + 1001 * four.kv_bytes / 50e9 / 199, rel=0.01)
    alike = rehearsal.run(fleet._replace(front=four), load, LIMITS, 400)
    assert alike == rehearsal.run(fleet._replace(front=None), load, LIMITS, 400) != felt


@pytest.mark.filterwarnings("ignore:invalid value")  # all of them wait for ever
def test_a_prefill_replica_needs_room_for_a_prompt_alone():
    costs = step_costs.costs(LARGE, H100, 4, 1000)
    fleet = Fleet(costs, 1, 1, 1, 8192.0, 64.0, 50e9, front=costs._replace(capacity=999))
    assert rehearsal.run(fleet, Load(0.01, 1000, 200), LIMITS, 200).ttft_s == np.inf
    fleet = fleet._replace(front=costs._replace(capacity=1000))
    assert rehearsal.run(fleet, Load(0.01, 1000, 200), LIMITS, 200).ttft_s < 1


def test_twice_the_load_of_a_full_gpu_takes_two():
    """Identical requests, no limit but that the server keeps up: capacity alone decides."""
    free = Limits(30.0, 1.0)
    plan, at = (
        Service(MODES["chunked"], 1, budget=8192, most_running=2048),
        step_costs.costs(SMALL, H100, 1, 1000),
    )
    can = under_traffic.balance(at, Traffic(1, 1.0, 1000, 200), plan)["per_s"]
    for times in (1, 2, 3):
        best = found(Load(0.8 * times * can, 1000, 200), free, SMALL, formats=("bf16",), pools=False).best
        assert best.gpus == times


# -- the closed forms ----------------------------------------------------------------------------------------
def judged_alone(
    load: Load, limits: Limits, costs, budget: float, p: int, d: int, wire: float = 50e9, front=None
):
    tables = Tables.of([costs, front or costs], [wire, wire])
    forms = Forms(load, limits, tables, (None,), finder.MOST_RUNNING)
    plans = Plans(*(np.array([value]) for value in (0, 1, budget, float(p), float(d), 0)))
    return forms, plans


def capacity(load: Load, costs, budget: float, p: int = 0, d: int = 1) -> float:
    """Requests a second up to which a unit keeps up."""
    low, high = 1e-6, 1e6
    while high / low > 1.0005:
        middle = (low * high) ** 0.5
        forms, plans = judged_alone(replace(load, per_s=middle), LIMITS, costs, budget, p, d)
        steady = forms.judge(plans, np.array([1.0])).steady[0]
        low, high = (middle, high) if steady else (low, middle)
    return low


@pytest.mark.parametrize(
    ("budget", "p", "d"), [(512, 0, 1), (2048, 0, 1), (8192, 0, 1), (8192, 1, 1), (8192, 3, 2)]
)
@pytest.mark.parametrize("load", [CHAT, Load(1, 300, 300, 0.4, 0.4), Load(1, 6000, 100)])
def test_a_unit_keeps_up_with_what_the_equilibrium_says(budget, p, d, load):
    """Above it by nothing, below it by little: a chunk is not spread evenly over the steps."""
    costs = step_costs.costs(LARGE, H100, 4, load.prompt)
    traffic = Traffic(1, 1.0, load.prompt, load.output, load.prompt_spread, load.output_spread)
    how = Service(MODES["disaggregated" if p else "chunked"], p + d, p, budget, finder.MOST_RUNNING, 50e9)
    fluid = under_traffic.balance(costs, traffic, how)["per_s"]
    assert 0.85 * fluid < capacity(load, costs, budget, p, d) < 1.03 * fluid


@pytest.mark.parametrize(
    ("tp", "budget", "p", "d", "front"),
    [(4, 1024, 0, 1, 4), (2, 8192, 0, 1, 2), (4, 8192, 3, 1, 4), (2, 8192, 2, 3, 2), (4, 8192, 2, 1, 8)],
)
def test_what_the_closed_forms_promise_a_simulation_keeps(tp, budget, p, d, front):
    """The fewest units of the closed forms, against the fewest that hold when they are simulated: within a
    seventh, or one."""
    load = replace(CHAT, per_s=30)
    costs, reads = (step_costs.costs(LARGE, H100, degree, load.prompt) for degree in (tp, front))
    forms, plans = judged_alone(load, LIMITS, costs, budget, p, d, front=reads)
    said = int(forms.fewest(plans)[0])

    def holds(units: int) -> bool:
        fleet = Fleet(costs, units, p, d, budget, 256.0, 50e9, front=reads)
        return not rehearsal.missed(rehearsal.run(fleet, load, LIMITS, 2000), LIMITS)

    slack = max(1, said // 7)
    assert holds(said + slack) and (said <= slack + 1 or not holds(said - slack - 1))


def test_the_normal_tail():
    for z, tail in ((0.0, 0.5), (1.0, 0.158655), (-1.0, 0.841345), (1.6449, 0.05), (3.0, 0.00135)):
        assert above(np.array([z]))[0] == pytest.approx(tail, abs=5e-4)


# -- the search ----------------------------------------------------------------------------------------------
def test_a_looser_limit_is_never_dearer():
    for tight, loose in (
        (Limits(0.6, 0.03), Limits(1.5, 0.03)),
        (Limits(1.0, 0.025), Limits(1.0, 0.06)),
        (Limits(1.0, 0.04, 0.95), Limits(1.0, 0.04, 0.8)),
    ):
        assert found(limits=loose, top=3).best.gpus <= found(limits=tight, top=3).best.gpus


def test_more_load_never_takes_fewer_gpus():
    gpus = [found(replace(CHAT, per_s=per_s), top=2).best.gpus for per_s in (1, 4, 12, 36)]
    assert gpus == sorted(gpus) and gpus[-1] > gpus[0]


def test_more_to_choose_from_is_never_dearer():
    one = found(formats=("bf16",), pools=False, top=2).best
    assert found(formats=("bf16",), top=2).best.gpus <= one.gpus
    assert found(top=2).best.gpus <= one.gpus


def test_what_a_prefix_cache_holds_is_not_read_again():
    cold, warm = (found(replace(CHAT, prefix_share=share, per_s=20)).best for share in (0.0, 0.9))
    assert warm.gpus < cold.gpus


def test_good_drafts_pay_where_tokens_are_wanted_quickly():
    limits = Limits(1.0, 0.012)
    good = Drafts(3, 0.8, 0.0005)
    without = found(limits=limits).best
    tried = found(limits=limits, drafts=(good, Drafts(3, 0.0, 0.01))).best
    assert tried.drafts == good and tried.gpus < without.gpus


@pytest.mark.parametrize("limits", [LIMITS, Limits(1.0, 0.02)])
def test_the_winner_holds_at_another_seed_in_a_longer_run(limits):
    result = found(limits=limits)
    best = result.best
    costs = step_costs.costs(LARGE, Machine.of("h100-sxm", best.weights), best.replica.tp, CHAT.prompt)
    p, d = (best.prefill_replicas, best.decode_replicas) if best.apart else (0, 1)
    units = 1 if best.apart else best.replicas
    fleet = Fleet(costs, units, p, d, best.chunk, best.largest_batch, best.replica.tp * 50e9)
    felt = rehearsal.run(fleet, CHAT, limits, 12_000, seed=11)
    assert felt.ttft_s <= limits.ttft_s + felt.ttft_error_s + best.felt.ttft_error_s
    assert felt.tpot_s <= limits.tpot_s + felt.tpot_error_s + best.felt.tpot_error_s
    assert best.felt.ttft_s <= limits.ttft_s and best.felt.tpot_s <= limits.tpot_s


def test_a_unit_less_would_miss_what_binds():
    chats = replace(CHAT, per_s=12)
    best = found(chats, formats=("bf16",), pools=False).best
    assert best.binding in ("ttft_s", "tpot_s", "capacity") and best.replicas > 1
    costs = step_costs.costs(LARGE, H100, best.replica.tp, CHAT.prompt)
    fleet = Fleet(costs, best.replicas - 1, 0, 1, best.chunk, best.largest_batch, best.replica.tp * 50e9)
    felt = rehearsal.run(fleet, chats, LIMITS, 2400)
    assert rehearsal.missed(felt, LIMITS)
    assert best.binding == "capacity" or getattr(felt, best.binding) > getattr(LIMITS, best.binding)


def test_every_row_is_legal_and_in_order():
    result = found(top=6, formats=None, caches=("bf16", "fp8"))
    rows = [result.best, *result.runners_up]
    assert len(rows) > 3 and [one.gpus for one in rows] == sorted(one.gpus for one in rows)
    for one in rows:
        assert LARGE.heads % one.replica.tp == 0 and 8 % one.replica.tp == 0 and one.replica.dp == 1
        assert one.gpus == one.prefill_replicas * one.reads.gpus + one.decode_replicas * one.replica.gpus
        assert 0 <= one.prefill_replicas < one.replicas and (one.apart or one.front is None)
        assert one.largest_batch >= one.running and one.chunk >= 256
        assert one.dearer_by == pytest.approx(one.gpus / result.best.gpus - 1)
        low, high = one.band_dollars_per_million
        assert low < one.dollars_per_million < high
    assert len({(one.replica, one.weights, one.kv_precision, one.apart) for one in rows}) == len(rows)


def test_a_replica_that_vllm_would_not_start_is_not_planned():
    """70B in fp8 leaves 5 GB of an H100, and vLLM takes 90 % of it, which leaves less than a long request."""
    chat = replace(CHAT, prompt_spread=0.5)
    assert not finder.starts(LARGE, Machine.of("h100-sxm", "fp8"), Replica(1), "bf16", None, 8192)
    assert finder.starts(LARGE, Machine.of("h200", "fp8"), Replica(1), "bf16", None, 8192)
    assert Replica(1) not in {one.replica for one in finder.kinds(LARGE, H100, chat, ("fp8",), ("bf16",))}


def test_the_fewest_units_are_those_that_one_by_one_finds():
    """However the search strides: one fewer misses, and so many hold."""
    tables = finder.kinds(LARGE, H100, CHAT, None, ("bf16",))
    costs, wires = [one.costs for one in tables], [one.wire_bytes_per_s for one in tables]
    forms = Forms(CHAT, LIMITS, Tables.of(costs, wires), (None,), finder.MOST_RUNNING)
    plans = finder.plans_of(tables, True, 1)
    fewest, share = forms.fewest(plans), LIMITS.share
    one_by_one = np.zeros_like(fewest)
    for units in range(1, 41):
        within = forms.judge(plans, np.full(len(fewest), float(units))).within(share)
        one_by_one = np.where((one_by_one == 0) & within, units, one_by_one)
    few = (fewest > 0) & (fewest <= 40)
    assert np.array_equal(fewest[few], one_by_one[few]) and np.sum(few) > 200


def test_formats_need_units():
    result = finder.deploy(SMALL, Machine.of("a100-80"), Load(1, 500, 100), LIMITS, top=9)
    assert {one.weights for one in (result.best, *result.runners_up)} == {"bf16", "int4"}


def test_closed_forms_are_quick_enough_to_drag():
    """The search itself, without simulations, in a tenth of a second of the processor and some slack."""
    import time

    tables = finder.kinds(LARGE, H100, CHAT, None, ("bf16",))
    forms = Forms(
        CHAT,
        LIMITS,
        Tables.of([one.costs for one in tables], [one.wire_bytes_per_s for one in tables]),
        (None,),
        finder.MOST_RUNNING,
    )
    plans = finder.plans_of(tables, True, 1)
    forms.fewest(plans)
    began = time.process_time()
    forms.fewest(plans)
    assert len(plans.table) > 200 and time.process_time() - began < 0.5


# -- bad input -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("load", "limits", "how", "says"),
    [
        (CHAT, Limits(0.02, 0.05), {}, "ttft_s must be at least 0.1.* prefix_share.* would help"),
        (CHAT, Limits(1.0, 0.001), {}, "tpot_s must be at least 0.00.* drafts.* would help"),
        (CHAT, LIMITS, {"gpus": 2}, r"gpus must be at least \d+ .* got 2"),
        (CHAT, LIMITS, {"formats": ("fp3",)}, "formats must be one of bf16, fp8, int4"),
        (CHAT, LIMITS, {"caches": ("int4",)}, "caches must be one of bf16, fp8"),
        (Load(1, 7000, 2000), LIMITS, {}, "at most 8192 tokens together for llama3-70b, got 7000"),
        (
            CHAT,
            LIMITS,
            {"at": Machine.of("rtx4090"), "model": catalog.model("llama3.1-405b"), "formats": ("bf16",)},
            "model must fit in 4 nodes of",
        ),
    ],
)
def test_a_load_that_cannot_be_served_says_why_and_what_would_help(load, limits, how, says):
    with pytest.raises(ValueError, match=says):
        found(load, limits, **how)


def test_a_value_that_a_refusal_names_is_possible():
    with pytest.raises(ValueError, match="at least ") as refused:
        found(limits=Limits(1.0, 0.001))
    least = float(str(refused.value).split("at least ")[1].split()[0])
    assert found(limits=Limits(1.0, 1.1 * least)).best.felt.tpot_s <= 1.1 * least
    with pytest.raises(ValueError, match="at least "):
        found(limits=Limits(1.0, 0.9 * least))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Load(0), "per_s must be greater than 0"),
        (lambda: Load(1, prompt=0), "prompt must be a whole number"),
        (lambda: Load(1, prefix_share=1.0), "prefix_share must be"),
        (lambda: Load(1, prompt_spread=3.0), "prompt_spread must be between 0 and 2"),
        (lambda: Load(1, output_spread=-0.1), "output_spread must be between 0 and 2"),
        (lambda: Limits(0, 1), "ttft_s must be greater than 0"),
        (lambda: Limits(1, 1, 1.0), "share must be"),
    ],
)
def test_loads_and_limits_check_their_arguments(make, says):
    with pytest.raises(ValueError, match=says):
        make()


# -- pipelines and experts over many GPUs --------------------------------------------------------------------
HUGE, V3 = catalog.model("llama3.1-405b"), catalog.model("deepseek-v3")


def test_405b_in_16_bits_is_served_by_a_pipeline_over_two_nodes():
    """810 GB do not fit in 640; two nodes have a stage of 63 layers each."""
    best = found(Load(0.01, 1000, 200), Limits(2.0, 0.1), HUGE, formats=("bf16",), pools=False).best
    assert (best.gpus, best.split, best.extrapolates) == (16, "1 × TP 8 PP 2", ("pp",))
    at = step_costs.costs(HUGE, H100, 8, 1000, pp=2)
    assert best.felt.tpot_s == pytest.approx(at.rows_s[0] + 1100 * at.cached_s, rel=0.01)


def test_two_batches_go_round_so_two_stages_carry_twice_a_batch():
    """No limit but that the server keeps up: what one batch can serve, twice."""
    costs, load = step_costs.costs(HUGE, H100, 8, 1000, pp=2), Load(1, 1000, 200)
    one = capacity(load, costs, 2048)
    assert capacity(load, costs, 2048, 0, 2) == pytest.approx(2 * one, rel=0.01)


def test_deepseek_v3_is_served_cheapest_with_its_experts_spread():
    """As DeepSeek and SGLang serve it; a pipeline of tensor groups takes two thirds more GPUs."""
    result = found(Load(50, 2000, 300, 0.6, 0.6), Limits(3.0, 0.1), V3, formats=("fp8",), top=5)
    rows = [result.best, *result.runners_up]
    assert result.best.apart and result.best.replica.dp > 1 and result.best.reads.dp > 1
    rivals = [one for one in rows if one.replica.dp == 1]
    assert rivals and min(one.gpus for one in rivals) >= 1.6 * result.best.gpus
    for one in rows:
        assert one.gpus % 8 == 0 and 256 % one.replica.dp == 0
        assert one.gpus == one.prefill_replicas * one.reads.gpus + one.decode_replicas * one.replica.gpus


def test_one_answer_of_groups_that_share_experts_by_hand():
    """An answer at a time: the prompt on one of 32 GPUs, then steps of one row on one of 64, each time with
    as many on the others."""
    machine = Machine.of("h100-sxm", "fp8")
    reads, writes = (
        step_costs.spread_costs(V3, machine, 1, dp, prompts, 2000, context=2150)
        for dp, prompts in ((32, True), (64, False))
    )
    fleet = Fleet(writes, 1, 1, 1, 8192.0, 64.0, 50e9, front=reads)
    felt = rehearsal.run(fleet, Load(0.01, 2000, 300), LIMITS, 400)
    prompt_s = np.interp(2000, reads.rows, reads.rows_s) + 2000 * 2000 / 2 * reads.pair_s
    token_s = writes.rows_s[0] + 2150 * writes.cached_s
    assert felt.ttft_s == pytest.approx(prompt_s, rel=1e-6)
    assert felt.tpot_s == pytest.approx(token_s + 2001 * writes.kv_bytes / 50e9 / 299, rel=0.01)


def test_a_full_group_writes_what_wide_says():
    """The costs of the search, put together again, are the step's own time at the lengths asked."""
    machine = Machine.of("h100-sxm", "fp8")
    costs = step_costs.spread_costs(V3, machine, 1, 64, False, 2000, context=2000)
    for batch in (16, 64, 256):
        step_s = np.interp(batch, costs.rows, costs.rows_s) + batch * 2000 * costs.cached_s
        assert step_s == pytest.approx(wide.decode_s(V3, machine, 1, 64, batch, 2000), rel=0.03)
    free = memory.server_bytes(machine.gpu) - wide.weight_bytes_per_gpu(V3, machine, 1, 64)
    assert costs.capacity == np.floor(free / costs.kv_bytes)


# -- published runs ------------------------------------------------------------------------------------------
def saturated() -> list[dict]:
    """Runs that a queue kept full: dense models, weights and products in one format."""
    cases = json.loads(PUBLISHED.read_text())
    return [
        case
        for case in cases
        if case["group"] == "throughput, TensorRT-LLM 1.0"
        and not case["fitted"]
        and case["precision"] in ("bf16", "fp16", "fp8")
        and isinstance(case["model"], dict)
    ]


def test_what_a_replica_can_serve_is_what_published_runs_served():
    """The planner's own figure, requests a second that a replica keeps up with, against the tokens a second
    of TensorRT-LLM's tables: on average well within the 15 % that the validation page allows."""
    off = {}
    for case in saturated():
        asked = case["serving"]
        model = described(key=case["id"], name=case["id"], **case["model"])
        at = Machine.of(case["gpu"], case["precision"])
        kept = asked.get("kv_precision", "bf16")
        load, stored = Load(1, asked["prompt"], asked["output"]), asked.get("weight_precision")
        context = finder.context_of(load)
        costs = step_costs.costs(model, at, asked["tp"], load.prompt, kept, stored, context=context)
        ours = capacity(load, costs, 8192) * asked["output"]
        off[case["id"]] = ours / case["measured"]["tokens_per_s"] - 1.0
    assert len(off) > 40
    assert np.mean(np.abs(list(off.values()))) < 0.12, off
