"""The functions for single operations: how a time changes with more work, more bytes and more ranks."""

import re
from dataclasses import replace

import numpy as np
import pytest

from engine.base import check
from engine.calibration import attention, exchange, grouped, known, launch_costs, products

MEASURED = ("a100-80", "h100-sxm", "b200", "gb200", "gb300", "l40s", "rtx-pro-6000")


@pytest.fixture(params=MEASURED)
def gpu(request):
    return request.param


def test_one_number_and_an_array_of_it_are_the_same_time():
    rates = known.gemm("h100-sxm").rates
    m = np.array([1.0, 100.0, 4096.0, 30000.0])
    together = products.gemm_s(m, 5120.0, 4096.0, rates)
    assert [products.gemm_s(v, 5120.0, 4096.0, rates) for v in map(float, m)] == pytest.approx(list(together))
    cached = np.array([2.0, 500.0, 70000.0])
    for found in (known.attention("decode", "h100-sxm"), known.attention("decode", "a100-80")):
        together = attention.decode_s(8.0, cached, 32.0, 8.0, 128.0, found.rates)
        alone = [attention.decode_s(8.0, v, 32.0, 8.0, 128.0, found.rates) for v in map(float, cached)]
        assert alone == pytest.approx(list(together))
    fabric = known.collective("h100-sxm").rates
    sizes = np.array([512.0, 2.0**20, 2.0**28])
    for operation in exchange.OPERATIONS:
        together = exchange.collective_s(operation, sizes, 8.0, fabric)
        alone = [exchange.collective_s(operation, v, 8.0, fabric) for v in map(float, sizes)]
        assert alone == pytest.approx(list(together))


def test_a_larger_product_takes_longer(gpu):
    rates = known.gemm(gpu).rates
    more = np.linspace(64.0, 20000.0, 300)
    for sides in ((more, 4096.0, 4096.0), (4096.0, more, 512.0), (1.0, 4096.0, more)):
        assert np.all(np.diff(products.gemm_s(*sides, rates)) > 0.0)


def test_no_product_beats_the_data_sheet(gpu):
    """With cold operands, at any size: not its peak, nor its memory."""
    sheet, rates = known.sheet(gpu), known.gemm(gpu).rates
    m, n, k = np.meshgrid(*[np.array([1.0, 64.0, 700.0, 4096.0, 20000.0])] * 3)
    times = products.gemm_s(m, n, k, rates)
    assert np.all(times >= 2.0 * m * n * k / sheet.peak("bf16"))
    assert np.all(times >= 2.0 * (m * k + k * n + m * n) / sheet.memory_bytes_per_s)


def test_few_tiles_leave_multiprocessors_idle():
    """A quarter of the columns takes more than a quarter of the time; of many columns it does not."""
    rates = known.gemm("b200").rates

    def share(n):
        return products.gemm_s(256.0, n / 4, 8192.0, rates) / products.gemm_s(256.0, n, 8192.0, rates)

    assert share(2048.0) > 0.5 and 0.24 < share(262144.0) < 0.3


def test_a_batch_is_one_kernel():
    rates = known.gemm("b200").rates
    alone, eight = (products.gemm_s(512.0, 512.0, 512.0, rates, batch) for batch in (1.0, 8.0))
    assert alone < eight < 8 * alone - 6 * rates.launch_s


def test_weights_in_another_format_are_read_as_they_are_stored():
    rates = known.gemm("h100-sxm").rates
    half = products.gemm_s(1.0, 8192.0, 8192.0, rates, weight_bytes=0.5)
    assert half < 0.35 * products.gemm_s(1.0, 8192.0, 8192.0, rates)


def test_warm_operands_are_read_faster():
    rates = known.gemm("l40s").rates
    warm = products.gemm_s(1.0, 4096.0, 4096.0, rates, cold_a=0.0, cold_b=0.0)
    assert warm < products.gemm_s(1.0, 4096.0, 4096.0, rates)
    assert products.cold_share(1e6, 50e6) == 0.0 and products.cold_share(1e9, 50e6) == 1.0


def test_either_is_a_little_more_than_the_slower():
    assert products.either_s(1.0, 0.0) == pytest.approx(1.0)
    assert 1.0 < products.either_s(1.0, 0.5) < 1.1
    assert products.either_s(1.0, 1.0) == pytest.approx(1.0 + products.SHOWS)


