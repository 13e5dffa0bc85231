"""The constants, which come from one collection of measurements, compared with others' published
measurements, on which nothing was fitted."""

import json
from dataclasses import replace

import numpy as np
import pytest

from engine.calibration import attention, exchange, known
from engine.validation import CASES as PUBLISHED


def cases(file: str, **wanted) -> list[dict]:
    found = json.loads((PUBLISHED / f"{file}.json").read_text(encoding="utf-8"))
    return [c for c in found if all(c.get(name) == value for name, value in wanted.items())]


def predicted_s(case) -> float:
    rates = known.collective(case["gpu"]).rates
    return exchange.collective_s(case["op"], float(case["bytes"]), float(case["ranks"]), rates)


def test_a_sweep_of_all_reduces_on_eight_h100():
    """NVIDIA's own log of nccl-tests, from 8 bytes to 16 GiB; one of its rows (4,096 bytes) is an outlier."""
    sweep = [c for c in cases("collectives", gpu="h100-sxm", harness="nccl-tests") if "nccltests" in c["id"]]
    size = np.array([c["bytes"] for c in sweep])
    error = np.abs([predicted_s(c) / c["measured"]["time_s"] - 1.0 for c in sweep])
    assert len(sweep) > 25
    assert np.median(error[size < 2**20]) < 0.10 and np.median(error[size >= 2**20]) < 0.05
    assert np.sort(error)[-2] < 0.25


@pytest.mark.parametrize(
    ("case_id", "most"),
    [
        ("allreduce_nvls_b200_4gpu_auto", 0.10),
        ("allreduce_nvls_b200_5gpu_auto", 0.10),
        ("allreduce_nvls_b200_6gpu_auto", 0.10),
        ("allreduce_nvls_b200_7gpu_auto", 0.10),
        ("allreduce_nvls_b200_8gpu_auto", 0.10),
        ("h200_16gib_all_reduce_nvls", 0.10),
        ("h200_16gib_reduce_scatter_ring", 0.10),
        ("nccl_gtc24_table_A100", 0.10),
        ("nccl_gtc24_table_H100+SHARP", 0.10),
        ("sb_h100_allgather_large", 0.15),
    ],
)
def test_large_messages_that_others_published(case_id, most):
    """Also on 5, 6 and 7 ranks, which lie between those that were fitted, and on an H200, which was not."""
    (case,) = cases("collectives", id=case_id)
    assert predicted_s(case) == pytest.approx(case["measured"]["time_s"], rel=most)


def test_flash_attention_3_as_its_authors_published_it():
    """The kernel alone, without writing to a cache. Short sequences are predicted too slow: the fit is of a
    serving framework's calls, whose floor the authors' benchmark does not pay."""
    found = known.attention("prefill", "h100-sxm")
    assert found.key == "flash_attn_fa3.bf16"
    kernel = replace(found.rates, write_bytes_per_s=1e30)
    ratio, length = [], []
    for c in cases("kernels", gpu="h100-sxm", causal=True, backward=False):
        batch, heads, seq, width = (
            c["tokens"] / c["seq"],
            float(c["heads"]),
            float(c["seq"]),
            float(c["head_dim"]),
        )
        flops = 2.0 * batch * heads * width * seq * seq
        seconds = attention.prefill_s(batch, seq, heads, heads, width, kernel)
        ratio.append(seconds * c["measured"]["flops_per_s"] / flops)
        length.append(seq)
    ratio, length = np.array(ratio), np.array(length)
    assert len(ratio) == 18
    assert np.median(np.abs(ratio - 1.0)) < 0.08
    assert np.all(np.abs(ratio[length >= 4096] - 1.0) < 0.15)
    assert np.all(ratio[length == 512] > 1.1)
