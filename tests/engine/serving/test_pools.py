"""Two pools in closed form: by hand, against the papers, and against the events."""

import numpy as np
import pytest

from engine import catalog
from engine.serving import latencies, pools, queues, step_costs, under_traffic
from engine.serving.inference import decode_step, prefill
from engine.serving.under_traffic import Service, Traffic
from engine.step.layout import machine
from tests.said import refused

H100, LLAMA = machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")


def test_equal_work_takes_half_of_the_gpus():
    assert pools.prefill_share(2.0, 2.0) == 0.5 and pools.prefill_share(1.0, 3.0) == 0.25


def test_no_pool_does_nothing():
    for prompt_s, output_s in ((0.0, 1.0), (1.0, 0.0)):
        with refused("greater than 0"):
            pools.prefill_share(prompt_s, output_s)


def test_caches_go_over_400_gbit_per_s_unless_said_otherwise():
    """1,024 tokens of Llama 2 7B, in which every head has keys of its own, are 537 MB: one replica reads for
    another, and sends at most 93 prompts a second, though it reads more; two such wires carry more."""
    asked = (catalog.model("llama2-7b"), H100, 8, 1024, 16, 60.0, 1.0, 2.0)
    usual, twice = (pools.bargain(*asked, *wire).apart_per_s for wire in ((), (800e9 / 8,)))
    assert usual == pytest.approx(400e9 / 8 / (1024 * 2 * 32 * 4096 * 2), rel=1e-6)
    assert twice > usual


def test_a_cache_sent_layer_by_layer_by_hand():
    """Ten layers of 10 ms: over a wire that takes 50 ms for all, 5 ms are left; over one that takes 300 ms,
    the first layer leaves after 10 ms and the last arrives at 310 ms, 210 ms after the prefill."""
    assert pools.exposed_transfer_s(5e9, 1e11, 0.1, 10) == pytest.approx(0.005)
    assert pools.exposed_transfer_s(3e9, 1e10, 0.1, 10) == pytest.approx(0.21)


def test_the_best_split_by_hand():
    """DistServe's example (arXiv:2401.09670 section 1): 5.6 prompts/s and 10 answers/s of one GPU each: two
    to one, 3.3 a GPU."""
    best = pools.best_split(pools.Rates(5.6, 1e9, 10.0, 1.6, 0.1, 1e9), 3)
    assert best == (2.0, 10.0)


def test_an_answering_replica_takes_as_many_users_as_the_target_lets_it():
    users, token_s = np.array([1.0, 8, 64]), np.array([0.02, 0.025, 0.06])
    assert pools.answer_rate(users, token_s, 100.0, 0.05) == pytest.approx(8 / 2.5)
    assert pools.answer_rate(users, token_s, 100.0, 0.01) == 0


def test_the_best_split_is_where_two_lines_cross():
    """Two prompts a second against one answer: a third of the replicas should prefill."""
    split = pools.pools(np.arange(1.0, 12), 12.0, 2.0, 1e9, 1.0)
    assert np.argmax(split.goodput_per_s) + 1 == 4 and split.goodput_per_s.max() == 8
    assert pools.prefill_share(0.5, 1.0) == pytest.approx(4 / 12)
    assert pools.pools(np.array([4.0]), 12.0, 2.0, 0.5, 1.0).goodput_per_s[0] == 2  # a narrow wire


def test_the_closed_form_is_near_what_the_events_say():
    """Pools run at four fifths of the closed form's rate meet their targets; at one and a half times they do
    not. The form takes mean waits and equal lengths, and a run of 240 starts idle: that is the fifth."""
    steps = step_costs.costs(LLAMA, H100, 4, prompt=2000)
    prefill_s = float(np.interp(2000, steps.rows, steps.rows_s) + 2000**2 / 2 * steps.pair_s)
    users = steps.rows[:11]
    token_s = steps.rows_s[:11] + users * 2100 * steps.cached_s
    split = pools.pools(
        np.array([3.0]),
        6.0,
        queues.prefill_rate(prefill_s, 1.0),
        1e9,
        pools.answer_rate(users, token_s, 200.0, 0.05),
    )
    met = {}
    for share in (0.8, 1.5):
        traffic = Traffic(240, share * float(split.goodput_per_s[0]), 2000, 200, 0.0, 0.0, seed=3)
        felt = latencies.felt(
            under_traffic.run(steps, traffic, Service(2, 6, 3, 2048, wire_bytes_per_s=1e12))
        )
        met[share] = latencies.attained(felt, 1.0, 0.05, 240)
    assert met[0.8] > 0.9 > met[1.5] + 0.2


@pytest.mark.parametrize(("prompt", "output", "prefillers"), [(1500, 13, 35), (1020, 129, 25)])
def test_pools_are_sized_as_splitwise_sized_them(prompt, output, prefillers):
    """BLOOM-176B on 40 DGX-H100: 35 machines for prompts and 5 for tokens on the coding trace, 25 and 15 on
    conversations (section 6.2). By medians, with the 64 users at which its memory is full (section 3.4):
    three machines off at most."""
    bloom = catalog.model("bloom-176b")
    prompt_s = prefill(bloom, H100, 8, 1, prompt).total_s
    output_s = output * decode_step(bloom, H100, 8, 64, prompt).total_s / 64
    assert 40 * pools.prefill_share(prompt_s, output_s) == pytest.approx(prefillers, abs=3)


def test_pools_apart_buy_a_larger_batch_and_no_capacity():
    """Under a tight target the split serves more, with more answers at once; under none, sharing does: both
    spend S + n·t(u)/u of a replica on a request, and a split cannot keep every replica busy."""
    tight, loose = (pools.bargain(LLAMA, H100, 4, 2000, 300, 1.0, tpot_s, 16) for tpot_s in (0.03, 10.0))
    assert tight.users_apart > 4 * tight.users_sharing and tight.apart_per_s > 1.5 * tight.sharing_per_s
    assert loose.users_apart == loose.users_sharing and loose.apart_per_s < loose.sharing_per_s
    prompt_s = prefill(LLAMA, H100, 4, 1, 2000).total_s
    work_s = (
        prompt_s + 300 * decode_step(LLAMA, H100, 4, loose.users_sharing, 2150).total_s / loose.users_sharing
    )
    assert loose.sharing_per_s == pytest.approx(16 / work_s)