def test_quantising_costs_a_floor_and_bytes(gpu):
    if gpu == "a100-80":
        pytest.skip("no 8-bit format")
    rates = known.quantise(gpu).rates
    small, large = (products.quantise_s(m, 8192.0, rates) for m in (1.0, 65536.0))
    assert 5e-6 < small < 15e-6
    assert large - small == pytest.approx(65535.0 * 8192.0 * 5.0 / rates.memory_bytes_per_s)


def test_a_window_bounds_attention(gpu):
    decode = known.attention("decode", gpu).rates
    far = attention.decode_s(64.0, 65536.0, 32.0, 8.0, 128.0, decode)
    assert attention.decode_s(64.0, 65536.0, 32.0, 8.0, 128.0, decode, window=128.0) < 0.2 * far
    prefill = known.attention("prefill", gpu).rates
    full = attention.prefill_s(1.0, 16384.0, 32.0, 8.0, 128.0, prefill)
    assert attention.prefill_s(1.0, 16384.0, 32.0, 8.0, 128.0, prefill, window=1024.0) < 0.4 * full
    assert attention.prefill_s(1.0, 16384.0, 32.0, 8.0, 128.0, prefill, window=1e6) == pytest.approx(full)


def test_decode_reads_at_most_what_the_memory_gives(gpu):
    rates, sheet = known.attention("decode", gpu).rates, known.sheet(gpu)
    cached = np.array([4096.0, 16384.0, 131072.0])
    read = 2.0 * 32.0 * 8.0 * 128.0 * cached * 2.0
    reached = read / attention.decode_s(32.0, cached, 32.0, 8.0, 128.0, rates) / sheet.memory_bytes_per_s
    assert np.all(reached < 1.0) and np.all(np.diff(reached) > 0) and reached[-1] > 0.65


def test_fa2_does_not_split_a_head_without_a_group():
    """Query heads of their own walk the cache alone, and are no faster for idle multiprocessors."""
    rates = known.attention("decode", "a100-80").rates
    own, shared = (attention.decode_s(1.0, 65536.0, 8.0, kv, 128.0, rates) for kv in (8.0, 4.0))
    assert own > 3.0 * shared


def test_latent_attention_reads_the_cache_once_for_all_heads():
    rates = known.known("latent", "decode.bf16", "h100-sxm").rates
    few, many = (attention.latent_decode_s(64.0, 32768.0, heads, rates) for heads in (8.0, 64.0))
    assert few == pytest.approx(many)
    assert attention.latent_decode_s(64.0, 32768.0, 128.0, rates) > 1.2 * many
    fill = known.known("latent", "prefill.bf16", "h100-sxm").rates
    assert attention.latent_prefill_s(1.0, 8192.0, 128.0, fill) > 3.0 * attention.latent_prefill_s(
        1.0, 4096.0, 128.0, fill
    )


def test_a_repeated_step_finds_in_l2_what_fits_there():
    """1000 tokens of 8 KV heads of 128 in bf16 are 4.096 MB: 4.096 µs from a memory of 1 TB/s, a quarter of
    it from an L2 that is four times as fast. Half of an L2 holds all, three quarters of it half."""
    at = attention.Decode(1e30, 1.0, 1e12, 1e30, 0.0, 0.0, 0.0, 0.0, warm=4.0, packs_always=1.0)
    read = 4.096e6
    for l2_bytes, share in ((0.0, 1.0), (read, 1.0), (read / 0.75, 0.5 + 0.5 / 4), (2 * read, 1 / 4)):
        found_s = attention.decode_s(1.0, 1000.0, 32.0, 8.0, 128.0, at, l2_bytes=l2_bytes)
        assert found_s == pytest.approx(share * 4.096e-6)


