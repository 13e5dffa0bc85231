"""FlashAttention's sweep over tiles, executed with its running softmax, and the bytes it moves against
standard ones."""

from functools import cache

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.executed import flash_attention, ring_attention
from engine.mechanism import matmul
from engine.step.layout import machine
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import ring
from widgets.kit.guide import Light, Step
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, part, readout, regime

TOKENS, CELL = 12, 64  # of the executed head, and the real tokens that one of them stands for
SIDES = (1, 2, 3, 4, 6, 12)
QUERY, KEY = np.divmod(np.arange(TOKENS * TOKENS), TOKENS)
ROWS = np.arange(TOKENS)
ORDERS = {
    "queries": ("queries outside (FlashAttention-2)", flash_attention.QUERIES_OUTSIDE),
    "keys": ("keys outside (the first one)", flash_attention.KEYS_OUTSIDE),
}
GPUS = [catalog.gpu(key) for key in ("a100-40", "a100-80", "h100-sxm", "h200", "b200")]
KIB = 1024
MOST_SRAM = max(gpu.smem_bytes_per_sm for gpu in GPUS)
SRAM_STOPS = np.arange(16.0 * KIB, MOST_SRAM + 1, 4 * KIB)
ACROSS, UP = (0.1, 0.56), (0.02, 0.6)  # the scores
STRIP_AT, ROOF_AT = (0.068, 0.09), (0.612, 0.637)  # Q beside them, K and V above
TABLE_WIDE, TABLE_NARROW = (0.68, 0.78, 0.88, 0.985), (0.675, 0.78, 0.888, 0.998)
TABLE_FROM = 0.59
NAMES = {"wide": ["max m", "sum ℓ", "output", "in full"], "narrow": ["m", "ℓ", "out", "full"]}
BARS_Y, BARS_HALF, LONGEST = np.array([0.93, 0.85, 0.77]), 0.0145, 0.84  # the bytes, above
OVER_HBM, INTO_SRAM = [0, 1], [2]  # rows of the bars
ROOM_BEHIND = 0.7  # of the standard way's bytes: up to there a bar has room for words behind it
HEAD_AT, NAMES_AT = 0.69, 0.65
SAME = 1e-14  # a few units in the last place of an output below ten


@cache
def sweeps() -> flash_attention.Sweeps:
    """The executed runs over one head of small numbers."""
    q, k, v = (matrix[0] for matrix in ring_attention.example(1, TOKENS))
    return flash_attention.sweeps(q, k, v, SIDES)


