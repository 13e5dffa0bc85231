"""What the host's memory holds, by hand."""

from dataclasses import replace

import pytest

import engine
from engine import catalog
from engine.catalog.models import parameters
from engine.mechanism.offload import OFFLOADS, PINNED_SHARE, Offload, offload
from engine.validation import own_gpus
from tests.said import refused

A100 = Offload(True, True, 31.5e9, 51.2e9)  # PCIe 4 x16, and an eighth of sixteen channels of DDR4-3200
ADAM = catalog.recipe("bf16-adam")  # 2 bytes of weight and of gradient, 12 of state


def test_an_update_on_the_host_by_hand():
    """1.6 billion parameters: 2 · 12 + 2 + 2 = 28 bytes each over 51.2 GB/s are 875 ms, longer than the
    weights' way up (102 ms). Gradients take 102 ms down, of which a backward pass of 52 ms hides as many."""
    assert A100.step_s(1.6e9, ADAM, backward_s=1.0) == pytest.approx(0.875)
    assert A100.step_s(1.6e9, ADAM, backward_s=0.052) == pytest.approx(0.875 + 0.1016 - 0.052, rel=1e-3)
    slow_link = A100._replace(link_bytes_per_s=1e9)
    assert slow_link.step_s(1.6e9, ADAM, backward_s=10.0) == pytest.approx(3.2)  # the weights' way up


def test_activations_by_hand():
    """10 layers of 1 GB for 4 micro-batches: two of the forty are on the GPU, each takes 32 ms each way."""
    assert A100.on_gpu(1e9, 10.0, 4.0) == 2e9 and A100.layer_s(1e9) == pytest.approx(1 / 31.5)
    stays = A100._replace(activations=False)
    assert stays.on_gpu(1e9, 10.0, 4.0) == 40e9 and stays.layer_s(1e9) == 0.0
    assert A100.on_gpu(1e9, 1.0, 1.0) == 1e9  # never more than there are


def test_weights_on_the_host_by_hand():
    """A shard of 1.6 GB comes up for 4 micro-batches, forward and backward: 8 times 51 ms."""
    here = A100._replace(parameters=True)
    assert here.weights_s(1.6e9, passes=8.0) == pytest.approx(8 * 1.6 / 31.5)
    assert A100.weights_s(1.6e9, passes=8.0) == 0.0


def test_what_zero_3_leaves_on_the_gpu_with_everything_on_the_host():
    """Two gathered layers of 13B, activations and the loss: neither weights nor gradients nor state."""
    layout = engine.Layout(gpus=8, zero=3, micro_batch=2, offload="optimizer+gradients+parameters")
    job = engine.Job(global_batch=64, seq=4096)
    found = engine.estimate("llama2-13b", "a100-80", job, layout)
    stays = engine.estimate("llama2-13b", "a100-80", job, replace(layout, offload="none"))
    held = found.memory_bytes
    assert held["weights"] == held["gradients"] == held["optimizer"] == 0.0
    assert held["activations"] == stays.memory_bytes["activations"] > 2 * 2 * 13.0e9 / 40
    assert found.step_s > stays.step_s


def estimate(name, gpu="a100-80", **job):
    layout = engine.Layout(gpus=8, zero=2, micro_batch=2, offload=name)
    return engine.estimate("llama2-13b", gpu, engine.Job(global_batch=64, seq=4096, **job), layout)


def test_what_a_step_gains_and_pays():
    found = {name: estimate(name) for name in OFFLOADS}
    memory = {name: each.memory_bytes for name, each in found.items()}
    params = parameters(catalog.model("llama2-13b"))
    state = memory["none"]["optimizer"]
    assert state == pytest.approx(12 * params / 8, rel=0.01)
    assert memory["none"]["total"] - memory["optimizer"]["total"] == pytest.approx(state)
    assert memory["activations"]["activations"] < 0.1 * memory["none"]["activations"]
    paid = found["optimizer"].terms.optimizer_s
    assert paid == pytest.approx(28 * params / 8 / 51.2e9, rel=0.01)
    assert found["optimizer"].step_s - found["none"].step_s == pytest.approx(
        paid - found["none"].terms.optimizer_s
    )
    kept = memory["none"]["activations"] / 40  # of one of 40 layers, the loss's own aside
    assert found["activations"].step_s > found["none"].step_s  # copies take longer than a forward pass …
    copied_s = (
        4 * 40 * kept / (PINNED_SHARE * 31.5e9)
    )  # … four micro-batches, of which the loss is not copied
    forward_s = found["activations"].terms.compute_s - found["none"].terms.compute_s
    assert 0 < forward_s < copied_s


def test_it_says_that_nobody_measured_it():
    assert "offload" in estimate("optimizer").extrapolates and "offload" not in estimate("none").extrapolates


def test_full_recomputation_leaves_little_to_copy():
    """Then only each layer's input is kept, and its copy hides behind the layer."""
    layout = engine.Layout(gpus=8, zero=2, micro_batch=2, recompute="full")
    job = engine.Job(global_batch=64, seq=4096)
    times = [
        engine.estimate("llama2-13b", "a100-80", job, replace(layout, offload=name)).step_s
        for name in ("none", "activations")
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


def test_pinned_copies_run_as_we_measured_them():
    """On both GPUs of ours, behind PCIe 5."""
    pcie5 = catalog.link("pcie5").bytes_per_s
    for gpu in ("h100-sxm", "h200"):
        assert own_gpus.over_the_bus(gpu) == pytest.approx(PINNED_SHARE * pcie5, rel=0.01)
    moved = offload("activations", "h100-sxm")
    assert moved and moved.link_bytes_per_s == PINNED_SHARE * pcie5


def test_bad_names_and_unknown_hosts_are_refused():
    for name in ("weights", "activations+optimizer", "gradients", "optimizer+optimizer", ""):
        with pytest.raises(ValueError, match="offload must be one of none, optimizer"):
            offload(name, "a100-80")
    with refused("offload", "none", "tpu-v6e"):
        estimate("optimizer", "tpu-v6e")
    assert offload("none", "tpu-v6e") is None
