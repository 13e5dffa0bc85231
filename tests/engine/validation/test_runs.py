"""Others' whole training runs: which rows are read, which are refused and why, and how bands are made."""

import csv
import tomllib
from dataclasses import replace

import numpy as np
import pytest

import engine
from engine import catalog, validation
from engine.calibration import bands
from engine.catalog.software import unsaid
from engine.validation import runs
from engine.validation.runs import JudgedRun, JudgedRuns, NotModelled
from tests.cases import in_one_test
from tests.said import refused

ROW = dict(
    id="a", family="A family", model="llama3-8b", task="pretrain", gpu="h100-sxm", gpus="64",
    nvlink_domain="8", precision="bf16", tp="2", pp="2", vp="4", cp="1", ep="1", etp="", zero="1",
    micro_batch="1", global_batch="128", seq_tokens="8192", recompute="none", grad_overlap="1",
    step_s="2.0", note="", dispatcher="", tp_overlap="", a2a_overlap="", fused="", mtp_layers="",
    pipeline_layout="", offload="none", release="1.0", source="AMD-AGI/Primus", optimizer="adam",
    cuda_graph="none", attention_precision="bf16",
)  # fmt: skip


def written(folder, *rows):
    with (folder / runs.TABLE).open("w", newline="") as file:
        lines = csv.DictWriter(file, list(ROW))
        lines.writeheader()
        lines.writerows(rows)
    return folder


def test_a_run_is_asked_of_the_engine_as_its_row_says():
    said = runs.estimate_of(ROW)
    layout = engine.Layout(gpus=64, tp=2, pp=2, schedule="interleaved", interleave=4)
    job = engine.Job(global_batch=128, seq=8192, software=catalog.modern(launches="python"))
    assert said.step_s == engine.estimate("llama3-8b", "h100-sxm", job, layout).step_s


def test_balanced_routing_and_an_nvlink_domain_are_taken_from_the_row():
    row = ROW | dict(model="qwen3-30b-a3b", gpu="gb200", nvlink_domain="72", ep="8", pp="1", vp="1")
    forced = runs.estimate_of(row | dict(note="routing forced to be balanced, no token dropped"))
    assert (forced.job.imbalance, runs.estimate_of(row).job.imbalance) == (1.0, engine.Job.imbalance)
    assert forced.at.wires.gpus_per_node == 72


def test_a_model_may_be_given_by_its_shape():
    shape = "mine (layers=32;hidden=4096;ffn=28672;heads=64;kv_heads=64;head_dim=128;vocab=32000)"
    said = runs.estimate_of(ROW | dict(model=shape, pp="1", vp="1"))
    assert (said.model.depth, said.model.ffn, said.model.gated) == (32, 28672, True)


def test_what_a_recipe_sets_reaches_the_job_and_the_layout():
    row = ROW | dict(
        model="deepseek-v3", tp="1", pp="16", vp="1", ep="64", gpus="1024", global_batch="8192",
        seq_tokens="4096", recompute="mla_up_proj+mlp",
        dispatcher="alltoall", tp_overlap="1", a2a_overlap="1", fused="rope+cross-entropy",
        mtp_layers="1", pipeline_layout="4/4/4/4/4/4/4/4/4/4/4/4/4/4/4/1",
    )  # fmt: skip
    said = runs.estimate_of(row)
    assert (said.layout.recompute, said.layout.first_layers, said.layout.last_layers) == (
        "mla_up_proj+mlp",
        4,
        1,
    )
    by = said.job.software
    assert (by.overlaps, by.dispatch, by.loss) == ("data+tensor+experts", "choice", "fused")
    assert said.job.mtp == 1


def test_only_a_graph_of_the_whole_step_spares_the_launches():
    said = {words: runs.estimate_of(ROW | dict(cuda_graph=words)) for words in ("whole step", "attn", "")}
    assert [each.job.software.launches for each in said.values()] == ["graphed", "python", "python"]


def test_a_graph_of_the_whole_step_holds_no_dispatcher_that_python_must_size():
    said = {
        (words, graph): runs.estimate_of(ROW | dict(dispatcher=words, cuda_graph=graph)).job.software.dispatch
        == "node"
        for words in ("", "alltoall", "hybridep")
        for graph in ("none", "whole step")
    }
    assert [key for key, once in said.items() if not once] == [("", "none"), ("alltoall", "none")]


