"""An AllReduce over the size of its buffer, by four algorithms: where start-ups end and bandwidth begins."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.mechanism import collectives, start_ups
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, phrase, show
from widgets.kit.widget import Widget, hint, part, readout, regime

SMALLEST, LARGEST = 1e3, 2e10
SIZES = np.geomspace(SMALLEST, LARGEST, 74)
STOPS = fig.one_two_five(SMALLEST, LARGEST)
VIEWS_S = [1e-1, 1.0, 1e1, 1e2]
BOTTOM, TOP = 1e-7, 4e12  # of both views, in SI: seconds up to 100, bytes per second from 100,000
RANK_STOPS = sorted(
    {n for k in range(15) for n in (2**k, 5 * 2**k // 4, 3 * 2**k // 2, 7 * 2**k // 4) if 2 <= n <= 2**14}
)
NAMES = ["ring", "tree", "halving-doubling", "two levels"]
NAMED_AT = np.array([1.3e3, 1.3e3, 1.6e10, 2e5])  # where the lines' names stand, in the order of NAMES
RISING_NAMED_AT, RISING_SHIFT = (
    np.array([1.3e3, 2e6, 1.6e10, 1.6e10]),
    np.array([14.0, -11.0, 14.0, -11.0]),
)  # rising
HALFWAY = (SMALLEST * LARGEST) ** 0.5  # of the axis: up to there a label has room on its right
LATE = 1e9  # from there on a label at the top keeps clear of the rising lines
NVLINK, NETWORK = catalog.link("nvlink4"), catalog.link("ib-ndr")
WIRES = ["per_node", "link_bytes_per_s", "link_alpha_s", "nic_bytes_per_s", "nic_alpha_s"]
A100 = {
    "ranks": 8,
    "per_node": 8,
    "view": "bandwidth",
    "link_bytes_per_s": 300e9,
    "link_alpha_s": start_ups.hop_s(catalog.link("nvlink3")),
}
H100 = {"ranks": 8, "per_node": 8, "view": "bandwidth"}


class CollectiveCost(Widget):
    question = "Which AllReduce is fastest, and up to which size does the size not matter?"
    size = Number("Buffer", 1e6, SMALLEST, 16e9, family="bytes", stops=80, marks=(64e3, 64e6, 1e9))
    ranks = Number("Ranks", 64, 2, 2**14, stops=RANK_STOPS, whole=True)
    view = Choice("Show", {"time": ("time", 0), "bandwidth": ("bus bandwidth", 1)}, "time")
    operation = Choice("Operation", list(collectives.TEXTBOOK), "all_reduce", more=True)
    per_node = Number(
        "GPUs in a node",
        1,
        1,
        72,
        stops=[1, 2, 4, 8, 16, 32, 72],
        whole=True,
        more=True,
        help="All of them on one link, each with a NIC of its own; with 1, every hop is over the network",
    )
    link_bytes_per_s = Number(
        "Link, one way", NVLINK.bytes_per_s, 10e9, 1e12, family="bytes_per_s", marks=(300e9, 900e9), more=True
    )
    link_alpha_s = Number(
        "Link, start-up", start_ups.hop_s(NVLINK), 0.5e-6, 50e-6, family="seconds", more=True
    )
    nic_bytes_per_s = Number(
        "NIC of each GPU",
        NETWORK.bytes_per_s,
        1.25e9,
        200e9,
        family="bytes_per_s",
        marks=(12.5e9, 25e9, 100e9),
        more=True,
    )
    nic_alpha_s = Number(
        "Network, start-up", start_ups.hop_s(NETWORK), 1e-6, 200e-6, family="seconds", more=True
    )
    dots = Dots()

    presets = {
        "1 MB on 64 ranks": {},
        "1 MB on 1,024 ranks": {"ranks": 1024},
        "1 GB on 1,024 ranks": {"size": 1e9, "ranks": 1024},
        "1 GB on 1,024 ranks in nodes of 8": {"size": 1e9, "ranks": 1024, "per_node": 8},
        "8 A100, measured": A100,
        "8 H100, measured": H100,
    }
    break_it = "Make the bytes not matter at all. What is the time made of then?"
    assumptions = (
        "The textbook forms: wires busy both ways at once, chunks that cost nothing, no sum to compute. All "
        "algorithms run on the same nodes, with a NIC for each GPU. The ring goes through whole nodes, a "
        "ring for each NIC; the tree has a tree in each node and one across; halving begins with the nearest "
        "rank. Start-ups are those of NCCL's protocol for small messages. What each call pays once (5 µs on "
        "an H100) is left out, and so are the protocols for larger messages, which start later: NCCL takes "
        "up to twice as long. Its tree is a chain inside a node, and it has no halving-doubling. Two levels "
        "run one after the other. A node that is partly filled counts as full, except for the ring's hops. "
        "A ReduceScatter and an AllGather are the halves of an AllReduce, in half the time each; a tree's "
        "halves are a Reduce and a Broadcast. The hollow points are published measurements within one node "
        "of such links, each with its own software; the switches of H100 and later add up by themselves "
        "(NCCL's NVLS, lesson 03), which no curve here does."
    )
    formula = (
        r"$$\tau_\text{ring} = \frac{2(N-1)}{N}\frac{S}{W} + 2(N-m)\,\alpha_\text{link} + "
        r"2(m-1)\,\alpha_\text{card}$$"
        "\n\n"
        r"$$\tau_\text{tree} = 2\,\frac{S}{W} + 2\lceil\log_2 g\rceil\,\alpha_\text{link} + "
        r"2\lceil\log_2 m\rceil\,\alpha_\text{card}$$"
        "\n\n"
        r"$$\tau_\text{two levels} = \frac{2(g-1)}{g}\frac{S}{W_\text{link}} + "
        r"\frac{2(m-1)}{m}\frac{S/g}{W_\text{card}} + 2(g-1)\,\alpha_\text{link} + "
        r"2(m-1)\,\alpha_\text{card}$$"
        "\n\nA buffer of $S$ bytes on $N$ ranks, $g$ of them in each of $m$ nodes; $W$ is "
        r"$W_\text{link}$ in one node, else the smaller of $g\,W_\text{card}$ and $W_\text{link}$. With a "
        "rank in each node these are lesson 02's rules of a single wire. Halving-doubling sends what two "
        "levels send, with the tree's start-ups, if $g$ and $m$ are powers of two; else the ranks beyond the "
        "power of two below hand their buffer over first and get the sum back at last. The ring overtakes "
        r"the tree where its start-ups take $2S/(NW)$ longer. nccl-tests divides $S$ by the time for the "
        "algorithm bandwidth and multiplies it by $2(N-1)/N$ for the bus bandwidth, which can be held "
        "against the wire for any $N$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def wires(self):
        return self.per_node, self.link_bytes_per_s, self.link_alpha_s, self.nic_bytes_per_s, self.nic_alpha_s

    def times_s(self, size):
        """The seconds that each algorithm takes, in the order of NAMES."""
        all_reduce_s = collectives.textbook_all_reduce_s(size, self.ranks, *self.wires())
        return tuple(self.operation.of_all_reduce * time_s for time_s in all_reduce_s)

    def at_size_s(self):
        return np.stack(self.times_s(self.size))

    def fastest(self):
        return np.argmin(self.at_size_s())

    def best_s(self):
        return np.min(self.at_size_s())

    def leader(self):
        """The name of the fastest, and of those that a model cannot tell from it.

        With a single kind of wire two levels are the ring, under whose name they go."""
        fast, said, some = collectives.as_fast(self.at_size_s(), self.best_s()), "", False
        fast = fast & ((np.arange(4) < 3) | self.two_kinds())
        for i, name in enumerate(NAMES):
            said = f"{said}{choose(fast[i], choose(some, f' or {name}', name), '')}"
            some = fast[i] | some
        return said

    def apart(self):
        """Whether halving-doubling starts or sends otherwise than the tree, in a way that can be seen."""
        passed, sent = collectives.halving_doubling_buffers(self.ranks)
        return (passed > sent) | self.two_kinds()

    def start_share(self):
        starts_s = np.stack(self.times_s(0.0))
        return np.sum(np.where(np.arange(4) == self.fastest(), starts_s, 0.0)) / self.best_s()

    def rate(self):
        """The slowest wire that a ring and a tree must pass."""
        _, between = collectives.ring_hops(self.ranks, self.per_node)
        return collectives.ring_bytes_per_s(
            self.per_node, between + 1.0, self.link_bytes_per_s, self.nic_bytes_per_s
        )

    def inside(self):
        return self.ranks <= self.per_node

    def two_kinds(self):
        """Whether hops are of two kinds: over the link, and from node to node."""
        return (self.ranks > self.per_node) & (self.per_node > 1)

    def one_kind(self):
        """The opposite. It is not ``~two_kinds()``, which of Python's own True is -2, and so is true."""
        return (self.ranks <= self.per_node) | (self.per_node <= 1)

    def crossover_bytes(self):
        ring_s, tree_s, *_ = collectives.textbook_all_reduce_s(0.0, self.ranks, *self.wires())
        return collectives.crossover_bytes(self.ranks, self.rate(), np.maximum(0.0, ring_s - tree_s))

    def half_bytes(self):
        return collectives.half_latency_bytes(self.size, self.start_share())

    def height(self, ranks, size, time_s):
        """What is drawn upwards: the time, or the bus bandwidth."""
        return np.where(self.view == 1, self.on_the_bus(ranks, size, time_s), time_s)

    def on_the_bus(self, ranks, size, time_s):
        """The bus bandwidth: half an AllReduce in half its time is as busy on the wire."""
        return collectives.bus_bandwidth("all_reduce", ranks, size, time_s / self.operation.of_all_reduce)

    def heights(self, size):
        return [self.height(self.ranks, size, time_s) for time_s in self.times_s(size)]

    # -- the picture -----------------------------------------------------------------------------------------
    @part("view", "operation", "ranks", *WIRES)
    def curves(self):
        return {"size": SIZES, **dict(zip(("ring", "tree", "doubling", "levels"), self.heights(SIZES)))}

    @part("view", "operation", "ranks", *WIRES, shown=False)
    def stops(self):
        """Stops for the keyboard along the curve of the fastest algorithm."""
        return {
            "x": STOPS,
            "y": self.height(self.ranks, STOPS, np.min(np.stack(self.times_s(STOPS)), axis=0)),
        }

    @hint("stops")
    def of_a_size(self):
        ring, tree, doubling, levels = (show(time_s, "seconds") for time_s in self.times_s(STOPS))
        return phrase(
            "{size}: {ring} by a ring, {tree} by a tree, {doubling} by halving-doubling, {levels} in two "
            "levels",
            size=show(STOPS, "bytes"),
            ring=ring,
            tree=tree,
            doubling=doubling,
            levels=levels,
        )

    @part("view", "operation", "ranks", *WIRES, shown=False)
    def names(self):
        rising = self.view == 1
        at = np.where(rising, RISING_NAMED_AT, NAMED_AT)
        ring, tree, doubling, levels = self.heights(at)
        times_s = self.times_s(at)
        # a name goes under its line where the line above it is another's
        tree_low, levels_low = (
            self.one_kind() | (times_s[1][1] < times_s[3][1]),
            times_s[3][3] <= times_s[0][3],
        )
        return {
            "size": at,
            "y": np.stack([ring[0], tree[1], doubling[2], levels[3]]),
            "shift": np.where(
                rising,
                RISING_SHIFT,
                np.stack([-11.0, np.where(tree_low, 14.0, -11.0), -11.0, np.where(levels_low, 14.0, -11.0)]),
            ),
            "align": ["left", choose(rising, "right", "left"), "right", choose(rising, "right", "left")],
            "narrow": [
                "ring",
                "tree",
                choose(self.apart(), NAMES[2], ""),
                choose(self.two_kinds(), NAMES[3], ""),
            ],
            "text": [
                choose(self.two_kinds(), "ring", "ring, two levels"),
                choose(self.apart() & rising, "tree", "tree, halving-doubling"),
                choose(self.apart(), NAMES[2], ""),
                choose(self.two_kinds(), NAMES[3], ""),
            ],
        }

    @part("view", "operation", "size", "ranks", *WIRES)
    def marks(self):
        best = collectives.as_fast(self.at_size_s(), self.best_s())
        return {
            "name": NAMES,
            "size": np.broadcast_to(self.size, (4,)),
            "y": np.stack(self.heights(self.size)),
            "time_s": self.at_size_s(),
            "dot": np.where(best, 14.0, 7.0),
            "wire": [choose(self.inside(), "link", "network") for _ in NAMES],
        }

    @hint("marks")
    def of_an_algorithm(self):
        """With a single kind of wire two levels are the ring, and stand under its mark."""
        times_s, starts_s = self.at_size_s(), np.stack(self.times_s(0.0))
        bus = self.on_the_bus(self.ranks, self.size, times_s)
        named = [
            choose(self.two_kinds(), "Ring", "Ring, and two levels"),
            "Tree",
            "Halving-doubling",
            "Two levels",
        ]
        said = [
            f"{named[i]}: {show(times_s[i], 'seconds')}, {show(starts_s[i], 'seconds')} of it start-ups; "
            f"{show(bus[i], 'bytes_per_s')} on the bus"
            for i in range(4)
        ]
        return [*said[:3], choose(self.two_kinds(), said[3], "")]

    def top(self):
        """Where the axis ends."""
        longest = fig.fitting_view(np.max(np.stack(self.times_s(LARGEST))), VIEWS_S)
        return np.where(self.view == 1, TOP, longest)

    @part("view", "size", "operation", "ranks", *WIRES, shown=False)
    def chosen(self):
        takes, starting = show(self.best_s(), "seconds"), show(self.start_share(), "percent")
        return {
            "size": self.size,
            "top": self.top(),
            "text": f"{self.leader()}: {takes}, {starting} of it start-ups",
            "narrow": f"{takes}, {starting} start-ups",
            "align": choose(self.size < HALFWAY, "left", "right"),
            "shift": np.where(self.size < HALFWAY, 6.0, np.where(self.size < LATE, -6.0, -60.0)),
        }

    @part("view", "operation", "ranks", *WIRES)
    def crossing(self):
        at = self.crossover_bytes()
        seen, place = (at > SMALLEST) & (at < LARGEST), np.clip(at, SMALLEST, LARGEST)
        text = choose(seen, f"ring = tree at {show(at, 'bytes')}", "")
        return {
            "size": place,
            "y": self.heights(place)[0],
            "seen": np.where(seen, 1.0, 0.0),
            "text": text,
            "narrow": choose(self.view == 1, "", text),
            "shift": np.where(self.view == 1, -24.0, -10.0),
        }

    @hint("crossing")
    def of_the_crossing(self):
        at = self.crossover_bytes()
        place = np.clip(at, SMALLEST, LARGEST)
        return [
            choose(
                (at > SMALLEST) & (at < LARGEST),
                f"At {show(at, 'bytes')} ring and tree both take {show(self.times_s(place)[0], 'seconds')}; "
                "the tree is faster below, the ring above",
                "",
            )
        ]

    @part("view", "operation", "size", "ranks", *WIRES)
    def zone(self):
        rising = self.view == 1
        return {
            "end": np.clip(self.half_bytes(), SMALLEST, LARGEST),
            "half_latency_bytes": self.half_bytes(),
            "text": f"below {show(self.half_bytes(), 'bytes')} start-ups are the larger half",
            "y": np.where(rising, TOP, BOTTOM),
            "shift": np.where(rising, 12.0, -11.0),
        }

    @part("view", "ranks", "per_node", "link_bytes_per_s", "nic_bytes_per_s")
    def wire(self):
        rate = self.rate()
        cards = choose(self.per_node > 1, f"{show(self.per_node, 'count')} NICs", "one NIC")
        slower = choose(self.inside() | (rate >= self.link_bytes_per_s), "link", cards)
        text = f"{slower}: {show(rate, 'bytes_per_s')}"
        return {
            "bytes_per_s": rate,
            "seen": np.where(self.view == 1, 1.0, 0.0),
            "text": choose(self.view == 1, text, ""),
        }

    @measured(
        ("collective_cost", "collective_halves"), "view", "operation", "ranks", "per_node", "link_bytes_per_s"
    )
    def points(self, of):
        sizes, ranks = of.column("bytes"), of.column("ranks")
        fits = of.of(operation=self.operation, ranks=self.ranks) & of.near(
            "link_bytes_per_s", self.link_bytes_per_s, 0.01
        )
        return Seen(
            fits & self.inside(),
            sizes,
            self.height(ranks, sizes, of.measured),
            sizes,
            self.height(ranks, sizes, of.ours),
        )

    def ranges(self):
        return {"y": [np.where(self.view == 1, 1e5, BOTTOM), self.top()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(
            (SMALLEST, LARGEST), (BOTTOM, VIEWS_S[0]), height=430, x_log=True, y_log=True, x_title="Buffer"
        )
        fig.ticks(p.xaxis[0], [1e3, 1e5, 1e7, 1e9], "bytes")
        fig.two_scales(
            p.yaxis[0],
            {"seconds": [10.0**k for k in range(-7, 3)], "bytes_per_s": [10.0**k for k in range(5, 13)]},
        )
        p.quad(
            left=SMALLEST,
            right="end",
            bottom=BOTTOM,
            top=TOP,
            source=sources["zone"],
            fill_color=color["idle"],
            fill_alpha=0.1,
            line_color=None,
        )
        for width, words in (("wide", "text"), ("narrow", value("mostly start-ups"))):
            fig.only(
                width,
                p.text(
                    SMALLEST * 1.3, "y", text=words, y_offset="shift", source=sources["zone"], **fig.LABEL
                ),
            )
        p.segment(
            "size",
            BOTTOM,
            "size",
            TOP,
            source=sources["chosen"],
            line_color=color["ink-faint"],
            line_dash=[6, 4],
        )
        at_top = {"text_align": "align", "x_offset": "shift", "y_offset": 14, "source": sources["chosen"]}
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text("size", "top", text=column, **at_top, **fig.BOLD))
        p.segment(
            SMALLEST,
            "bytes_per_s",
            LARGEST,
            "bytes_per_s",
            source=sources["wire"],
            line_alpha="seen",
            line_color=color["ink-faint"],
            line_dash=[2, 4],
            line_width=2,
        )
        p.text(SMALLEST * 1.3, "bytes_per_s", text="text", source=sources["wire"], y_offset=-10, **fig.LABEL)
        for column, dash, width in (
            ("ring", "solid", 2.5),
            ("tree", "dashed", 1.8),
            ("doubling", "dotted", 2.5),
            ("levels", "dotdash", 1.8),
        ):
            p.line(
                "size",
                column,
                source=sources["curves"],
                line_color=color["ink"],
                line_dash=dash,
                line_width=width,
            )
        fig.stops(p, sources["stops"])
        place = {"x": "size", "y": "y"}
        p.scatter(
            **place,
            size="dot",
            source=sources["marks"],
            line_color=color["panel"],
            fill_color=fig.hues("wire", {"link": "link", "network": "network"}),
        )
        fig.measured(p, sources["points"])
        p.scatter(
            **place,
            source=sources["crossing"],
            marker="diamond",
            size=13,
            fill_color=color["panel"],
            fill_alpha="seen",
            line_color=color["ink"],
            line_alpha="seen",
            line_width=2,
        )
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(
                    **place,
                    text=column,
                    source=sources["crossing"],
                    text_align="right",
                    x_offset=-12,
                    y_offset="shift",
                    **fig.TEXT,
                ),
            )
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(
                    **place,
                    text=column,
                    source=sources["names"],
                    y_offset="shift",
                    text_align="align",
                    **fig.BOLD,
                ),
            )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Ring", rest=True)
    def ring(self):
        return show(self.at_size_s()[0], "seconds")

    @readout("Tree")
    def tree(self):
        return show(self.at_size_s()[1], "seconds")

    @readout("Halving-doubling", rest=True)
    def halving_doubling(self):
        return show(self.at_size_s()[2], "seconds")

    @readout("Two levels", rest=True)
    def two_levels(self):
        return show(self.at_size_s()[3], "seconds")

    @readout("Algorithm bandwidth", rest=True)
    def algorithm_bandwidth(self):
        return show(collectives.algorithm_bandwidth(self.size, self.best_s()), "bytes_per_s")

    @readout("Bus bandwidth")
    def bus_bandwidth(self):
        return show(self.on_the_bus(self.ranks, self.size, self.best_s()), "bytes_per_s")

    @readout("Spent on start-ups")
    def starting(self):
        return show(self.start_share(), "percent"), self.start_share() > 0.9

    @regime(target=True)
    def latency(self):
        return self.start_share() > 0.9, (
            f"Latency is everything: {show(self.start_share(), 'percent')} of the "
            f"{show(self.best_s(), 'seconds')} by {self.leader()} are start-ups, and a ring would take "
            f"{show(self.at_size_s()[0], 'seconds')}. First response: fuse small buffers into one bucket "
            f"(lesson 04); below {show(self.half_bytes(), 'bytes')} start-ups are the larger half."
        )

    @regime()
    def bandwidth(self):
        half = choose(self.operation.of_all_reduce > 0.5, ", or ReduceScatter alone", "")
        return self.start_share() < 0.1, (
            f"Bandwidth is everything: start-ups are {show(self.start_share(), 'percent')} of the "
            f"{show(self.best_s(), 'seconds')} by {self.leader()}. First response: send fewer bytes "
            f"(16 bits{half}), or keep them on faster wires (lesson 03)."
        )

    def summary(self):
        nodes = choose(self.two_kinds(), f" in nodes of {show(self.per_node, 'count')}", "")
        takes = f"takes {show(self.best_s(), 'seconds')} ({self.leader()})"
        return (
            f"{self.operation.said} of {show(self.size, 'bytes')} over {show(self.ranks, 'count')} "
            f"ranks{nodes} {takes}, {show(self.start_share(), 'percent')} of it start-ups."
        )


CollectiveCost.serve_as(__name__)
