"""The stack of training state against the HBM of one GPU: where a model stops fitting."""

import numpy as np

from engine import catalog, memory
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, part, readout, regime

CEILINGS = [catalog.gpu(key) for key in ("a100-40", "h100-sxm", "h200", "b200", "b300")]
SLABS = ["weights", "gradients", "fp32 master copy", "momentum", "variance"]
VIEWS_BYTES = [60e9, 150e9, 400e9, 1.4e12, 5e12, 15e12, 45e12]


class MemoryStack(Widget):
    question = "Where does a model's training state stop fitting on one GPU?"
    size = Number("Model size", 70e9, 0.1e9, 2e12, family="params", marks=(1e9, 7e9, 13e9, 70e9, 405e9))
    gpu = Choice("GPU", list(catalog.gpus().values()), "h100-sxm")
    recipe = Choice("Optimizer recipe", list(catalog.recipes().values()), "bf16-adam")
    assemble = Player("Assemble the stack, slab by slab", frames=5)

    presets = {"7B": {"size": 7e9}, "70B on H100": {}, "405B on B200": {"size": 405e9, "gpu": "b200"},
               "13B, 8-bit Adam": {"size": 13e9, "recipe": "adam-8bit"}}
    break_it = "Find the largest model whose state one H100 still holds, then go one stop further."
    assumptions = ("Training state only: no activations, no buffers, no fragmentation. HBM as the vendor sells it, "
                   "in decimal gigabytes; a real run keeps a few gigabytes for the framework.")
    formula = ("$$M = P \\,(b_w + b_g + b_{master} + b_m + b_v)$$\n\n$P$ is the number of parameters, each $b$ the bytes that "
               "the recipe spends on one of them: for bf16 mixed Adam $2 + 2 + 4 + 4 + 4 = 16$ (ZeRO, "
               "arXiv:1910.02054, section 3.1).")

    def total_bytes(self):
        return memory.state_bytes(self.size, self.recipe)

    def view_bytes(self):
        return fig.fitting_view(self.total_bytes(), VIEWS_BYTES)

    @part("size", "recipe", "assemble")
    def slabs(self):
        full = memory.state_slabs(self.size, self.recipe)
        shown = fig.revealed(full, self.assemble)
        bottom, top = fig.stacked(shown)
        thin = shown < fig.share_of(self.view_bytes(), 0.045)
        return {"bottom": bottom, "top": top, "middle": fig.midpoint(bottom, top),
                "name": [choose(thin[i], "", SLABS[i]) for i in range(5)],
                "amount": [choose(thin[i], "", show(full[i], "bytes")) for i in range(5)]}

    @part("size", "recipe", "gpu", "assemble")
    def pierced(self):
        held = np.sum(fig.revealed(memory.state_slabs(self.size, self.recipe), self.assemble))
        return {"bottom": np.minimum(self.gpu.hbm_bytes, held), "top": held,
                "label": choose(held > self.gpu.hbm_bytes, f"{show(held, 'bytes')}", f"{show(held, 'bytes')} fits")}

    @part("size", "recipe")
    def ceilings(self):
        hbm = np.array([gpu.hbm_bytes for gpu in CEILINGS])
        return {"hbm": hbm, "label_at": fig.spread(hbm, fig.share_of(self.view_bytes(), 0.058)),
                "label": [f"{gpu.name.split()[0]}  {show(gpu.hbm_bytes, 'bytes')}" for gpu in CEILINGS]}

    @part("gpu")
    def chosen(self):
        return {"hbm": self.gpu.hbm_bytes}

    @readout("State")
    def state(self):
        return show(self.total_bytes(), "bytes")

    @readout("Against one GPU")
    def against(self):
        ratio = memory.against_hbm(self.total_bytes(), self.gpu)
        return show(ratio, "times"), ratio > 1

    @readout("Fits on 1 GPU")
    def fits(self):
        over = self.total_bytes() > self.gpu.hbm_bytes
        return choose(over, "no", "yes"), over

    @readout("At least")
    def gpus_needed(self):
        needed = memory.minimum_gpus(self.total_bytes(), self.gpu)
        return f"{show(needed, 'count')}{choose(needed > 1, ' GPUs', ' GPU')}"

    @regime(target=True)
    def memory_wall(self):
        ratio = memory.against_hbm(self.total_bytes(), self.gpu)
        return ratio > 1, (f"You found the memory wall: the state alone is {show(ratio, 'times')} the HBM of one {self.gpu.name}. "
                           "First response: shard it over several GPUs (FSDP and ZeRO).")

    def ranges(self):
        return {"y": [0.0, self.view_bytes()]}

    def summary(self):
        needed = memory.minimum_gpus(self.total_bytes(), self.gpu)
        return (f"A model of {show(self.size, 'params')} parameters under {self.recipe.name} keeps {self.state()} of training state; "
                f"one {self.gpu.name} holds {show(self.gpu.hbm_bytes, 'bytes')}, so it takes at least {show(needed, 'count')}.")

    def figure(self, sources):
        p = fig.plot((0, 10), (0, VIEWS_BYTES[3]), height=400)
        fig.moving_ticks(p.yaxis[0], "bytes")
        fig.only("wide", p.yaxis[0])
        fig.hide(p.xaxis[0])
        color = fig.COLOR
        p.segment(0.2, "hbm", 6.6, "hbm", source=sources["ceilings"], line_color=color["ink-faint"], line_dash=[6, 4])
        p.segment(6.6, "hbm", 6.9, "label_at", source=sources["ceilings"], line_color=color["ink-faint"], line_alpha=0.6)
        p.text(7.0, "label_at", text="label", source=sources["ceilings"], **fig.LABEL)
        p.segment(0.2, "hbm", 6.6, "hbm", source=sources["chosen"], line_color=color["ink"], line_width=2, line_dash=[6, 4])
        p.quad(left=1.2, right=5.4, bottom="bottom", top="top", source=sources["slabs"], fill_color=color["hbm"],
               fill_alpha=0.28, line_color=color["hbm"], line_width=1.5)
        p.quad(left=1.2, right=5.4, bottom="bottom", top="top", source=sources["pierced"], **fig.OVER)
        p.text(1.45, "middle", text="name", source=sources["slabs"], **fig.TEXT)
        fig.only("wide", p.text(5.15, "middle", text="amount", source=sources["slabs"], text_align="right", **fig.TEXT))
        p.text(3.3, "top", text="label", source=sources["pierced"], text_align="center", y_offset=-12,
               **fig.TEXT | {"text_font_style": "bold"})
        return p
