"""Ring AllReduce as it runs: chunks travel round the ring, sums grow, and each link counts its bytes."""

from functools import cache

import numpy as np
from bokeh.transform import linear_cmap

from engine import catalog, collectives, ranks_frames, ranks_operations
from engine.ranks import example
from engine.ranks_frames import Frames
from widgets.kit import figure as fig
from widgets.kit import ring
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.text import choose, select, show
from widgets.kit.widget import Widget, executed, part, readout, regime

MOST = 16                                    # ranks, and chunks
STEPS = 30                                   # of the longest run
NUMBERED = 6                                 # up to so many ranks every number is written; beyond, those of chunk 0
NARROW, NARROWEST = 4, 10                    # … on a phone, and up to how many those of chunk 0
RANK, CHUNK = np.divmod(np.arange(MOST * MOST), MOST)
RANKS = np.arange(MOST)
WRITTEN = [i * MOST + j for i in range(MOST) for j in range(NUMBERED) if i < NUMBERED or j == 0]  # places with a number
INNER, OUTER, GAUGE = 0.4, 1.0, (1.05, 1.1)
MIDDLE = (0.0, 0.18)
HUB = {"phase": 0.29, "step": 0.17, "carried": 0.05}
BAR = {"y": -1.18, "height": 0.19}
CUTS = {"per-rank": ("one for each rank", 1.0), "half": ("half as many", 0.5), "one": ("one", 0.0)}
PHASES = ["own data", "ReduceScatter", "AllGather", "AllReduce done"]


@cache
def played(ranks: int, chunks: int) -> Frames:
    """The executed collective, one cell for each chunk."""
    run = ranks_operations.all_reduce(example(ranks, chunks), "ring", chunks)
    return ranks_frames.frames(run, MOST, STEPS)