def test_a_recipe_that_names_hybridep_sends_once_whatever_was_read_without_a_gpu():
    """Megatron-Bridge asks the GPU before it takes HybridEP; Qwen3's B200 of 26.02 had AllToAll (PR 2499)."""
    asked = [
        ("deepseek-v3", "26.04.01", "b200", True),
        ("deepseek-v3", "25.11", "b200", False),
        ("deepseek-v3", "26.04.01", "h100-sxm", False),
        ("qwen3-30b-a3b", "26.02", "gb200", True),
        ("qwen3-30b-a3b", "26.02", "b200", False),
        ("gpt-oss-120b", "26.04", "b200", True),
        ("gpt-oss-120b", "26.04.01", "b200", False),
        ("nemotron-3-super", "26.06", "b300", True),
    ]
    for model, release, gpu, once in asked:
        row = ROW | dict(model=model, release=release, gpu=gpu, dispatcher="alltoall", cuda_graph="none")
        assert runs.sends_once(row | dict(source="NVIDIA-NeMo/Megatron-Bridge")) is once, row
        assert not runs.sends_once(row), "what one program's recipes did is nothing of another's"


def test_what_a_run_leaves_open_is_the_catalogue_s_to_say():
    asked = [
        ("26.04", "nemotron-3-super", "b200", {"dispatch": "node", "mtp": 2}),
        ("26.08", "nemotron-3-super", "gb300", {"mtp": 2}),
        ("26.08", "nemotron-3-ultra", "gb300", {"mtp": 2}),
        ("26.08", "llama3-8b", "gb300", {}),
    ]
    for release, model, gpu, said in asked:
        found = unsaid("megatron-bridge", release, model, gpu) or {}
        assert {name: found[name] for name in ("dispatch", "mtp") if name in found} == said
    assert unsaid("maxtext", "26.04", "nemotron-3-super", "b200") is None


def test_what_megatron_leaves_to_operators_is_what_no_fused_expert_layer_holds():
    def job(**change):
        return runs.estimate_of(ROW | change).job.software

    bridge = dict(source="NVIDIA-NeMo/Megatron-Bridge", fused="router+permute")
    assert [job(**bridge).experts, job(fused="router+permute").experts] == ["operators", "grouped"]
    assert job(**bridge | dict(fused="permute+grouped-MLP")).experts == "fused"
    assert [job(attention_precision="fp8").attention, job().attention] == ["fused-8bit", "fused"]


def test_the_run_that_fitted_the_launches_of_experts_judges_nothing():
    qwen = ROW | dict(model="qwen3-30b-a3b", pp="1", vp="1", tp="1", ep="8")
    found = JudgedRuns()
    runs.of_table(
        [qwen | dict(release="26.06"), qwen | dict(release="26.04"), ROW | dict(release="26.06")], found
    )
    assert [run.fitted for run in found.runs] == [True, False, False]
    assert runs.judged(found)["band"]["step"]["all"]["runs"] == 2


def test_runs_that_are_published_cases_are_counted_once():
    """torchtitan's with and without async TP, of which those in fp8 by row stay refused by name."""
    [family] = runs.PUBLISHED
    cases = [case for case in validation.load() if case["group"] == "torchtitan, tensor parallel"]
    assert len(cases) == 8 and all(not case["fitted"] for case in cases)
    found, titan = JudgedRuns(), ROW | dict(family=family)
    runs.of_table([titan, titan | dict(precision="fp8"), titan | dict(precision="fp8-rowwise"), ROW], found)
    assert len(found.runs) == 1 and dict(found.refused) == {"fp8 with a scale for each row": 1}


def test_where_embedding_and_loss_take_a_slot_the_ends_are_a_layer_short():
    words = "embedding and loss take one layer slot each"
    assert runs.ends(words, 126, 16) == (7, 7)  # 128 slots, eight a stage
    assert runs.ends("", 126, 16) == (0, 0) and runs.ends("8/8/8/8/8/8/8/5", 61, 8) == (8, 5)


