"""How far a launch could go: what is promised is what the verdict says of it, and one step more is not."""

import engine
from engine import catalog
from engine.launch import shown
from engine.mechanism import memory
from tests.cases import in_one_test
from tests.engine.launch.test_verdict import LLAMA_FACTORY, MEGATRON, TITAN

SERVE = "vllm serve meta-llama/Llama-3.1-8B --max-model-len {}\n"


def longer(text: str, seq: int) -> str:
    return text.replace("cutoff_len: 1024", f"cutoff_len: {seq}")


@in_one_test("gpu, gpus", [("h100-sxm", 8), ("a100-40", 8), ("rtx4090", 8)])
def test_the_longest_sequence_fits_and_one_step_more_does_not(gpu, gpus):
    found = engine.check_launch(LLAMA_FACTORY, gpu, gpus).reach
    if not found.longest:
        assert not engine.check_launch(longer(LLAMA_FACTORY, 256), gpu, gpus).fits
        return
    assert engine.check_launch(longer(LLAMA_FACTORY, found.longest), gpu, gpus).fits
    assert not engine.check_launch(longer(LLAMA_FACTORY, found.longest + 256), gpu, gpus).fits


@in_one_test("texts, gpus", [(LLAMA_FACTORY, 8), (MEGATRON, None), (TITAN, 8), (SERVE.format(32768), 1)])
def test_no_card_with_less_memory_holds_it(texts, gpus):
    key = engine.check_launch(texts, "h200", gpus).reach.card
    assert key and engine.check_launch(texts, key, gpus).fits
    room = memory.capacity_bytes(catalog.gpu(key))
    for one in catalog.all_gpus().values():
        if one.vendor == "NVIDIA" and not one.unified and memory.capacity_bytes(one) < room:
            assert not engine.check_launch(texts, one.key, gpus).fits, one.key


def test_the_users_of_a_server_by_hand():
    """8B in bf16 leaves 0.9 of the card less 16 GB and the framework; a user of 8,192 tokens has 1.07 GB."""
    report = engine.check_launch(SERVE.format(8192), "h100-sxm", 1)
    each = 2 * 32 * 8 * 128 * 2 * 8192
    assert report.reach.users == int(report.room.cache_bytes // each) > 30
    assert f"of the greatest length {report.reach.users:,} fit at once" in "\n".join(shown.lines(report))


def test_a_launch_that_cannot_start_or_is_not_known_says_nothing():
    for more in ("--cpu-offloading-num-layers 2", "--tensor-model-parallel-size 3"):
        report = engine.check_launch(MEGATRON.replace("--bf16", f"--bf16 {more}"), "h100-sxm")
        assert report.reach is None or report.reach.as_dict() == {
            "longest": 0,
            "users": 0,
            "smallest_card": "",
        }
