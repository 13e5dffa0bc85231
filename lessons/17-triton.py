"""The numbers of lesson 17, Triton."""

from functools import cache
from typing import Any

from engine.mechanism import roofline
from engine.one_gpu import own_timings, recordings, tile_order, tiling
from engine.one_gpu.own_timings import ProductOfRows
from engine.one_gpu.tiling import Tile, Times

h100 = tiling.chip("h100-sxm")  # an H100
a100 = tiling.chip("a100-80")  # an A100


def tile(block_m: int, block_n: int, block_k: int = 64, stages: int = 3, warps: int = 8) -> Tile:
    """A tile."""
    return tiling.Tile(block_m, block_n, block_k, stages, warps)


large = tile(block_m=128, block_n=256)  # the tile of most of this lesson
thin = tile(block_m=64, block_n=32, block_k=128, stages=2, warps=4)  # the tile for few tokens


def product(m: int, n: int = 4096, k: int = 4096, tile: Tile = large, group: int = 8) -> Times:
    """How long a product takes on the H100, and its parts."""
    return tiling.times(m, n, k, tile=tile, at=h100, group=group)


def gate_and_up(group: int) -> Times:
    """The product of the envelope’s last step."""
    return product(m=2048, n=28672, k=4096, group=group)


def speed(m: int, n: int = 4096, k: int = 4096, tile: Tile = large) -> float:
    """How fast a product runs on the H100."""
    return tiling.flops_per_s(m, n, k, tile=tile, at=h100)


def hbm_bytes(m: int, n: int, k: int, group: int) -> float:
    """What a product moves to and from HBM."""
    return tiling.hbm_bytes(m, n, k, tile=large, at=h100, group=group)


def first_wave(group: int) -> float:
    """Blocks that the first nine of nine by nine tiles read."""
    return tile_order.run(9, 9, 9, group, 9, 1000, 9)["read"]


def from_hbm(group: int) -> float:
    """Blocks that nine by nine tiles read from HBM, with room for 60 in L2."""
    return tile_order.from_hbm(tiles_m=9, tiles_n=9, tiles_k=9, group=group, at_a_time=9, room=60)


# sums of a thread on an H100 that leave room for the rest
most_sums = (tiling.MOST_REGISTERS - tiling.BASE_REGISTERS[True]) / tiling.REGISTERS_A_SUM[True]


def softmax_of(columns: int, warps: int) -> dict[str, int]:
    """What the compiled softmax of such a row takes."""
    return next(
        row
        for row in recordings.load("triton_kernels")["softmax"]
        if (row["columns"], row["warps"]) == (columns, warps)
    )


published = tiling.PUBLISHED  # published products on an H100
# what the persistent kernels of the first table reach of the estimate
shares_2026 = [it[4] / speed(m=it[1], n=it[2], k=it[3]) for it in published[3:6]]
shapes = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))  # columns and rows of a layer's weights
steps = own_timings.tiles()  # this lesson's kernel timed on an H100 by rows


def at_rows(rows: int) -> ProductOfRows:
    """The same with so many rows."""
    return next(row for row in own_timings.tiles() if row.rows == rows)


def timed_s(rows: int) -> float:
    """Seconds that this lesson's kernel was measured to take for so many rows."""
    return 2 * rows * 4096 * 4096 / at_rows(rows).triton


def limits(tile: Tile, group: int) -> dict[str, float]:
    """FLOP/s of a product of 16,384\u00b3 on the H100, were each limit the only one, and with all of them."""
    found = product(m=16384, n=16384, k=16384, tile=tile, group=group)
    return {name: 2 * 16384**3 / seconds for name, seconds in found._asdict().items()}


# what L2 would let a kernel do that computes one number of C in each program
single_numbers = tiling.intensity(tile(block_m=1, block_n=1)) * h100.l2_bytes_per_s
# the large tile with one stage, were there nothing but its loop, which loads and computes by turns
by_turns = 2 * 128 * 256 * 64 * 132 / (tiling.step_s(large, h100) + h100.load_s)
# the same with whole waves, and with the start and the end of each program
one_stage = limits(tile(block_m=128, block_n=256, stages=1), group=1)["latency_s"]
# a rung of which nobody knows the limits
unknown = dict.fromkeys(("l2_s", "latency_s", "hbm_s", "arithmetic_s", "total_s"))
# the rungs of the ladder: what each is, its limits, and whether anybody timed it for this lesson
rungs = [
    ("naive, one number", unknown | {"l2_s": single_numbers, "total_s": single_numbers}, "no"),
    (
        "tiled, 64\u00a0×\u00a064",
        limits(tile(block_m=64, block_n=64, block_k=32, stages=1, warps=4), group=1),
        "no",
    ),
    ("tiled, 128\u00a0×\u00a0256", limits(tile(block_m=128, block_n=256, stages=1), group=1), "no"),
    ("grouped, 16 rows", limits(tile(block_m=128, block_n=256, stages=1), group=16), "no"),
    ("pipelined, 3 stages", limits(large, group=16), "no"),
    ("persistent", unknown, "no"),
]


