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
BEGIN, END = 3e-11, 3e4  # seconds: the ends of the axis, with room for the labels at the right
NEAR_BEGIN = 1e-8
CUT = (1.2e-10, 1.9e-10)  # where the bars are cut open: an axis of powers of ten has no zero to begin at


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
        "start-up times of the chip (the ticks in the bars) were measured; those between GPUs are a hop of "
        "NCCL's protocol for small messages, PCIe's is that of a small copy from host memory that cannot be "
        "paged out (pinned), measured by us on an H100. The network is this GPU's share of the NICs, "
        "InfiniBand or RoCE; storage is one NVMe drive for each GPU. What is larger than a level streams "
        "through it. From one grid line to the next, time grows a thousandfold; there is no zero, so the "
        "bars are cut open at the left and their ends alone can be compared."
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
        holds = [f", holds {show(held[i], 'bytes')}" for i in range(HBM)]
        holds += [f", holds {sold(held[HBM])}"] + [" one way"] * 4
        ways = [f"{show(rate[i], 'bytes_per_s')}{holds[i]}" for i in range(8)]
        ratios = [f"{show(took[i], 'seconds')},  {show(against[i], 'times')}" for i in range(8)]
        return {
            "row": ROWS,
            "y": Y,
            "hidden": np.minimum(took, matmul),
            "took": took,
            "past_from": np.minimum(np.maximum(matmul, BEGIN), took),
            "past": np.where(took > matmul, 1.0, 0.0),
            "alpha": alpha,
            "left": np.full(8, BEGIN),
            "right": took,
            "bottom": Y - 0.17,
            "top": Y + 0.17,
            "time": [self.time_of(i) for i in range(8)],
            "ratio": ratios,
            "rate": [show(rate[i], "bytes_per_s") for i in range(8)],
            "way": [f"{ways[i]}, starts after {show(alpha[i], 'seconds')}" for i in range(8)],
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
        took = self.matmul_s()
        return {
            "took": took,
            "align": choose(took < NEAR_BEGIN, "left", "center"),
            "name": f"matmul of these bytes: {show(took, 'seconds')}",
            "short": f"matmul {show(took, 'seconds')}",
        }

    def figure(self, sources):
        p = fig.plot((BEGIN, END), (-0.45, 8.25), height=470, x_log=True)
        fig.ticks(p.xaxis[0], 10.0 ** np.arange(-9, 1, 3), "seconds")
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        color, levels, matmul = fig.COLOR, sources["levels"], sources["matmul"]
        hue = fig.hues("row", dict(zip(ROWS, TOKENS)))
        over_lines = fig.OVER_LINES
        p.quad(
            left=BEGIN,
            right="took",
            bottom=-0.45,
            top=7.75,
            source=matmul,
            fill_color=color["compute"],
            fill_alpha=0.07,
            line_color=None,
        )
        p.hbar(y="y", left=BEGIN, right="hidden", height=0.34, source=levels, fill_color=hue, line_color=hue)
        p.hbar(
            y="y",
            left="past_from",
            right="took",
            height=0.34,
            source=levels,
            **fig.OVER | {"line_alpha": "past"},
        )
        fig.cut_open(p, Y, CUT)
        p.segment("alpha", "bottom", "alpha", "top", source=levels, line_color=color["ink"], line_width=2)
        p.segment("took", -0.45, "took", 7.75, source=matmul, line_color=color["compute"], line_width=2.5)
        for width, column in (("wide", "name"), ("narrow", "short")):
            fig.only(
                width,
                p.text(
                    "took",
                    7.97,
                    text=column,
                    source=matmul,
                    text_align="align",
                    **fig.BOLD | {"text_color": color["compute"]},
                ),
            )
        p.text(BEGIN, "y", text="row", source=levels, x_offset=2, y_offset=-18, **fig.BOLD | over_lines)
        for width, column, ends in (("wide", "way", "ratio"), ("narrow", "rate", "time")):
            fig.only(
                width,
                p.text(
                    BEGIN,
                    "y",
                    text=column,
                    source=levels,
                    x_offset=98,
                    y_offset=-18,
                    **fig.LABEL | over_lines,
                ),
                p.text("took", "y", text=ends, source=levels, x_offset=8, **fig.BOLD | over_lines),
            )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Matmul of these bytes")
    def product(self):
        return show(self.matmul_s(), "seconds")

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
            f"On {self.chip.name}, a product of {show(self.matmul_s(), 'seconds')} hides "
            f"{show(self.payload, 'bytes')} {over} ({self.time_of(LINK)} and {self.time_of(NETWORK)})."
        )


BandwidthPyramid.serve_as(__name__)
