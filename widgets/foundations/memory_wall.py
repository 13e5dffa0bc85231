"""The memory budget of one GPU in training, added up part by part until it passes the HBM, and what brings it
back."""

import numpy as np

from engine import catalog
from engine.base import units
from engine.catalog import models, recipes
from engine.mechanism import budget, memory
from engine.mechanism.adapters import Adapter
from widgets.kit.compiler.symbols import over
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, select, show, sold
from widgets.kit.widget import Widget, hint, part, readout, regime

ROWS = {
    "framework": 12,
    "weights": 11,
    "gradients": 10,
    "optimizer": 9,
    "activations": 8,
    "transient": 7,
    "total": 6,
}
CHANGES = {"FlashAttention": 4, "micro-batch 1": 3, "checkpointing": 2, "8-bit moments": 1, "1,024 tokens": 0}
PART_ROWS, CHANGE_ROWS = np.array([*ROWS.values()], float), np.array([*CHANGES.values()], float)
# lengths of the axis that give few round ticks, and a last one that has room for its label
AMOUNT = {"wide": 0.1, "narrow": 0.27}  # of the frame, for the number at a bar's end
NOTE = 0.3  # of the frame, for the number and the remark behind it
VIEWS_BYTES = [m * 10.0**e for e in range(10, 18) for m in (1.2, 1.45, 1.9, 2.9, 3.9, 5.9, 7.9)]
SEQ_STOPS = [m * 2**k for k in range(6, 14) for m in range(8, 16)] + [2**17]
BATCH_STOPS = [*range(1, 8), *range(8, 16), *range(16, 32, 2), *range(32, 65, 4)]
CURES = [
    "FlashAttention, which never stores the scores",
    "micro-batches of 1, with their gradients accumulated",
    "full checkpointing, which keeps the layers' inputs alone and pays one more forward pass",
    "Adam's moments in 8 bits",
    "a shorter sequence, or one cut over several GPUs (lesson 08)",
]
CHANGED = ["FlashAttention", "A micro-batch of 1", "Full checkpointing", "Moments in 8 bits", "1,024 tokens"]
NAMES = ["the framework", "the weights", "the gradients", "the optimizer", "the activations"]


def named(labels):
    """Options for a choice among recipes: {key: label}."""
    return {key: (label, catalog.recipe(key)) for key, label in labels.items()}


PRECISIONS = named(
    {
        "bf16-adam": "bf16 mixed",
        "bf16-adam-fp32-grads": "bf16, fp32 gradients",
        "fp32-adam": "fp32",
        "fp8-te": "fp8, Transformer Engine",
    }
)
OPTIMIZERS = named(
    {
        "bf16-adam": "Adam",
        "adam-8bit": "8-bit Adam",
        "adafactor": "Adafactor",
        "sgd-momentum": "SGD with momentum",
    }
)
TRAINED = {
    "all": ("all weights", None),
    "lora": ("LoRA, rank 16", Adapter(rank=16)),
    "qlora": ("QLoRA, rank 16", Adapter(rank=16, base="nf4-double")),
}
EVERY = ("size", "seq", "recompute", "trained", "batch", "precision", "optimizer", "flash", "gpu")


