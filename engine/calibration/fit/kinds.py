"""What is fitted: for each kind of operation its table, its constants, and how a row is predicted.

Benchmarks repeat one operation, so some of what they read comes from the L2 cache. How much depends on the
benchmark, so it is described here rather than in the functions, which assume cold memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.calibration import attention, exchange, grouped, products
from engine.calibration.fit.solver import SearchStart
from engine.calibration.fit.tables import Rows
from engine.calibration.known import FA2, SYSTEMS, Sheet, size_of

B_COPIES = 5.0  # copies of the weights that TensorRT-LLM's benchmark cycles through; A is always the same
BOTH_COPIES = 6.0  # of both operands, in SGLang's


def every_row(rows: Rows) -> np.ndarray:
    """A mask that keeps every row."""
    return np.ones(len(rows), bool)


def nothing_more(key: str) -> dict[str, SearchStart]:
    """No further constants beyond those of the kind."""
    return {}


def measured_time(rows: Rows) -> np.ndarray:
    """The measured time of each row."""
    return rows["time_s"]


@dataclass(frozen=True)
class Kind:
    """One kind of operation, and how it is fitted."""

    name: str
    table: str
    keys: Callable[[Rows], np.ndarray]  # of each row; equal keys share constants on a GPU: "bf16"
    starts: dict[str, SearchStart]
    predict: Callable[[Rows, Any, Sheet], np.ndarray]
    size: Callable[[Rows], np.ndarray]  # the size by which residuals are grouped into classes
    ranges: tuple[str, ...]  # columns whose span is kept
    shape: tuple[str, ...]  # columns by which rows are split: a shape is held out on all systems at once
    keep: Callable[[Rows], np.ndarray] = every_row
    extra: Callable[[str], dict[str, SearchStart]] = nothing_more  # constants that only some keys have
    also_from: dict[str, float] = field(default_factory=dict)  # a second start, as the first may get stuck
    time: Callable[[Rows], np.ndarray] = measured_time
    axes: dict[str, Callable[[Rows], np.ndarray]] = field(default_factory=dict)  # further groupings
    renamed: dict[str, str] = field(default_factory=dict)  # columns -> arguments, for the ranges


def up_to(*bounds: float) -> Callable[[np.ndarray], np.ndarray]:
    """Numbers as the name of their class: "to 64", "to 512", "above"."""
    names = np.array([*(f"to {bound:g}" for bound in bounds), "above"], dtype=object)
    return lambda values: names[np.searchsorted(bounds, values)]


def classes(kind: Kind, rows: Rows) -> np.ndarray:
    """The size class of each row."""
    return np.array([size_of(kind.name, value) for value in kind.size(rows)], dtype=object)


def _joined(*columns) -> np.ndarray:
    return np.array([".".join(map(str, parts)) for parts in zip(*columns)], dtype=object)


def _element(rows: Rows) -> np.ndarray:
    return np.where(rows["kv_dtype"] == "fp8", 1.0, 2.0)


def _alike(word: str) -> Callable[[Rows], np.ndarray]:
    return lambda rows: np.full(len(rows), word, dtype=object)


US = 1e-6
LAUNCH = SearchStart(3 * US, 0.8 * US, 60 * US)
SHARE = SearchStart(0.8, 0.02, 1.0)


# -- dense products ------------------------------------------------------------------------------------------
def _gemm(rows: Rows, rates, sheet: Sheet):
    m, n, k = rows["m"], rows["n"], rows["k"]
    a, b, c = m * k * rates.operand_bytes, k * n * rates.operand_bytes, m * n * 2.0
    own = products.cold_share(a + b + c, sheet.l2_bytes)
    turned = products.cold_share(a + B_COPIES * b + c, sheet.l2_bytes)
    both = products.cold_share(BOTH_COPIES * (a + b) + c, sheet.l2_bytes)
    second = rows["framework"] == "sglang"
    cold_a, cold_b = np.where(second, both, own), np.where(second, both, turned)
    return products.gemm_s(m, n, k, rates, cold_a=cold_a, cold_b=cold_b)


def _product_s(rows: Rows):
    """fp8 with one scale per tensor: finding the scale and casting were measured separately."""
    apart = np.nan_to_num(rows["amax_s"]) + np.nan_to_num(rows["cast_s"])
    fp8 = (rows["dtype"] == "fp8") & (rows["framework"] == "trtllm")
    return np.maximum(rows["time_s"] - np.where(fp8, apart, 0.0), 0.5 * US)


def _quantise(rows: Rows, rates, sheet: Sheet):
    m, k = rows["m"], rows["k"]
    return products.quantise_s(m, k, rates, products.cold_share(3.0 * m * k, sheet.l2_bytes))


GEMM = Kind(
    "gemm",
    "gemm.csv",
    keys=lambda rows: rows["dtype"],
    starts=dict(
        ceiling=SearchStart(0.8, 0.05, 1.0),
        memory=SearchStart(0.8, 0.05, 1.0),
        launch_s=LAUNCH,
        rows=SearchStart(16.0, 1.0, 200.0),
        wave=SearchStart(0.3, 0.01, 10.0),
        ramp=SearchStart(64.0, 1.0, 2000.0),
        slowing=SearchStart(0.1, 0.001, 0.3),
    ),
    predict=_gemm,
    size=lambda rows: rows["m"],
    ranges=("m", "n", "k"),
    shape=("m", "n", "k"),
    # the second library's 8- and 4-bit rows include another way of casting, so they are other operations
    keep=lambda rows: (rows["framework"] == "trtllm") | (rows["dtype"] == "bf16"),
    also_from={"wave": 0.03, "rows": 60.0},
    axes={
        "n": lambda rows: up_to(256, 1024, 4096, 16384)(rows["n"]),
        "k": lambda rows: up_to(256, 1024, 4096, 16384)(rows["k"]),
    },
    time=_product_s,
)
QUANTISE = Kind(
    "quantise",
    "gemm.csv",
    keys=_alike("tensor"),
    starts=dict(
        launch_s=SearchStart(9 * US, 1 * US, 60 * US),
        memory=SearchStart(0.5, 0.05, 1.0),
        warm=SearchStart(0.5, 0.05, 1.0),
    ),
    predict=_quantise,
    size=lambda rows: rows["m"] * rows["k"],
    ranges=("m", "k"),
    shape=("m", "n", "k"),
    keep=lambda rows: np.nan_to_num(rows["amax_s"]) * np.nan_to_num(rows["cast_s"]) > 0,
    time=lambda rows: rows["amax_s"] + rows["cast_s"],
)


# -- attention -----------------------------------------------------------------------------------------------
def _prefill(rows: Rows, rates, sheet: Sheet):
    return attention.prefill_s(
        rows["batch"],
        rows["tokens"],
        rows["heads"],
        rows["kv_heads"],
        rows["head_dim"],
        rates,
        rows["window_tokens"],
        _element(rows),
    )


def _decode(rows: Rows, rates, sheet: Sheet):
    return attention.decode_s(
        rows["batch"],
        rows["kv_tokens"],
        rows["heads"],
        rows["kv_heads"],
        rows["head_dim"],
        rates,
        rows["window_tokens"],
        _element(rows),
        sheet.l2_bytes,
    )


def _cache_bytes(rows: Rows):
    window, cached = rows["window_tokens"], rows["kv_tokens"]
    seen = np.where(window > 0, np.minimum(cached, window), cached)
    return 2.0 * rows["batch"] * rows["kv_heads"] * rows["head_dim"] * seen * _element(rows)


PREFILL = Kind(
    "prefill",
    "attention_prefill.csv",
    keys=lambda rows: _joined(rows["kernel"], rows["kv_dtype"]),
    starts=dict(
        share_64=SearchStart(0.5, 0.01, 1.0),
        share_128=SearchStart(0.6, 0.01, 1.0),
        share_256=SearchStart(0.6, 0.01, 1.0),
        share_512=SearchStart(0.5, 0.01, 1.0),
        memory=SearchStart(0.8, 0.1, 1.5),
        write=SearchStart(0.4, 0.01, 3.0),
        launch_s=SearchStart(9 * US, 1 * US, 60 * US),
        block_s=SearchStart(2 * US, 0.01 * US, 50 * US),
        ramp_s=SearchStart(5 * US, 0.01 * US, 50 * US),
    ),
    predict=_prefill,
    size=lambda rows: rows["tokens"],
    ranges=("batch", "tokens", "heads", "kv_heads", "head_dim"),
    shape=("batch", "tokens", "heads", "kv_heads", "head_dim", "window_tokens"),
    axes={
        "window": lambda rows: up_to(0, 128, 1024)(rows["window_tokens"]),
        "head width": lambda rows: up_to(64, 128, 192, 256)(rows["head_dim"]),
        "batch": lambda rows: up_to(1, 16, 128)(rows["batch"]),
        "heads a group": lambda rows: up_to(1, 4, 16)(rows["heads"] / rows["kv_heads"]),
    },
)
DECODE = Kind(
    "decode",
    "attention_decode.csv",
    keys=lambda rows: _joined(rows["kernel"], rows["kv_dtype"]),
    starts=dict(
        memory=SearchStart(0.85, 0.1, 1.0),
        arithmetic=SearchStart(0.25, 0.005, 1.0),
        launch_s=SearchStart(9 * US, 1 * US, 60 * US),
        block_s=SearchStart(2 * US, 0.01 * US, 1000 * US),
        ramp_s=SearchStart(5 * US, 0.01 * US, 50 * US),
        join_s=SearchStart(1 * US, 0.01 * US, 20 * US),
        warm=SearchStart(2.0, 1.0, 6.0),
    ),
    extra=lambda key: {"walk": SearchStart(2.0, 0.1, 20.0)} if key.split(".")[0] in FA2 else {},
    predict=_decode,
    # FA4 on H100, heads of 512: 512 sequences take four times as long as 2,048, so these are several kernels
    keep=lambda rows: rows["kernel"] != "flash_attn_fa4",
    size=_cache_bytes,
    ranges=("batch", "kv_tokens", "heads", "kv_heads", "head_dim"),
    renamed={"kv_tokens": "cached"},
    shape=("batch", "kv_tokens", "heads", "kv_heads", "head_dim", "window_tokens"),
    axes={
        "window": lambda rows: up_to(0, 128, 1024)(rows["window_tokens"]),
        "head width": lambda rows: up_to(64, 128, 192, 256)(rows["head_dim"]),
        "batch": lambda rows: up_to(1, 16, 128)(rows["batch"]),
        "heads a group": lambda rows: up_to(1, 4, 16)(rows["heads"] / rows["kv_heads"]),
    },
)


def _latent(rows: Rows, rates, sheet: Sheet):
    decoding = attention.latent_decode_s(
        rows["batch"], rows["tokens"], rows["heads"], rates, _element(rows), sheet.l2_bytes
    )
    filling = attention.latent_prefill_s(rows["batch"], rows["tokens"], rows["heads"], rates)
    return np.where(rows["phase"] == "decode", decoding, filling)


LATENT = Kind(
    "latent",
    "mla.csv",
    keys=lambda rows: _joined(rows["phase"], rows["kv_dtype"]),
    starts=dict(
        arithmetic=SearchStart(0.4, 0.01, 1.5),
        memory=SearchStart(0.8, 0.05, 1.0),
        launch_s=SearchStart(9 * US, 1 * US, 60 * US),
        block_s=SearchStart(2 * US, 0.01 * US, 50 * US),
        ramp_s=SearchStart(5 * US, 0.01 * US, 50 * US),
    ),
    extra=lambda key: {"walk": SearchStart(10.0, 0.1, 1000.0)} if key.startswith("decode") else {},
    predict=_latent,
    size=lambda rows: rows["batch"] * rows["tokens"],
    ranges=("batch", "tokens", "heads"),
    shape=("batch", "tokens", "heads"),
    axes={
        "heads": lambda rows: up_to(4, 16, 64)(rows["heads"]),
        "batch": lambda rows: up_to(1, 16, 128)(rows["batch"]),
    },
)


# -- experts -------------------------------------------------------------------------------------------------
def _experts(rows: Rows, rates, sheet: Sheet):
    matrices = 2.0 + rows["gated"].astype(float)
    width = rows["ffn"] / rows["tp"]
    weights = rows["touched_experts"] * matrices * rows["hidden"] * width * rates.weight_bytes
    return grouped.experts_s(
        rows["local_rows"],
        np.maximum(rows["touched_experts"], 1e-3),
        rows["experts"] / rows["ep"],
        rows["tokens"],
        rows["hidden"],
        width,
        matrices - 2.0,
        rates,
        cold=products.cold_share(weights, sheet.l2_bytes),
    )


EXPERTS = Kind(
    "experts",
    "experts.csv",
    keys=lambda rows: _joined(rows["dtype"], rows["kernel"]),
    starts=dict(
        ceiling=SearchStart(0.5, 0.02, 1.0),
        memory=SearchStart(0.8, 0.05, 1.0),
        permute=SearchStart(0.5, 0.02, 3.0),
        token=SearchStart(0.5, 0.02, 30.0),
        launch_s=SearchStart(30 * US, 1 * US, 200 * US),
        expert_s=SearchStart(0.05 * US, 0.0001 * US, 5 * US),
        pace_s=SearchStart(0.1e-9, 0.01e-9, 20e-9),
        padding=SearchStart(1.0, 0.01, 2.0),
    ),
    also_from={"pace_s": 3e-9},
    predict=_experts,
    size=lambda rows: rows["tokens"],
    ranges=("tokens", "hidden", "ffn", "experts"),
    shape=("tokens", "hidden", "ffn", "experts", "tp", "ep", "local_rows"),
    axes={
        "expert ranks": lambda rows: up_to(1, 8, 32)(rows["ep"]),
        "tensor ranks": lambda rows: up_to(1, 4, 16)(rows["tp"]),
        "rows an expert": lambda rows: up_to(1, 16, 128, 1024)(rows["local_rows"] / rows["touched_experts"]),
        "routing": lambda rows: rows["routing"],
    },
)


# -- exchange ------------------------------------------------------------------------------------------------
def _collective(rows: Rows, rates, sheet: Sheet):
    found = np.zeros(len(rows))
    for operation in exchange.OPERATIONS:
        mask = rows["op"] == operation
        found[mask] = exchange.collective_s(operation, rows["bytes"][mask], rows["ranks"][mask], rates)
    return found


LINK = SearchStart(0.5, 0.001, 1.5)
COLLECTIVE = Kind(
    "collective",
    "collectives.csv",
    keys=_alike("nccl"),
    starts=dict(
        start_s=SearchStart(4 * US, 1 * US, 20 * US),
        hop_s=SearchStart(1 * US, 0.1 * US, 5 * US),
        direct_s=SearchStart(2 * US, 0.05 * US, 20 * US),
        middle_s=SearchStart(0.3 * US, 0.01 * US, 10 * US),
        middle=SearchStart(0.5, 0.05, 1.0),
        late_s=SearchStart(3 * US, 0.01 * US, 20 * US),
        late_direct_s=SearchStart(8 * US, 0.1 * US, 50 * US),
        low=SearchStart(0.15, 0.01, 1.0),
        direct_low=SearchStart(0.05, 0.002, 1.0),
        **{f"{what}_{n}": LINK for what in ("reduce", "gather", "direct") for n in (2, 4, 8)},
    ),
    predict=_collective,
    size=lambda rows: rows["bytes"],
    ranges=("ranks", "bytes"),
    renamed={"bytes": "buffer_bytes"},
    shape=("op", "ranks", "bytes"),
    axes={
        "operation": lambda rows: rows["op"],
        "ranks": lambda rows: up_to(2, 4)(rows["ranks"]),
        "bytes": lambda rows: up_to(8192, 131072, 2**20 - 1, 2**24, 2**27)(rows["bytes"]),
    },
    keep=lambda rows: (rows["main"] == "1") & (rows["source"] == "aiconfigurator") & (rows["nodes"] == 1),
)
MAPPED = Kind(
    "mapped_all_reduce",
    "custom_allreduce.csv",
    keys=lambda rows: np.array([name.split()[0] for name in rows["framework"]], dtype=object),
    starts=dict(
        start_s=SearchStart(3 * US, 0.5 * US, 20 * US),
        rank_s=SearchStart(0.2 * US, 0.001 * US, 3 * US),
        second_s=SearchStart(3 * US, 0.01 * US, 30 * US),
        one_shot=SearchStart(0.5, 0.002, 3.0),
        two_shot=SearchStart(0.5, 0.002, 3.0),
    ),
    predict=lambda rows, rates, sheet: exchange.mapped_all_reduce_s(rows["bytes"], rows["ranks"], rates),
    size=lambda rows: rows["bytes"],
    ranges=("ranks", "bytes"),
    renamed={"bytes": "buffer_bytes"},
    shape=("ranks", "bytes"),
    # beyond some MB the frameworks switch to NCCL; over PCIe they do so at every size
    keep=lambda rows: (
        (rows["graph"] == "1")
        & (rows["bytes"] <= 2**23)
        & ~np.isin(rows["system"], ("l40s", "rtx_pro_6000_server"))
    ),
)
SEND = Kind(
    "send",
    "p2p.csv",
    keys=lambda rows: np.where(rows["nodes"] > 1, "two nodes", "one node").astype(object),
    starts=dict(
        start_s=SearchStart(5 * US, 1 * US, 50 * US),
        late_s=SearchStart(5 * US, 0.1 * US, 100 * US),
        bytes_per_s=SearchStart(5e10, 1e9, 1e12),
    ),
    predict=lambda rows, rates, sheet: exchange.send_s(rows["bytes"], rates),
    size=lambda rows: rows["bytes"],
    ranges=("bytes",),
    renamed={"bytes": "message_bytes"},
    shape=("nodes", "bytes"),
    keep=lambda rows: np.isin(rows["system"], list(SYSTEMS)),
)


# -- between expert ranks ------------------------------------------------------------------------------------
def _recorded(rows: Rows) -> np.ndarray:
    """DeepEP's modes; TensorRT-LLM's with the format in which its rows are dispatched."""
    named = zip(rows["mode"], rows["dispatch_dtype"])
    return np.array([f"{m}.{dtype}" if m.startswith("nvlink") else m for m, dtype in named], dtype=object)


def _copies(rows: Rows):
    """The copies of a rank's tokens that leave it: for a low-latency kernel, one for every chosen expert
    elsewhere; otherwise one for each other rank that holds any of them."""
    elsewhere = (rows["ranks"] - 1.0) / rows["ranks"]
    held = rows["experts"] / rows["ranks"]
    missed = np.ones(len(rows))  # the chance that no choice so far (without replacement) hit a given rank
    for choice in range(int(rows["top_k"].max())):
        left = rows["experts"] - choice
        missed *= np.where(choice < rows["top_k"], np.maximum(left - held, 0.0) / np.maximum(left, 1.0), 1.0)
    met = rows["ranks"] * (1.0 - missed)
    each = np.where(rows["mode"] == "low_latency", rows["top_k"], met)
    return rows["tokens_per_rank"] * each * elsewhere


def _rows(rows: Rows, rates, sheet: Sheet):
    return exchange.rows_s(_copies(rows), rows["hidden"], rates, np.nan_to_num(rows["sms"]))


def _one_box(rows: Rows):
    """One box, or one NVLink domain of several; leaves out runs across a network, whose GPU is uncertain."""
    ours = np.array([name.startswith(("deepep (sglang 0.5.12)", "tensorrt-llm")) for name in rows["library"]])
    return ours & (np.nan_to_num(rows["dispatch_s"]) > 0) & (np.nan_to_num(rows["combine_s"]) > 0)


def _between_experts(way: str) -> Kind:
    suffix = ".combine" if way == "combine" else ""
    return Kind(
        way,
        "deepep.csv",
        keys=lambda rows: np.array([key + suffix for key in _recorded(rows)], dtype=object),
        starts=dict(
            start_s=SearchStart(12 * US, 1 * US, 100 * US),
            row_s=SearchStart(1e-9, 1e-12, 1e-6, grain=1e-12),
            link=SearchStart(0.5, 0.01, 3.0),
        ),
        extra=lambda key: {"copier": SearchStart(0.04, 0.001, 1.0)} if key.startswith("normal") else {},
        predict=_rows,
        size=lambda rows: rows["tokens_per_rank"],
        ranges=("ranks", "tokens_per_rank", "hidden"),
        shape=("ranks", "tokens_per_rank", "hidden", "top_k", "experts", "sms"),
        axes={
            "ranks": lambda rows: up_to(4, 8, 16)(rows["ranks"]),
            "copiers": lambda rows: up_to(0, 8, 16)(np.nan_to_num(rows["sms"])),
        },
        keep=_one_box,
        time=lambda rows: rows[f"{way}_s"],
    )


DISPATCH, COMBINE = _between_experts("dispatch"), _between_experts("combine")

KINDS = (
    GEMM, QUANTISE, PREFILL, DECODE, LATENT, EXPERTS, COLLECTIVE, MAPPED, SEND, DISPATCH, COMBINE,
)  # fmt: skip
