"""What training keeps in the host's memory, and what the verdict makes of it."""

import json

import pytest

import engine
from engine.frameworks import host_memory
from engine.launch import fit_page, verdict
from engine.mechanism import offload

GIB = 2.0**30
LINE = (
    "deepspeed --num_gpus=8 train.py --model_name_or_path meta-llama/Llama-3.1-8B --deepspeed ds.json "
    "--bf16 True --model_max_length 2048 --per_device_train_batch_size 1"
)


def launched(pins=False, stage=3, **moved):
    parts = {f"offload_{name}": {"device": device, "pin_memory": pins} for name, device in moved.items()}
    return {"run.sh": LINE, "ds.json": json.dumps({"zero_optimization": {"stage": stage, **parts}})}


def kept(texts, **how):
    return engine.check_launch(texts, "h100-sxm", **how).hosted_bytes


def test_pinned_memory_is_taken_by_powers_of_two():
    assert [offload.pinned_bytes(size) for size in (0.0, 1.0, 3.0, 2.0**30, 2.0**30 + 1)] == [
        0.0,
        1.0,
        4.0,
        2.0**30,
        2.0**31,
    ]


def test_state_on_the_host_counted_by_hand():
    """Llama 3.1 8B, 8,030,261,248 parameters. Stage 3: master copy and moments in fp32 (12 bytes), gradients
    in fp32 (4) and in 16 bits (2), the weights in 16 bits (2); stage 2 has neither of the last two."""
    params = 8030261248
    assert kept(launched(optimizer="cpu", param="cpu")) == pytest.approx(20 * params)
    assert kept(launched(optimizer="cpu")) == pytest.approx(18 * params)
    assert kept(launched(stage=2, optimizer="cpu")) == pytest.approx(16 * params)
    assert kept(launched()) == 0.0


def test_pinned_buffers_are_larger():
    """Of the same on 8 GPUs, each has 1,003,782,656 parameters: a sub-group of a billion, whose gradients
    take 4 GiB, and another of 3,782,656, whose take 16 MiB; their copy in 16 bits takes 2 GiB, beside the
    2 bytes from which it is copied."""
    each = 8030261248 / 8
    own = 12 * each + 4 * GIB + 16 * 2.0**20 + 2 * each + 2 * GIB
    assert kept(launched(True, optimizer="cpu")) == pytest.approx(8 * own)
    assert kept(launched(True, optimizer="cpu", param="cpu")) > 8 * (own + 2 * each)


def test_parts_of_matrices_are_pinned_one_by_one():
    """A Llama 3.1 8B on one GPU: 32 layers of two matrices of 2^24 weights, two of 2^22 and three of
    58,720,256 (128 MiB each), and two ends of 525,336,576 (1 GiB)."""
    found = host_memory.parts_bytes(engine.model("llama3.1-8b"), 1.0)
    assert found == 32 * (2 * 2**25 + 2 * 2**23 + 3 * 2**27) + 2 * 2**30


def test_a_host_that_is_too_small_ends_the_launch_and_one_that_is_assumed_does_not():
    texts = launched(True, optimizer="cpu", param="cpu")
    small = engine.check_launch(texts, "h100-sxm", host_bytes=128 * GIB)
    assert small.verdict == "does not fit" and small.status == 3
    assert "exitcode: -9" in small.refused[0].error and "128" in small.refused[0].error
    assert engine.check_launch(texts, "h100-sxm", host_bytes=1024 * GIB).fits
    usual = engine.check_launch(texts, "h100-sxm")
    assert usual.fits and any(one.name == "host's memory" for one in usual.assumed)
    large = {**texts, "run.sh": LINE.replace("Llama-3.1-8B", "Llama-3.1-405B")}
    unsure = engine.check_launch(large, "h100-sxm")
    assert unsure.verdict == "cannot say" and unsure.unmodelled[-1].why == verdict.HOST
    with pytest.raises(ValueError, match="host_bytes must be"):
        engine.check_launch(texts, "h100-sxm", host_bytes=-1.0)


def test_the_page_takes_it_among_what_is_one_s_own():
    files = [list(pair) for pair in launched(True, optimizer="cpu", param="cpu").items()]
    assert fit_page.answer(files, "h100-sxm", 0, {"host_bytes": 1e11}, ())["verdict"] == "does not fit"
    assert fit_page.answer(files, "h100-sxm", 0, {"host_bytes": 1e12}, ())["fits"]


def test_gradients_are_held_twice_without_a_sharded_state():
    """DistributedDataParallel copies gradients of 2 bytes into buckets; one GPU has none, and ZeRO shards
    them."""
    params = 8030261248
    many = engine.check_launch({"run.sh": LINE.replace(" --deepspeed ds.json", "")}, "h200")
    assert many.parts["buckets"] == many.parts["gradients"] == pytest.approx(2 * params)
    one = LINE.replace(" --deepspeed ds.json", "").replace("num_gpus=8", "num_gpus=1")
    assert "buckets" not in engine.check_launch({"run.sh": one}, "h200").parts
    assert "buckets" not in engine.check_launch(launched(), "h200").parts
    assert many.total_bytes == pytest.approx(sum(many.parts.values()))