def test_a_stage_holds_every_pth_of_the_chunks_that_a_layout_lists():
    words = "4/4/4/4/4/4/4/4/4/4/4/4/4/4/4/1"
    assert runs.ends(words, 61, 16) == (4, 1)
    assert runs.ends(words, 61, 8) == (8, 5) and runs.ends(words, 61, 4) == (16, 13)
    assert runs.ends("Et*4|(t*4|)*14tmL", 61, 2) == (32, 29)  # Megatron's words: sixteen chunks


@in_one_test(
    "change, why",
    [
        (dict(task="lora"), "task lora"),
        (dict(model="nobodys-model"), "model nobodys-model"),
        (dict(gpu="nobodys-gpu"), "gpu nobodys-gpu"),
        (dict(precision=""), "precision not stated"),
        (dict(precision="fp8-rowwise"), "fp8 with a scale for each row"),
        (dict(step_s=""), "not stated"),
        (dict(tp="7"), "layout: tp"),
        (dict(offload="host: decoder_layer_input"), "offload of activations to the host"),
        (dict(offload="activations to host: fused_group_mlp"), "offload of activations to the host"),
        (dict(recompute="selective per op"), "recompute selective per op"),
    ],
)
def test_what_the_engine_cannot_say_is_counted_with_its_reason(change, why):
    with pytest.raises(NotModelled, match=why):
        runs.estimate_of(ROW | change)
    found = JudgedRuns()
    runs.of_table([ROW | change, ROW], found)
    assert len(found.runs) == 1 and sum(found.refused.values()) == 1


def test_a_table_that_is_none_is_refused_with_file_and_line(tmp_path):
    with pytest.raises(ValueError, match=f"must hold {runs.TABLE}"):
        runs.read(tmp_path)
    with pytest.raises(
        ValueError, match=rf"{runs.TABLE}:3: step_s must be a number above 0 or empty; got 'x'"
    ):
        runs.read(written(tmp_path, ROW, ROW | dict(step_s="x")))
    (tmp_path / runs.TABLE).write_text("model,gpu\nllama3-8b,h100-sxm\n")
    with refused(f"{runs.TABLE}:1", "a2a_overlap", "attention_precision"):
        runs.read(tmp_path)


def test_the_command_writes_a_file_that_says_what_it_holds(tmp_path, monkeypatch, capsys):
    """Of two runs of a table, beside the published cases; a folder without the table is a line."""
    monkeypatch.setattr(runs, "of_collectives", lambda folder, found: None)
    into = tmp_path / "bands.toml"
    assert runs.main([str(tmp_path), "--into", str(into)]) == 2 and not into.exists()
    assert capsys.readouterr().err.count("\n") == 1
    folder = written(tmp_path, ROW, ROW | dict(id="b", step_s="2.1"))
    assert runs.main([str(folder), "--into", str(into)]) == 0
    text = into.read_text(encoding="utf-8")
    assert (
        text.startswith(f"# {runs.HEAD}") and tomllib.loads(text)["family"]["step"]["A family"]["runs"] == 2
    )
    assert "step, hopper dense" in capsys.readouterr().out


def made(ratios, **axes):
    same = {"precision": "bf16", **dict.fromkeys(runs.AXES[1:], "1")}
    return [
        JudgedRun("step", "hopper dense", f"family {i}", same | axes, ratio, mfu=0.4 / ratio)
        for i, ratio in enumerate(ratios)
    ]


def test_a_band_leaves_a_tenth_out_at_either_end():
    low, high = runs._quantiles(np.arange(1.0, 20.0), runs.TAIL)  # 19 rows: the second and the last but one
    assert (low, high) == (2.0, 18.0)
    assert runs._quantiles(np.array([3.0, 1.0]), runs.TAIL) == [1.0, 3.0]  # too few for a tenth: all of them


def test_a_class_of_few_runs_is_drawn_to_the_band_of_all():
    many, few = made(np.linspace(0.8, 1.3, 400)), made(np.linspace(2.0, 2.2, 15), gpus="8")
    few = [replace(run, kind="hopper moe") for run in few]
    bands = runs.judged(JudgedRuns(runs=many + few))["band"]["step"]
    assert bands["all"]["low"] < bands["hopper moe"]["low"] < 2.0
    assert bands["hopper dense"]["low"] == pytest.approx(bands["all"]["low"], rel=0.02)


