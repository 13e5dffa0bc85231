"""The stack of training state against the HBM of one GPU, and the row of cards that it fills: where a model
stops fitting, and what that costs."""

import numpy as np

from engine import catalog
from engine.mechanism import memory
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import cards
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.ranking import in_order
from widgets.kit.text import choose, phrase, select, show, sold
from widgets.kit.widget import Widget, hint, part, readout, regime

CEILINGS = [catalog.gpu(key) for key in ("a100-40", "h100-sxm", "h200", "b200", "b300")]
# cards alone: the question is whether a bigger one would help
GPUS = [gpu for gpu in catalog.all_gpus().values() if not gpu.unified]
LARGEST_BYTES = max(gpu.hbm_bytes for gpu in GPUS)
SLABS = ["weights", "gradients", "master copy", "momentum", "variance"]
NAMES = ["Weights", "Gradients", "Master copy", "Momentum", "Variance"]
VIEWS_BYTES = [30e9, 60e9, 100e9, 150e9, 350e9, 700e9, 1.4e12, 2.5e12, 4e12, 8e12, 15e12, 25e12, 50e12]
THIN = 0.055  # of the view: a lower slab has no room for its name
NODE, MOST = 8.0, 320  # from this many cards on a box is a node of eight
CARDS_ALONE = 128.0
FAR_BYTES = 1e18  # above every picture
# -- places on the picture: the stack above, between the ceilings' names and the slabs'; the cards below -----
LABELS_END, LINE, LEFT, RIGHT = 2.85, 3.05, 3.15, 6.1
BELOW = 0.46  # of the view, for the cards
PAST = fig.OVER | dict.fromkeys(("fill_color", "line_color", "hatch_color"), fig.COLOR["hbm"])
# of the picture's height: the cards, the words over them, and what the ceilings are
STRIP, COUNTED, UNDER = (0.0, 0.2), 0.247, 0.297


