"""Parallel strategies as dots between HBM, compute and interconnect: what each of them spends, as the engine costs it."""

import numpy as np
from bokeh.transform import factor_mark

from engine import catalog, layout, memory, strategy
from widgets.kit import figure as fig
from widgets.kit import isometric, triangle
from widgets.kit.cluster import OUT_OF_SIGHT
from widgets.kit.controls import Choice, Number
from widgets.kit.symbolic import lookup
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

NAMES = [each.name for each in strategy.STRATEGIES]
TITLED = [name[0].upper() + name[1:] for name in NAMES]
SHORT = [each.short for each in strategy.STRATEGIES]
MODELS = ("llama3.2-1b", "llama3.1-8b", "qwen3-32b", "llama3.1-70b", "llama3.1-405b", "mixtral-8x7b", "qwen3-30b-a3b")
GPUS = ("a100-80", "h100-sxm", "h200", "b200", "mi300x", "l40s")
RECIPE = catalog.recipe(memory.DEFAULT_RECIPE)
PLACES = ["HBM", "compute", "interconnect"]
HUES = {"HBM": "hbm", "compute": "compute", "interconnect": "link"}
SHAPES = {"HBM": "circle", "compute": "square", "interconnect": "triangle"}
SEQ_STOPS = sorted({m * 2**k for k in range(7, 13) for m in range(8, 16) if m * 2**k <= 32768})
JOB = ("model", "gpus", "gpu", "sequences", "seq")
TITLES = {"HBM": "HBM: bytes held", "compute": "compute: extra and idle", "interconnect": "interconnect: busy wires"}
SMALL_STEP, SMALL_MICRO_BATCH = ("more tokens a step for each GPU (lesson 04)",
                                "more tokens in each micro-batch, or shards inside a node (lesson 05)")
RESPONSES = [SMALL_STEP, SMALL_STEP, SMALL_MICRO_BATCH,
             "keep it inside a node and cut something else across nodes (lessons 06 and 10)",
             "more micro-batches a step (lesson 07)", "longer sequences, or fewer ranks (lesson 08)",
             "more tokens for each expert, or ranks inside a node (lesson 09)", SMALL_STEP, SMALL_MICRO_BATCH]
NEVER = "it always can"
REFUSED = [NEVER, NEVER, NEVER, "its heads do not divide among so many GPUs", "it has fewer layers than there are GPUs",
           "the sequence does not divide into two pieces a GPU", "it has no experts that divide among so many GPUs", NEVER, NEVER]

# What the default state's ideal step and busy wires are made of, for whoever reckons them again.
H100, LLAMA = 'gpu("h100-sxm")', 'model("llama3.1-8b")'
AT, TOKENS = f"layout.machine({H100})", "4 * 4096"
MODEL_FLOPS = f"flops.training_flops_per_token({LLAMA}, 4096)"
PRODUCTS_S = f"{TOKENS} * {MODEL_FLOPS} / {AT}.chip.matmul_flops_per_s"
IDEAL_S = f'strategy.costs({LLAMA}, {AT}.chip, {AT}.wires, recipe("bf16-adam"), 8, 4, 4096).ideal_s'
PIECE_BYTES = f"4096 * {LLAMA}.hidden * 2"
GATHER_S = f"interconnect.all_gather_s({PIECE_BYTES}, 8.0, 8.0, {AT}.wires)"
RATES = (
    f"Rates: an H100's matrix products sustain `#!n {AT}.chip.matmul_flops_per_s / {H100}.bf16_flops_per_s | %` of its "
    "peak, kernels between them `#!n calibration.DEFAULT.memory_share | %` of the HBM's rate, rings "
    "`#!n calibration.DEFAULT.link_share | %` of NVLink's and "
    "`#!n calibration.DEFAULT.network_share | %` of a NIC's. So at rest:" "\n\n"
    f"- $T_0$: `#!n {TOKENS}` tokens a GPU × `#!n {MODEL_FLOPS} | GFLOP` each at `#!n {AT}.chip.matmul_flops_per_s | TFLOP/s` are "
    f"`#!n {PRODUCTS_S} | s`; norms, activations, the loss, sums of gradients and what attention's backward pass repeats "
    f"add `#!n {IDEAL_S} - {PRODUCTS_S} | s`: `#!n {IDEAL_S} | s`." "\n"
    f"- Tensor parallelism's wires: 32 sequences × `#!n {LLAMA}.layers` layers × 8 gathers and scatters of "
    f"`#!n {PIECE_BYTES} | MB`. Each moves 7/8 of that at `#!n {AT}.wires.link_bytes_per_s | GB/s`, in "
    f"`#!n 7 / 8 * {PIECE_BYTES} / {AT}.wires.link_bytes_per_s | µs`; "
    f"with 7 hops of `#!n {AT}.wires.link_hop_s | µs`, cut in the best pieces, that becomes "
    r"$(\sqrt{t_{hops}} + \sqrt{t_{transfer}})^2$, and with "
    f"`#!n {AT}.wires.start_s | µs` to start `#!n {GATHER_S} | µs`. Together `#!n 32 * {LLAMA}.layers * 8 * {GATHER_S} | s`, or "
    f"`#!n 32 * {LLAMA}.layers * 8 * {GATHER_S} / {IDEAL_S} | percent` of $T_0$.")