class MemoryWall(Widget):
    question = "What fills one GPU first: the state, or what a batch leaves behind?"
    size = Number("Model size", 3e9, 0.1e9, 1e12, family="params", marks=(1e9, 7e9, 13e9, 70e9))
    seq = Number("Sequence", 8192, 512, 2**17, stops=SEQ_STOPS, whole=True, help="Tokens in one sequence")
    recompute = Choice(
        "Checkpointing",
        {key: (key, value) for key, value in memory.RECOMPUTE.items()},
        "none",
        help="Which activations are discarded and recomputed in the backward pass",
    )
    trained = Choice(
        "Trained",
        TRAINED,
        "all",
        more=True,
        help="All weights, or thin matrices beside frozen ones, in bf16 (LoRA) or in four bits (QLoRA)",
    )
    batch = Number(
        "Micro-batch",
        2,
        1,
        64,
        stops=BATCH_STOPS,
        whole=True,
        more=True,
        help="Sequences that the GPU processes at once",
    )
    precision = Choice("Precision", PRECISIONS, "bf16-adam", more=True)
    optimizer = Choice("Optimizer", OPTIMIZERS, "bf16-adam", more=True)
    flash = Switch("FlashAttention", True, more=True)
    gpu = Choice("GPU", list(catalog.all_gpus().values()), "h100-sxm", more=True)

    presets = {
        "3B, nothing thrown away": {},
        "3B at 16k, full checkpointing": {"recompute": "full", "seq": 16384},
        "7B: the state alone": {"size": 7e9, "batch": 1, "seq": 2048, "recompute": "full"},
        "1B at 32k without FlashAttention": {"size": 1e9, "batch": 1, "seq": 32768, "flash": "off"},
        "1B on a 24 GB card": {"size": 1e9, "batch": 1, "seq": 2048, "gpu": "rtx4090"},
        "70B on one H100": {"size": 70e9, "batch": 1, "recompute": "full"},
        "8B with LoRA": {"size": 8e9, "batch": 1, "seq": 4096, "recompute": "full", "trained": "lora"},
    }
    break_it = "Find a state that fits with checkpointing and does not fit without it."
    assumptions = (
        "A GPT-like shape, all parts at their peak together, no fragmentation, "
        f"{units.human(memory.FRAMEWORK_BYTES, 'bytes')} for the framework. Each change below the total is "
        "made alone, the cheapest first."
    )
    formula = (
        "$$M = M_\\text{framework} + M_\\text{state} + s\\,b\\,h\\,L\\,\\left(34 + \\frac{5as}{h}\\right) + "
        "10\\,s\\,b \\cdot \\text{vocabulary}$$"
        "\n\nfor bf16, with $s$ tokens in each of $b$ sequences, $L$ layers of width $h$ with $a$ heads "
        "(Korthikanti et al., arXiv:2205.05198). FlashAttention and selective checkpointing drop the second "
        "term in the bracket; full checkpointing leaves $2\\,s\\,b\\,h\\,L$. *Transient* is the larger of "
        "the logits, over a vocabulary of 128,256, and what checkpointing rebuilds in one layer.\n\n"
        "The shape: width 128 times the layers, heads of 128, MLP four times the width, dropout (GPT-3 175B "
        "and Llama 405B lie on that line). Activations are bf16 even under fp8. LoRA and QLoRA have "
        "an adapter of rank 16 beside every matrix. Its state is the chosen recipe's, and the frozen weights "
        "take two bytes, or 0.52 in four bits with their scales.\n\n"
        "*Too large* is the model where the state alone passes the HBM, the micro-batch where one sequence "
        "would fit, else the sequence. *Fewest GPUs, state sharded* is the smallest $N$ with "
        "$M_\\text{state}/N$ plus all the rest within one HBM: each GPU has a micro-batch of its own, so its "
        "activations, logits and framework stay whole."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def case(self):
        recipe = over(recipes.combined, self.precision, self.optimizer)
        return self.size, models.typical(self.size), recipe, self.seq, self.batch

    def asked(self, function, recompute):
        """What a function of the engine says of this case, with whatever is trained."""
        case = self.case()
        return over(lambda adapter: function(*case, recompute, self.flash, adapter), self.trained)

    def parts_bytes(self):
        return self.asked(budget.parts_bytes, self.recompute)

    def total_bytes(self):
        return np.sum(self.parts_bytes())

    def without_checkpointing_bytes(self):
        return self.asked(budget.total_bytes, memory.NO_RECOMPUTE)

    def changed_bytes(self):
        return self.asked(budget.totals_after_one_change, self.recompute)

    def is_over(self):
        return self.total_bytes() > self.gpu.hbm_bytes

    def view_bytes(self):
        return fig.fitting_view(
            np.maximum(self.total_bytes(), self.gpu.hbm_bytes), VIEWS_BYTES, headroom=1.35
        )

    def label_places(self, end, start):
        """Amounts are at the ends of their bars, inside them where the wall would cross the amount."""
        hbm, view = self.gpu.hbm_bytes, self.view_bytes()
        return {
            f"{width}_{side}": place
            for width, room in AMOUNT.items()
            for side, place in fig.value_places(end, hbm, view * room, start).items()
        }

    def rebuilds_most(self):
        return self.asked(budget.rebuilds_most, self.recompute)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*EVERY)
    def parts(self):
        parts, hbm = self.parts_bytes(), self.gpu.hbm_bytes
        start, end = fig.end_to_end(parts)
        start, end, amounts = (
            np.append(start, 0.0),
            np.append(end, np.sum(parts)),
            np.append(parts, np.sum(parts)),
        )
        first = budget.first_over(parts, self.gpu) == np.arange(7)
        notes = ["", "", "", "", "", choose(self.rebuilds_most(), "rebuilt in a layer", "logits"), ""]
        return {
            "row": list(ROWS),
            "y": PART_ROWS,
            "start": start,
            "end": end,
            **self.label_places(end, start),
            "note_at": fig.clear_of(end, hbm, NOTE * self.view_bytes()),
            "over_start": np.maximum(start, np.minimum(end, hbm)),
            "past": np.where(end > hbm, 1.0, 0.0),
            "amount": [show(amount, "bytes") for amount in amounts],
            "note": [choose(first[i], "passes the HBM", notes[i]) for i in range(7)],
        }

    @hint("parts")
    def of_a_part(self):
        parts, total, hbm = self.parts_bytes(), self.total_bytes(), self.gpu.hbm_bytes
        start, end = fig.end_to_end(parts)
        past = np.maximum(end - np.maximum(start, hbm), 0.0)
        names = ["The framework", "Weights", "Gradients", "Optimizer", "Activations"]
        names = [*names, choose(self.rebuilds_most(), "What one layer rebuilds", "The logits")]
        amounts = [choose(start[i] < hbm, f"{show(past[i], 'bytes')} of it", "all of it") for i in range(6)]
        beyond = [choose(past[i] > 0, f"; {amounts[i]} past the HBM", "") for i in range(6)]
        shares = [
            f"{names[i]}: {show(parts[i], 'bytes')}, {show(parts[i] / total, 'percent')} of the total"
            f"{beyond[i]}"
            for i in range(6)
        ]
        full = memory.against_hbm(total, self.gpu)
        filled = choose(
            self.is_over(), f"{show(full, 'times')} the HBM", f"{show(full, 'percent')} of the HBM"
        )
        return [*shares, f"The total: {self.total()}, {filled}"]

    @hint("changes")
    def of_a_change(self):
        total, after, hbm = self.total_bytes(), self.changed_bytes(), self.gpu.hbm_bytes
        outcome = [
            choose(
                after[i] > hbm,
                f"{show(after[i] - np.minimum(after[i], hbm), 'bytes')} past the HBM",
                "within the HBM",
            )
            for i in range(5)
        ]
        return [
            choose(
                after[i] < total,
                f"{CHANGED[i]} leaves {show(after[i], 'bytes')}, {outcome[i]}: it saves "
                f"{show(total - np.minimum(after[i], total), 'bytes')}",
                f"{CHANGED[i]} leaves {show(after[i], 'bytes')}, {outcome[i]}: it saves nothing here",
            )
            for i in range(5)
        ]

    @part(*EVERY)
    def changes(self):
        total, hbm = self.changed_bytes(), self.gpu.hbm_bytes
        return {
            "row": list(CHANGES),
            "y": CHANGE_ROWS,
            "end": total,
            **self.label_places(total, 0.0),
            "over_start": np.minimum(total, hbm),
            "past": np.where(total > hbm, 1.0, 0.0),
            "amount": [choose(after < self.total_bytes(), show(after, "bytes"), "same") for after in total],
        }

    @part(*EVERY)
    def wall(self):
        hbm, short = self.gpu.hbm_bytes, sold(self.gpu.hbm_bytes)
        far, name = hbm > self.view_bytes() * 0.5, f"{self.gpu.name}, {short}"
        return {
            "hbm": hbm,
            "align": choose(far, "right", "left"),
            "shift": np.where(far, 4.0, 1.0),
            "name": name,
            "short": short,
        }

    def ranges(self):
        return {"x": [0.0, self.view_bytes()]}

    def figure(self, sources):
        p = fig.plot((0, 2e11), (-0.6, 13.6), height=450)
        fig.moving_ticks(p.xaxis[0], "bytes")
        fig.named_rows(p.yaxis[0], ROWS | CHANGES)
        p.ygrid.grid_line_color, p.xgrid.grid_line_color = None, fig.COLOR["grid"]
        color, parts, changes, wall = fig.COLOR, sources["parts"], sources["changes"], sources["wall"]
        within = {"y": "y", "right": "over_start", "height": 0.62, "fill_color": color["hbm"]}
        p.hbar(left="start", source=parts, **within, line_color=None)
        p.hbar(left=0, source=changes, **within, fill_alpha=0.55, line_color=None)
        for source, ink in ((parts, "panel"), (changes, "ink")):
            p.hbar(
                y="y",
                left="over_start",
                right="end",
                height=0.62,
                source=source,
                **fig.OVER | {"line_alpha": "past"},
            )
            for width in AMOUNT:
                fig.only(width, *fig.values(p, source, "amount", ink, f"{width}_", **fig.TEXT))
        fig.only("wide", p.text("note_at", "y", text="note", source=parts, x_offset=78, **fig.LABEL))
        p.text(0, 5, text=["One change alone, and the total is"], **fig.LABEL)
        for low, high in ((-0.6, 4.5), (5.5, 12.9)):
            p.segment(
                "hbm", low, "hbm", high, source=wall, line_color=color["ink"], line_width=2, line_dash=[6, 4]
            )
        aside = {"text_align": "align", "x_offset": "shift", "source": wall} | fig.BOLD
        for width, name in (("wide", "name"), ("narrow", "short")):
            fig.only(width, p.text("hbm", 13.2, text=name, **aside))
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Total")
    def total(self):
        return show(self.total_bytes(), "bytes")

    @readout("Against one GPU", rest=True)
    def against(self):
        ratio = memory.against_hbm(self.total_bytes(), self.gpu)
        return show(ratio, "times"), ratio > 1

    @readout("Too large", rest=True)
    def slider(self):
        at = budget.slider_at_wall(self.parts_bytes(), self.changed_bytes(), self.gpu)
        return choose(at < 0, "nothing", select(np.maximum(at, 0), list(budget.SLIDERS)))

    @readout("Cheapest change that fits")
    def way_back(self):
        cure = self.cure()
        found = choose(cure < 0, "none alone", select(np.maximum(cure, 0), list(CHANGES)))
        return choose(self.is_over(), found, "none needed")

    def ranks_needed(self):
        return budget.minimum_ranks(self.parts_bytes(), self.gpu)

    @readout("Fewest GPUs, state sharded")
    def ranks(self):
        needed = self.ranks_needed()
        return choose(needed < 1, "none: the rest alone does not fit", show(needed, "count")), needed < 1

    def name_of_first(self):
        names = [*NAMES, choose(self.rebuilds_most(), "what one layer rebuilds", "the logits")]
        return select(np.maximum(budget.first_over(self.parts_bytes(), self.gpu), 0), names)

    def cure(self):
        return budget.cheapest_cure(self.changed_bytes(), self.gpu)

    def beyond_one_change(self):
        """What to do where no single change is enough."""
        needed = self.ranks_needed()
        return "no single change is enough, so " + choose(
            needed < 1,
            "combine them: what is not state passes the HBM alone, and sharding leaves it whole",
            f"shard the state over at least {show(needed, 'count')} GPUs (FSDP and ZeRO, lesson 05)",
        )

    @regime()
    def over_the_wall(self):
        cure = self.cure()
        return self.is_over(), (
            f"This is the memory wall: {self.total()} on a GPU of {sold(self.gpu.hbm_bytes)}, passed first "
            f"by {self.name_of_first()}; what is too large is the {self.slider()}. First response: "
            f"{choose(cure < 0, self.beyond_one_change(), select(np.maximum(cure, 0), CURES))}."
        )

    @regime(target=True)
    def checkpointing_saves_it(self):
        without = self.without_checkpointing_bytes()
        return ~self.is_over() & (without > self.gpu.hbm_bytes), (
            f"You found it: without checkpointing this takes {show(without, 'bytes')} and hits the wall; "
            f"with it, {self.total()} fits in {sold(self.gpu.hbm_bytes)}."
        )

    def summary(self):
        hbm = f"{show(self.gpu.hbm_bytes, 'bytes')} of one {self.gpu.name}"
        how = over(
            lambda adapter: "Training" if adapter is None else "Training adapters beside", self.trained
        )
        takes = f"{how} {show(self.size, 'params')} parameters takes {self.total()}"
        return choose(
            self.is_over(),
            f"{takes}, {self.against()[0]} the {hbm}; first past it: {self.name_of_first()}.",
            f"{takes}, which fits the {hbm}.",
        )


MemoryWall.serve_as(__name__)
