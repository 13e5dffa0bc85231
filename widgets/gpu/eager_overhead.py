"""Two lanes of an eager step: the CPU issues operators and the GPU runs them; and which of the two limits the
speed at which size."""

import numpy as np
from bokeh.core.properties import value
from bokeh.models import LinearScale, Range1d

from engine import catalog
from engine.base import units
from engine.calibration import DEFAULT, launch_costs
from engine.one_gpu import dispatch
from engine.one_gpu.dispatch import ADD, MATMUL
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

SHOWN = 12  # operators on the lanes
SIDES = np.geomspace(4, 16384, 97)
X, Y = (3, 16384), (1e-6, 30.0)  # of the curves; the lanes stand above them
SIDE_TICKS, TIME_TICKS = (16, 128, 1024, 8192), (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
CPU_AT, GPU_AT, HALF = 0.9, 0.74, 0.055  # of the lanes, as shares of the picture
HEAD_AT, TITLE_AT = 0.985, 0.615
ISSUE_NAME_AT = 48  # a side: left of where the kernels' curve rises, right of its name
KINDS = {"matmul": ("matrix product", MATMUL), "add": ("addition", ADD)}
SYNCS = {"never": ("never", 0), "100": ("every 100", 100), "10": ("every 10", 10), "1": ("after each", 1)}
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "b200")]
LANES = ("kind", "side", "ops", "issue_s", "gpu", "sync", "shortest_s")
TIMED = [row for row in dispatch.timed("matmul") if row.gpu in ("", *(gpu.key for gpu in GPUS))]
# of the GPU that it was timed on; of none where nobody says
TIMED_ON = np.array([catalog.gpu(row.gpu).hbm_bytes_per_s if row.gpu else 0.0 for row in TIMED])
ALONE_S = np.array([row.kernel_s for row in TIMED])
WORTH = 1.01  # a GPU of twice the speed that gives less gives nothing


def in_words(kernel_s: float) -> str:
    return f" in a loop, {units.human(kernel_s, 'seconds')} the kernel alone" if kernel_s else ""


