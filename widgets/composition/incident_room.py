"""A job of sixteen ranks in which one has a fault, executed: the reader looks at what the ranks left behind,
and names the rank and the cause before too much goodput is lost."""

import numpy as np

from engine.base import units
from engine.exam import incident_cases as cases
from engine.executed.incident import NODE, RANKS, SIDE, STEPS
from widgets.composition.incident import evidence_words as words
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.guide import Light
from widgets.kit.text import choose, phrase, plain, select, show, show_in
from widgets.kit.widget import Widget, document, hint, once, part, readout, regime

EVIDENCE, VERDICT, HAND_IN = "Look at the evidence", "Your verdict", "Hand in"
LOOKS = ("errors", "dumps", "times", "gpus", "ports", "hosts", "replay")  # in the order of ``cases.MINUTES``
CAUSES = {
    "hot": "its GPU is too hot and lowers its clock",
    "loader": "its data loader is slow",
    "port": "its network port is slow or down",
    "writer": "it is slow to write its checkpoint",
    "skipped": "it skipped a collective",
    "order": "it called two collectives of one group in the wrong order",
    "size": "its tensor has another size",
    "deadlock": "it called collectives of two groups in the wrong order",
    "killed": "its process was killed, out of memory",
    "corrupt": "it computes wrong numbers",
}
SAID = list(CAUSES.values())
UNSAID = "not said yet"
# The picture: bars of steps above, a lane for each rank below, in pixels
HEIGHT, BARS_AT, TALL = 470, 392.0, 48.0
TOP, EACH, HALF = 330.0, 17.4, 6.6
NEXT_NODE = 8.0  # between the lanes of two nodes
LOOKS_LIKE = {"data": "ink-soft", "computes": "compute", "FSDP": "network", "saves": "hbm", "waits": "panel"}
SHORT = [
    *("data", "computes", "computes", "computes", "saves"),
    *("FSDP", "waits", "FSDP", "waits", "waits", "waits"),
]  # by what a piece of the run is
DOES = [
    *("loads its batch", "computes", "computes", "reads", "writes its checkpoint"),
    *("gathers a block", "sums activations", "scatters gradients", "sums the norm", "meets all", "waits"),
]


def lane(rank):
    """The height of a rank's lane."""
    return TOP - EACH * rank - np.where(rank >= NODE, NEXT_NODE, 0.0)


LANES = lane(words.RANK)


def look(label: str, minutes: float) -> Switch:
    """A look at a kind of evidence."""
    return Switch(f"{label} ({minutes:g} min)", more=EVIDENCE, until="seed")