def of_families(*logs, each=1, kind="hopper dense"):
    """Runs of as many families as numbers, all of a family with this logarithm of measured over predicted."""
    return [
        replace(run, family=f"family {at}", kind=kind)
        for at, log in enumerate(logs)
        for run in made([float(np.exp(log))] * each)
    ]


def test_a_family_counts_once_however_many_runs_it_has():
    """Nine families between -0.4 and 0.4. A sweep of a thousand runs moves its end to itself, and no more."""
    logs = np.linspace(-0.4, 0.4, 9)
    few = of_families(*logs)
    many = [run for run in few if run.family != "family 8"] + [
        replace(run, family="family 8") for run in of_families(logs[8], each=1000)
    ]
    assert runs._ends(many) == pytest.approx((-0.36, 0.4))
    # by hand: the middles of nine equal weights lie at 1/18, 3/18 …; a tenth is 0.4 of the way
    assert runs._ends(few) == pytest.approx((-0.4 + 0.4 * 0.1, 0.4 - 0.4 * 0.1))


def test_a_class_of_few_families_is_drawn_towards_all():
    own, common = of_families(0.0, 0.0, 0.0), of_families(*np.linspace(-0.4, 0.4, 9))
    low, high = runs._band(own, common, 1.0)
    assert (np.log(low), np.log(high)) == pytest.approx((-0.18, 0.18))  # three families weigh a half
    assert np.log(runs._band(own, common, 2.0)) == pytest.approx((-0.36, 0.36))
    assert np.log(runs._band([], common, 1.0)) == pytest.approx((-0.36, 0.36))


def test_a_band_is_wide_enough_for_families_that_it_was_not_made_from():
    """Two families that are far apart say nothing of a third; many alike do."""
    apart, alike = of_families(-0.3, 0.0, 0.3, each=20), of_families(*np.linspace(-0.1, 0.1, 30), each=2)
    wide, held = runs._widened(apart, apart)
    assert wide > 1.5 and runs._share_of_families(held) >= runs.HOLDS
    wide, held = runs._widened(alike, alike)
    assert wide <= 1.1 and 0.8 <= runs._share(held) < 0.9
    assert runs._share_of_families(held) == pytest.approx(runs._share(held))
    assert sorted(id(run) for run, _ in held) == sorted(map(id, alike))


def test_a_band_s_share_is_told_for_each_value_of_an_axis():
    """Three runs of four with two tensor ranks lie in the band, and none of the one with four."""
    two, (four,) = of_families(0.0, 0.1, -0.1, 0.9), of_families(0.5)
    pairs = [(replace(run, axes={"tp": "2"}), run.ratio < 2.0) for run in two]
    said = runs._by_axis([*pairs, (replace(four, axes={"tp": "4"}), False)])
    assert (said["tp 2"]["runs"], said["tp 2"]["covers"]) == (4, 0.75)
    assert (said["tp 4"]["runs"], said["tp 4"]["covers"]) == (1, 0.0)


def test_a_family_is_a_source_and_a_model():
    first, second = (runs.estimate_of(ROW | dict(model=model)) for model in ("llama3-8b", "llama3-70b"))
    a, b = (replace(made([1.0])[0], said=said) for said in (first, second))
    assert len(runs._families([a, b, replace(a, ratio=2.0), replace(a, family="another")])) == 3


def test_what_lies_beyond_all_classes_has_a_wider_band():
    """Two classes, each exact in itself and 20 % from the other: neither's band holds for the other."""
    near, far = of_families(*[0.0] * 6), of_families(*[0.2] * 6, kind="tpu dense")
    assert runs._beyond(near) == 1.0
    spread = (
        of_families(*np.linspace(-0.05, 0.05, 6)),
        of_families(*np.linspace(0.1, 0.2, 6), kind="tpu dense"),
    )
    assert runs._beyond([*spread[0], *spread[1]]) > 1.2
    assert runs._beyond([*near, *far]) > 1.0


def test_bands_hold_for_families_that_they_were_not_made_from():
    """Between 75 and 90 %: a band that always holds says as little as one that seldom does."""
    for what, kinds in bands.runs()["band"].items():
        for name, entry in kinds.items():
            assert 0.75 <= entry["covers"] <= 0.9, (what, name)


