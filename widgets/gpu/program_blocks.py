"""The programs of a matrix product in their order: what each reads, what a mask switches off, what L2 still
holds."""

import numpy as np
from bokeh.core.properties import value

from engine.one_gpu import tile_order, tiling
from engine.one_gpu.tile_order import FOUND, MOST, NOT_OWN, PUT_OUT, READ, RESTING
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import ring
from widgets.kit.drawing.panels import Panel, Place
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

CELLS = np.arange(float(MOST))
A, B, C = ((0.0, 1.0), (0.0, 1.0)), ((1.1, 2.1), (1.1, 2.1)), ((1.1, 2.1), (0.0, 1.0))  # across and up
# The picture's parts, by their sides in pixels: the three matrices, and beside them the reads as bars
WIDE, NARROW, SIDE = 510, 710, 330
MATRICES, READS = (
    Panel(name, Place(*wide), Place(*narrow))
    for name, wide, narrow in (
        ("matrices", ((0.0, 0.66), (0.0, 1.0)), ((0.0, 1.0), ((SIDE + 15) / NARROW, 1.0))),
        ("reads", ((0.7, 1.0), (1.0 - SIDE / WIDE, 1.0)), ((0.0, 1.0), (0.0, SIDE / NARROW))),
    )
)
READS_Y, READS_HALF = np.array([286.0, 198.0]), 11.0
WORDS_Y = np.array([116.0, 98.0, 74.0, 56.0, 32.0, 14.0])
OUT_OF_SIGHT = -1.0
GROUPS = (1, 2, 3, 4, 6, 9, 18)  # heights that divide few tiles well
GROUPED = ["rows one by one", *(f"groups of {height} rows" for height in GROUPS[1:])]
KEY_Y, KEY_STEP, KEY_AT = 2.02, 0.12, (0.0, 0.07)  # left of B, above A
SHARE = 0.94  # of a cell, what its block takes
NUMBERED = 100  # up to so many tiles have room for their numbers
STATES = [
    "is not in L2",
    "was read by this wave and evicted from L2",
    "lies in L2",
    "was found in L2",
    "was read from HBM",
]
DARK = {READ: 0.75, FOUND: 0.3, RESTING: 0.16, PUT_OUT: 0.0}
MARKS = {FOUND: "circle", PUT_OUT: "x"}  # on the blocks of a kind, so that no kind is told by shade alone
KEY = [
    ("read from HBM", READ),
    ("found in L2", FOUND),
    ("lies in L2", RESTING),
    ("read, then evicted", PUT_OUT),
    ("masked", None),
]
GRID = ("side", "block", "inner")
ORDER = (*GRID, "group", "at_a_time", "room")
RAGGED, WASTEFUL = 0.25, 1.5
NAMES = ["A, in blocks", "B, in blocks", "C, a tile for each program"]