class EagerOverhead(Widget):
    question = "Who waits for whom: the GPU for the CPU, or the CPU for the GPU?"
    side = Number("Side of the matrices", 2048, 4, 16384, stops=97, whole=True, marks=(512, 1024, 4096))
    issue_s = Number(
        "CPU time for an operator",
        launch_costs.ISSUE_S,
        1e-6,
        100e-6,
        family="seconds",
        stops=61,
        marks=(4e-6, 40e-6),
        help="Python, dispatcher, autograd and launch",
    )
    gpu = Choice("GPU", GPUS, "h100-sxm")
    kind = Choice("Operator", KINDS, "matmul", more=True)
    ops = Number("Operators a step", 1000, 20, 4000, stops=57, whole=True, marks=(2000,), more=True)
    sync = Choice(
        "Results read by the CPU",
        SYNCS,
        "never",
        more=True,
        help=".item(), .cpu() and print each wait for the GPU",
    )
    shortest_s = Number(
        "Shortest kernel", launch_costs.SHORTEST_S, 0.5e-6, 10e-6, family="seconds", stops=45, more=True
    )

    presets = {
        "Products of 2,048²": {},
        "4,096² on an A100": {"side": 4096, "gpu": "a100-80"},
        "8,192², a full queue": {"side": 8192, "ops": 2000},
        "Additions of 4,096²": {"kind": "add", "side": 4096},
        "… .item() after each": {"side": 2048, "sync": "1"},
    }
    break_it = (
        "Make a GPU of twice the speed worth nothing. Do it with the size, then come back to 2,048² and do "
        "it with the GPU menu alone."
    )
    assumptions = (
        "All operators are alike, in bf16 on one stream, and the GPU starts idle. A product runs at "
        f"{show(dispatch.MATMUL_SHARE, 'percent', 2)} of the dense peak or "
        f"{show(DEFAULT.memory_share, 'percent', 2)} of HBM's rate, whichever takes longer, an addition "
        "at the latter, and no kernel is shorter than the shortest. CUDA's queue holds 1,024 launches. The "
        "first 12 operators are drawn; the words count them all. Diamonds: products timed in a loop, by "
        "NVIDIA (DGXC sample log, which names neither GPU nor CPU nor format, so that they stay for each "
        "GPU) and by measure/launches.py on an H100, whose kernels alone are the small circles."
    )
    formula = (
        "$$\\tau_\\text{step} = n\\,\\max(\\tau_\\text{issue}, \\tau_\\text{kernel}) + "
        "\\min(\\tau_\\text{issue}, \\tau_\\text{kernel})$$\n\n"
        "$$\\tau_\\text{synchronized} = n\\,(\\tau_\\text{issue} + \\tau_\\text{kernel})$$\n\n"
        "with $n$ operators, $\\tau_\\text{issue}$ to issue one and $\\tau_\\text{kernel}$ to run it. The "
        "GPU is the slower one where $\\tau_\\text{kernel} > \\tau_\\text{issue}$, which is from "
        "$2\\,\\text{side}^3 = \\tau_\\text{issue}\\, C$ on for products at $C$ FLOP/s, and from "
        "$6\\,\\text{side}^2 = \\tau_\\text{issue}\\,W_\\text{HBM}$ for additions at $W_\\text{HBM}$ bytes "
        "a second. The picture runs the two lanes."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def op_s(self, side):
        return dispatch.op_s(
            self.kind, side, self.gpu.bf16_flops_per_s, self.gpu.hbm_bytes_per_s, self.shortest_s
        )

    @once
    def found(self):
        return dispatch.run(self.ops, self.issue_s, self.op_s(self.side), self.sync, dispatch.QUEUE)

    def sync_row(self):
        """How often results are read, as a row of SYNCS."""
        return np.where(self.sync > 0, np.where(self.sync > 1, 1.0, 3.0), 0.0)

    def gain(self):
        """The gain from a GPU that runs each kernel in half the time."""
        return dispatch.gain_of_faster_gpu(self.ops, self.issue_s, self.op_s(self.side), self.sync)

    def idle_share(self):
        return self.found()["gpu_idle_s"] / self.found()["total_s"]

    def waits_share(self):
        return self.found()["cpu_waits_s"] / self.found()["total_s"]

    def covering(self):
        return dispatch.covering_side(
            self.kind, self.issue_s, self.gpu.bf16_flops_per_s, self.gpu.hbm_bytes_per_s
        )

    def first(self, name):
        return self.found()[name][:SHOWN]

    def window_s(self):
        """The time that the lanes show: until the last of their kernels has ended."""
        return np.max(self.first("end_s"))

    def marks(self, start_s, end_s, at):
        return {
            "left": start_s / self.window_s(),
            "right": end_s / self.window_s(),
            **fig.rows_of(np.broadcast_to(at, (SHOWN,)), HALF),
        }

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*LANES)
    def issued(self):
        start_s = self.first("issued_s")
        end_s = start_s + self.issue_s
        return {"start_s": start_s, "end_s": end_s, **self.marks(start_s, end_s, CPU_AT)}

    @hint("issued")
    def about_issue(self):
        return phrase(
            "the CPU issues operator {n}, until {end}",
            n=show(np.arange(SHOWN) + 1, "count"),
            end=show(self.issued()["end_s"], "seconds"),
        )

    @part(*LANES)
    def kernels(self):
        return {
            "start_s": self.first("start_s"),
            "end_s": self.first("end_s"),
            **self.marks(self.first("start_s"), self.first("end_s"), GPU_AT),
        }

    @hint("kernels")
    def about_kernel(self):
        return phrase(
            "kernel {n} runs from {start} to {end}",
            n=show(np.arange(SHOWN) + 1, "count"),
            start=show(self.first("start_s"), "seconds"),
            end=show(self.first("end_s"), "seconds"),
        )

    @part(*LANES, shown=False)
    def idle(self):
        """Before each kernel, and on the CPU's lane after each launch."""
        gpu = self.marks(
            np.concatenate([np.zeros(1), self.first("end_s")[:-1]]), self.first("start_s"), GPU_AT
        )
        start_s = self.first("issued_s")
        cpu = self.marks((start_s + self.issue_s)[:-1], start_s[1:], CPU_AT)
        return {name: np.concatenate([gpu[name], cpu[name][: SHOWN - 1]]) for name in gpu}

    @part(*LANES, shown=False)
    def launches(self):
        return {
            "x": self.first("launched_s") / self.window_s(),
            "to": self.first("start_s") / self.window_s(),
        }

    @part("kind", "issue_s", "gpu", "sync", "shortest_s")
    def curves(self):
        kernel_s = self.op_s(SIDES)
        return {
            "side": SIDES,
            "issue_s": np.broadcast_to(self.issue_s, SIDES.shape),
            "kernel_s": kernel_s,
            "pace_s": dispatch.pace_s(self.issue_s, kernel_s, self.sync),
        }

    @part("kind", "side", "issue_s", "gpu", "sync", "shortest_s", shown=False)
    def here(self):
        return {
            "x": self.side,
            "y": dispatch.pace_s(self.issue_s, self.op_s(self.side), self.sync),
            "kernel": self.op_s(self.side),
        }

    @part("kind", "side", "issue_s", "gpu", "sync", "shortest_s", shown=False)
    def names(self):
        issued, run = show(self.issue_s, "seconds"), show(self.op_s(self.side), "seconds")
        title = select(
            self.sync_row(),
            [
                f"Per operator: CPU {issued}, GPU {run}; the slower sets the pace",
                *["Per operator: a look adds the shorter"] * 2,
                "Per operator: read, the two add up",
            ],
        )
        return {
            "kernel": self.op_s(SIDES[0]),
            "issue": self.issue_s,
            "title": f"{title}{choose(self.kind == MATMUL, '; diamonds: measured', '')}",
            "short": select(self.sync_row(), [f"CPU {issued}, GPU {run} an operator", *[title] * 3]),
        }

    @part("kind", "issue_s", "gpu", shown=False)
    def turn(self):
        return {"x": self.covering()}

    @part("kind", "gpu")
    def timed(self):
        """Measured times: those that others published, and our own on the chosen GPU, with their kernels."""
        here = np.where((TIMED_ON == 0) | (self.gpu.hbm_bytes_per_s == TIMED_ON), 1.0, 0.0)
        seen = np.where(self.kind == MATMUL, here, 0.0)
        return {
            "side": np.array([float(row.side) for row in TIMED]),
            "seconds": np.array([row.seconds for row in TIMED]),
            "kernel_s": np.where(ALONE_S > 0, ALONE_S, Y[0]),
            "seen": seen,
            "alone": np.where(ALONE_S > 0, seen, 0.0),
        }

    @hint("timed")
    def about_timed(self):
        return phrase(
            "{who}, side {side}: {time}{alone}",
            who=select(np.arange(len(TIMED)), [row.who for row in TIMED]),
            side=show(np.array([float(row.side) for row in TIMED]), "count"),
            time=show(np.array([row.seconds for row in TIMED]), "seconds"),
            alone=select(np.arange(len(TIMED)), [in_words(row.kernel_s) for row in TIMED]),
        )

    def figure(self, sources):
        p = fig.plot(X, Y, height=520, x_log=True, y_log=True, x_title="side of the matrices")
        fig.ticks(p.xaxis[0], SIDE_TICKS, "count")
        fig.ticks(p.yaxis[0], TIME_TICKS, "seconds")
        p.yaxis[0].bounds = TIME_TICKS[0], TIME_TICKS[-1]
        p.grid.visible = False
        self.draw_curves(p, sources)
        self.draw_lanes(p, sources)
        return p

    def draw_curves(self, p, sources):
        color, here = fig.COLOR, sources["here"]
        p.line(
            "side", "pace_s", source=sources["curves"], line_color=color["ink"], line_width=7, line_alpha=0.18
        )
        for hue, column, dash in (("ink-soft", "issue_s", [6, 3]), ("compute", "kernel_s", [])):
            p.line(
                "side", column, source=sources["curves"], line_color=color[hue], line_width=2, line_dash=dash
            )
        p.text(
            SIDES[0],
            "kernel",
            text=value("GPU runs"),
            source=sources["names"],
            y_offset=10,  # below its line: above it are the kernels that were timed
            **fig.BOLD | {"text_color": color["compute"]},
        )
        p.text(
            ISSUE_NAME_AT,
            "issue",
            text=value("CPU issues"),
            source=sources["names"],
            y_offset=12,
            **fig.BOLD | {"text_color": color["ink-soft"]},
        )
        p.segment(
            "x",
            Y[0],
            "x",
            TIME_TICKS[-1],
            source=sources["turn"],
            line_color=color["ink-faint"],
            line_dash=[2, 4],
        )
        p.scatter(
            "side",
            "seconds",
            marker="diamond",
            size=11,
            source=sources["timed"],
            fill_color=color["panel"],
            fill_alpha="seen",
            line_color=color["ink"],
            line_alpha="seen",
        )
        p.scatter(
            "side",
            "kernel_s",
            marker="circle",
            size=7,
            source=sources["timed"],
            fill_color=color["panel"],
            fill_alpha="alone",
            line_color=color["compute"],
            line_alpha="alone",
        )
        p.scatter("x", "kernel", size=8, source=here, fill_color=color["compute"], line_color=None)
        p.scatter("x", "y", size=13, source=here, fill_color=None, line_color=color["ink"], line_width=2.5)

    def draw_lanes(self, p, sources):
        color = fig.COLOR
        p.extra_x_ranges = {**p.extra_x_ranges, "lanes": Range1d(-0.17, 1.01)}
        place = {"x_range_name": "lanes", **fig.still_height(p)}
        box = fig.BOX | place
        p.quad(**box, source=sources["idle"], **fig.IDLE)
        p.quad(**box, source=sources["issued"], fill_color=color["ink-faint"], line_color=color["panel"])
        p.quad(**box, source=sources["kernels"], fill_color=color["compute"], line_color=color["panel"])
        p.segment(
            "x",
            CPU_AT - HALF,
            "to",
            GPU_AT + HALF,
            source=sources["launches"],
            line_color=color["ink"],
            line_alpha=0.5,
            **place,
        )
        for at, name in ((CPU_AT, "CPU"), (GPU_AT, "GPU")):
            p.text([-0.012], [at], text=[name], text_align="right", **place, **fig.BOLD)
        p.text([0], [HEAD_AT], text=value("The first 12 operators; white: waits"), **place, **fig.LABEL)
        for width, title in (("wide", "title"), ("narrow", "short")):
            fig.only(width, p.text(0, TITLE_AT, text=title, source=sources["names"], **place, **fig.LABEL))
        # the lanes are no part of the logarithmic axes that they stand above
        p.extra_x_scales = {name: LinearScale() for name in p.extra_x_ranges}
        p.extra_y_scales = {name: LinearScale() for name in p.extra_y_ranges}

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Step", rest=True)
    def step(self):
        return show(self.found()["total_s"], "seconds")

    @readout("A kernel")
    def kernel(self):
        return show(self.op_s(self.side), "seconds")

    @readout("GPU idle", rest=True)
    def idles(self):
        return show(self.idle_share(), "percent", 2), self.idle_share() > 0.1

    @readout("CPU waits", rest=True)
    def waits(self):
        return show(self.waits_share(), "percent")

    @readout("GPU is the slower from side")
    def from_side(self):
        return show(self.covering(), "count")

    @readout("Twice the GPU gives")
    def twice(self):
        return show(self.gain(), "times"), self.gain() < WORTH

    @regime(target=True)
    def issue_bound(self):
        return self.gain() < WORTH, (
            "You found the step that no GPU shortens: a kernel takes "
            f"{show(self.op_s(self.side), 'seconds')}, its issue {show(self.issue_s, 'seconds')}, so the GPU "
            f"idles {show(self.idle_share(), 'percent', 2)} of the time and one of twice the speed gives "
            f"{show(self.gain(), 'times')}. First response: fewer, larger operators: a larger batch, fused "
            "ones (16, 18), or one launch for all of them (19)."
        )

    @regime()
    def synchronized(self):
        return (self.sync > 0) & (self.waits_share() > 0.1), (
            "Each result that the CPU reads empties the queue: the GPU idles "
            f"{show(self.idle_share(), 'percent', 2)} while the CPU issues again, "
            f"the CPU waits {show(self.waits_share(), 'percent')}. First response: keep the number on the "
            "GPU, read it every hundred steps."
        )

    @regime()
    def queue_full(self):
        return self.found()["most_queued"] >= dispatch.QUEUE, (
            "The queue is full: 1,024 launches wait, and the next call returns only when a kernel has ended. "
            "The GPU loses nothing by it; a profile shows the time in cudaLaunchKernel. It is no sign of "
            "slow launches."
        )

    def summary(self):
        slower = choose(
            self.op_s(self.side) >= self.issue_s, "The GPU sets the pace", "The CPU sets the pace"
        )
        waited = "Each result is read, so both times add up"
        slower = select(self.sync_row(), [slower, slower, slower, waited])
        return (
            f"{slower}: {show(self.ops, 'count')} operators take {show(self.found()['total_s'], 'seconds')}, "
            f"and the GPU idles {show(self.idle_share(), 'percent', 2)} of it."
        )


EagerOverhead.serve_as(__name__)
