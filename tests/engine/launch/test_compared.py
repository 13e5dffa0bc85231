"""A measured run beside its estimate, and a profile of runs that the next estimate takes into account."""

from dataclasses import replace
from typing import Any

import pytest

import engine
from engine.calibration import own_runs
from engine.catalog.software import changed
from engine.launch import cluster_profile
from engine.launch.compared import Compared
from engine.step import layout as layouts

LINE = (
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --bf16 --micro-batch-size 1 --global-batch-size 64 "
    "--tensor-model-parallel-size 2 --sequence-parallel --vocab-size 32000"
)
SERVER = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192"


def of(found, what: str) -> Compared:
    one = found.of(what)
    assert one is not None
    return one


def entry(step_s: float, **other) -> Any:
    """What a profile keeps of a run that took so long, with other values for some of it."""
    return {**(engine.calibrate(LINE, gpu="h100-sxm", step_s=step_s).entry() or {}), **other}


@pytest.fixture(scope="module")
def at():
    return engine.check_launch(LINE, "h100-sxm").estimate


def test_what_agrees_asks_for_no_reason(at):
    found = engine.calibrate(LINE, gpu="h100-sxm", step_s=at.step_s * 1.01)
    assert of(found, "step").ratio == pytest.approx(1.01) and of(found, "step").inside
    assert found.terms == found.switches == ()


def test_each_term_alone_would_close_the_gap(at):
    took = at.step_s * 1.4
    found = engine.calibrate(LINE, gpu="h100-sxm", step_s=took)
    assert not of(found, "step").inside and found.terms
    for term in found.terms:
        other = sum(seconds for name, seconds in at.time_s.items() if name != term.name)
        assert other + term.seconds * term.times == pytest.approx(took)
    assert found.terms[0].name == at.binding  # the longest has to grow least


def test_a_step_that_is_shorter_than_estimated_asks_no_term_to_be_negative(at):
    found = engine.calibrate(LINE, gpu="h100-sxm", step_s=at.step_s * 0.8)
    assert found.terms and all(0 < term.times < 1 for term in found.terms)


def test_a_program_that_does_one_thing_otherwise_is_found(at):
    for name, value in (("kernels", "eager"), ("overlaps", "")):
        other = layouts.estimate(
            at.model, at.at, replace(at.job, software=changed(at.job.software, **{name: value})), at.layout
        )
        if abs(other.step_s / at.step_s - 1.0) < 0.03:
            continue
        found = engine.calibrate(LINE, gpu="h100-sxm", step_s=other.step_s)
        assert any(one.step_s == pytest.approx(other.step_s, rel=0.01) for one in found.switches), name
        named = [one.change.partition("=")[0] for one in found.switches]
        assert name in named
        return
    pytest.fail("no switch made a difference to try it with")


def test_tokens_a_second_are_a_step(at):
    found = engine.calibrate(LINE, gpu="h100-sxm", tokens_per_s=at.tokens_per_s / 1.2)
    assert of(found, "step").measured == pytest.approx(1.2 * at.step_s)


def test_memory_is_compared_without_what_pytorch_does_not_count(at):
    outside = at.memory_bytes["overhead"]
    held = at.memory_bytes["total"] - outside
    assert outside > 0
    found = engine.calibrate(LINE, gpu="h100-sxm", memory_bytes=held)
    assert of(found, "memory").ratio == pytest.approx(1.0)
    assert found.entry() is None  # a memory does not carry over


def test_a_log_of_another_run_is_noticed(at):
    line = f"iteration 1/ 9 | elapsed time per iteration (ms): {1e3 * at.step_s} | global batch size: 512 |"
    found = engine.calibrate(LINE, line, gpu="h100-sxm")
    assert any("512" in remark for remark in found.remarks)


