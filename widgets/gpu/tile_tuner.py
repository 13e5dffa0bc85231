"""Choosing the tile of a matrix product: what fits on a multiprocessor, how tiles spread over the chip, and
the resulting speed."""

import numpy as np
from bokeh.models import LinearScale

from engine.mechanism import roofline
from engine.one_gpu import tiling
from engine.one_gpu.tiling import Tile
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show, show_in
from widgets.kit.widget import Widget, hint, once, part, readout, regime

LEAST_ROWS, MOST_ROWS = 32.0, 8192.0  # of the axis, which is logarithmic: 64 rows shall be as plain as 4,096
STEPS = np.arange(LEAST_ROWS, MOST_ROWS + 1, 32.0)
ROWS = np.sort(np.append(STEPS, STEPS[STEPS < 1024.0] + 1.0))  # where steps are wide, what one row more does
VIEWS = [340e12, 960e12]  # FLOP/s that the picture reaches up to
# between these shares of the ceiling and of the view the dot's value is below it
TROUGH, BESIDE, UNDER_PX = 0.85, 0.3, 36.0
UNDER_CEILING = 0.1  # of the view: a dot so near to the ceiling has its value above that
# rows from which on the dot's value changes its side, the ceiling's name its end: at shares of the axis
SIDES = LEAST_ROWS * (MOST_ROWS / LEAST_ROWS) ** np.array([0.12, 0.46, 0.85])
ACROSS = (25.0, 14000.0)
BELOW = 0.78  # how far under zero the gauges reach, of what is above
GAUGES = np.array([0.255, 0.145, 0.035])  # of the picture's height
WAVES = np.arange(64.0)  # drawn at most
GAUGE, GAUGE_AT, GAUGE_ENDS = 0.046, 0.016, 0.6  # height, and where a gauge begins and is full, of the width
TAIL, SPARSE = 0.45, 0.5
BOUND_BY = ["arithmetic", "reads through L2", "the latency of loads", "HBM"]
PRODUCTS = tiling.products()
NUMBERS = {
    name: np.array([float(getattr(row, name)) for row in PRODUCTS]) for name in ("m", "n", "k", "flops_per_s")
}
MEASURED_ON = np.array([tiling.chip(row.chip).multiprocessors for row in PRODUCTS])
TIMED = tiling.timed_here()
TIMES = {
    name: np.array([float(getattr(row, name)) for row in TIMED]) for name in ("m", "n", "k", "flops_per_s")
}
TIMED_ON = np.array([tiling.chip(row.chip).multiprocessors for row in TIMED])
OURS = np.array([0.0 if row.tile is None else 1.0 for row in TIMED])  # of this kernel; else of torch's
TIMED_TILES = np.array([row.tile or (0.0,) * len(Tile._fields) for row in TIMED])
# of the view, at the left, where no curve is high: which tile is dashed, and what the marks are
BEST_ROW, KEY_AT, KEY_ROWS = 0.74, 40.0, np.array([0.6, 0.51])
TILE = ("block_m", "block_n", "block_k", "stages", "warps")
SPEED = (*TILE, "n", "k", "group", "gpu")


def side(default, sizes=(32, 64, 128, 256), **how):
    return {"options": {str(size): (str(size), float(size)) for size in sizes}, "default": str(default)} | how