swept = [row for row in tiling.timed_here() if row.tile]  # this lesson's kernel timed there with its tiles


def layer_s(tokens: int) -> float:
    """Seconds for a layer's products."""
    return sum(product(m=tokens, n=n, k=k).total_s for n, k in shapes)


def sides(block_m: float, block_n: float, block_k: float) -> str:
    """The sides of a tile."""
    return f"{block_m:.0f}\u00a0×\u00a0{block_n:.0f}\u00a0×\u00a0{block_k:.0f}"


def flops_a_byte(block_m: int, block_n: int) -> float:
    """FLOPs for each byte that such a tile reads."""
    return tiling.intensity(tile(block_m, block_n))


def smem_by_rule(compiled: dict[str, Any]) -> float:
    """Shared memory of a compiled tile, by the rule."""
    return tiling.smem_bytes(tiling.Tile(*[compiled[name] for name in tiling.Tile._fields]), h100)


def idle_in_tail(n: int) -> float:
    """The share of the multiprocessors' time that waves of 2,048 rows and n columns leave idle."""
    return 1 - tiling.busy_share(tiling.programs(m=2048, n=n, tile=large), multiprocessors=132)


# -- what single sentences say -------------------------------------------------------------------------------
one_row_more = product(m=2049).total_s / product(m=2048).total_s - 1  # what one row more costs
# what 128 further rows cost, measured
tile_more_measured = timed_s(2176) / timed_s(2048) - 1
# the same for PyTorch's product
torch_more_measured = 2176 / 2048 * at_rows(2048).torch / at_rows(2176).torch - 1
l2_ridge = roofline.ridge_flops_per_byte(h100.flops_per_s, h100.l2_bytes_per_s)  # FLOPs for each byte of L2
# shared memory of the large tile with six stages
six_stages_bytes = tiling.smem_bytes(large._replace(stages=6), h100)
# programs of the small tile that fit on one multiprocessor
programs_resident = tiling.resident(tile(block_m=64, block_n=64, block_k=32, warps=4), h100)
# programs of small tiles for 64 tokens
small_tiles = tiling.programs(m=64, n=4096, tile=tile(block_m=64, block_n=32))
candidates = len(tiling.space().block_m)  # tiles that the search tries


@cache
def copies_in_kernel() -> float:
    """Such copies in the kernel compiled for an H100."""
    return recordings.load("triton_kernels")["persistent"]["by_descriptor"]


masked_rows = tiling.masked_share(m=1025, n=1024, block_m=128, block_n=128)  # lanes masked with 1,025 rows
# lanes masked with 1,025 columns as well
masked_both = tiling.masked_share(m=1025, n=1025, block_m=128, block_n=128)
# seconds of the 32 layers at the chip's best rate
at_best_s = 32 * 2 * 2048 * sum(n * k for n, k in shapes) / h100.flops_per_s
# what a prompt of 2,100 tokens costs over one of 2,048
longer_prompt = layer_s(tokens=2100) / layer_s(tokens=2048) - 1
# the time without grouped programs over that with 16 in a group
grouping_gains = gate_and_up(group=1).total_s / gate_and_up(group=16).total_s
# lanes that four tiles of 256 mask for 1,000
masked_256 = tiling.masked_share(m=1000, n=1000, block_m=256, block_n=256)
# lanes that tiles of 256 mask for 1,040
masked_1040 = tiling.masked_share(m=1040, n=1040, block_m=256, block_n=256)
evener_rate = speed(m=3200, tile=tile(block_m=128, block_n=128))  # the rate of tiles of 128 × 128
# sums that a thread of the large tile holds
sums_of_a_thread = tiling.sums(tile(block_m=256, block_n=256, stages=2))
# bytes that a thread of it spills
spilled_bytes = recordings.load("triton_tiles")["tiles"]["h100-sxm"][-1]["spilled_bytes"]
# its rate for 8,192³
spilling_rate = speed(m=8192, n=8192, k=8192, tile=tile(block_m=256, block_n=256, stages=2))
# sums that a thread holds with 16 warps
sums_with_16_warps = tiling.sums(tile(block_m=256, block_n=256, stages=2, warps=16))
# programs that split k by four
split_programs = 4 * tiling.programs(m=64, n=4096, tile=tile(block_m=64, block_n=64))
# blocks that programs without groups read from HBM, over those in groups of three rows
ungrouped_reads = from_hbm(group=1) / from_hbm(group=3)
# how fast 64 rows run with the tile that suits them best
best_speed_of_64 = speed(m=64, tile=tiling.best(m=64, n=4096, k=4096, at=h100))