def test_a_server_is_compared_for_the_requests_that_ran():
    line = "Decode batch, #running-req: {0}, #token: {1}, gen throughput (token/s): {2}, #queue-req: 0"
    few = engine.calibrate(SERVER, "\n".join([line.format(4, 4000, 500.0)] * 3), gpu="h100-sxm")
    many = engine.calibrate(SERVER, "\n".join([line.format(128, 128000, 9000.0)] * 3), gpu="h100-sxm")
    assert of(few, "token").measured == pytest.approx(4 / 500) and of(
        many, "token"
    ).measured == pytest.approx(128 / 9000)
    assert of(many, "token").estimated > 1.2 * of(few, "token").estimated
    assert few.entry() is None


@pytest.mark.parametrize(
    ("texts", "given", "words"),
    [
        (LINE, {}, "log must be given"),
        (LINE, {"step_s": 0.0}, "step_s must be above 0"),
        (LINE, {"step_s": float("nan")}, "step_s"),
        (LINE, {"log": "nothing"}, "log must have lines"),
        ("echo hello", {"step_s": 1.0}, "files must be a launch that can be estimated"),
        (SERVER, {"step_s": 1.0}, "log must say how long"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(texts, given, words):
    with pytest.raises(ValueError, match=words) as error:
        engine.calibrate(texts, gpu="h100-sxm", **given)
    assert "\n" not in str(error.value)


# -- a profile -----------------------------------------------------------------------------------------------
def test_a_profile_is_written_read_and_moves_the_estimate_towards_its_runs(at, tmp_path):
    path = tmp_path / "cluster.toml"
    ends = []
    for count in (1, 2, 3, 4):
        assert cluster_profile.added(path, entry(at.step_s * 1.3)) == count
        after = engine.profile(path).of(at)
        assert (after.runs, after.others, after.raw_step_s) == (count, 0, at.step_s)
        assert at.step_s < after.step_s < 1.3 * at.step_s
        ends.append((after.step_s, after.band_s[1] / after.band_s[0]))
    steps, widths = zip(*ends)
    assert steps == tuple(sorted(steps)) and widths == tuple(sorted(widths, reverse=True))
    assert widths[0] < at.band_s[1] / at.band_s[0]
    assert "Calibrated by 4 runs" in str(after)


def test_a_profile_of_too_few_runs_moves_nothing_and_says_how_many_there_must_be(at, tmp_path, monkeypatch):
    monkeypatch.setattr(own_runs, "carries_from", lambda what: 2)
    path = tmp_path / "cluster.toml"
    cluster_profile.added(path, entry(at.step_s * 1.3))
    one = engine.profile(path).of(at)
    assert (one.step_s, one.band_s, one.runs, one.needed) == (at.step_s, at.band_s, 1, 2)
    assert "1 run of your own so far" in str(one) and "until there are 2" in str(one)


def test_runs_of_other_machines_programs_and_editions_do_not_count(at, tmp_path):
    path = tmp_path / "cluster.toml"
    others = [
        {"gpu": "b200"},
        {"software": "torchtitan"},
        {"experts": True},
        {"precision": "fp8"},
        {"engine": "0.0.1"},
    ]
    path.write_text(cluster_profile.written([entry(at.step_s * 1.3, **other) for other in others]))
    after = engine.profile(path).of(at)
    assert (after.runs, after.others) == (0, len(others))
    assert after.step_s == at.step_s and after.band_s == pytest.approx(at.band_s)
    assert "another GPU" in after.why and "another edition" in after.why


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[run]]\ngpu = 1", r":2: .*gpu must be"),
        ("[[run]]\ngpu = 'h100-sxm'", r":1: .*missing software"),
        ("[[runs]]\n", r"\[\[run\]\] and nothing else"),
        ("run = 3", "must be a list of tables"),
        ("= 3", "not TOML"),
    ],
)
def test_a_broken_profile_names_its_line(text, words, tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        engine.profile(path)


def test_a_figure_out_of_all_proportion_is_refused(at, tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(cluster_profile.written([entry(at.step_s * 1.3, measured_s=0.0)]))
    with pytest.raises(ValueError, match="measured_s must be between"):
        engine.profile(path)