class IncidentRoom(Widget):
    question = "Which of sixteen ranks broke the job, and how?"
    seed = Number(
        "Incident number", 7, 1, cases.MOST_INCIDENTS, stops=100, log=False, whole=True, slider=False
    )
    errors, dumps, times, gpus, ports, hosts, replay = (
        look(label, minutes)
        for label, minutes in zip(
            (
                "Standard error of all ranks",
                "Flight recorders' dumps",
                "Each rank's own times",
                "All GPUs, by nvidia-smi",
                "Counters of the network ports",
                "Processes and kernels of the hosts",
                "One batch, computed by all replicas",
            ),
            cases.MINUTES,
            strict=True,
        )
    )
    rank = Choice(
        "The rank",
        {str(rank): (f"rank {rank}", float(rank)) for rank in range(RANKS)} | {"unsaid": (UNSAID, -1.0)},
        "unsaid",
        more=VERDICT,
    )
    cause = Choice(
        "The cause",
        {key: (said, float(at)) for at, (key, said) in enumerate(CAUSES.items())}
        | {"unsaid": (UNSAID, -1.0)},
        "unsaid",
        more=VERDICT,
    )
    handed_in = Switch("Hand in, and see what it was", more=HAND_IN, until="seed")

    sections = (EVIDENCE, VERDICT, HAND_IN)
    paper = {
        "name": "incident",
        "seed": "seed",
        "done": "handed_in",
        "points": "points",
        "most": int(cases.FULL_MARKS),
        "draws": [("Another incident", 1, cases.MOST_INCIDENTS)],
    }
    presets = {
        "A job that stands still: 7": {},
        "A job that is slow: 3": {"seed": 3},
        "A gradient that jumps: 5": {"seed": 5},
        "Worked: 28": {"seed": 28, "dumps": "on", "rank": "3", "cause": "deadlock", "handed_in": "on"},
    }
    in_page = True  # the ranks run several times as fast there as in Python
    break_it = "Blame the rank that complained first, hand that in, and see what a wrong verdict costs."
    tap = {"rows": "rank"}
    lights = {
        "lanes": Light("what each rank did in the last two steps", ("pieces",)),
        "steps": Light("how long each step took", ("steps",)),
    }
    assumptions = (
        "Sixteen H100s in two nodes, cut as FSDP 4 × tensor 4, are executed for eight steps with two "
        "checkpoints. "
        "One of them has a fault, and all that you can look at follows from that run. How long a look and a "
        f"restart take is our guess: {cases.RESTART_MIN:g} min to come back, and {cases.UNTIL_SEEN_MIN:g} "
        "more "
        "until a fault that is still there shows again. Communication does not overlap with computation, "
        "since "
        "a rank has one stream. Unlike sizes always hang here; in NCCL they may also give wrong sums. The "
        "processes were started by srun, which leaves the others running when one dies; torchrun ends them."
    )
    formula = (
        "$$\\text{lost} = s\\,t + R \\;\\; \\left(+\\; s\\,(W + t_{least}) + R \\text{ after a wrong "
        "verdict}\\right), \\qquad \\text{points} = \\left\\lfloor 10\\, \\frac{s\\,t_{least} + R}{s\\,t "
        "+ R} "
        "\\right\\rfloor$$\n\nThe job loses the share $s$ of its pace while you look for $t$ minutes: all "
        "of it "
        "when it hangs or computes wrongly. $R$ is a restart, $W$ the wait until the fault shows again, and "
        "$t_{least}$ what the looks take that the evidence asks for, one after the other. A wrong verdict "
        "has "
        "no points."
    )

    # -- the engine ------------------------------------------------------------------------------------------
    @once
    def fault(self):
        return cases.case_of(self.seed)

    @once
    def seen(self):
        return cases.evidence(self.seed)

    @once
    def found(self):
        return cases.deduced(self.seen())

    def looked(self):
        """Minutes of looking."""
        return cases.looked_min([np.where(getattr(self, name), 1.0, 0.0) for name in LOOKS])

    def is_right(self):
        return cases.is_right(self.fault(), self.rank, self.cause)

    def lost(self):
        """Minutes of the job that the verdict loses, or has lost so far."""
        so_far = cases.lost_share(self.seen()) * self.looked()
        verdict = cases.lost_min(
            cases.lost_share(self.seen()), self.looked(), self.is_right(), self.found()["minutes"]
        )
        return np.where(self.handed_in, verdict, so_far)

    def scored(self):
        return cases.points(
            cases.lost_share(self.seen()), self.looked(), self.is_right(), self.found()["minutes"]
        )

    def hangs(self):
        return ~cases.runs(self.seen())

    def first(self):
        """The rank that complained first."""
        return cases.first_to_speak(self.seen())

    def revealed(self, text):
        return choose(self.handed_in, text, "–")

    # -- what is drawn ---------------------------------------------------------------------------------------
    @part("seed")
    def steps(self):
        """Each step of the log, and the checkpoint behind it."""
        seen = self.seen()
        known = np.isfinite(seen["step_s"])
        step_s, save_s = (np.where(known, seen[name], 0.0) for name in ("step_s", "save_s"))
        longest = np.max(step_s + save_s)
        at = np.arange(float(STEPS)) / STEPS
        top = BARS_AT + TALL * step_s / longest
        return {
            "left": fig.gone_unless(known, at),
            "right": fig.gone_unless(known, at + 0.09),
            "bottom": BARS_AT + 0 * top,
            "top": top,
            "saved": top + TALL * save_s / longest,
            "step_s": step_s,
            "save_s": save_s,
        }

    @hint("steps")
    def of_a_step(self):
        steps = self.steps()
        saved = choose(
            steps["save_s"] > 0,
            phrase(", and then {s} for a checkpoint", s=show(steps["save_s"], "seconds")),
            "",
        )
        return phrase(
            "Step {n}: {s}{saved}",
            n=[str(cases.FIRST_STEP + k) for k in range(STEPS)],
            s=show(steps["step_s"], "seconds"),
            saved=saved,
        )

    @part("seed", shown=False)
    def step_labels(self):
        """The first step's time and the last's, or where it stopped."""
        seen = self.seen()
        done = seen["done"]
        last = lookup(seen["step_s"], done - 1.0)
        stuck = fig.gone_unless(self.hangs(), done / STEPS)
        return {
            "first_x": 0.0,
            "last_x": (done - 1.0) / STEPS + 0.09,
            "y": BARS_AT - 10,
            "first": show(seen["step_s"][0], "seconds"),
            "last": show(last, "seconds"),
            "stuck_x": stuck,
            "stuck_end": stuck + 0.09,
            "stuck": choose(self.hangs(), "no step", ""),
            "title": choose(
                self.hangs(), "The log: steps until it stood still", "The log: time of each step"
            ),
        }

    def sees_lanes(self):
        return self.times | self.handed_in

    @part("seed", "times", "handed_in")
    def pieces(self):
        """What each rank did in the last two steps."""
        seen = self.seen()
        whole = seen["until_s"] - seen["from_s"]
        start, end = ((seen[f"piece_{side}_s"] - seen["from_s"]) / whole for side in ("start", "end"))
        height = lane(seen["piece_rank"])
        shown = self.sees_lanes() & (height > 0)
        return {
            "left": fig.gone_unless(shown, start),
            "right": fig.gone_unless(shown, end),
            **fig.rows_of(height, HALF),
            "rank": seen["piece_rank"],
            "what": select(seen["piece_what"], SHORT),
            "does": select(seen["piece_what"], DOES),
            "seconds": seen["piece_end_s"] - seen["piece_start_s"],
        }

    @hint("pieces")
    def of_a_piece(self):
        pieces = self.pieces()
        said = phrase(
            "Rank {rank} {does}: {s}",
            rank=show(pieces["rank"], "count"),
            does=pieces["does"],
            s=show(pieces["seconds"], "seconds"),
        )
        return choose(self.sees_lanes() & (pieces["rank"] >= 0), said, "")

    @part("seed", "rank", "cause", "times", "handed_in")
    def rows(self):
        """A lane for each rank, which one the reader names, and which one complained first."""
        named = self.rank == words.RANK
        blank = np.where(self.sees_lanes(), 0.0, 1.0) * LANES > 0
        return {
            "y": LANES,
            **fig.rows_of(LANES, HALF),
            "left": fig.gone_unless(blank, 0.0 * LANES),
            "right": fig.gone_unless(blank, 1.0 + 0.0 * LANES),
            "label": choose(named, phrase("→ {n}", n=words.NUMBERS), words.NUMBERS),
            "named": np.where(named, self.cause + 1.0, -1.0),
            "said": choose(blank & self.hangs() & (self.first() == words.RANK), "complained first", ""),
        }

    @hint("rows")
    def of_a_rank(self):
        rows = self.rows()
        said = [f". You say: {each}" for each in SAID]
        named = select(np.maximum(rows["named"], 0.0), [". You name it, and no cause yet", *said])
        return phrase(
            "Rank {n}: node {node}, replica {dp}, tensor rank {tp}{named}",
            n=words.NUMBERS,
            node=words.NODES,
            dp=words.REPLICAS,
            tp=words.TENSOR_RANKS,
            named=choose(rows["named"] >= 0, named, ""),
        )

    @part("seed", "handed_in", "times", shown=False)
    def truth(self):
        """The lane of the rank that it was, once that is told."""
        y = lane(self.fault().rank)
        return {
            "left": fig.gone_unless(self.handed_in, 0.0),
            "right": fig.gone_unless(self.handed_in, 1.0),
            "bottom": y - EACH / 2,
            "top": y + EACH / 2,
            "title": choose(
                self.sees_lanes(),
                "What each rank did in the last two steps",
                "What each rank did: look at its own times",
            ),
        }

    def figure(self, sources):
        p = fig.plot((-0.118, 1), (0, HEIGHT), height=HEIGHT)
        fig.bare(p)
        color, sides = fig.COLOR, fig.BOX
        steps, labels = sources["steps"], sources["step_labels"]
        p.quad(source=steps, **sides, fill_color=color["compute"], line_color=None)
        p.quad("left", "right", "top", "saved", source=steps, fill_color=color["hbm"], line_color=None)
        p.quad("stuck_x", "stuck_end", BARS_AT, BARS_AT + TALL, source=labels, **fig.IDLE)
        p.text(-0.118, HEIGHT - 12, text="title", source=labels, **fig.BOLD)
        p.text("first_x", "y", text="first", source=labels, **fig.LABEL)
        p.text("last_x", "y", text="last", source=labels, text_align="right", **fig.LABEL)
        p.text("stuck_x", "y", text="stuck", source=labels, **fig.LABEL)
        p.text(-0.118, TOP + 24, text="title", source=sources["truth"], **fig.BOLD)
        p.quad(source=sources["rows"], **sides, **fig.IDLE)
        p.text(-0.012, "y", text="label", source=sources["rows"], text_align="right", **fig.LABEL)
        p.text(0.01, "y", text="said", source=sources["rows"], **fig.TEXT)
        hues = fig.hues("what", LOOKS_LIKE)
        p.quad(source=sources["pieces"], **sides, fill_color=hues, line_color=color["idle"], line_width=0.6)
        p.quad(source=sources["truth"], **sides, fill_color=None, line_color=color["ink"], line_width=2)
        looks = {
            name: fig.IDLE if token == "panel" else {"fill_color": color[token], "line_color": color[token]}
            for name, token in LOOKS_LIKE.items()
        }
        fig.key(p, looks, 12, 34, phone_px=300)
        return p

    # -- what is given ---------------------------------------------------------------------------------------
    @readout("The job", given=True)
    def job(self):
        return f"{RANKS} H100s in two nodes of {NODE}, FSDP {SIDE} × tensor {SIDE}"

    @readout("The alarm", given=True)
    def alarm(self):
        seen = self.seen()
        stands = f"no step for 10 min; rank {plain(self.first())} was the first to complain"
        jumps = f"the gradient's norm is {show(cases.jump(seen), 'times')} its usual"
        return choose(self.hangs(), stands, choose(cases.computes_wrongly(seen), jumps, self.slower()))

    def slower(self):
        lost = show(cases.lost_share(self.seen()), "percent")
        return f"the job has lost {lost} of its pace"

    # -- what comes out --------------------------------------------------------------------------------------
    @readout("Looked for")
    def looking(self):
        return show(self.looked() * units.MINUTE, "seconds")

    @readout(
        "Goodput lost", help="Minutes of the whole job since the alarm, the restart included once you hand in"
    )
    def goodput(self):
        return show(self.lost() * units.MINUTE, "seconds")

    @readout("That is", rest=True)
    def of_all_gpus(self):
        return show_in(cases.gpu_hours(self.lost()), "GPU-hours")

    @readout("Points")
    def points(self):
        return self.revealed(f"{show(self.scored(), 'count')} of {cases.FULL_MARKS:g}")

    @readout("Of its pace the job loses", rest=True)
    def share(self):
        return show(cases.lost_share(self.seen()), "percent")

    @readout("The looks that the evidence asks for", rest=True)
    def enough(self):
        return self.revealed(show(self.found()["minutes"] * units.MINUTE, "seconds"))

    def it_was(self):
        return f"rank {plain(self.fault().rank)}: {select(self.fault().kind, SAID)}"

    def said(self):
        """The reader's verdict."""
        rank = choose(self.rank < 0, "no rank", f"rank {plain(np.maximum(self.rank, 0.0))}")
        return f"{rank}: {select(np.where(self.cause < 0, float(len(SAID)), self.cause), [*SAID, UNSAID])}"

    @regime()
    def begin(self):
        untouched = (self.looked() <= 0) & (self.rank < 0) & ~self.handed_in
        return untouched, (
            "One rank of sixteen has a fault, which the others meet as a wait or as a wrong gradient; the "
            "rank that complains is seldom the one at fault. Switch on a piece of evidence: it opens below, "
            "and the job loses goodput for as long as you look. Once you know, name the rank and the cause, "
            "and hand in."
        )

    @regime()
    def right(self):
        minutes = show(self.lost() * units.MINUTE, "seconds")
        return self.handed_in & self.is_right(), (
            f"Right, {self.points()}. It was {self.it_was()}. The job lost {minutes}, restart and all."
        )

    @regime()
    def wrong(self):
        near = choose(
            self.rank == self.fault().rank,
            "The rank is right, and the cause is another",
            choose(self.cause == self.fault().kind, "The cause is right, and the rank is another", "Wrong"),
        )
        return self.handed_in & ~self.is_right() & ~self.blames_the_first(), (
            f"{near}: it was {self.it_was()}. Your restart mended nothing, and the job lost "
            f"{show(self.lost() * units.MINUTE, 'seconds')} until somebody else had found it."
        )

    def blames_the_first(self):
        return cases.blames_a_witness(self.seen(), self.fault(), self.rank)

    @regime(target=True)
    def blamed_the_witness(self):
        return self.handed_in & self.blames_the_first(), (
            f"Rank {plain(self.first())} waits like most others, and its watchdog happened to look first: "
            "it is a "
            f"witness. It was {self.it_was()}, and the job lost "
            f"{show(self.lost() * units.MINUTE, 'seconds')}."
        )

    @regime()
    def how(self):
        return self.handed_in, f"How it is found. {words.why(self.seen(), self.found())}"

    @regime()
    def more_than_needed(self):
        least = self.found()["minutes"]
        return self.handed_in & self.is_right() & (self.looked() > least), (
            f"Looks for {show(least * units.MINUTE, 'seconds')} were enough, and you took "
            f"{show(self.looked() * units.MINUTE, 'seconds')}, during which the job lost "
            f"{show(cases.lost_share(self.seen()), 'percent')} of its pace."
        )

    # -- the evidence ----------------------------------------------------------------------------------------
    def looked_at(self, switch, text):
        """Evidence, once somebody has looked."""
        return choose(switch, text, "")

    @document("The job's log", "train.log", unfolded=True)
    def log(self):
        return words.job(self.seen())

    @document("Standard error", "stderr.log")
    def of_errors(self):
        return self.looked_at(self.errors, words.errors(self.seen()))

    @document("Flight recorders", "flight_recorders.txt")
    def of_dumps(self):
        return self.looked_at(self.dumps, words.dumps(self.seen()))

    @document("Own times", "own_times.txt")
    def of_times(self):
        return self.looked_at(self.times, words.times(self.seen()))

    @document("GPUs", "gpus.txt")
    def of_gpus(self):
        return self.looked_at(self.gpus, words.gpus(self.seen()))

    @document("Network ports", "ports.txt")
    def of_ports(self):
        return self.looked_at(self.ports, words.ports(self.seen()))

    @document("Hosts", "hosts.txt")
    def of_hosts(self):
        return self.looked_at(self.hosts, words.hosts(self.seen()))

    @document("One batch, all replicas", "replay.txt")
    def of_replay(self):
        return self.looked_at(self.replay, words.replay(self.seen()))

    @document("Your result", "incident.txt")
    def result(self):
        text = (
            f"System ML, incident {plain(self.seed)}: {self.points()} points\n"
            f"mine       {self.said()}\n"
            f"it was     {self.it_was()}\n"
            f"looked for {self.looking()}, lost {self.goodput()}, {self.of_all_gpus()}\n"
        )
        return self.looked_at(self.handed_in, text)

    def summary(self):
        seen, number = self.seen(), f"Incident {plain(self.seed)}"
        stands = f"{RANKS} GPUs stand still, and rank {plain(self.first())} was the first to complain"
        jumps = (
            f"{RANKS} GPUs train on, and the gradient's norm is {show(cases.jump(seen), 'times')} its usual"
        )
        slow = f"{RANKS} GPUs have lost {show(cases.lost_share(seen), 'percent')} of their pace"
        open_ = choose(self.hangs(), stands, choose(cases.computes_wrongly(seen), jumps, slow))
        lost = show(self.lost() * units.MINUTE, "seconds")
        told = choose(
            self.is_right(),
            f"it was rank {plain(self.fault().rank)}, and the job lost {lost}",
            f"it was rank {plain(self.fault().rank)}, not what you said, and the job lost {lost}",
        )
        return f"{number}: {choose(self.handed_in, told, open_)}."


IncidentRoom.serve_as(__name__)
