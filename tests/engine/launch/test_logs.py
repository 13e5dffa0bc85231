"""Logs of training programs and servers: what is read of them, in the forms that the programs write."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.launch import logs

MEGATRON = (
    " [2026-04-06 02:59:{second:02}] iteration {at:8}/     100 | consumed samples: {samples:12} | "
    "elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 239.8 | "
    "learning rate: 8.600000E-06 | global batch size:   128 | lm loss: 1.825991E+00 | loss scale: 1.0 | "
    "grad norm: 1.426 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
MEMORY = (
    "[Rank {rank}] (after 2 iterations) memory (MB) | allocated: 25000.5 | max allocated: 40000.25 | "
    "reserved: 41000.0 | max reserved: {most}"
)
TITAN = (
    "\x1b[31m[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - "
    "\x1b[31mstep: {at:2}  \x1b[32mloss:  3.24405  \x1b[33mgrad_norm:  0.8319  "
    "\x1b[36mmemory:  {gib}GiB(64.99%)  \x1b[34mtps: {tps}  tflops: 412.52  mfu: 41.17%\x1b[39m"
)
VLLM = (
    "(APIServer pid=3646) INFO 05-19 10:13:11 [loggers.py:271] Engine 000: "
    "Avg prompt throughput: {prompts} tokens/s, Avg generation throughput: {rate} tokens/s, "
    "Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: 35.9%, Prefix cache hit rate: 0.0%"
)
SGLANG = (
    "[2026-04-05 20:02:51 TP0] Decode batch, #running-req: {running}, #token: {held}, token usage: 0.08, "
    "cuda graph: True, gen throughput (token/s): {rate}, #queue-req: 0"
)


def test_megatron_s_first_iterations_do_not_count_and_the_fullest_rank_does():
    times = [9900.0, 9100.0, *[4000.0 + at for at in range(8)]]
    text = [MEGATRON.format(second=i, at=i, samples=128 * i, ms=ms) for i, ms in enumerate(times, 1)]
    text += [MEMORY.format(rank=0, most=42000.0), MEMORY.format(rank=8, most=45056.0)]
    found = logs.read("\n".join(text))
    assert found.program == "Megatron-LM" and found.lines == 10
    assert found.step_s == pytest.approx(4.0035)  # the median of the last eight
    assert found.memory_bytes == 45056.0 * 2**20
    assert found.global_batch == 128


def test_torchtitan_counts_tokens_of_a_gpu_and_colours_are_no_text():
    text = [
        TITAN.format(at=i, gib=gib, tps=tps)
        for i, (gib, tps) in enumerate(
            [
                ("40.10", "1,200"),
                ("66.91", "7,282"),
                ("66.91", "7,334"),
                ("66.91", "7,313"),
                ("66.91", "7,290"),
            ]
        )
    ]
    found = logs.read("\n".join(text))
    assert found.program == "torchtitan"
    assert found.tokens_per_s_per_gpu == pytest.approx(7301.5)
    assert found.memory_bytes == pytest.approx(66.91 * 2**30)
    assert found.step_of(tokens=8 * 4 * 8192, gpus=8) == pytest.approx(4 * 8192 / 7301.5)


def test_a_progress_bar_is_read_in_both_of_its_units():
    bar = "\r".join(
        f" {i}%|██        | {i}/100 [00:{i:02}<01:12,  {1.2 + 0.01 * i:.2f}s/it]" for i in range(1, 11)
    )
    assert logs.read(bar).step_s == pytest.approx(1.265, abs=0.005)
    fast = "\r".join(f" {i}%|█ | {i}/100 [00:01<00:12,  4.00it/s]" for i in range(1, 6))
    assert logs.read(fast).step_s == pytest.approx(0.25)


def test_a_server_s_token_is_requests_over_rate_and_prompts_spoil_a_line():
    text = [VLLM.format(prompts="0.0", rate=1000.0, running=20)] * 6
    text += [VLLM.format(prompts="12068.8", rate=300.0, running=20)] * 6
    found = logs.read("\n".join(text))
    assert found.token_s == pytest.approx(20 / 1000.0) and found.requests == 20
    found = logs.read("\n".join([SGLANG.format(running=32, held=32 * 700, rate=1600.0)] * 5))
    assert (found.token_s, found.requests, found.held) == (pytest.approx(0.02), 32, 700)


def test_a_benchmark_s_closing_table():
    text = "Maximum request concurrency:             64\nMedian TPOT (ms):                        21.50\n"
    found = logs.read(text)
    assert (found.token_s, found.requests) == (pytest.approx(0.0215), 64)


@pytest.mark.parametrize("text", ["", "no log at all", "iteration 5 | elapsed time", "tps: 5"])
def test_a_text_that_says_nothing_is_said_so(text):
    with pytest.raises(ValueError, match="log must have lines that are known"):
        logs.read(text)


def test_a_log_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="at most"):
        logs.read("x" * (logs.LONGEST + 1))


PIECES = (
    """
tps: | tflops: 1|elapsed time per iteration (ms): |0|1e999|1,2,3|e|.|-1|#running-req: |, #token: |
gen throughput (token/s): |Avg generation throughput: | tokens/s, Running: | reqs|memory: |GiB(|
Median TPOT (ms): |
5/5 [1:00<0:00, |it/s|s/it|
global batch size: """.replace("|\n", "|")
    .strip()
    .split("|")
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, "9" * 400, "\r", "\n"]), max_size=40))
def test_no_text_is_an_error_and_what_is_found_is_a_number(pieces):
    found = logs.FromLog()
    with contextlib.suppress(logs.NothingKnown):
        found = logs.read("".join(pieces))
    numbers = [value for value in vars(found).values() if isinstance(value, (int, float))]
    assert all(0 <= value < float("inf") for value in numbers)
