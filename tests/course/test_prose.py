"""Numbers in prose are computed by the engine; a bad expression or unit stops the build and says where."""

import html as escapes
import re

import markdown
import pytest

from course import lessons as locate
from course import numbers

EXTENSIONS = ["tables", "pymdownx.inlinehilite", "smarty"]
CONFIG = {
    "pymdownx.inlinehilite": {
        "custom_inline": [
            {"name": "n", "class": "n", "format": numbers.number},
            {"name": "bar", "class": "bar", "format": numbers.bar},
        ]
    }
}


def html(text: str) -> str:
    return markdown.Markdown(extensions=EXTENSIONS, extension_configs=CONFIG).convert(text)


def shown(text: str) -> list[str]:
    """What the reader sees of each computed number."""
    numbers = re.findall(r'<span class="n"[^>]*>(.*?)</span>', html(text))
    return [escapes.unescape(number).replace("\xa0", " ") for number in numbers]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('memory.state_bytes(70e9, recipe("bf16-adam")) | TB', "1.12 TB"),
        ("memory.state_bytes(70e9) | GB", "1,120 GB"),
        ("memory.state_bytes(70e9) | bytes", "1.12 TB"),
        ("memory.state_bytes(70e9) | bytes, 2", "1.1 TB"),
        ("memory.state_bytes(70e9) | TB,2", "1.1 TB"),
        ('recipe("bf16-adam").bytes_per_param', "16"),
        ('gpu("h100-sxm").name', "H100 SXM"),
        ("np.sqrt(16)", "4"),
        ("0.35 | %", "35 %"),
        ("max(2, 3) | times", "3×"),
        ("(6 | 1)", "7"),
    ],
)
def test_a_number_is_computed_and_formatted(source, value):
    assert shown(f"Text `#!n {source}` more") == [value]


def test_a_number_carries_its_expression_and_can_be_focused():
    out = html('`#!n memory.state_bytes(70e9, recipe("bf16-adam")) | TB`')
    assert 'data-expr="memory.state_bytes(70e9, recipe(&quot;bf16-adam&quot;))"' in out
    assert 'tabindex="0"' in out


def test_numbers_work_in_table_cells():
    table = "| a | b |\n|---|---|\n| `#!n 2*35e9 | params` | `#!n memory.state_bytes(1e9) | GB` |"
    assert shown(table) == ["70B", "16 GB"]


def test_ordinary_code_stays_code():
    assert "<code>n 3 | TB</code>" in html("`n 3 | TB`")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("memory.no_such(1) | TB", "no_such"),
        ("nonsense | TB", "nonsense"),
        ("1 +", "SyntaxError"),
        ("3 | parsecs", "unit must be one of"),
        ("memory.state_bytes(-1) | TB", "params must be"),
        ("np.ones(3) | TB", "TypeError"),
        ("1e400 | TB", "finite"),
        ("open('x')", "open"),
        ("gpu('h1000')", "h100"),
    ],
)
def test_a_bad_number_stops_the_build(source, words):
    with pytest.raises(locate.LessonFault, match=re.escape(words)) as stopped:
        html(f"Text `#!n {source}`")
    assert source in str(stopped.value)


def test_a_fault_names_file_and_line(tmp_path, monkeypatch):
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "02-x.md").write_text("# Title\n\nText `#!n nonsense | TB`\n", encoding="utf-8")
    monkeypatch.setattr(locate.fault, "__defaults__", (tmp_path / "lessons",))
    with pytest.raises(locate.LessonFault, match=r"^lessons/02-x\.md:3: "):
        html("Text `#!n nonsense | TB`")


def test_a_bar_is_as_long_as_its_share():
    assert 'style="width: 25.00%"' in html("`#!bar 1 / 4`")
    with pytest.raises(locate.LessonFault, match="between 0 and 1"):
        html("`#!bar 5 / 4`")