class MemoryStack(Widget):
    question = "Where does a model's training state stop fitting on one GPU?"
    size = Number("Model size", 70e9, 0.1e9, 2e12, family="params", marks=(1e9, 7e9, 13e9, 70e9, 405e9))
    gpu = Choice("GPU", GPUS, "h100-sxm")
    recipe = Choice("Optimizer recipe", list(catalog.uniform_recipes().values()), "bf16-adam")
    assemble = Player("Assemble the stack, slab by slab", frames=5)

    presets = {
        "7B": {"size": 7e9},
        "70B on H100": {},
        "405B on B200": {"size": 405e9, "gpu": "b200"},
        "13B, 8-bit Adam": {"size": 13e9, "recipe": "adam-8bit"},
    }
    break_it = (
        "Would a bigger card help? Take one with as much HBM as any on the list, and find a model that it "
        "does not hold either."
    )
    assumptions = (
        "Training state only: no activations, no buffers, no fragmentation. HBM as the vendor sells it, in "
        "decimal gigabytes; a real run keeps a few gigabytes for the framework. Hatched is what one GPU has "
        "no room for; the cards below hold it if the state is cut into equal pieces."
    )
    formula = (
        r"$$M_\text{state} = P \,(\text{weight} + \text{gradient} + \text{master} + \text{momentum} + "
        r"\text{variance})$$"
        "\n\n$P$ is the number of parameters; in the bracket are the bytes that the recipe spends on one of "
        "them: for bf16 mixed Adam $2 + 2 + 4 + 4 + 4 = 16$ (ZeRO, arXiv:1910.02054, section 3.1)."
    )

    def total_bytes(self):
        return memory.state_bytes(self.size, self.recipe)

    def view_bytes(self):
        return fig.fitting_view(np.maximum(self.total_bytes(), self.gpu.hbm_bytes), VIEWS_BYTES)

    def cards_needed(self):
        return memory.minimum_gpus(self.total_bytes(), self.gpu)

    def held_bytes(self):
        """As much of the state as has been put together."""
        return np.sum(fig.revealed(memory.state_slabs(self.size, self.recipe), self.assemble))

    @part("size", "recipe", "gpu", "assemble")
    def slabs(self):
        """Each slab, of which what is past one GPU's HBM is hatched; red where no GPU has more."""
        full, hbm = memory.state_slabs(self.size, self.recipe), self.gpu.hbm_bytes
        shown = fig.revealed(full, self.assemble)
        bottom, top = fig.stacked(shown)
        thin = shown < self.view_bytes() * THIN
        over, none_larger = top > hbm, hbm >= LARGEST_BYTES
        return {
            "bottom": bottom,
            "top": top,
            "middle": fig.midpoint(bottom, top),
            "within_bottom": np.minimum(bottom, hbm),
            "within_top": np.minimum(top, hbm),
            "past_bottom": np.maximum(bottom, hbm),
            "past_top": np.maximum(top, hbm),
            "past": fig.gone_unless(over & ~none_larger, LEFT),
            "past_right": fig.gone_unless(over & ~none_larger, RIGHT),
            "past_all": fig.gone_unless(over & none_larger, LEFT),
            "past_all_right": fig.gone_unless(over & none_larger, RIGHT),
            "name": [choose(thin[i], "", f"{SLABS[i]}  {show(full[i], 'bytes')}") for i in range(5)],
        }

    @hint("slabs")
    def of_a_slab(self):
        held = memory.state_slabs(self.size, self.recipe)
        each = memory.state_slabs(1.0, self.recipe)
        bottom, top = fig.stacked(held)
        past = np.maximum(top - np.maximum(bottom, self.gpu.hbm_bytes), 0.0)
        amounts = [
            choose(bottom[i] < self.gpu.hbm_bytes, f"{show(past[i], 'bytes')} of it", "all of it")
            for i in range(5)
        ]
        beyond = [
            choose(past[i] > 0, f"; {amounts[i]} past the HBM of one {self.gpu.name}", "") for i in range(5)
        ]
        return [
            f"{NAMES[i]}: {show(held[i], 'bytes')}, {show(each[i], 'bytes')} for each parameter{beyond[i]}"
            for i in range(5)
        ]

    @part("size", "recipe", "gpu", "assemble")
    def total(self):
        held = self.held_bytes()
        fits = choose(held > self.gpu.hbm_bytes, "", " fits")
        return {"top": held, "label": choose(held > 0, f"{show(held, 'bytes')}{fits}", "")}

    @part("size", "recipe", "gpu")
    def ceilings(self):
        """The HBM of some GPUs and of the chosen one, from the least; the chosen one takes the place of one
        that has as much."""
        hbm, own = np.array([gpu.hbm_bytes for gpu in CEILINGS]), self.gpu.hbm_bytes
        name, amount = self.gpu.name, show(own, "bytes")
        alike = [each.hbm_bytes == own for each in CEILINGS]
        listed = np.any(np.stack(alike))
        told = [f"{gpu.name.split()[0]}  {show(gpu.hbm_bytes, 'bytes')}" for gpu in CEILINGS]
        wide = [choose(alike[i], f"{name}  {amount}", told[i]) for i in range(len(CEILINGS))]
        narrow = [choose(alike[i], f"yours  {amount}", told[i]) for i in range(len(CEILINGS))]
        wide.append(choose(listed, "", f"{name}  {amount}"))
        narrow.append(choose(listed, "", f"yours  {amount}"))
        heights = np.concatenate([hbm, np.stack([np.where(listed, FAR_BYTES, own)])])
        order = in_order(heights)
        heights = lookup(heights, order)
        rows = range(len(wide))
        return {
            "hbm": heights,
            "label_at": fig.spread(np.maximum(heights, self.view_bytes() * 0.03), self.view_bytes() * 0.062),
            "label": [select(order[i], wide) for i in rows],
            "short": [select(order[i], narrow) for i in rows],
            "style": [choose(heights[i] == own, "bold", "normal") for i in rows],
        }

    @part("gpu")
    def chosen(self):
        return {"hbm": self.gpu.hbm_bytes}

    # -- the cards -------------------------------------------------------------------------------------------
    def on_a_box(self):
        """How many GPUs a box of the row stands for."""
        return np.where(self.cards_needed() > CARDS_ALONE, NODE, 1.0)

    def full(self):
        """How full each box is."""
        return cards.shares(memory.against_hbm(self.held_bytes(), self.gpu, self.on_a_box()), MOST)

    @part("size", "recipe", "gpu", "assemble")
    def cards(self):
        """The cards that the state needs, from the reader's own, and how far each of them is filled."""
        boxes = cards.places(np.ceil(self.cards_needed() / self.on_a_box()), MOST)
        upright = {side: fig.between(*STRIP, boxes[side]) for side in ("bottom", "top")}
        filled = fig.between(boxes["left"], boxes["right"], self.full())
        return boxes | upright | {"filled": filled}

    @hint("cards")
    def of_a_card(self):
        nodes = np.where(self.on_a_box() > 1, 1.0, 0.0) + np.zeros(MOST)
        return phrase(
            "{what} {number}: {share} full of state",
            what=select(nodes, [f"{self.gpu.name},", "Node of eight,"]),
            number=show(np.arange(1.0, MOST + 1), "count"),
            share=show(self.full(), "percent"),
        )

    @part("size", "recipe", "gpu", "assemble", shown=False)
    def yours(self):
        """The first box again, which has a rim."""
        return {side: column[:1] for side, column in self.cards().items()}

    @part("size", "recipe", "gpu")
    def price(self):
        """What the row of cards says."""
        needed, name = self.cards_needed(), self.gpu.name
        count, others = show(needed, "count"), show(needed - 1, "count")
        boxes = choose(self.on_a_box() > 1, "; eight to a box", "")
        one, short = f"one {name} holds all of it", f"one {name} holds it"
        rest = choose(needed > 2, f"the other {others} are the price", "the other is the price")
        many = f"{count} × {name}: one is yours, {rest}{boxes}"
        return {
            "needed": needed,
            "words": choose(needed > 1, many, one),
            "short": choose(needed > 1, f"{count} × {name}: yours and {others} more{boxes}", short),
        }

    # -- the words -------------------------------------------------------------------------------------------
    @readout("State")
    def state(self):
        return show(self.total_bytes(), "bytes")

    @readout("At least")
    def gpus_needed(self):
        return f"{show(self.cards_needed(), 'count')}{choose(self.cards_needed() > 1, ' GPUs', ' GPU')}"

    @readout("For each parameter")
    def each_parameter(self):
        return show(memory.state_bytes(1.0, self.recipe), "bytes")

    def ratio(self):
        return memory.against_hbm(self.total_bytes(), self.gpu)

    @regime(target=True)
    def memory_wall(self):
        return (self.ratio() > 1) & (self.gpu.hbm_bytes >= LARGEST_BYTES), (
            f"You found the memory wall: no GPU on the list has more HBM than the {self.gpu.name}, and the "
            f"state alone is {show(self.ratio(), 'times')} that. First response: shard it over several GPUs "
            "(FSDP and ZeRO)."
        )

    @regime()
    def does_not_fit(self):
        return (self.ratio() > 1) & (self.gpu.hbm_bytes < LARGEST_BYTES), (
            f"The state alone is {show(self.ratio(), 'times')} the HBM of one {self.gpu.name}. "
            "First response: shard it over several GPUs (FSDP and ZeRO)."
        )

    def ranges(self):
        return {"y": [-BELOW * self.view_bytes(), self.view_bytes()]}

    def summary(self):
        needed = self.cards_needed()
        room = sold(self.gpu.hbm_bytes)
        many = f"{show(needed, 'count')} × {self.gpu.name} of {room}"
        return (
            f"A model of {show(self.size, 'params')} parameters keeps {self.state()} of training state: it "
            f"takes {choose(needed > 1, many, f'one {self.gpu.name} of {room}')}."
        )

    def figure(self, sources):
        p = fig.plot((0, 10), (-BELOW * VIEWS_BYTES[6], VIEWS_BYTES[6]), height=460)
        fig.moving_ticks(p.yaxis[0], "bytes")
        p.yaxis[0].bounds = (0, FAR_BYTES)
        fig.only("wide", p.yaxis[0])
        fig.hide(p.xaxis[0])
        p.grid.visible = False
        color, slabs = fig.COLOR, {"source": sources["slabs"]}
        ceilings, faint = sources["ceilings"], {"line_color": color["ink-faint"]}
        within = {"left": LEFT, "right": RIGHT, "bottom": "within_bottom", "top": "within_top"}
        p.quad(**within, **slabs, fill_color=color["hbm"], line_color=color["panel"], line_width=1.5)
        for name, look in (("past", PAST), ("past_all", fig.OVER)):
            p.quad(left=name, right=f"{name}_right", bottom="past_bottom", top="past_top", **slabs, **look)
        p.segment(LINE, "hbm", RIGHT, "hbm", source=ceilings, line_dash=[6, 4], **faint)
        p.segment(LABELS_END, "label_at", LINE, "hbm", source=ceilings, line_alpha=0.6, **faint)
        ink = {"line_color": color["ink"], "line_width": 2.5}
        p.segment(LINE, "hbm", RIGHT + 0.1, "hbm", source=sources["chosen"], **ink)
        named = {"text_align": "right", "x_offset": -4, "source": ceilings, "text_font_style": "style"}
        for width, label in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text(LABELS_END, "label_at", text=label, **fig.LABEL | named))
        p.text(RIGHT + 0.2, "middle", text="name", source=sources["slabs"], **fig.TEXT)
        middle = (LEFT + RIGHT) / 2
        p.text(
            middle,
            "top",
            text="label",
            source=sources["total"],
            text_align="center",
            y_offset=-12,
            **fig.BOLD,
        )
        self.draw_cards(p, sources)
        return p

    def draw_cards(self, p, sources):
        """The row of cards, in a strip of the picture that no axis moves."""
        color, strip = fig.COLOR, fig.across(p, "cards", 0, 1) | fig.still_height(p)
        sides = {"left": "left", "bottom": "bottom", "top": "top"} | strip
        outline = {"right": "right", "source": sources["cards"], "line_color": color["hbm"]}
        p.quad(**sides, fill_color=None, **outline)
        p.quad(**sides, right="filled", source=sources["cards"], fill_color=color["hbm"], line_color=None)
        rim = {"line_color": color["ink"], "line_width": 2.5, "fill_color": None}
        p.quad(**sides, right="right", source=sources["yours"], **rim)
        for width, words in (("wide", "words"), ("narrow", "short")):
            fig.only(width, p.text(0, COUNTED, text=words, source=sources["price"], **strip, **fig.BOLD))
        ceilings = {"text_align": "right", "x_offset": -4} | fig.LABEL | fig.still_height(p)
        p.text(LABELS_END, UNDER, text=["HBM"], **ceilings)


MemoryStack.serve_as(__name__)
