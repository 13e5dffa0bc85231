"""Megatron-LM's optimizers beside Adam, as a launch names them."""

import pytest

import engine
from engine import catalog
from engine.catalog import models
from engine.launch import verdict
from engine.mechanism import optimizers
from tests.engine.launch.test_verdict import MEGATRON


def read(*more, without=""):
    text = MEGATRON.replace("--bf16", " ".join(("--bf16", *more)))
    return engine.check_launch(text.replace(without, "") if without else text, "h100-sxm")


def test_muon_is_read_with_its_matrices_and_its_mode():
    """--use-distributed-optimizer gives whole matrices to ranks (ZeRO 1 here); gradients are summed in fp32,
    gate and up are one matrix, and tensor ranks repeat the work unless told otherwise."""
    launch = read("--optimizer muon").launch
    found, by = launch.job.recipe, launch.job.software
    assert (found.matrices, found.gradient_bytes) == (catalog.recipe("muon").matrices, 4.0)
    assert (launch.layout.zero, by.orthogonal, by.joins_gate) == (1, "duplicated", True)
    told = read("--optimizer muon --muon-tp-mode distributed --muon-num-ns-steps 7").launch.job
    assert (told.software.orthogonal, told.recipe.matrices.steps) == ("distributed", 7)


def test_muon_takes_less_memory_and_more_time():
    adam, muon = read(), read("--optimizer muon")
    assert muon.parts["optimizer"] < adam.parts["optimizer"]
    assert (muon.fits, adam.fits) == (True, False)
    assert muon.estimate.terms.optimizer_s > adam.estimate.terms.optimizer_s
    model = muon.launch.model
    assert 0.9 < optimizers.managed_params(model) / models.parameters(model) < 1


def test_the_older_name_shares_without_a_flag():
    launch = read("--optimizer dist_muon", without="--use-distributed-optimizer").launch
    assert launch.layout.zero == 1 and launch.job.recipe.matrices is not None
    assert read("--optimizer muon", without="--use-distributed-optimizer").launch.layout.zero == 0


def test_lion_keeps_no_variance():
    assert read("--optimizer lion").launch.job.recipe.optimizer_bytes == 8.0


@pytest.mark.parametrize("name", ["soap", "adaptive_muon"])
def test_an_optimizer_that_is_not_modelled_has_no_verdict(name):
    report = read(f"--optimizer {name}")
    assert report.verdict == verdict.UNKNOWN
    assert any("optimizer" in one.why for one in report.launch.unmodelled)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--use-torch-fsdp2", "Emerging optimizer does not support Torch-FSDP2 for now."),
        ("--use-megatron-fsdp", "Emerging optimizer does not support Megatron-FSDP for now."),
        (
            "--num-distributed-optimizer-instances 2",
            "does not support num_distributed_optimizer_instances > 1",
        ),
        ("--muon-tp-mode sideways", "argument --muon-tp-mode: invalid choice: 'sideways'"),
    ],
)
def test_what_megatron_refuses_with_muon(more, words):
    report = read("--optimizer muon", more)
    assert any(words in one.error for one in report.refused), report.refused
    assert report.verdict == verdict.ILLEGAL


def test_fp16_is_refused_with_muon():
    text = MEGATRON.replace("--bf16", "--fp16 --optimizer muon")
    errors = [one.error for one in engine.check_launch(text, "h100-sxm").refused]
    assert any("emerging optimizer with fp16 is not supported" in error for error in errors), errors


PARTED = "--overlapped-distributed-optimizer"


def test_megatron_llama_s_optimizer_keeps_a_part_of_all_but_the_weights():
    """By hand from overlapped_dist_optimizer.py, for each parameter on a GPU: 2 bytes of weights; of a data
    rank's part a 16-bit copy (2), the fp32 one (4), gradients as summed and as received (4 + 4), moments (8).
    So 24 bytes with one data rank, where Megatron-LM keeps 18, and far fewer with many: 13B over two tensor
    and 64 data ranks took 66,438 MiB with Megatron-LM's and 44,028 with this one, of which two buckets of
    2e8 gradients are 1,526 (alibaba/Megatron-LLaMA issue 22)."""
    line = (
        "torchrun --nproc_per_node 8 --nnodes {} pretrain_llama.py --tensor-model-parallel-size 2 "
        "--num-layers 40 --hidden-size 5120 --num-attention-heads 40 --ffn-hidden-size 13824 "
        "--seq-length 2048 --micro-batch-size 2 --global-batch-size 1024 --swiglu --disable-bias-linear "
        "--normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights "
        "--vocab-size 32000 --bf16 --sequence-parallel --use-flash-attn "
    )
    theirs, usual = (
        engine.check_launch(line.format(16) + flag, "a800")
        for flag in (PARTED, "--use-distributed-optimizer")
    )
    saved = (usual.total_bytes - theirs.total_bytes) / 2**20 - 1526
    assert saved == pytest.approx(66438 - 44028, rel=0.02)
    alone = engine.check_launch(line.format(1).replace("node 8", "node 2") + PARTED, "a800", 2)
    assert alone.launch.layout.dp == 1
    held = sum(alone.parts[name] for name in ("weights", "gradients", "optimizer"))
    assert held == pytest.approx(24 * models.parameters(alone.launch.model) / 2, rel=1e-3)


def test_only_deepspeed_keeps_flat_buffers():
    """Gradients that are not summed in their product are no reason for them."""
    for more in ("", "--no-gradient-accumulation-fusion"):
        assert read(more).parts["overhead"] == 2e9
