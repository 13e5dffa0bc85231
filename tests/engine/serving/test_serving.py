"""Serving under traffic: the steps of ``costs`` are those of ``inference``, and the closed forms are those of
the papers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.serving import decoding, inference, serving, serving_events
from engine.serving.inference import Serving, decode_step, prefill
from engine.serving.serving import Service, Traffic
from engine.step.layout import machine

H100, LLAMA = machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")
STEPS = serving.costs(LLAMA, H100, 4, prompt=2048)


@pytest.mark.parametrize("batch, context", [(1, 500), (8, 2000), (64, 4096), (256, 1000)])
def test_a_decode_step_is_that_of_inference(batch, context):
    ours = np.interp(batch, STEPS.rows, STEPS.rows_s) + batch * context * STEPS.cached_s
    exact_s = decode_step(LLAMA, H100, 4, batch, context).total_s
    assert ours == pytest.approx(exact_s, rel=0.02)  # reading a cached token costs what it does at 2,048


@pytest.mark.parametrize("prompt", [1024, 2048, 4096])
def test_a_prefill_is_that_of_inference(prompt):
    """Within two per cent: the output layer counts 256 rows, and attention the efficiency of 2,048 tokens."""
    ours = np.interp(prompt, STEPS.rows, STEPS.rows_s) + prompt**2 / 2 * STEPS.pair_s
    assert ours == pytest.approx(prefill(LLAMA, H100, 4, 1, prompt).total_s, rel=0.02)


def test_the_cache_that_fits_is_that_of_inference():
    """By hand: 80 GB less 2 GB and a quarter of the weights, over 2·80·8·128·2 bytes in four shards."""
    fitting = inference.largest_batch(LLAMA, H100, Serving(4, prompt=1000, output=1000))
    assert STEPS.capacity // 2000 == fitting
    assert STEPS.kv_bytes == 327_680


def test_a_run_conserves_tokens_and_says_who_was_busy():
    traffic = Traffic(200, 6.0, 1500, 200, 0.6, 0.6, seed=2)
    service = Service(serving.MODES["prefill_first"], 4, warm=False)
    columns = serving.run(STEPS, traffic, service)
    served = columns["last_s"][:200]
    assert (served > 0).all() and columns["put_out"][:200].sum() == 0
    busy, end = columns["busy_s"][:4], served.max()
    assert (busy <= end + 1).all() and np.isnan(columns["busy_s"][4:]).all()  # the last step may go beyond
    came, prompts, _ = serving_events.drawn(800, 6.0, 1500, 0.6, 200, 0.6, 2)
    least = sum(np.interp(p, STEPS.rows, STEPS.rows_s) for at, p in zip(came, prompts) if at <= end)
    assert columns["prefilling_s"][:4].sum() == pytest.approx(
        least, rel=0.15
    )  # prompts that share a step pay once


def test_disaggregation_trades_first_tokens_for_steady_ones():
    """DistServe's point (arXiv:2401.09670 section 3): decoding alone has no pauses; and a third of the GPUs
    left for prompts answer later."""
    traffic = Traffic(200, 9.0, 2000, 150, 0.5, 0.5, seed=1)
    together, apart = (
        serving.run(STEPS, traffic, Service(serving.MODES[mode], 6, 2))
        for mode in ("prefill_first", "disaggregated")
    )
    one, two = serving.felt(together), serving.felt(apart)
    assert serving.percentile(two.pause_s, 0.5) < serving.percentile(one.pause_s, 0.5) / 2
    assert serving.percentile(two.ttft_s, 0.9) > serving.percentile(one.ttft_s, 0.9)


def test_targets_are_met_by_all_by_some_and_by_none():
    columns = serving.run(STEPS, Traffic(100, 4.0, 1000, 100, 0.5, 0.5), Service(0, 2))
    latencies = serving.felt(columns)
    middle = serving.percentile(latencies.ttft_s, 0.5)
    assert (
        serving.attained(latencies, 1e9, 1e9, 100) == 1 and serving.attained(latencies, 1e-9, 1e9, 100) == 0
    )
    assert serving.attained(latencies, middle, 1e9, 100) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"requests": 241}, "requests must be"),
        ({"per_s": 0}, "per_s must be"),
        ({"prompt": -1}, "prompt must be"),
        ({"prompt_spread": -1}, "prompt_spread must be"),
    ],
)
def test_bad_traffic_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        serving.run(STEPS, Traffic(10, 1.0, 100, 10)._replace(**change), Service(0, 1))


def test_pools_apart_need_one_of_each():
    with pytest.raises(ValueError, match="prefill_instances must be"):
        serving.run(STEPS, Traffic(10, 1.0, 100, 10), Service(serving.MODES["disaggregated"], 2, 2))


def test_a_single_token_has_no_time_between_tokens_and_a_refused_request_nothing():
    columns = {
        name: np.array(values)
        for name, values in {
            "came_s": [0.0, 1.0, 2.0],
            "first_s": [0.5, 2.0, -1.0],
            "last_s": [0.5, 5.0, -1.0],
            "output": [1.0, 4.0, 9.0],
            "pause_s": [0.0, 1.5, -1.0],
        }.items()
    }
    felt = serving.felt(columns)
    assert (felt.ttft_s.tolist(), felt.tpot_s.tolist(), felt.pause_s.tolist()) == (
        [0.5, 1, -1],
        [-1, 1, -1],
        [-1, 1.5, -1],
    )


# -- in chunks -----------------------------------------------------------------------------------------------
def test_a_prompt_in_one_chunk_is_a_prefill_and_chunks_see_every_pair_once():
    whole = serving.whole_or_in_chunks_s(STEPS, 2048, 4096)
    assert whole == pytest.approx(np.interp(2048, STEPS.rows, STEPS.rows_s) + 2048**2 / 2 * STEPS.pair_s)
    four = serving.whole_or_in_chunks_s(STEPS, 2048, 512)
    assert four - whole == pytest.approx(
        4 * np.interp(512, STEPS.rows, STEPS.rows_s) - np.interp(2048, STEPS.rows, STEPS.rows_s)
    )


@given(st.integers(1, 20_000), st.integers(64, 8192))
def test_chunks_never_make_a_prompt_faster(prompt, chunk):
    assert (
        serving.whole_or_in_chunks_s(STEPS, prompt, chunk)
        >= serving.whole_or_in_chunks_s(STEPS, prompt, prompt) * 0.999
    )


@pytest.mark.parametrize("prompt", [2048, 4096, 8192])
def test_chunks_cost_what_sarathi_serve_measured(prompt):
    """Yi-34B on two A100s: chunks of 512 tokens add at most about 25 %, chunks of 2,048 almost nothing
    (arXiv:2403.02310 section 5.4.1, Figure 14). Ours within five points of the first and ten per cent for the
    second."""
    steps = serving.costs(catalog.model("yi-34b"), machine(catalog.gpu("a100-80")), 2, prompt=2048)
    whole = serving.whole_or_in_chunks_s(steps, prompt, prompt)
    assert 1.09 < serving.whole_or_in_chunks_s(steps, prompt, 512) / whole < 1.30
    assert 1.0 <= serving.whole_or_in_chunks_s(steps, prompt, 2048) / whole < 1.1


# -- published -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "gpu, prompt, seconds",
    [
        ("h100-sxm", 1500, 0.095),
        ("h100-sxm", 1020, 0.084),
        ("a100-80", 1500, 0.185),
        ("a100-80", 1020, 0.155),
    ],
)
def test_prompts_take_what_splitwise_measured(gpu, prompt, seconds):
    """Llama 2 70B on a DGX without batching, medians over a trace whose median prompt is 1,500 or 1,020
    tokens (arXiv:2311.18677 Table IV). A median request is not one of median length, and their server of 2023
    launched each kernel from Python: within 35 %, which is the shortest prompt on the fastest chip."""
    ours = prefill(catalog.model("llama2-70b"), machine(catalog.gpu(gpu)), 8, 1, prompt).total_s
    assert ours == pytest.approx(seconds, rel=0.35)


@pytest.mark.parametrize("prompt, output, prefillers", [(1500, 13, 35), (1020, 129, 25)])
def test_pools_are_sized_as_splitwise_sized_them(prompt, output, prefillers):
    """BLOOM-176B on 40 DGX-H100: 35 machines for prompts and 5 for tokens on the coding trace, 25 and 15 on
    conversations (section 6.2). By medians, with the 64 users at which its memory is full (section 3.4):
    three machines off at most."""
    bloom = catalog.model("bloom-176b")
    prompt_s = prefill(bloom, H100, 8, 1, prompt).total_s
    output_s = output * decode_step(bloom, H100, 8, 64, prompt).total_s / 64
    assert 40 * serving.prefill_share(prompt_s, output_s) == pytest.approx(prefillers, abs=3)


# -- closed forms --------------------------------------------------------------------------------------------
def test_a_cache_sent_layer_by_layer_by_hand():
    """Ten layers of 10 ms: over a wire that takes 50 ms for all, 5 ms are left; over one that takes 300 ms,
    the first layer leaves after 10 ms and the last arrives at 310 ms, 210 ms after the prefill."""
    assert serving.exposed_transfer_s(5e9, 1e11, 0.1, 10) == pytest.approx(0.005)
    assert serving.exposed_transfer_s(3e9, 1e10, 0.1, 10) == pytest.approx(0.21)


def test_the_best_split_by_hand():
    """DistServe's example (arXiv:2401.09670 section 1): 5.6 prompts/s and 10 answers/s of one GPU each: two
    to one, 3.3 a GPU."""
    best = serving.best_split(serving.Rates(5.6, 1e9, 10.0, 1.6, 0.1, 1e9), 3)
    assert best == (2.0, 10.0)


def test_speculative_decoding_by_hand():
    """a = 0.8, k = 4: 1 + 0.8 + 0.64 + 0.512 + 0.4096 = 3.3616 tokens; at 5 % a draft token 3.3616 / 1.2 =
    2.80."""
    assert serving.tokens_per_verification(0.8, 4) == pytest.approx(3.3616)
    assert serving.speculative_speed_up(0.8, 4, 0.05) == pytest.approx(3.3616 / 1.2)
    assert serving.tokens_per_verification(0.0, 4) == 1 and serving.tokens_per_verification(1.0, 4) == 5


@given(st.floats(0, 1), st.integers(0, 16))
def test_speculation_never_gives_less_than_one_token_nor_more_than_were_drafted(accepted, drafted):
    tokens = serving.tokens_per_verification(accepted, drafted)
    assert 1 - 1e-9 <= tokens <= drafted + 1 + 1e-6
    assert tokens == pytest.approx(sum(accepted**i for i in range(drafted + 1)), rel=1e-6)


def test_the_queue_by_hand():
    """Half load on a 50 ms server: 0.5 · 50 / (2 · 0.5) = 25 ms of waiting."""
    assert serving.m_d_1_wait_s(10, 0.05) == pytest.approx(0.025)
    with pytest.raises(ValueError, match="load must be"):
        serving.m_d_1_wait_s(20, 0.05)


def test_equal_work_takes_half_of_the_gpus():
    assert serving.prefill_share(2.0, 2.0) == 0.5 and serving.prefill_share(1.0, 3.0) == 0.25


# -- two pools -----------------------------------------------------------------------------------------------
def test_a_prefilling_replica_by_hand():
    """S = 0.2 s, T = 0.5 s: ρ = 0.6/0.8 = 0.75, 3.75 requests a second; the wait is 0.75·0.2/(2·0.25) = 0.3
    s."""
    assert serving.prefill_rate(0.2, 0.5) == pytest.approx(3.75)
    assert serving.m_d_1_wait_s(3.75, 0.2) == pytest.approx(0.3)
    assert serving.prefill_rate(0.6, 0.5) == 0


def test_an_answering_replica_takes_as_many_users_as_the_target_lets_it():
    users, token_s = np.array([1.0, 8, 64]), np.array([0.02, 0.025, 0.06])
    assert serving.answer_rate(users, token_s, 100.0, 0.05) == pytest.approx(8 / 2.5)
    assert serving.answer_rate(users, token_s, 100.0, 0.01) == 0


def test_the_best_split_is_where_two_lines_cross():
    """Two prompts a second against one answer: a third of the replicas should prefill."""
    split = serving.pools(np.arange(1.0, 12), 12.0, 2.0, 1e9, 1.0)
    assert np.argmax(split.goodput_per_s) + 1 == 4 and split.goodput_per_s.max() == 8
    assert serving.prefill_share(0.5, 1.0) == pytest.approx(4 / 12)
    assert serving.pools(np.array([4.0]), 12.0, 2.0, 0.5, 1.0).goodput_per_s[0] == 2  # a narrow wire


def test_the_closed_form_is_near_what_the_events_say():
    """Pools run at four fifths of the closed form's rate meet their targets; at one and a half times they do
    not. The form takes mean waits and equal lengths, and a run of 240 starts idle: that is the fifth."""
    steps = serving.costs(LLAMA, H100, 4, prompt=2000)
    prefill_s = float(np.interp(2000, steps.rows, steps.rows_s) + 2000**2 / 2 * steps.pair_s)
    users = steps.rows[:11]
    token_s = steps.rows_s[:11] + users * 2100 * steps.cached_s
    split = serving.pools(
        np.array([3.0]),
        6.0,
        serving.prefill_rate(prefill_s, 1.0),
        1e9,
        serving.answer_rate(users, token_s, 200.0, 0.05),
    )
    met = {}
    for share in (0.8, 1.5):
        traffic = Traffic(240, share * float(split.goodput_per_s[0]), 2000, 200, 0.0, 0.0, seed=3)
        latencies = serving.felt(serving.run(steps, traffic, Service(2, 6, 3, 2048, wire_bytes_per_s=1e12)))
        met[share] = serving.attained(latencies, 1.0, 0.05, 240)
    assert met[0.8] > 0.9 > met[1.5] + 0.2


def test_a_lone_users_speculation_is_the_formulas_and_a_full_batchs_is_none():
    """One user checks four tokens in about the time of one: the formula, with the draft's own share of a
    step. With 256 users 1,024 tokens are checked, four critical batches, and nothing is gained."""
    draft = catalog.model("llama3.2-1b")
    share = (
        decoding.split(draft, H100, 8, 1.0, 2048.0).total_s
        / decoding.split(LLAMA, H100, 8, 1.0, 2048.0).total_s
    )
    gains = [
        serving.speculative_gain(LLAMA, draft, H100, 8, users, 2048.0, 0.7, 3)
        for users in (1.0, 64.0, 128.0, 256.0)
    ]
    assert gains[0] == pytest.approx(
        serving.speculative_speed_up(0.7, 3, share), rel=0.05
    )  # AllReduces of four rows
    assert gains == sorted(gains, reverse=True) and gains[-1] < 1


def test_a_check_reads_each_cache_once():
    """At 131,072 tokens the caches are most of a step; a check of four tokens of each user still takes hardly
    longer."""
    draft = catalog.model("llama3.2-1b")
    plain, own = (decoding.split(model, H100, 8, 4.0, 131072.0).total_s for model in (LLAMA, draft))
    assert serving.speculative_gain(LLAMA, draft, H100, 8, 4.0, 131072.0, 0.7, 3) == pytest.approx(
        serving.speculative_speed_up(0.7, 3, own / plain), rel=0.05
    )


def test_a_draft_that_is_never_right_only_costs():
    assert serving.speculative_gain(LLAMA, catalog.model("llama3.2-1b"), H100, 8, 1.0, 1000.0, 0.0, 4) < 1


def test_pools_apart_buy_a_larger_batch_and_no_capacity():
    """Under a tight target the split serves more, with more answers at once; under none, sharing does: both
    spend S + n·t(u)/u of a replica on a request, and a split cannot keep every replica busy."""
    tight, loose = (serving.bargain(LLAMA, H100, 4, 2000, 300, 1.0, tpot_s, 16) for tpot_s in (0.03, 10.0))
    assert tight.users_apart > 4 * tight.users_sharing and tight.apart_per_s > 1.5 * tight.sharing_per_s
    assert loose.users_apart == loose.users_sharing and loose.apart_per_s < loose.sharing_per_s
    prompt_s = prefill(LLAMA, H100, 4, 1, 2000).total_s
    work_s = (
        prompt_s + 300 * decode_step(LLAMA, H100, 4, loose.users_sharing, 2150).total_s / loose.users_sharing
    )
    assert loose.sharing_per_s == pytest.approx(16 / work_s)
