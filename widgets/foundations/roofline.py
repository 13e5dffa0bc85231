"""The roofline of a GPU with a network ceiling: which ceiling limits each piece of real work."""

import numpy as np
from bokeh.core.properties import value
from bokeh.transform import factor_mark

from engine import catalog
from engine.catalog import hardware
from engine.mechanism import memory, roofline, walls
from engine.one_gpu import measure
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import beside
from widgets.kit.drawing import figure as fig
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, select, show
from widgets.kit.widget import Widget, action, hint, part, readout, regime

VALUE_BYTES = [memory.BYTES_PER_VALUE[precision] for precision in hardware.PRECISIONS]
LINKS = [catalog.link(key) for key in ("eth-10", "eth-25", "eth-100", "ib-hdr", "ib-ndr", "ib-xdr")]
ALL_NICS, ONE_NIC, TWO_NICS, OWN_LINK = range(4)
WIRES = {
    "node": "all NICs of a node",
    "nic": "one NIC of each node",
    "two": "two NICs of each node",
    "link": "the node's own link",
} | {link.key: link.name for link in LINKS}
MODELS = [
    catalog.model(key)
    for key in ("llama3-8b", "llama3-70b", "llama3.1-405b", "gpt3-175b", "mixtral-8x7b", "qwen3-235b-a22b")
]
HUES = {"compute": "compute", "memory": "hbm", "network": "network", "link": "link"}
SHAPES = ("square", "circle", "triangle", "triangle")
SLOWEST, CROWDED, FASTEST = (
    0.3,
    1.5e4,
    2e6,
)  # FLOPs per byte: the ends of the axis, and where its right edge is near
VIEWS_FLOPS_PER_S = [1.5e16, 1.5e17, 1e18]
INSIDE = beside.Frame(78.0, 376.0)
# where the name of a mark may stand: right below a mark on a slope or left above it, so that its line passes
# between, and above a mark on the roof
SPOTS = tuple(
    beside.Spot(end, across, down)
    for end, across in ((beside.LEFT, 10.0), (beside.RIGHT, -10.0))
    for down in (12.0, 32.0, 52.0, 72.0, -16.0, -36.0, -56.0)
)
UNDER, OVER = (
    np.array([0.0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 4, 5, 6]),
    np.array([4.0, 5, 6, 7, 0, 1, 2, 12, 13, 14, 15, 8, 9, 10]),
)
WORK_PX = {
    "wide": (
        "attention in decode",
        "decode, batch 32: 10.8 % of peak",
        "prefill, 2,048 tokens",
        "training step",
    ),
    "narrow": ("attention", "decode", "prefill", "AllReduce"),
}
NAMES_PX = {
    width: np.array([beside.width(name) for name in names])
    for width, names in {
        "wide": ("compute 989 TFLOP/s in bf16", "HBM 3.35 TB/s", "wire 400 GB/s"),
        "narrow": ("989 TFLOP/s", "3.35 TB/s", "400 GB/s"),
    }.items()
}
DECADES = 6.2  # of FLOP/s in view
CLEAR = 1.25  # decades from the start of the HBM's line up to its name, which ends where the line has risen


