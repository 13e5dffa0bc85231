"""The levels from registers to storage: rates by hand, α + S/B, and the payloads at which the picture
changes."""

import re

import numpy as np
import pytest

from engine.mechanism import hierarchy

CHIPS = list(hierarchy.hierarchies().values())
H100 = hierarchy.hierarchies()["h100-sxm"]
PEAK = 989e12
every_chip = pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.key)


def level(values, name):
    return values[hierarchy.LEVELS.index(name)]


@every_chip
def test_every_entry_is_sourced_and_agrees_with_its_gpu(chip):
    assert chip.gpu.key == chip.key and len(chip.source) >= 8
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", chip.checked)
    assert chip.node.link.bytes_per_s == chip.gpu.link_bytes_per_s


# dense bf16 FLOPs a clock and SM: 2,048 on Ampere, 4,096 on Hopper, 8,192 on Blackwell
@pytest.mark.parametrize(
    ("key", "flops_per_clock"), [("a100-80", 2048), ("h100-sxm", 4096), ("h200", 4096), ("b200", 8192)]
)
def test_the_clock_is_the_one_behind_the_peak(key, flops_per_clock):
    chip = hierarchy.hierarchies()[key]
    assert chip.gpu.sms * flops_per_clock * chip.clock_hz == pytest.approx(
        chip.gpu.bf16_flops_per_s, rel=5e-3
    )


@every_chip
def test_farther_levels_are_slower_and_later(chip):
    """NVLink to registers in order; behind it PCIe and the network may change places."""
    rate, alpha = hierarchy.bytes_per_s(chip), hierarchy.alpha_s(chip)
    assert (np.diff(rate[:5]) < 0).all() and (rate[5:] < rate[4]).all() and rate[7] == rate.min()
    assert (np.diff(alpha[:6]) > 0).all() and alpha[7] == alpha.max()
    assert (np.diff(hierarchy.held_bytes(chip)[1:]) > 0).all()


@pytest.mark.parametrize("key", ["h100-sxm", "h200"])
def test_behind_a_hopper_what_is_slower_also_starts_later(key):
    """Lesson 03 says so; PCIe with NCCL's bulk protocol started later than the network behind it."""
    chip = hierarchy.hierarchies()[key]
    by_rate = np.argsort(hierarchy.bytes_per_s(chip))[::-1]
    assert (np.diff(hierarchy.alpha_s(chip)[by_rate]) > 0).all()


def test_rates_of_an_h100_by_hand():
    """132 SMs at 1.83 GHz: 1,536 bytes of registers and 128 of SMEM each clock, so 371 and 30.9 TB/s."""
    rate = hierarchy.bytes_per_s(H100)
    assert level(rate, "registers") == pytest.approx(132 * 1.83e9 * 4 * 32 * 12)
    assert level(rate, "smem") == pytest.approx(132 * 1.83e9 * 128)
    assert level(rate, "link") == 450e9 and level(rate, "network") == 50e9 and level(rate, "host") == 63e9
    assert hierarchy.held_bytes(H100)[0] == 132 * 256 * 1024


def test_a_payload_takes_its_start_up_and_its_bytes():
    took = hierarchy.move_s(1e9, H100)
    assert level(took, "network") == pytest.approx(2.7e-6 + 0.02)
    assert level(took, "link") == pytest.approx(0.7567e-6 + 1e9 / 450e9)
    assert level(took, "hbm") == pytest.approx(655 / 1.83e9 + 1e9 / 3.35e12)


@every_chip
def test_at_half_rate_start_up_and_bytes_take_as_long(chip):
    rate, alpha = hierarchy.bytes_per_s(chip), hierarchy.alpha_s(chip)
    for index, payload in enumerate(hierarchy.half_rate_bytes(chip)):
        assert hierarchy.rate_reached(payload, chip)[index] == pytest.approx(rate[index] / 2)
        assert hierarchy.move_s(payload, chip)[index] == pytest.approx(2 * alpha[index])


def test_the_matmul_has_the_payload_in_its_three_matrices():
    n = hierarchy.square_matmul_width(6 * 4096**2)
    assert n == pytest.approx(4096)
    assert hierarchy.square_matmul_s(6 * 4096**2, PEAK) == pytest.approx(2 * 4096**3 / PEAK)


def test_a_wire_hides_from_the_payload_named_on():
    """NVLink: n = 3·989e12/450e9 = 6,593, so 6·n² = 261 MB; the network, nine times slower, from 81 times
    that."""
    hidden = hierarchy.hidden_from_bytes(H100, PEAK)
    assert level(hidden, "link") == pytest.approx(261e6, rel=2e-3)
    assert level(hidden, "network") == pytest.approx(81 * level(hidden, "link"))
    for index in (3, 4, 6):  # without α
        moved_s = hidden[index] / hierarchy.bytes_per_s(H100)[index]
        assert moved_s == pytest.approx(hierarchy.square_matmul_s(hidden[index], PEAK))
        started = hierarchy.alpha_s(H100)[index] / moved_s
        assert hierarchy.against_matmul(1.2 * hidden[index], H100, PEAK)[index] < 1 + started
        assert hierarchy.against_matmul(0.9 * hidden[index], H100, PEAK)[index] > 1


def test_nine_times_like_for_like_and_eighteen_as_printed():
    assert hierarchy.link_over_network(H100) == 9 and hierarchy.as_advertised(H100) == 18


@pytest.mark.parametrize("bad", [0, -1, float("nan"), "much"])
def test_bad_payloads_are_named(bad):
    with pytest.raises(ValueError, match="payload_bytes must be"):
        hierarchy.move_s(bad, H100)
    with pytest.raises(ValueError, match="payload_bytes must be"):
        hierarchy.square_matmul_s(bad, PEAK)