class FlashAttention(Widget):
    question = "How does attention avoid writing its scores out?"
    seq = Number(
        "Sequence",
        8192,
        1024,
        2**20,
        family="tokens",
        whole=True,
        stops=[k * 2**n for n in range(10, 20) for k in (1, 1.25, 1.5, 1.75)] + [2**20],
    )
    head_dim = Number(
        "Head dimension",
        128,
        16,
        1024,
        whole=True,
        stops=[*range(16, 128, 8), *range(128, 256, 16), *range(256, 512, 32), *range(512, 1025, 32)],
    )
    sram = Number(
        "SRAM that a block takes",
        MOST_SRAM,
        16 * KIB,
        MOST_SRAM,
        family="bytes_binary",
        stops=list(SRAM_STOPS),
        help="At most what a multiprocessor of the GPU has: 164 KiB on an A100, 228 KiB from Hopper on",
    )
    order = Choice("Loops", ORDERS, "queries", more=True)
    heads = Number("Heads in all sequences", 32, 1, 1024, whole=True, marks=(16, 32, 64, 128), more=True)
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    play = Player("Sweep the tiles", frames=TOKENS * TOKENS, seconds_per_frame=0.6, default=9, tween=1)

    presets = {
        "Llama 3 8B": {},
        "GPT-2 medium, batch 64": {
            "seq": 1024,
            "head_dim": 64,
            "heads": 1024,
            "gpu": "a100-40",
            "order": "keys",
            "play": 4,
        },
        "Llama 3 8B, 128k": {"seq": 131072},
        "GPT-2 medium, H100": {"seq": 1024, "head_dim": 64, "heads": 1024},
    }
    break_it = (
        "Find a head too wide for its SRAM: one for which the tiles read more into it than writing all "
        "scores out moves over HBM."
    )
    lights = {
        "scores": Light("the tiles of the scores", ("scores",)),
        "held": Light("what of Q, K and V is in the SRAM", ("held",)),
        "running": Light("what each query keeps: the running softmax", ("running", "progress")),
        "traffic": Light(
            "the bytes that both ways move, and what of the tiles' comes from HBM", ("traffic",)
        ),
    }
    tour = (
        Step(
            "Every query times every key: these are the scores. Standard attention writes all of them to "
            "HBM and reads them back ({standard_moves} for this layer).",
            {"play": 0},
            "scores",
        ),
        Step(
            "In tiles they are never written. A tile of Q and one of K and V are in the SRAM; their scores "
            "are computed, used and forgotten.",
            {"play": 1},
            "held",
        ),
        Step(
            "Each query keeps its largest score, the sum of its weights and an output, and corrects them "
            "with each tile. After {progress_text} the queries begun are off by {off}.",
            {"play": 9},
            "running",
        ),
        Step(
            "After {progress_text} they are off by {off}: this is full attention, and over HBM the tiles "
            "have moved {hbm_sends}.",
            {"play": 24},
            "running",
        ),
        Step(
            "At {seq} standard attention moves {standard_moves} over HBM, because its scores grow with the "
            "square of the length. The tiles move {hbm_sends} over HBM.",
            {"seq": 131072},
            "traffic",
        ),
        Step(
            "One level further down, a head of {head_dim} values is too wide: tiles of {tile_side} are all "
            "that fit, K and V pass again and again, and into the SRAM they read {tiles_move}. A cache "
            "between the two has to serve that.",
            {"head_dim": 512},
            "traffic",
        ),
    )
    assumptions = (
        "Below, the loop runs on real arrays: twelve tokens, one head, scores in halves, values from 1 to 9. "
        f"A token stands for {CELL} real ones, and a tile has the real tile's sides in that measure. The "
        "bars are of one layer's forward pass in bf16, without a mask, K and V read for every head. The SRAM "
        "holds one tile each of Q, K, V and O, in whole sixteens of rows; the scores of a tile stand in "
        "registers, of which a multiprocessor has 256 KiB. Of what the tiles read into the SRAM, HBM sends K "
        "and V once for each wave of blocks, one block on each multiprocessor; L2 serves the rest. Bytes of "
        "HBM at the share of the bandwidth that kernels reach, arithmetic at the rate of fused attention."
    )
    formula = (
        "$$\\text{standard} = 4Nd + 4N^2 \\qquad \\text{tiled} = \\left(2 + "
        "2\\left\\lceil\\frac{N}{B}\\right\\rceil\\right)Nd \\qquad B = "
        "\\left\\lfloor\\frac{M}{4d}\\right\\rfloor$$\n\nvalues over HBM, and into the SRAM, for $N$ tokens, "
        "$d$ values a head and an SRAM of $M$ values; 3 for the second 2 with the keys outside. The inner "
        "loop takes $\\min(B, d)$ rows, so a tile has no more than $Bd$ scores. So the tiles read about "
        "$8N^2d^2/M$ (FlashAttention, arXiv:2205.14135, Algorithms 0 and 1, Theorem 2). Each tile of keys "
        "with largest score $m_j$, weights' sum $\\ell_j$ and weighted values $u_j$ updates $m' = \\max(m, "
        "m_j)$, $\\ell' = e^{m-m'}\\ell + e^{m_j-m'}\\ell_j$, and $u$ likewise; in the end $u/\\ell$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def chip(self):
        return over(machine, self.gpu).chip

    def held_bytes(self):
        """The SRAM of a block: no more than a multiprocessor has."""
        return np.minimum(self.sram, self.gpu.smem_bytes_per_sm)

    def tile(self):
        return flash_attention.tile_rows(self.held_bytes(), self.head_dim)

    def inner(self):
        return flash_attention.inner_rows(self.tile(), self.head_dim)

    def all_heads(self, one_head_bytes):
        return one_head_bytes * self.heads

    def standard(self, seq):
        return self.all_heads(flash_attention.standard_bytes(seq, self.head_dim))

    def tiled(self, seq):
        return self.all_heads(flash_attention.tiled_bytes(seq, self.head_dim, self.tile(), self.order))

    def from_hbm(self, seq):
        return self.all_heads(
            flash_attention.from_hbm_bytes(seq, self.head_dim, self.tile(), self.gpu.sms, self.order)
        )

    def moved(self):
        """Over HBM: standard, and in tiles; then what the tiles read into the SRAM."""
        return np.stack([self.standard(self.seq), self.from_hbm(self.seq), self.tiled(self.seq)])

    def arithmetic_s(self):
        return flash_attention.tiled_arithmetic_s(self.seq, self.head_dim, self.heads, self.chip())

    def memory_s(self):
        """As if there were no L2."""
        return matmul.stream_s(self.tiled(self.seq), self.chip())

    def hbm_s(self):
        return matmul.stream_s(self.from_hbm(self.seq), self.chip())

    def standard_memory_s(self):
        return matmul.stream_s(self.standard(self.seq), self.chip())

    def sides_at(self):
        """The numbers of the sides in the executed run: outer loop, inner loop."""
        return [sweeps().side_of(rows / CELL) for rows in (self.tile(), self.inner())]

    def loops(self):
        """(tokens along a tile, tiles) of the outer loop and of the inner one."""
        sides = [lookup(np.array(SIDES, dtype=float), at) for at in self.sides_at()]
        return [(side, flash_attention.tiles_of(TOKENS, side)) for side in sides]

    def of_each(self):
        """Block size and number of blocks, first for the queries and then for the keys."""
        (outer_side, outer), (inner_side, inner) = self.loops()
        by_keys = self.order == flash_attention.KEYS_OUTSIDE
        return (
            (np.where(by_keys, inner_side, outer_side), np.where(by_keys, inner, outer)),
            (np.where(by_keys, outer_side, inner_side), np.where(by_keys, outer, inner)),
        )

    def inner_tiles(self):
        return self.loops()[1][1]

    def steps(self):
        return self.loops()[0][1] * self.inner_tiles()

    def state(self):
        return np.minimum(np.floor(self.play), self.steps())

    def run(self):
        return sweeps().run(self.order, *self.sides_at())

    def of_queries(self, column):
        """[query]: a column of the run at this state."""
        return lookup(column, sweeps().rows(lookup(sweeps().starts, self.run()), self.state()))

    def difference(self):
        return lookup(sweeps().differences, lookup(sweeps().difference_starts, self.run()) + self.state())

    def now(self):
        """(query tile, key tile) that was swept last."""
        return flash_attention.swept(self.inner_tiles(), self.order, np.maximum(self.state() - 1.0, 0.0))

    # -- the picture -----------------------------------------------------------------------------------------
    @part("sram", "gpu", "head_dim", "order", "play", shown=False)
    def scores(self):
        """Each tile of the scores: written nowhere, darker once computed, darkest the last."""
        (_, queries), (_, keys) = self.of_each()
        there = (queries > QUERY) & (keys > KEY)
        step = flash_attention.step_of(QUERY, KEY, self.inner_tiles(), self.order)
        left, right = ring.column(KEY, keys, *ACROSS, share=1.0)
        bottom, top = ring.row(QUERY, queries, *UP, share=1.0)
        last = step == self.state() - 1.0
        tint = np.where(last, 0.7, np.where(step < self.state(), 0.26, 0.0))
        return {
            "left": np.where(there, left, ACROSS[0]),
            "right": np.where(there, right, ACROSS[0]),
            "bottom": np.where(there, bottom, UP[1]),
            "top": np.where(there, top, UP[1]),
            "tint": np.where(there, tint, 0.0),
            "line": np.where(there, 0.5, 0.0),
            "step": step,
        }

    @hint("scores")
    def of_a_tile(self):
        step = flash_attention.step_of(QUERY, KEY, self.inner_tiles(), self.order)
        done = np.where(step < self.state(), 1.0, 0.0)
        queries, keys = (side * np.ones(TOKENS * TOKENS) for side, _ in self.of_each())
        return phrase(
            "tile {step}, queries times keys {queries} × {keys}: {done}",
            step=show(step + 1.0, "count"),
            queries=show(queries, "count"),
            keys=show(keys, "count"),
            done=select(done, ["not yet", "computed, used and forgotten"]),
        )

    @part("sram", "gpu", "head_dim", "order", "play", shown=False)
    def held(self):
        """What of Q, K and V is in the SRAM now: strips beside the scores and above them."""
        query, key = self.now()
        (_, queries), (_, keys) = self.of_each()
        started = np.where(self.state() > 0, 0.75, 0.0)
        bottom, top = ring.row(query, queries, *UP, share=1.0)
        left, right = ring.column(key, keys, *ACROSS, share=1.0)
        return {
            "left": np.stack([STRIP_AT[0], left]),
            "right": np.stack([STRIP_AT[1], right]),
            "bottom": np.stack([bottom, ROOF_AT[0]]),
            "top": np.stack([top, ROOF_AT[1]]),
            "tint": np.stack([started, started]),
        }

    @part("sram", "gpu", "head_dim", "order", "play")
    def running(self):
        """The running softmax of every query, and full attention beside it."""
        run = sweeps()
        maximum, total, output = (self.of_queries(column) for column in (run.maximum, run.total, run.output))
        known = total > 0

        def written(column, seen):
            return [choose(seen[i], show(column[i], "count"), "–") for i in ROWS]

        query, _ = self.now()
        mine = (np.floor(ROWS / self.of_each()[0][0]) == query) & (self.state() > 0)
        bottom, top = ring.row(ROWS, TOKENS, *UP, share=1.0)
        return {
            "query": ROWS,
            "m": written(maximum, known),
            "l": written(total, known),
            "out": written(output, known),
            "full": [show(full, "count") for full in run.dense],
            "y": fig.midpoint(bottom, top),
            "bottom": bottom,
            "top": top,
            "tint": np.where(mine, 0.12, 0.0),
        }

    @part("sram", "gpu", "head_dim", "play", shown=False)
    def progress(self):
        return {"text": self.progress_text()}

    def progress_text(self):
        return f"tile {show(self.state(), 'count')} of {show(self.steps(), 'count')}"

    @part("seq", "head_dim", "sram", "order", "heads", "gpu")
    def traffic(self):
        """The bytes that both ways move, and below them what of the tiles' comes from HBM."""
        moved = self.moved()
        return {
            "bytes": moved,
            "left": np.zeros(3),
            "right": LONGEST * moved / np.max(moved),
            "y": BARS_Y,
            **fig.rows_of(BARS_Y, BARS_HALF),
            "name": [
                "standard, over HBM: all scores written and read back",
                f"in tiles of {self.tile_side()}, over HBM: no score written",
                f"in tiles, into the SRAM: {self.read_again()}",
            ],
            "short": ["standard, over HBM", "in tiles, over HBM", "in tiles, into the SRAM"],
            "text": [
                self.standard_moves(),
                f"{self.hbm_sends()}, {show(self.hbm_s(), 'seconds')}: {self.less_over_hbm()}",
                f"{self.tiles_move()[0]}{self.from_l2()}",
            ],
            "amount": [
                show(moved[0], "bytes"),
                f"{show(moved[1], 'bytes')}: {self.less_over_hbm()}",
                self.tiles_move()[0],
            ],
        }

    def read_again(self):
        return choose(
            self.order == flash_attention.KEYS_OUTSIDE,
            "Q and O again for each tile of keys",
            "K and V again for each tile of queries",
        )

    def from_l2(self):
        """What the tiles read into the SRAM beyond what HBM sends."""
        tiled = self.tiled(self.seq)
        again = tiled - self.from_hbm(self.seq)
        words = choose(again > 0, f", of which L2 serves {show(again, 'bytes')}", ", all of it from HBM")
        return choose(tiled > ROOM_BEHIND * self.standard(self.seq), "", words)  # no room behind a long bar

    def less_over_hbm(self):
        return f"{show(self.standard(self.seq) / self.from_hbm(self.seq), 'times')} less"

    @hint("traffic")
    def of_the_three(self):
        return phrase(
            "{name}: {moved}",
            name=["standard, over HBM", "in tiles, over HBM", "in tiles, into the SRAM"],
            moved=show(self.moved(), "bytes"),
        )

    def ends(self):
        return {"play": self.steps()}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1), (0, 1), height=560)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.grid_line_color = None
        p.quad(
            left=TABLE_FROM,
            right=1,
            bottom="bottom",
            top="top",
            source=sources["running"],
            fill_color=color["hbm"],
            fill_alpha="tint",
            line_color=None,
        )
        p.quad(
            **fig.BOX,
            source=sources["scores"],
            fill_color=color["compute"],
            fill_alpha="tint",
            line_color=color["idle"],
            line_alpha="line",
            line_dash=[2, 2],
        )
        left, right = ACROSS
        p.quad(
            left=[STRIP_AT[0], left],
            right=[STRIP_AT[1], right],
            bottom=[UP[0], ROOF_AT[0]],
            top=[UP[1], ROOF_AT[1]],
            fill_color=color["hbm"],
            fill_alpha=0.1,
            line_color=color["hbm"],
        )
        p.quad(**fig.BOX, source=sources["held"], fill_color=color["hbm"], fill_alpha="tint", line_color=None)
        self.write(p, sources)
        self.draw_traffic(p, sources)
        return p

    def write(self, p, sources):
        """The running softmax, query by query."""
        right = {"text_align": "right"}
        p.text(STRIP_AT[0], fig.midpoint(*UP), text=value("Q"), x_offset=-8, **fig.BOLD | right)
        p.text(ACROSS[1], HEAD_AT, text=value("K and V"), **fig.LABEL | right)
        p.text(1, HEAD_AT, text="text", source=sources["progress"], **fig.BOLD | right)
        fig.only(
            "wide",
            p.text(TABLE_FROM, HEAD_AT, text=value("what each query keeps"), **fig.LABEL),
            p.text(ACROSS[0], HEAD_AT, text=value("scores, never written"), **fig.LABEL),
        )
        numbers = sources["running"]
        for width, places in (("wide", TABLE_WIDE), ("narrow", TABLE_NARROW)):
            for place, name, column in zip(places, NAMES[width], ("m", "l", "out", "full")):
                fig.only(
                    width,
                    p.text(place, NAMES_AT, text=value(name), **fig.BOLD | right),
                    p.text(place, "y", text=column, source=numbers, **fig.TEXT | right),
                )

    @staticmethod
    def draw_traffic(p, sources):
        """Bytes as bars: over HBM solid, into the SRAM in outline."""
        color, bars = fig.COLOR, sources["traffic"]
        box = fig.BOX | {"source": bars}
        edge = {"line_color": color["hbm"], "line_width": 1.5}
        p.quad(**box, view=fig.of_rows(OVER_HBM), fill_color=color["hbm"], **edge)
        p.quad(**box, view=fig.of_rows(INTO_SRAM), fill_color=color["panel"], **edge)
        for width, name, amount in (("wide", "name", "text"), ("narrow", "short", "amount")):
            fig.only(
                width,
                p.text(0, "y", text=name, source=bars, y_offset=-18, **fig.LABEL),
                p.text("right", "y", text=amount, source=bars, x_offset=7, **fig.BOLD),
            )

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Furthest from full attention", help="Of the queries that have begun: output against in full")
    def off(self):
        """How far the result is off for the queries that have met a key."""
        met = choose(self.difference() < SAME, "under 10⁻¹⁴", show(self.difference(), "count"))
        return choose(self.state() > 0, met, "–")

    @readout("Tile", rest=True)
    def tile_side(self):
        return f"{show(self.tile(), 'count')} × {show(self.inner(), 'count')}"

    @readout("Standard moves", rest=True)
    def standard_moves(self):
        return f"{show(self.standard(self.seq), 'bytes')}, {show(self.standard_memory_s(), 'seconds')}"

    @readout("Tiles read into the SRAM", rest=True)
    def tiles_move(self):
        return show(self.tiled(self.seq), "bytes"), self.moves_more()

    @readout("Tiles move over HBM")
    def hbm_sends(self):
        return show(self.from_hbm(self.seq), "bytes")

    @readout("Arithmetic in tiles", rest=True)
    def arithmetic(self):
        return show(self.arithmetic_s(), "seconds")

    @readout("Less over HBM")
    def saved(self):
        return show(self.standard(self.seq) / self.from_hbm(self.seq), "times")

    def moves_more(self):
        return self.tiled(self.seq) > self.standard(self.seq)

    @regime(target=True)
    def too_wide(self):
        return self.moves_more(), (
            f"You found a head too wide for its SRAM: {show(self.head_dim, 'count')} values a row leave "
            f"tiles of {show(self.tile(), 'count')} rows, and K and V pass so often that the tiles read "
            f"{show(self.tiled(self.seq), 'bytes')}; the scores written out would be "
            f"{show(self.standard(self.seq), 'bytes')} over HBM. It still runs while L2 serves all but "
            f"{show(self.from_hbm(self.seq), 'bytes')} of them. First response: keep O in registers too, "
            "which leaves the SRAM to the others, or narrower heads."
        )

    @regime()
    def compute_bound(self):
        return (self.memory_s() < self.arithmetic_s()) & (self.tiled(self.seq) <= self.standard(self.seq)), (
            "Compute-bound even without an L2: all bytes from HBM would take "
            f"{show(self.memory_s(), 'seconds')}, the arithmetic {show(self.arithmetic_s(), 'seconds')}. A "
            "larger tile would save bytes that nobody waits for."
        )

    def summary(self):
        return (
            f"In tiles, attention over {show(self.seq, 'count')} tokens moves "
            f"{show(self.from_hbm(self.seq), 'bytes')} over HBM instead of "
            f"{show(self.standard(self.seq), 'bytes')}: no score is written."
        )


FlashAttention.serve_as(__name__)
