"""Steps with an adapter: published figures, and what freezing the model does to memory, time and traffic."""

from dataclasses import replace

import numpy as np
import pytest

from engine import catalog
from engine.mechanism import memory
from engine.mechanism.adapters import Adapter
from engine.step import search
from engine.step.layout import Job, Layout, Machine, estimate

LLAMA8, LLAMA70 = catalog.model("llama3.1-8b"), catalog.model("llama3-70b")
H100, A100 = Machine.of("h100-sxm"), Machine.of("a100-80")
TRAINER = catalog.training_software("trainer")
ALONE = Layout(1, zero=0, recompute="full")
QLORA = Adapter(16, base="nf4-double")


def held(model, at, job, layout):
    return estimate(model, at, job, layout).memory_bytes


def test_nothing_moves_without_one():
    job, layout = Job(64, 4096), Layout(64, tp=2, zero=3)
    assert estimate(LLAMA8, H100, job, layout) == estimate(LLAMA8, H100, replace(job, adapter=None), layout)


def test_65b_fits_a_card_of_48_gb():
    """QLoRA finetunes 65B on one GPU of 48 GB, where 16 bits take over 780 (arXiv:2305.14314 section 1)."""
    llama = catalog.model("llama-65b")
    found = held(llama, A100, Job(1, 512, adapter=QLORA), ALONE)
    # 80 layers of 809.5M weights at 4.127 bits, embedding and output layer in 16: 33.4 + 1.05 GB
    assert found["weights"] == pytest.approx(33.4e9 + 1.05e9 + 2 * 199.9e6, rel=2e-3)
    assert found["gradients"] + found["optimizer"] == pytest.approx(14 * 199.9e6, rel=1e-3)
    assert found["total"] < 48e9
    assert held(llama, A100, Job(1, 512), ALONE)["total"] > 780e9


