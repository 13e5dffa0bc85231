"""incident_room: nothing is given away before it is looked at or handed in, all evidence is the ranks', and
each case is explained."""

import re

import numpy as np
import pytest

from engine.exam import incident_cases as cases
from engine.executed.incident import CORRUPT, CROSSED, KILLED, PORT, SKIPPED, THROTTLED
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.composition.incident_room import CAUSES, LOOKS
from widgets.kit.widget import all_widgets

READ = Reader(all_widgets()["incident_room"])
EVERYTHING = dict.fromkeys(LOOKS, "on")
KEYS = list(CAUSES)


def of_kind(kind: int, size: float | None = None) -> int:
    """The first incident of a kind."""
    for seed in range(1, 500):
        fault = cases.case_of(seed)
        if fault.kind == kind and size in (None, fault.size):
            return seed
    raise AssertionError(kind)


def solved(seed: int) -> dict:
    fault = cases.case_of(seed)
    return {"seed": str(seed), "rank": f"{fault.rank:g}", "cause": KEYS[int(fault.kind)], "handed_in": "on"}


def test_before_it_is_handed_in_nothing_is_given_away():
    """Whatever is looked at: neither a regime nor a readout nor the picture names the rank or the cause."""
    for looks in ({}, EVERYTHING):
        shown = READ.shown(seed="28", rank="4", cause="size", **looks)
        assert not any(regime["met"] for regime in shown["regimes"].values())
        assert shown["readouts"]["points"]["text"] == "–" == shown["readouts"]["enough"]["text"]
        assert shown["parts"]["truth"]["left"] < -1e6 and shown["documents"]["result"] == ""
        assert CAUSES["deadlock"] not in str(shown["documents"]) and lacks(shown["summary"], "rank 3") == [
            "rank 3"
        ]


def test_evidence_is_there_once_it_is_looked_at():
    names = [name for name in READ.cls.methods("document_label") if name not in ("log", "result")]
    assert [name.removeprefix("of_") for name in names] == list(LOOKS)
    closed, opened = (READ.shown(seed="7", **looks)["documents"] for looks in ({}, EVERYTHING))
    assert closed["log"] and not any(closed[name] for name in names) and all(opened[name] for name in names)


def test_the_lanes_are_seen_with_their_look_or_after_the_verdict():
    def seen(**texts):
        return (READ.part("pieces", seed="7", **texts)["left"] > -1).sum()

    assert seen() == seen(dumps="on") == 0 < seen(times="on") == seen(handed_in="on")


def test_looks_cost_their_minutes_and_no_more():
    assert READ.text("looking") == "0 s" and READ.text("looking", dumps="on", hosts="on") == "7 min"
    assert READ.text("looking", **EVERYTHING) == "33 min"
    assert READ.text("goodput", seed="7", **EVERYTHING) == "33 min"  # it hangs
    share = cases.lost_share(cases.evidence(3))
    assert READ.text("goodput", seed="3", times="on") == f"{3 * 60 * share:.3g} s"


def test_the_worked_one_has_all_points():
    """Dumps for four minutes and ten to come back; what it loses of sixteen GPUs is 14/60 of 16 hours."""
    worked = {name: str(text) for name, text in READ.cls.presets["Worked: 28"].items()}
    said = READ.readouts(**worked)
    assert (said["points"], said["goodput"], said["of_all_gpus"]) == ("10 of 10", "14 min", "3.73 GPU-hours")
    assert READ.met(**worked) == {"right", "how"}


def test_a_verdict_is_judged_by_rank_and_cause():
    right = solved(7)
    assert "right" in READ.met(**right)
    for wrong, words in (
        ({"rank": "8"}, "The cause is right"),
        ({"cause": "order"}, "The rank is right"),
        ({"rank": "8", "cause": "order"}, "Wrong"),
    ):
        shown = READ.shown(**right | wrong)
        assert shown["regimes"]["wrong"]["met"] and shown["regimes"]["wrong"]["text"].startswith(words)
        assert shown["readouts"]["points"]["text"] == "0 of 10"
        assert shown["readouts"]["goodput"]["text"] == "34 min"  # 10, 10 until it hangs again, 4, 10


def test_who_blames_the_witness_is_told_so():
    seen = cases.evidence(7)
    spoke = np.where(seen["spoke_s"] > 0, seen["spoke_s"], np.inf)
    assert np.argmin(spoke) == 3 and READ.met(seed="7", rank="3", handed_in="on") == {
        "blamed_the_witness",
        "how",
    }


