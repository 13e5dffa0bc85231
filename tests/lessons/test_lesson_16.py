"""Lesson 16 has the parts of a lesson, its numbers are those worked by hand, its snippets run, its words
agree with the engine."""

import contextlib
import io
from pathlib import Path

import pytest

import kernels
from engine import catalog
from engine.executed import flash_attention
from engine.mechanism import fusion, matmul
from tests import machine
from tests.cases import in_one_test
from tests.lessons.reading import Lesson
from widgets.gpu.flash_attention import FlashAttention

LESSON = Lesson("16-custom-kernels-and-fusion.md")
H100 = catalog.gpu("h100-sxm")
AT = matmul.chip(H100)

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "32 * 16384**2 * 2 | GB": "17.2 GB",
    "2 * models.parameters(llama) | GB": "16.1 GB",
    "32 * standard_bytes(seq=16384, head_dim=128) | GB": "69.3 GB",  # 8 · 16,384 · 16,512 · 32
    "attention_flops_s": "4.45 ms",  # 4.4 TFLOP / 989
    "standard_moving_s": "27.9 ms",  # 69.3 GB / 2.48 TB/s
    "16384 * 4 | KiB": "64 KiB",
    "tiled_bytes(seq=16384, head_dim=128, rows=1) | TB": "4.4 TB",  # 32 · 32,770 · 16,384 · 128 · 2
    "32 * 32768**2 * 2 | GB": "68.7 GB",
    "memory_share | %": "74 %",
    "break_even_flops_per_element(h100)": "108",  # 4 · 67 / (0.74 · 3.35)
    "break_even_flops_per_element(a100)": "51.7",  # 4 · 19.5 / (0.74 · 2.039)
    'break_even_flops_per_element(gpu("b200"))': "50.7",  # 4 · 75 / (0.74 · 8)
    "gelu_bytes(elements=1) / fusion.fused_bytes(1)": "9×",  # 18 passes, 2
    "launch_bound_elements(h100) | params": "7.44M",  # 12 µs · 0.74 · 3.35e12 / 4
    "np.floor(np.sqrt(a100": "204",  # √41,984
    "2 / (2 * 64**2) | times": "10.3×",  # 83,968 / 8,192
    "7 / 6 - 1": "16.7 %",
    'noncausal_16384").measured / 128': "5.91 TB/s",  # 756 / 128
    "15 / 9": "1.67×",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.right("fusion") == 1
    assert LESSON.right("flash_attention") == 1  # over HBM; into the SRAM it is four times


def test_the_flash_question_is_of_one_level_of_memory():
    """Twice over HBM, four times into the SRAM: the right answer is right by the table that follows it."""
    hbm, into = (
        [moved(8192, width, flash_attention.tile_rows(H100.smem_bytes_per_sm, width)) for width in (64, 128)]
        for moved in (
            lambda seq, width, rows: flash_attention.from_hbm_bytes(seq, width, rows, H100.sms),
            flash_attention.tiled_bytes,
        )
    )
    assert hbm[1] / hbm[0] == 2 and into[1] / into[0] == pytest.approx(4, rel=0.08)
    assert "Over HBM alone" in LESSON.text


def run(code: str) -> tuple[dict, str]:
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, LESSON.name, "exec"), names)
    return names, printed.getvalue()


def test_pytorch_launches_eight_kernels_and_18_passes_for_a_gelu_by_hand():
    torch = machine.torch()
    names, printed = run(LESSON.code("python")[0])
    assert printed == "8 36.0\n1 4.0\n"  # what the comments say
    assert names["by_hand"].bytes == 1e6 * (fusion.chain_bytes(1, 6) + fusion.chain_bytes(1, 2, 2))
    assert names["fused"].bytes == fusion.fused_bytes(1e6)
    x = torch.linspace(-4, 4, 101)
    torch.testing.assert_close(names["gelu_by_hand"](x), torch.nn.functional.gelu(x, approximate="tanh"))