def test_torchtune_on_a_4090():
    """7.4 GiB at the peak with QLoRA and 16.2 with LoRA, of Llama 3.1 8B with r = 8 on all but k, two
    sequences of 2,048 and a chunked loss (github.com/pytorch/torchtune, README at 7d470bfae). PyTorch's own
    count leaves out what the framework takes, and torchtune keeps Adam's state in 16 bits (8 bytes)."""
    names = ("q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    by = catalog.training_software("trainer", loss="chunked")
    for base, gib in (("nf4-double", 7.4), ("bf16", 16.2)):
        job = Job(16, 2048, catalog.recipe("bf16-adam"), by, adapter=Adapter(8, names, base=base))
        found = held(LLAMA8, Machine.of("rtx4090"), job, replace(ALONE, micro_batch=2))
        assert (found["total"] - memory.FRAMEWORK_BYTES) / 2**30 == pytest.approx(gib, rel=0.1)


def test_megatron_bridge_on_gb300():
    """Llama 3 70B in fp8 on GB300: 7,481 tokens a second and GPU with LoRA, r = 16 on linear_qkv alone, on 8
    GPUs; 4,819 with everything trained, on 32 in two stages of 20 chunks; batch 32, sequences of 4,096
    (Megatron-Bridge 26.06, performance summary and scripts/performance). None of it fitted anything here."""
    at = Machine.of("gb300", "fp8")
    full = estimate(LLAMA70, at, Job(32, 4096), Layout(32, pp=2, schedule="interleaved", interleave=20))
    tuned = estimate(LLAMA70, at, Job(32, 4096, adapter=Adapter(16, ("qkv_proj",))), Layout(8))
    each, every = tuned.tokens_per_s / 8, full.tokens_per_s / 32
    assert every == pytest.approx(4819, rel=0.05)
    assert each == pytest.approx(7481, rel=0.1)
    assert each / every == pytest.approx(1.55, rel=0.1)
    assert tuned.extrapolates.count("adapter") == 1
    assert tuned.fits and full.fits


def test_four_flops_of_six():
    job = Job(64, 4096)
    full, tuned = (
        estimate(LLAMA70, H100, replace(job, adapter=adapter), Layout(64, tp=8))
        for adapter in (None, Adapter(16, ("q_proj",)))
    )
    per_token = tuned.model_flops_per_gpu_per_s() / tuned.tokens_per_s
    assert per_token / (full.model_flops_per_gpu_per_s() / full.tokens_per_s) == pytest.approx(
        2 / 3, rel=0.02
    )
    # with recomputation a third forward pass stays: 6 of 8
    slow, quick = (
        estimate(LLAMA70, H100, replace(job, adapter=each), Layout(64, tp=8, recompute="full"))
        for each in (None, Adapter(16, ("q_proj",)))
    )
    assert quick.hfu() * quick.step_s / (slow.hfu() * slow.step_s) == pytest.approx(6 / 8, rel=0.02)


def test_only_the_adapter_s_gradients_are_sent():
    job, layout = Job(64, 2048, software=catalog.modern(overlaps="")), Layout(64, zero=0)
    full, tuned = (
        estimate(LLAMA8, H100, replace(job, adapter=each), layout).time_s["data_exposed"]
        for each in (None, Adapter(16))
    )
    assert tuned < 0.05 * full


def test_zero_3_gathers_frozen_weights_as_they_are_stored():
    job, layout = Job(64, 2048, software=catalog.modern(overlaps="")), Layout(64, zero=3)

    def of(base):
        return estimate(LLAMA8, H100, replace(job, adapter=Adapter(1, ("q_proj",), base=base)), layout)

    wide, packed = of("bf16"), of("nf4-double")
    sent = wide.time_s["data_exposed"] / packed.time_s["data_exposed"]
    assert 2.0 < sent < 2 / 0.516  # embedding and output layer stay in 16 bits, and starts take time
    assert wide.memory_bytes["weights"] == pytest.approx(2 * 8.03e9 / 64, rel=0.01)
    stage_2 = replace(layout, zero=2)
    kept = estimate(LLAMA8, H100, replace(job, adapter=Adapter(1, ("q_proj",))), stage_2).memory_bytes
    assert kept["weights"] == pytest.approx(2 * 8.03e9, rel=0.01)


def test_dora_and_four_bits_cost_time():
    def of(adapter):
        return estimate(LLAMA8, H100, Job(8, 2048, software=TRAINER, adapter=adapter), ALONE).step_s

    assert of(Adapter(16)) < of(QLORA) < of(Adapter(16, kind="dora", base="nf4-double"))


def test_what_peft_casts_to_fp32():
    """Embedding and output layer in fp32: 4 bytes each of 2 · 128,256 · 4,096 (and of 266,240 norm weights),
    where they have 2 otherwise."""
    job = Job(8, 2048, adapter=QLORA)
    wide = replace(job, adapter=replace(QLORA, rest="fp32"))
    more = held(LLAMA8, A100, wide, ALONE)["weights"] - held(LLAMA8, A100, job, ALONE)["weights"]
    assert more == pytest.approx(2 * (2 * 128_256 * 4096 + 266_240))


@pytest.mark.parametrize("model", ["llama3-8b", "mixtral-8x7b", "deepseek-v3", "gpt3-6.7b"])
def test_the_search_finds_what_an_estimate_says(model):
    job = Job(64, 2048, adapter=Adapter(16, base="nf4"))
    found = search.plan(catalog.model(model), H100, job, 32).best
    again = estimate(catalog.model(model), H100, job, found.layout)
    assert again.terms.total_bytes == found.terms.total_bytes
    assert np.isclose(again.step_s, found.step_s, rtol=1e-12)


def test_what_cannot_be():
    with pytest.raises(ValueError, match="mtp must be 0 with an adapter"):
        Job(8, 2048, mtp=1, adapter=QLORA)
    with pytest.raises(ValueError, match=r"adapter must be an engine\.Adapter"):
        Job(8, 2048, adapter=16)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="targets must name matrices"):
        estimate(LLAMA8, H100, Job(8, 2048, adapter=Adapter(8, ("kv_b_proj",))), ALONE)
