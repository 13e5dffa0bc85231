"""Requests that somebody logged one by one, served again by the simulator."""

import csv

import numpy as np
import pytest

from engine import catalog
from engine.serving import inference
from engine.step.layout import machine
from engine.validation import accuracy, traced_runs

RUN = dict(
    id="a", family="A trace", model="llama3.1-8b", gpu="rtx4090", precision="bf16", accelerators="1",
    note="tp 1; at most 256 sequences and 2048 tokens a step; KV room 41408 tokens",
)  # fmt: skip


def logged(came_s, prompts, outputs, first_s=None, last_s=None):
    none = np.zeros(len(came_s))
    columns = (
        came_s,
        prompts,
        outputs,
        none if first_s is None else first_s,
        none if last_s is None else last_s,
    )
    return traced_runs.Requests(*(np.array(column, dtype=float) for column in columns))


def written(folder, run, of):
    rows = [
        dict(
            run="a",
            queued_s=came,
            prompt_tokens=prompt,
            output_tokens=output,
            first_token_s=first,
            last_token_s=last,
        )
        for came, prompt, output, first, last in zip(*of)
    ]
    for name, lines in (("serving_runs.csv", [run]), (traced_runs.TABLE, rows[::-1])):
        with (folder / name).open("w", newline="") as file:
            table = csv.DictWriter(file, list(lines[0]))
            table.writeheader()
            table.writerows(lines)
    return folder


def test_a_request_alone_takes_its_prompt_and_its_steps():
    served = traced_runs.simulated(RUN, logged([0.0], [1000], [101]))
    at, model = machine(catalog.gpu("rtx4090")), catalog.model("llama3.1-8b")
    prompt_s = inference.prefill(model, at, 1, 1, 1000).total_s
    step_s = inference.decode_step(model, at, 1, 1, 1050).total_s
    assert served.first_s[0] == pytest.approx(prompt_s, rel=0.03)
    assert served.last_s[0] - served.first_s[0] == pytest.approx(100 * step_s, rel=0.03)


def test_a_step_reads_the_caches_of_a_prompt_and_half_of_its_answer(monkeypatch):
    """The mean of what was logged, whose spread is that of the requests themselves."""
    asked, costs = [], traced_runs.step_costs.costs
    monkeypatch.setattr(
        traced_runs.step_costs,
        "costs",
        lambda *all, **how: asked.append(how["context"]) or costs(*all, **how),
    )
    traced_runs.simulated(RUN, logged([0.0, 50.0], [900, 1100], [100, 300]))
    assert asked == [pytest.approx(1000 + 200 / 2, rel=0.01)]


def test_a_cache_that_is_full_keeps_requests_waiting():
    many = logged(np.zeros(100), np.full(100, 800), np.full(100, 200))
    small, large = (
        traced_runs.simulated(RUN | {"note": RUN["note"].replace("41408", room)}, many)
        for room in ("8000", "200000")
    )
    assert small.last_s.max() > 2 * large.last_s.max()


def test_a_run_is_judged_in_the_order_of_its_arrivals(tmp_path):
    """What the simulator itself served is met; half as fast is twice as long."""
    asked = logged(np.arange(40) / 10, 200 + 20 * np.arange(40), np.full(40, 50))
    served = traced_runs.simulated(RUN, asked)
    [(name, same)] = traced_runs.read(written(tmp_path, RUN, served)).items()
    assert name == "A trace, rtx4090" and same["requests"] == 40
    for each in ("ttft", "tpot", "latency"):
        assert same[f"{each}_measured_s"] == same[f"{each}_ours_s"] and same[f"{each}_alike"] == 1.0
    assert same["whole_measured_s"] == same["whole_ours_s"]
    slow = served._replace(first_s=2 * served.first_s, last_s=2 * served.last_s)
    assert traced_runs.judged(RUN, slow)["tpot_measured_s"][0] == pytest.approx(
        2 * same["tpot_ours_s"][0], rel=1e-3
    )


def test_a_run_whose_limits_or_gpu_are_not_known_is_left_out(tmp_path):
    asked = logged([0.0], [100], [10], [1.0], [2.0])
    for changed in ({"gpu": "rtx-9999"}, {"note": "KV room not recorded tokens"}):
        assert traced_runs.read(written(tmp_path, RUN | changed, asked)) == {}
    with pytest.raises(ValueError, match="note must name the limits"):
        traced_runs.simulated(RUN | {"note": ""}, asked)


def test_what_the_page_says_of_the_queue():
    """First tokens and the others are too slow by as much, a seventh or so: it is the step, not the queue."""
    found = {row.what: row for row in accuracy.traced()}
    assert set(found) == set(accuracy.TRACED.values())
    assert all(0.1 < row.error < 0.22 for row in found.values())
    assert found["first token"].alike > 0.99 and found["last token"].alike > 0.99
