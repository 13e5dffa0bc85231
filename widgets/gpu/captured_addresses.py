"""A captured graph replayed on a new batch, cell by cell: its kernels point to addresses, Python's names to
tensors, and only the names move."""

import numpy as np
from bokeh.core.properties import value

from engine.one_gpu import replay
from engine.one_gpu.replay import ADDED, ARRIVED, COPIED, DOUBLED, ROWS
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Player, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lanes
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

WAYS = {"copied": ("is copied into the captured input", 1), "handed": ("is handed over as a new tensor", 0)}
LINES = ["captured input", "graph's scratch", "captured output", "the new batch", "another tensor"]
SHORT = ["input", "scratch", "output", "the new batch", "another tensor"]
INPUT, SCRATCH, OUTPUT, NEW, OTHER = range(5)  # lines of memory, eight cells of four bytes each
HEX = [f"0x{4 * cell:02x}" for cell in range(replay.CELLS)]
STARTS = [HEX[ROWS * line] for line in range(len(LINES))]
CODE_HANDED = [
    "graph captured with x",
    "x = next_batch()",
    "x = next_batch()",
    "graph.replay()  # double",
    "graph.replay()  # add one",
]
CODE_COPIED = [CODE_HANDED[0], "batch = next_batch()", "x.copy_(batch)", *CODE_HANDED[3:]]
NAMES = ["x", "batch", "y", "other"]
# -- places on the picture: x in cells, y in the pixels of a picture of HEIGHT -------------------------------
HEIGHT = 390
AT_Y = np.array([352.0, 292.0, 232.0, 140.0, 80.0])  # of the lines' cells
HALF, TITLE_UP = 15.0, 27.0  # of a cell's height; from there to the line's title
WANTED_Y, CODE_Y = 205.0, 416.0
NODE, NODE_HALF = (8.72, 11.15), 24.0  # the kernels' sides, and half their height
KERNELS = ["double", "add one"]
KERNEL_Y = (AT_Y[:2] + AT_Y[1:3]) / 2
ARROWS = [  # from where to where each kernel reads and writes
    (8.0, AT_Y[INPUT], NODE[0] - 0.1, KERNEL_Y[0] + 12),
    (NODE[0], KERNEL_Y[0] - 12, 8.0, AT_Y[SCRATCH] + 7),
    (8.0, AT_Y[SCRATCH] - 7, NODE[0] - 0.1, KERNEL_Y[1] + 12),
    (NODE[0], KERNEL_Y[1] - 12, 8.0, AT_Y[OUTPUT]),
]
X0, Y0, X1, Y1 = np.array(ARROWS).T
TURNED = np.arctan2(Y1 - Y0, 50 * (X1 - X0)) - np.pi / 2  # where a cell is some fifty pixels wide
AROUND = [KERNEL_Y[0] + NODE_HALF + 13, KERNEL_Y[1] - NODE_HALF - 14, KERNEL_Y[1] - NODE_HALF - 30]
FILLS = {"plain": "panel", "lit": "hbm", "wrong": "panel", "spoilt": "panel"}
RIMS = {"plain": "hbm", "lit": "hbm", "wrong": "panel", "spoilt": "over"}
INKS = {"plain": "ink", "lit": "panel", "wrong": "ink", "spoilt": "over"}
KINDS = list(FILLS)
EMPTY = {"line_color": fig.COLOR["grid"]}
ADDRESSES = np.arange(float(replay.CELLS))
RUN = ("stage", "rows", "captured", "way", "shared")


