"""Results as people see them: tables that fit a terminal and a notebook, and rows for a data frame."""

import csv
import io
import math
from dataclasses import FrozenInstanceError, fields, replace
from html.parser import HTMLParser

import pytest

import engine
from engine import __main__ as command
from engine.base import printing

JOB = engine.Job(global_batch=1024, seq=8192)
LONG = "a model of one's own <b>&</b> with a name that is far longer than any terminal is wide " * 2
MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --bf16"
)


def deployed() -> engine.Deployments:
    load, limits = engine.Load(per_s=4, prompt=1000), engine.Limits(ttft_s=1.0, tpot_s=0.03)
    return engine.deploy("llama3.1-8b", "h100-sxm", load, limits, top=2)


def estimated(name: str = "llama3-70b", **layout) -> engine.Estimate:
    model = replace(engine.model("llama3-70b"), key=name, name=name)
    return engine.estimate(model, "h100-sxm", JOB, engine.Layout(gpus=512, **layout))


MAKE = {
    "estimate": lambda: estimated(tp=8, pp=4, schedule="interleaved", interleave=5, recompute="full"),
    "long name": lambda: estimated(LONG, tp=8),
    "plan": lambda: engine.plan("llama3-70b", "h100-sxm", JOB, gpus=512),
    "plan of experts": lambda: engine.plan("deepseek-v3", "h100-sxm", JOB, gpus=256),
    "nothing fits": lambda: engine.plan("llama3.1-405b", "h100-sxm", JOB, gpus=8),
    "training": lambda: engine.check_launch(MEGATRON),
    "server": lambda: engine.check_launch("vllm serve meta-llama/Llama-3.1-70B -tp 2", gpu="h100-sxm"),
    "unread": lambda: engine.check_launch("<script>"),
    "serve": lambda: engine.serve("deepseek-v3", "h200", dp=32, batch=4096),
    "deploy": deployed,
    "collective": lambda: engine.collective("all_reduce", "h100-sxm", ranks=16, buffer_bytes=2**30),
    "goodput": lambda: engine.goodput(16384),
    "cost": lambda: engine.cost("h100-sxm", gpus=8, hours=10, budget_dollars=3),
    "validate": engine.validate,
}
RESULTS = {name: make() for name, make in MAKE.items()}
ALL = pytest.mark.parametrize("name", RESULTS)


class Text(HTMLParser):
    """What a notebook shows, and by which tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.words = set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.words.append(data)


@ALL
def test_it_prints_short_and_fits_a_terminal(name):
    said = str(RESULTS[name])
    lines = [line for line in said.splitlines() if not line.startswith(" " * printing.WHOLE)]
    assert lines and max(map(len, lines)) <= 80, max(lines, key=len)
    assert len(said) < 6000 and "gpus=" not in said


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_at_any_width_it_fits_and_has_every_figure(width):
    for result in RESULTS.values():
        parts = printing.parts(result)
        said = printing.text(parts, width)
        assert max(len(line) for line in said.splitlines() if not line.startswith(" " * 6)) <= width
        for table in (part for part in parts if isinstance(part, printing.Table)):
            for row in table.rows:
                cells = [printing.shown(name, row.get(name, "")) for name in table.kept()]
                missing = [cell for cell in cells if len(cell) < printing.LEAST_TEXT and cell not in said]
                assert not missing, (missing, said)


def test_columns_that_are_as_usual_are_left_out_and_others_stay():
    plain, odd = str(estimated(tp=8)), str(estimated(tp=8, pp=4, recompute="full", offload="none"))
    assert "tp " in plain and "pp " not in plain and "recompute" not in plain and "offload" not in plain
    assert "pp " in odd and "recompute  full" in odd
    rows = [{"tp": 1, "cp": 1, "fits": True}, {"tp": 2, "cp": 1, "fits": True}]
    assert printing.Table(rows, ["tp", "cp", "fits"], {"tp": 1, "cp": 1, "fits": True}).kept() == ["tp"]
    assert printing.Table(rows, ["tp", "cp"]).kept() == ["tp", "cp"]


def test_a_wide_table_goes_on_below_with_its_rows_numbered():
    rows = [{"a_long_name": 1e9 + i, "another_long_name": 2e9 + i, "text": "word " * 8} for i in range(2)]
    lines = printing.table(rows, list(rows[0]), 30)
    assert max(map(len, lines)) <= 30
    assert sum(line.startswith("2 ") for line in lines) == lines.count("") + 1 > 1


@ALL
def test_a_notebook_shows_plain_tables_and_every_text_escaped(name):
    seen = Text(RESULTS[name]._repr_html_())
    assert seen.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p", "pre"} and seen.words
    if name == "long name":
        assert LONG in seen.words
    if name == "unread":
        assert "<script" not in RESULTS[name]._repr_html_()


@ALL
def test_rows_are_plain_and_come_back_from_csv(name):
    rows = RESULTS[name].rows()
    assert rows and all(
        isinstance(v, (str, int, float, bool, type(None))) for row in rows for v in row.values()
    )
    assert not any(isinstance(value, str) and value.startswith("[") for row in rows for value in row.values())
    back = list(csv.DictReader(io.StringIO(printing.as_csv(rows))))
    assert len(back) == len(rows)
    for row, again in zip(rows, back):
        for key, value in row.items():
            if isinstance(value, float):
                assert float(again[key]) == value
            elif isinstance(value, bool):
                assert again[key] == str(value).lower()
            else:
                assert again[key] == ("" if value is None else str(value))


def test_rows_of_a_plan_are_its_layouts_and_those_of_a_check_its_changes():
    found = RESULTS["plan"]
    assert [row["step_s"] for row in found.rows()] == [e.step_s for e in (found.best, *found.runners_up)]
    assert found.rows()[0]["tp"] == found.best.layout.tp and found.rows()[0]["slower_by"] == 0
    low, high = found.best.band_s
    assert (found.rows()[0]["band_s.low"], found.rows()[0]["band_s.high"]) == (low, high)
    checked = RESULTS["server"]
    assert [row["what"] for row in checked.rows()] == ["as it stands", *(c.what for c in checked.changes)]


@ALL
def test_it_stays_a_frozen_record(name):
    result = RESULTS[name]
    with pytest.raises(FrozenInstanceError):
        setattr(result, fields(result)[0].name, None)
    assert repr(result).startswith(type(result).__name__ + "(")
    assert "\n" not in repr(result) and len(repr(result)) < 400


def test_the_command_prints_what_python_prints(capsys, monkeypatch):
    monkeypatch.setattr(command, "_width", lambda: 80)
    line = (
        "estimate --model llama3-70b --gpu h100-sxm --gpus 512 --global-batch 1024 --seq 8192 --tp 8 --pp 4"
    )
    assert command.main(line.split()) == 0
    assert capsys.readouterr().out.strip() == str(estimated(tp=8, pp=4))


def test_a_figure_without_end_is_printed_too():
    assert printing.lines({"step_s": math.inf, "share": math.nan}) == ["step_s  inf", "share   nan"]
