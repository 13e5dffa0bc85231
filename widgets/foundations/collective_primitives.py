"""The seven collective primitives on real buffers: before, after, and what each rank sent and received."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.executed import ranks_frames, ranks_operations
from engine.executed.ranks import example
from engine.executed.ranks_frames import Exchange
from engine.mechanism import collectives
from widgets.kit.compiler.symbols import over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import buffers
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, executed, hint, part, readout, regime

MOST = 8  # ranks, and pieces of a buffer
RANK, PIECE = (index.ravel() for index in np.indices((MOST, MOST)))
RANKS = np.arange(MOST)
CELLS = np.arange(MOST * MOST).reshape(MOST, MOST).tolist()  # the cells of each rank
NUMBER_AT, SOURCES_AT = 0.68, 0.27  # of a cell's height: its number, and whose data is in it
NUMBERED_NARROW, SOURCED_NARROW = 6, 4  # up to so many ranks a phone has room for either
ONE, SUM = 0.12, 0.42  # how strongly a cell is filled that holds one rank's data, or the sum over all
BEFORE_AT, AFTER_AT = 0.0, 1.3  # where the two blocks of buffers begin; each is 1 wide


@dataclass(frozen=True)
class Primitive:
    """One of the seven, as NCCL names and means it."""

    key: str
    name: str
    says: str
    chained: float = 0.0  # 1: along a chain of ranks, piece behind piece


PRIMITIVES = [
    Primitive("broadcast", "Broadcast", "rank 0's buffer to every rank", chained=1.0),
    Primitive("reduce", "Reduce", "the sum of all buffers to rank 0", chained=1.0),
    Primitive("all_reduce", "AllReduce", "the sum of all buffers to every rank"),
    Primitive("all_gather", "AllGather", "each rank's piece to every rank"),
    Primitive("reduce_scatter", "ReduceScatter", "to each rank its piece of the sum"),
    Primitive("all_to_all", "AllToAll", "piece j of rank i to rank j, as its piece i"),
    Primitive("send_recv", "Send/Recv", "rank 0's buffer to rank 1"),
]


@cache
def done(operation: str, count: int) -> Exchange:
    """The executed primitive, one cell for each piece of a buffer."""
    rows = example(count, count)
    given = [row[i : i + 1] for i, row in enumerate(rows)] if operation == "all_gather" else rows
    return ranks_frames.exchange(ranks_operations.PRIMITIVES[operation](given), MOST, count)


def least_bytes(primitive, ranks, size):
    return collectives.least_total_bytes(primitive.key, ranks, size)


class CollectivePrimitives(Widget):
    question = "What does each collective leave on every rank, and what must each rank send for it?"
    primitive = Choice("Primitive", PRIMITIVES, "reduce_scatter")
    ranks = Number("Ranks", 4, 2, MOST, stops=list(range(2, MOST + 1)), whole=True)
    size = Number("Buffer", 1e9, 1e3, 16e9, family="bytes", marks=(1e6,))

    presets = {
        "ReduceScatter": {},
        "AllGather": {"primitive": "all_gather"},
        "AllReduce of 2": {"primitive": "all_reduce", "ranks": 2},
        "AllToAll": {"primitive": "all_to_all"},
        "Broadcast to 8": {"primitive": "broadcast", "ranks": 8},
        "Reduce": {"primitive": "reduce"},
        "Send/Recv": {"primitive": "send_recv"},
    }
    break_it = "Find the primitive that has a rank send more than its whole buffer."
    assumptions = (
        "Executed on real arrays, one number for each piece: by a ring, AllToAll in pairs, Broadcast and "
        "Reduce as a chain: a buffer goes from rank to rank in as many pieces as there are ranks. The first "
        "piece needs a step for each link, and each piece behind it one more. Under each number is the rank "
        "whose data it is, r0, or the ranks over which it is the sum, r0–3. The buffer is the whole one, as "
        "nccl-tests counts it: the output of AllGather, the input of ReduceScatter."
    )
    formula = (
        "$$\\text{AllReduce: } 2\\,\\frac{N-1}{N}\\,S \\qquad \\text{AllGather, ReduceScatter, AllToAll: } "
        "\\frac{N-1}{N}\\,S \\qquad \\text{Broadcast, Reduce, Send: } S$$\n\nWhat the busiest of $N$ ranks "
        "sends, with a buffer of $S$ bytes. AllReduce is ReduceScatter, then AllGather: it sends what both "
        "do. No algorithm sends less in all (Patarasuk and Yuan 2009; Chan and others 2007)."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @executed("primitive", "ranks")
    def ends_of_run(self):
        return done(self.primitive.key, int(self.ranks))._asdict()

    def exchange(self):
        return Exchange(**self.ends_of_run())

    def sent_bytes(self):
        return self.exchange().sent * self.size

    def received_bytes(self):
        return self.exchange().received * self.size

    def total_bytes(self):
        return np.sum(self.sent_bytes())

    def least_bytes(self):
        return over(least_bytes, self.primitive, self.ranks, self.size)

    def more_than_buffer(self):
        return np.max(self.exchange().sent) > 1

    # -- the picture -----------------------------------------------------------------------------------------
    def block(self, values, holds, start):
        """The cells of all ranks' buffers, before or after."""
        there = (self.ranks > RANK) & (self.ranks > PIECE)
        left, right = buffers.cell(PIECE, self.ranks, start)
        bottom, top = buffers.row(RANK, self.ranks)
        owners, sources = self.owners(holds)
        texts = [choose(owners[i] > 0, show(values[i], "count"), "") for i in range(MOST * MOST)]
        few, fewer = self.ranks <= NUMBERED_NARROW, self.ranks <= SOURCED_NARROW
        return {
            "rank": RANK,
            "piece": PIECE,
            "value": values,
            "left": left,
            "right": right,
            "bottom": bottom,
            "top": top,
            "x": fig.midpoint(left, right),
            "y": fig.between(bottom, top, NUMBER_AT),
            "under": fig.between(bottom, top, SOURCES_AT),
            "seen": np.where(there, 1.0, 0.0),
            "tint": np.where(owners > 1, SUM, np.where(owners > 0, ONE, 0.0)),
            "text": texts,
            "narrow": [choose(few, text, "") for text in texts],
            "sources": sources,
            "narrow_sources": [choose(fewer, text, "") for text in sources],
        }

    def owners(self, holds):
        """Of each cell, how many ranks' data is in it, and whose: r2, or r0–3."""
        owned = np.where(np.reshape(holds, (-1, MOST)) > 0, 1.0, 0.0)
        count, first = np.sum(owned, axis=1), np.argmax(owned, axis=1)
        words = []
        for i in range(MOST * MOST):
            one, last = show(first[i], "count"), show(first[i] + count[i] - 1, "count")
            words.append(choose(count[i] > 1, f"r{one}–{last}", choose(count[i] > 0, f"r{one}", "")))
        return count, words

    @part("primitive", "ranks", shown=False)
    def before(self):
        return self.block(self.exchange().before, self.exchange().holds_before, BEFORE_AT)

    @part("primitive", "ranks", shown=False)
    def after(self):
        return self.block(self.exchange().after, self.exchange().holds_after, AFTER_AT)

    def of_cells(self, values, holds):
        """What each piece of a buffer holds, and whose data is in it."""
        there = (self.ranks > RANK) & (self.ranks > PIECE)
        owned = np.where(np.reshape(holds, (-1, MOST)) > 0, 1.0, 0.0)
        owners, first = np.sum(owned, axis=1), np.argmax(owned, axis=1)

        def held(i):
            one, several = show(first[i], "count"), show(owners[i], "count")
            whose = choose(owners[i] > 1, f"the sum over {several} ranks", f"from rank {one}")
            return choose(owners[i] > 0, f"{show(values[i], 'count')}, {whose}", "empty")

        return [
            choose(there[i], f"Rank {RANK[i]}, piece {PIECE[i]}: {held(i)}", "") for i in range(MOST * MOST)
        ]

    @hint("before")
    def of_a_piece_before(self):
        return self.of_cells(self.exchange().before, self.exchange().holds_before)

    @hint("after")
    def of_a_piece_after(self):
        return self.of_cells(self.exchange().after, self.exchange().holds_after)

    @part("primitive", "ranks", "size")
    def buffers_and_bytes(self):
        """A row for each rank: its pieces before and after, and what it sent and received; drawn is its
        name."""
        found = self.exchange()
        there, sent, received = self.ranks > RANKS, self.sent_bytes(), self.received_bytes()

        def pieces(values, holds, rank):
            held = np.max(np.reshape(holds, (-1, MOST)), axis=1)
            said = ""
            for piece, cell in enumerate(CELLS[rank]):
                number, empty = (
                    f"{show(values[cell], 'count')} ",
                    choose(there[rank] & there[piece], "· ", ""),
                )
                said = f"{said}{choose(held[cell] > 0, number, empty)}"
            return said

        return {
            "rank": [choose(there[i], f"r{i}", "") for i in RANKS],
            "before": [pieces(found.before, found.holds_before, i) for i in range(MOST)],
            "after": [pieces(found.after, found.holds_after, i) for i in range(MOST)],
            "sent_bytes": sent,
            "received_bytes": received,
            "y": fig.midpoint(*buffers.row(RANKS, self.ranks)),
        }

    @part("primitive", "ranks", "size", shown=False)
    def wires(self):
        bottom, _ = buffers.row(RANKS, self.ranks)
        there, sent, received = self.ranks > RANKS, self.sent_bytes(), self.received_bytes()
        return {
            "rank": RANKS,
            "y": bottom,
            "sent_bytes": sent,
            "received_bytes": received,
            "sends": [choose(there[i], f"sends {show(sent[i], 'bytes')}", "") for i in RANKS],
            "receives": [choose(there[i], f"receives {show(received[i], 'bytes')}", "") for i in RANKS],
        }

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-0.1, 2.34), (-0.02, 1.1), height=420)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.grid_line_color = None
        for name in ("before", "after"):
            p.quad(
                **fig.BOX,
                source=sources[name],
                fill_color=color["hbm"],
                fill_alpha="tint",
                line_color=color["axis"],
                line_alpha="seen",
            )
            for width, number, whose in (("wide", "text", "sources"), ("narrow", "narrow", "narrow_sources")):
                of_cell = {"source": sources[name], "text_align": "center"}
                fig.only(
                    width,
                    p.text("x", "y", text=number, **of_cell, **fig.BOLD),
                    p.text("x", "under", text=whose, **of_cell, **fig.TEXT),
                )
        wires = sources["wires"]
        p.text(-0.04, "y", text="rank", source=sources["buffers_and_bytes"], text_align="center", **fig.BOLD)
        for x, column in ((BEFORE_AT, "sends"), (AFTER_AT, "receives")):
            p.text(x, "y", text=column, source=wires, y_offset=11, **fig.LABEL)
        for x, name in ((BEFORE_AT, "before"), (AFTER_AT, "after")):
            p.text(x, 1.05, text=[name], **fig.LABEL)
        p.text(
            fig.midpoint(1, AFTER_AT),
            0.5,
            text=["→"],
            text_align="center",
            **fig.BOLD | {"text_font_size": "22px"},
        )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Busiest rank sends", rest=True)
    def sends(self):
        return show(np.max(self.sent_bytes()), "bytes"), self.more_than_buffer()

    @readout("Busiest rank receives", rest=True)
    def receives(self):
        return show(np.max(self.received_bytes()), "bytes")

    @readout("Over all wires")
    def total(self):
        return show(self.total_bytes(), "bytes")

    @readout("Least possible")
    def least(self):
        return show(self.least_bytes(), "bytes")

    @readout("Steps")
    def steps(self):
        links = show(self.ranks - 1, "count")
        chain = f": {links} links + {links} pieces"
        return f"{show(self.exchange().steps[0], 'count')}{choose(self.primitive.chained > 0, chain, '')}"

    @regime(target=True)
    def more_than_its_buffer(self):
        return self.more_than_buffer(), (
            f"Each rank sends {show(np.max(self.sent_bytes()), 'bytes')}, more than its buffer of "
            f"{show(self.size, 'bytes')}: once to sum, once to spread the sum. First response: where a rank "
            "needs only its piece, stop at ReduceScatter, which is half of the bytes (lesson 05 trains with "
            "that)."
        )

    def summary(self):
        return (
            f"{self.primitive.name} of {show(self.size, 'bytes')} over {show(self.ranks, 'count')} ranks "
            f"brings {self.primitive.says}; the busiest sends {show(np.max(self.sent_bytes()), 'bytes')}."
        )


CollectivePrimitives.serve_as(__name__)