class StrategyTriangle(Widget):
    question = "What does each parallel strategy spend: HBM, compute or interconnect?"
    strategy = Choice("Strategy", {key: (NAMES[i], float(i)) for i, key in enumerate(strategy.KEYS)}, "tp")
    gpus = Choice("GPUs", {str(n): (str(n), float(n)) for n in (2, 4, 8, 16, 32, 64, 128)}, "8")
    seq = Number("Sequence length", 4096, 1024, 32768, stops=SEQ_STOPS, whole=True, family="tokens")
    model = Choice("Model", [catalog.model(key) for key in MODELS], "llama3.1-8b", more=True)
    sequences = Number("Sequences for each GPU in a step", 4, 1, 64, whole=True, more=True)
    gpu = Choice("GPU", {key: (catalog.gpu(key).name, layout.machine(catalog.gpu(key))) for key in GPUS}, "h100-sxm", more=True)

    tap = {"dots": "strategy"}
    presets = {"8B on one node": {}, "8B on two nodes": {"gpus": "16"},
               "8B, short sequences": {"strategy": "fsdp", "seq": 1024},
               "8B without NVLink": {"strategy": "fsdp", "gpu": "l40s"},
               "70B on 64": {"model": "llama3.1-70b", "gpus": "64", "strategy": "fsdp_recompute"},
               "128 experts on 32": {"model": "qwen3-30b-a3b", "gpus": "32", "strategy": "ep"}}
    break_it = ("Drive a strategy to the point at which its wires are busy for longer than the step's arithmetic: take tensor "
                "parallelism out of the node, or give FSDP short sequences.")
    assumptions = (
        "Each dot is one strategy alone on all GPUs, with one sequence a micro-batch and bf16 Adam; it stands where its three loads "
        "balance, and is larger the more they add up to. Wires count whether or not arithmetic hides them. A red ring: it does "
        "not fit the HBM. A strategy that cannot be built is not drawn. Rates are those that runs reach, below the data sheet's: the "
        "formula has them. Real runs mix strategies (lesson 10).")
    formula = (
        r"$$\ell_{HBM} = \frac{\text{bytes of the fullest GPU}}{\text{bytes of its HBM}}, \qquad "
        r"\ell_{compute} = \frac{T_{arithmetic} + T_{optimizer} + T_{bubble} - T_0}{T_0}, \qquad "
        r"\ell_{interconnect} = \frac{T_{wires}}{T_0}$$" "\n\n"
        "A dot divides the distance to the corners as $\\ell_i / (\\ell_{HBM} + \\ell_{compute} + \\ell_{interconnect})$. $T_0$ is "
        "the arithmetic of the step, evenly divided and with nothing computed twice: that of plain data parallelism. $T_{wires}$ "
        "is how long transfers keep the wires busy, hidden or not: where it passes $T_0$, the excess cannot be hidden. Bytes "
        "and seconds are those of `python -m engine estimate` for the same layout." "\n\n" + RATES)

    # -- what the engine says ------------------------------------------------------------------------------------------
    @once
    def costs(self):
        return strategy.costs(self.model, self.gpu.chip, self.gpu.wires, RECIPE, self.gpus, self.sequences, self.seq)

    @once
    def loads(self):
        return strategy.loads(self.costs(), self.gpu.gpu.hbm_bytes)

    @once
    def shares(self):
        return strategy.shares(self.loads())

    def chosen(self, table):
        """The chosen strategy's row of a table, or number of a column."""
        return lookup(table, self.strategy)

    def load(self, resource):
        return self.chosen(self.loads()[:, resource])

    def largest(self):
        """The resource on which the chosen strategy spends most."""
        return np.argmax(np.stack([self.load(i) for i in range(3)]))

    def is_possible(self):
        return self.chosen(self.costs().possible)

    # -- what is drawn -------------------------------------------------------------------------------------------------
    @part(*JOB)
    def dots(self):
        x, y = triangle.place(self.shares())
        loads = self.loads()
        return {"strategy": NAMES, "HBM": loads[:, 0], "compute": loads[:, 1], "interconnect": loads[:, 2], "x": x, "y": y,
                "size": triangle.dot_size(np.sum(loads, axis=1)), "most": select(np.argmax(loads, axis=1), PLACES),
                "fits": select(loads[:, 0] > 1, ["fits", "over"])}

    @hint("dots")
    def dots_said(self):
        loads = self.loads()
        return phrase("{name}: {hbm} of the HBM, {compute} more compute, wires busy for {wires} of the arithmetic; a step takes {step}",
                      name=select(np.arange(len(NAMES)), NAMES), hbm=show(loads[:, 0], "percent"),
                      compute=show(loads[:, 1], "percent"), wires=show(loads[:, 2], "percent"),
                      step=show(self.costs().step_s, "seconds"))

    @part(*JOB, shown=False)
    def over(self):
        x, y = triangle.place(self.shares())
        loads = self.loads()
        return {"x": x, "y": np.where(loads[:, 0] > 1, y, OUT_OF_SIGHT), "size": triangle.dot_size(np.sum(loads, axis=1))}

    @part(*JOB, "strategy", shown=False)
    def names(self):
        x, y = triangle.place(self.shares())
        side = triangle.sides(self.shares())
        other = triangle.narrow_sides(side, y)
        start, close = triangle.beside(x, side, 0.17), triangle.beside(x, other, 0.17)
        return {"x": x, "y": y, "start": start, "at": isometric.apart(start, y, 0.75, 0.085), "close": close,
                "close_at": isometric.apart(close, y, 0.6, 0.12), "name": NAMES, "short": SHORT,
                "align": select(side > 0, ["right", "left"]), "align_close": select(other > 0, ["right", "left"]),
                "style": select(np.arange(len(NAMES)) == self.strategy, ["normal", "bold"])}

    @part(*JOB, "strategy", shown=False)
    def trade(self):
        x, y = triangle.place(self.shares())
        return triangle.arrow((x[strategy.START], y[strategy.START]), (self.chosen(x), self.chosen(y)), 0.06)

    def figure(self, sources):
        p = fig.plot((-1.6, 1.6), (-1.1, 1.1), height=500)
        fig.same_scales(p, 1.04, 1.04, room_px=145)
        p.grid.visible = False
        for axis in p.axis:
            fig.hide(axis)
        color, ends = fig.COLOR, ("x0", "y0", "x1", "y1")
        p.segment(**triangle.lines(triangle.EDGES), line_color=color["axis"], line_width=1.5)
        p.segment(**triangle.lines(triangle.BORDERS), line_color=color["line"], line_dash=[5, 5])
        for corner, (x, y) in zip(PLACES, triangle.CORNERS):
            align, down = ("center", -34) if x == 0 else ("left" if x < 0 else "right", 16)
            for width, words in (("wide", TITLES[corner]), ("narrow", corner)):
                fig.only(width, p.text([x], [y], text=[words], text_align=align, y_offset=down, **fig.BOLD))
        p.segment(*ends, source=sources["trade"], line_color=color["ink"], line_width=1.5)
        p.scatter("x1", "y1", source=sources["trade"], marker="triangle", size=10, angle="angle", fill_color=color["ink"],
                  line_color=None)
        p.scatter("x", "y", source=sources["over"], marker="circle", size="size", fill_color=None, line_color=color["over"],
                  line_width=6)
        p.scatter("x", "y", source=sources["dots"], marker=factor_mark("most", list(SHAPES.values()), list(SHAPES)), size="size",
                  fill_color=fig.hues("most", HUES), fill_alpha=0.9, line_color=color["panel"])
        named = fig.TEXT | {"source": sources["names"], "text_font_style": "style"} | fig.ON_PANEL
        for width, start, at, words, align in (("wide", "start", "at", "name", "align"),
                                               ("narrow", "close", "close_at", "short", "align_close")):
            fig.only(width, p.segment("x", "y", start, at, source=sources["names"], line_color=color["ink-faint"], line_alpha=0.6,
                                      level="underlay"),
                     p.text(start, at, text=words, text_align=align, **named))
        return p

    # -- what is said --------------------------------------------------------------------------------------------------
    @readout("HBM")
    def hbm(self):
        held = f"{show(self.chosen(self.costs().total_bytes), 'bytes')} of {show(self.gpu.gpu.hbm_bytes, 'bytes')}"
        return self.if_possible(held), self.load(0) > 1

    @readout("More compute")
    def compute(self):
        return self.if_possible(f"{show(self.load(1), 'percent')} of the ideal"), self.load(1) > 0.5

    @readout("Wires busy")
    def interconnect(self):
        return self.if_possible(f"{show(self.load(2), 'percent')} of the ideal"), self.load(2) > 1

    @readout("A step")
    def step(self):
        ideal = show(self.costs().ideal_s, "seconds")
        return self.if_possible(f"{show(self.chosen(self.costs().step_s), 'seconds')}, ideal {ideal}")

    @readout("Against plain data parallelism")
    def against(self):
        trade = strategy.Trade(*(self.chosen(column) for column in strategy.trades(self.costs())))
        price = f"{show(trade.paid_s, 'seconds')} of {choose(trade.in_wires, 'wire', 'compute')}"
        words = f"saves {show(trade.saved_bytes, 'bytes')}, pays {choose(trade.is_little, 'next to nothing', price)}"
        return self.if_possible(choose(self.strategy == strategy.START, "it is where the others start", words))

    def if_possible(self, text):
        return choose(self.is_possible(), text, "cannot be built")

    def response(self):
        return select(self.strategy, RESPONSES)

    @regime(target=True)
    def wires_bind(self):
        return self.load(2) > 1, (
            f"You found where the wire binds: {select(self.strategy, NAMES)} keeps it busy for {show(self.load(2), 'times')} the "
            f"ideal step, and arithmetic can hide no more than its own length. First response: {self.response()}.")

    @regime()
    def does_not_fit(self):
        return self.load(0) > 1, (
            f"{select(self.strategy, TITLED)} does not fit: it wants {show(self.load(0), 'times')} the HBM of a {self.gpu.gpu.name}. "
            "First response: FSDP, which shards the whole state (lesson 05).")

    @regime()
    def cannot_be_built(self):
        return np.where(self.is_possible(), 0.0, 1.0) > 0, (
            f"{select(self.strategy, TITLED)} cannot be built here: {select(self.strategy, REFUSED)}.")

    def summary(self):
        loads = [show(self.load(i), "percent") for i in range(3)]
        spends = (f"fills {loads[0]} of each GPU's HBM, adds {loads[1]} to an ideal step of {show(self.costs().ideal_s, 'seconds')} "
                  f"and keeps the wires busy for {loads[2]} of it: it spends most on {select(self.largest(), PLACES)}.")
        return (f"On {show(self.gpus, 'count')} × {self.gpu.gpu.name}, {select(self.strategy, NAMES)} alone for {self.model.name} "
                f"{choose(self.is_possible(), spends, 'cannot be built.')}")
