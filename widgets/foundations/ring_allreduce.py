"""Ring AllReduce as it runs: chunks travel round the ring, sums grow, and each link counts its bytes."""

from functools import cache

import numpy as np
from bokeh.transform import linear_cmap

from engine import catalog
from engine.executed import ranks_frames, ranks_operations
from engine.executed.ranks import example
from engine.executed.ranks_frames import Frames
from engine.mechanism import collectives, start_ups
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import ring
from widgets.kit.guide import Light, Step
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, executed, hint, part, readout, regime

MOST = 16  # ranks, and chunks
STEPS = 30  # of the longest run
ROUND = 6  # up to so many ranks are drawn as a ring; beyond, as a grid
NUMBERED = 10  # up to so many every number is written; beyond, those of one chunk
NARROW = 4  # … on a ring on a phone
RANK, CHUNK = np.divmod(np.arange(MOST * MOST), MOST)
RANKS = np.arange(MOST)
EVERY = slice(None)
WRITTEN = [i * MOST + j for i in range(NUMBERED) for j in range(NUMBERED)]  # places with a number
INNER, OUTER, GAUGE = 0.4, 1.0, (1.05, 1.1)
GRID = {"left": -0.88, "right": 0.72, "bottom": -1.0, "top": 0.96}
ACROSS, UP = (GRID["left"], GRID["right"]), (GRID["bottom"], GRID["top"])
BARS = (0.8, 1.2)  # the links' gauges beside the grid
HEADS = {"chunk": (-1.05, 1.18), "carried": (1.0, 1.18)}
COUNTS_AT, NAMES_AT, RANK_AT, LINE_AT = 1.26, -0.96, -1.12, 1.3
DOWN = np.pi  # turned by so much, a triangle points down
MIDDLE = (0.0, 0.18)
HUB = {  # within the ring, the total between what it is of and how long it takes
    "wide": {"who": 0.345, "total": 0.205, "of": 0.07, "takes": -0.035},
    "narrow": {"who_short": 0.33, "total": 0.18, "of_short": 0.03},
}
TOTAL = fig.BOLD | {"text_font_size": "22px"}
BAR = {"y": -1.18, "height": 0.19}
BESIDE_BAR, BELOW_BAR = 1.05, -1.42
CUTS = {"per-rank": ("one for each rank", 1.0), "half": ("half as many", 0.5), "one": ("one", 0.0)}
PHASES = ["own data", "ReduceScatter", "AllGather", "AllReduce done"]


@cache
def played(ranks: int, chunks: int) -> Frames:
    """The executed collective, one cell for each chunk."""
    run = ranks_operations.all_reduce(example(ranks, chunks), "ring", chunks)
    return ranks_frames.frames(run, MOST, STEPS)


