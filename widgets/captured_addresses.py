"""A captured graph replayed on a new batch, cell by cell: it uses the addresses that it was captured with."""

import numpy as np
from bokeh.core.properties import value

from engine import replay
from engine.replay import ADDED, ROWS
from widgets.kit import figure as fig
from widgets.kit import lanes
from widgets.kit.controls import Choice, Number, Player, Switch
from widgets.kit.symbolic import lookup
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

WAYS = {"copied": ("is copied into the captured input", 1), "handed": ("is handed over as a new tensor", 0)}
STRIPS = ["captured input", "graph's scratch", "captured output", "the new batch", "another tensor"]
SHORT = ["input", "scratch", "output", "new", "other"]
STAGES = ["captured", "a new batch arrives", "before the replay", "replay: first kernel", "replay: second kernel"]
HEIGHTS = np.array([6.0, 5.0, 4.0, 1.5, 0.5])       # of the stretches of memory; between them, what is wanted
WANTED = 2.75
ADDRESSES = np.arange(float(replay.CELLS))
CELL = {"fill_color": fig.COLOR["hbm"], "line_color": fig.COLOR["hbm"], "fill_alpha": 0.15}
RUN = ("stage", "rows", "captured", "way", "shared")


class CapturedAddresses(Widget):
    question = "What does a replayed graph compute when the batch is new?"
    way = Choice("The new batch", WAYS, "handed")
    rows = Number("Rows of the new batch", 4, 1, ROWS, stops=range(1, ROWS + 1), log=False, whole=True)
    captured = Number("Rows at capture", 4, 1, ROWS, stops=range(1, ROWS + 1), log=False, whole=True)
    stage = Player("Stage", ADDED, seconds_per_frame=1.4, tween=1)
    shared = Switch("Scratch memory given back after capture", more=True,
                    help="As without a private pool: the allocator may give it to someone else")

    presets = {
        "A new tensor": {},
        "Copied in place": {"way": "copied"},
        "A shorter batch, padded": {"way": "copied", "rows": 3},
        "A longer one, copied": {"way": "copied", "rows": 6},
        "A longer one, handed over": {"rows": 6},
    }
    break_it = "Get every answer right and still do damage."
    assumptions = ("Two kernels, y = 2·x + 1, one cell a row; capture kept three addresses and a number of rows, as "
                   "CUDA Graphs do. Run "
                   "in a memory of forty cells, not drawn. Real graphs differ in scale, not in kind. "
                   "torch.cuda.graph gives each graph a "
                   "private pool; a copy that is too long raises an error in PyTorch.")
    formula = ("$$\\text{out}[i] = 2\\,\\text{in}[i] + 1 \\quad \\text{for } i < \\text{rows at capture}$$\n\nThe "
               "graph stores the "
               "addresses of $\\text{in}$, of its scratch memory and of $\\text{out}$, not the tensors.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    @once
    def run(self):
        return replay.replay(self.stage, self.rows, self.captured, self.way, np.where(self.shared, 0.0, 1.0))

    def ran(self):
        """Whether a replay has ended."""
        return (self.stage >= ADDED) & (self.run()["refused"] == 0)

    # -- the picture ------------------------------------------------------------------------------------------------
    def boxes(self, address):
        """Where the cells at these addresses are drawn."""
        stretch, column = replay.place(address)
        left, right = lanes.around(column, 0.46)
        height = lookup(HEIGHTS, np.where(stretch >= 0, stretch, 0.0))
        bottom, top = lanes.around(fig.where_known(height, address), 0.4)
        return {"left": left, "right": right, "bottom": bottom, "top": top}

    @part(*RUN)
    def cells(self):
        found = self.run()
        boxes = self.boxes(found["held_at"])
        return {"address": found["held_at"], **boxes, "x": fig.midpoint(boxes["left"], boxes["right"]),
                "y": fig.midpoint(boxes["bottom"], boxes["top"]), "value": found["held"],
                "text": show(found["held"], "count")}

    @hint("cells")
    def about_cell(self):
        found = self.run()
        return phrase("address {place} holds {value}", place=show(found["held_at"], "count"),
                      value=show(found["held"], "count"))

    @part(*RUN, shown=False)
    def wrong(self):
        return self.boxes(self.run()["wrong_at"])

    @part(*RUN, shown=False)
    def spoilt(self):
        return self.boxes(self.run()["spoilt_at"])

    @part(*RUN)
    def wanted(self):
        expected = self.run()["expected"]
        columns = fig.where_known(np.arange(float(ROWS)), expected)
        return {"x": columns, "wanted": expected, "text": show(expected, "count")}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-2.9, 7.6), (0.0, 6.6), height=390)
        fig.bare(p)
        box = {"left": "left", "right": "right", "bottom": "bottom", "top": "top"}
        empty = self.boxes(ADDRESSES)
        p.quad(**{side: list(places) for side, places in empty.items()}, fill_color=None, line_color=color["grid"])
        p.quad(**box, source=sources["cells"], **CELL)
        for name in ("wrong", "spoilt"):
            p.quad(**box, source=sources[name], **fig.OVER)
        p.text("x", "y", text="text", source=sources["cells"], text_align="center", **fig.TEXT)
        p.text("x", WANTED, text="text", source=sources["wanted"], text_align="center", **fig.LABEL)
        for width, names, wanted in (("wide", STRIPS, "what the batch asks for"), ("narrow", SHORT, "wanted")):
            fig.only(width, p.text(-0.62, list(HEIGHTS), text=names, text_align="right", **fig.TEXT),
                     p.text(-0.62, WANTED, text=value(wanted), text_align="right", **fig.LABEL))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Now")
    def now(self):
        refused = (self.run()["refused"] > 0) & (self.stage >= replay.COPIED)
        return choose(refused, "the copy is refused: too long", select(replay.stage_number(self.stage), STAGES))

    @readout("Answers right")
    def right(self):
        found = self.run()
        share = show(replay.right_share(found, self.rows), "percent")
        return choose(self.ran(), share, "–"), self.ran() & (found["wrong"] > 0)

    @readout("Rows asked for, rows run")
    def asked(self):
        return f"{show(self.rows, 'count')}, {show(self.captured, 'count')}", self.rows > self.captured

    @readout("Cells of others overwritten")
    def overwritten(self):
        return show(self.run()["spoilt"], "count"), self.run()["spoilt"] > 0

    @readout("Error raised")
    def error(self):
        return choose((self.run()["refused"] > 0) & (self.stage >= replay.COPIED), "yes, by the copy", "none")

    @regime(target=True)
    def damage(self):
        found = self.run()
        return self.ran() & (found["wrong"] == 0) & (found["spoilt"] > 0), (
            "You found the bug that no test of the model finds: every answer is right, and "
            f"{show(found['spoilt'], 'count')} cells of a "
            "tensor that has nothing to do with it were overwritten by the replay. First response: keep the graph's "
            "private pool, and "
            "share it only between graphs that never run at the same time.")

    @regime()
    def stale(self):
        found = self.run()
        return self.ran() & (found["wrong"] > 0), (
            f"{show(found['wrong'], 'count')} of {show(self.rows, 'count')} answers are wrong, and no error was "
            "raised: the replay read the "
            "captured input, which still holds the old batch, and wrote as many rows as at capture. First response: "
            f"{choose(self.rows > self.captured, 'capture a graph of more rows', 'copy into the captured input')}.")

    def summary(self):
        found = self.run()
        way = choose(self.way > 0, "copied into the captured input", "handed over as a new tensor")
        right = show(replay.right_share(found, self.rows), "percent")
        answers = choose(self.ran(), f"{show(found['wrong'], 'count')} answers are wrong, {right} are not",
                         "0 % of the answers are there")
        return (f"A batch of {show(self.rows, 'count')} rows, {way}, and a graph captured with "
                f"{show(self.captured, 'count')}: at the stage "
                f"“{self.now()}” {answers}, and "
                f"{show(found['spoilt'], 'count')} cells of another tensor were overwritten.")
