"""One payload at every level from registers to storage, compared with the matrix product of the same
bytes."""

import numpy as np

from engine.catalog import hardware
from engine.mechanism import hierarchy
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, show, sold
from widgets.kit.widget import Widget, hint, part, readout, regime

ROWS = ["Registers", "SMEM and L1", "L2", "HBM", "NVLink", "PCIe", "Network", "Storage"]
TOKENS = ["hbm", "hbm", "hbm", "hbm", "link", "link", "network", "ink-faint"]
HBM, LINK, NETWORK = (hierarchy.LEVELS.index(level) for level in ("hbm", "link", "network"))
Y = np.arange(8.0)[::-1]
FIRST, LAST = 1e-10, 30.0  # seconds: the ends of the scale of time
BEGIN, END = 6e-19, 1.7e5  # … and of the picture, with columns of numbers on either side of it
FOOT, HEAD = -0.5, 7.6
SECOND, THIRD = 96, 186  # pixels from the left: the columns of bandwidths and of what a level holds


class BandwidthPyramid(Widget):
    question = "What can a matrix product hide, and what not?"
    payload = Number("Payload", 1e9, 3e4, 1e11, family="bytes", stops=71, marks=(1048576, 134217728))
    chip = Choice("GPU", list(hierarchy.hierarchies().values()), "h100-sxm")

    presets = {
        "1 GB on an H100": {},
        "64 tokens of a 70B: 1 MB": {"payload": 1048576},
        "8,192 tokens: 134 MB": {"payload": 134217728},
        "30 GB, hidden even behind the network": {"payload": 3e10},
        "1 GB on a B200": {"chip": "b200"},
    }
    break_it = "Shrink the payload until the network spends longer starting than sending."
    assumptions = (
        "One payload, read once on the chip or sent one way by one GPU; nobody else uses the wire. The "
        "product multiplies two square bf16 matrices that together with the result are as large as the "
        "payload, at the vendor's dense peak: real ones are slower, small ones much slower. Registers and "
        "SMEM: what their banks hand over at best, derived as SMs × bytes a clock × clock. L2 and the "
        "start-up times of the chip (where the lines begin) were measured; those between GPUs are a hop of "
        "NCCL's protocol for small messages, PCIe's is that of a small copy from host memory that cannot be "
        "paged out (pinned), measured by us on an H100. The network is this GPU's share of the NICs, "
        "InfiniBand or RoCE; storage is one NVMe drive for each GPU. What is larger than a level streams "
        "through it. From one grid line to the next, time grows a thousandfold."
    )
    formula = (
        r"$$\tau = \alpha + \frac{S}{W} \qquad \tau_\text{product} = \frac{2n^3}{C}, \quad "
        r"S = 3 \cdot 2 \cdot n^2$$"
        "\n\n"
        r"$S$ is the payload, $W$ the rate one way, $\alpha$ the time before the first byte (Hockney 1994), "
        r"$C$ the peak and $n$ the side of the matrices. Bytes grow with $n^2$, FLOPs with $n^3$: so each "
        r"level hides behind the product from $n = 3C/W$ on, and at $S = \alpha W$ starting takes as long as "
        "sending."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def peak(self):
        return hardware.peak_with_fallback(self.chip.gpu)

    def took_s(self):
        return hierarchy.move_s(self.payload, self.chip)

    def matmul_s(self):
        return hierarchy.square_matmul_s(self.payload, self.peak())

    def against(self):
        return hierarchy.against_matmul(self.payload, self.chip, self.peak())

    def time_of(self, level):
        return show(self.took_s()[level], "seconds")

    # -- the picture -----------------------------------------------------------------------------------------
    @part("chip", "payload")
    def levels(self):
        took, against, matmul = self.took_s(), self.against(), self.matmul_s()
        rate, alpha = hierarchy.bytes_per_s(self.chip), hierarchy.alpha_s(self.chip)
        held = hierarchy.held_bytes(self.chip)
        holds = [show(held[i], "bytes") for i in range(HBM)] + [sold(held[HBM])] + [""] * 4
        return {
            "row": ROWS,
            "y": Y,
            "hidden": np.minimum(took, matmul),
            "took": took,
            "past_from": np.minimum(np.maximum(matmul, FIRST), took),
            "past": np.where(took > matmul, 1.0, 0.0),
            "alpha": alpha,
            "time": [self.time_of(i) for i in range(8)],
            "ratio": [f"{self.time_of(i)},  {show(against[i], 'times')}" for i in range(8)],
            "rate": [show(rate[i], "bytes_per_s") for i in range(8)],
            "holds": holds,
        }

    @hint("levels")
    def of_a_level(self):
        alpha = hierarchy.alpha_s(self.chip)
        return phrase(
            "{row}: {start} to start, then {sends} to move all of it; a product of as many bytes hides that "
            "from {hidden} on",
            row=ROWS,
            start=show(alpha, "seconds"),
            sends=show(self.took_s() - alpha, "seconds"),
            hidden=show(hierarchy.hidden_from_bytes(self.chip, self.peak()), "bytes"),
        )

    @part("chip", "payload")
    def matmul(self):
        took = np.maximum(self.matmul_s(), FIRST)
        return {
            "took": took,
            "align": fig.inward(fig.share_of_decades(took, FIRST, LAST), 0.0, 1.0, 0.3),
            "name": f"matmul of these bytes: {show(self.matmul_s(), 'seconds')}",
            "short": f"matmul {show(self.matmul_s(), 'seconds')}",
        }

    def figure(self, sources):
        p = fig.plot((BEGIN, END), (FOOT, 8.25), height=470, x_log=True)
        fig.ticks(p.xaxis[0], 10.0 ** np.arange(-9, 1, 3), "seconds")
        p.xaxis[0].bounds = (FIRST, LAST)
        fig.hide(p.yaxis[0])
        p.grid.visible = False
        color, levels, matmul = fig.COLOR, sources["levels"], sources["matmul"]
        hue = fig.hues("row", dict(zip(ROWS, TOKENS)))
        hidden = {"fill_color": color["compute"], "fill_alpha": 0.07, "line_color": None}
        p.quad(left=FIRST, right="took", bottom=FOOT, top=HEAD, source=matmul, **hidden)
        for time_s in 10.0 ** np.arange(-9, 1, 3):
            p.segment(time_s, FOOT, time_s, HEAD, line_color=color["grid"])
        p.segment(FIRST, "y", LAST, "y", source=levels, line_color=color["grid"])
        p.segment("took", FOOT, "took", HEAD, source=matmul, line_color=color["compute"], line_width=2.5)
        p.segment("alpha", "y", "hidden", "y", source=levels, line_color=hue, line_width=2)
        past = {"line_color": color["over"], "line_dash": [5, 3], "line_width": 2, "line_alpha": "past"}
        p.segment("past_from", "y", "took", "y", source=levels, **past)
        p.scatter(
            "alpha",
            "y",
            marker="dash",
            angle=np.pi / 2,
            size=11,
            source=levels,
            fill_color=None,
            line_color=hue,
            line_width=2,
        )
        p.scatter("took", "y", size=13, source=levels, fill_color=hue, line_color=color["panel"])
        late = {"fill_color": color["panel"], "line_color": color["over"], "line_width": 2}
        late |= {"fill_alpha": "past", "line_alpha": "past"}
        p.scatter("took", "y", marker="diamond", size=16, source=levels, **late)
        self.columns(p, levels, matmul)
        return p

    @staticmethod
    def columns(p, levels, matmul):
        """The numbers of each level on either side of its dot, and the product's name over its line."""
        at = {"y": "y", "source": levels}
        end = fig.BOLD | {"text_align": "right", "x_offset": -4}
        over = {"text_align": "align"} | fig.BOLD | {"text_color": fig.COLOR["compute"]}
        head = fig.LABEL | {"y_offset": -1}
        fig.only(
            "wide",
            p.text("took", 7.95, text="name", source=matmul, **over),
            p.text(BEGIN, text="row", x_offset=2, **at, **fig.BOLD),
            p.text(BEGIN, text="rate", x_offset=SECOND, **at, **fig.TEXT),
            p.text(BEGIN, text="holds", x_offset=THIRD, **at, **fig.TEXT),
            p.text(END, text="ratio", **at, **end),
            p.text([BEGIN], [7.95], text=["one way"], x_offset=SECOND, **head),
            p.text([BEGIN], [7.95], text=["holds"], x_offset=THIRD, **head),
        )
        fig.only(
            "narrow",
            p.text("took", 7.95, text="short", source=matmul, **over),
            p.text(BEGIN, text="row", x_offset=2, y_offset=-8, **at, **fig.BOLD),
            p.text(BEGIN, text="rate", x_offset=2, y_offset=9, **at, **fig.LABEL),
            p.text(END, text="time", **at, **end),
        )

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Matmul of these bytes")
    def product(self):
        """Its time, as far down as a number means anything."""
        least = hierarchy.SHORTEST_S
        short = f"under {show(least, 'seconds')}"
        return choose(self.matmul_s() < least, short, show(self.matmul_s(), "seconds"))

    @readout("Over NVLink", rest=True)
    def over_link(self):
        return self.time_of(LINK), self.against()[LINK] > 1

    @readout("Over the network", rest=True)
    def over_network(self):
        return self.time_of(NETWORK), self.against()[NETWORK] > 1

    @readout("NVLink over network", help="Both one way and for one GPU, so that like is compared with like")
    def like_for_like(self):
        return show(hierarchy.link_over_network(self.chip), "times")

    @readout(
        "As advertised",
        help="NVLink both ways over a network port one way, which compares unlike figures",
        rest=True,
    )
    def advertised(self):
        return show(hierarchy.as_advertised(self.chip), "times")

    @readout("Network hides from")
    def hides_from(self):
        return show(hierarchy.hidden_from_bytes(self.chip, self.peak())[NETWORK], "bytes")

    @regime(target=True)
    def start_up(self):
        half, full = hierarchy.half_rate_bytes(self.chip)[NETWORK], hierarchy.bytes_per_s(self.chip)[NETWORK]
        reached = hierarchy.rate_reached(self.payload, self.chip)[NETWORK]
        return self.payload < half, (
            "Latency is the wall: the network takes "
            f"{show(hierarchy.alpha_s(self.chip)[NETWORK], 'seconds')} to start, and so it reaches only "
            f"{show(reached, 'bytes_per_s')} of {show(full, 'bytes_per_s')}. First response: send fewer, "
            f"larger messages, well above {show(half, 'bytes')} each (buckets, lesson 04)."
        )

    @regime()
    def network_waits(self):
        hidden = hierarchy.hidden_from_bytes(self.chip, self.peak())
        inside = choose(
            self.against()[LINK] > 1,
            "NVLink does not hide either, only HBM and what is nearer",
            f"NVLink hides, as it does behind any product of {show(hidden[LINK], 'bytes')} or more",
        )
        near = self.against()[HBM] <= 1
        return (self.against()[NETWORK] > 1) & near, (
            f"The network is too far: it takes {show(self.against()[NETWORK], 'times')} the product of the "
            f"same bytes. {inside}. First response: keep in the node what is sent after each product, and "
            "send over the network what many products share (lessons 06 and 04)."
        )

    @regime()
    def memory_waits(self):
        hidden = hierarchy.hidden_from_bytes(self.chip, self.peak())[HBM]
        return self.against()[HBM] > 1, (
            f"Even HBM is too far: reading these bytes takes {show(self.against()[HBM], 'times')} the "
            f"product, which is memory-bound below {show(hidden, 'bytes')}. First response: larger products, "
            "or several fused so that the bytes stay on the chip (lesson 16)."
        )

    def summary(self):
        against = self.against()
        over = choose(
            against[NETWORK] <= 1,
            "even over the network",
            choose(
                against[LINK] <= 1, "over NVLink, not over the network", "neither over NVLink nor the network"
            ),
        )
        return (
            f"On {self.chip.name}, a product of {self.product()} hides "
            f"{show(self.payload, 'bytes')} {over} ({self.time_of(LINK)} and {self.time_of(NETWORK)})."
        )


BandwidthPyramid.serve_as(__name__)