class CapturedAddresses(Widget):
    question = "What does a replayed graph compute when the batch is new?"
    way = Choice("The new batch", WAYS, "handed")
    rows = Number("Rows of the new batch", 4, 1, ROWS, stops=range(1, ROWS + 1), log=False, whole=True)
    captured = Number("Rows at capture", 4, 1, ROWS, stops=range(1, ROWS + 1), log=False, whole=True)
    stage = Player("Stage", ADDED, seconds_per_frame=1.4, tween=10)
    shared = Switch(
        "Scratch memory given back after capture",
        more=True,
        help="As without a private pool: the allocator may give it to another tensor",
    )

    presets = {
        "A new tensor": {},
        "Copied in place": {"way": "copied"},
        "A shorter batch, padded": {"way": "copied", "rows": 3},
        "A longer one, copied": {"way": "copied", "rows": 6},
        "A longer one, handed over": {"rows": 6},
    }
    break_it = "Get every answer right and still do damage."
    assumptions = (
        "The graph holds two kernels, which compute y = 2·x + 1, and a row is one cell of four bytes. "
        "Capture kept three addresses and a number of rows, as CUDA Graphs do. Run in this memory of forty "
        "cells: real graphs differ in scale, not in kind. torch.cuda.graph gives each graph a private pool; "
        "a copy that is too long raises an error in PyTorch. A dashed cell holds another number than the "
        "batch asks for."
    )
    formula = (
        "$$\\text{out}[i] = 2\\,\\text{in}[i] + 1 \\quad \\text{for } i < \\text{rows at capture}$$\n\nThe "
        "graph stores the addresses of $\\text{in}$, of its scratch memory and of $\\text{out}$, not the "
        "tensors."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def run(self):
        return replay.replay(self.stage, self.rows, self.captured, self.way, np.where(self.shared, 0.0, 1.0))

    def ran(self):
        """Whether a replay has ended."""
        return (self.stage >= ADDED) & (self.run()["refused"] == 0)

    def refused(self):
        """Whether the copy has been refused by now."""
        return (self.run()["refused"] > 0) & (self.stage >= COPIED)

    # -- the picture -----------------------------------------------------------------------------------------
    def boxes(self, address):
        """Where the cells at these addresses are drawn."""
        line, column = replay.place(address)
        left, right = lanes.around(column, 0.46)
        height = lookup(AT_Y, np.where(line >= 0, line, 0.0))
        bottom, top = lanes.around(fig.where_known(height, address), HALF)
        return {"left": left + 0.5, "right": right + 0.5, "bottom": bottom, "top": top}

    def in_use(self, address):
        """Whether what happens now reads or writes these cells."""
        line, column = replay.place(address)
        now = np.ceil(self.stage)
        working = now - np.where(now > COPIED, DOUBLED, 0.0)  # the first line that a kernel touches
        kernel = (now > COPIED) & (column < self.captured) & ((line == working) | (line == working + 1))
        copied = (now == COPIED) & (self.way > 0) & ((line == INPUT) | (line == NEW)) & (column < self.rows)
        return (kernel | copied | ((now == ARRIVED) & (line == NEW))) & (self.run()["refused"] == 0)

    @part(*RUN)
    def cells(self):
        found = self.run()
        address = found["held_at"]
        boxes = self.boxes(address)
        spoilt, wrong = (
            np.any(address[:, None] == found[name][None, :], axis=1) for name in ("spoilt_at", "wrong_at")
        )
        kind = np.where(spoilt, 3.0, np.where(wrong, 2.0, np.where(self.in_use(address), 1.0, 0.0)))
        return {
            "address": address,
            **boxes,
            "x": fig.midpoint(boxes["left"], boxes["right"]),
            "y": fig.midpoint(boxes["bottom"], boxes["top"]),
            "value": found["held"],
            "text": show(found["held"], "count"),
            "kind": select(fig.where_known(kind, address), KINDS),
        }

    @hint("cells")
    def about_cell(self):
        found = self.run()
        return phrase(
            "address {place} holds {value}",
            place=select(found["held_at"], HEX),
            value=show(found["held"], "count"),
        )

    @part(*RUN, shown=False)
    def wrong(self):
        return self.boxes(self.run()["wrong_at"])

    @part(*RUN)
    def wanted(self):
        expected = self.run()["expected"]
        columns = fig.where_known(np.arange(float(ROWS)), expected)
        return {"x": columns + 0.5, "wanted": expected, "text": show(expected, "count")}

    @part(*RUN, shown=False)
    def titles(self):
        """What each line of memory is, by now."""
        given = self.shared & (self.stage >= ARRIVED)
        left = (self.stage >= ARRIVED) & ((self.way < 1) | self.refused())
        old = self.ran() & (self.run()["wrong"] > 0)
        more = [
            choose(left, ", still the old batch", ""),
            choose(given, ", given to another", ""),
            choose(old, ", of the old batch", ""),
            "",
            "",
        ]
        return {
            "y": AT_Y + TITLE_UP,
            "text": [f"{start}  {line}{each}" for start, line, each in zip(STARTS, LINES, more)],
            "short": [f"{start}  {line}{each}" for start, line, each in zip(STARTS, SHORT, more)],
        }

    @part("stage", "way", "shared")
    def names(self):
        """Python's names, each beside the line that it points to; one that is not yet bound is out of
        sight."""
        arrived = np.clip(self.stage, 0.0, 1.0)
        handed = np.where(self.way > 0, 0.0, arrived)
        bound = [True, (self.way > 0) & (self.stage >= ARRIVED), True, self.stage >= ARRIVED]
        y = [
            fig.between(AT_Y[INPUT], AT_Y[NEW], handed),
            AT_Y[NEW],
            AT_Y[OUTPUT],
            np.where(self.shared, AT_Y[SCRATCH], AT_Y[OTHER]),
        ]
        tail = [fig.gone_unless(each, -0.62) for each in bound]
        return {"name": NAMES, "x": np.stack(tail), "head": np.stack(tail) + 0.5, "y": np.stack(y)}

    @hint("names")
    def about_names(self):
        where = [
            choose((self.way > 0) | (self.stage < ARRIVED), STARTS[INPUT], STARTS[NEW]),
            STARTS[NEW],
            STARTS[OUTPUT],
            choose(self.shared, STARTS[SCRATCH], STARTS[OTHER]),
        ]
        return [f"the name {name} points to {line}" for name, line in zip(NAMES, where)]

    @part("stage", "way", "rows", "captured", "shared")
    def copies(self):
        """The cells on their way from the new batch to the captured input."""
        way = self.stage - ARRIVED
        index = np.arange(float(ROWS))
        seen = (way > 0) & (way < 1) & (self.way > 0) & (self.run()["refused"] == 0) & (index < self.rows)
        left, right = lanes.around(index + 0.5, 0.46)
        y = fig.between(AT_Y[NEW], AT_Y[INPUT], way)
        return {
            "left": fig.gone_unless(seen, left),
            "right": fig.gone_unless(seen, right),
            "x": fig.gone_unless(seen, index + 0.5),
            "y": y + 0 * index,
            "bottom": y - HALF + 0 * index,
            "top": y + HALF + 0 * index,
            "text": show(self.run()["memory"][NEW * ROWS : (NEW + 1) * ROWS], "count"),
        }

    @part("stage", "captured", "rows", "way", "shared")
    def kernels(self):
        """The two nodes of the graph, of which one may be running."""
        running = (np.ceil(self.stage) - DOUBLED == np.arange(2.0)) & (self.run()["refused"] == 0)
        rows = f"{show(self.captured, 'count')}{choose(self.captured > 1, ' rows', ' row')}"
        return {
            "y": KERNEL_Y,
            "foot": KERNEL_Y - NODE_HALF,
            "head": KERNEL_Y + NODE_HALF,
            "name": KERNELS,
            "rows": [rows, rows],
            "call": [f"{STARTS[i]} → {STARTS[i + 1]}, {rows}" for i in range(2)],
            "rim": np.where(running, 5.0, 1.5),
        }

    @hint("kernels")
    def about_kernels(self):
        rows = f"{show(self.captured, 'count')}{choose(self.captured > 1, ' rows', ' row')}"
        return [
            f"{KERNELS[i]}: reads {rows} at {STARTS[i]} and writes {STARTS[i + 1]}, as captured, whatever "
            "Python's names point to now"
            for i in range(2)
        ]

    @part("stage", "way", "rows", "captured", "shared")
    def code(self):
        """What Python does at this stage."""
        stage = np.floor(self.stage)
        did = choose(self.way > 0, select(stage, CODE_COPIED), select(stage, CODE_HANDED))
        return {"y": CODE_Y, "text": choose(self.refused(), "x.copy_(batch)  # RuntimeError", did)}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-2.35, 11.2), (AT_Y[OTHER] - 22, CODE_Y + 14), height=HEIGHT)
        fig.bare(p)
        p.quad(**{side: list(at) for side, at in self.boxes(ADDRESSES).items()}, fill_color=None, **EMPTY)
        self.draw_graph(p, sources["kernels"])
        cells = {"source": sources["cells"]}
        p.quad(
            **fig.BOX,
            **cells,
            fill_color=fig.hues("kind", FILLS),
            line_color=fig.hues("kind", RIMS),
            line_width=1.5,
        )
        wrong = {"line_color": color["ink"], "line_width": 2.5, "line_dash": [5, 4], "fill_color": None}
        p.quad(**fig.BOX, source=sources["wrong"], **wrong)
        centred = {"text": "text", "text_align": "center"}
        p.text("x", "y", **cells, **centred, **fig.TEXT | {"text_color": fig.hues("kind", INKS)})
        p.text("x", WANTED_Y, source=sources["wanted"], **centred, **fig.BOLD)
        p.text([-0.1], [WANTED_Y], text=["asked for"], text_align="right", **fig.BOLD)
        for width, column in (("wide", "text"), ("narrow", "short")):
            fig.only(width, p.text(0.04, "y", text=column, source=sources["titles"], **fig.LABEL))
        moving = {"source": sources["copies"]}
        p.quad(**fig.BOX, **moving, fill_color=color["hbm"], line_color=color["panel"])
        p.text("x", "y", **moving, **centred, **fig.TEXT | {"text_color": color["panel"]})
        names, ink = {"source": sources["names"]}, {"line_color": color["ink"], "line_width": 2}
        p.text("x", "y", text="name", text_align="right", x_offset=-4, **names, **fig.BOLD)
        p.segment("x", "y", "head", "y", **names, **ink)
        p.scatter(
            "head",
            "y",
            marker="triangle",
            angle=-np.pi / 2,
            size=9,
            fill_color=color["ink"],
            line_color=None,
            **names,
        )
        p.text(
            -2.35, "y", text="text", source=sources["code"], **fig.TEXT | {"text_font": value(fig.CODE_FONT)}
        )
        return p

    def draw_graph(self, p, kernels):
        """The kernels and the arrows that capture fixed."""
        hue = fig.COLOR["compute"]
        p.segment(X0, Y0, X1, Y1, line_color=hue, line_width=2)
        p.scatter(X1, Y1, marker="triangle", size=9, angle=TURNED, fill_color=hue, line_color=None)
        left, right = NODE
        node = {"fill_color": None, "line_color": hue, "line_width": "rim"}
        p.quad(left=left, right=right, bottom="foot", top="head", source=kernels, **node)
        p.text(left + 0.1, "y", text="name", y_offset=-9, **fig.BOLD | {"source": kernels})
        for width, call, *words in (
            ("wide", "call", "captured graph", "fixed at capture"),
            ("narrow", "rows", "graph", "fixed at", "capture"),
        ):
            fig.only(
                width,
                p.text(left + 0.1, "y", text=call, y_offset=9, **fig.TEXT | {"source": kernels}),
                p.text([left] * len(words), AROUND[: len(words)], text=words, **fig.LABEL),
            )

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Answers right")
    def right(self):
        found = self.run()
        told = f"{show(self.rows - found['wrong'], 'count')} of {show(self.rows, 'count')}"
        return choose(self.ran(), told, "–"), self.ran() & (found["wrong"] > 0)

    @readout("Cells of others overwritten")
    def overwritten(self):
        return show(self.run()["spoilt"], "count"), self.run()["spoilt"] > 0

    @readout("Error raised")
    def error(self):
        return choose(self.refused(), "yes, by the copy", "none")

    @regime(target=True)
    def damage(self):
        found = self.run()
        return self.ran() & (found["wrong"] == 0) & (found["spoilt"] > 0), (
            "You found the bug that no test of the model finds: every answer is right, and "
            f"{show(found['spoilt'], 'count')} cells of a tensor that has nothing to do with it were "
            "overwritten by the replay. First response: keep the graph's private pool, and share it only "
            "between graphs that never run at the same time."
        )

    @regime()
    def stale(self):
        found = self.run()
        response = choose(
            self.rows > self.captured, "capture a graph of more rows", "copy into the captured input"
        )
        return self.ran() & (found["wrong"] > 0), (
            f"{show(found['wrong'], 'count')} of {show(self.rows, 'count')} answers are wrong, and no error "
            "was raised: the replay read the captured input, which still holds the old batch, and wrote as "
            f"many rows as at capture. First response: {response}."
        )

    def summary(self):
        found = self.run()
        asked, given = show(self.rows, "count"), show(4.0 * self.rows, "bytes")
        held, spoilt = show(4.0 * self.captured, "bytes"), show(4.0 * found["spoilt"], "bytes")
        every = choose(self.rows > 1, f"All {asked} answers are", "The only answer is")
        some = f"{show(found['wrong'], 'count')} of {asked} answers {choose(found['wrong'] > 1, 'are', 'is')}"
        wrong = choose(found["wrong"] == self.rows, every, some)
        spoilt = f"{every} right, and {spoilt} of another tensor were overwritten."
        fine = f"{every} right: {given} were copied to where the graph reads, {STARTS[INPUT]}."
        stale = f"{wrong} wrong and no error is raised: the graph still reads {held} at {STARTS[INPUT]}."
        before = f"No answer is there yet: a replay will read {held} at {STARTS[INPUT]}, wherever x points."
        refused = f"No answer is there: a copy of {given} into {held} of captured input is refused."
        after = choose(found["wrong"] > 0, stale, choose(found["spoilt"] > 0, spoilt, fine))
        return choose(self.refused(), refused, choose(self.ran(), after, before))


CapturedAddresses.serve_as(__name__)
