"""The fence for tables of computed values: things as rows or as columns; and a fault is reported with its
place."""

import re

import markdown
import pytest

from course import lessons as locate

ACROSS = """
rows: (gpu("a100-80"), gpu("h100-sxm"))
columns:
  GPU: it.name
  HBM: it.hbm_bytes | GB
  fp8: it.fp8_flops_per_s | PFLOP/s
  Checked: it.checked
"""
DOWN = """
columns: (gpu("a100-80"), gpu("h100-sxm"))
rows:
  GPU: it.name
  holds: it.hbm_bytes / 16 | params, 1
"""


def html(fence: str) -> str:
    converter = markdown.Markdown(extensions=["course.fences"])
    return converter.convert(f"``` table{fence}```")


def grid(fence: str) -> list[list[str]]:
    """The texts of the cells, line by line."""
    lines = re.findall(r"<tr>(.*?)</tr>", html(fence))
    return [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)]
        for line in lines
    ]


def test_things_in_rows_quantities_in_columns():
    assert grid(ACROSS) == [
        ["GPU", "HBM GB", "fp8 PFLOP/s", "Checked"],
        ["A100 SXM 80 GB", "80", "–", "2026-11-21"],
        ["H100 SXM", "80", "1.98", "2026-11-21"],
    ]


def test_an_inferred_figure_has_a_mark_that_is_read_out():
    """The L40's peaks are remembered, its bandwidth is printed; what is computed from both has no mark."""
    fence = """
rows: (gpu("l40"), gpu("h100-sxm"))
columns:
  GPU: it.name
  bf16: it.bf16_flops_per_s | TFLOP/s
  Bandwidth: it.hbm_bytes_per_s | TB/s
  Ridge: it.bf16_flops_per_s / it.hbm_bytes_per_s
"""
    assert [line[1:] for line in grid(fence)[1:]] == [["≈181", "0.864", "209"], ["989", "3.35", "295"]]
    assert html(fence).count('role="img" aria-label="inferred"') == 1


def test_things_in_columns_quantities_in_rows():
    assert grid(DOWN) == [["GPU", "A100 SXM 80 GB", "H100 SXM"], ["holds", "5B", "5B"]]


def test_numbers_stand_to_the_right_and_headings_say_how_they_were_computed():
    out = html(ACROSS)
    assert out.count("text-align: right") == 2 * 3
    assert re.findall(r'data-expr="(.*?)"', out) == ["it.hbm_bytes", "it.fp8_flops_per_s"]
    assert '<th scope="row">H100 SXM</th>' in out


@pytest.mark.parametrize(
    ("fence", "words"),
    [
        ("\nrows: [1]\n", "needs 'rows' and 'columns'"),
        ("\nrows: [1]\ncolumns: [2]\n", "one must be an expression"),
        ("\nrows: catalog.nothing()\ncolumns:\n  A: it\n", "nothing"),
        ('\nrows: (gpu("a100-80"),)\ncolumns:\n  A: it.name\n  B: it.nonsense\n', "nonsense"),
        (
            '\nrows: (gpu("a100-80"),)\ncolumns:\n  A: it.name\n  B: it.hbm_bytes | stone\n',
            "unit must be one of",
        ),
        ("\nrows: [\n", "while"),
    ],
)
def test_a_faulty_table_stops_the_build_and_says_where(fence, words, tmp_path, monkeypatch):
    lesson = tmp_path / "lessons" / "02-x.md"
    lesson.parent.mkdir()
    lesson.write_text(f"# Title\n\n``` table{fence}```\n", encoding="utf-8")
    monkeypatch.setattr(locate.fault, "__defaults__", (lesson.parent,))
    with pytest.raises(locate.LessonFault, match=re.escape(words)) as stopped:
        html(fence)
    assert str(stopped.value).startswith("lessons/02-x.md:")
