"""A chain of elementwise kernels separate and fused: every round trip over HBM, and both on the roofline."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.calibration import launch_costs
from engine.mechanism import fusion, roofline
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.scales import LogFrame
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, part, readout, regime

MOST = 16
CHAIN = np.arange(MOST)  # its kernels; behind them on the picture: the product, and the fused kernel
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
ACROSS = (0.02, 0.98)
APART_HBM, APART_WORK, BAND_APART, APART_NAME_AT = (0.74, 0.785), (0.69, 0.735), (0.835, 0.855), 0.879
FUSED_HBM, FUSED_WORK, BAND_FUSED, FUSED_NAME_AT = (0.48, 0.525), (0.43, 0.475), (0.58, 0.6), 0.63
FRAME = LogFrame((1e-3, 1e6), (1e7, 5e15), (0.13, 0.97), (0.085, 0.365))
TICKS = (10.0 ** np.arange(-3, 6, 2), 10.0 ** np.arange(7, 16, 2))
CLEAR_OF_ROOF = TICKS[1][[0, 3, 4]]  # on a phone the slope passes where the others would stand
READ_AT, WRITTEN_AT = 0.14, 0.86  # where a kernel's arrows stand, as shares of its length
OUT_OF_SIGHT = -1.0  # where the kernels stand that a chain does not have
SMALL_GAIN = 1.1  # too little to write a kernel for


class Fusion(Widget):
    question = "What does a round trip over HBM between two kernels cost?"
    operations = Number("Operations", 8, 1, MOST, stops=[*range(1, MOST + 1)], log=False, whole=True)
    elements = Number(
        "Elements",
        8192 * 14336,
        1e3,
        2e9,
        family="params",
        stops=61,
        whole=True,
        marks=(2048 * 49152, 8192 * 14336, 8192 * 28672),
    )
    flops = Number(
        "FLOPs an element", 4, 1, 2000, stops=49, marks=(2, 4, 10, 100), help="Of each operation, per element"
    )
    inner = Number(
        "Matrix product in front, inner width",
        0,
        0,
        16384,
        whole=True,
        more=True,
        stops=[
            0,
            16,
            32,
            64,
            96,
            128,
            192,
            256,
            384,
            512,
            768,
            1024,
            1536,
            2048,
            3072,
            4096,
            6144,
            8192,
            12288,
            16384,
        ],
        help="0 for none; after a product, the chain becomes its epilogue",
    )
    kept = Number(
        "Values an element keeps",
        2,
        1,
        96,
        whole=True,
        stops=[*range(1, 33), *range(36, 97, 4)],
        log=False,
        more=True,
        help="Values alive at once in the fused kernel, in fp32",
    )
    launch = Number(
        "CPU time to issue a kernel",
        launch_costs.ISSUE_S,
        1e-6,
        20e-6,
        family="seconds",
        stops=25,
        marks=(2.5e-6, 3.8e-6),
        more=True,
        help="In a CUDA graph nobody issues: take the shortest kernel and its gap, 2.5 µs",
    )
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)

    presets = {
        "Llama 3 8B's MLP, 8k tokens": {},
        "Its product's epilogue": {"operations": 2, "inner": 4096, "flops": 10},
        "Decode, one token": {"elements": 14336, "operations": 8},
        "LoRA update on B200": {
            "elements": 8192 * 14336,
            "operations": 2,
            "inner": 16,
            "flops": 2,
            "gpu": "b200",
        },
    }
    break_it = (
        "Find a chain of at least two operations that fits its registers and that fusing makes less "
        "than a tenth faster."
    )
    assumptions = (
        "Each operation reads one bf16 tensor and writes one; the fused kernel reads the first and writes "
        "the last. A kernel takes the longest of its bytes at three quarters of HBM's bandwidth, what "
        "kernels reach, its arithmetic at the peak of the fp32 units, and what the CPU takes to issue it. "
        "That peak is of multiply-adds: additions alone reach half, exponentials far less. Tensors count as "
        "too large for the L2 cache. An epilogue begins when its product is done, so their arithmetic adds "
        "up. Eight elements a thread; what does not fit 255 registers is written and read once more. The "
        "slower of the two fills the width, whatever it takes."
    )
    formula = (
        "$$\\tau_\\text{apart} = k\\,\\max\\left(\\frac{4n}{W},\\; \\frac{f n}{C},\\; "
        "\\tau_\\text{issue}\\right) \\qquad \\tau_\\text{fused} = \\max\\left(\\frac{4n}{W},\\; \\frac{k f "
        "n}{C},\\; \\tau_\\text{issue}\\right)$$\n\nfor $k$ operations on $n$ elements of 2 bytes, $f$ FLOPs "
        "each, $W$ reached of the bandwidth, fp32 peak $C$ and $\\tau_\\text{issue}$ on the CPU (roofline: "
        "Williams, Waterman, Patterson, CACM 52(4), 2009). Behind a product of inner width $w$ the fused "
        "kernel adds $2nw$ FLOPs at the tensor cores' peak and $4w\\sqrt n$ bytes of operands. $31 + 8v$ "
        "registers for $v$ values kept; above 255 each value is $8$ bytes more."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def found(self):
        return fusion.compared(
            self.elements, self.operations, self.flops, self.kept, self.inner, self.gpu, self.launch
        )

    def gain(self):
        return fusion.gain(self.found())

    def at(self, seconds):
        """The place of a moment on the time axis, which the slower of the two fills from end to end."""
        return fig.between(*ACROSS, seconds / self.found().longest_s)

    def apart(self):
        """Start, and times of memory, arithmetic and launch, of the chain's kernels and of the product before
        them."""
        found = self.found()
        there = np.append(np.where(self.operations > CHAIN, 1.0, 0.0), np.where(self.inner > 0, 1.0, 0.0))
        start = np.append(found.one.takes_s * CHAIN + found.product.takes_s, 0.0)
        columns = [
            np.append(of_one * np.ones(MOST), of_product)
            for of_one, of_product in zip(
                (*found.one, found.one.takes_s), (*found.product, found.product.takes_s)
            )
        ]
        return there, start, columns

    def binding(self, kernel):
        """0 memory, 1 arithmetic, 2 launch."""
        return np.argmax(np.stack([kernel.memory_s, kernel.arithmetic_s, kernel.launch_s]))

    def bound_words(self, kernel):
        return select(self.binding(kernel), ["bytes", "arithmetic", "launches"])

    # -- the picture -----------------------------------------------------------------------------------------
    @part("operations", "elements", "flops", "inner", "kept", "launch", "gpu")
    def kernels(self):
        """The unfused ones, the product last in the list: what each takes of HBM and of the arithmetic."""
        there, start, (memory_s, arithmetic_s, _, takes_s) = self.apart()
        left = np.where(there > 0, self.at(start), OUT_OF_SIGHT)
        ends = [
            np.where(there > 0, self.at(start + seconds), left)
            for seconds in (memory_s, arithmetic_s, takes_s)
        ]
        return {
            "memory_s": memory_s * there,
            "arithmetic_s": arithmetic_s * there,
            "takes_s": takes_s * there,
            "left": left,
            "memory": ends[0],
            "work": ends[1],
            "right": ends[2],
            "bottom": np.full(MOST + 1, APART_WORK[0]),
            "top": np.full(MOST + 1, APART_HBM[1]),
            "seen": there,
            "read": fig.between(left, ends[2], READ_AT),
            "written": fig.between(left, ends[2], WRITTEN_AT),
        }

    @hint("kernels")
    def of_a_kernel(self):
        _, _, (memory_s, arithmetic_s, _, takes_s) = self.apart()
        return phrase(
            "{name}: {takes}; bytes {memory}, arithmetic {work}",
            name=[*(f"operation {i}" for i in range(1, MOST + 1)), "matrix product"],
            takes=show(takes_s, "seconds"),
            memory=show(memory_s, "seconds"),
            work=show(arithmetic_s, "seconds"),
        )

    @part("operations", "elements", "flops", "inner", "kept", "launch", "gpu")
    def fused(self):
        kernel = self.found().fused
        left, right = self.at(0.0), self.at(kernel.takes_s)
        return {
            "memory_s": kernel.memory_s,
            "arithmetic_s": kernel.arithmetic_s,
            "takes_s": kernel.takes_s,
            "left": left,
            "memory": self.at(kernel.memory_s),
            "work": self.at(kernel.arithmetic_s),
            "right": right,
            "bottom": FUSED_WORK[0],
            "top": FUSED_HBM[1],
            "seen": 1.0,
            "read": fig.between(left, right, READ_AT),
            "written": fig.between(left, right, WRITTEN_AT),
        }

    @part("operations", "elements", "flops", "inner", "kept", "launch", "gpu", shown=False)
    def names(self):
        found = self.found()
        front = choose(self.inner > 0, "product, then ", "")
        kernels = choose(self.operations > 1, "kernels", "kernel")
        return {
            "x": [ACROSS[0]] * 2,
            "y": [APART_NAME_AT, FUSED_NAME_AT],
            "text": [
                (
                    f"apart: {front}{show(self.operations, 'count')} {kernels}, "
                    f"{show(found.apart_bytes, 'bytes')} in {show(found.apart_s, 'seconds')}"
                ),
                f"fused: one kernel, {show(found.fused_bytes, 'bytes')} in {show(found.fused_s, 'seconds')}",
            ],
        }

    @part("gpu", "inner", shown=False)
    def roof(self):
        """The roof of the fp32 units, and that of the tensor cores where there is a matrix product."""
        hbm = fusion.reached_bytes_per_s(self.gpu)
        vector, matrix = self.gpu.fp32_flops_per_s, self.gpu.bf16_flops_per_s
        peak = np.where(self.inner > 0, matrix, vector)
        x = np.stack(
            [
                FRAME.x[0],
                roofline.ridge_flops_per_byte(vector, hbm),
                roofline.ridge_flops_per_byte(peak, hbm),
                FRAME.x[1],
            ]
        )
        y = roofline.attainable_flops_per_s(x, peak, hbm)
        low = roofline.attainable_flops_per_s(x, vector, hbm)
        return {"x": FRAME.right(x), "y": FRAME.height(y), "vector": FRAME.height(low)}

    @part("gpu", "inner", shown=False)
    def roof_names(self):
        peaks = np.stack([self.gpu.fp32_flops_per_s, self.gpu.bf16_flops_per_s])
        return {
            "x": np.stack([FRAME.across[1]] * 2),
            "y": FRAME.height(peaks),
            "down": [-11, -11],
            "narrow_down": [11, -11],  # the lower one under its roof: between them are points
            "short": ["fp32 units", choose(self.inner > 0, "tensor cores", "")],
            "text": [
                f"fp32 units {show(peaks[0], 'flops_per_s')}",
                choose(self.inner > 0, f"tensor cores {show(peaks[1], 'flops_per_s')}", ""),
            ],
        }

    @part("operations", "elements", "flops", "inner", "kept", "launch", "gpu")
    def points(self):
        """Both ways of running the chain on the roofline: FLOPs for each byte, and FLOPs a second."""
        found = self.found()
        intensity = found.flops / np.stack([found.apart_bytes, found.fused_bytes])
        rate = found.flops / np.stack([found.apart_s, found.fused_s])
        x, y = FRAME.right(intensity), FRAME.height(rate)
        roofs = FRAME.height(np.stack([self.gpu.fp32_flops_per_s, self.gpu.bf16_flops_per_s]))
        among_names = (x[1] > 0.6) & np.any((y[1] > roofs - 0.06) & (y[1] < roofs + 0.09))
        return {
            "intensity": intensity,
            "rate": rate,
            "x": x,
            "y": y,
            "text": ["apart", "fused"],
            "down": [-14.0, 14.0],
            "align": ["right", choose(among_names, "right", "left")],
            "beside": np.stack([-8.0, np.where(among_names, -8.0, 8.0)]),
            "narrow_down": np.stack([np.where(x[1] < x[0], -14.0, 28.0), np.where(x[1] > 0.55, -12.0, 14.0)]),
            "narrow_beside": np.stack([-6.0, np.where(x[1] > 0.55, -10.0, 8.0)]),
            "narrow_align": ["left", choose(x[1] > 0.55, "right", "left")],
        }

    @hint("points")
    def of_a_point(self):
        points = self.points()
        return phrase(
            "{name}: {x}, {y}",
            name=["apart", "fused"],
            x=show(points["intensity"], "flops_per_byte"),
            y=show(points["rate"], "flops_per_s"),
        )

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1), (0, 1), height=640)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.grid_line_color = None
        for name, band, hbm, work in (
            ("kernels", BAND_APART, APART_HBM, APART_WORK),
            ("fused", BAND_FUSED, FUSED_HBM, FUSED_WORK),
        ):
            source = sources[name]
            p.quad(
                left=ACROSS[0],
                right=ACROSS[1],
                bottom=band[0],
                top=band[1],
                fill_color=color["hbm"],
                fill_alpha=0.18,
                line_color=color["hbm"],
            )
            p.quad(left="left", right="right", bottom=work[0], top=hbm[1], source=source, **fig.IDLE)
            p.quad(
                left="left",
                right="memory",
                bottom=hbm[0],
                top=hbm[1],
                source=source,
                fill_color=color["hbm"],
                fill_alpha=1,
                line_color=color["panel"],
            )
            p.quad(
                left="left",
                right="work",
                bottom=work[0],
                top=work[1],
                source=source,
                fill_color=color["compute"],
                fill_alpha=1,
                line_color=color["panel"],
            )
            for edge, foot, tip, turn in (
                ("read", band[0], hbm[1], np.pi),
                ("written", hbm[1], band[0], 0.0),
            ):
                p.segment(
                    edge,
                    foot,
                    edge,
                    tip,
                    source=source,
                    line_color=color["hbm"],
                    line_alpha="seen",
                    line_width=1.5,
                )
                p.scatter(
                    edge,
                    tip,
                    source=source,
                    marker="triangle",
                    angle=turn,
                    size=8,
                    fill_color=color["hbm"],
                    fill_alpha="seen",
                    line_color=None,
                )
        p.text("x", "y", text="text", source=sources["names"], **fig.BOLD)
        lanes_at = [ACROSS[1]] * 2, [APART_NAME_AT, FUSED_NAME_AT]
        fig.only("wide", p.text(*lanes_at, text=value("HBM"), text_align="right", **fig.LABEL))
        self.draw_roof(p, sources)
        fig.key(
            p,
            {"bytes over HBM": "hbm", "arithmetic": "compute", "waits": "idle"},
            wide=0.975,
            narrow=0.98,
            phone_px=fig.PHONE_PX,
        )
        return p

    def draw_roof(self, p, sources):
        """Draw both ways of running the chain as points under the two roofs."""
        color, roof, points = fig.COLOR, sources["roof"], sources["points"]
        FRAME.draw(p, *TICKS, "params", "flops_per_s", "FLOPs for each byte over HBM", CLEAR_OF_ROOF)
        p.line("x", "y", source=roof, line_color=color["compute"], line_width=2.5)
        p.line("x", "vector", source=roof, line_color=color["compute"], line_width=2, line_dash=[6, 4])
        for width, words, down in (("wide", "text", "down"), ("narrow", "short", "narrow_down")):
            fig.only(
                width,
                p.text(
                    "x",
                    "y",
                    text=words,
                    y_offset=down,
                    x_offset=-4,
                    text_align="right",
                    source=sources["roof_names"],
                    **fig.ON_PANEL,
                    **fig.LABEL,
                ),
            )
        p.line("x", "y", source=points, line_color=color["ink-faint"], line_dash=[3, 3])
        p.scatter(
            "x",
            "y",
            source=points,
            size=12,
            fill_color=color["accent"],
            line_color=color["panel"],
            line_width=2,
        )
        names = {"x": "x", "y": "y", "text": "text", "source": points} | fig.ON_PANEL | fig.BOLD
        fig.only("wide", p.text(x_offset="beside", y_offset="down", text_align="align", **names))
        narrow = {"x_offset": "narrow_beside", "y_offset": "narrow_down", "text_align": "narrow_align"}
        fig.only("narrow", p.text(**narrow, **names))

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Apart", rest=True)
    def takes_apart(self):
        return show(self.found().apart_s, "seconds")

    @readout("Fused", rest=True)
    def takes_fused(self):
        return show(self.found().fused_s, "seconds")

    @readout("Fused is")
    def faster(self):
        gain = self.gain()
        faster, slower = f"{show(gain, 'times')} as fast", f"{show(1.0 / gain, 'times')} slower"
        return choose(gain < 1.0, slower, faster), gain < SMALL_GAIN

    @readout("Bytes, fused")
    def saved(self):
        found = self.found()
        share, more = found.fused_bytes / found.apart_bytes, found.fused_bytes > found.apart_bytes
        return choose(more, f"{show(share, 'times')} as many", f"{show(1.0 - share, 'percent')} fewer"), more

    @readout("Fused is bound by", rest=True)
    def bound(self):
        return self.bound_words(self.found().fused)

    @readout("Registers a thread")
    def registers(self):
        return show(fusion.registers_a_thread(self.kept), "count"), self.spills()

    def spills(self):
        return fusion.registers_a_thread(self.kept) > fusion.REGISTERS_A_THREAD

    @regime(target=True)
    def no_gain(self):
        found = self.found()
        fits = fusion.registers_a_thread(self.kept) <= fusion.REGISTERS_A_THREAD
        return (self.gain() < SMALL_GAIN) & (self.operations > 1) & fits, (
            f"Nothing to gain: fused, the chain moves {show(found.fused_bytes, 'bytes')} instead of "
            f"{show(found.apart_bytes, 'bytes')} and takes {show(found.fused_s, 'seconds')} instead of "
            f"{show(found.apart_s, 'seconds')}, bound by {self.bound_words(found.fused)}. First response: "
            "leave it alone, and look for a kernel that waits for bytes."
        )

    @regime()
    def spilled(self):
        return self.spills(), (
            f"Register pressure: {show(self.kept, 'count')} values for each of 8 elements want "
            f"{show(fusion.registers_a_thread(self.kept), 'count')} registers, a thread has 255, and "
            f"{show(fusion.spilled_bytes(self.elements, self.kept), 'bytes')} spill. First response: fewer "
            "elements a thread, or two kernels."
        )

    @regime()
    def launch_bound(self):
        found = self.found()
        return self.binding(found.one) == 2, (
            f"Launch-bound: the bytes of an operation take {show(found.one.memory_s, 'seconds')}, its launch "
            f"{show(self.launch, 'seconds')}. Fusing saves launches here, not bytes. First response: "
            "torch.compile (lesson 18) or a CUDA graph (lesson 19)."
        )

    def summary(self):
        found, one = self.found(), self.operations == 1
        times = [show(each, "seconds") for each in (found.fused_s, found.apart_s)]
        sizes = [show(each, "bytes") for each in (found.fused_bytes, found.apart_bytes)]
        chain = counted(self.operations, "elementwise operation", "elementwise operations")
        spared = f", though {sizes[0]} move instead of {sizes[1]}"
        less = choose(found.fused_bytes < found.apart_bytes, spared, "")
        return choose(
            np.abs(found.fused_s - found.apart_s) < 0.005 * found.apart_s,
            f"Fused or apart, {chain} {choose(one, 'takes', 'take')} {times[0]}{less}.",
            f"Fused, {chain} {choose(one, 'takes', 'take')} {times[0]} instead of {times[1]} and "
            f"{choose(one, 'moves', 'move')} {sizes[0]} instead of {sizes[1]}.",
        )


Fusion.serve_as(__name__)
