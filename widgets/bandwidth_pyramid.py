"""One payload at every level from registers to storage, against the matrix product of the same bytes."""

import numpy as np

from engine import hardware, hierarchy
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, part, readout, regime

ROWS = ["Registers", "SMEM and L1", "L2", "HBM", "NVLink", "PCIe", "Network", "Storage"]
TOKENS = ["hbm", "hbm", "hbm", "hbm", "link", "link", "network", "ink-faint"]
HBM, LINK, NETWORK = (hierarchy.LEVELS.index(level) for level in ("hbm", "link", "network"))
Y = np.arange(8.0)[::-1]
BEGIN, END = 3e-11, 3e4         # seconds: the ends of the axis, with room for the labels at the right
NEAR_BEGIN = 1e-8
CUT = (1.2e-10, 1.9e-10)        # where the bars are cut open: an axis of powers of ten has no zero to begin at


class BandwidthPyramid(Widget):
    question = "What can a matrix product hide, and what not?"
    payload = Number("Payload", 1e9, 1e4, 1e11, family="bytes", stops=71, marks=(16384, 134217728))
    chip = Choice("GPU", list(hierarchy.hierarchies().values()), "h100-sxm")

    presets = {"1 GB on an H100": {}, "One token of a 70B: 16 kB": {"payload": 16384},
               "Its 8,192 tokens: 134 MB": {"payload": 134217728},
               "30 GB, hidden even behind the network": {"payload": 3e10}, "1 GB on a B200": {"chip": "b200"}}
    break_it = "Shrink the payload until the network spends longer starting than sending."
    assumptions = (
        "One payload, read once on the chip or sent one way by one GPU; nobody else uses the wire. The product "
        "multiplies two square bf16 matrices that together with the result are as large as the payload, at the "
        "vendor's dense peak: real ones are slower, small ones much slower. Registers and SMEM: what their banks hand "
        "over at best, derived as SMs × bytes a clock × clock. L2 and the start-up times of the chip (the ticks in the "
        "bars) were measured; those of the wires are NCCL's own. The network is this GPU's share of the NICs, "
        "InfiniBand or RoCE; storage is one NVMe drive for each GPU. What is larger than a level streams through it. "
        "From one grid line to the next, time grows a thousandfold; there is no zero, so the bars are cut open at the "
        "left and their ends alone can be compared.")
    formula = (
        r"$$T = \alpha + \frac{S}{B} \qquad T_{matmul} = \frac{2n^3}{C}, \quad S = 3 \cdot 2 \cdot n^2$$" "\n\n"
        r"$S$ is the payload, $B$ the rate one way, $\alpha$ the time before the first byte (Hockney 1994), $C$ the "
        "peak. Bytes grow with $n^2$, FLOPs with $n^3$: so each level hides behind the product from "
        r"$n = 3C/B$ on, and at $S = \alpha B$ starting takes as long as sending.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
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

    # -- the picture ------------------------------------------------------------------------------------------------
    @part("chip", "payload")
    def levels(self):
        took, against, matmul = self.took_s(), self.against(), self.matmul_s()
        rate, alpha = hierarchy.bytes_per_s(self.chip), hierarchy.alpha_s(self.chip)
        held = hierarchy.held_bytes(self.chip)
        holds = [f", holds {show(held[i], 'bytes')}" for i in range(4)] + [" one way"] * 4
        ways = [f"{show(rate[i], 'bytes_per_s')}{holds[i]}" for i in range(8)]
        ratios = [f"{show(took[i], 'seconds')},  {show(against[i], 'times', 2)}" for i in range(8)]
        return {"row": ROWS, "y": Y, "hidden": np.minimum(took, matmul), "took": took,
                "past_from": np.minimum(np.maximum(matmul, BEGIN), took), "past": np.where(took > matmul, 1.0, 0.0),
                "alpha": alpha, "foot": Y - 0.17, "head": Y + 0.17, "time": [self.time_of(i) for i in range(8)],
                "ratio": ratios, "rate": [show(rate[i], "bytes_per_s") for i in range(8)],
                "way": [f"{ways[i]}, starts after {show(alpha[i], 'seconds')}" for i in range(8)]}

    @part("chip", "payload")
    def matmul(self):
        took = self.matmul_s()
        return {"took": took, "align": choose(took < NEAR_BEGIN, "left", "center"),
                "name": f"matmul of these bytes: {show(took, 'seconds')}",
                "short": f"matmul {show(took, 'seconds')}"}

    def figure(self, sources):
        p = fig.plot((BEGIN, END), (-0.45, 8.25), height=470, x_log=True)
        fig.ticks(p.xaxis[0], 10.0 ** np.arange(-9, 1, 3), "seconds")
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        color, levels, matmul = fig.COLOR, sources["levels"], sources["matmul"]
        hue = fig.hues("row", dict(zip(ROWS, TOKENS)))
        over_lines = {"background_fill_color": color["panel"], "background_fill_alpha": 0.8}
        p.quad(left=BEGIN, right="took", bottom=-0.45, top=7.75, source=matmul, fill_color=color["compute"],
               fill_alpha=0.07, line_color=None)
        p.hbar(y="y", left=BEGIN, right="hidden", height=0.34, source=levels, fill_color=hue, fill_alpha=0.35,
               line_color=hue, line_width=1.5)
        p.hbar(y="y", left="past_from", right="took", height=0.34, source=levels, **fig.OVER | {"line_alpha": "past"})
        fig.cut_open(p, Y, CUT)
        p.segment("alpha", "foot", "alpha", "head", source=levels, line_color=color["ink"], line_width=2)
        p.segment("took", -0.45, "took", 7.75, source=matmul, line_color=color["compute"], line_width=2.5)
        for width, column in (("wide", "name"), ("narrow", "short")):
            fig.only(width, p.text("took", 7.97, text=column, source=matmul, text_align="align",
                                   **fig.BOLD | {"text_color": color["compute"]}))
        p.text(BEGIN, "y", text="row", source=levels, x_offset=2, y_offset=-18, **fig.BOLD | over_lines)
        for width, column, ends in (("wide", "way", "ratio"), ("narrow", "rate", "time")):
            fig.only(width, p.text(BEGIN, "y", text=column, source=levels, x_offset=98, y_offset=-18,
                                   **fig.LABEL | over_lines),
                     p.text("took", "y", text=ends, source=levels, x_offset=8, **fig.BOLD | over_lines))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Matmul of these bytes")
    def product(self):
        return show(self.matmul_s(), "seconds")

    @readout("Over NVLink")
    def over_link(self):
        return self.time_of(LINK), self.against()[LINK] > 1

    @readout("Over the network")
    def over_network(self):
        return self.time_of(NETWORK), self.against()[NETWORK] > 1

    @readout("NVLink over network", help="Both one way, for one GPU: like for like")
    def like_for_like(self):
        return show(hierarchy.link_over_network(self.chip), "times")

    @readout("As advertised", help="NVLink both ways together over a network port one way: the two are not alike")
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
            f"Latency is the wall: the network starts for {show(hierarchy.alpha_s(self.chip)[NETWORK], 'seconds')} and "
            f"reaches {show(reached, 'bytes_per_s')} of {show(full, 'bytes_per_s')}. "
            f"First response: send fewer, larger messages, well above {show(half, 'bytes')} each (buckets, lesson 04).")

    @regime()
    def network_waits(self):
        hidden = hierarchy.hidden_from_bytes(self.chip, self.peak())
        inside = choose(self.against()[LINK] > 1, "NVLink does not hide either, only HBM and what is nearer",
                        f"NVLink hides, and any wire from {show(hidden[LINK], 'bytes')} at its rate")
        near = self.against()[HBM] <= 1
        return (self.against()[NETWORK] > 1) & near, (
            f"The network is too far: it takes {show(self.against()[NETWORK], 'times')} the product of the same bytes. "
            f"{inside}. First response: keep in the node what is sent after each product, and send over the network "
            "what many products share (lessons 06 and 04).")

    @regime()
    def memory_waits(self):
        hidden = hierarchy.hidden_from_bytes(self.chip, self.peak())[HBM]
        return self.against()[HBM] > 1, (
            f"Even HBM is too far: reading these bytes takes {show(self.against()[HBM], 'times')} the product, which "
            f"is memory-bound below {show(hidden, 'bytes')}. First response: larger products, or several fused so that "
            "the bytes stay on the chip (lesson 16).")

    def summary(self):
        return (f"On {self.chip.name}, {show(self.payload, 'bytes')} takes {self.time_of(HBM)} through HBM, "
                f"{self.time_of(LINK)} over NVLink and {self.time_of(NETWORK)} over the network, where a matrix product "
                f"of the same bytes takes {show(self.matmul_s(), 'seconds')}; one way, NVLink is "
                f"{show(hierarchy.link_over_network(self.chip), 'times')} the network.")
