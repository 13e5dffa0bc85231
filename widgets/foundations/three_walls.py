"""Memory, one step, the whole run and the bill, each against its limit: which wall is hit first."""

import numpy as np

from engine import catalog
from engine.base.units import DAY, round_significant
from engine.catalog import hardware
from engine.mechanism import cost, flops, memory, walls
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, select, show, sold
from widgets.kit.widget import Widget, hint, part, readout, regime

ROWS = ["Memory", "One step", "Whole run", "Bill"]
HEIGHTS = np.array([3.0, 2.0, 1.0, 0.0])
OTHERWISE = 4.0  # over them: the memory wall, if the state were kept the other way
LONGEST = 2.2  # the axis is linear; a longer bar is broken off and carries its number
NAMES = ["memory", "the step time", "the deadline", "the budget"]
VIEWS = [1.22, 1.85, 2.76]  # the axis, with room for the numbers
GPU_STOPS = sorted(
    {n for k in range(18) for n in (2**k, 5 * 2**k // 4, 3 * 2**k // 2, 7 * 2**k // 4) if n <= 2**17}
)
DEADLINE_STOPS = sorted(
    {DAY * round_significant(d, 2) for d in [*np.geomspace(1, 3650, 60), 30, 54, 90, 180, 365]}
)
ALONE = {"tokens": 1e9, "gpus": 1, "step_tokens": 65e3}
PRICE = catalog.price("h100-sxm")
RATES = ("step_tokens", "gpu", "mfu", "price")


class ThreeWalls(Widget):
    question = "Which wall does a training run hit first?"
    size = Number("Model size", 70e9, 5e5, 2e12, family="params", stops=80, marks=(1e9, 7e9, 13e9, 405e9))
    gpus = Number("GPUs", 1024, 1, 2**17, stops=GPU_STOPS, whole=True)
    tokens = Number(
        "Training tokens", 15e12, 1e6, 1e14, family="tokens", stops=80, marks=(1e9, 2e12, 15.6e12)
    )
    state = Choice(
        "State",
        {"cut": ("cut over all GPUs", 1), "whole": ("whole on each GPU", 0)},
        "cut",
        more=True,
        help="Plain data parallelism keeps a copy on each GPU; FSDP and ZeRO cut it",
    )
    step_target_s = Number("Step time wanted", 10, 0.1, 1000, family="seconds", more=True)
    deadline_s = Number(
        "Deadline", 90 * DAY, DAY, 3700 * DAY, family="seconds", stops=DEADLINE_STOPS, more=True
    )
    budget_dollars = Number("Budget", 10e6, 1e3, 1e10, family="dollars", marks=(1e8,), more=True)
    step_tokens = Number(
        "Tokens per step",
        4e6,
        1e3,
        1e8,
        family="tokens",
        marks=(16e6,),
        more=True,
        help="Tokens in one batch, over all GPUs",
    )
    gpu = Choice("GPU", list(catalog.all_gpus().values()), "h100-sxm", more=True)
    mfu = Number(
        "MFU",
        0.4,
        0.05,
        0.8,
        family="percent",
        stops=76,
        log=False,
        more=True,
        help="Model FLOPs utilisation: the share of the peak spent on the model's own arithmetic",
    )
    price = Number(
        "Price of a GPU-hour",
        PRICE.dollars_per_hour,
        0.5,
        15,
        family="dollars",
        stops=59,
        log=False,
        more=True,
    )

    presets = {
        "70B, 15T tokens": {},
        "Opening case: 8 nodes of 8": {"gpus": 64, "tokens": 1e12, "state": "whole"},
        "… with its state cut": {"gpus": 64, "tokens": 1e12},
        "Llama 3.1 405B": {
            "size": 405e9,
            "tokens": 15.6e12,
            "gpus": 16384,
            "step_tokens": 16e6,
            "budget_dollars": 1e8,
        },
        "7B fine-tune on one GPU": {**ALONE, "size": 7e9, "budget_dollars": 1e4},
        "Half a million parameters": {**ALONE, "size": 5e5, "budget_dollars": 1e3},
    }
    break_it = (
        "Pass the three walls and the budget at once. Then add GPUs: which of the four does not give way?"
    )
    assumptions = (
        "Memory is that of one GPU: its share of the state of bf16 mixed Adam, 16 bytes per parameter, "
        "without activations; the pale bar is the other way of keeping it. "
        "Compute is "
        "arithmetic of $6PD$ at an MFU that does not fall as GPUs are added, which is kind. Bars beyond 2.2× "
        "are broken off."
    )
    formula = (
        "With $P$ parameters, $D$ tokens, $B$ tokens per step, and $N$ GPUs of peak $C$ and memory "
        "$M_\\text{HBM}$, and seconds $\\tau$ for a step and for the run:\n\n"
        "$$\\frac{16P/n}{M_\\text{HBM}} \\qquad \\frac{6PB}{N C \\cdot \\text{MFU} \\cdot "
        "\\tau_\\text{step}} \\qquad \\frac{6PD}{N C \\cdot \\text{MFU} \\cdot \\tau_\\text{deadline}} "
        "\\qquad \\frac{6PD}{C \\cdot \\text{MFU}} \\cdot \\frac{\\text{price}}{\\text{budget}}$$\n\n"
        "The state is cut over $n = N$ GPUs, or $n = 1$ where each has a copy. Each is what is needed "
        "over what there is. All grow with $P$, so the largest is the wall that a "
        "growing model hits first. $N$ cancels in the last one. $C$ is the dense bf16 peak. The price starts "
        f"at {PRICE.dollars_per_hour:g} dollars for an H100 ({PRICE.provider}, {PRICE.date}); choosing "
        "another GPU leaves it where it is."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def peak(self):
        return hardware.peak_with_fallback(self.gpu)

    def state_bytes(self):
        return memory.state_bytes(self.size)

    def state_ranks(self):
        """GPUs that hold one copy of the state together."""
        return np.where(self.state == 1, self.gpus, 1.0)

    def kept(self, ranks):
        """What one GPU holds of a state that this many share, in words."""
        whole = f"a copy on each GPU, {show(self.state_bytes(), 'bytes')}"
        cut = f"sharded over {show(ranks, 'count')} GPUs, {show(self.state_bytes() / ranks, 'bytes')} on each"
        return f"{choose(ranks > 1, cut, whole)}; HBM {sold(self.gpu.hbm_bytes)}"

    def step_s(self):
        return flops.run_time_s(
            flops.training_flops(self.size, self.step_tokens), self.gpus, self.peak(), self.mfu
        )

    def run_s(self):
        return flops.run_time_s(
            flops.training_flops(self.size, self.tokens), self.gpus, self.peak(), self.mfu
        )

    def bill_dollars(self):
        hours = flops.gpu_hours(flops.training_flops(self.size, self.tokens), self.peak(), self.mfu)
        return cost.run_dollars(hours, self.price)

    def ratios(self):
        return walls.wall_ratios(
            self.size,
            self.tokens,
            self.step_tokens,
            self.gpu,
            self.gpus,
            self.mfu,
            self.step_target_s,
            self.deadline_s,
            self.price,
            self.budget_dollars,
            state_ranks=self.state_ranks(),
        )

    def filled(self, wall):
        """A wall's ratio in words, and whether it is past the wall."""
        ratio = self.ratios()[wall]
        return choose(ratio > 1, show(ratio, "times"), show(ratio, "percent")), ratio > 1

    def is_first(self):
        return walls.first_wall(self.ratios()) == np.arange(4)

    def kept_briefly(self, ranks):
        """The same, for a phone."""
        how = choose(ranks > 1, "sharded", "a copy each")
        return f"{how}, {show(self.state_bytes() / ranks, 'bytes')} of {show(self.gpu.hbm_bytes, 'bytes')}"

    def needs(self):
        return [
            self.kept(self.state_ranks()),
            f"{show(self.step_s(), 'seconds')}, wanted {show(self.step_target_s, 'seconds')}",
            f"{show(self.run_s(), 'seconds')}, deadline {show(self.deadline_s, 'seconds')}",
            f"{show(self.bill_dollars(), 'dollars')}, budget {show(self.budget_dollars, 'dollars')}",
        ]

    def otherwise_ranks(self):
        """GPUs that would share the state, were it kept the other way."""
        return np.where(self.state == 1, 1.0, self.gpus)

    def otherwise(self):
        return walls.memory_ratio(self.size, self.gpu, self.otherwise_ranks())

    def view(self):
        return fig.fitting_view(np.maximum(np.max(self.ratios()), self.otherwise()), VIEWS, 1.22)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*["size", "gpus", "state", "tokens", "step_target_s", "deadline_s", "budget_dollars", *RATES])
    def bars(self):
        ratios, first = self.ratios(), self.is_first()
        end, needs = np.minimum(ratios, LONGEST), self.needs()
        return {
            "row": ROWS,
            "y": HEIGHTS,
            "foot": HEIGHTS - 0.3,
            "head": HEIGHTS + 0.28,
            "ratio": ratios,
            "within": np.minimum(end, 1),
            "end": end,
            "past": np.where(ratios > 1, 1.0, 0.0),
            "over_from": fig.gone_unless(ratios > 1, 1.0),
            "over_to": fig.gone_unless(ratios > 1, end),
            "torn": fig.broken(ratios > LONGEST),
            **fig.value_places(end, 1.0, self.view() * 0.18),
            "label": [self.filled(i)[0] for i in range(4)],
            "needs": [f"{needs}{choose(first[i], ' · hit first', '')}" for i, needs in enumerate(needs)],
            "brief": [
                f"{brief}{choose(first[i], ' · first', '')}"
                for i, brief in enumerate([self.kept_briefly(self.state_ranks()), *needs[1:]])
            ],
        }

    @part("size", "gpus", "state", "tokens", "step_target_s", "deadline_s", "budget_dollars", *RATES)
    def other_way(self):
        """The memory wall, if the state were kept the other way."""
        ratio = self.otherwise()
        end = np.minimum(ratio, LONGEST)
        return {
            "y": OTHERWISE,
            "foot": OTHERWISE - 0.3,
            "head": OTHERWISE + 0.28,
            "ratio": ratio,
            "within": np.minimum(end, 1),
            "over_from": fig.gone_unless(ratio > 1, 1.0),
            "over_to": fig.gone_unless(ratio > 1, end),
            "torn": fig.broken(ratio > LONGEST),
            **fig.value_places(end, 1.0, self.view() * 0.18),
            "label": choose(ratio > 1, show(ratio, "times"), show(ratio, "percent")),
            "needs": f"if {self.kept(self.otherwise_ranks())}",
            "brief": f"if {self.kept_briefly(self.otherwise_ranks())}",
        }

    @hint("other_way")
    def of_the_other_way(self):
        ratio = self.otherwise()
        against = choose(ratio > 1, show(ratio, "times"), f"{show(ratio, 'percent')} of")
        return [f"If {self.kept(self.otherwise_ranks())}: {against} what there is"]

    @hint("bars")
    def of_a_wall(self):
        ratios = self.ratios()
        against = [choose(ratios[i] > 1, "", " of") for i in range(4)]
        largest = [show(walls.largest_params(self.size, ratios[i : i + 1]), "params") for i in range(4)]
        return [
            f"{ROWS[i]}: {self.filled(i)[0]}{against[i]} what there is; all else equal, models of up to "
            f"{largest[i]} parameters clear this wall"
            for i in range(4)
        ]

    def ranges(self):
        return {"x": [0.0, self.view()]}

    def figure(self, sources):
        p = fig.plot((0, VIEWS[-1]), (-0.42, 4.78), height=440, x_title="needed, as a share of what there is")
        fig.ticks(p.xaxis[0], [0, 0.5, 1], "percent")
        p.xaxis[0].ticker.ticks += [1.5, 2.0]
        p.xaxis[0].major_label_overrides |= {1.5: "1.5×", 2.0: "2×"}
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        hue = fig.hues("row", dict(zip(ROWS, ["hbm", "compute", "compute", "ink-soft"])))
        self.draw_bars(p, sources["bars"], "end", {"fill_color": hue})
        outline = {"fill_color": fig.COLOR["hbm"], "fill_alpha": 0.3}
        self.draw_bars(p, sources["other_way"], "over_to", outline, height=0.22)
        above = {"x_offset": 1, "y_offset": -35}
        p.text(0, "y", text="row", source=sources["bars"], **above, **fig.BOLD)
        for width, words in (("wide", "needs"), ("narrow", "brief")):
            bars, other = sources["bars"], sources["other_way"]
            fig.only(
                width,
                p.text(0, "y", text=words, source=bars, **above | {"x_offset": 82}, **fig.LABEL),
                p.text(0, "y", text=words, source=other, **above | {"y_offset": -28}, **fig.LABEL),
            )
        return p

    @staticmethod
    def draw_bars(p, bars, end, look, height=0.4):
        color, bar = fig.COLOR, {"y": "y", "height": height, "source": bars}
        p.hbar(left=0, right=1, **bar, fill_color=color["panel"], line_color=color["axis"])
        p.hbar(left=0, right="within", **bar, **look, line_color=None)
        p.hbar(left="over_from", right="over_to", **bar, **fig.OVER)
        p.segment(1, "foot", 1, "head", source=bars, line_color=color["ink"], line_width=3)
        fig.torn(p, bars, end, "y")
        fig.values(p, bars, "label", **fig.BOLD)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Hit first")
    def first(self):
        return self.name_of_first(), np.any(self.is_first())

    @readout("Largest model that clears all")
    def largest(self):
        return show(walls.largest_params(self.size, self.ratios()), "params")

    def name_of_first(self):
        first = walls.first_wall(self.ratios())
        return choose(first < 0, "no wall", select(np.maximum(first, 0), NAMES))

    def gpus_past(self, wall):
        """GPUs with which a wall is cleared, with the state cut over all of them."""
        sharing = self.state_ranks() if wall == 0 else self.gpus
        return show(walls.gpus_past(self.ratios()[wall], sharing), "count")

    def split(self):
        """How a batch is split over GPUs: whole copies of the model where one fits, else with its state cut
        too."""
        whole = walls.memory_ratio(self.size, self.gpu) <= 1
        return choose(
            whole,
            "data parallel (lesson 04)",
            "sharded data parallel, since no GPU holds the model alone (lesson 05)",
        )

    def responses(self):
        """What to do first at each wall."""
        return [
            (
                f"shard the state over at least {self.gpus_past(0)} GPUs, a piece on each (FSDP and ZeRO, "
                "lesson 05)"
            ),
            f"split the batch over {self.gpus_past(1)} GPUs in {self.split()}, or make it smaller",
            f"{self.gpus_past(2)} GPUs in {self.split()}, or a better MFU",
            (
                "fewer tokens or a smaller model, then MFU and the price; no number of GPUs repairs it, "
                "since more GPUs are done sooner and cost the same"
            ),
        ]

    def first_response(self, wall):
        """The response to the first wall, and to each further one behind it."""
        ratios, responses = self.ratios(), self.responses()
        behind = [
            choose(ratios[i] > 1, f" {ROWS[i]}, {show(ratios[i], 'times')}: {responses[i]}.", "")
            for i in range(4)
            if i != wall
        ]
        several = np.sum(np.where(ratios > 1, 1, 0)) > 1
        return f"First response: {responses[wall]}.{choose(several, ' Behind it:', '')}" + "".join(
            map(str, behind)
        )

    def times(self, wall):
        return show(self.ratios()[wall], "times")

    @regime()
    def memory_wall(self):
        return self.is_first()[0], (
            f"The memory wall comes first: what each GPU holds of the state is {self.times(0)} its HBM. "
            f"{self.first_response(0)}"
        )

    @regime()
    def step_wall(self):
        return self.is_first()[1], (
            f"The wall of one step comes first: it takes {show(self.step_s(), 'seconds')}, "
            f"{self.times(1)} what you want. {self.first_response(1)}"
        )

    @regime()
    def deadline_wall(self):
        return self.is_first()[2], (
            f"The deadline comes first: the run takes {show(self.run_s(), 'seconds')}, "
            f"{self.times(2)} the time there is. {self.first_response(2)}"
        )

    @regime()
    def budget_wall(self):
        return self.is_first()[3], (
            f"The budget comes first: the bill is {show(self.bill_dollars(), 'dollars')}, "
            f"{self.times(3)} what there is. {self.first_response(3)}"
        )

    @regime(target=True)
    def every_wall(self):
        ratios = self.ratios()
        for_state = walls.gpus_past(ratios[0], self.state_ranks())
        enough = show(np.maximum(for_state, walls.gpus_past(np.max(ratios[1:3]), self.gpus)), "count")
        return np.all(ratios > 1) & (self.state == 1), (
            f"You passed the three walls and the budget. {enough} GPUs would clear memory, step and "
            f"deadline; at any number of them the bill stays {self.times(3)} the budget."
        )

    def summary(self):
        ratios = self.ratios()
        first = show(np.max(ratios), "times")
        return choose(
            np.any(self.is_first()),
            f"{show(self.size, 'params')} parameters on {show(self.tokens, 'tokens')} hit "
            f"{self.name_of_first()} first: {show(self.gpus, 'count')} {self.gpu.name} "
            f"{choose(self.gpus > 1, 'need', 'needs')} {first} what there is.",
            f"{show(self.size, 'params')} parameters on {show(self.tokens, 'tokens')} with "
            f"{show(self.gpus, 'count')} {self.gpu.name} hit no wall, and come nearest to "
            f"{select(np.argmax(ratios), NAMES)}.",
        )


ThreeWalls.serve_as(__name__)
