"""PyTorch's caching allocator on a recorded training step: segments, blocks, cached memory, and running
out."""

import numpy as np
from bokeh.core.properties import value

from engine.one_gpu import allocator_replay, recordings
from engine.one_gpu.allocator_replay import ROWS, STEPS
from widgets.kit.controls import Number, Player, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lanes, ring
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

RUN = ("spread", "memory", "expandable", "length", "seed", "moment")
HOLDS = ["weights", "Adam state", "activations, gradients and temporaries", "cached: free"]
STRENGTH = (0.85, 0.5, 0.25, 0.0)  # of what a block holds; what is cached is empty
ACROSS, UP, CHART = (0.015, 0.975), (0.45, 0.9), (0.09, 0.34)
LOOK = {"fill_color": fig.COLOR["hbm"], "line_color": None}
KEY = [
    ("weights", "weights", LOOK | {"fill_alpha": STRENGTH[0]}),
    ("Adam state", "Adam", LOOK | {"fill_alpha": STRENGTH[1]}),
    ("activations, gradients, temporaries", "step", LOOK | {"fill_alpha": STRENGTH[2]}),
    ("cached: free", "free", fig.IDLE),
]
GAP_ROOM = 0.06  # of the picture's height, for the words between the two peaks
LOOSE = 0.25  # reserved over allocated, from where on it is named


