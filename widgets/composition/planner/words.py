"""What the planner says: its readouts and regimes, its summary, and the layout in other programs' words."""

import numpy as np

from engine.base import ops
from engine.calibration import bands
from engine.frameworks import deepspeed, megatron, torchtitan
from engine.launch.own_job import own_job
from engine.mechanism import cost
from engine.step import cases, constraints, planner
from engine.step.training_job import Job
from widgets.composition.planner.shared import COUNTED, TERMS
from widgets.kit import text
from widgets.kit.drawing import planned
from widgets.kit.text import choose, select, show, usable
from widgets.kit.widget import document, readout, regime

SPEEDS = ["arithmetic", "HBM bandwidth", "link bandwidth", "network bandwidth"]


class Words:
    """What is said, in the figure that has a ``case`` and an ``outcome``."""

    def said(self, value, family):
        """A figure of the winner; a dash where there is none."""
        return choose(self.none_legal(), "–", show(np.where(self.none_legal(), 1.0, value), family))

    @readout("Step", help="of the layout shown")
    def step(self):
        return self.said(self.of_chosen(self.outcome().step_s), "seconds")

    @readout("MFU", help="model FLOPs a second, as a share of all peaks")
    def mfu(self):
        return self.said(self.of_chosen(self.outcome().mfu), "percent")

    @readout("Fullest GPU", help="its memory, with what the framework needs", rest=True)
    def fullest(self):
        total = self.of_chosen(self.outcome().total_bytes)
        return self.said(total, "bytes"), self.none_fits()

    @readout("The bill", help="of the whole run, without failures")
    def bill(self):
        return self.said(self.dollars(), "dollars")

    @readout("Layout", rest=True)
    def layout(self):
        a = self.layouts()
        tp, pp, cp, dp, ep = (
            self.said(self.of_chosen(axis), "count") for axis in (a.tp, a.pp, a.cp, a.dp, a.ep)
        )
        experts = choose(self.of_chosen(a.ep) > 1, f" × EP {ep}", "")
        return f"TP {tp} × PP {pp} × CP {cp} × DP {dp}{experts}"

    @readout("State counted", help="weights, gradients and optimizer; and whose program", rest=True)
    def state_counted(self):
        """The recipe and the program whose bytes and seconds these are."""
        recipe = self.counted_recipe()
        each = show(recipe.bytes_per_param, "bytes")
        program = select(self.framework, COUNTED.names)
        return f"{recipe.name}, {each} a parameter; {program}"

    @readout("HFU", help="with what is computed again", rest=True)
    def hfu(self):
        return self.said(self.of_chosen(self.outcome().hfu), "percent")

    @readout("Tokens a second", rest=True)
    def tokens_a_second(self):
        return self.said(self.of_chosen(self.outcome().tokens_per_s), "count")

    @readout("The run", rest=True)
    def duration(self):
        return self.said(self.run(), "seconds")

    @readout("GPU-hours", rest=True)
    def hours(self):
        return self.said(cost.gpu_hours(self.gpus, self.run()), "params")

    @readout("Binds", rest=True)
    def binds(self):
        """The winner's longest term."""
        share = self.said(np.max(self.outcome().times_s[0]) / self.outcome().step_s[0], "percent")
        return select(
            planner.binding(self.outcome()),
            [f"{term}, {share} of the step" for term in planned.TERMS] + ["memory", "–"],
        )

    @readout("A tenth faster takes", rest=True)
    def ten_percent(self):
        needs = self.outcome().needed
        texts = [
            choose(
                needs[i] < planner.NEVER, f"{show(np.minimum(needs[i], 9.0), 'times')} the {SPEEDS[i]}", ""
            )
            for i in range(4)
        ]
        join = [
            choose(planner.any_before(needs, i), choose(needs[i] < planner.NEVER, " or ", ""), "")
            for i in range(4)
        ]
        found = f"{texts[0]}{join[1]}{texts[1]}{join[2]}{texts[2]}{join[3]}{texts[3]}"
        return choose(np.min(needs) < planner.NEVER, found, "no one resource alone, with this layout")

    @readout("Layouts compared", rest=True)
    def compared(self):
        return f"{self.legal()}, {self.fitting()} fit"

    @regime(target=True)
    def nothing_fits(self):
        return self.none_fits() & ~self.none_legal(), (
            f"You found the memory wall: of {show(self.outcome().found.legal, 'count')} layouts none fits; "
            f"the leanest takes {self.said(self.outcome().total_bytes[0], 'bytes')} of "
            f"{usable(self.cluster().hbm_bytes)}. First response: more GPUs to shard over, or a recipe with "
            "fewer bytes a parameter (lesson 05). Recomputing a part of each layer is not tried."
        )

    @regime()
    def nothing_legal(self):
        return self.none_legal(), (
            f"No layout is legal: {show(self.gpus, 'count')} GPUs cannot be divided so that heads, layers "
            f"and the {show(self.sequences(), 'count')} sequences of a step come "
            f"out whole{choose(self.is_limited(), ' within your limits', '')}. First response: "
            f"{choose(self.is_limited(), 'fewer limits, or ', '')}a number of GPUs and of sequences with the "
            "same small factors."
        )

    @regime()
    def snapped(self):
        """Which batch is planned instead of one that layouts cannot divide."""
        asked, planned = cases.sequences(self.batch_tokens, self.seq), self.sequences()
        return (asked != planned) & ~self.none_legal(), (
            f"{show(self.batch_tokens, 'tokens')} are {show(asked, 'count')} sequences, which few layouts "
            f"can share out evenly. Planned with {show(planned, 'count')}, "
            f"{show(np.abs(planned / asked - 1.0), 'percent')} {choose(planned > asked, 'more', 'fewer')}, "
            "which leave far more to choose from."
        )

    @regime()
    def limits_cost(self):
        """What your framework and limits cost against the search without them, by cause."""
        found = self.outcome()
        share, (term, more_s) = planner.slower_than_anyhow(found), planner.lost_to_limits(found)
        there = np.isfinite(share) & ~self.none_legal() & ~self.none_fits()
        known = np.where(there, share, 0.0)
        tied = (1.0 + known) < bands.tie()
        a = cases.Layouts(*(np.where(there, column[-1], 1.0) for column in found.layouts))
        tp, pp, cp, dp, ep = (show(size, "count") for size in (a.tp, a.pp, a.cp, a.dp, a.ep))
        best_s = np.where(there, found.step_s[planner.ANYHOW], 1.0)
        return there & (known >= planner.A_TIE) & self.is_limited(), (
            f"Your limits cost {show(known, 'percent')}: without them TP {tp} × PP {pp} × CP {cp} × DP {dp}"
            f"{choose(a.ep > 1, f' × EP {ep}', '')} takes {show(best_s, 'seconds')} a step. The largest "
            f"cause is {select(np.where(there, term, 0.0), TERMS)}, "
            f"{show(np.where(there & (more_s > 0), more_s, 0.0), 'seconds')} more"
            f"{choose(tied, '; the model cannot tell two steps apart that are so close.', '.')}"
        )

    @regime()
    def memory_costs_time(self):
        found = self.outcome().found
        share = planner.lost_to_memory(self.outcome())
        return (share > 0.02) & ~self.none_fits(), (
            f"Memory costs time here: with unlimited memory the fastest layout would take "
            f"{self.said(found.free_s, 'seconds')} a step, "
            f"{show(np.where(share > 0, share, 0.0), 'percent')} less. Recomputing a part of each layer, "
            "which could buy some of it back, is not tried."
        )

    @regime()
    def tight(self):
        left, hbm = self.case().hbm_bytes - self.outcome().total_bytes[0], self.cluster().hbm_bytes
        return (self.outcome().total_bytes[0] / hbm > 0.97) & ~self.none_fits() & ~self.none_legal(), (
            f"Tight: of {usable(hbm)} the fullest GPU has {show(np.where(left > 0, left, 0.0), 'bytes')} "
            "left, less than the estimate can be wrong by. First response: measure it, or take a layout with "
            "more room."
        )

    @regime()
    def hidden_traffic(self):
        found = self.outcome()
        factor = np.minimum(found.needed[0], planner.FACTORS[-1])
        waits = np.where(found.uncovered_s > 0, found.uncovered_s, 0.0)
        share = self.said(np.max(found.times_s[0]) / found.step_s[0], "percent")
        return (factor > 1.3) & (waits / found.step_s[0] > 0.03) & (planner.binding(found) < 1), (
            f"Arithmetic takes {share} of this step, yet to shorten the step by a tenth it would have to be "
            f"{choose(found.needed[0] < planner.NEVER, '', 'more than ')}{show(factor, 'times')} as fast, "
            f"with layout, micro-batch and schedule as they are. At that speed {show(waits, 'seconds')} of "
            f"{select(found.uncovered, TERMS)} no longer hide behind it. Another layout may hide them: plan "
            "again for a faster chip."
        )

    @regime()
    def too_thin(self):
        share = planner.waiting_share(self.outcome())
        return share > 0.35, (
            f"Spread too thin: {show(np.where(share > 0, share, 0.0), 'percent')} of even the best step is "
            "waiting for wires and bubbles. First response: more tokens in a step, or fewer GPUs."
        )

    # -- for other programs ----------------------------------------------------------------------------------
    def settings(self, framework, write):
        """The layout shown in another program’s words; nothing where none fits, or the program refuses it."""
        can, by = framework.can, own_job(framework.key, Job(1, 1), "bf16").software
        shown = cases.Layouts(*(np.stack([axis]) for axis in self.degrees()))
        run = cases.run(self.case(), shown, self.tokens, self.precision.narrow, by)
        starts = constraints.starts(can, self.case().model, cases.axes(self.case(), self.degrees()))
        refuses = f"{can.name} refuses this layout: choose it under Framework, and copy what is found then."
        return choose(
            self.none_legal(),
            "No layout is legal.",
            choose(
                self.none_fits(),
                "Nothing fits, so there is nothing to start.",
                choose(starts, write(run, text), refuses),
            ),
        )

    @document("Megatron-LM arguments", "layout.sh")
    def megatron(self):
        return self.settings(megatron.FRAMEWORK, megatron.FRAMEWORK.write)

    @document("torchtitan TOML", "layout.toml")
    def torchtitan(self):
        place = ops.each(self.model, lambda option: torchtitan.place_of(option.key))
        return self.settings(torchtitan.FRAMEWORK, lambda run, words: torchtitan.written(run, words, place))

    @document("DeepSpeed JSON", "layout.json")
    def deepspeed(self):
        return self.settings(deepspeed.FRAMEWORK, deepspeed.FRAMEWORK.write)

    def best(self):
        """The winner's axes."""
        a = self.layouts()
        tp, pp, cp, dp, ep = (self.said(axis[0], "count") for axis in (a.tp, a.pp, a.cp, a.dp, a.ep))
        return f"TP {tp} × PP {pp} × CP {cp} × DP {dp}{choose(a.ep[0] > 1, f' × EP {ep}', '')}"

    def summary(self):
        found, legal = self.outcome(), self.legal()
        memory, step = self.said(found.total_bytes[0], "bytes"), self.said(found.step_s[0], "seconds")
        hbm = show(self.cluster().hbm_bytes, "bytes")  # the picture says that it is the usable one
        return choose(
            self.none_legal(),
            f"No layout of a step of {show(self.batch_tokens, 'tokens')} is legal on "
            f"{show(self.gpus, 'count')} {self.gpu.name}.",
            choose(
                self.none_fits(),
                f"None of {legal} layouts fits: the leanest, {self.best()}, needs {memory} of {hbm}.",
                f"The best of {legal} layouts, {self.best()}, takes {step} a step and {memory} of {hbm}.",
            ),
        )