def test_serving_writes_new_keys_and_values_into_the_cache_after_reading_them():
    """8 KV heads of 128 dimensions are 1024 keys and 1024 values a token: read in 2 bytes each, 4096 bytes,
    and written in the bytes of the cache."""
    rates = known.attention("prefill", "h100-sxm").rates
    of = (2.0, 512.0, 32.0, 8.0, 128.0, rates)
    for cache_bytes, moved in ((2.0, 4096 + 4096), (1.0, 4096 + 2048)):
        extra_s = attention.prefill_s(*of, cache_bytes=cache_bytes) - attention.fused_s(*of)
        assert extra_s * rates.write_bytes_per_s == pytest.approx(2 * 512 * moved)


def test_half_of_the_ramp_is_paid_at_the_length_that_is_said():
    """Prefills are padded to tiles of 64: 1,000 tokens are 1,024, which pay 1024 / 2024."""

    def ramp_s(time_s, found):
        slow, quick = (replace(found.rates, ramp_s=ramp_s) for ramp_s in (1.0, 0.0))
        return time_s(slow) - time_s(quick)

    decode, prefill = known.attention("decode", "h100-sxm"), known.attention("prefill", "h100-sxm")
    decoded = ramp_s(lambda at: attention.decode_s(8.0, 1500.0, 32.0, 8.0, 128.0, at), decode)
    filled = ramp_s(lambda at: attention.fused_s(8.0, 1000.0, 32.0, 8.0, 128.0, at), prefill)
    assert (decoded, filled) == pytest.approx((0.5, 1024 / 2024))
    latent = {phase: known.known("latent", f"{phase}.bf16", "h100-sxm") for phase in ("decode", "prefill")}
    decoded = ramp_s(lambda at: attention.latent_decode_s(8.0, 1500.0, 128.0, at), latent["decode"])
    filled = ramp_s(lambda at: attention.latent_prefill_s(8.0, 1000.0, 128.0, at), latent["prefill"])
    assert (decoded, filled) == pytest.approx((0.5, 1024 / 2024))


def test_a_gated_expert_has_twice_the_tiles_on_the_way_up():
    """On one multiprocessor, where a step along k is all that takes time: a row of one expert of 128 × 128
    has a tile up (two where it is gated) and one down."""
    at = grouped.GroupedRates(
        1e30, 1.0, 1e30, 1e30, 1e30, 0.0, 0.0, pace_s=1.0, padding=1.0, weight_bytes=2.0
    )
    plain, gated = (grouped.experts_s(1.0, 1.0, 1.0, 1.0, 128.0, 128.0, gated, at) for gated in (0.0, 1.0))
    assert (plain, gated) == pytest.approx((128 + 128, 2 * 128 + 128))


def test_untouched_experts_are_not_read():
    rates = known.known("experts", "bf16.cutlass", "h100-sxm").rates
    one = grouped.experts_s(8.0, 8.0, 256.0, 1.0, 7168.0, 2048.0, 1.0, rates)
    all_of_them = grouped.experts_s(256.0, 256.0, 256.0, 32.0, 7168.0, 2048.0, 1.0, rates)
    assert all_of_them > 8.0 * one
    ungated = grouped.experts_s(8.0, 8.0, 256.0, 1.0, 7168.0, 2048.0, 0.0, rates)
    assert ungated < one


@pytest.mark.parametrize("key", ["bf16.cutlass", "fp8.cutlass"])
def test_training_experts_is_the_forward_pass_and_twice_its_products(gpu, key):
    """In a large layer, where a launch is nothing: less what moves the rows, forward and backward are three
    times the products of the weights' gradients."""
    rates = known.known("experts", key, gpu).rates
    held, inside = (65536.0, 8.0, 8.0), (4096.0, 8192.0, 1.0)
    forward_s = grouped.experts_s(*held, 0.0, *inside, rates)  # no token is looked for
    again_s, backward_s, weight_s = grouped.trained_experts_s(*held, *inside, 8.0, rates)
    assert again_s == forward_s and 0 < weight_s < backward_s
    beside_s = 65536.0 * (2.0 * 8.0 * 4096 + 6.0 * 8192 + 10.0 * 8192) / rates.permute_bytes_per_s
    products_s = forward_s + backward_s - beside_s
    assert products_s == pytest.approx(3.0 * weight_s, rel=0.15)


def test_a_second_copy_of_what_is_cast_is_written_beside_the_first():
    rates = known.quantise("h100-sxm").rates
    one, two = (products.quantise_s(4096.0, 8192.0, rates, second_bytes=more) for more in (0.0, 1.0))
    assert two - one == pytest.approx(4096 * 8192 / rates.memory_bytes_per_s)