class RingAllreduce(Widget):
    question = "How does every rank get the sum of all, with each link carrying less than twice the buffer?"
    ranks = Number("Ranks", 4, 2, MOST, stops=list(range(2, MOST + 1)), whole=True)
    size = Number("Buffer", 1e9, 1e3, 16e9, family="bytes", marks=(1e6,))
    cut = Choice("Chunks", CUTS, "per-rank")
    link = Choice("Link", list(catalog.links().values()), "nvlink4", more=True)
    play = Player("Run the AllReduce", frames=STEPS, seconds_per_frame=1.1, default=1.5)

    presets = {"4 ranks": {}, "8 GPUs of a node": {"ranks": 8}, "16 ranks": {"ranks": 16},
               "One chunk": {"cut": "one"}, "64 kB": {"size": 64e3}}
    break_it = "Leave links idle: cut the buffer so that some of the ring has nothing to send in any step."
    assumptions = (
        "Executed on real arrays: the numbers are those that the ranks hold and send, one for each chunk; the "
        "bytes are those of the buffer that you choose. A darker cell sums more ranks; a green rim came with the "
        "last step and goes on with the next. Every link carries one chunk at a time, one way, and a step waits "
        "for all: $\\alpha + S/(cB)$.")
    formula = ("$$T = 2(N-1)\\left(\\alpha + \\frac{S}{cB}\\right) \\;\\overset{c=N}{=}\\; "
               "\\frac{2(N-1)}{N}\\cdot\\frac{S}{B} + "
               "2(N-1)\\,\\alpha$$\n\n$N$ ranks, $c \\le N$ chunks, a buffer of $S$ bytes, links of $B$ bytes per "
               "second one way, $\\alpha$ to start a message. Each link carries $2(N-1)/N \\cdot S$, less than "
               "$2S$ for any $N$, and no AllReduce sends less (Patarasuk and Yuan 2009). The second term grows "
               "with $N$.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
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

    def time_s(self, size=None):
        size = self.size if size is None else size
        return collectives.chunked_ring_all_reduce_s(size, self.ranks, self.chunks(), self.link.bytes_per_s,
                                                     self.link.latency_s)

    def start_share(self):
        return collectives.latency_share(self.time_s(), self.time_s(0.0))

    def full_ring_s(self):
        return collectives.ring_all_reduce_s(self.size, self.ranks, self.link.bytes_per_s, self.link.latency_s)

    def carried_bytes(self):
        return ranks_frames.carried_bytes(self.frames(), MOST, self.moment(), self.chunks(), self.size)

    # -- the picture ------------------------------------------------------------------------------------------------
    @part("ranks", "cut", "play")
    def cells(self):
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        inner, outer = ring.track(CHUNK, self.chunks(), INNER, OUTER)
        start, end = ring.arc(RANK, self.ranks)
        there = shown.shares > 0
        return {"rank": RANK, "chunk": CHUNK, "value": shown.values, "share": shown.shares,
                "inner": np.where(there, inner, INNER), "outer": np.where(there, outer, INNER),
                "start": start, "end": end,
                "fill": np.where(there, ring.shade(shown.shares), 0.0), "line": np.where(there, 0.8, 0.0),
                "fresh": np.where(there & shown.fresh, 1.0, 0.0),
                "width": np.where((shown.shares == 1) | shown.fresh, 2.5, 1.0)}

    @part("ranks", "cut", "play")
    def numbers(self):
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        radius = fig.midpoint(*ring.track(CHUNK, self.chunks(), INNER, OUTER))
        x, y = ring.on_circle(radius, ring.angle(RANK, self.ranks), MIDDLE)
        there = shown.shares > 0
        wide, narrow = there & self.written(CHUNK, NUMBERED, MOST), there & self.written(CHUNK, NARROW, NARROWEST)
        return {"x": x[WRITTEN], "y": y[WRITTEN],
                "text": [choose(wide[i], show(shown.values[i], "count"), "") for i in WRITTEN],
                "narrow": [choose(narrow[i], show(shown.values[i], "count"), "") for i in WRITTEN]}

    def written(self, chunk, few, many):
        """Whether there is room for a chunk's number: for all of few ranks, for the outermost of many."""
        return (self.ranks <= few) | ((chunk == 0) & (self.ranks <= many))

    @part("ranks", "cut", "play")
    def messages(self):
        found = ranks_frames.messages_at(self.frames(), MOST, self.moment())
        place = fig.between(RANKS - 1, RANKS, ring.eased(ranks_frames.way_made(self.moment())))
        inner, outer = ring.track(found.chunks, self.chunks(), INNER, OUTER)
        start, end = ring.arc(place, self.ranks, 0.26)
        x, y = ring.on_circle(fig.midpoint(inner, outer), ring.angle(place, self.ranks), MIDDLE)
        head_x, head_y = ring.on_circle(fig.midpoint(inner, outer), start, MIDDLE)
        texts = [f"{choose(found.adds[i], '+', '')}{show(found.values[i], 'count')}" for i in RANKS]
        wide = found.travels & self.written(found.chunks, NUMBERED, MOST)
        narrow = found.travels & self.written(found.chunks, NARROW, NARROWEST)
        return {"inner": np.where(found.travels, inner, INNER), "outer": np.where(found.travels, outer, INNER),
                "start": start, "end": end, "seen": np.where(found.travels, 1.0, 0.0),
                "tint": np.where(found.travels, 0.3, 0.0), "x": x, "y": y,
                "head_x": head_x, "head_y": head_y, "heading": ring.heading(start), "value": found.values,
                "text": [choose(wide[i], texts[i], "") for i in RANKS],
                "narrow": [choose(narrow[i], texts[i], "") for i in RANKS]}

    @part("ranks", "cut", "play", "size")
    def links(self):
        carried = self.carried_bytes()
        there = RANKS < self.ranks
        whole_start, whole_end = ring.filled_link(RANKS, self.ranks, 1.0)
        filled = fig.filled(carried, collectives.ring_link_bytes(self.size, self.ranks))
        start, end = ring.filled_link(RANKS, self.ranks, np.minimum(filled, 1))
        x, y = ring.on_circle(1.15, ring.angle(fig.between(RANKS - 1, RANKS, 0.5), self.ranks), MIDDLE)
        few, fewest = there & (self.ranks <= 10), there & (self.ranks == 4)
        return {"into_rank": RANKS, "carried_bytes": carried, "start": start, "end": end, "whole_start": whole_start,
                "whole_end": whole_end, "x": x, "y": y,
                "seen": np.where(there, 1.0, 0.0), "track": np.where(there, 0.25, 0.0),
                "align": [select(ring.side(x[i]), ["right", "center", "left"]) for i in RANKS],
                "text": [choose(few[i], show(carried[i], "bytes"), "") for i in range(MOST)],
                "narrow": [choose(fewest[i], show(carried[i], "bytes"), "") for i in range(MOST)]}

    @part("ranks")
    def names(self):
        x, y = ring.on_circle(1.1, ring.angle(RANKS, self.ranks), MIDDLE)
        there = RANKS < self.ranks
        return {"x": x, "y": y, "text": [choose(there[i], f"{i}", "") for i in range(MOST)]}

    @part("ranks", "cut", "play", "size")
    def hub(self):
        return {"phase": self.phase(), "step": self.step_text(),
                "carried": f"{show(np.max(self.carried_bytes()), 'bytes')} a link"}

    @part("ranks", "cut", "play")
    def progress(self):
        return {"end": fig.between(-1.0, 1.0, fig.filled(self.moment(), self.steps()))}

    def phase(self):
        return select(ranks_frames.half_at(self.moment(), self.steps()), PHASES)

    def step_text(self):
        return f"step {show(ranks_frames.step_at(self.moment()), 'count')} of {show(self.steps(), 'count')}"

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
        gauge = middle | {"inner_radius": GAUGE[0], "outer_radius": GAUGE[1], "direction": "clock", "line_color": None}
        links, cells, messages = sources["links"], sources["cells"], sources["messages"]
        p.annular_wedge(**gauge, start_angle="whole_end", end_angle="whole_start", source=links,
                        fill_color=color["idle"], fill_alpha="track")
        p.annular_wedge(**gauge, start_angle="whole_end", end_angle="start", source=links,
                        fill_color=color["link"], fill_alpha="seen")
        wedge = middle | {"inner_radius": "inner", "outer_radius": "outer", "start_angle": "start", "end_angle": "end"}
        p.annular_wedge(**wedge, source=cells, fill_color=color["hbm"], fill_alpha="fill", line_alpha="line",
                        line_color=linear_cmap("fresh", [color["hbm"], color["link"]], 0, 1), line_width="width")
        p.annular_wedge(**wedge, source=messages, fill_color=color["panel"], fill_alpha="seen", line_color=None)
        p.annular_wedge(**wedge, source=messages, fill_color=color["link"], fill_alpha="tint", line_color=color["link"],
                        line_alpha="seen", line_width=2.5)
        p.scatter("head_x", "head_y", angle="heading", marker="triangle", size=11, source=messages,
                  fill_color=color["link"], line_color=None, fill_alpha="seen")
        self.write(p, sources)
        return p

    def write(self, p, sources):
        """The numbers, names and counts on the picture."""
        center = fig.TEXT | {"text_align": "center"}
        for source, style in (("numbers", center), ("messages", center | {"text_font_style": "bold"}),
                              ("links", fig.LABEL | {"text_align": "align"})):
            fig.only("wide", p.text("x", "y", text="text", source=sources[source], **style))
            fig.only("narrow", p.text("x", "y", text="narrow", source=sources[source], **style))
        p.text("x", "y", text="text", source=sources["names"], **center | {"text_font_style": "bold"})
        for column, at in HUB.items():
            style = fig.BOLD if column == "phase" else fig.LABEL
            p.text(MIDDLE[0], at, text=column, source=sources["hub"], **style | {"text_align": "center"})
        bar = BAR | {"line_color": None}
        p.hbar(left=-1, right=1, fill_color=fig.COLOR["idle"], fill_alpha=0.15, **bar)
        p.hbar(left=-1, right="end", source=sources["progress"], fill_color=fig.COLOR["link"], fill_alpha=0.3, **bar)
        p.segment(0, -1.3, 0, -1.06, line_color=fig.COLOR["ink"], line_width=2)
        for at, name in ((-0.5, "ReduceScatter"), (0.5, "AllGather")):
            p.text(at, BAR["y"], text=[name], **center)

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Carried by each link")
    def carried(self):
        return show(np.max(self.carried_bytes()), "bytes")

    @readout("2(N−1)/N of the buffer")
    def least(self):
        return show(collectives.ring_link_bytes(self.size, self.ranks), "bytes")

    @readout("Links at work in a step")
    def busy(self):
        return f"{show(self.chunks(), 'count')} of {show(self.ranks, 'count')}", self.chunks() < self.ranks

    @readout("Whole AllReduce")
    def takes(self):
        return show(self.time_s(), "seconds")

    @readout("Spent on starting")
    def starting(self):
        return show(self.start_share(), "percent"), self.start_share() > 0.5

    @regime(target=True)
    def idle_links(self):
        return self.chunks() < self.ranks, (
            f"Links idle: with {show(self.chunks(), 'count')} {choose(self.chunks() > 1, 'chunks', 'chunk')} on "
            f"{show(self.ranks, 'count')} ranks, {show(collectives.idle_links(self.ranks, self.chunks()), 'count')} "
            f"of {show(self.ranks, 'count')} links wait in every step, and the AllReduce takes "
            f"{show(self.time_s(), 'seconds')} instead of {show(self.full_ring_s(), 'seconds')}. First response: "
            "cut the buffer in at least one chunk for each rank, as NCCL does.")

    @regime()
    def latency(self):
        return self.start_share() > 0.5, (
            f"The latency wall: {show(self.steps(), 'count')} start-ups of {show(self.link.latency_s, 'seconds')} "
            f"are {show(self.start_share(), 'percent')} of {show(self.time_s(), 'seconds')}; the bytes hardly "
            "matter. First response: fuse small buffers into one bucket, or use a tree, whose start-ups grow with "
            "log N.")

    def summary(self):
        return (f"Ring AllReduce of {show(self.size, 'bytes')} on {show(self.ranks, 'count')} ranks in "
                f"{show(self.chunks(), 'count')} {choose(self.chunks() > 1, 'chunks', 'chunk')}: in step "
                f"{show(ranks_frames.step_at(self.moment()), 'count')} of {show(self.steps(), 'count')} the busiest "
                f"link has carried {show(np.max(self.carried_bytes()), 'bytes')}, and the whole takes "
                f"{show(self.time_s(), 'seconds')} over {self.link.name}.")
