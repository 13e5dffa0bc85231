"""What each parallel strategy spends on HBM, compute and interconnect, as the engine costs it: a row each,
the fastest step on top. The address keeps the name of the triangle that this figure once was."""

import numpy as np

from engine import catalog
from engine.mechanism import memory
from engine.step import layout, strategy
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.ranking import ranks
from widgets.kit.text import choose, select, share_of, show, usable
from widgets.kit.widget import Widget, hint, once, part, readout, regime

NAMES = [each.name for each in strategy.STRATEGIES]
TITLED = [name[0].upper() + name[1:] for name in NAMES]
COUNT = len(NAMES)
FSDP = strategy.KEYS.index("fsdp")
MODELS = (
    "llama3.2-1b",
    "llama3.1-8b",
    "qwen3-32b",
    "llama3.1-70b",
    "llama3.1-405b",
    "mixtral-8x7b",
    "qwen3-30b-a3b",
)
GPUS = ("a100-80", "h100-sxm", "h200", "b200", "mi300x", "l40s")
RECIPE = catalog.recipe(memory.DEFAULT_RECIPE)
RESOURCES = ["HBM", "compute", "interconnect"]
HUES = {"HBM": "hbm", "compute": "compute", "interconnect": "link"}
SEQ_STOPS = sorted({m * 2**k for k in range(7, 13) for m in range(8, 16) if m * 2**k <= 32768})
JOB = ("model", "gpus", "gpu", "sequences", "seq")
SMALL_STEP, SMALL_MICRO_BATCH = (
    "more tokens a step for each GPU (lesson 04)",
    "more tokens in each micro-batch, or shards inside a node (lesson 05)",
)
RESPONSES = [
    SMALL_STEP,
    SMALL_STEP,
    SMALL_MICRO_BATCH,
    "keep it inside a node and cut something else across nodes (lessons 06 and 10)",
    "more micro-batches a step (lesson 07)",
    "longer sequences, or fewer ranks (lesson 08)",
    "more tokens for each expert, or ranks inside a node (lesson 09)",
    SMALL_STEP,
    SMALL_MICRO_BATCH,
]
NEVER = "it always can"
REFUSED = [
    NEVER,
    NEVER,
    NEVER,
    "its heads do not divide among so many GPUs",
    "it has fewer layers than there are GPUs",
    "the sequence does not divide into two pieces a GPU",
    "it has no experts that divide among so many GPUs",
    NEVER,
    NEVER,
]

# -- places on the picture: three columns, each of them linear from nothing to twice what there is -----------
END = 2.0  # a longer bar is broken, and has its number
COLUMNS = [0.0, 0.35, 0.68]  # where each begins; the picture is one wide
REACH = {"wide": 0.215, "narrow": 0.19}  # of a bar of END, in a lesson and on a phone
VALUE_ROOM = {"wide": 0.115, "narrow": 0.13}  # for the number behind a bar, which no rule may cross
TOP = float(COUNT)
HEADS = {  # of the columns: a title and what is measured, in a lesson and on a phone
    "wide": (["HBM", "compute", "wires"], ["held on each GPU", "extra and idle", "busy, hidden or not"]),
    "narrow": (["HBM", "compute", "wires"], ["held", "extra, idle", "busy"]),
}
BAR = {"wide": (-0.29, 0.29), "narrow": (-0.42, -0.02)}  # on a phone the name stands above its bars
RULE = {"wide": (-0.5, 0.5), "narrow": BAR["narrow"]}
LATE = 1e30  # a step that cannot be taken comes last

