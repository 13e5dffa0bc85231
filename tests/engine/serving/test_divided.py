"""``serve`` with stages, and with groups that share experts."""

from dataclasses import replace

import pytest

import engine
from engine import catalog
from engine.mechanism import interconnect, memory
from engine.mechanism.shape import shape
from engine.serving import divided, inference, wide
from engine.serving.inference import Serving
from engine.step.layout import Machine
from tests.said import refused

LARGE, HUGE, V3 = (catalog.model(key) for key in ("llama3-70b", "llama3.1-405b", "deepseek-v3"))
H100, H200 = Machine.of("h100-sxm"), Machine.of("h200", "fp8")


def test_one_stage_and_one_group_are_what_they_were():
    asked = Serving(4, 8, 1024, 128)
    assert divided.infer(LARGE, H100, asked) == inference.infer(LARGE, H100, asked)


def test_two_stages_by_hand():
    """32 requests on two stages of 8 GPUs: 16 in each batch, whose step is that of 16 on 8 GPUs and 16 rows
    handed on twice, an eighth of each by each GPU."""
    found = divided.infer(HUGE, H100, Serving(8, 32, 1024, 128, pp=2))
    alone = inference.infer(HUGE, H100, Serving(8, 16, 1024, 128))
    sent_s = 2 * interconnect.send_s(16 * 16384 * 2 / 8, True, H100.wires)
    assert found.decode.total_s == pytest.approx(alone.decode.total_s + sent_s)
    assert found.tokens_per_s_per_gpu == pytest.approx(found.tokens_per_s / 16)
    # the prompts of both batches: the first needs a whole pass, the second half of one more
    prompts_s = alone.prefill.total_s + 2 * interconnect.send_s(16 * 1024 * 16384 * 2 / 8, True, H100.wires)
    assert found.ttft_s == pytest.approx(1.5 * prompts_s)
    assert alone.largest_batch == 0 < found.largest_batch and found.fits


def test_spread_experts_by_hand():
    """4,096 requests on 32 GPUs, 128 on each: the step of ``wide``, and the room beside its weights."""
    found = divided.infer(V3, H200, Serving(1, 4096, 2000, 200, dp=32))
    assert found.time_per_output_token_s == pytest.approx(wide.decode_s(V3, H200, 1, 32, 128, 2100), rel=1e-9)
    assert found.ttft_s == pytest.approx(wide.prefill_s(V3, H200, 1, 32, 128 * 2000, 2000), rel=1e-9)
    free = memory.server_bytes(H200.gpu) - wide.weight_bytes_per_gpu(V3, H200, 1, 32)
    one = float(memory.kv_bytes(shape(V3), 2200.0, 1.0, 2.0))
    assert found.largest_batch == 32 * int(free // one)
    parts = found.as_dict()["decode_time_s"]
    assert sum(parts.values()) == pytest.approx(found.time_per_output_token_s) and min(parts.values()) > 0


def test_more_requests_than_groups_are_dealt_out_to_the_fullest():
    one, two = (divided.infer(V3, H200, Serving(1, batch, dp=32)) for batch in (33, 64))
    assert one.decode == two.decode


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (dict(pp=2, dp=2), ("pp", "1", "2 and dp 2")),
        (dict(pp=0), ("pp",)),
        (dict(dp=8), ("model", "experts", "llama3-70b")),
    ],
)
def test_bad_input(how, says):
    with refused(*says):
        engine.serve("llama3-70b", "h100-sxm", tp=8, **how)


def test_the_api_says_what_the_room_says():
    found = engine.serve("deepseek-v3", "h200", dp=32, batch=4096)
    asked = replace(found.serving)
    assert found.time_per_output_token_s == divided.infer(V3, Machine.of("h200"), asked).decode.total_s
    assert (found.as_dict()["dp"], found.serving.gpus) == (32, 32)