def test_pytorch_moves_what_the_envelope_counts_between_products():
    """Each row's bytes a value, as PyTorch's operators read and write them; rows' statistics and tables of
    one row hardly count."""
    torch = machine.torch()
    from record import decode_kernels as llama
    from record.eager_bytes import Moved

    x = torch.randn(4, 512, llama.HIDDEN, dtype=torch.bfloat16)
    norm, angles = llama.Norm().to(torch.bfloat16), torch.rand(1, llama.HIDDEN, dtype=torch.bfloat16)
    cases = (
        lambda: norm(x + x),
        lambda: torch.nn.functional.silu(x) * x,
        lambda: llama.rotated(x, angles, angles),
    )
    for row, case in zip(fusion.between_products(catalog.model("llama3-8b"), 1), cases, strict=True):
        with torch.no_grad(), Moved() as counted:
            case()
        assert counted.total / x.numel() == pytest.approx(row.apart_bytes_a_value, rel=0.02), row.name


@pytest.mark.parametrize(("tokens", "rows"), [(256, 64), (100, 32), (7, 64)])
def test_the_tiled_attention_is_pytorch_s(tokens, rows):
    torch = machine.torch()
    names, _ = run(LESSON.code("python")[1])
    q, k, v = torch.randn(3, tokens, 16, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    torch.testing.assert_close(names["tiled_attention"](q, k, v, rows), expected)


def test_what_is_measured_here_is_the_lesson_s_gelu():
    torch = machine.torch()
    from measure.fusion import gelu_by_hand, standard_attention

    names, _ = run(LESSON.code("python")[0])
    x = torch.linspace(-4, 4, 11)
    torch.testing.assert_close(gelu_by_hand(x), names["gelu_by_hand"](x), rtol=0, atol=0)
    q, k, v = torch.randn(3, 1, 2, 8, 4)
    torch.testing.assert_close(
        standard_attention(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v)
    )


def test_epilogues_bring_less_the_wider_the_product():
    gains = [
        fusion.gain(fusion.compared(2048 * 49152, 2, 10, 2, k, H100)) for k in (16, 128, 1024, 4096, 12288)
    ]
    assert gains == sorted(gains, reverse=True) and gains[0] > 2.5 and gains[-1] < 1.12


def test_attention_has_most_of_the_envelope_s_gain():
    attention_s = flash_attention.standard_s(8192, 128, 32, AT) - flash_attention.tiled_arithmetic_s(
        8192, 128, 32, AT
    )
    rest_s = matmul.stream_s(8192 * (8192 * 32 + 14336 * 4 + 5120 * 16), AT)
    assert attention_s > 2 * rest_s


def test_a_head_that_loses_by_the_first_count_runs_by_the_second():
    """FlashAttention-3 runs heads of 256 on an H100: more bytes into the SRAM than standard attention moves,
    and from HBM a hundredth of them."""
    rows = flash_attention.tile_rows(H100.smem_bytes_per_sm, 256)
    into, hbm = (
        flash_attention.tiled_bytes(16384, 256, rows),
        flash_attention.from_hbm_bytes(16384, 256, rows, H100.sms),
    )
    assert into > flash_attention.standard_bytes(16384, 256) > 20 * hbm
    assert "pays while" not in LESSON.text


def test_the_tiles_are_not_held_up_by_their_bytes():
    """Figure 2 of the paper: a bandwidth's worth of bytes is well under half of the measured time."""
    hbm = catalog.gpu("a100-40").hbm_bytes_per_s
    assert 4.4e9 / hbm < 0.45 * 7.3e-3 and 40.3e9 / hbm > 0.6 * 41.7e-3


def test_the_envelope_takes_the_figure_s_time_for_the_standard_way():
    figure = FlashAttention()
    figure.set_state({"seq": 8192, "head_dim": 128, "heads": 32})
    assert LESSON.value("standard_s") == pytest.approx(float(figure.standard_memory_s()))


def test_l2_s_ridge_is_that_of_lesson_17():
    assert LESSON.value("l2_ridge") == pytest.approx(Lesson("17-triton.md").value("l2_ridge"))


def test_what_it_says_of_a_kernel_s_length_is_the_file_s():
    source = (Path(kernels.__file__).parent / "attention.py").read_text()
    kernel = source.split("@triton.jit")[1].split("def attention(")[0]
    assert 20 <= sum(bool(line.strip()) for line in kernel.splitlines()) <= 34
    assert "thirty in Triton" in LESSON.text and "thirty lines" in Lesson("17-triton.md").text