def test_a_silent_job_has_no_witness():
    assert READ.met(seed="3", rank="0", handed_in="on") == {"wrong", "how"}
    assert "complain" not in READ.shown(seed="3")["summary"]
    assert "No rank has written" in READ.shown(seed="3", errors="on")["documents"]["of_errors"]


def test_more_looks_than_needed_are_named():
    shown = READ.shown(**solved(7), dumps="on", gpus="on")
    assert shown["regimes"]["more_than_needed"]["met"] and not lacks(
        shown["regimes"]["more_than_needed"]["text"], "4 min", "7 min"
    )


# -- the evidence as other programs write it ----------------------------------------------------------------
WATCHDOG = re.compile(
    r"\[rank(\d+)\]: \[Rank \1\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+), "
    r"OpType=(?:ALLREDUCE|_ALLGATHER_BASE|_REDUCE_SCATTER_BASE), NumelIn=\d+, NumelOut=\d+, "
    r"Timeout\(ms\)=600000\) ran for (?:6000\d\d|600100) milliseconds before timing out\."
)
STATUS = re.compile(
    r"\[rank(\d+)\]: \[PG ID \d PG GUID \d\((default_pg|mesh_fsdp|mesh_tp)\) Rank \1\] failure detected by "
    r"watchdog at work sequence id: (\d+) PG status: last enqueued work: (\d+), last completed work: (\d+)"
)


def test_watchdogs_speak_as_pytorch_does():
    """Of each rank that waits; work that is behind is one less than the one that hangs."""
    said = READ.shown(seed="7", errors="on")["documents"]["of_errors"]
    assert [int(rank) for rank, *_ in STATUS.findall(said)] == list(range(16)) and len(
        WATCHDOG.findall(said)
    ) == 16
    for _, _, at, enqueued, completed in STATUS.findall(said):
        assert int(completed) == int(at) - 1 and int(enqueued) >= int(at)


def test_the_log_ends_with_who_spoke_first():
    log = READ.shown(seed="7")["documents"]["log"].splitlines()
    assert log[-1].startswith("[rank3]") and WATCHDOG.match(log[-1])
    steps = [line for line in log if line.startswith("step:")]
    assert (
        len(steps) == cases.evidence(7)["done"] and len([line for line in log if "checkpoint" in line]) == 1
    )
    assert not any("atchdog" in line for line in READ.shown(seed="3")["documents"]["log"].splitlines())


def test_a_dead_rank_has_no_dump_and_says_nothing():
    seed = str(of_kind(KILLED))
    rank = int(cases.case_of(int(seed)).rank)
    documents = READ.shown(seed=seed, **EVERYTHING)["documents"]
    assert f"rank {rank:2d}  wrote no dump" in documents["of_dumps"]
    assert documents["of_dumps"].count("wrote no dump") == 1 and f"[rank{rank}]" not in documents["of_errors"]
    assert f"Killed process {cases.PIDS + rank} (python)" in documents["of_hosts"]


def test_a_port_is_down_or_slow():
    for lanes, words in ((0.0, "DOWN"), (1.0, "100 Gb/sec"), (2.0, "200 Gb/sec")):
        seed = of_kind(PORT, lanes)
        [line] = [
            each
            for each in READ.shown(seed=str(seed), ports="on")["documents"]["of_ports"].splitlines()
            if words in each
        ]
        assert line.startswith(f"rank {int(cases.case_of(seed).rank):2d} ")


# -- how it is found -----------------------------------------------------------------------------------------
@in_one_test(
    "kind, words",
    [
        (THROTTLED, ("own times", "87 °C", "1980")),
        (SKIPPED, ("dumps", "mesh_fsdp", "norm")),
        (CROSSED, ("dumps", "another order", "scheduled")),
        (KILLED, ("wrote none", "240 GB")),
        (CORRUPT, ("norm", "bits")),
    ],
)
def test_each_cause_is_explained_by_its_own_evidence(kind, words):
    shown = READ.shown(**solved(of_kind(kind)))
    rank = f"rank {cases.case_of(of_kind(kind)).rank:g}"
    assert not lacks(shown["regimes"]["how"]["text"], *words, rank)


@pytest.mark.parametrize("kind", range(cases.CAUSES))
def test_each_cause_can_be_solved_in_the_room(kind):
    seed = of_kind(kind)
    found = cases.deduced(cases.evidence(seed))
    looks = {name: "on" for name, asked in zip(LOOKS, found["looks"], strict=True) if asked}
    state = {"seed": str(seed), "rank": f"{found['rank']:g}", "cause": KEYS[int(found["cause"])], **looks}
    assert READ.text("points", **state, handed_in="on") == "10 of 10"
