"""One training step on 1 to 16,384 GPUs in three lanes, memory, compute and wires: the drawing with which the
home page opens."""

import numpy as np

from engine import catalog
from engine.executed import fully_sharded
from engine.executed.fully_sharded import BACKWARD, FORWARD
from engine.mechanism import memory
from engine.step import home, layout
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show, show_in, usable
from widgets.kit.widget import Widget, hint, once, part, readout, regime

MODEL = catalog.model(home.MODEL)
LAYERS = MODEL.depth
STOPS = [2.0**power for power in range(15)]
GPUS = ("a100-80", "h100-sxm", "h200", "b200")
# lengths of the axis of time
VIEWS_S = [0.12, 0.16, 0.2, 0.24, 0.32, 0.4, 0.44, 0.48, 0.6, 0.8, 1.0, 1.25, 1.6]
# Heights of the three lanes, of which the memory's is its capacity, and of the words about them.
HBM, COMPUTE, WIRES = (166.0, 202.0), (92.0, 136.0), (6.0, 50.0)
ABOVE, PASSES, TOP = 12.0, 80.0, 254.0
NAMES = [f"{n}" for n in range(LAYERS + 1)]
HUES = ["compute", "link", "network"]
BOTH = ("gpus", "gpu")


class TrainingStep(Widget):
    question = "What does a training step wait for: memory, compute or the wires?"
    gpus = Number("GPUs", 8, 1, home.MOST_GPUS, stops=STOPS, whole=True, only="a power of two")
    gpu = Choice(
        "GPU", {key: (catalog.gpu(key).name, layout.machine(catalog.gpu(key))) for key in GPUS}, home.GPU
    )

    presets = {
        "One node": {},
        "Too little memory": {"gpus": 2},
        "A sequence for each GPU": {"gpus": 2048},
        "Eight older GPUs": {"gpu": "a100-80"},
        "One B200": {"gpus": 1, "gpu": "b200"},
    }
    break_it = "Add GPUs until the step hardly gets shorter any more."
    assumptions = (
        f"{MODEL.name}, computed in bf16, two bytes a number, and trained by the optimizer Adam; a step "
        "takes `#!n home.SEQUENCES` sequences of `#!n home.SEQ` tokens however many GPUs share them. The "
        "layout is always the same: the GPUs share the model’s state among them (FSDP, lesson 05), and each "
        "works on a sequence at a time; with more GPUs than sequences, several share one. Drawn is the last "
        "sequence of one GPU, layer by layer, and after it the optimizer, in the colour of memory because it "
        "waits for HBM alone. Times and bytes are those that the course’s engine estimates; the executed "
        "lanes are within 4 % of its step, and the traffic between GPUs that share a sequence is drawn as "
        "compute (at most 1.5 % of the step)."
    )
    formula = (
        r"$$\tau_\text{step} = \frac{\text{sequences}}{\text{GPUs}}\,(\tau_\text{forward} + "
        r"\tau_\text{backward}) + \tau_\text{exposed} + \tau_\text{optimizer}, \qquad \tau_\text{wires} = "
        r"\frac{\text{sequences}}{\text{GPUs}}\,(2\,\tau_\text{gather} + \tau_\text{scatter})$$"
        "\n\n"
        "With FSDP the weights travel once for each pass, whatever the pass works on. Twice the GPUs halve "
        "the arithmetic of a step; below one sequence for each GPU they no longer halve the traffic."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def step(self):
        return home.shared(self.gpus, self.gpu.chip, self.gpu.wires)

    @once
    def run(self):
        return fully_sharded.run(self.step().layer, LAYERS, 1)

    def hbm_bytes(self):
        return memory.capacity_bytes(self.gpu.gpu)

    def is_over(self):
        return self.step().total_bytes > self.hbm_bytes()

    def wires_bind(self):
        """The step fits, and its wires are busy for longer than its compute."""
        return (self.step().total_bytes <= self.hbm_bytes()) & (self.step().wire_s > self.step().compute_s)

    def inside(self):
        """Whether all of the GPUs are in one node."""
        return self.gpus <= self.gpu.wires.gpus_per_node

    def wire(self):
        return choose(self.inside(), "NVLink", "Network")

    def end_s(self):
        return self.run()["total_s"] + self.step().optimizer_s

    def compute_share(self):
        return self.step().compute_s / self.step().step_s

    def wire_share(self):
        return self.step().wire_s / self.step().step_s

    def height(self, held_bytes):
        """Where this much memory reaches in its lane."""
        return fig.between(*HBM, held_bytes / self.hbm_bytes())

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*BOTH)
    def tasks(self):
        run = self.run()
        kind, works = run["kind"], (run["kind"] == FORWARD) | (run["kind"] == BACKWARD)
        lasts = run["last_s"] > 0  # one GPU sends nothing
        on = np.where(works, 0, np.where(self.inside(), 1, 2) + 0 * kind)
        return {
            "what": select(kind, list(fully_sharded.KINDS)),
            "on": select(on, HUES),
            "edge": select(np.where((on < 1) & ~self.wires_bind(), len(HUES), on), [*HUES, "panel"]),
            "layer": run["layer"],
            "left": fig.gone_unless(lasts, run["start_s"]),
            "right": fig.gone_unless(lasts, run["end_s"]),
            "bottom": np.where(works, COMPUTE[0], WIRES[0]),
            "top": np.where(works, COMPUTE[1], WIRES[1]),
        }

    @hint("tasks")
    def of_a_task(self):
        run = self.run()
        return phrase(
            "{what} of layer {n}: {time}",
            what=select(
                run["kind"],
                ["Gather the weights", "Forward pass", "Backward pass", "Reduce and scatter the gradients"],
            ),
            n=select(run["layer"], NAMES),
            time=show(run["last_s"], "seconds"),
        )

    @part(*BOTH)
    def optimizer(self):
        return {"left": self.run()["total_s"], "right": self.end_s(), "bottom": COMPUTE[0], "top": COMPUTE[1]}

    @hint("optimizer")
    def of_the_optimizer(self):
        return [
            (
                f"Optimizer: {show(self.step().optimizer_s, 'seconds')} to read and write this GPU's share "
                "of the state, at the speed of its HBM"
            )
        ]

    def held_bytes(self):
        """In HBM at each moment of the run."""
        run, step = self.run(), self.step()
        kept = run["activations_bytes"]
        last = kept > (LAYERS - 0.5) * step.layer.activation_bytes
        return step.base_bytes + kept + np.where(last, step.logits_bytes, 0.0)

    @part(*BOTH)
    def memory(self):
        start, held = self.run()["level_s"], self.held_bytes()
        after, top = np.append(start[1:], np.reshape(self.end_s(), 1)), self.height(held)
        return {
            "left": start,
            "right": np.where(np.isfinite(after), after, self.end_s()),  # to the end, where no level follows
            "held_bytes": held,
            "bottom": np.full_like(start, HBM[0]),
            "inside": np.minimum(top, HBM[1]),
            "top": np.maximum(top, HBM[1]),
        }

    @hint("memory")
    def of_a_moment(self):
        step, held = self.step(), self.held_bytes()
        return phrase(
            "{held} held, of {all} usable: {state} all the time, the rest activations on their way to the "
            "backward pass",
            held=show(held, "bytes"),
            all=show(self.hbm_bytes() + 0 * held, "bytes"),
            state=show(step.base_bytes + 0 * held, "bytes"),
        )

    @part(*BOTH, shown=False)
    def lanes(self):
        """The three lanes, as long as the drawn sequence takes."""
        low, high = np.array([HBM, COMPUTE, WIRES]).T
        return {"left": np.zeros(3), "right": np.zeros(3) + self.end_s(), "bottom": low, "top": high}

    @part(*BOTH, shown=False)
    def titles(self):
        """What each lane is and how full or busy; the memory's words stand above what it holds."""
        held = show(self.step().total_bytes, "bytes")
        filled = show(self.step().total_bytes / self.hbm_bytes(), "percent", 2)
        takes = show_in(self.step().step_s, "s")
        compute, wire = show(self.compute_share(), "percent"), show(self.wire_share(), "percent")
        full = self.height(np.maximum(self.step().total_bytes, self.hbm_bytes()))
        return {
            "y": np.stack([full, COMPUTE[1] + 0 * full, WIRES[1] + 0 * full]) + ABOVE,
            "text": [
                f"HBM: {held} at the fullest moment, {filled} of what there is",
                f"Compute: busy {compute} of the step, which takes {takes}",
                choose(self.gpus > 1, f"{self.wire()}: busy {wire} of the step", "No wires: one GPU"),
            ],
            "narrow": [
                f"HBM: {held}, {filled} full",
                f"Compute: busy {compute} of {takes}",
                choose(self.gpus > 1, f"{self.wire()}: busy {wire}", "No wires: one GPU"),
            ],
        }

    @part(*BOTH, shown=False)
    def scope(self):
        """Which of the step's sequences the axis spans, at the right end of the topmost title."""
        turns, sharers = self.step().turns, self.step().sharers
        shared = choose(sharers > 1, f"one sequence, shared by {show(sharers, 'count')} GPUs", "one sequence")
        one = choose(sharers > 1, f"one for {show(sharers, 'count')} GPUs", "one sequence")
        last = f"{show(turns, 'count')} sequences"
        return {
            "x": self.view_s(),
            "y": self.titles()["y"][0],
            "text": choose(turns > 1, f"drawn: the last of a GPU’s {last}", f"drawn: {shared}"),
            "short": choose(turns > 1, f"last of {last}", one),
        }

    @part(*BOTH, shown=False)
    def passes(self):
        """The names of the passes, below them: the first two from their start, the last up to its end."""
        run = self.run()
        turn = np.max(np.where(run["kind"] == FORWARD, run["end_s"], 0.0))
        return {
            "x": np.stack([0 * turn, turn, self.end_s()]),
            "y": np.full(3, PASSES),
            "name": ["forward", "backward", "optimizer"],
            "align": ["left", "left", "right"],
        }

    def view_s(self):
        return fig.fitting_view(self.end_s(), VIEWS_S, headroom=1.02)

    def ranges(self):
        return {"x": [0.0, self.view_s()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(
            (0, VIEWS_S[5]), (0, TOP), height=330, x_title="time, in the part of the step that is drawn"
        )
        fig.moving_ticks(p.xaxis[0], "seconds")
        fig.hide(p.yaxis[0])
        p.grid.visible = False
        p.quad(**fig.BOX, source=sources["lanes"], fill_color=color["panel"], line_color=color["axis"])
        hue = fig.hues("on", {name: name for name in HUES})
        seam = fig.hues("edge", {name: name for name in (*HUES, "panel")})  # between layers without a gap
        p.quad(**fig.BOX, source=sources["tasks"], fill_color=hue, line_color=seam, line_width=0.5)
        p.quad(**fig.BOX, source=sources["optimizer"], fill_color=color["hbm"], line_color=None)
        held = {"left": "left", "right": "right", "source": sources["memory"]}
        p.quad(bottom="bottom", top="inside", fill_color=color["hbm"], line_color=color["hbm"], **held)
        p.quad(bottom=HBM[1], top="top", **held, **fig.OVER | {"line_color": None})
        p.segment(
            "left",
            "top",
            "right",
            "top",
            source=sources["lanes"],
            view=fig.of_rows([0]),
            line_color=color["ink"],
            line_width=2,
        )
        p.text("x", "y", text="name", text_align="align", source=sources["passes"], **fig.LABEL)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(0, "y", text=column, source=sources["titles"], **fig.BOLD))
        for width, words in (("wide", "text"), ("narrow", "short")):
            at_end = {"text_align": "right", "source": sources["scope"]}
            fig.only(width, p.text("x", "y", text=words, **at_end, **fig.LABEL))
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("A step")
    def step_time(self):
        return show_in(self.step().step_s, "s")

    @readout("Tokens a second")
    def pace(self):
        return show(home.tokens_per_s(self.step()), "tokens")

    @readout("Sequences on each GPU")
    def sequences(self):
        return choose(
            self.step().sharers > 1,
            f"1, shared by {show(self.step().sharers, 'count')}",
            f"{show(self.step().turns, 'count')}, in turn",
        )

    @regime()
    def memory_binds(self):
        return self.is_over(), (
            f"It cannot run: {show(self.step().total_bytes, 'bytes')} do not fit into "
            f"{usable(self.hbm_bytes())}. First response: more GPUs that share the state (lesson 05)."
        )

    @regime(target=True)
    def network_binds(self):
        return self.wires_bind(), (
            "You found where more GPUs stop helping: the wires are busy "
            f"{show(self.wire_share(), 'percent')} of the step, and compute "
            f"{show(self.compute_share(), 'percent')}. First response: cut the step along other axes "
            "(lesson 10)."
        )

    def on_gpus(self):
        return f"on {show(self.gpus, 'count')} {choose(self.gpus > 1, 'GPUs', 'GPU')}"

    def summary(self):
        step, waits = self.step(), show(1 - self.compute_share(), "percent")
        takes = f"{self.on_gpus()} a step takes {show_in(step.step_s, 's')}"
        works = show(self.compute_share(), "percent")
        drawn = choose(
            step.turns > 1, f"; you see each GPU's last of {show(step.turns, 'count')} sequences", ""
        )
        return choose(
            self.is_over(),
            f"Memory binds: {self.on_gpus()} a step needs {show(step.total_bytes, 'bytes')}"
            f"{choose(self.gpus > 1, ' on each', '')}, more than the {usable(self.hbm_bytes())}.",
            choose(
                self.wires_bind(),
                f"The {choose(self.inside(), 'links bind', 'network binds')}: {takes}, and compute waits for "
                f"{waits} of it{drawn}.",
                f"Compute binds: {takes}, {works} of it compute{drawn}.",
            ),
        )


TrainingStep.serve_as(__name__)