class ProgramBlocks(Widget):
    question = "Which blocks does each program read, and who finds them in L2?"
    in_page = True
    side = Number("Rows and columns of C", 1152, 128, 1152, stops=range(128, 1153, 16), log=False, whole=True)
    block = Choice("Block", {str(size): (f"{size} × {size}", float(size)) for size in (64, 128, 256)}, "128")
    group = Number(
        "Group of rows",
        3,
        1,
        18,
        stops=range(1, 19),
        log=False,
        whole=True,
        help="Rows of tiles traversed together, column by column; 1 is row-major order",
    )
    inner = Number(
        "Inner size, K", 1152, 64, 1152, stops=range(64, 1153, 16), log=False, whole=True, more=True
    )
    at_a_time = Number(
        "Programs at a time",
        9,
        1,
        64,
        stops=range(1, 65),
        log=False,
        whole=True,
        more=True,
        help="One wave: this many start together and move along K together",
    )
    room = Number("L2 has room for", 60, 4, 400, stops=64, whole=True, more=True, help="Blocks of A and B")
    play = Player("Start the programs", frames=MOST, seconds_per_frame=0.5, default=9, tween=1)

    own = tuple(NOT_OWN)
    given = {"own": own}  # a reader's order, as tile_order.is_own reads it

    presets = {
        "Triton's example: 9 × 9 tiles": {},
        "One program at a time": {"at_a_time": 1, "play": 6},
        "Ragged: 528": {"side": 528, "inner": 528},
        "18 × 18 tiles, 36 at a time": {"block": "64", "group": 6, "at_a_time": 36, "play": 36, "room": 200},
    }
    break_it = (
        "Keep the tiles and change their order alone, until HBM must deliver half as much again as in the "
        "best order."
    )
    assumptions = (
        "Every block is square, all programs of a wave walk along K together, and a wave starts when the "
        "last one is done. L2 holds whole blocks and gives up the one that was read longest ago; real ones "
        "hold thousands, of smaller pieces. Counted by running the order, not by a formula. Writing C is "
        "left out."
    )
    formula = (
        r"$$\text{group} = \left\lfloor\frac{p}{G\,t_n}\right\rfloor \qquad G' = \min(t_m - "
        r"G\cdot\text{group},\; G) \qquad \text{row} = G\cdot\text{group} + (p \bmod G\,t_n) \bmod G' \qquad "
        r"\text{column} = \left\lfloor\frac{p \bmod G\,t_n}{G'}\right\rfloor$$"
        "\n\n"
        "Program $p$ of $t_m \\times t_n$ tiles, in groups of $G$ rows, the last of $G'$ (Triton's tutorial "
        "03). A wave of $n_\\text{wave}$ programs reads $(g + n_\\text{wave}/g)\\,t_k$ blocks if it covers "
        "$g$ rows of tiles and $n_\\text{wave}/g$ columns: the least where it is a square."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def tiles(self):
        return tiling.blocks(self.side, self.block)

    def steps(self):
        return tiling.blocks(self.inner, self.block)

    @once
    def count(self):
        return tiling.programs(self.side, self.side, self.tile())

    def tile(self):
        return tiling.Tile(self.block, self.block, self.block, 1.0, 1.0)

    def started(self):
        """How many programs have been started, at least one."""
        return tile_order.started(self.play, self.count())

    def program(self):
        """The number of the one that was started last."""
        return self.started() - 1.0

    def run(self, group, until, own=NOT_OWN):
        return tile_order.run_in(
            self.tiles(), self.tiles(), self.steps(), group, self.at_a_time, self.room, until, own
        )

    @once
    def so_far(self):
        return self.run(self.group, self.started(), self.own)

    @once
    def whole(self):
        return self.run(self.group, self.count(), self.own)

    @once
    def places(self):
        return tile_order.places(self.tiles(), self.tiles(), self.group, self.own)

    def is_own(self):
        """Whether a reader's order is drawn."""
        return self.places()["own"] > 0

    @once
    def best_read(self):
        """The bytes read from HBM in the best of several orders: groups of each height that divides few tiles
        well."""
        return np.min(self.reads_of_orders())

    @once
    def reads_of_orders(self):
        return np.stack([self.run(float(group), self.count())["read"] for group in GROUPS])

    def excess(self):
        return self.whole()["read"] / self.best_read()

    def row(self):
        """Of the program that was started last."""
        return np.sum(np.where(self.program() == CELLS, self.places()["row"], 0.0))

    def column(self):
        return np.sum(np.where(self.program() == CELLS, self.places()["column"], 0.0))

    def masked(self):
        return tiling.masked_share(self.side, self.side, self.block, self.block)

    # -- the picture -----------------------------------------------------------------------------------------
    @staticmethod
    def boxes(row, column, rows, columns, place):
        """Cells of a matrix, padding included."""
        left, right = ring.column(column, columns, *place[0], share=SHARE)
        bottom, top = ring.row(row, rows, *place[1], share=SHARE)
        return {"left": left, "right": right, "bottom": bottom, "top": top}

    def blocks_of(self, state, rows, columns, place):
        """The blocks of A or B, as dark as they are fresh; no number where there is no block."""
        row, column = tile_order.cell(np.where(state >= 0, CELLS, state), columns)
        boxes = self.boxes(row, column, rows, columns, place)
        older = np.where(
            state == FOUND, DARK[FOUND], np.where(state == RESTING, DARK[RESTING], DARK[PUT_OUT])
        )
        return {
            "row": row,
            "column": column,
            **boxes,
            "state": state,
            "fill": np.where(state == READ, DARK[READ], older),
            "x": fig.midpoint(boxes["left"], boxes["right"]),
            "y": fig.midpoint(boxes["bottom"], boxes["top"]),
            "found": np.where(state == FOUND, 1.0, 0.0),
            "put_out": np.where(state == PUT_OUT, 1.0, 0.0),
        }

    @part(*ORDER, "play")
    def of_a(self):
        return self.blocks_of(self.so_far()["a_state"], self.tiles(), self.steps(), A)

    @part(*ORDER, "play")
    def of_b(self):
        return self.blocks_of(self.so_far()["b_state"], self.steps(), self.tiles(), B)

    @staticmethod
    def about(name, blocks):
        return phrase(
            f"block {{row}}, {{column}} of {name} {{state}}",
            row=show(blocks["row"], "count"),
            column=show(blocks["column"], "count"),
            state=select(blocks["state"], STATES),
        )

    @hint("of_a")
    def about_a(self):
        return self.about("A", self.of_a())

    @hint("of_b")
    def about_b(self):
        return self.about("B", self.of_b())

    @part(*ORDER, "play", shown=False)
    def key(self):
        """The entries of the key that the picture has blocks for, one below the other."""
        states = np.concatenate([self.of_a()["state"], self.of_b()["state"]])
        counts = [np.sum(np.where(states == state, 1.0, 0.0)) for _, state in KEY[:-1]]
        side, inner = self.filled()
        there = np.append(np.stack(counts), 1.0 - side * inner) > 0
        y = KEY_Y - KEY_STEP * (np.cumsum(np.where(there, 1.0, 0.0)) - 1.0)
        left, right = KEY_AT
        return {
            "left": fig.gone_unless(there, left),
            "right": fig.gone_unless(there, right),
            "x": fig.gone_unless(there, fig.midpoint(left, right)),
            "y": y,
            **fig.rows_of(y, 0.03),
        }

    @part(*ORDER, "play")
    def of_c(self):
        state = self.so_far()["c_state"]
        number = np.where(state >= 0, CELLS, state)
        row, column = self.places()["row"], self.places()["column"]
        boxes = self.boxes(row, column, self.tiles(), self.tiles(), C)
        return {
            "program": number,
            "row": row,
            "column": column,
            **boxes,
            "fill": np.where(state == 2, 0.62, np.where(state == 1, 0.25, 0.0)),
            "text": show(number, "count"),
        }

    @part("side", "block", "group", shown=False)
    def numbers(self):
        """The programs' numbers in their tiles, where there is room for them."""
        seen = (CELLS[:NUMBERED] < self.count()) & (self.count() <= NUMBERED)
        row, column = (np.where(seen, self.places()[name][:NUMBERED], 0.0) for name in ("row", "column"))
        tile = self.boxes(row, column, self.tiles(), self.tiles(), C)
        return {
            "x": np.where(seen, fig.midpoint(tile["left"], tile["right"]), OUT_OF_SIGHT),
            "y": fig.midpoint(tile["bottom"], tile["top"]),
            "text": show(np.where(seen, CELLS[:NUMBERED], 0.0), "count"),
        }

    @hint("of_c")
    def about_c(self):
        tiles = self.of_c()
        return phrase(
            "program {n}: rows {top} to {bottom}, columns {left} to {right}",
            n=tiles["text"],
            top=show(tiles["row"] * self.block, "count"),
            bottom=show(tile_order.last_element(tiles["row"], self.block, self.side), "count"),
            left=show(tiles["column"] * self.block, "count"),
            right=show(tile_order.last_element(tiles["column"], self.block, self.side), "count"),
        )

    @part(*GRID, "group", "play", shown=False)
    def current(self):
        """The tile of the program that was started last, its strip of A and its strip of B."""
        row, column, last = self.row(), self.column(), self.steps() - 1.0
        tile = self.boxes(row, column, self.tiles(), self.tiles(), C)
        of_a = self.boxes(row, last, self.tiles(), self.steps(), A)
        top, bottom = (self.boxes(step, column, self.steps(), self.tiles(), B) for step in (0.0, last))
        return {
            "left": np.stack([tile["left"], A[0][0], tile["left"]]),
            "right": np.stack([tile["right"], of_a["right"], tile["right"]]),
            "bottom": np.stack([tile["bottom"], tile["bottom"], bottom["bottom"]]),
            "top": np.stack([tile["top"], tile["top"], top["top"]]),
        }

    def filled(self):
        """How much of their blocks the sides of C and the inner side fill."""
        return (
            tile_order.filled_share(self.side, self.tiles(), self.block),
            tile_order.filled_share(self.inner, self.steps(), self.block),
        )

    @part("side", "block", "inner", shown=False)
    def padding(self):
        """Lanes beyond the matrices' edges: right and below of A, B and C."""
        side, inner = self.filled()
        across, up = np.stack([inner, side, side]), np.stack([side, inner, side])
        left = np.array([place[0][0] for place in (A, B, C)])
        top = np.array([place[1][1] for place in (A, B, C)])
        right, bottom = left + 1.0, top - 1.0
        edge, floor = left + across, top - up
        return {
            "left": np.concatenate([edge, left]),
            "right": np.concatenate([right, edge]),
            "bottom": np.concatenate([bottom, bottom]),
            "top": np.concatenate([top, floor]),
        }

    def wave_size(self):
        """How many programs of the present wave have been started."""
        return np.sum(np.where(self.so_far()["c_state"] == 2, 1.0, 0.0))

    def asked_and_read(self):
        """Blocks that this wave asks for and those that HBM delivers; then the same of all programs."""
        wave, whole = self.so_far(), self.whole()
        return (np.stack([wave["wave_asked"], whole["asked"]]), np.stack([wave["wave_read"], whole["read"]]))

    @part(*ORDER, "play")
    def reads(self):
        """The blocks of the current wave, and of the whole product: read from HBM, and found in L2."""
        asked, read = self.asked_and_read()
        share, found = read / np.maximum(asked, 1.0), asked - read
        programs = counted(self.count(), "program", "programs")
        names = [
            f"this wave asks for {counted(asked[0], 'block', 'blocks')}",
            (
                f"{choose(self.count() > 1, f'all {programs} ask', 'the one program asks')} for "
                f"{show(asked[1], 'count')}"
            ),
        ]
        return {
            "y": READS_Y,
            **fig.rows_of(READS_Y, READS_HALF),
            "left": np.zeros(2),
            "share": share,
            "right": np.ones(2) + 0.0 * share,
            "name": names,
            "from_hbm": [f"{show(read[i], 'count')} from HBM" for i in range(2)],
            "from_l2": [f"{show(found[i], 'count')} in L2" for i in range(2)],
            "against": ["", self.against_the_best()],
        }

    def against_the_best(self):
        best = f"the best order: {show(self.best_read(), 'count')} from HBM"
        return choose(self.excess() <= 1, "as few as in the best order", best)

    @hint("reads")
    def about_reads(self):
        asked, read = self.asked_and_read()
        return phrase(
            "{whose}: {read} of {asked} blocks come from HBM, the others are found in L2",
            whose=["This wave", "All programs"],
            read=show(read, "count"),
            asked=show(asked, "count"),
        )

    @part(*GRID, "group", "play", shown=False)
    def words(self):
        """What the program that was started last computes, and where it reads."""
        row, column = self.row(), self.column()
        block, side = show(self.block, "count"), show(self.side, "count")
        tile = f"({show(row, 'count')}, {show(column, 'count')})"
        return {
            "y": WORDS_Y,
            "text": [
                f"outlined: program {show(self.program(), 'count')}",
                f"computes tile {tile} of C",
                f"its blocks of A: from {show(row * self.block, 'count')}·{show(self.inner, 'count')} on,",
                f"each step {block} elements further",
                f"its blocks of B: from {show(column * self.block, 'count')} on,",
                f"each step {block}·{side} further",
            ],
        }

    def ends(self):
        return {"play": self.count()}

    def figure(self, sources):
        p = fig.plot((0, 1), (0, 1), height=WIDE)
        fig.bare(p)
        fig.taller_on_phone(p, NARROW)
        self.draw_matrices(p, sources)
        self.draw_reads(p, sources)
        return p

    def draw_matrices(self, p, sources):
        color, at = fig.COLOR, MATRICES.scales(p, (-0.01, 2.12), (-0.02, 2.2))
        box = fig.BOX | at
        for name in ("of_a", "of_b"):
            p.quad(
                **box,
                source=sources[name],
                fill_color=color["hbm"],
                fill_alpha="fill",
                line_color=color["axis"],
            )
            for state, seen in ((FOUND, "found"), (PUT_OUT, "put_out")):
                p.scatter("x", "y", source=sources[name], **self.mark(state, seen), **at)
        p.quad(
            **box,
            source=sources["of_c"],
            fill_color=color["compute"],
            fill_alpha="fill",
            line_color=color["axis"],
        )
        p.quad(**box, source=sources["padding"], **fig.IDLE | {"fill_alpha": 0.55, "line_color": None})
        p.quad(**box, source=sources["current"], fill_color=None, line_color=color["ink"], line_width=2)
        number = {"source": sources["numbers"], "text_align": "center"} | fig.TEXT | at
        fig.only("wide", p.text("x", "y", text="text", **number))
        for width, names in (("wide", NAMES), ("narrow", "ABC")):
            for name, (across, up) in zip(names, (A, B, C)):
                fig.only(width, p.text(across[0], up[1], text=value(name), y_offset=-10, **fig.BOLD, **at))
        self.draw_key(p, sources, at)

    @staticmethod
    def mark(state, seen=1.0):
        """The mark on a block of this kind."""
        look = {"fill_color": fig.COLOR["hbm"], "line_color": fig.COLOR["hbm"], "size": 5}
        return look | {"marker": MARKS[state], "fill_alpha": seen, "line_alpha": seen}

    def draw_key(self, p, sources, at):
        color, source = fig.COLOR, sources["key"]
        for row, (name, state) in enumerate(KEY):
            of = {"source": source, "view": fig.of_rows([row])} | at
            box = fig.BOX | of
            if state is None:
                p.quad(**box, **fig.IDLE)
            else:
                p.quad(**box, fill_color=color["hbm"], fill_alpha=DARK[state], line_color=color["axis"])
            if state in MARKS:
                p.scatter("x", "y", **self.mark(state), **of)
            p.text("right", "y", text=value(name), x_offset=6, **fig.LABEL, **of)

    @staticmethod
    def draw_reads(p, sources):
        color, at, reads = fig.COLOR, READS.scales(p, y=(0, SIDE)), sources["reads"]
        rows = {"bottom": "bottom", "top": "top", "source": reads, "line_color": color["axis"]} | at
        p.quad(left="left", right="share", **rows, fill_color=color["hbm"], fill_alpha=DARK[READ])
        p.quad(left="share", right="right", **rows, fill_color=color["hbm"], fill_alpha=DARK[FOUND])
        p.text("left", "y", text="name", source=reads, y_offset=-24, **fig.BOLD, **at)
        p.text("left", "y", text="from_hbm", source=reads, y_offset=23, **fig.LABEL, **at)
        found = {"text_align": "right", "y_offset": 23} | fig.LABEL
        p.text("left", "y", text="against", source=reads, y_offset=41, **fig.BOLD, **at)
        p.text("right", "y", text="from_l2", source=reads, **found, **at)
        p.text(0, "y", text="text", source=sources["words"], **fig.LABEL, **at)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("This wave, from HBM", help="The wave finds the others in L2", rest=True)
    def wave(self):
        return (
            f"{show(self.so_far()['wave_read'], 'count')} of "
            f"{show(self.so_far()['wave_asked'], 'count')} blocks"
        )

    @readout("Whole product, from HBM")
    def in_all(self):
        return f"{show(self.whole()['read'], 'count')} blocks", self.excess() >= WASTEFUL

    @readout("From HBM in the best order", help="All programs; of groups of 1, 2, 3, 4, 6, 9 and 18 rows")
    def best(self):
        return f"{show(self.best_read(), 'count')} blocks"

    @readout("Found in L2", rest=True)
    def hits(self):
        return show(1.0 - self.whole()["read"] / self.whole()["asked"], "percent")

    @readout("Lanes of C masked")
    def off(self):
        return show(self.masked(), "percent"), self.masked() > RAGGED

    @regime(target=True)
    def wasteful(self):
        return self.excess() >= WASTEFUL, (
            f"The order misses L2: {show(self.whole()['read'], 'count')} blocks come from HBM, "
            f"{show(self.excess(), 'times')} what the best order reads. A wave that covers a narrow strip "
            f"of C shares little. First response: {select(np.argmin(self.reads_of_orders()), GROUPED)}."
        )

    @regime()
    def ragged(self):
        return self.masked() > RAGGED, (
            f"Ragged edges: {show(self.masked(), 'percent')} of the lanes compute what a mask throws away, "
            f"because {show(self.side, 'count')} is not much more than a multiple of "
            f"{show(self.block, 'count')}. First response: a smaller block, or a size that divides."
        )

    def summary(self):
        order = choose(self.group > 1, f"In groups of {show(self.group, 'count')} rows", "In row-major order")
        order = choose(self.is_own(), "In your order", order)
        (asked, _), (read, _) = self.asked_and_read()
        reads = choose(self.wave_size() > 1, "programs ask for", "program asks for")
        return (
            f"{order}, {show(self.wave_size(), 'count')} {reads} {counted(asked, 'block', 'blocks')} "
            f"of A and B: {show(read, 'count')} come from HBM, {show(1.0 - read / asked, 'percent')} from L2."
        )


ProgramBlocks.serve_as(__name__)