class Roofline(Widget):
    question = "Which ceiling does each piece of work meet: compute, memory or the network?"
    gpu = Choice("GPU", list(catalog.all_gpus().values()), "h100-sxm")
    batch = Number("Decode batch", 32, 1, 4096, whole=True, marks=(1, 8, 64, 128, 256, 512))
    network = Switch("Train over a network")
    precision = Choice(
        "Precision", {name: (name, i) for i, name in enumerate(hardware.PRECISIONS)}, "bf16", more=True
    )
    tokens = Number(
        "Training tokens on each GPU, a step",
        8192,
        64,
        1e6,
        whole=True,
        more=True,
        marks=(2048, 16384, 32768, 65536),
    )
    ranks = Number("GPUs in the AllReduce", 64, 2, 16384, whole=True, more=True, marks=(8, 512, 1024))
    wire = Choice(
        "Wire of the AllReduce",
        {key: (name, i) for i, (key, name) in enumerate(WIRES.items())},
        "node",
        more=True,
    )
    prompt = Number("Prompt, in tokens", 2048, 1, 131072, whole=True, more=True, marks=(8192, 32768))
    model = Choice("Model", MODELS, "llama3-70b", more=True)
    holders = Number("GPUs that serve it together", 2, 1, 1024, whole=True, more=True, marks=(1, 8, 64))
    context = Number(
        "Context of each user, in tokens", 8192, 128, 131072, whole=True, more=True, marks=(512, 32768)
    )
    dots = Dots(on=False)

    presets = {
        "H100, one reader": {"batch": 1},
        "H100, 256 readers": {"batch": 256},
        "Short chats on 8 H100s": {"batch": 256, "context": 512, "holders": 8},
        "1,024 tokens a step over a network": {"network": "on", "tokens": 1024},
        "A100 asked for fp8": {"gpu": "a100-80", "precision": "fp8"},
        "B200 in fp4": {"gpu": "b200", "precision": "fp4"},
        "10 Gb/s Ethernet": {"network": "on", "wire": "eth-10"},
    }
    break_it = "Make decode compute-bound, and see what its attention does meanwhile."
    assumptions = (
        "Peaks as the vendor states them, and bytes that move while the arithmetic runs: nothing here is "
        "faster, real kernels are slower. A training step over a network is on the axis at the FLOPs it "
        "does for each byte it sends."
    )
    formula = (
        r"$$\text{FLOP/s} \le \min\left(C,\; I \cdot W\right), \qquad I_\text{decode} = b, \quad "
        r"I_\text{attention} = \frac{a}{a_{kv}}, \quad I_\text{AllReduce} = "
        r"\frac{6\,T}{2\,\frac{N-1}{N}\cdot 2}$$"
        "\n\n"
        "$C$ is the peak, $W$ the bandwidth of HBM or of the wire, $I$ the FLOPs for each byte moved, with "
        "values of two bytes: with fp8 the first two double. There are $b$ sequences decoded together, $a$ "
        "query heads on $a_{kv}$ heads of keys and values, $T$ tokens on "
        "each of $N$ GPUs. The ridge is at $I = C / W$ (Williams, Waterman, Patterson, CACM 52(4), 2009).\n\n"
        "Decode counts the weights, read once for the batch; its attention reads each user's own KV cache. "
        "Users that fit: the HBM of the GPUs that serve together, less framework and weights, over one "
        "user's cache. Prefill and training are one matrix product as wide as the model.\n\n"
        "The AllReduce sums gradients of two bytes each, hidden behind the whole step. Within a node "
        "they have the link; across nodes, which count as full, all NICs of a node together, or the link "
        "where it is slower. An Ethernet or InfiniBand named alone is one card for each node."
    )

    # -- what the engine says --------------------------------------------------------------------------------
    def peak(self):
        return lookup(hardware.peaks_with_fallback(self.gpu), self.precision)

    def value_bytes(self):
        return lookup(VALUE_BYTES, self.precision)

    def wire_bytes_per_s(self):
        rings = [walls.ring_wire_bytes_per_s(self.gpu, self.ranks, nics) for nics in (None, 1, 2)]
        return lookup(
            np.stack([*rings, self.gpu.link_bytes_per_s, *[link.bytes_per_s for link in LINKS]]), self.wire
        )

    def stays_on_the_link(self):
        return (self.wire == OWN_LINK) | ((self.wire < OWN_LINK) & (self.ranks <= self.gpu.gpus_per_node))

    def asked_for(self):
        return select(self.precision, hardware.PRECISIONS)

    def computed_in(self):
        """The precision used instead where the chip lacks the chosen one."""
        return select(lookup(hardware.used_precisions(self.gpu), self.precision), hardware.PRECISIONS)

    def falls_back(self):
        return lookup(hardware.used_precisions(self.gpu), self.precision) != self.precision

    def intensities(self):
        """Attention, decode, prefill and the training step: FLOPs for each byte over HBM."""
        size, width = self.value_bytes(), self.model.hidden
        group = roofline.query_heads_per_kv_head(self.model)
        return np.stack(
            [
                roofline.decode_attention_flops_per_byte(group, size),
                roofline.decode_flops_per_byte(self.batch, size),
                roofline.matmul_flops_per_byte(self.prompt, width, width, size),
                roofline.matmul_flops_per_byte(self.tokens, width, width, size),
            ]
        )

    def places(self):
        """The intensity of each piece of work, which is its place on the axis; where training goes over a
        network, FLOPs for each byte sent."""
        over_hbm = self.intensities()
        sent = roofline.allreduce_flops_per_byte_sent(self.tokens, self.ranks)
        return np.append(over_hbm[:3], np.where(self.network, sent, over_hbm[3]))

    def ceilings(self):
        """A row for each piece of work: what compute, memory and network allow it."""
        over_hbm, places, hbm = self.intensities(), self.places(), self.gpu.hbm_bytes_per_s
        wires = np.stack([hbm, hbm, hbm, np.where(self.network, self.wire_bytes_per_s(), hbm)])
        return roofline.ceilings_flops_per_s(over_hbm, places, self.peak(), hbm, wires)

    def bounds(self, ceilings):
        """The name of the ceiling that each piece of work meets."""
        binding = roofline.binding_ceiling(ceilings)
        return [select(binding[i], roofline.CEILINGS) for i in range(4)]

    def users_that_fit(self):
        size = self.value_bytes()
        return roofline.held_sequences(self.model, self.context, self.gpu, self.holders, size, size)

    def critical_batch(self):
        return roofline.critical_batch(self.peak(), self.gpu.hbm_bytes_per_s, self.value_bytes())

    def view_flops_per_s(self):
        return fig.fitting_view(self.peak(), VIEWS_FLOPS_PER_S, headroom=55)

    # -- what is drawn ---------------------------------------------------------------------------------------
    @part("gpu", "precision")
    def memory_roof(self):
        peak, hbm = self.peak(), self.gpu.hbm_bytes_per_s
        x = np.stack([SLOWEST, roofline.ridge_flops_per_byte(peak, hbm)])
        return {"x": x, "y": roofline.attainable_flops_per_s(x, peak, hbm), "floor": [1.0, 1.0]}

    @hint("memory_roof")
    def of_the_ridge(self):
        ridge = roofline.ridge_flops_per_byte(self.peak(), self.gpu.hbm_bytes_per_s)
        return [
            "",
            (
                f"Ridge: below {show(ridge, 'flops_per_byte')} the HBM of {self.gpu.name} limits what it "
                "computes, from there on its peak"
            ),
        ]

    @part("gpu", "precision")
    def compute_roof(self):
        ridge = roofline.ridge_flops_per_byte(self.peak(), self.gpu.hbm_bytes_per_s)
        return {
            "x": np.stack([ridge, FASTEST]),
            "y": np.stack([self.peak(), self.peak()]),
            "floor": [1.0, 1.0],
        }

    @part("gpu", "precision", "wire", "network", "ranks")
    def network_roof(self):
        wire = self.wire_bytes_per_s()
        return {
            "x": SLOWEST,
            "y": roofline.network_ceiling_flops_per_s(SLOWEST, wire),
            "ridge": roofline.ridge_flops_per_byte(self.peak(), wire),
            "peak": self.peak(),
            "kind": choose(self.stays_on_the_link(), "link", "network"),
            "alpha": np.where(self.network, 1, 0),
        }

    @part("gpu", "precision", "wire", "network", "ranks")
    def names(self):
        peak, hbm, wire = self.peak(), self.gpu.hbm_bytes_per_s, self.wire_bytes_per_s()
        under_wire = fig.decades_below(peak, 2.4)
        start = roofline.attainable_flops_per_s(SLOWEST, peak, hbm)
        above_hbm = fig.decades_below(start, -CLEAR)  # above its line, since the wire's is below
        x = np.stack([SLOWEST, SLOWEST, roofline.ridge_flops_per_byte(under_wire, wire)])
        short = [
            show(peak, "flops_per_s"),
            show(hbm, "bytes_per_s"),
            choose(self.network, show(wire, "bytes_per_s"), ""),
        ]
        asked = self.asked_for()
        precision = choose(self.falls_back(), f": no {asked}, so {self.computed_in()}", f" in {asked}")
        return {
            "x": np.maximum(x, SLOWEST),
            "y": np.stack([peak, above_hbm, under_wire]),
            "name": [
                f"compute {short[0]}{precision}",
                f"HBM {short[1]}",
                choose(self.network, f"wire {short[2]}", ""),
            ],
            "short": short,
            "down": np.array([-11.0, 0.0, 15.0]),
        }

    @part("gpu", "precision", "wire", "network", "ranks")
    def ridges(self):
        peak, view = self.peak(), self.view_flops_per_s()
        ridges = np.stack(
            [
                roofline.ridge_flops_per_byte(peak, self.gpu.hbm_bytes_per_s),
                roofline.ridge_flops_per_byte(peak, self.wire_bytes_per_s()),
            ]
        )
        return {
            "x": ridges,
            "peak": np.stack([peak, peak]),
            "floor": [1.0, 1.0],
            "row": fig.decades_below(view, [5.62, 5.3]),
            "alpha": np.stack([1.0, np.where(self.network, 1.0, 0.0)]),
            "name": [
                f"ridge {show(ridges[0], 'flops_per_byte')}",
                choose(self.network, f"ridge {show(ridges[1], 'flops_per_byte')}", ""),
            ],
            "short": [show(ridges[0], "count"), choose(self.network, show(ridges[1], "count"), "")],
            "align": [self.side(ridges[i]) for i in range(2)],
            "right": np.where(ridges > CROWDED, -6, 6),
        }

    @part("gpu", "precision")
    def sides(self):
        ridge = roofline.ridge_flops_per_byte(self.peak(), self.gpu.hbm_bytes_per_s)
        return {"x": ridge, "y": fig.decades_below(self.view_flops_per_s(), 5.95)}

    @part("gpu", "precision", "batch", "network", "tokens", "ranks", "wire", "prompt", "model")
    def work(self):
        x, ceilings = self.places(), self.ceilings()
        bound = self.bounds(ceilings)
        share = show(roofline.attained_share(ceilings, self.peak())[1], "percent")
        over_link = self.stays_on_the_link() & (roofline.binding_ceiling(ceilings)[3] == 2)
        return {
            "x": x,
            "y": np.min(ceilings, axis=-1),
            "bound": [*bound[:3], choose(over_link, "link", bound[3])],
            "name": [
                "attention in decode",
                f"decode, batch {show(self.batch, 'count')}: {share} of peak",
                f"prefill, {show(self.prompt, 'count')} tokens",
                "training step",
            ],
            "short": ["attention", "decode", "prefill", choose(self.network, "AllReduce", "training")],
            **self.names_of_work("wide"),
            **self.names_of_work("narrow"),
        }

    def at(self, flops_per_byte, flops_per_s):
        """Where a point of the plot lies, as shares of the frame."""
        view = self.view_flops_per_s()
        floor = fig.decades_below(view, DECADES)
        return (
            fig.share_of_decades(flops_per_byte, SLOWEST, FASTEST),
            fig.share_of_decades(flops_per_s, floor, view),
        )

    def names_of_work(self, width):
        """Where the name of each piece of work stands, off the other names and marks."""
        ceilings, names = self.ceilings(), self.names()
        x, y = self.at(self.places(), np.min(ceilings, axis=-1))
        # what is on a slope is named under it, and so is a prefill on the roof
        over = (roofline.binding_ceiling(ceilings) == 0) & (np.arange(4) != 2)
        lines = beside.words(
            *self.at(names["x"], names["y"]), NAMES_PX[width], beside.LEFT, 6.0, names["down"]
        )
        taken, columns = [beside.marks(x, y, 8.0), lines], []
        for i, name in enumerate(WORK_PX[width]):
            order = np.where(over[i], OVER, UNDER)
            px, around = beside.width(name), beside.together(*taken)
            found, box = beside.spot(x[i], y[i], px, SPOTS, INSIDE, around, of=width, order=order)
            columns.append(found)
            taken.append(box)
        return beside.rows(columns)

    @hint("work")
    def of_a_piece_of_work(self):
        x, ceilings = self.places(), self.ceilings()
        attained, shares = np.min(ceilings, axis=-1), roofline.attained_share(ceilings, self.peak())
        names = [
            "Attention in decode",
            f"Decode of {self.users(self.batch)}",
            f"Prefill of {show(self.prompt, 'count')} tokens",
            "Training step",
        ]
        through = ["HBM", "HBM", "HBM", choose(self.network, "the wire", "HBM")]
        return [
            f"{names[i]}: {show(x[i], 'flops_per_byte')} through {through[i]}, so at most "
            f"{show(attained[i], 'flops_per_s')}, {show(shares[i], 'percent')} of the peak"
            for i in range(4)
        ]

    @measured("roofline", "gpu", "precision")
    def products(self, of):
        """Matrix products that were timed alone, few rows and many."""
        narrow = [hardware.PRECISIONS.index(point.at["precision"]) for point in of.all]
        sizes = of.column("m"), of.column("k"), of.column("n")
        x = roofline.matmul_flops_per_byte(*sizes, np.array([VALUE_BYTES[i] for i in narrow]))
        fits = of.of(gpu=self.gpu) & (np.array(narrow, dtype=float) == self.precision)
        return Seen(fits, x, of.measured, x, of.ours)

    @part("gpu", "precision", "dots", shown=False)
    def products_named(self):
        named = Roofline.products.measured_by.named(self, "○ a matrix product, measured")
        return {"x": FASTEST, "row": fig.decades_below(self.view_flops_per_s(), 4.6), "text": named}

    def side(self, x):
        """Near the right edge a label stands on the left of its line."""
        return choose(x > CROWDED, "right", "left")

    # -- what is said ----------------------------------------------------------------------------------------
    def bound_and_share(self, i):
        ceilings = self.ceilings()
        bound = select(roofline.binding_ceiling(ceilings)[i], roofline.CEILINGS)
        return f"{bound}, {show(roofline.attained_share(ceilings, self.peak())[i], 'percent')}"

    def users(self, count):
        return f"{show(count, 'count')}{choose(count == 1, ' user', ' users')}"

    def servers(self):
        return choose(
            self.holders > 1, f"{show(self.holders, 'count')} × {self.gpu.name}", f"one {self.gpu.name}"
        )

    @readout("Decode, share of peak", rest=True)
    def decode(self):
        return self.bound_and_share(1)

    @readout("Attention in decode")
    def attention(self):
        return self.bound_and_share(0)

    @readout("Prefill", rest=True)
    def prefill(self):
        return self.bound_and_share(2)

    @readout("Training step", rest=True)
    def training(self):
        return self.bound_and_share(3)

    @readout("Batch that fills the chip")
    def filling_batch(self):
        return show(self.critical_batch(), "count")

    @readout("Users that fit in HBM")
    def fitting_batch(self):
        users = self.users_that_fit()
        return show(users, "count"), users < self.batch

    @regime(target=True)
    def decode_computes(self):
        ceilings, fitting = self.ceilings(), self.users_that_fit()
        attention = roofline.attained_share(ceilings, self.peak())[0]
        held = choose(
            fitting < self.batch, "And the HBM does not hold that many.", "And the HBM holds that many."
        )
        return roofline.binding_ceiling(ceilings)[1] == 0, (
            f"Decode is compute-bound: from {show(self.critical_batch(), 'count')} sequences on, this chip "
            f"computes longer than it reads its weights. {held} Attention in decode has not moved: "
            f"{self.bounds(ceilings)[0]}-"
            f"bound at {show(attention, 'percent')} of the peak, since no batch shares a KV cache; the "
            "longer the context, the more of the step is its. First response: stop growing the batch, and "
            "shrink the cache (grouped heads, fewer bits)."
        )

    @regime()
    def batch_does_not_fit(self):
        fitting = self.users_that_fit()
        return fitting < self.batch, (
            f"The memory wall comes before that batch: beside the weights of {self.model.name} the HBM of "
            f"{self.servers()} has room for {self.users(fitting)} with {show(self.context, 'count')} tokens "
            f"each, of the {show(self.batch, 'count')} asked for and the "
            f"{show(self.critical_batch(), 'count')} that would fill the chip. First response: more GPUs, a "
            "shorter context, or a smaller cache (grouped heads, fewer bits)."
        )

    @regime()
    def network_binds(self):
        ceilings = self.ceilings()
        allowed = roofline.attained_share(ceilings, self.peak())[3]
        return roofline.binding_ceiling(ceilings)[3] == 2, (
            f"The network is the wall of the training step: the AllReduce allows {show(allowed, 'percent')} "
            f"of the peak. First response: more than {show(self.tokens, 'count')} tokens on each GPU and "
            "step, by a larger batch, or by accumulating gradients, which sends less often but hides no more "
            f"(lesson 04); {show(self.tokens / allowed, 'count')} reach the ridge."
        )

    def ranges(self):
        view = self.view_flops_per_s()
        return {"y": [fig.decades_below(view, DECADES), view]}

    def summary(self):
        bound, shares = self.bounds(self.ceilings()), roofline.attained_share(self.ceilings(), self.peak())
        wire = choose(self.stays_on_the_link(), "the node's link", "the network")
        by = choose(roofline.binding_ceiling(self.ceilings())[3] == 2, wire, bound[3])
        at = choose(self.falls_back(), f"Without {self.asked_for()}, at", "At")
        return (
            f"{at} batch {show(self.batch, 'count')}, decode reaches at most {show(shares[1], 'percent')} of "
            f"peak, bound by {bound[1]}; training {show(shares[3], 'percent')}, by {by}."
        )

    @action("Measure this machine", columns=("x", "y", "name"))
    def this_machine(self, longest_s):
        found = measure.machine_apart(longest_s)
        ridge = roofline.ridge_flops_per_byte(found.flops_per_s, found.bytes_per_s)
        x = np.array([SLOWEST, ridge, FASTEST])
        y = roofline.attainable_flops_per_s(x, found.flops_per_s, found.bytes_per_s)
        reached = f"{show(found.flops_per_s, 'flops_per_s')} and {show(found.bytes_per_s, 'bytes_per_s')}"
        return {
            "columns": {"x": x, "y": y, "name": ["", "this machine", ""]},
            "ranges": {"y": [fig.decades_below(y[0], 0.3), y[1]]},
            "words": f"The machine behind this page, on {show(found.cores, 'count')} cores: {reached} by "
            "numpy in "
            f"fp32; its ridge is at {show(ridge, 'flops_per_byte')}.",
        }

    def figure(self, sources):
        p = fig.plot(
            (SLOWEST, FASTEST),
            (1e11, 1.5e17),
            height=440,
            x_log=True,
            y_log=True,
            x_title="FLOPs for each byte moved or sent",
        )
        fig.ticks(p.xaxis[0], 10.0 ** np.arange(0, 7), "params")
        fig.ticks(p.yaxis[0], 10.0 ** np.arange(8, 17), "flops_per_s")
        color = fig.COLOR
        over_lines = fig.TEXT | fig.OVER_LINES
        soft = over_lines | {"text_color": color["ink-soft"]}
        for roof, token in (("memory_roof", "hbm"), ("compute_roof", "compute")):
            p.varea("x", "floor", "y", source=sources[roof], fill_color=color[token], fill_alpha=0.06)
            p.line("x", "y", source=sources[roof], line_color=color[token], line_width=3)
        p.segment(
            SLOWEST,
            "peak",
            "x",
            "peak",
            source=sources["ridges"],
            line_color=color["compute"],
            line_dash=[5, 4],
            line_alpha=0.7,
        )
        p.segment(
            "x",
            "y",
            "ridge",
            "peak",
            source=sources["network_roof"],
            line_color=fig.hues("kind", HUES),
            line_width=3,
            line_alpha="alpha",
        )
        p.line(
            "x", "y", source=sources["this_machine"], line_color=color["ink"], line_width=2, line_dash=[8, 3]
        )
        p.text("x", "y", text="name", source=sources["this_machine"], x_offset=6, y_offset=13, **fig.TEXT)
        p.segment(
            "x",
            "floor",
            "x",
            "peak",
            source=sources["ridges"],
            line_color=color["ink-faint"],
            line_dash=[2, 3],
            line_alpha="alpha",
        )
        fig.only("wide", p.yaxis[0])
        sides = soft | {"source": sources["sides"]}
        fig.only(  # over the dashed line of the users that fit
            "wide",
            p.text("x", "y", text=value("memory-bound"), text_align="right", x_offset=-8, **sides),
            p.text("x", "y", text=value("compute-bound"), x_offset=8, **sides),
        )
        fig.measured(p, sources["products"])
        named = {"text": "text", "text_align": "right", "x_offset": -6, "source": sources["products_named"]}
        fig.only("wide", p.text("x", "row", **named, **fig.LABEL))
        p.scatter(
            "x",
            "y",
            source=sources["work"],
            marker=factor_mark("bound", SHAPES, list(HUES)),
            size=14,
            fill_color=fig.hues("bound", HUES),
            line_color=color["panel"],
            line_width=1.5,
        )
        for width, column in (("wide", "name"), ("narrow", "short")):
            ridge = {"text": column, "text_align": "align", "x_offset": "right"}
            fig.only(
                width,
                p.text("x", "row", source=sources["ridges"], **ridge, **soft),
                p.text(
                    "x", "y", text=column, x_offset=6, y_offset="down", source=sources["names"], **over_lines
                ),
                p.text("x", "y", text=column, source=sources["work"], **beside.placed(width), **over_lines),
            )
        return p


Roofline.serve_as(__name__)