@pytest.mark.parametrize("operation", exchange.OPERATIONS)
def test_a_collective_grows_with_its_bytes(gpu, operation):
    rates = known.collective(gpu).rates
    sizes = 2.0 ** np.arange(9.0, 31.0)
    for ranks in (2.0, 4.0, 8.0):
        times = exchange.collective_s(operation, sizes, ranks, rates)
        assert np.all(np.diff(times) > 0)
        assert times[0] > rates.start_s
    assert exchange.collective_s(operation, 1e9, 1, rates) == 0.0


def test_between_two_four_and_eight_ranks_rates_lie_between():
    rates = known.collective("b200").rates
    two, three, four = (exchange.gather_s(1e9, n, rates) * n / (n - 1.0) for n in (2.0, 3.0, 4.0))
    assert four < three < two
    assert exchange.of_ranks((1.0, 2.0, 4.0), 64.0) == pytest.approx(4.0)


def test_a_frameworks_own_all_reduce_is_for_small_messages():
    own, nccl = (
        known.known("mapped_all_reduce", "trtllm", "h100-sxm").rates,
        known.collective("h100-sxm").rates,
    )
    assert exchange.mapped_all_reduce_s(8192.0, 8.0, own) < 0.4 * exchange.all_reduce_s(8192.0, 8.0, nccl)
    assert exchange.mapped_all_reduce_s(256e6, 8.0, own) > exchange.all_reduce_s(256e6, 8.0, nccl)


def test_a_message_goes_at_a_quarter_of_the_rate_or_in_pieces():
    wire = exchange.Wire(bytes_per_s=100.0, start_s=1.0, late_s=6.0)
    assert exchange.send_s(100.0, wire) == 1.0 + 4 * 1.0
    assert exchange.send_s(400.0, wire) == 1.0 + 6.0 + 4.0


def test_a_captured_step_has_a_graphs_gaps_and_a_longer_one_a_streams():
    """V100: 2.9 µs and a gap of 0.5 in a graph of up to 512 tokens, of 0.9 without."""
    captured, longer = (launch_costs.served_s(3.8e-6, rows) for rows in (512.0, 513.0))
    assert (captured, longer) == pytest.approx((3.4e-6, 3.8e-6))


def test_a_message_between_nodes_is_slower():
    inside, outside = (known.known("send", key, "h100-sxm").rates for key in ("one node", "two nodes"))
    sizes = np.array([2048.0, 1e6, 1e8])
    assert np.all(exchange.send_s(sizes, inside) < exchange.send_s(sizes, outside))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: products.gemm_s(0.0, 1.0, 1.0, known.gemm("b200").rates), "m must be greater than 0"),
        (lambda: products.gemm_s(1.0, 1.0, 1.0, known.gemm("b200").rates, cold_a=1.5), "cold_a must be"),
        (lambda: products.quantise_s(1.0, -1.0, known.quantise("b200").rates), "k must be greater than 0"),
        (
            lambda: products.quantise_s(1.0, 1.0, known.quantise("b200").rates, second_bytes=-1.0),
            "second_bytes must be at least 0",
        ),
        (
            lambda: attention.latent_prefill_s(
                1.0, 0.0, 1.0, known.known("latent", "prefill.bf16", "b200").rates
            ),
            "tokens must be greater than 0",
        ),
        (
            lambda: attention.decode_s(1.0, 1.0, 1.0, 1.0, 0.0, known.attention("decode", "b200").rates),
            "head_dim must be greater than 0",
        ),
        (
            lambda: exchange.collective_s("all_reduce", -1.0, 8, known.collective("b200").rates),
            "buffer_bytes must be at least 0",
        ),
        (
            lambda: exchange.collective_s("reduce", 1.0, 8, known.collective("b200").rates),
            "operation must be one of all_reduce, all_gather",
        ),
        (
            lambda: exchange.collective_s("all_reduce", 1.0, 2.5, known.collective("b200").rates),
            "ranks must be a whole number",
        ),
    ],
)
def test_nonsense_is_refused(call, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        call()
    assert not check.is_trusted()