# What the default state's ideal step and busy wires are made of, for whoever reckons them again.
H100, LLAMA = 'gpu("h100-sxm")', 'model("llama3.1-8b")'
AT, TOKENS = f"layout.machine({H100})", "4 * 4096"
MODEL_FLOPS = f"flops.training_flops_per_token({LLAMA}, 4096)"
PRODUCTS_S = f"{TOKENS} * {MODEL_FLOPS} / {AT}.chip.matmul_flops_per_s"
IDEAL_S = f'strategy.costs({LLAMA}, {AT}.chip, {AT}.wires, recipe("bf16-adam"), 8, 4, 4096).ideal_s'
PIECE_BYTES = f"4096 * {LLAMA}.hidden * 2"
GATHER_S = f"interconnect.all_gather_s({PIECE_BYTES}, 8.0, 8.0, {AT}.wires)"
RATES = (
    f"Rates: an H100's matrix products sustain `#!n {AT}.chip.matmul_flops_per_s / {H100}.bf16_flops_per_s | "
    "%` of its peak, kernels between them `#!n calibration.DEFAULT.memory_share | %` of the HBM's rate, "
    f"rings `#!n {AT}.wires.link_bytes_per_s / {H100}.link_bytes_per_s | %` of NVLink's and `#!n "
    "calibration.DEFAULT.network_share | %` of a NIC's. So at rest:"
    "\n\n"
    f"- $T_0$: `#!n {TOKENS}` tokens a GPU × `#!n {MODEL_FLOPS} | GFLOP` each at `#!n "
    f"{AT}.chip.matmul_flops_per_s | TFLOP/s` are `#!n {PRODUCTS_S} | s`; norms, activations, the loss, sums "
    f"of gradients and what attention's backward pass repeats add `#!n {IDEAL_S} - {PRODUCTS_S} | s`: `#!n "
    f"{IDEAL_S} | s`."
    "\n"
    f"- Tensor parallelism's wires: 32 sequences × `#!n {LLAMA}.depth` layers × 8 gathers and scatters of "
    f"`#!n {PIECE_BYTES} | MB`. Each moves 7/8 of that at `#!n {AT}.wires.link_bytes_per_s | GB/s`, in `#!n "
    f"7 / 8 * {PIECE_BYTES} / {AT}.wires.link_bytes_per_s | µs`; with 7 hops of `#!n {AT}.wires.box.hop_s + "
    f"{AT}.wires.box.late_s | µs` and `#!n {AT}.wires.start_s | µs` to start, as measured, `#!n {GATHER_S} | "
    f"µs`. Together `#!n 32 * {LLAMA}.depth * 8 * {GATHER_S} | s`, or `#!n 32 * {LLAMA}.depth * 8 * "
    f"{GATHER_S} / {IDEAL_S} | percent` of $T_0$."
)

DIFFERENCE_AT = -1.35  # of the chosen strategy from plain data parallelism, under the columns
RULES = 5  # where three columns begin, and two of them are full
BAND = {"fill_color": fig.COLOR["ink"], "fill_alpha": 0.07, "line_color": None, "level": "underlay"}
BESIDE = {"text_align": "right", "x_offset": -8}  # of the bars, where the steps' times stand


def across(left, load, width):
    """Where a bar of this load ends that begins there."""
    return left + REACH[width] / END * np.minimum(load, END)


def signed(difference, family):
    """A difference with its sign."""
    size = show(np.abs(difference), family)
    return f"{choose(difference < 0, '−', '+')}{size}"


def in_points(share):
    """A share in percentage points."""
    return 100.0 * share


def on_both(columns):
    """The columns of marks that lie elsewhere on a phone, from a function of the width."""
    return {f"{width}_{name}": column for width in REACH for name, column in columns(width).items()}


def _past(hue):
    """A box for what is past a limit, in a resource's hue."""
    return fig.OVER | dict.fromkeys(("fill_color", "line_color", "hatch_color"), fig.COLOR[hue])