class AllocatorReplay(Widget):
    question = "Why does PyTorch hold gigabytes that no tensor uses?"
    in_page = True
    spread = Number(
        "Length spread ±",
        0.1,
        0.0,
        0.6,
        family="percent",
        stops=61,
        log=False,
        help="Each step's batch is padded to its own length, drawn uniformly from this range",
    )
    memory = Number(
        "GPU memory", 80e9, 16e9, 180e9, family="bytes", stops=81, marks=(24e9, 40e9, 48e9, 80e9, 141e9)
    )
    expandable = Switch("Expandable segments")
    length = Number(
        "Length, mean",
        8192,
        512,
        12288,
        family="tokens",
        stops=49,
        whole=True,
        more=True,
        marks=(1024, 2048, 4096, 6144, 8192, 10240),
    )
    seed = Number("Seed", 8, 1, 40, stops=[*range(1, 41)], log=False, whole=True, more=True)
    moment = Player("Step", frames=STEPS, seconds_per_frame=1.2, default=5.25)

    presets = {
        "80 GB, lengths vary": {},
        "80 GB, one length": {"spread": 0},
        "80 GB, expandable segments": {"expandable": "on"},
        "40 GB, half as long": {"memory": 40e9, "length": 4096, "spread": 0.25},
        "24 GB, a quarter as long": {"memory": 24e9, "length": 2048, "spread": 0.25},
    }
    break_it = (
        "Make it run out of memory while more than it asks for is free. Then cure it, without a byte more."
    )
    assumptions = (
        f"The model is {recordings.load('training_steps')['model']}, with four sequences a step, for {STEPS} "
        "steps. What is "
        f"allocated and freed, and when, was recorded from {recordings.made_with('training_steps')}; sizes "
        "follow the length. The allocator is PyTorch's policy, executed, for one stream; the GPU has all its "
        "memory to give. Leaves out the CUDA context, workspaces of cuBLAS, and NCCL."
    )
    formula = (
        "$$\\text{block} = 512\\left\\lceil \\frac{n}{512} \\right\\rceil \\qquad \\text{segment} = "
        "\\begin{cases} 2\\ \\text{MiB} & \\text{block} \\le 1\\ \\text{MiB} \\\\ 20\\ \\text{MiB} & "
        "\\text{block} < 10\\ \\text{MiB} \\\\ 2\\ \\text{MiB} \\left\\lceil \\text{block} / 2\\ \\text{MiB} "
        "\\right\\rceil & \\text{else} \\end{cases}$$\n\nThe smallest cached block that fits is taken. What "
        "is left of it is cut off when it is at least 512 bytes (small pool, or expandable) or more than 1 "
        "MiB (large pool). A freed block joins free neighbours of its segment, never of another."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def run(self):
        return allocator_replay.of_steps(
            STEPS,
            self.length,
            self.spread,
            self.seed,
            self.memory,
            np.where(self.expandable, 1.0, 0.0),
            self.moment,
        )

    def unallocated(self):
        run = self.run()
        return run["reserved_bytes"] - run["allocated_bytes"]

    def on_map(self, left, right, row):
        """Where stretches of rows are drawn; the first row is on top."""
        bottom, top = ring.row(row, ROWS, *UP, share=0.8)
        return {
            "left": fig.between(*ACROSS, left),
            "right": fig.between(*ACROSS, right),
            "bottom": bottom,
            "top": top,
        }

    def at_step(self, step):
        return fig.between(*ACROSS, step / STEPS)

    def at_bytes(self, amount):
        return fig.between(*CHART, amount / self.memory)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*RUN)
    def blocks(self):
        run = self.run()
        return {
            "holds": select(run["held"], HOLDS),
            "bytes": run["bytes"],
            "blocks": run["count"],
            "tint": np.where(
                run["held"] == 0,
                STRENGTH[0],
                np.where(run["held"] == 1, STRENGTH[1], np.where(run["held"] == 2, STRENGTH[2], STRENGTH[3])),
            ),
            **self.on_map(run["left"], run["right"], run["row"]),
        }

    @hint("blocks")
    def about_block(self):
        run = self.run()
        several = np.where(run["count"] > 1, 1.0, 0.0)
        return phrase(
            "{holds}, {bytes}{several}",
            holds=select(run["held"], [name.capitalize() for name in HOLDS]),
            bytes=show(run["bytes"], "bytes"),
            several=select(several, ["", " in several blocks"]),
        )

    @part(*RUN, shown=False)
    def cached(self):
        run = self.run()
        return self.on_map(run["free_left"], run["free_right"], run["free_row"])

    @part(*RUN, shown=False)
    def segments(self):
        run = self.run()
        return self.on_map(run["frame_left"], run["frame_right"], run["frame_row"])

    @part(*RUN)
    def over_time(self):
        run = self.run()
        return {
            "step": run["at"],
            "allocated_bytes": run["allocated_at_bytes"],
            "reserved_bytes": run["reserved_at_bytes"],
            "x": self.at_step(run["at"]),
            "allocated": self.at_bytes(run["allocated_at_bytes"]),
            "reserved": self.at_bytes(run["reserved_at_bytes"]),
        }

    def peaks_in_words(self):
        """What the two curves reach, on a wide picture and on a phone."""
        run = self.run()
        reserved, allocated = (show(run[f"peak_{of}_bytes"], "bytes") for of in ("reserved", "allocated"))
        return {
            "peaks": f"reserved (line): at most {reserved}; allocated (filled): at most {allocated}",
            "peaks_short": f"reserved {reserved}, allocated {allocated}",
        }

    @part(*RUN, shown=False)
    def gap(self):
        """From the allocated peak to the reserved one, where both have been reached."""
        run = self.run()
        low, high = (self.at_bytes(run[f"peak_{of}_bytes"]) for of in ("allocated", "reserved"))
        between = show(run["peak_reserved_bytes"] - run["peak_allocated_bytes"], "bytes")
        there = high - low > GAP_ROOM
        return {
            "x": ACROSS[1] - 0.012,
            "low": low,
            "high": high,
            "y": fig.midpoint(low, high),
            "seen": np.where(there, 1.0, 0.0),
            "text": choose(there, f"{between} reserved, never filled", ""),
            "short": choose(there, f"{between} more", ""),
        }

    @part(*RUN, shown=False)
    def present(self):
        run = self.run()
        ended = choose((run["failed"] > 0) & (run["now"] >= run["reached"]), ", where it ended", "")
        return {
            "x": self.at_step(run["now"]),
            "head": f"{show(self.memory, 'bytes')} in rows of "
            f"{show(allocator_replay.row_bytes(self.memory), 'bytes')}, at step "
            f"{show(run['now'], 'count')}{ended}",
            "short": f"{show(self.memory, 'bytes')}, step {show(run['now'], 'count')}{ended}",
            "ceiling": show(self.memory, "bytes"),
            "fate": choose(run["failed"] > 0, "the run ends out of memory", f"all {STEPS} steps run"),
            **self.peaks_in_words(),
            "end": self.at_step(run["reached"]),
            "failed": run["failed"],
        }

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1), (0, 1), height=560)
        fig.bare(p)
        bottom, top = ring.row(np.arange(ROWS), ROWS, *UP, share=0.8)
        p.quad(
            left=np.full(ROWS, ACROSS[0]),
            right=np.full(ROWS, ACROSS[1]),
            bottom=bottom,
            top=top,
            fill_color=None,
            line_color=color["grid"],
        )
        p.quad(**fig.BOX, source=sources["cached"], **fig.IDLE)
        p.quad(
            **fig.BOX, source=sources["blocks"], fill_color=color["hbm"], fill_alpha="tint", line_color=None
        )
        p.quad(
            **fig.BOX,
            source=sources["segments"],
            fill_color=None,
            line_color=color["ink-faint"],
            line_width=1,
        )
        now = sources["present"]
        for width, text in (("wide", "head"), ("narrow", "short")):
            fig.only(width, p.text(ACROSS[0], 0.97, text=text, source=now, **fig.BOLD))
        fig.only("wide", p.text(ACROSS[1], 0.97, text="fate", source=now, text_align="right", **fig.BOLD))
        self.draw_chart(p, sources)
        lanes.key(p, KEY, 0.93, 0.015, fig.PHONE_PX)
        return p

    def draw_chart(self, p, sources):
        """Allocated and reserved, from the first step to the last."""
        color, rows, now = fig.COLOR, sources["over_time"], sources["present"]
        p.varea("x", y1=CHART[0], y2="allocated", source=rows, fill_color=color["hbm"], fill_alpha=0.3)
        p.step("x", "reserved", source=rows, mode="after", line_color=color["ink"], line_width=2)
        p.segment(
            ACROSS[0],
            CHART[1],
            ACROSS[1],
            CHART[1],
            source=now,
            line_color=color["ink-soft"],
            line_dash=[6, 4],
            line_width=1.5,
        )
        p.text(ACROSS[1], CHART[1], text="ceiling", source=now, text_align="right", y_offset=-10, **fig.LABEL)
        for width, text in (("wide", "peaks"), ("narrow", "peaks_short")):
            fig.only(width, p.text(ACROSS[0], CHART[1], text=text, source=now, y_offset=-10, **fig.BOLD))
        gap = sources["gap"]
        ink = {"source": gap, "line_color": color["ink"], "line_alpha": "seen", "line_width": 1.5}
        p.segment(ACROSS[0], "low", ACROSS[1], "low", **ink | {"line_width": 1.0, "line_dash": [2, 3]})
        p.segment("x", "low", "x", "high", **ink)
        for width, text in (("wide", "text"), ("narrow", "short")):
            beside = {"text_align": "right", "x_offset": -6} | fig.BOLD
            fig.only(width, p.text("x", "y", text=text, source=gap, **beside | fig.ON_PANEL))
        p.segment(ACROSS[0], CHART[0], ACROSS[1], CHART[0], source=now, line_color=color["axis"])
        p.segment("x", CHART[0], "x", CHART[1], source=now, line_color=color["accent"], line_width=2)
        p.scatter(
            "end",
            CHART[1],
            source=now,
            marker="x",
            size=13,
            fill_color=None,
            line_color=color["over"],
            line_width=3,
            line_alpha="failed",
        )
        steps = np.arange(STEPS + 1.0)
        for width, shown in (("wide", steps), ("narrow", steps[::4])):
            fig.only(
                width,
                p.text(
                    self.at_step(shown),
                    np.full(len(shown), 0.055),
                    text=show(shown, "count"),
                    text_align="center",
                    **fig.LABEL,
                ),
            )
        p.text(0.5, 0.015, text=value("training step"), source=now, text_align="center", **fig.LABEL)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Allocated", help="Blocks in use by tensors: torch.cuda.memory_allocated()", rest=True)
    def allocated(self):
        return show(self.run()["allocated_bytes"], "bytes")

    @readout("Reserved", help="Segments held by the allocator: torch.cuda.memory_reserved()", rest=True)
    def reserved(self):
        return show(self.run()["reserved_bytes"], "bytes")

    @readout("Reserved, unallocated", rest=True)
    def between(self):
        return show(self.unallocated(), "bytes")

    @readout(
        "Cached and stuck, now",
        help="Free, but next to a block in use, so its segment (or page) cannot be returned to the driver: "
        "inactive_split_bytes in torch.cuda.memory_stats()",
    )
    def stuck(self):
        cached = show(self.unallocated(), "bytes")
        return f"{show(self.run()['stuck_bytes'], 'bytes')} of {cached} cached"

    @readout("Largest free block, now")
    def largest(self):
        return show(self.run()["largest_bytes"], "bytes")

    @readout(
        "Asked of the driver",
        help="cudaMalloc, or mapping pages, so far; then how often it gave memory back",
        rest=True,
    )
    def driver(self):
        run = self.run()
        return f"{show(run['mallocs'], 'count')}, back {show(run['frees'], 'count')}"

    @readout(
        "Retries",
        help="cudaMalloc failed, all free segments were returned, and it was tried again",
        rest=True,
    )
    def retries(self):
        run = self.run()
        return show(run["retries"], "count"), run["retries"] > 0

    @readout("Peaks, reserved over allocated", help="Over the whole run")
    def peaks(self):
        return show(allocator_replay.peak_ratio(self.run()), "times")

    def message(self):
        """The message as PyTorch prints it."""
        run = self.run()
        free, allocated = (self.memory - run["last_reserved_bytes"], run["last_allocated_bytes"])
        kept = run["last_reserved_bytes"] - allocated
        return (
            f"CUDA out of memory. Tried to allocate {show(run['wanted_bytes'], 'bytes_binary')}. GPU 0 has a "
            f"total capacity of {show(self.memory, 'bytes_binary')} of which {show(free, 'bytes_binary')} is "
            f"free. Of the allocated memory {show(allocated, 'bytes_binary')} is allocated by PyTorch, and "
            f"{show(kept, 'bytes_binary')} is reserved by PyTorch but unallocated."
        )

    @regime(target=True)
    def fragmented(self):
        run = self.run()
        return allocator_replay.fits_in_sum(run, self.memory), (
            f"You found it. “{self.message()}” Laid end to end, the tensors of no step take more than "
            f"{show(run['needed_bytes'], 'bytes_binary')}; the largest free block has "
            f"{show(run['last_largest_bytes'], 'bytes_binary')}. First response: "
            f"{choose(self.expandable, 'lengths in a few buckets', 'expandable segments')}."
        )

    @regime()
    def fragmented_and_too_small(self):
        run = self.run()
        return allocator_replay.too_much_later(run, self.memory), (
            f"“{self.message()}” Allocated and asked for together are less than the GPU has: this request "
            "failed because memory is in pieces. But a later step needs "
            f"{show(run['needed_bytes'], 'bytes_binary')} however it is laid: no setting saves this run. "
            "First response: shorter batches, recomputation, or sharding (lesson 05)."
        )

    @regime()
    def full(self):
        run = self.run()
        return allocator_replay.too_much(run, self.memory), (
            f"The memory is full: “{self.message()}” Allocated and asked for together are more than the GPU "
            "has. First response: shorter batches, recomputation, or sharding (lesson 05)."
        )

    @regime()
    def thrashing(self):
        run = self.run()
        return (run["all_retries"] > 0) & (run["failed"] == 0), (
            f"It fits, by giving back. Retries: {show(run['all_retries'], 'count')}. In each a request to "
            "the driver fails, the GPU is drained, and free memory goes back, "
            f"{show(run['all_frees'], 'count')} pieces in all. A step that meets this is a slow one. First "
            f"response: {choose(self.expandable, '', 'expandable segments, or ')}fewer different lengths."
        )

    @regime()
    def loose(self):
        run = self.run()
        return (allocator_replay.excess(run) > LOOSE) & (run["failed"] == 0), (
            f"No step needed more than {show(run['peak_allocated_bytes'], 'bytes')} at once, and "
            f"{show(run['peak_reserved_bytes'], 'bytes')} are reserved, {self.peaks()} as much: segments of "
            "lengths that were outgrown. On a smaller GPU those that are wholly free would go back to the "
            "driver by retries; what is stuck beside a tensor could not. First response: expandable "
            "segments, or lengths in a few buckets."
        )

    def summary(self):
        run = self.run()
        return (
            f"At their peaks, {show(run['peak_allocated_bytes'], 'bytes')} allocated need "
            f"{show(run['peak_reserved_bytes'], 'bytes')} reserved of {show(self.memory, 'bytes')}"
            f"{choose(run['failed'] > 0, ', and the run ends out of memory', ', and all steps run')}."
        )


AllocatorReplay.serve_as(__name__)