def test_what_was_fitted_judges_nothing():
    fair = made(np.linspace(0.9, 1.1, 100))
    fitted = [JudgedRun("step", "hopper dense", "fitted", fair[0].axes, 50.0, fitted=True)]
    assert runs.judged(JudgedRuns(runs=fair + fitted)) == runs.judged(JudgedRuns(runs=fair))


def test_errors_that_cancel_in_the_mean_are_seen_by_axis():
    said = runs.judged(JudgedRuns(runs=made([0.8] * 50, tp="8") + made([1.0 / 0.75] * 50, tp="1")))
    assert abs(said["band"]["step"]["hopper dense"]["mean_signed"]) < 0.01
    axis = said["axis"]["hopper dense"]
    assert axis["tp 8"]["mean_signed"] == pytest.approx(0.25) == -axis["tp 1"]["mean_signed"]


def test_the_file_in_the_repository_holds_summaries_of_these_kinds():
    with bands.PLACE.open("rb") as file:
        kept = tomllib.load(file)
    assert set(kept) == {
        "band", "beyond", "goal", "axis", "apart", "regret", "ran", "family", "seen", "refused", "served",
        "traced", "program", "own", "worst",
    }  # fmt: skip
    assert set(kept["goal"]) == set(runs.GOALS)
    assert kept["band"]["step"]["all"]["runs"] > 400


def test_pages_of_memory_on_the_gpu_are_no_offload():
    assert runs.estimate_of(ROW | dict(offload="paged stash")) == runs.estimate_of(ROW)


def test_what_nvidias_software_keeps_is_taken_from_the_source_and_the_format():
    row = ROW | dict(source="NVIDIA-NeMo/Megatron-Bridge")
    wide, narrow = runs.software_of(row), runs.software_of(row | dict(precision="mxfp8"))
    assert (wide.saves_fp8, wide.weighs_early, narrow.saves_fp8) == (False, True, True)
    assert not runs.estimate_of(ROW | dict(precision="fp8")).job.software.saves_fp8
    small = runs.estimate_of(row | dict(optimizer="adam (moments bfloat16)")).job.recipe
    assert small is not None and small.optimizer_bytes == 8.0


# -- regret --------------------------------------------------------------------------------------------------
def timed(measured, **change):
    """A run of one layout that took ``measured`` seconds."""
    row = ROW | change
    said = runs.estimate_of(row)
    axes = {"precision": row["precision"]} | runs._axes(said)
    kind = runs._kind(said)
    return JudgedRun(
        "step", kind, row["family"], axes, measured / said.step_s, said=said, release=row["release"]
    )


def test_regret_is_what_the_engines_choice_took_more_than_the_best():
    layouts = [dict(tp="2", pp="1", vp="1"), dict(tp="4", pp="1", vp="1"), dict(tp="8", pp="1", vp="1")]
    predicted = [runs.estimate_of(ROW | each).step_s for each in layouts]
    assert predicted == sorted(predicted)
    jobs = [timed(seconds, **each) for seconds, each in zip((2.2, 2.0, 3.0), layouts)]
    said = runs._regret(jobs)
    assert said["all"] == said["A family"]
    assert (said["all"]["jobs"], said["all"]["layouts"]) == (1, 3)
    assert said["all"]["mean"] == said["all"]["worst"] == pytest.approx(0.1)
    assert said["all"]["spread"] == pytest.approx(0.5)
    assert said["all"]["chance"] == pytest.approx((0.1 + 0.0 + 0.5) / 3)


@pytest.mark.parametrize(("tie", "tied"), [(1.01, 0), (10.0, 1)])
def test_the_best_is_in_the_tie_only_where_the_engine_puts_it_close(monkeypatch, tie, tied):
    monkeypatch.setattr(runs, "_tie", lambda of: tie)
    jobs = [timed(2.0, tp="2", pp="1", vp="1"), timed(1.9, tp="8", pp="1", vp="1")]
    assert jobs[1].said.step_s > 1.05 * jobs[0].said.step_s
    assert runs._regret(jobs)["all"]["tied"] == tied