class RingAllreduce(Widget):
    question = "How does every rank get the sum of all, when each only sends to its neighbour?"
    in_page = True
    ranks = Number("Ranks", 4, 2, MOST, stops=list(range(2, MOST + 1)), whole=True)
    size = Number("Buffer", 1e9, 1e3, 16e9, family="bytes", marks=(1e6,))
    follow = Number("Follow chunk", 0, 0, MOST - 1, stops=list(range(MOST)), whole=True, more=True)
    cut = Choice("Chunks", CUTS, "per-rank")
    link = Choice("Link", list(catalog.all_links().values()), "nvlink4", more=True)
    play = Player("Run the AllReduce", frames=STEPS, seconds_per_frame=1.1, default=1.5)

    presets = {
        "4 ranks": {},
        "8 GPUs of a node": {"ranks": 8},
        "16 ranks": {"ranks": 16},
        "After the ReduceScatter": {"play": 3},
        "64 kB": {"size": 64e3},
    }
    break_it = "Leave links idle: cut the buffer so that some of the ring has nothing to send in any step."
    lights = {
        "sums": Light(
            "what each rank holds, darker the more ranks it sums", ("cells", "numbers", "followed_numbers")
        ),
        "messages": Light("the chunks on their way to the next rank", ("messages",)),
        "links": Light("how much each link has carried", ("links",)),
    }
    tour = (
        Step(
            "Each of {ranks} ranks has numbers of its own, cut into as many chunks. In the end each is to "
            "have the sum over all ranks of every chunk.",
            {"play": 0},
            "sums",
        ),
        Step(
            "In a step each rank sends one chunk to its neighbour, which adds it to its own. This is "
            "{step_text}, and all links are busy.",
            {"play": 0.5},
            "messages",
        ),
        Step(
            "The ReduceScatter is over: {step_text}. Each rank has the whole sum of one chunk, and each "
            "link has carried {busiest}.",
            {"play": 3},
            "sums",
        ),
        Step(
            "The finished chunks go round once more and nothing is added: the AllGather. Now every rank has "
            "all of it, and no AllReduce could have sent less than these {busiest} over each link.",
            {"play": 6},
            "links",
        ),
        Step(
            "With {ranks} ranks there are more steps of smaller chunks. A link carries {busiest}, still "
            "less than twice the buffer of {size}.",
            {"ranks": 8, "play": 14},
            "links",
        ),
        Step(
            "Sent as one chunk, the buffer keeps {busy} links busy at a time, and the AllReduce takes "
            "{takes}.",
            {"cut": "one", "play": 1.5},
            "messages",
        ),
    )
    assumptions = (
        "Executed on real arrays: the numbers are those that the ranks hold and send, one for each chunk; "
        "the bytes are those of the buffer that you choose. A darker cell sums more ranks; a green rim came "
        "with the last step and goes on with the next, the strongest rim marks the chunk that you follow. "
        "For more than six ranks the ring is cut open: the last row sends to the first. Every link carries "
        "one chunk at a time, one way, and a step waits for all: $\\alpha + S/(cW)$."
    )
    formula = (
        "$$\\tau = 2(N-1)\\left(\\alpha + \\frac{S}{cW}\\right) \\;\\overset{c=N}{=}\\; "
        "\\frac{2(N-1)}{N}\\cdot\\frac{S}{W} + 2(N-1)\\,\\alpha$$\n\n$N$ ranks, $c \\le N$ chunks, a buffer "
        "of $S$ bytes, links of $W$ bytes per second one way, $\\alpha$ to start a message. With $c = N$ "
        "each link carries $2(N-1)/N \\cdot S$, less than $2S$ for any $N$, and in no AllReduce do all ranks "
        "send less (Patarasuk and Yuan 2009). With fewer chunks the busiest link carries up to $2S$, while "
        "others wait. The second term grows with $N$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @executed("ranks", "cut")
    def run(self):
        return played(int(self.ranks), int(self.chunks()))._asdict()

    def frames(self):
        return Frames(**self.run())

    def chunks(self):
        return collectives.ring_chunks(self.ranks, self.cut)

    def steps(self):
        return collectives.ring_steps(self.ranks, self.chunks())

    def moment(self):
        return np.minimum(self.play, self.steps())

    def hop_s(self):
        return start_ups.hop_s(self.link)

    def time_s(self, size=None):
        size = self.size if size is None else size
        return collectives.chunked_ring_all_reduce_s(
            size, self.ranks, self.chunks(), self.link.bytes_per_s, self.hop_s()
        )

    def start_share(self):
        return self.time_s(0.0) / self.time_s()

    def full_ring_s(self):
        return collectives.ring_all_reduce_s(self.size, self.ranks, self.link.bytes_per_s, self.hop_s())

    def carried_bytes(self, moment=None):
        """The bytes that the link into each rank has carried up to now, or up to another moment."""
        moment = self.moment() if moment is None else moment
        return ranks_frames.carried_bytes(self.frames(), MOST, moment, self.chunks(), self.size)

    def busiest_bytes(self, moment=None):
        return np.max(self.carried_bytes(moment))

    def idlest_bytes(self, moment=None):
        carried = self.carried_bytes(moment)
        return np.min(np.where(self.ranks > RANKS, carried, np.max(carried)))

    def followed(self):
        return np.minimum(self.follow, self.chunks() - 1)

    def drawn(self):
        """(1 where the ring is drawn, 1 where the grid is)."""
        return np.where(self.ranks <= ROUND, 1.0, 0.0), np.where(self.ranks > ROUND, 1.0, 0.0)

    # -- the picture -----------------------------------------------------------------------------------------
    @part("ranks", "cut", "play", "size")
    def messages_of_the_step(self):
        """What each rank gets in the step, and what the link into it has carried by now; drawn are the ranks'
        names."""
        x, y = self.placed(
            *ring.on_circle(1.1, ring.angle(RANKS, self.ranks), MIDDLE),
            NAMES_AT,
            fig.midpoint(*ring.row(RANKS, self.ranks, *UP)),
        )
        step = np.ceil(self.moment())
        found = ranks_frames.messages_of(self.frames(), MOST, step)
        sender, there = ring.before(RANKS, self.ranks), self.ranks > RANKS

        def written(values, where):
            return choose(where, show(values, "count"), "")

        return {
            "step": written(np.broadcast_to(step, (MOST,)), there),
            "from_rank": written(sender, there),
            "to_rank": written(RANKS, there),
            "chunk": written(found.chunks, found.travels),
            "value": written(found.values, found.travels),
            "message_bytes": np.where(found.travels, self.size / self.chunks(), 0.0),
            "link_carried_bytes": self.carried_bytes(),
            "x": x,
            "y": y,
        }

    @hint("messages_of_the_step")
    def of_a_rank(self):
        step = np.ceil(self.moment())
        found = ranks_frames.messages_of(self.frames(), MOST, step)
        sender, there, carried = ring.before(RANKS, self.ranks), self.ranks > RANKS, self.carried_bytes()
        gets = phrase(
            "gets chunk {chunk} from rank {sender} in step {step} ({size}) and {then}",
            chunk=show(found.chunks, "count"),
            sender=show(sender, "count"),
            step=show(step, "count"),
            size=show(self.size / self.chunks(), "bytes"),
            then=choose(found.adds, "adds it", "keeps it"),
        )
        waits = choose(step > 0, f"gets nothing in step {show(step, 'count')}", "has its own numbers only")
        return choose(
            there,
            phrase(
                "Rank {rank} {gets}; the link into it has carried {carried}",
                rank=show(RANKS, "count"),
                gets=choose(found.travels, gets, waits),
                carried=show(carried, "bytes"),
            ),
            "",
        )

    def outlined(self, chunk, fresh):
        """The colour of a cell's rim: 0 as it was, 1 just come, 2 followed."""
        return np.where(chunk == self.followed(), 2.0, np.where(fresh, 1.0, 0.0))

    @part("ranks", "cut", "play", "follow", shown=False)
    def cells(self):
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        inner, outer = ring.track(CHUNK, self.chunks(), INNER, OUTER)
        start, end = ring.arc(RANK, self.ranks)
        left, right = ring.column(CHUNK, self.chunks(), *ACROSS)
        bottom, top = ring.row(RANK, self.ranks, *UP)
        there, (on_ring, on_grid) = shown.shares > 0, self.drawn()
        fill, line = np.where(there, ring.shade(shown.shares), 0.0), np.where(there, 0.8, 0.0)
        marked = (shown.shares == 1) | shown.fresh | (self.followed() == CHUNK)
        return {
            "rank": RANK,
            "chunk": CHUNK,
            "value": shown.values,
            "share": shown.shares,
            "inner": np.where(there, inner, INNER),
            "outer": np.where(there, outer, INNER),
            "start": start,
            "end": end,
            "left": left,
            "right": right,
            "bottom": bottom,
            "top": top,
            "ring_fill": np.minimum(fill, on_ring),
            "ring_line": np.minimum(line, on_ring),
            "grid_fill": np.minimum(fill, on_grid),
            "grid_line": np.minimum(line, on_grid),
            "rim": self.outlined(CHUNK, there & shown.fresh),
            "fresh": np.where(there & shown.fresh, 1.0, 0.0),
            "width": np.where(marked, 2.5, 1.0),
        }

    def of_cells(self, drawn, places=EVERY):
        """What the cells at these places hold, if this is the picture that is drawn."""
        found = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        shares, values, fresh = (column[places] for column in (found.shares, found.values, found.fresh))
        sums = shares * self.ranks
        return choose(
            (shares > 0) & drawn,
            phrase(
                "Rank {rank}, chunk {chunk}: {value}, {sum}{fresh}",
                rank=show(RANK[places], "count"),
                chunk=show(CHUNK[places], "count"),
                value=show(values, "count"),
                sum=choose(sums < 1.5, "its own", phrase("the sum over {n} ranks", n=show(sums, "count"))),
                fresh=choose(fresh, "; came with the last step", ""),
            ),
            "",
        )

    @hint("cells")
    def of_a_cell(self):
        return self.of_cells(self.ranks > ROUND)

    @hint("numbers")
    def of_a_number(self):
        return self.of_cells(self.ranks <= ROUND, WRITTEN)

    @part("ranks", "cut", "play", "follow", shown=False)
    def numbers(self):
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        radius = fig.midpoint(*ring.track(CHUNK, self.chunks(), INNER, OUTER))
        x, y = self.placed(
            *ring.on_circle(radius, ring.angle(RANK, self.ranks), MIDDLE),
            fig.midpoint(*ring.column(CHUNK, self.chunks(), *ACROSS)),
            fig.midpoint(*ring.row(RANK, self.ranks, *UP)),
        )
        wide = (shown.shares > 0) & (self.ranks <= NUMBERED)
        narrow = wide & self.drawn_on_a_phone(CHUNK)
        texts = show(shown.values[WRITTEN], "count")
        return {
            "x": x[WRITTEN],
            "y": y[WRITTEN],
            "text": choose(wide[WRITTEN], texts, ""),
            "narrow": choose(narrow[WRITTEN], texts, ""),
        }

    @part("ranks", "cut", "play", "follow", shown=False)
    def followed_numbers(self):
        """The numbers of the chunk that is followed, where there is no room for those of all chunks."""
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        mine = np.reshape(self.followed() == CHUNK, (MOST, MOST))
        values = np.sum(np.where(mine, np.reshape(shown.values, (MOST, MOST)), 0.0), axis=1)
        held = np.sum(np.where(mine, np.reshape(shown.shares, (MOST, MOST)), 0.0), axis=1)
        there = (held > 0) & (self.ranks > NUMBERED)
        x = fig.midpoint(*ring.column(self.followed(), self.chunks(), *ACROSS))
        return {
            "x": np.broadcast_to(x, (MOST,)),
            "y": fig.midpoint(*ring.row(RANKS, self.ranks, *UP)),
            "text": choose(there, show(values, "count"), ""),
        }

    def placed(self, ring_x, ring_y, grid_x, grid_y):
        """Where something stands on the picture that is drawn."""
        round_ = self.ranks <= ROUND
        return np.where(round_, ring_x, grid_x), np.where(round_, ring_y, grid_y)

    def drawn_on_a_phone(self, chunk):
        """Whether a phone has room for a chunk's number: not for all of them on the tracks of a ring."""
        return (self.ranks <= NARROW) | (self.ranks > ROUND) | (chunk == self.followed())

    @part("ranks", "cut", "play", "follow", shown=False)
    def messages(self):
        found = ranks_frames.messages_at(self.frames(), MOST, self.moment())
        place = fig.between(RANKS - 1, RANKS, ring.eased(ranks_frames.way_made(self.moment())))
        inner, outer = ring.track(found.chunks, self.chunks(), INNER, OUTER)
        start, end = ring.arc(place, self.ranks, 0.26)
        left, right = ring.column(found.chunks, self.chunks(), *ACROSS)
        bottom, top = ring.row(place, self.ranks, *UP, share=0.42)
        middle, across = fig.midpoint(inner, outer), fig.midpoint(left, right)
        x, y = self.placed(
            *ring.on_circle(middle, ring.angle(place, self.ranks), MIDDLE), across, fig.midpoint(bottom, top)
        )
        head_x, head_y = self.placed(*ring.on_circle(middle, start, MIDDLE), across, bottom)
        texts = phrase("{plus}{n}", plus=choose(found.adds, "+", ""), n=show(found.values, "count"))
        wide = found.travels & (self.ranks <= NUMBERED)
        narrow = wide & self.drawn_on_a_phone(found.chunks)
        seen, (on_ring, on_grid) = np.where(found.travels, 1.0, 0.0), self.drawn()
        return {
            "inner": np.where(found.travels, inner, INNER),
            "outer": np.where(found.travels, outer, INNER),
            "start": start,
            "end": end,
            "left": left,
            "right": right,
            "bottom": bottom,
            "top": top,
            "x": x,
            "y": y,
            "seen": seen,
            "ring_seen": np.minimum(seen, on_ring),
            "grid_seen": np.minimum(seen, on_grid),
            "ring_tint": np.where(found.travels & (on_ring > 0), 0.3, 0.0),
            "grid_tint": np.where(found.travels & (on_grid > 0), 0.3, 0.0),
            "rim": np.where(found.chunks == self.followed(), 2.0, 1.0),
            "head_x": head_x,
            "head_y": head_y,
            "heading": np.where(on_ring > 0, ring.heading(start), DOWN),
            "text": choose(wide, texts, ""),
            "narrow": choose(narrow, texts, ""),
        }

    @part("ranks", "cut", "play", "size", shown=False)
    def links(self):
        carried = self.carried_bytes()
        there, (on_ring, on_grid) = self.ranks > RANKS, self.drawn()
        whole_start, whole_end = ring.filled_link(RANKS, self.ranks, 1.0)
        filled = carried / self.busiest_bytes(self.steps())
        start, end = ring.filled_link(RANKS, self.ranks, filled)
        bottom, top = ring.row(RANKS, self.ranks, *UP, share=0.6)
        x, y = self.placed(
            *ring.on_circle(1.15, ring.angle(fig.between(RANKS - 1, RANKS, 0.5), self.ranks), MIDDLE),
            COUNTS_AT,
            fig.midpoint(bottom, top),
        )
        few, seen = there & (self.ranks == 4), np.where(there, 1.0, 0.0)
        return {
            "into_rank": RANKS,
            "carried_bytes": carried,
            "start": start,
            "end": end,
            "whole_start": whole_start,
            "whole_end": whole_end,
            "x": x,
            "y": y,
            "left": np.full(MOST, BARS[0]),
            "right": np.full(MOST, BARS[1]),
            "bottom": bottom,
            "top": top,
            "reached": fig.between(*BARS, filled),
            "ring_seen": np.minimum(seen, on_ring),
            "grid_seen": np.minimum(seen, on_grid),
            "ring_track": np.where(there & (on_ring > 0), 0.25, 0.0),
            "grid_track": np.where(there & (on_grid > 0), 0.25, 0.0),
            "align": select(np.where(self.ranks > ROUND, 2, ring.side(x)), ["right", "center", "left"]),
            "text": choose(there, show(carried, "bytes"), ""),
            "narrow": choose(few, show(carried, "bytes"), ""),
        }

    @part("ranks", "cut", shown=False)
    def columns(self):
        """The names of the chunks over the grid."""
        there = (self.chunks() > RANKS) & (self.ranks > ROUND)
        apart = there & ((self.chunks() <= NUMBERED) | (RANKS % 5 == 0))
        return {
            "x": fig.midpoint(*ring.column(RANKS, self.chunks(), *ACROSS)),
            "y": np.full(MOST, HEADS["chunk"][1]),
            "text": choose(there, show(RANKS, "count"), ""),
            "narrow": choose(apart, show(RANKS, "count"), ""),
        }

    @part("ranks", shown=False)
    def heads(self):
        """What the grid's rows, columns and bars are."""
        return {
            "x": [*(x for x, _ in HEADS.values()), RANK_AT],
            "y": [*(y for _, y in HEADS.values()), fig.midpoint(*UP)],
            "turn": [0.0, 0.0, DOWN / 2],
            "text": [choose(self.ranks > ROUND, name, "") for name in (*HEADS, "rank")],
        }

    @part("ranks", "cut", "play", "size", "link", shown=False)
    def hub(self):
        grid = self.ranks > ROUND
        carried, in_all = (
            show(found, "bytes") for found in (self.busiest_bytes(), self.busiest_bytes(self.steps()))
        )
        takes, size = show(self.time_s(), "seconds"), show(self.size, "bytes")
        uneven = self.chunks() < self.ranks
        steps, many = show(self.steps(), "count"), self.steps() > 1
        in_steps = f"in {steps} {choose(many, 'steps', 'step')}"
        moment = f"{self.phase()}, {self.step_text()}"
        sends = choose(uneven, "the busiest sends", "each rank sends")
        return {
            "who": choose(grid, "", sends),
            "who_short": choose(grid, "", choose(uneven, "busiest rank", "a rank sends")),
            "total": choose(grid, "", in_all),
            "of": choose(grid, "", f"for a {size} buffer"),
            "of_short": choose(grid, "", in_steps),
            "takes": choose(grid, "", f"{in_steps}, {takes}"),
            "now": choose(grid, "", f"now: {self.step_text()}"),
            "so_far": choose(grid, "", f"sent so far: {carried}"),
            "below": choose(grid, "", f"{moment}: {carried} sent"),
            "line": choose(grid, f"{sends} {in_all} for {size}, in {takes}; {moment}: {carried}", ""),
            "short": choose(grid, f"{sends} {in_all}; {self.step_text()}", ""),
        }

    @part("ranks", "cut", "play", shown=False)
    def progress(self):
        return {"end": fig.between(-1.0, 1.0, self.moment() / self.steps())}

    def phase(self):
        return select(ranks_frames.half_at(self.moment(), self.steps()), PHASES)

    def step_text(self):
        return f"step {show(np.ceil(self.moment()), 'count')} of {show(self.steps(), 'count')}"

    def ends(self):
        return {"play": self.steps()}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-1.36, 1.36), (-1.36, 1.36), height=480)
        fig.same_scales(p, 1.24, 1.36)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.grid_line_color = None
        middle = {"x": MIDDLE[0], "y": MIDDLE[1]}
        gauge = middle | {
            "inner_radius": GAUGE[0],
            "outer_radius": GAUGE[1],
            "direction": "clock",
            "line_color": None,
        }
        links, cells, messages = sources["links"], sources["cells"], sources["messages"]
        rims = {
            "line_color": linear_cmap("rim", [color["hbm"], color["link"], color["ink"]], 0, 2),
            "line_width": "width",
        }
        moving = {
            "line_color": linear_cmap("rim", [color["hbm"], color["link"], color["ink"]], 0, 2),
            "line_width": 2.5,
            "fill_color": color["link"],
        }
        p.annular_wedge(
            **gauge,
            start_angle="whole_end",
            end_angle="whole_start",
            source=links,
            fill_color=color["idle"],
            fill_alpha="ring_track",
        )
        p.annular_wedge(
            **gauge,
            start_angle="whole_end",
            end_angle="start",
            source=links,
            fill_color=color["link"],
            fill_alpha="ring_seen",
        )
        p.quad(**fig.BOX, source=links, fill_color=color["idle"], fill_alpha="grid_track", line_color=None)
        p.quad(
            **fig.BOX | {"right": "reached"},
            source=links,
            fill_color=color["link"],
            fill_alpha="grid_seen",
            line_color=None,
        )
        wedge = middle | {
            "inner_radius": "inner",
            "outer_radius": "outer",
            "start_angle": "start",
            "end_angle": "end",
        }
        for draw, place, kind in ((p.annular_wedge, wedge, "ring"), (p.quad, fig.BOX, "grid")):
            draw(
                **place,
                source=cells,
                fill_color=color["hbm"],
                fill_alpha=f"{kind}_fill",
                line_alpha=f"{kind}_line",
                **rims,
            )
            draw(
                **place,
                source=messages,
                fill_color=color["panel"],
                fill_alpha=f"{kind}_seen",
                line_color=None,
            )
            draw(**place, source=messages, fill_alpha=f"{kind}_tint", line_alpha=f"{kind}_seen", **moving)
        p.scatter(
            "head_x",
            "head_y",
            angle="heading",
            marker="triangle",
            size=11,
            source=messages,
            fill_color=color["link"],
            line_color=None,
            fill_alpha="seen",
        )
        self.write(p, sources)
        return p

    def write(self, p, sources):
        """The numbers, names and counts on the picture."""
        center = fig.TEXT | {"text_align": "center"}
        bold, center_only = center | {"text_font_style": "bold"}, {"text_align": "center"}
        for source, style in (
            ("numbers", center),
            ("columns", bold),
            ("messages", bold),
            ("links", fig.LABEL | {"text_align": "align"}),
        ):
            fig.only("wide", p.text("x", "y", text="text", source=sources[source], **style))
            fig.only("narrow", p.text("x", "y", text="narrow", source=sources[source], **style))
        p.text("x", "y", text="to_rank", source=sources["messages_of_the_step"], **bold)
        p.text("x", "y", text="text", source=sources["followed_numbers"], **bold)
        p.text(
            "x",
            "y",
            text="text",
            angle="turn",
            source=sources["heads"],
            **fig.LABEL | {"text_align": "center"},
        )
        hub = sources["hub"]
        for width, line in (("wide", "line"), ("narrow", "short")):
            fig.only(width, p.text(MIDDLE[0], LINE_AT, text=line, source=hub, **bold))
            for column, at in HUB[width].items():
                style = TOTAL if column == "total" else fig.TEXT
                fig.only(width, p.text(MIDDLE[0], at, text=column, source=hub, **style | center_only))
        fig.only(
            "wide",
            p.text(-BESIDE_BAR, BAR["y"], text="so_far", source=hub, text_align="right", **fig.TEXT),
            p.text(BESIDE_BAR, BAR["y"], text="now", source=hub, **fig.BOLD),
        )
        fig.only("narrow", p.text(0, BELOW_BAR, text="below", source=hub, **bold))
        bar = BAR | {"line_color": None}
        p.hbar(left=-1, right=1, fill_color=fig.COLOR["idle"], fill_alpha=0.15, **bar)
        p.hbar(
            left=-1,
            right="end",
            source=sources["progress"],
            fill_color=fig.COLOR["link"],
            fill_alpha=0.3,
            **bar,
        )
        p.segment(0, -1.3, 0, -1.06, line_color=fig.COLOR["ink"], line_width=2)
        for at, name in ((-0.5, "ReduceScatter"), (0.5, "AllGather")):
            p.text(at, BAR["y"], text=[name], **center)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Busiest link so far", rest=True)
    def busiest(self):
        return show(self.busiest_bytes(), "bytes")

    @readout("Idlest link so far", rest=True)
    def idlest(self):
        return show(self.idlest_bytes(), "bytes"), self.chunks() < self.ranks

    @readout("Each link, in N chunks")
    def least(self):
        return show(collectives.ring_link_bytes(self.size, self.ranks), "bytes")

    @readout("Links at work in a step")
    def busy(self):
        return f"{show(self.chunks(), 'count')} of {show(self.ranks, 'count')}", self.chunks() < self.ranks

    @readout("Whole AllReduce", rest=True)
    def takes(self):
        return show(self.time_s(), "seconds")

    @readout("Spent on starting")
    def starting(self):
        return show(self.start_share(), "percent"), self.start_share() > 0.5

    @regime(target=True)
    def idle_links(self):
        return self.chunks() < self.ranks, (
            f"Links idle: with {show(self.chunks(), 'count')} {choose(self.chunks() > 1, 'chunks', 'chunk')} "
            f"on {show(self.ranks, 'count')} ranks, "
            f"{show(collectives.idle_links(self.ranks, self.chunks()), 'count')} of "
            f"{show(self.ranks, 'count')} links wait in every step. The busiest link carries "
            f"{show(self.busiest_bytes(self.steps()), 'bytes')} in all, the idlest "
            f"{show(self.idlest_bytes(self.steps()), 'bytes')}, and the AllReduce takes "
            f"{show(self.time_s(), 'seconds')} instead of {show(self.full_ring_s(), 'seconds')}. First "
            "response: cut the buffer in at least one chunk for each rank, as NCCL does."
        )

    @regime()
    def latency(self):
        return self.start_share() > 0.5, (
            f"The latency wall: {show(self.steps(), 'count')} start-ups of {show(self.hop_s(), 'seconds')} "
            f"are {show(self.start_share(), 'percent')} of {show(self.time_s(), 'seconds')}; the bytes "
            "hardly matter. First response: fuse small buffers into one bucket, or use a tree, whose "
            "start-ups grow with log N."
        )

    def summary(self):
        link = choose(self.chunks() < self.ranks, "the busiest link", "each link")
        in_all, so_far = (
            show(found, "bytes") for found in (self.busiest_bytes(self.steps()), self.busiest_bytes())
        )
        return (
            f"A ring of {show(self.ranks, 'count')} sums {show(self.size, 'bytes')} in "
            f"{show(self.time_s(), 'seconds')}; {link} carries {in_all}, {so_far} of it so far, "
            f"{choose(self.moment() < np.ceil(self.moment()), 'in', 'after')} step "
            f"{show(np.ceil(self.moment()), 'count')} of {show(self.steps(), 'count')}."
        )


RingAllreduce.serve_as(__name__)