class StrategyTriangle(Widget):
    question = "What does each parallel strategy spend: HBM, compute or interconnect?"
    strategy = Choice("Strategy", {key: (NAMES[i], float(i)) for i, key in enumerate(strategy.KEYS)}, "tp")
    gpus = Choice("GPUs", {str(n): (str(n), float(n)) for n in (2, 4, 8, 16, 32, 64, 128)}, "8")
    seq = Number("Sequence length", 4096, 1024, 32768, stops=SEQ_STOPS, whole=True, family="tokens")
    model = Choice("Model", [catalog.model(key) for key in MODELS], "llama3.1-8b", more=True)
    sequences = Number("Sequences for each GPU in a step", 4, 1, 64, whole=True, more=True)
    gpu = Choice(
        "GPU",
        {key: (catalog.gpu(key).name, layout.machine(catalog.gpu(key))) for key in GPUS},
        "h100-sxm",
        more=True,
    )

    tap = {"rows": "strategy"}
    presets = {
        "8B on one node": {},
        "8B on two nodes": {"gpus": "16", "strategy": "fsdp"},
        "8B, short sequences": {"strategy": "zero1", "seq": 1024},
        "8B without NVLink": {"strategy": "pp", "gpu": "l40s"},
        "70B on 64": {"model": "llama3.1-70b", "gpus": "64", "strategy": "fsdp_recompute"},
        "128 experts on 32": {"model": "qwen3-30b-a3b", "gpus": "32", "strategy": "ep"},
    }
    break_it = (
        "Drive a strategy to the point at which its wires are busy for longer than the step's arithmetic: "
        "take tensor parallelism out of the node, or give FSDP short sequences."
    )
    assumptions = (
        "Each row is one strategy alone on all GPUs, with one sequence a micro-batch and bf16 Adam; the "
        "fastest step is on top, whether it fits or not. Wires count whether or not arithmetic hides them. "
        "Hatched is what there is no room for: bytes past the HBM, transfers longer than the ideal step. The "
        "grey row is the chosen one; the line under its bars reaches to what plain data parallelism spends, "
        "and the last row says the differences. Rates are those "
        "that runs reach, below the data sheet's: the formula has them. Real runs mix strategies (lesson 10)."
    )
    formula = (
        r"$$\text{HBM} = \frac{\text{bytes of the fullest GPU}}{\text{bytes of its HBM}}, \qquad "
        r"\text{compute} = \frac{\tau_\text{arithmetic} + \tau_\text{optimizer} + \tau_\text{bubble} - "
        r"\tau_0}{\tau_0}, \qquad \text{interconnect} = \frac{\tau_\text{wires}}{\tau_0}$$"
        "\n\n"
        "$\\tau_0$ is the arithmetic of the step, evenly divided and with nothing computed twice: that of "
        "plain data parallelism. $\\tau_\\text{wires}$ is how long transfers keep the wires busy, hidden or "
        "not: where it passes $\\tau_0$, the excess cannot be hidden. Bytes and seconds are those of `python "
        "-m engine estimate` for the same layout."
        "\n\n" + RATES
    )

    # -- what the engine says --------------------------------------------------------------------------------
    @once
    def costs(self):
        return strategy.costs(
            self.model, self.gpu.chip, self.gpu.wires, RECIPE, self.gpus, self.sequences, self.seq
        )

    @once
    def loads(self):
        return strategy.loads(self.costs(), memory.capacity_bytes(self.gpu.gpu))

    def chosen(self, table):
        """The chosen strategy's row of a table, or number of a column."""
        return lookup(table, self.strategy)

    def load(self, resource):
        return self.chosen(self.loads()[:, resource])

    def is_possible(self):
        return self.chosen(self.costs().possible)

    def place(self):
        """The height of each strategy's row: the fastest step on top, what cannot be built at the bottom."""
        costs = self.costs()
        return TOP - 0.5 - ranks(np.where(costs.possible, costs.step_s, LATE))

    # -- what is drawn ---------------------------------------------------------------------------------------
    @part(*JOB, "strategy")
    def rows(self):
        """A strategy each."""
        loads, costs = self.loads(), self.costs()
        return {
            "strategy": NAMES,
            "HBM": loads[:, 0],
            "compute": loads[:, 1],
            "interconnect": loads[:, 2],
            "step_s": costs.step_s,
            "y": self.place(),
            "name": TITLED,
            "step": [choose(costs.possible[i], show(costs.step_s[i], "seconds"), "") for i in range(COUNT)],
            "refused": [
                choose(costs.possible[i], "", f"cannot be built: {REFUSED[i]}") for i in range(COUNT)
            ],
            "refused_short": [choose(costs.possible[i], "", "cannot be built") for i in range(COUNT)],
            "style": select(np.arange(COUNT) == self.strategy, ["normal", "bold"]),
        }

    @part(*JOB, "strategy", shown=False)
    def bars(self):
        """What each strategy spends on each resource, resource by resource: solid as far as there is any, of
        compute to the end."""
        amounts = [text for axis in range(3) for text in self.amounts(axis)]
        chosen = np.tile(np.arange(COUNT), 3) == self.strategy
        return on_both(self.bars_at) | {
            "left": np.repeat(COLUMNS, COUNT),
            "resource": np.repeat(RESOURCES, COUNT).tolist(),
            "amount": amounts,
            "torn": fig.broken(np.ravel(np.transpose(self.loads())) > END),
            "style": select(chosen, ["normal", "bold"]),
        }

    def bars_at(self, width):
        """Where the bars end, and their numbers."""
        solid, label = [], []
        for axis, left in enumerate(COLUMNS):
            load, limited = self.loads()[:, axis], RESOURCES[axis] != "compute"
            end = across(left, load, width)
            solid.append(across(left, np.minimum(load, 1.0), width) if limited else end)
            label.append(fig.clear_of(end, across(left, 1.0, width), VALUE_ROOM[width]) if limited else end)
        return {
            "right": np.concatenate(solid),
            "label_at": np.concatenate(label),
            "torn_at": np.repeat([across(left, END, width) for left in COLUMNS], COUNT),
            **self.heights(width, 3),
        }

    def amounts(self, axis):
        """What is spent on one resource by each strategy, as it is written behind its bar."""
        costs, load = self.costs(), self.loads()[:, axis]
        found = []
        for i in range(COUNT):
            share = choose(load[i] > END, show(load[i], "times"), show(load[i], "percent"))
            spent = show(costs.total_bytes[i], "bytes") if RESOURCES[axis] == "HBM" else share
            found.append(choose(costs.possible[i], spent, ""))
        return found

    def heights(self, width, resources):
        """The heights of the bars of so many resources."""
        y, (foot, head) = np.tile(self.place(), resources), BAR[width]
        return {"foot": y + foot, "head": y + head, "y": y + (foot + head) / 2}

    @hint("bars")
    def of_a_bar(self):
        loads, costs = self.loads(), self.costs()
        bytes_, step = costs.total_bytes, costs.step_s
        found = []
        for axis in range(3):
            for i in range(COUNT):
                share = show(loads[i, axis], "percent")
                words = (
                    f"{TITLED[i]} holds {show(bytes_[i], 'bytes')} on the fullest GPU, {share} of its HBM",
                    (
                        f"{TITLED[i]}: {share} of the ideal step in extra arithmetic and idle stages; a step "
                        f"takes {show(step[i], 'seconds')}"
                    ),
                    f"{TITLED[i]} keeps the wires busy for {share} of the ideal step, hidden or not",
                )[axis]
                found.append(choose(costs.possible[i], words, ""))
        return found

    @part(*JOB, "strategy", shown=False)
    def past(self):
        """What there is no room for: bytes past the HBM, transfers past the ideal step. The chosen strategy's
        transfers are not among them: they are the ones to be found."""
        return on_both(self.past_at)

    def past_at(self, width):
        others = np.arange(COUNT) != self.strategy
        held, sent = self.loads()[:, 0], self.loads()[:, 2]
        seen = np.concatenate([held > 1, (sent > 1) & others])
        start = np.repeat([across(COLUMNS[axis], 1.0, width) for axis in (0, 2)], COUNT)
        end = np.concatenate([across(COLUMNS[0], held, width), across(COLUMNS[2], sent, width)])
        sides = {"left": fig.gone_unless(seen, start), "right": fig.gone_unless(seen, end)}
        return sides | self.heights(width, 2)

    @part(*JOB, "strategy", shown=False)
    def unhidden(self):
        """What of the chosen strategy's transfers nothing can hide."""
        return on_both(self.unhidden_at)

    def unhidden_at(self, width):
        load, left = self.load(2), COLUMNS[2]
        return {
            "left": fig.gone_unless(load > 1, across(left, 1.0, width)),
            "right": fig.gone_unless(load > 1, across(left, load, width)),
            **{name: self.chosen(column) for name, column in self.heights(width, 1).items()},
        }

    @part(*JOB, "strategy", shown=False)
    def band(self):
        return {"y": self.chosen(self.place())}

    @part(*JOB, "strategy", shown=False)
    def trade(self):
        """From the chosen bar's end to that of plain data parallelism, under each of the three bars."""
        more = [self.load(axis) - self.loads()[strategy.START, axis] for axis in (1, 2)]
        held = self.chosen(self.costs().total_bytes) - self.costs().total_bytes[strategy.START]
        points = [f"{signed(in_points(load), 'count')} points" for load in more]
        return on_both(self.trade_at) | {
            "x": np.array(COLUMNS),
            "y": np.full(3, DIFFERENCE_AT),
            "who": [self.if_traded(f"{select(self.strategy, TITLED)},"), "", ""],
            "to": [self.if_traded("against plain data parallelism:"), "", ""],
            "amount": [self.if_traded(amount) for amount in (signed(held, "bytes"), *points)],
            "of": ["", *[self.if_traded("of the ideal step")] * 2],
        }

    def is_traded(self):
        """Whether there are differences from plain data parallelism to show."""
        return self.is_possible() & (self.strategy != strategy.START)

    def if_traded(self, text):
        return choose(self.is_traded(), text, "")

    def trade_at(self, width):
        loads = self.loads()
        start = [across(left, loads[strategy.START, axis], width) for axis, left in enumerate(COLUMNS)]
        end = [across(left, self.load(axis), width) for axis, left in enumerate(COLUMNS)]
        seen = self.is_traded()
        under = self.chosen(self.place()) + BAR[width][0] - 0.06
        return {
            "start": fig.gone_unless(seen, np.stack(start)),
            "end": fig.gone_unless(seen, np.stack(end)),
            "under": np.stack([under, under, under]),
        }

    @part(*JOB, shown=False)
    def rules(self):
        """In each row that there is: where the three columns begin, and how much there is of HBM and of
        time."""
        return on_both(self.rules_at)

    def rules_at(self, width):
        places = [*COLUMNS, across(COLUMNS[0], 1.0, width), across(COLUMNS[2], 1.0, width)]
        there, y = np.tile(self.costs().possible, RULES), np.tile(self.place(), RULES)
        foot, head = RULE[width]
        x = fig.gone_unless(there, np.repeat(places, COUNT))
        return {"x": x, "foot": y + foot, "head": y + head}

    @part("gpu", shown=False)
    def capacity(self):
        capacity = memory.capacity_bytes(self.gpu.gpu)
        return {
            "wide_x": across(COLUMNS[0], 1.0, "wide"),
            "narrow_x": COLUMNS[0],
            "wide_name": usable(capacity, self.gpu.gpu.hbm_bytes),
            "narrow_name": usable(capacity),
        }

    def figure(self, sources):
        p = fig.plot((0, 1.0), (-2.3, TOP + 1.4), height=476)
        fig.bare(p)
        fig.room_left(p, 0, 216)
        p.hbar("y", left=-1, right=2, height=1.0, source=sources["band"], **BAND)
        for width, (titles, measured) in HEADS.items():
            fig.only(
                width,
                p.text(COLUMNS, TOP + 1.0, text=titles, **fig.BOLD),
                p.text(COLUMNS, TOP + 0.42, text=measured, **fig.LABEL),
                *self.draw_scales(p, sources, width),
                *self.draw_rows(p, sources, width),
            )
        fig.only("wide", p.text(COLUMNS[1:], [-0.4] * 2, text=["0"] * 2, **fig.LABEL))
        fig.only(
            "wide", p.text([0], [TOP + 0.42], text=["fastest on top; a step takes"], **BESIDE, **fig.LABEL)
        )
        trade = sources["trade"]
        fig.only("wide", p.text("x", "y", text="of", source=trade, y_offset=18, **fig.LABEL))
        p.text("x", "y", text="amount", source=trade, **fig.BOLD)
        fig.only(
            "wide",
            p.text(0, "y", text="who", source=trade, **BESIDE | {"y_offset": -9}, **fig.BOLD),
            p.text(0, "y", text="to", source=trade, **BESIDE | {"y_offset": 9}, **fig.LABEL),
        )
        fig.only("narrow", p.text(0, "y", text="to", source=trade, y_offset=-19, **fig.LABEL))
        names = {"source": sources["rows"], "text_font_style": "style"}
        fig.only(
            "wide",
            p.text(0, "y", text="name", text_align="right", x_offset=-76, **fig.TEXT | names),
            p.text(0, "y", text="step", **BESIDE, **fig.TEXT | names),
            p.text(0, "y", text="refused", x_offset=8, **fig.LABEL | {"source": sources["rows"]}),
        )
        fig.only(
            "narrow",
            p.text(0, "y", text="name", y_offset=-9, **fig.TEXT | names),
            p.text(1, "y", text="step", y_offset=-9, text_align="right", **fig.TEXT | names),
            p.text(0, "y", text="refused_short", y_offset=9, **fig.LABEL | {"source": sources["rows"]}),
        )
        return p

    def draw_scales(self, p, sources, width):
        """The lines where a column begins and where it is full, and what full means."""
        beginnings, ends = list(range(3 * COUNT)), list(range(3 * COUNT, RULES * COUNT))
        line = {"x0": f"{width}_x", "x1": f"{width}_x", "y0": f"{width}_foot", "y1": f"{width}_head"}
        line |= {"source": sources["rules"]}
        full = [across(left, 1.0, width) for left in COLUMNS[1:]]
        centred = {"text_align": "center"} | fig.LABEL
        of_hbm = centred if width == "wide" else fig.LABEL  # which has no room left of its bars on a phone
        return [
            p.segment(**line, view=fig.of_rows(beginnings), line_color=fig.COLOR["axis"]),
            p.segment(**line, view=fig.of_rows(ends), line_color=fig.COLOR["ink"], line_width=1.5),
            p.text(full, [-0.4] * 2, text=["100 %"] * 2, **centred),
            p.text(f"{width}_x", -0.4, text=f"{width}_name", source=sources["capacity"], **of_hbm),
        ]

    def draw_rows(self, p, sources, width):
        """The bars."""
        bars, under = sources["bars"], f"{width}_under"
        ink = {"source": sources["trade"], "line_color": fig.COLOR["ink"], "line_width": 2}
        box = {"bottom": f"{width}_foot", "top": f"{width}_head", "right": f"{width}_right"}
        beyond = box | {"left": f"{width}_left"}
        amount = fig.TEXT | {"source": bars, "text_font_style": "style"}
        hatched = [
            p.quad(**beyond, source=sources["past"], view=fig.of_rows(rows), **_past(hue))
            for rows, hue in ((list(range(COUNT)), "hbm"), (list(range(COUNT, 2 * COUNT)), "link"))
        ]
        return [
            p.quad(left="left", **box, source=bars, fill_color=fig.hues("resource", HUES), line_color=None),
            *hatched,
            p.quad(**beyond, source=sources["unhidden"], **fig.OVER),
            p.segment(f"{width}_start", under, f"{width}_end", under, **ink),
            p.scatter(
                f"{width}_start", under, marker="dash", angle=np.pi / 2, size=8, fill_color=None, **ink
            ),
            p.text(f"{width}_label_at", f"{width}_y", text="amount", x_offset=5, **amount),
            fig.torn(p, bars, f"{width}_torn_at", f"{width}_y"),
        ]

    # -- what is said ----------------------------------------------------------------------------------------
    @readout("Ideal step")
    def ideal(self):
        return show(self.costs().ideal_s, "seconds")

    @readout("Wires that nothing hides")
    def exposed(self):
        return self.if_possible(show(self.chosen(self.costs().exposed_s), "seconds"))

    @readout("Against plain data parallelism")
    def against(self):
        trade = self.traded()
        price = f"{show(trade.paid_s, 'seconds')} of {choose(trade.in_wires, 'wire', 'compute')}"
        words = f"{self.saves()}, pays {choose(trade.is_little, 'next to nothing', price)}"
        return self.if_possible(
            choose(self.strategy == strategy.START, "it is where the others start", words)
        )

    def traded(self):
        return strategy.Trade(*(self.chosen(column) for column in strategy.trades(self.costs())))

    def saves(self):
        saved = self.traded().saved_bytes
        return choose(saved < 0, f"takes {show(-saved, 'bytes')} more", f"saves {show(saved, 'bytes')}")

    def if_possible(self, text):
        return choose(self.is_possible(), text, "cannot be built")

    def response(self):
        return select(self.strategy, RESPONSES)

    @regime(target=True)
    def wires_bind(self):
        return self.load(2) > 1, (
            f"You found where the wire binds: {select(self.strategy, NAMES)} keeps it busy for "
            f"{show(self.load(2), 'times')} the ideal step, and arithmetic can hide no more than its own "
            f"length. First response: {self.response()}."
        )

    @regime()
    def does_not_fit(self):
        response = choose(
            self.loads()[FSDP, 0] < self.load(0),
            "FSDP, which shards the whole state (lesson 05)",
            "more GPUs to share the model (lesson 10)",
        )
        return self.load(0) > 1, (
            f"{select(self.strategy, TITLED)} does not fit: it wants {show(self.load(0), 'times')} the HBM "
            f"of a {self.gpu.gpu.name}. First response: {response}."
        )

    @regime()
    def cannot_be_built(self):
        return np.where(self.is_possible(), 0.0, 1.0) > 0, (
            f"{select(self.strategy, TITLED)} cannot be built here: {select(self.strategy, REFUSED)}."
        )

    def summary(self):
        name, trade = select(self.strategy, TITLED), self.traded()
        pays = choose(
            trade.in_wires,
            f"keeps the wires busy for {share_of(self.load(2))} the ideal step",
            f"adds {show(self.load(1), 'percent')} to the ideal step's compute",
        )
        others = (
            f"{name} {self.saves()} on each GPU and {choose(trade.is_little, 'pays next to nothing', pays)}."
        )
        first = (
            f"{name} holds {show(self.chosen(self.costs().total_bytes), 'bytes')} on each GPU, and one "
            f"{self.gpu.gpu.name} has {usable(memory.capacity_bytes(self.gpu.gpu))}."
        )
        refused = (
            f"{name} cannot be built on {show(self.gpus, 'count')} GPUs: {select(self.strategy, REFUSED)}."
        )
        return choose(self.is_possible(), choose(self.strategy == strategy.START, first, others), refused)


StrategyTriangle.serve_as(__name__)