@in_one_test(
    "change",
    [dict(model="llama3-70b"), dict(gpus="128"), dict(global_batch="256"), dict(seq_tokens="4096"),
     dict(precision="fp8"), dict(release="2.0"), dict(family="another"), dict(tp_overlap="1"),
     dict(gpu="a100-80")],
)  # fmt: skip
def test_what_differs_in_more_than_the_layout_is_another_job(change):
    assert runs._regret([timed(2.0, tp="2"), timed(2.5, **({"tp": "4"} | change))]) == {}


def test_a_layout_that_was_timed_twice_counts_once_with_its_mean():
    assert runs._regret([timed(2.0), timed(2.4)]) == {}
    said = runs._regret([timed(2.0, tp="4"), timed(2.4, tp="4"), timed(2.0, tp="2"), timed(2.0, tp="2")])
    assert said["all"]["layouts"] == 2 and said["all"]["spread"] == pytest.approx(0.1)


# -- runs that ran -------------------------------------------------------------------------------------------
def test_runs_that_ran_are_counted_by_what_the_engine_says_of_their_memory():
    found = JudgedRuns()
    full = ROW | dict(model="llama3-70b", tp="1", pp="1", vp="1", gpus="8", family="too large")
    unsaid = ROW | dict(recompute="", family="unsaid")
    runs.of_table([ROW, ROW, full, unsaid], found)
    said = runs.judged(found)["ran"]
    assert (said["A family"]["runs"], said["A family"]["fit"]) == (2, 2) and said["A family"]["worst"] < 1.0
    assert (said["too large"]["runs"], said["too large"]["fit"]) == (1, 0) and said["too large"][
        "worst"
    ] > 1.0
    assert "unsaid" not in said and said["all"]["runs"] == 3


# -- the file in the repository is of today's engine ---------------------------------------------------------
@pytest.fixture(scope="module")
def again():
    """What the published cases alone say today; the tables of measurements stay outside of the repository."""
    found = JudgedRuns()
    runs.of_cases(found)
    return runs.judged(found)


@pytest.fixture(scope="module")
def kept():
    with bands.PLACE.open("rb") as file:
        return tomllib.load(file)


@pytest.mark.parametrize("what", ["memory", "latency", "throughput"])
def test_what_the_published_cases_decide_alone_is_what_the_engine_says_today(what, again, kept):
    """Where it is not, run ``make calibrate``, and look for the old figures in texts."""
    assert kept["band"][what]["all"] == again["band"][what]["all"]
    assert kept["goal"][what] == again["goal"][what]
    assert {name: kept["family"][what][name] for name in again["family"][what]} == again["family"][what]


def test_what_is_seen_of_serving_holds_the_published_cases(again, kept):
    seen, here = kept["seen"]["serving"], again["seen"]["serving"]
    assert set(here["generation"]) <= set(seen["generation"]) and set(here["experts"]) <= set(seen["experts"])
    for name in ("tp", "batch"):
        assert seen[name][0] <= here[name][0] and here[name][1] <= seen[name][1]


@pytest.mark.parametrize("what", ["step", "collective"])
def test_families_that_are_published_cases_are_what_the_engine_says_today(what, again, kept):
    """The other families are those of the tables, of which no row is kept."""
    here = {name: kept["family"][what].get(name) for name in again["family"][what]}
    assert here == again["family"][what]


def test_what_known_runs_gain_hangs_on_no_order_and_no_name():
    """Clusters of more sets than are counted and of fewer, forwards and backwards, under other names."""
    lot = np.random.default_rng(0)
    errors = [lot.normal(0.1 * number, 0.05, size) for number, size in enumerate((6, 8, 30, 60))]
    here = {(f"source {number}", "gpu"): each for number, each in enumerate(errors)}
    there = {(f"{9 - number}", "gpu"): each[::-1] for number, each in reversed([*enumerate(errors)])}
    for count in runs.OWN_RUNS:
        assert runs._with_own(here, count) == pytest.approx(runs._with_own(there, count)), count


def test_known_runs_by_hand():
    """Of three errors each is known once, and the two others are left."""
    found = [(known.tolist(), rest.tolist()) for known, rest in runs._parted(np.array([3.0, 1.0, 2.0]), 1)]
    assert found == [([1.0], [2.0, 3.0]), ([2.0], [1.0, 3.0]), ([3.0], [1.0, 2.0])]
    assert len([*runs._parted(np.arange(60.0), 3)]) == runs.SETS
