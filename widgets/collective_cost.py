"""An AllReduce over the size of its buffer, by four algorithms: where start-ups end and bandwidth begins."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog, collectives
from engine.catalog import Sweep
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, part, readout, regime

SMALLEST, LARGEST = 1e3, 2e10
SIZES = np.geomspace(SMALLEST, LARGEST, 74)
VIEWS_S = [1e-1, 1.0, 1e1, 1e2]
BOTTOM, TOP = 1e-6, 4e12                        # of both views, in SI: seconds up to 100, bytes per second from 100,000
RANK_STOPS = sorted({n for k in range(15) for n in (2**k, 5 * 2**k // 4, 3 * 2**k // 2, 7 * 2**k // 4)
                     if 2 <= n <= 2**14})
NAMES = ["ring", "tree", "halving-doubling", "two levels"]
NAMED_AT = np.array([1.3e3, 1.3e3, 1.6e10, 3e8])                # where the lines' names stand, in the order of NAMES
RISING_NAMED_AT, RISING_SHIFT = np.array([1.3e3, 2e6, 1.6e10, 1.6e10]), np.array([14.0, -11.0, 14.0, -11.0])  # rising
NOTHING = Sweep("none", "none", gpu="", ranks=0, sizes_bytes=(), times_s=())
NVLINK, NETWORK = catalog.link("nvlink4"), catalog.link("ib-ndr")
WIRES = ["per_node", "link_bytes_per_s", "link_alpha_s", "nic_bytes_per_s", "nic_alpha_s"]
A100 = {"ranks": 8, "view": "bandwidth", "measured": "allreduce-8xa100", "link_bytes_per_s": 300e9}
H100 = {"ranks": 8, "view": "bandwidth", "measured": "allreduce-8xh100"}


class CollectiveCost(Widget):
    question = "Which AllReduce is fastest, and up to which size does the size not matter?"
    size = Number("Buffer", 1e6, SMALLEST, 16e9, family="bytes", stops=80, marks=(64e3, 64e6, 1e9))
    ranks = Number("Ranks", 64, 2, 2**14, stops=RANK_STOPS, whole=True)
    view = Choice("Show", {"time": ("time", 0), "bandwidth": ("bus bandwidth", 1)}, "time")
    measured = Choice("Measured", [*catalog.sweeps().values(), NOTHING], "none", more=True)
    per_node = Number("GPUs in a node", 8, 2, 72, stops=[2, 4, 8, 16, 32, 72], whole=True, more=True)
    link_bytes_per_s = Number("Link, one way", NVLINK.bytes_per_s, 10e9, 1e12, family="bytes_per_s",
                              marks=(300e9, 900e9), more=True)
    link_alpha_s = Number("Link, start-up", NVLINK.latency_s, 0.5e-6, 50e-6, family="seconds", more=True)
    nic_bytes_per_s = Number("NIC of each GPU", NETWORK.bytes_per_s, 1.25e9, 200e9, family="bytes_per_s",
                             marks=(12.5e9, 25e9, 100e9), more=True)
    nic_alpha_s = Number("Network, start-up", NETWORK.latency_s, 1e-6, 200e-6, family="seconds", more=True)

    presets = {"1 MB on 64 ranks": {}, "64 kB on 1,024 ranks": {"size": 64e3, "ranks": 1024},
               "1 GB on 1,024 ranks": {"size": 1e9, "ranks": 1024}, "8 A100, measured": A100, "8 H100, measured": H100}
    break_it = "Make the bytes not matter at all: 64 kB on 1,024 ranks. What is the time made of?"
    assumptions = (
        "The textbook forms: wires busy both ways at once, chunks that cost nothing, no sum to compute. A flat "
        "algorithm (ring, tree, halving-doubling) runs at the link's rate inside a node and at that of one NIC "
        "beyond it; NCCL's several rings give a flat ring the bandwidth of two levels. Halving-doubling leaves out "
        "the long wires of its far partners; NCCL does not have it. The dots, chosen under *more*, are published measurements, each with "
        "its own software; the switches of H100 and later add up by themselves (NVLS), which no curve here does.")
    formula = (
        "$$T_{ring} = 2(N-1)\\,\\alpha + \\frac{2(N-1)}{N}\\frac{S}{B} \\qquad T_{tree} = 2\\lceil\\log_2 "
        "N\\rceil\\,\\alpha + 2\\,\\frac{S}{B}$$\n\n$$T_{hd} = 2\\lceil\\log_2 N\\rceil\\,\\alpha + "
        "\\frac{2(N-1)}{N}\\frac{S}{B} \\qquad T_{2} = T_{ring}(g, S, link) + T_{ring}(N/g, S/g, NIC)$$\n\nA "
        "buffer of $S$ bytes, $N$ ranks, $g$ of them in a node. $T_{hd}$ is for $N = 2^k$. For any other $N$, with $p$ "
        "the power of two below, the ranks beyond $p$ hand their buffer over first and get the sum back at last: $2 + "
        "2(p-1)/p$ buffers instead of $2(N-1)/N$. The ring overtakes the tree at $S = N B "
        "\\alpha\\,(N-1-\\lceil\\log_2 N\\rceil)$. nccl-tests divides $S$ by $T$ for the algorithm bandwidth and "
        "multiplies it by $2(N-1)/N$ for the bus bandwidth, which can be held against the wire for any $N$.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def wires(self):
        return self.per_node, self.link_bytes_per_s, self.link_alpha_s, self.nic_bytes_per_s, self.nic_alpha_s

    def times_s(self, size):
        """By each algorithm, in the order of NAMES."""
        return collectives.textbook_all_reduce_s(size, self.ranks, *self.wires())

    def at_size_s(self):
        return np.stack(self.times_s(self.size))

    def fastest(self):
        return np.argmin(self.at_size_s())

    def best_s(self):
        return np.min(self.at_size_s())

    def leader(self):
        """The name of the fastest, and of those that a model cannot tell from it."""
        fast, said, some = collectives.as_fast(self.at_size_s(), self.best_s()), "", False
        for i, name in enumerate(NAMES):
            said = f"{said}{choose(fast[i], choose(some, f' or {name}', name), '')}"
            some = fast[i] | some
        return said

    def folds(self):
        """Whether halving-doubling must fold ranks: for counts that are no power of two."""
        passed, sent = collectives.halving_doubling_buffers(self.ranks)
        return passed > sent

    def start_share(self):
        starts_s = np.stack(self.times_s(0.0))
        return collectives.latency_share(self.best_s(), np.sum(np.where(np.arange(4) == self.fastest(), starts_s, 0.0)))

    def flat_wire(self):
        return collectives.flat_wire(self.ranks, *self.wires())

    def inside(self):
        return self.ranks <= self.per_node

    def crossover_bytes(self):
        return collectives.ring_tree_crossover_bytes(self.ranks, *self.flat_wire())

    def half_bytes(self):
        return collectives.half_latency_bytes(self.size, self.start_share())

    def height(self, ranks, size, time_s):
        """What is drawn upwards: the time, or the bus bandwidth."""
        return np.where(self.view == 1, collectives.bus_bandwidth("all_reduce", ranks, size, time_s), time_s)

    def heights(self, size):
        return [self.height(self.ranks, size, time_s) for time_s in self.times_s(size)]

    # -- the picture ------------------------------------------------------------------------------------------------
    @part("view", "ranks", *WIRES)
    def curves(self):
        return {"size": SIZES, **dict(zip(("ring", "tree", "doubling", "levels"), self.heights(SIZES)))}

    @part("view", "ranks", *WIRES, shown=False)
    def names(self):
        rising = self.view == 1
        at = np.where(rising, RISING_NAMED_AT, NAMED_AT)
        ring, tree, doubling, levels = self.heights(at)
        times_s = self.times_s(at)
        lowest = times_s[1][1] < times_s[3][1]  # then its name has more room under its line
        return {"size": at, "y": np.stack([ring[0], tree[1], doubling[2], levels[3]]),
                "shift": np.where(rising, RISING_SHIFT, np.stack([-11.0, np.where(lowest, 14.0, -11.0), -11.0, 14.0])),
                "align": ["left", choose(rising, "right", "left"), "right", choose(rising, "right", "left")],
                "narrow": ["ring", "tree", choose(self.folds(), NAMES[2], ""), choose(self.inside(), "", NAMES[3])],
                "text": [choose(self.inside(), "ring, two levels", "ring"),
                         choose(self.folds() & rising, "tree", "tree, halving-doubling"),
                         choose(self.folds(), NAMES[2], ""), choose(self.inside(), "", NAMES[3])]}

    @part("view", "size", "ranks", *WIRES)
    def marks(self):
        best = collectives.as_fast(self.at_size_s(), self.best_s())
        return {"name": NAMES, "size": np.broadcast_to(self.size, (4,)), "y": np.stack(self.heights(self.size)),
                "time_s": self.at_size_s(), "dot": np.where(best, 14.0, 7.0),
                "wire": [choose(self.inside(), "link", "network") for _ in NAMES]}

    @part("size", shown=False)
    def chosen(self):
        return {"size": self.size}

    @part("view", "ranks", *WIRES)
    def crossing(self):
        at = self.crossover_bytes()
        seen, place = (at > SMALLEST) & (at < LARGEST), np.clip(at, SMALLEST, LARGEST)
        text = choose(seen, f"ring = tree at {show(at, 'bytes')}", "")
        return {"size": place, "y": self.heights(place)[0], "seen": np.where(seen, 1.0, 0.0), "text": text,
                "narrow": choose(self.view == 1, "", text), "shift": np.where(self.view == 1, -24.0, -10.0)}

    @part("view", "size", "ranks", *WIRES)
    def zone(self):
        rising = self.view == 1
        return {"end": np.clip(self.half_bytes(), SMALLEST, LARGEST), "half_latency_bytes": self.half_bytes(),
                "y": np.where(rising, TOP, BOTTOM), "shift": np.where(rising, 12.0, -11.0)}

    @part("view", "ranks", *WIRES)
    def wire(self):
        rate, _ = self.flat_wire()
        text = f"{choose(self.inside(), 'link', 'one NIC')}: {show(rate, 'bytes_per_s')}"
        return {"bytes_per_s": rate, "seen": np.where(self.view == 1, 1.0, 0.0),
                "text": choose(self.view == 1, text, "")}

    @part("measured", "view", tabulated=True)
    def points(self):
        sweep = self.measured
        sizes, times_s = np.array(sweep.sizes_bytes, dtype=float), np.array(sweep.times_s, dtype=float)
        last = np.flip(np.arange(len(sizes))) == 0
        return {"size": sizes, "y": self.height(sweep.ranks, sizes, times_s) if sizes.size else times_s,
                "time_s": times_s, "shift": np.full(len(sizes), np.where(self.view == 1, 16.0, -14.0)),
                "text": [f"measured: {sweep.name}" if here else "" for here in last]}

    def ranges(self):
        longest = fig.fitting_view(np.max(np.stack(self.times_s(LARGEST))), VIEWS_S)
        return {"y": [np.where(self.view == 1, 1e5, BOTTOM), np.where(self.view == 1, TOP, longest)]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((SMALLEST, LARGEST), (BOTTOM, VIEWS_S[0]), height=430, x_log=True, y_log=True, x_title="Buffer")
        fig.ticks(p.xaxis[0], [1e3, 1e5, 1e7, 1e9], "bytes")
        fig.two_scales(p.yaxis[0], {"seconds": [10.0**k for k in range(-6, 3)],
                                    "bytes_per_s": [10.0**k for k in range(5, 13)]})
        p.quad(left=SMALLEST, right="end", bottom=BOTTOM, top=TOP, source=sources["zone"], fill_color=color["idle"],
               fill_alpha=0.1, line_color=None)
        for width, words in (("wide", "start-ups are the larger half"), ("narrow", "mostly start-ups")):
            fig.only(width, p.text(SMALLEST * 1.3, "y", text=value(words), y_offset="shift", source=sources["zone"],
                                   **fig.LABEL))
        p.segment("size", BOTTOM, "size", TOP, source=sources["chosen"], line_color=color["ink-faint"],
                  line_dash=[6, 4])
        p.segment(SMALLEST, "bytes_per_s", LARGEST, "bytes_per_s", source=sources["wire"], line_alpha="seen",
                  line_color=color["ink-faint"], line_dash=[2, 4], line_width=2)
        p.text(SMALLEST * 1.3, "bytes_per_s", text="text", source=sources["wire"], y_offset=-10, **fig.LABEL)
        for column, dash, width in (("ring", "solid", 2.5), ("tree", "dashed", 1.8), ("doubling", "dotted", 2.5),
                                    ("levels", "dotdash", 1.8)):
            p.line("size", column, source=sources["curves"], line_color=color["ink"], line_dash=dash, line_width=width)
        place = {"x": "size", "y": "y"}
        p.scatter(**place, source=sources["points"], size=8, fill_color=color["panel"], line_color=color["accent"],
                  line_width=1.8)
        p.text(**place, text="text", source=sources["points"], y_offset="shift", text_align="right",
               **fig.BOLD | {"text_color": color["accent"]})
        p.scatter(**place, size="dot", source=sources["marks"], line_color=color["panel"],
                  fill_color=fig.hues("wire", {"link": "link", "network": "network"}))
        p.scatter(**place, source=sources["crossing"], marker="diamond", size=13, fill_color=color["panel"],
                  fill_alpha="seen", line_color=color["ink"], line_alpha="seen", line_width=2)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(**place, text=column, source=sources["crossing"], text_align="right", x_offset=-12,
                                   y_offset="shift", **fig.TEXT))
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(**place, text=column, source=sources["names"], y_offset="shift", text_align="align",
                                   **fig.BOLD))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Ring")
    def ring(self):
        return show(self.at_size_s()[0], "seconds")

    @readout("Tree")
    def tree(self):
        return show(self.at_size_s()[1], "seconds")

    @readout("Halving-doubling")
    def halving_doubling(self):
        return show(self.at_size_s()[2], "seconds")

    @readout("Two levels")
    def two_levels(self):
        return show(self.at_size_s()[3], "seconds")

    @readout("Algorithm bandwidth")
    def algorithm_bandwidth(self):
        return show(collectives.algorithm_bandwidth(self.size, self.best_s()), "bytes_per_s")

    @readout("Bus bandwidth")
    def bus_bandwidth(self):
        return show(collectives.bus_bandwidth("all_reduce", self.ranks, self.size, self.best_s()), "bytes_per_s")

    @readout("Spent on start-ups")
    def starting(self):
        return show(self.start_share(), "percent"), self.start_share() > 0.9

    @regime(target=True)
    def latency(self):
        return self.start_share() > 0.9, (
            f"Latency is everything: {show(self.start_share(), 'percent')} of the {show(self.best_s(), 'seconds')} "
            f"by {self.leader()} are start-ups, and a ring would take "
            f"{show(self.at_size_s()[0], 'seconds')}. First response: fuse small buffers into one bucket (lesson "
            f"04); below {show(self.half_bytes(), 'bytes')} start-ups are the larger half.")

    @regime()
    def bandwidth(self):
        return self.start_share() < 0.1, (
            f"Bandwidth is everything: start-ups are {show(self.start_share(), 'percent')} of the "
            f"{show(self.best_s(), 'seconds')} by {self.leader()}. First response: send fewer bytes "
            "(16 bits, or ReduceScatter alone), or keep them on faster wires (lesson 03).")

    def summary(self):
        ring, tree, doubling, levels = (show(time_s, "seconds") for time_s in self.at_size_s())
        dots = choose(self.measured.ranks > 0, f"; the dots, {self.measured.name}: {self.measured.note}", ".")
        return (f"An AllReduce of {show(self.size, 'bytes')} over {show(self.ranks, 'count')} ranks takes {ring} by "
                f"a ring, {tree} by a tree, {doubling} by halving-doubling and {levels} in two levels; of the "
                f"fastest, {show(self.start_share(), 'percent')} is start-ups{dots}")
