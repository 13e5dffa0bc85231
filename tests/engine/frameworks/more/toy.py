"""A framework of the tests: ``toytrain --degree=2``, or a YAML file with a part ``toy``."""

from __future__ import annotations

from engine.frameworks.framework import Claim, Framework, Meant, Sure
from engine.frameworks.known_models import named
from engine.frameworks.settings import TEXT, Field
from engine.frameworks.writing import Words, keys_of
from engine.step.constraints import Ability
from engine.step.layout import Job, Layout

FIELDS = {
    "toy.what": Field("model", TEXT),
    "toy.degree": Field("tp"),
    "toy.rows": Field("micro_batch"),
    "toy.again": Field("recompute", TEXT),
}
KEYS = keys_of(FIELDS)


class Toy(Framework):
    """It has tensor ranks and whole replicas."""

    key = "toy"
    name = "Toy"
    fields = FIELDS
    unmodelled = {"toy.magic": "magic is not modelled"}
    can = Ability("toy", "Toy 1.0", (0,), (), ("1f1b",), True, (), "toy.txt")

    def claims(self, command):
        at = command.words.index("toytrain") + 1 if "toytrain" in command.words else 0
        return Claim(Sure.NAMED if at else Sure.NOT, at)

    def owns(self, notation, entries):
        return Sure.OWN_SECTIONS if any(entry.key.startswith("toy.") for entry in entries) else Sure.NOT

    def named_model(self, draft):
        return named(draft.given("model"))

    def read(self, draft, model, gpus):
        tp, micro = draft.get("tp", 1), draft.get("micro_batch", 1)
        again = draft.get("recompute", "none")
        if model.heads % tp:
            draft.refuse(f"ToyError: {tp} ranks cut a head", "tp")
            tp = 1
        job = Job(micro * (gpus // tp), 2048)
        return Meant(gpus, "bf16", job, Layout(gpus, tp, zero=0, micro_batch=micro, recompute=again))

    def moves(self, launch):
        return {"recompute": ("none", "full")}

    def edit(self, name, value, launch):
        return [(KEYS[name], str(value))] if name in KEYS else []

    def write(self, what, words=Words, said=(), name=""):
        values = {"tp": what.tp, "micro_batch": what.micro_batch}
        lines = [f"  {KEYS[name][4:]}: {words.plain(value)}" for name, value in values.items()]
        again = words.choose(what.recompute > 0, "full", "none")
        model = next(one.value for one in said if one.name == "model")
        lines += [f"  {KEYS['recompute'][4:]}: {again}", f"  {KEYS['model'][4:]}: {model}"]
        return "\n".join(["toy:", *lines]) + "\n"


FRAMEWORK = Toy()