class TileTuner(Widget):
    question = "Which tile suits this product on this chip?"
    m = Number(
        "Rows of A, tokens",
        2048,
        64,
        MOST_ROWS,
        stops=range(64, int(MOST_ROWS) + 1, 64),
        log=False,
        whole=True,
        marks=(896,),
    )
    block_m = Choice("BLOCK_M", **side(128))
    block_n = Choice("BLOCK_N", **side(256))
    block_k = Choice("BLOCK_K", **side(64, (32, 64, 128)), more=True)
    stages = Number(
        "Stages",
        3,
        1,
        6,
        stops=6,
        log=False,
        whole=True,
        more=True,
        help="Blocks along k that are being loaded or used at a time: num_stages",
    )
    warps = Choice(
        "Warps", **side(8, (4, 8)), more=True, help="Warps of 32 threads in one program: num_warps"
    )
    n = Number(
        "Columns of B", 4096, 128, 16384, marks=(1792, 2048, 2432, 6144, 8192, 14336), whole=True, more=True
    )
    k = Number("Inner size", 4096, 128, 16384, marks=(1792, 2048, 8192, 14336), whole=True, more=True)
    group = Number(
        "Group of rows",
        8,
        1,
        16,
        stops=16,
        log=False,
        whole=True,
        more=True,
        help="Rows of tiles traversed together; 1 is row-major order",
    )
    gpu = Choice("GPU", {key: (at.name, at) for key, at in tiling.chips().items()}, "h100-sxm", more=True)

    presets = {
        "Llama 3 8B, 2,048 tokens": {},
        "128 tokens more": {"m": 2176},
        "Tiles of 64 × 64": {"block_m": "64", "block_n": "64", "block_k": "32", "stages": 3, "warps": "4"},
        "128 tokens": {"m": 128},
        "Two waves exactly, measured": {"m": 4224, "n": 2048, "k": 8192},
        "A100, 1,792²": {
            "m": 1792,
            "n": 1792,
            "k": 1792,
            "block_m": "256",
            "block_n": "128",
            "gpu": "a100-80",
        },
    }
    break_it = (
        "Send nearly half of the chip home: just more tiles than multiprocessors, such as 133 on 132. Then "
        "see how far another tile mends it."
    )
    assumptions = (
        "Operands are bf16 and sums fp32, each tile has one program, and k is not split. The ceiling is the "
        "best product of a published sweep on the chip. Shared memory is what Triton 3.9 compiles; "
        "registers are met within 20 %. A step is as slow as the arithmetic, the reads through L2, or the "
        "latency that the stages leave bare; HBM brings each operand once a wave where the two do not fit "
        "in L2. Left out: the launch, bank conflicts, clusters, and clocks that sink under load. Squares "
        "and circles were timed by measure/tile_sweep.py."
    )
    formula = (
        r"$$\text{SMEM} = 2\,s\,b_k\,(b_m + b_n)$$"
        "\n\n"
        r"$$\frac{\text{FLOP}}{\text{byte}} = \frac{b_m b_n}{b_m + b_n}$$"
        "\n\n"
        r"$$\tau \approx \left\lceil\frac{\text{tiles}}{\text{SMs}}\right\rceil"
        r"\left(\frac{2\,b_m b_n k}{r} + \ell"
        r" + \frac{2\,b_m b_n}{q}\right)$$"
        "\n\n$r$ and $q$ are an SM's share of the chip's FLOP/s and of L2's bytes a second, $\\ell$ the "
        "latency of a load. $s$ stages of blocks $b_m \\times b_k$ and $b_k \\times b_n$ of two bytes, of "
        "$k$ in all; on an A100 one stage less, since the one in use is in registers. The multiprocessor "
        "with the most tiles ends last (NVIDIA, Matrix Multiplication Background User's Guide, section 3.2). "
        "A step of a program takes at least $\\ell/(s - 1)$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def tile(self):
        return Tile(self.block_m, self.block_n, self.block_k, self.stages, self.warps)

    def shape(self):
        return self.m, self.n, self.k

    @once
    def best(self):
        return tiling.best(*self.shape(), self.gpu, self.group)

    @once
    def found(self):
        return tiling.times(*self.shape(), self.tile(), self.gpu, self.group)

    def speed(self):
        return tiling.flops_per_s(*self.shape(), self.tile(), self.gpu, self.group)

    def best_speed(self):
        return tiling.flops_per_s(*self.shape(), self.best(), self.gpu, self.group)

    def fits(self):
        return tiling.resident(self.tile(), self.gpu) >= 1

    def refused(self):
        return tiling.resident(self.tile(), self.gpu) < 1

    def count(self):
        return tiling.programs(self.m, self.n, self.tile())

    def most(self):
        return tiling.busiest(self.count(), self.gpu.multiprocessors)

    def idle(self):
        return 1.0 - tiling.busy_share(self.count(), self.gpu.multiprocessors)

    def left_over(self):
        """How many tiles the last wave has, in words."""
        return show(tiling.last_wave_tiles(self.count(), self.gpu.multiprocessors), "count")

    def kind(self):
        return tiling.bound(self.found())

    def few(self):
        """Whether less than half of the chip has any tile."""
        return self.fits() & (self.idle() > SPARSE) & (self.most() <= 1)

    def bound_words(self):
        return choose(self.few() & (self.kind() == 0), "too few tiles", select(self.kind(), BOUND_BY))

    @staticmethod
    def named(tile):
        return (
            f"{show(tile.block_m, 'count')} × {show(tile.block_n, 'count')} × {show(tile.block_k, 'count')}"
        )

    def unless_it_launches(self):
        return choose(self.fits(), "", " (it does not launch)")

    # -- the picture -----------------------------------------------------------------------------------------
    def along_rows(self, tile):
        return {
            "rows": ROWS,
            "flops_per_s": tiling.flops_per_s(ROWS, self.n, self.k, tile, self.gpu, self.group),
        }

    @part(*SPEED)
    def curve(self):
        return self.along_rows(self.tile())

    @hint("curve")
    def of_some_rows(self):
        count = tiling.programs(ROWS, self.n, self.tile())
        at = self.gpu.multiprocessors
        return phrase(
            "{rows} rows: {speed}{why} in {tiles} tiles, with {last} of {all} multiprocessors busy in the "
            "last wave",
            rows=show(ROWS, "count"),
            speed=show(self.along_rows(self.tile())["flops_per_s"], "flops_per_s"),
            why=self.unless_it_launches(),
            tiles=show(count, "count"),
            last=show(tiling.last_wave_tiles(count, at), "count"),
            all=show(at, "count"),
        )

    @part("m", "n", "k", "group", "gpu")
    def best_curve(self):
        return self.along_rows(self.best())

    @part("m", *SPEED)
    def here(self):
        better, name = self.best_speed() > self.speed(), f"dashed: {self.named(self.best())}"
        rows = show(self.m, "count")
        return {
            "rows": self.m,
            "flops_per_s": self.speed(),
            "best": self.best_speed(),
            "best_row": BEST_ROW * self.view(),
            **self.value_of_the_dot(),
            "text": choose(better, f"{name}, the best for {rows} rows", "no tile is faster"),
            "short": choose(better, name, "no tile is faster"),
        }

    def value_of_the_dot(self):
        """Its words, just above it and clear of the ceiling and its name; below it where the curve
        passes on both sides, and above all other words where it is at the foot."""
        at, ceiling = self.speed(), self.gpu.flops_per_s
        low = (at < TROUGH * ceiling) & (at > BESIDE * self.view())
        above = fig.clear_of(at, ceiling, UNDER_CEILING * self.view())
        side = np.sum(np.where(self.m >= SIDES, 1.0, 0.0))
        return {
            "value": show(at, "flops_per_s"),
            "value_at": above,
            "value_align": select(side, ["left", "center", "left", "right"]),
            "value_narrow": select(np.where(self.m > SIDES[1], 1.0, 0.0), ["left", "right"]),
            "value_up": np.where(low, UNDER_PX, -15.0),
            # on a phone, above the ceiling's name
            "value_up_narrow": np.where(
                low, UNDER_PX, np.where(above > at, -29.0, np.where(at > 0, -15.0, -34.0))
            ),
        }

    @hint("here")
    def of_this_product(self):
        return [
            (
                f"{show(self.m, 'count')} rows: {show(self.speed(), 'flops_per_s')} with this tile"
                f"{self.unless_it_launches()}, {show(self.best_speed(), 'flops_per_s')} with the best, "
                f"{self.named(self.best())}"
            )
        ]

    @part("m", "gpu", shown=False)
    def ceiling(self):
        left = self.m >= SIDES[1]
        return {
            "flops_per_s": self.gpu.flops_per_s,
            "x": np.where(left, LEAST_ROWS, MOST_ROWS),
            "align": choose(left, "left", "right"),
            "text": f"best of a published sweep: {show(self.gpu.flops_per_s, 'flops_per_s')}",
            "short": f"best of a sweep: {show(self.gpu.flops_per_s, 'flops_per_s')}",
        }

    @part("n", "k", "gpu")
    def measured(self):
        here = (self.n == NUMBERS["n"]) & (self.k == NUMBERS["k"]) & (self.gpu.multiprocessors == MEASURED_ON)
        return {
            "rows": NUMBERS["m"],
            "flops_per_s": NUMBERS["flops_per_s"],
            "seen": np.where(here, 1.0, 0.0),
            "text": [choose(here[i], f"measured: {row.name}", "") for i, row in enumerate(PRODUCTS)],
            "short": [choose(here[i], "measured", "") for i in range(len(PRODUCTS))],
        }

    @hint("measured")
    def of_a_measured_product(self):
        ours = tiling.flops_per_s(NUMBERS["m"], self.n, self.k, self.tile(), self.gpu, self.group)
        seen = self.measured()["seen"] > 0
        return [
            choose(
                seen[i],
                f"{row.name}: {show(row.flops_per_s, 'flops_per_s')} at {show(row.m, 'count')} rows; "
                f"the model says {show(ours[i], 'flops_per_s')} with this tile",
                "",
            )
            for i, row in enumerate(PRODUCTS)
        ]

    @part("n", "k", "gpu", *TILE)
    def timed(self):
        """Our own timings: of lesson 17's kernel with the chosen tile, and of torch's product."""
        here = (self.n == TIMES["n"]) & (self.k == TIMES["k"]) & (self.gpu.multiprocessors == TIMED_ON)
        same = np.where(OURS > 0, 1.0, 0.0)
        for at, side in enumerate(self.tile()):
            same = same * np.where(side == TIMED_TILES[:, at], 1.0, 0.0)
        return {
            "rows": TIMES["m"],
            "flops_per_s": TIMES["flops_per_s"],
            "kernel": np.where(here, same, 0.0),
            "torch": np.where(here, 1.0 - OURS, 0.0),
        }

    @hint("timed")
    def of_a_timed_product(self):
        timed = self.timed()
        ours = tiling.flops_per_s(TIMES["m"], self.n, self.k, self.tile(), self.gpu, self.group)
        return [
            choose(
                timed["kernel"][i] + timed["torch"][i] > 0,
                f"{'torch' if row.tile is None else 'this kernel'}, measured: "
                f"{show(row.flops_per_s, 'flops_per_s')} at {show(row.m, 'count')} rows; the model says "
                f"{show(ours[i], 'flops_per_s')} with this tile",
                "",
            )
            for i, row in enumerate(TIMED)
        ]

    @part("n", "k", "gpu", *TILE, shown=False)
    def key(self):
        """What the marks of our timings are."""
        timed = self.timed()
        kernel, torch = np.max(timed["kernel"]), np.max(timed["torch"])
        return {
            "rows": np.array([KEY_AT, KEY_AT]),
            "flops_per_s": KEY_ROWS * self.view(),
            "kernel": np.array([1.0, 0.0]) * kernel,
            "torch": np.array([0.0, 1.0]) * torch,
            "text": [
                choose(kernel > 0, "this kernel, measured", ""),
                choose(torch > 0, "torch, measured", ""),
            ],
            "short": [choose(kernel > 0, "kernel, timed", ""), choose(torch > 0, "torch, timed", "")],
        }

    @part("m", "n", "gpu", *TILE)
    def gauges(self):
        """What one program takes, what all resident ones take, and how much of the chip the last wave
        uses."""
        tile, at = self.tile(), self.gpu
        smem, registers, _ = tiling.budget_shares(tile, at)
        last = tiling.last_wave_tiles(self.count(), at.multiprocessors) / at.multiprocessors
        held = np.maximum(tiling.resident(tile, at), 1.0)
        own = np.stack([smem, registers, last])
        every = own * np.stack([held, held, 1.0])
        over = np.where(own > 1, 1.0, 0.0)
        return {
            "y": GAUGES,
            "one_share": own,
            "all_share": every,
            "over": over,
            "light": (1.0 - over) * 0.3,
            "strong": (1.0 - over) * 0.45,
            "over_fill": over * 0.13,
            "over_right": np.where(own > 1, GAUGE_ENDS, GAUGE_AT),
            "one": fig.between(GAUGE_AT, GAUGE_ENDS, np.minimum(own, 1.0)),
            "all": fig.between(GAUGE_AT, GAUGE_ENDS, np.minimum(every, 1.0)),
            "short": self.short_words(),
            "text": self.gauge_words(),
        }

    @part("m", "n", "gpu", *TILE, shown=False)
    def waves(self):
        """Beside one another, each as high as the share of multiprocessors that have a tile in it."""
        drawn, at = np.minimum(self.most(), WAVES.size), self.gpu.multiprocessors
        there, last = drawn > WAVES, drawn == WAVES + 1
        share = np.where(last, tiling.last_wave_tiles(self.count(), at) / at, 1.0)
        low, high = GAUGES[2] - GAUGE / 2, GAUGES[2] + GAUGE / 2
        left, right = (fig.between(GAUGE_AT, GAUGE_ENDS, edge / drawn) for edge in (WAVES, WAVES + 1))
        return {
            "left": fig.gone_unless(there, left),
            "right": fig.gone_unless(there, right),
            "bottom": np.full(WAVES.size, low),
            "top": fig.between(low, high, share),
        }

    @hint("gauges")
    def of_a_gauge(self):
        gauges, held = self.gauges(), tiling.resident(self.tile(), self.gpu)
        taken = [
            choose(
                held > 1,
                f"one program takes {show(gauges['one_share'][i], 'percent')} of a multiprocessor’s, "
                f"the {show(held, 'count')} that it holds {show(gauges['all_share'][i], 'percent')}",
                f"a program takes {show(gauges['one_share'][i], 'percent')} of a multiprocessor’s",
            )
            for i in range(2)
        ]
        return [
            f"Shared memory: {taken[0]}",
            f"Registers: {taken[1]}",
            (
                f"Last wave: {self.left_over()} of {show(self.gpu.multiprocessors, 'count')} multiprocessors "
                f"have a tile, {show(gauges['one_share'][2], 'percent')}"
            ),
        ]

    def gauge_words(self):
        tile, at = self.tile(), self.gpu
        needed = tiling.registers_needed(tile, at)
        return [
            f"{show_in(tiling.smem_bytes(tile, at), 'KiB')} a program, of {show_in(at.smem_bytes, 'KiB')}",
            choose(
                needed > tiling.MOST_REGISTERS,
                f"{show(needed, 'count')} a thread, of 255: they spill",
                f"{show(needed, 'count')} of 255 for each thread",
            ),
            (
                f"{show(self.count(), 'count')} tiles: wave {show(self.most(), 'count')} has "
                f"{self.left_over()} of {show(at.multiprocessors, 'count')}"
            ),
        ]

    def short_words(self):
        tile, at = self.tile(), self.gpu
        return [
            show_in(tiling.smem_bytes(tile, at), "KiB"),
            f"{show(tiling.registers_needed(tile, at), 'count')} each",
            f"wave {show(self.most(), 'count')}: {self.left_over()}",
        ]

    def view(self):
        return np.where(self.gpu.flops_per_s > VIEWS[0], VIEWS[1], VIEWS[0])

    def ranges(self):
        return {"y": [self.view() * -BELOW, self.view()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(ACROSS, (-BELOW * VIEWS[1], VIEWS[1]), height=560, x_log=True)
        fig.ticks(p.xaxis[0], [32, 128, 512, 2048, 8192], "count")
        fig.ticks(p.yaxis[0], [i * 100e12 for i in range(9)], "flops_per_s")
        p.xaxis[0].fixed_location, p.yaxis[0].bounds = 0, (0, VIEWS[1])
        fixed = fig.still_height(p)
        p.segment(
            LEAST_ROWS,
            "flops_per_s",
            MOST_ROWS,
            "flops_per_s",
            source=sources["ceiling"],
            line_color=color["compute"],
            line_dash=[2, 4],
            line_width=2,
        )
        top = {"y": "flops_per_s", "source": sources["ceiling"], "y_offset": -10} | fig.LABEL
        fig.only("wide", p.text("x", text="text", text_align="align", **top))
        fig.only("narrow", p.text(MOST_ROWS, text="short", text_align="right", **top))
        line = {"x": "rows", "y": "flops_per_s"}
        p.line(
            **line,
            source=sources["best_curve"],
            line_color=color["ink-faint"],
            line_dash=[6, 4],
            line_width=1.6,
        )
        p.line(**line, source=sources["curve"], line_color=color["compute"], line_width=2.2)
        measured = sources["measured"]
        p.scatter(
            **line,
            source=measured,
            size=11,
            marker="square",
            fill_color=color["panel"],
            fill_alpha="seen",
            line_color=color["accent"],
            line_alpha="seen",
            line_width=2,
        )
        for source in (sources["timed"], sources["key"]):
            for marker, seen, hue in (("circle", "torch", "ink-soft"), ("square", "kernel", "ink")):
                p.scatter(
                    **line,
                    source=source,
                    size=9,
                    marker=marker,
                    fill_color=color["panel"],
                    fill_alpha=seen,
                    line_color=color[hue],
                    line_alpha=seen,
                    line_width=1.8,
                )
        for width, words in (("wide", "text"), ("narrow", "short")):
            fig.only(width, p.text(**line, text=words, source=sources["key"], x_offset=12, **fig.LABEL))
        p.text(MOST_ROWS, 0, text=["rows of A"], text_align="right", y_offset=34, **fig.LABEL)
        here = sources["here"]
        for width, words in (("wide", "text"), ("narrow", "short")):
            fig.only(width, p.text(LEAST_ROWS, "best_row", text=words, source=here, **fig.LABEL))
        p.segment(
            "rows", 0, "rows", "flops_per_s", source=here, line_color=color["ink-faint"], line_dash=[2, 4]
        )
        p.scatter("rows", "best", source=here, size=10, fill_color=color["panel"], line_color=color["ink"])
        p.scatter(
            "rows",
            "flops_per_s",
            source=here,
            size=13,
            fill_color=color["compute"],
            line_color=color["panel"],
        )
        name = (
            {"y_offset": 24, "text_align": "right"}
            | fig.BOLD
            | {"text_color": color["accent"]}
            | fig.ON_PANEL
        )
        for width, words in (("wide", "text"), ("narrow", "short")):
            fig.only(width, p.text(**line, text=words, source=measured, **name))
        dot = {"x": "rows", "y": "value_at", "text": "value", "source": here} | fig.BOLD | fig.ON_PANEL
        fig.only("wide", p.text(text_align="value_align", y_offset="value_up", **dot))
        fig.only("narrow", p.text(text_align="value_narrow", y_offset="value_up_narrow", **dot))
        self.draw_gauges(p, sources["gauges"], sources["waves"], fixed)
        return p

    @staticmethod
    def draw_gauges(p, gauges, waves, fixed):
        color = fig.COLOR
        p.extra_x_ranges = {"share": fig.plot((0, 1), (0, 1)).x_range}
        p.extra_x_scales = {"share": LinearScale()}
        bar = {"y": "y", "height": GAUGE, "source": gauges, "x_range_name": "share"} | fixed
        hue = color["ink-soft"]
        p.hbar(left=GAUGE_AT, right=GAUGE_ENDS, **bar, **fig.IDLE)
        takes = bar | {"view": fig.of_rows([0, 1])}
        for right, strength in (("all", "light"), ("one", "strong")):
            p.hbar(left=GAUGE_AT, right=right, **takes, fill_color=hue, fill_alpha=strength, line_color=hue)
        sides = fig.BOX | {"source": waves}
        place = {"x_range_name": "share"} | fixed
        p.quad(**sides, **place, fill_color=color["compute"], line_color=color["panel"])
        p.hbar(
            left=GAUGE_AT,
            right="over_right",
            **bar,
            **fig.OVER | {"fill_alpha": "over_fill", "line_alpha": "over"},
        )
        for width, last in (
            ("wide", "waves, as high as the multiprocessors that have a tile"),
            ("narrow", "waves, and who has a tile"),
        ):
            fig.only(
                width,
                p.text(
                    np.full(3, GAUGE_AT),
                    GAUGES,
                    text=["shared memory", "registers", last],
                    y_offset=-24,
                    **place,
                    **fig.LABEL,
                ),
            )
        for width, words in (("wide", "text"), ("narrow", "short")):
            fig.only(width, p.text(GAUGE_ENDS + 0.02, "y", text=words, source=gauges, **place, **fig.TEXT))

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Estimate", help="2·m·n·k over the modelled time")
    def estimate(self):
        return choose(self.fits(), show(self.speed(), "flops_per_s"), "does not launch"), self.refused()

    @readout("Bound by", rest=True)
    def bound_by(self):
        return choose(self.fits(), self.bound_words(), "its size")

    @readout(
        "Best of 384 tiles",
        help="By the same model: BLOCK_M and BLOCK_N of 32 to 256, BLOCK_K of 32, 64 and "
        "128, two to five stages, four or eight warps",
        rest=True,
    )
    def best_tile(self):
        return f"{self.named(self.best())}: {show(self.best_speed(), 'flops_per_s')}"

    @readout("Chip idle in the tail")
    def tail_share(self):
        return show(self.idle(), "percent"), self.idle() > TAIL

    @readout("FLOPs a byte from L2", rest=True)
    def reuse(self):
        return show(tiling.intensity(self.tile()), "flops_per_byte")

    @readout("Programs on a multiprocessor")
    def held(self):
        return show(tiling.resident(self.tile(), self.gpu), "count"), self.refused()

    @regime(target=True)
    def tail(self):
        return self.fits() & (self.most() > 1) & (self.idle() > TAIL), (
            f"{show(self.count(), 'count')} tiles on {show(self.gpu.multiprocessors, 'count')} "
            f"multiprocessors: the last wave keeps {self.left_over()} busy, and "
            f"{show(self.idle(), 'percent')} of the chip's time is idle. First response: another tile (the "
            f"best is {self.named(self.best())}), or split the work along k."
        )

    @regime()
    def sparse(self):
        return self.few(), (
            f"Too few tiles: {show(self.count(), 'count')} for {show(self.gpu.multiprocessors, 'count')} "
            "multiprocessors. First response: smaller tiles, then pieces of k for several programs (split-k)."
        )

    @regime()
    def starved(self):
        wanted = roofline.ridge_flops_per_byte(self.gpu.flops_per_s, self.gpu.l2_bytes_per_s)
        return self.fits() & (self.kind() == 1) & (tiling.intensity(self.tile()) < 60), (
            "The tile is too small to feed the matrix units: "
            f"{show(tiling.intensity(self.tile()), 'flops_per_byte')} from L2, while the chip wants "
            f"{show(wanted, 'flops_per_byte')}. First response: larger tiles (the best is "
            f"{self.named(self.best())})."
        )

    @regime()
    def spills(self):
        return self.fits() & (tiling.spilled(self.tile(), self.gpu) > 0), (
            f"The sums do not fit in registers: {show(tiling.sums(self.tile()), 'count')} of them for each "
            "thread, which has 255 registers in all. First response: a smaller tile, or more warps."
        )

    @regime()
    def too_large(self):
        return self.refused(), (
            f"Triton refuses: a program needs {show_in(tiling.smem_bytes(self.tile(), self.gpu), 'KiB')} of "
            f"shared memory, and a multiprocessor has {show_in(self.gpu.smem_bytes, 'KiB')}, of which one is "
            "kept back. First response: fewer stages, or a smaller BLOCK_K."
        )

    def summary(self):
        mine, best = self.tile(), self.best()
        same = (
            (mine.block_m == best.block_m) & (mine.block_n == best.block_n) & (mine.block_k == best.block_k)
        )
        other = choose(same, "other stages or warps", self.named(best))
        best = f"{other} would reach {show(self.best_speed(), 'flops_per_s')}"
        tiles, speed = f"Tiles of {self.named(self.tile())}", show(self.speed(), "flops_per_s")
        return choose(
            self.fits(),
            choose(
                self.speed() < 0.999 * self.best_speed(),
                f"{tiles} reach {speed}, bound by {self.bound_words()}; {best}.",
                f"{tiles} reach {speed}, as fast as any, and leave {show(self.idle(), 'percent')} of the "
                "chip's time idle.",
            ),
            f"{tiles} do not fit on a multiprocessor; {best}.",
        )


TileTuner.serve_as(__name__)
