"""Ring attention as it runs: keys and values go round, running softmaxes accumulate them, and the mask
decides which rank waits."""

from functools import cache

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.base import ops
from engine.executed import ranks_frames, ring_attention
from engine.executed.ring_attention import RingFrames
from engine.mechanism import context_parallel
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import ring
from widgets.kit.guide import Light, Step
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, executed, hint, part, readout, regime

MOST, BLOCK = 8, 4  # ranks, and tokens of each in the executed run
RANKS = np.arange(MOST)
ROW, COLUMN = np.divmod(np.arange(MOST * MOST), MOST)  # of a block: whose queries, whose keys
SEEN, QUERIES, KEYS = np.indices((BLOCK + 1, MOST, MOST)).reshape(
    3, -1
)  # keys seen, whose queries, whose keys
ORDERS = {
    "full": ("no mask", context_parallel.FULL),
    "contiguous": ("causal, contiguous", context_parallel.CONTIGUOUS),
    "zigzag": ("causal, zig-zag", context_parallel.ZIGZAG),
}
STARTS = ["Without a mask,", "With contiguous blocks,", "In zig-zag order,"]
MODELS = ("gpt3-175b", "llama3-8b", "llama3-70b", "llama3.1-405b")
TIME, LANES = (0.125, 0.985), (0.7, 0.935)  # when each rank works
ACROSS, UP = (0.125, 0.6), (0.03, 0.49)  # the score matrix
WIDE_AT, NARROW_AT = (0.7, 0.79, 0.88, 0.985), (0.71, 0.85, 0.99)  # the table's columns
GAP, EDGE = 0.94, 0.2  # of a row: what a block takes, and how far it leaves the matrix
TOKENS = ["first", "second", "third", "fourth"]
NAMES = ["m", "ℓ", "out", "full"]
NUMBERS = ["m", "l", "out", "full"]
HEAD_AT, NAMES_AT, LANES_HEAD_AT, FINISH_AT = 0.58, 0.535, 0.972, 0.665
MARK = (0.116, 0.121)  # of the query that is followed
BESIDE = -15  # pixels from the matrix to the names left of it, clear of that mark
COUNTED = [str(n) for n in range(MOST + 1)]
FEW, SPACED = 4, 5  # up to so many columns have full names, and rows name their tokens
DOWN = np.pi  # turned by so much, a triangle points down
LATE = fig.IDLE | {"line_color": fig.COLOR["network"], "line_width": 1.2}  # idle, until the wire is done
SAME = 1e-14  # a few units in the last place of an output below ten


@cache
def played(ranks: int, order: int) -> RingFrames:
    """The executed ring over one head of small numbers."""
    return ring_attention.example_frames(ranks, BLOCK, order, MOST)


class RingAttention(Widget):
    question = "How does a query meet every key when no rank holds the whole sequence?"
    ranks = Number("Ranks", 4, 2, MOST, stops=list(range(2, MOST + 1)), whole=True)
    order = Choice("Mask and order", ORDERS, "contiguous")
    seq = Number(
        "Sequence",
        131072,
        4096,
        2**20,
        family="tokens",
        stops=[k * 2**n for n in range(12, 20) for k in (1, 1.125, 1.25, 1.5, 1.75)] + [2**20],
        whole=True,
    )
    follow = Choice(
        "Query of each rank", {name: (name, float(i)) for i, name in enumerate(TOKENS)}, "second", more=True
    )
    model = Choice("Model", [catalog.model(key) for key in MODELS], "llama3.1-405b", more=True)
    gpu = Choice("GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "b200")], "h100-sxm", more=True)
    link = Choice("Link", [catalog.link(key) for key in ("nvlink4", "ib-ndr", "ib-hdr")], "ib-ndr", more=True)
    play = Player("Pass the blocks round", frames=MOST, seconds_per_frame=1.6)

    presets = {
        "Contiguous": {},
        "Zig-zag": {"order": "zigzag"},
        "No mask": {"order": "full"},
        "8 ranks": {"ranks": 8},
        "GPT-3, which sends more": {"model": "gpt3-175b", "order": "zigzag"},
    }
    break_it = (
        "Keep all ranks busy with zig-zag order, then shorten the sequence until the messages lie bare."
    )
    lights = {
        "scores": Light("the pairs of queries and keys, darker once they are used", ("grid", "pairs")),
        "blocks": Light("the blocks of keys and values on their way round", ("held", "moving")),
        "softmax": Light("the running softmax of one query on each rank", ("accumulators", "progress")),
        "lanes": Light("when each rank works and when it waits", ("lanes", "finish")),
    }
    tour = (
        Step(
            "{ranks} ranks share a sequence of {seq}. Each keeps its own queries, and begins with its own "
            "keys and values.",
            {"play": 0},
            "blocks",
        ),
        Step(
            "Each block of keys and values goes on to the next rank while it is used. Each query keeps a "
            "running softmax; after one block the results are off by up to {off}.",
            {"play": 1.5},
            "softmax",
        ),
        Step(
            "Every block has been everywhere, and every query has met all keys that the mask lets it see. "
            "The results are off full attention by {off}: rounding.",
            {"play": 4},
            "softmax",
        ),
        Step(
            "But a rank with early tokens may use only few of the keys. It waits in most steps for the rank "
            "with the last tokens, and the ranks compute for {computing} of the time.",
            {"play": 4},
            "lanes",
        ),
        Step(
            "In zig-zag order each rank has an early and a late piece of the sequence, so all have equally "
            "much to do: they compute for {computing} of the time, and a layer takes {takes}.",
            {"order": "zigzag", "play": 4},
            "lanes",
        ),
        Step(
            "A sequence of {seq} is too short for {ranks} ranks: to use a block takes {busiest}, to pass it "
            "on {message}, and the wire sets the pace.",
            {"order": "zigzag", "seq": 4096, "play": 4},
            "lanes",
        ),
    )
    assumptions = (
        "The lower half is executed on real arrays: four tokens a rank, one head, scores in halves, values "
        "from 1 to 9. A block's cell fills while the rank uses it and hands it on; pairs left white are "
        "hidden by the mask. The table follows one query of each rank, marked at its left. The upper half is "
        "one layer's forward attention at the length you choose, all heads on each rank: FlashAttention at "
        "the rate that the engine is calibrated to, beside messages of $\\alpha + S/B$. A step ends when "
        "the busiest rank is done and the next block is there. Tensor parallelism divides both alike."
    )
    formula = (
        "$$m' = \\max(m, m_j) \\qquad \\ell' = e^{m-m'}\\ell + e^{m_j-m'}\\ell_j \\qquad u' = e^{m-m'}u + "
        "e^{m_j-m'}u_j$$\n\nfor each block $j$ of keys and values: its largest score $m_j$, its sum of "
        "weights $\\ell_j$, its weighted sum of values $u_j$; in the end $u/\\ell$ (FlashAttention, "
        "arXiv:2205.14135, section 3.1). The next block hides behind $c$ tokens' attention when $c \\ge "
        "\\kappa\\,\\frac{a_{kv}}{a}\\cdot\\frac{C}{W}$, with $a_{kv}$ key heads for $a$ query heads, $C$ "
        "FLOP/s, $W$ bytes per second, and $\\kappa = 1$ for whole blocks (Ring Attention, arXiv:2310.01889, "
        "section 3), 2 for zig-zag ones."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @executed("ranks", "order")
    def run(self):
        return played(int(self.ranks), int(self.order))._asdict()

    def frames(self):
        return RingFrames(**self.run())

    def moment(self):
        return np.minimum(self.play, self.ranks)

    def state(self):
        """How many blocks each rank has taken in."""
        return np.floor(self.moment())

    def way(self):
        return ranks_frames.way_made(self.moment())

    def done(self):
        return self.state() >= self.ranks

    def sent(self):
        """Whether every block has been everywhere: the last step passes nothing on."""
        return self.state() >= self.ranks - 1

    def of_query(self, column):
        """[rank]: a column of the run for the query that is followed."""
        return ring_attention.row_at(column, MOST, BLOCK, self.state(), self.follow)

    def difference(self):
        return lookup(self.frames().differences, self.state())

    def block(self):
        return context_parallel.block_tokens(self.seq, self.ranks)

    def rate(self):
        return context_parallel.flash_flops_per_s(self.gpu, self.model.head_dim)

    def seconds(self, pairs):
        return context_parallel.attention_s(pairs, self.model.heads, self.model.head_dim, self.rate())

    def busiest_s(self, step):
        return self.seconds(context_parallel.step_pairs(step, self.ranks, self.block(), self.order))

    def message_s(self):
        kv_bytes = context_parallel.kv_block_bytes(self.block(), self.model.kv_heads, self.model.head_dim)
        return context_parallel.message_s(kv_bytes, self.link.bytes_per_s, self.link.latency_s)

    def steps_s(self):
        """[step]: how long each lasts."""
        return context_parallel.ring_step_s(RANKS, self.ranks, self.busiest_s(RANKS), self.message_s())

    def total_s(self):
        return np.sum(self.steps_s())

    def useful_s(self):
        """What a rank computes, on average."""
        return self.seconds(context_parallel.mean_pairs(self.ranks, self.block(), self.order))

    def busy_share(self):
        return self.useful_s() / self.total_s()

    def busy_if_free(self):
        """The share of the time that ranks would compute if traffic were free: what mask and order leave."""
        return context_parallel.ring_busy_share(self.ranks, self.block(), self.order)

    def hidden_from(self):
        """Whole tokens, start-up included, as in the timeline."""
        return ops.ceil(
            context_parallel.hidden_from_tokens_with_latency(
                self.model.heads,
                self.model.kv_heads,
                self.model.head_dim,
                self.rate(),
                self.link.bytes_per_s,
                self.link.latency_s,
                self.order,
            )
        )

    def exposed(self):
        return self.message_s() > self.busiest_s(1)

    def on_time_axis(self, seconds):
        whole_s = self.seconds(
            context_parallel.block_pairs(0, 0, self.ranks, self.block(), context_parallel.FULL)
        )
        axis_s = context_parallel.ring_axis_s(self.ranks, whole_s, self.message_s())
        return fig.between(*TIME, seconds / axis_s)

    # -- the picture -----------------------------------------------------------------------------------------
    @part("ranks", shown=False)
    def grid(self):
        """The blocks of the score matrix."""
        left, right = ring.column(COLUMN, self.ranks, *ACROSS, share=GAP)
        bottom, top = ring.row(ROW, self.ranks, *UP, share=GAP)
        there = (self.ranks > ROW) & (self.ranks > COLUMN)
        return {
            "left": left,
            "right": fig.right_if(there, left, right),
            "bottom": bottom,
            "top": top,
            "line": np.where(there, 0.4, 0.0),
        }

    @hint("grid")
    def of_a_block(self):
        step = context_parallel.step_of(ROW, COLUMN, self.ranks)
        pairs = context_parallel.block_pairs(ROW, step, self.ranks, BLOCK, self.order)
        return phrase(
            "queries of rank {row}, keys of rank {column}: {pairs} of 16 pairs, in step {step}",
            row=select(ROW, COUNTED),
            column=select(COLUMN, COUNTED),
            pairs=show(pairs, "count"),
            step=select(step, COUNTED[1:]),
        )

    @part("ranks", "order", "play", shown=False)
    def pairs(self):
        """In each block, and for each number of its keys, the queries that see so many: left what they see,
        darker once it is used, right what the mask hides."""
        block = ring.column(KEYS, self.ranks, *ACROSS, share=GAP)
        left, seen_to, right = (ring.column(keys, BLOCK, *block, share=1.0)[0] for keys in (0, SEEN, BLOCK))
        rows = ring.row(QUERIES, self.ranks, *UP, share=GAP)
        first, end = (
            context_parallel.tokens_that_see_fewer(keys, QUERIES, KEYS, self.ranks, BLOCK, self.order)
            for keys in (SEEN, SEEN + 1)
        )
        top, bottom = (ring.row(token, BLOCK, *rows, share=1.0)[1] for token in (first, end))
        there = (self.ranks > QUERIES) & (self.ranks > KEYS)
        used = context_parallel.used_share(self.moment(), QUERIES, KEYS, self.ranks)
        return {
            "left": left,
            "seen_to": seen_to,
            "right": fig.right_if(there, seen_to, right),
            "bottom": bottom,
            "top": top,
            "tint": used * 0.62,
        }

    @part("ranks", "play", shown=False)
    def held(self):
        """Where each block of keys and values is: at the rank that uses it, and on its way to the next."""
        row = context_parallel.user_of(RANKS, self.state(), self.ranks)
        left, right = ring.column(RANKS, self.ranks, *ACROSS, share=GAP)
        bottom, top = ring.row(row, self.ranks, *UP, share=GAP)
        seen = np.where((self.ranks > RANKS) & ~self.done(), 1.0, 0.0)
        return {"left": left, "right": right, "bottom": bottom, "top": top, "seen": seen}

    @part("ranks", "play", shown=False)
    def moving(self):
        """Each block's way down its column; from the last row it leaves below and comes in on top."""
        row = context_parallel.user_of(RANKS, self.state(), self.ranks)
        travels = (self.ranks > RANKS) & (self.way() > 0) & ~self.sent()
        place, seen = ring.hops(row, self.ranks, ring.eased(self.way()), EDGE)
        seen = np.where(np.concatenate([travels, travels]), seen, 0.0)
        left, right = (
            np.concatenate([edge, edge]) for edge in ring.column(RANKS, self.ranks, *ACROSS, share=GAP)
        )
        bottom, top = ring.row(place, self.ranks, *UP, share=GAP)
        return {
            "left": left,
            "right": right,
            "bottom": bottom,
            "top": top,
            "x": fig.midpoint(left, right),
            "seen": seen,
            "tint": seen * 0.3,
        }

    @part("ranks", "order", shown=False)
    def names(self):
        """The names of the rows and the columns: the tokens that each rank holds."""
        there = self.ranks > RANKS
        places = [context_parallel.position(RANKS, at, self.ranks, BLOCK, self.order) for at in range(BLOCK)]
        a, b, c, d = ([show(place[i], "count") for i in RANKS] for place in places)
        apart = self.order == context_parallel.ZIGZAG
        tokens = [choose(apart, f"{a[i]}, {b[i]}, {c[i]}, {d[i]}", f"{a[i]} to {d[i]}") for i in RANKS]
        return {
            "row_y": fig.midpoint(*ring.row(RANKS, self.ranks, *UP)),
            "column_x": fig.midpoint(*ring.column(RANKS, self.ranks, *ACROSS, share=GAP)),
            "lane_y": fig.midpoint(*ring.row(RANKS, self.ranks, *LANES)),
            "rank": [choose(there[i], f"{i}", "") for i in RANKS],
            "tokens": [choose(there[i] & (self.ranks <= SPACED), tokens[i], "") for i in RANKS],
            "lift": np.broadcast_to(np.where(self.ranks <= SPACED, -8.0, 0.0), (MOST,)),
            "column": [
                choose(there[i] & (self.ranks <= FEW), f"K/V {i}", choose(there[i], f"{i}", ""))
                for i in RANKS
            ],
        }

    @part("ranks", "order", "play", "follow")
    def accumulators(self):
        """The running softmax of the query that is followed, on each rank."""
        run = self.frames()
        maximum, total, output = (self.of_query(column) for column in (run.maximum, run.total, run.output))
        dense = ring_attention.dense_at(run.dense, MOST, BLOCK, self.follow)
        there = self.ranks > RANKS

        def written(column, known):
            return [choose(known[i], show(column[i], "count"), choose(there[i], "–", "")) for i in RANKS]

        known = there & (total > 0)
        bottom, top = ring.row(self.follow, BLOCK, *ring.row(RANKS, self.ranks, *UP, share=GAP), share=1.0)
        return {
            "rank": RANKS,
            "m": written(maximum, known),
            "l": written(total, known),
            "out": written(output, known),
            "full": written(dense, there),
            "y": fig.midpoint(*ring.row(RANKS, self.ranks, *UP)),
            "bottom": bottom,
            "top": np.where(there, top, bottom),
        }

    @part("play", "ranks", shown=False)
    def progress(self):
        state = show(self.state(), "count")
        return {"text": f"after {state} of {show(self.ranks, 'count')} blocks"}

    @part("ranks", "order", "seq", "model", "gpu", "link")
    def lanes(self):
        """When each rank works in each step, waits for others, and waits for the next block."""
        rank, step = ROW, COLUMN
        there = (rank < self.ranks) & (step < self.ranks)
        pairs = context_parallel.block_pairs(rank, step, self.ranks, self.block(), self.order)
        work_s = np.where(there, self.seconds(pairs), 0.0)
        start_s, lasts_s, busiest_s = (
            column[step]
            for column in (fig.end_to_end(self.steps_s())[0], self.steps_s(), self.busiest_s(RANKS))
        )
        marks = (start_s, *(start_s + lasting_s for lasting_s in (work_s, busiest_s, lasts_s)))
        left, worked, waited, ended = (self.on_time_axis(np.where(there, mark, 0.0)) for mark in marks)
        bottom, top = ring.row(rank, self.ranks, *LANES, share=0.78)
        return {
            "rank": rank,
            "step": step,
            "work_s": work_s,
            "step_s": np.where(there, lasts_s, 0.0),
            "left": left,
            "worked": worked,
            "waited": waited,
            "right": ended,
            "bottom": bottom,
            "top": top,
            "works": np.where(work_s > 0, 1.0, 0.0),
            "waits": np.where(waited > worked, 1.0, 0.0),
            "late": np.where(ended > waited, 1.0, 0.0),
        }

    @hint("lanes")
    def of_a_step(self):
        lane = self.lanes()
        owner = context_parallel.block_owner(ROW, COLUMN, self.ranks)
        return phrase(
            "rank {rank}, step {step}, keys of rank {owner}: {work} of work{hidden}{waits}{late}",
            rank=select(ROW, COUNTED),
            step=select(COLUMN, COUNTED[1:]),
            owner=select(owner, COUNTED),
            work=show(lane["work_s"], "seconds"),
            hidden=select(lane["works"], [", the mask hides them", ""]),
            waits=select(lane["waits"], ["", "; waits for the busiest rank"]),
            late=select(lane["late"], ["", "; waits for the next block"]),
        )

    @part("ranks", "order", "seq", "model", "gpu", "link", shown=False)
    def finish(self):
        late = choose(self.exposed(), "; pink frame: the next block is late", "")
        late_short = choose(self.exposed(), "; pink: block late", "")
        return {
            "x": self.on_time_axis(self.total_s()),
            "text": f"{show(self.total_s(), 'seconds')}, {show(self.busy_share(), 'percent')} of it busy",
            "start": TIME[0],
            "key": f"filled: computes; white: waits{late}",
            "key_short": f"filled: computes{late_short}",
        }

    @part("ranks", "order", "play", "seq", "model", "gpu", "link", shown=False)
    def now(self):
        return {"x": self.on_time_axis(np.sum(fig.revealed(self.steps_s(), self.moment())))}

    def ends(self):
        return {"play": self.ranks}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1), (0, 1), height=580)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.grid_line_color = None
        p.quad(
            **fig.BOX, source=sources["grid"], fill_color=None, line_color=color["idle"], line_alpha="line"
        )
        p.quad(**fig.BOX | {"left": "seen_to"}, source=sources["pairs"], **fig.IDLE | {"line_color": None})
        p.quad(
            **fig.BOX | {"right": "seen_to"},
            source=sources["pairs"],
            fill_color=color["compute"],
            fill_alpha="tint",
            line_color=None,
        )
        p.quad(
            **fig.BOX,
            source=sources["held"],
            fill_color=None,
            line_color=color["hbm"],
            line_width=2.5,
            line_alpha="seen",
        )
        p.quad(
            **fig.BOX,
            source=sources["moving"],
            fill_color=color["hbm"],
            fill_alpha="tint",
            line_color=color["hbm"],
            line_alpha="seen",
            line_width=2,
        )
        p.scatter(
            "x",
            "bottom",
            angle=DOWN,
            marker="triangle",
            size=11,
            source=sources["moving"],
            fill_color=color["hbm"],
            line_color=None,
            fill_alpha="seen",
        )
        self.draw_lanes(p, sources)
        self.write(p, sources)
        return p

    def draw_lanes(self, p, sources):
        color, lanes = fig.COLOR, sources["lanes"]
        edges = {"bottom": "bottom", "top": "top", "source": lanes}
        p.quad(left="worked", right="waited", **edges, **fig.IDLE | {"line_alpha": "waits"})
        p.quad(left="waited", right="right", **edges, **LATE | {"line_alpha": "late"})
        p.quad(
            left="left",
            right="worked",
            **edges,
            fill_color=color["compute"],
            fill_alpha=0.62,
            line_color=color["panel"],
            line_alpha="works",
        )
        p.segment(
            "x",
            LANES[0],
            "x",
            LANES[1],
            source=sources["finish"],
            line_color=color["ink"],
            line_dash=[2, 4],
            line_width=1.5,
        )
        p.segment("x", LANES[0], "x", LANES[1], source=sources["now"], line_color=color["ink"], line_width=2)

    def write(self, p, sources):
        """Names and numbers."""
        center, right = {"text_align": "center"}, {"text_align": "right"}
        names, numbers = sources["names"], sources["accumulators"]
        p.text(fig.midpoint(*ACROSS), HEAD_AT, text=value("keys and values of rank"), **fig.LABEL | center)
        p.text(ACROSS[0], NAMES_AT, text=value("rank"), x_offset=BESIDE, **fig.LABEL | right)
        p.quad(
            left=MARK[0],
            right=MARK[1],
            bottom="bottom",
            top="top",
            source=numbers,
            fill_color=fig.COLOR["ink"],
            line_color=None,
        )
        p.text("column_x", NAMES_AT, text="column", source=names, **fig.BOLD | center)
        for width, offset in (("wide", "lift"), ("narrow", 0)):
            fig.only(
                width,
                p.text(
                    ACROSS[0],
                    "row_y",
                    text="rank",
                    source=names,
                    x_offset=BESIDE,
                    y_offset=offset,
                    **fig.BOLD | right,
                ),
            )
        fig.only(
            "wide",
            p.text(
                ACROSS[0],
                "row_y",
                text="tokens",
                source=names,
                x_offset=BESIDE,
                y_offset=9,
                **fig.LABEL | right,
            ),
        )
        p.text(ACROSS[0], "lane_y", text="rank", source=names, x_offset=BESIDE, **fig.BOLD | right)
        for width, places in (("wide", WIDE_AT), ("narrow", NARROW_AT)):
            fig.only(width, p.text(places, NAMES_AT, text=NAMES[: len(places)], **fig.BOLD | right))
            for place, column in zip(places, NUMBERS):
                fig.only(width, p.text(place, "y", text=column, source=numbers, **fig.TEXT | right))
        p.text(TIME[1], HEAD_AT, text="text", source=sources["progress"], **fig.LABEL | right)
        for width, words in (("wide", "key"), ("narrow", "key_short")):
            fig.only(width, p.text("start", LANES_HEAD_AT, text=words, source=sources["finish"], **fig.LABEL))
        p.text("x", FINISH_AT, text="text", source=sources["finish"], **fig.BOLD | right)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Off full attention by", rest=True)
    def off(self):
        return choose(self.difference() < SAME, "under 10⁻¹⁴", show(self.difference(), "count"))

    @readout("Ranks compute for")
    def computing(self):
        return show(self.busy_share(), "percent"), self.busy_share() < 0.7

    @readout("A layer's attention", rest=True)
    def takes(self):
        return show(self.total_s(), "seconds")

    @readout("Busiest rank, a step", rest=True)
    def busiest(self):
        return show(self.busiest_s(1), "seconds")

    @readout("Next block takes")
    def message(self):
        return show(self.message_s(), "seconds"), self.exposed()

    @readout("Hidden from, a rank")
    def hidden(self):
        return f"{show(self.hidden_from(), 'count')} tokens", self.exposed()

    @regime()
    def idle(self):
        return self.busy_if_free() < 0.7, (
            "Early ranks idle: under a causal mask a rank with early tokens has nothing to do with later "
            f"keys, so {show(self.ranks, 'count')} ranks with contiguous blocks compute for "
            f"{show(self.busy_if_free(), 'percent')} of the time at best, down towards half with more "
            "ranks. First response: zig-zag order, which gives each rank an early and a late chunk."
        )

    @regime(target=True)
    def bare_messages(self):
        return self.exposed(), (
            f"Messages lie bare: passing a block on takes {show(self.message_s(), 'seconds')}, using one "
            f"{show(self.busiest_s(1), 'seconds')}. The {show(self.block(), 'count')} tokens of each rank "
            f"are too few; {show(self.hidden_from(), 'count')} would hide it. First response: fewer ranks "
            "for this length, a faster wire, or fewer key heads."
        )

    def summary(self):
        return (
            f"{select(self.order, STARTS)} {show(self.ranks, 'count')} ranks compute for "
            f"{show(self.busy_share(), 'percent')} of the {show(self.total_s(), 'seconds')} that a layer's "
            "attention takes."
        )


RingAttention.serve_as(__name__)
