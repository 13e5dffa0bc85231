"""The deployment planner for its page: plain values go in, and plain values come out.

The page without a server runs this very module, translated (``widgets/kit/compiler/modules``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine import catalog
from engine.base import units
from engine.frameworks.registry import servers
from engine.launch.commands import commands
from engine.serving import steady_state
from engine.serving.deployment import rehearsal
from engine.serving.deployment.finder import CACHES, deploy, prepared
from engine.serving.deployment.found import Deployment
from engine.serving.deployment.frontier import frontier
from engine.serving.deployment.load import Limits, Load
from engine.serving.drafts import Drafts
from engine.serving.replica import Replica
from engine.step import layout

# the fields of a question beside model and gpu; every message about bad input begins with one of these names
LOAD = ("per_s", "prompt", "output", "prompt_spread", "output_spread", "prefix_share")
LIMITS = ("ttft_s", "tpot_s", "share", "pause_s")
DRAFTS = ("drafted", "accepted", "step_s")
FIELDS = ("model", "gpu", *LOAD, *LIMITS, "formats", "caches", "pools", *DRAFTS, "dollars_per_gpu_hour")
WHOLE = ("prompt", "output")
KINDS = 5  # deployments that are shown
PROGRAMS = tuple(servers())
NAMES = [each.name for each in servers().values()]
BINDS = {
    "ttft_s": "the time to the first token: with a replica less it is missed",
    "tpot_s": "the time of a token: with a replica less it is missed",
    "pause_s": "the longest pause: with a replica less it is missed",
    "capacity": "what they can serve at all: with a replica less the queue grows for ever",
    "smallest": "the model itself: this is the smallest deployment of this kind",
}
OUTSIDE = {
    "gpu": "no served model was measured on this GPU's generation",
    "experts": "no served mixture of experts was measured",
    "tp": "no measured replica was this large",
    "pp": "no measured server was a pipeline",
    "batch": "no measured replica wrote so many answers at once",
    "context": "the longest requests would pass the model's context, and are cut there",
}


def expected(asked: dict) -> dict:
    """The first answer, which is in closed form and comes at once: the deployment that is probably the
    cheapest."""
    try:
        search = prepared(*_asked(asked))
    except ValueError as error:
        return refusal(str(error))
    best = search.expected()
    return {
        "refused": "",
        "field": "",
        "headline": headline(best),
        "best": shown(best),
        "price": _price(asked, search.dollars),
        "considered": len(search.plans.table),
    }


def others(asked: dict) -> dict:
    """All deployments that the closed forms judge, as columns."""
    try:
        search = prepared(*_asked(asked))
    except ValueError as error:
        return refusal(str(error))
    at, plans, tables = frontier(search), search.plans, search.tables
    backs = [tables[i] for i in plans.table[at.plan].tolist()]
    fronts = [tables[i] for i in plans.front[at.plan].tolist()]
    drafts = [search.drafts[i] for i in plans.drafts[at.plan].tolist()]
    return {
        "refused": "",
        "field": "",
        "user": at.per_user.tolist(),
        "gpu": at.per_gpu.tolist(),
        "gpus": at.gpus.tolist(),
        "units": at.units.tolist(),
        "back": [one.replica.name for one in backs],
        "front": [one.replica.name for one in fronts],
        "drafted": [0 if one is None else one.drafted for one in drafts],
        "weights": [one.weights for one in backs],
        "cache": [one.kv_precision for one in backs],
        "chunk": plans.budget[at.plan].tolist(),
        "prefill": [p / one.replica.batches for p, one in zip(plans.prefillers[at.plan].tolist(), fronts)],
        "decode": [d / one.replica.batches for d, one in zip(plans.decoders[at.plan].tolist(), backs)],
        "met": np.minimum(at.prompts_met, at.tokens_met).tolist(),
        "within": at.within.tolist(),
        "best": at.best.tolist(),
    }


def simulated(asked: dict) -> dict:
    """What ``engine.deploy`` finds: the cheapest deployment that holds its limits when simulated event by
    event, and the cheapest of other kinds."""
    try:
        model, at, load, limits, formats, caches, pools, drafts, dollars = _asked(asked)
        found = deploy(model, at, load, limits, None, formats, caches, pools, drafts, dollars, KINDS)
    except ValueError as error:
        return refusal(str(error))
    return {
        "refused": "",
        "field": "",
        "headline": headline(found.best),
        "found": [shown(one) for one in (found.best, *found.runners_up)],
        "simulated": found.simulated,
        "most": round((1 - steady_state.WARM_UP) * rehearsal.SURE),
        "leavesOut": list(found.leaves_out),
    }


def refusal(words: str) -> dict:
    """A refusal as a page shows it: the message, and the field beside which it stands."""
    first = words.split(" ")[0]
    return {"refused": words, "field": first if first in FIELDS else "ttft_s" if first == "limits" else ""}


def headline(one: Deployment) -> str:
    """A deployment in a sentence."""
    low, high = (units.human(value, "dollars") for value in one.band_dollars_per_million)
    count, price = (
        f"{one.gpus} GPU{'s' if one.gpus > 1 else ''}",
        units.human(one.dollars_per_million, "dollars"),
    )
    return f"{one.split} in {one.weights}: {count}, {price} for a million tokens written ({low} to {high})."


def shown(one: Deployment) -> dict[str, Any]:
    """A deployment in words and numbers. What only a simulation can tell is left out until there has been
    one."""
    felt = one.felt.requests > 0
    known = {
        "split": one.split,
        "gpus": one.gpus,
        "weights": one.weights,
        "cache": one.kv_precision,
        "chunk": one.chunk,
        "batch": one.largest_batch,
        "seats": _seats(one.replica),
        "apart": one.apart,
        "drafted": 0 if one.drafts is None else one.drafts.drafted,
        "dollars": units.human(one.dollars_per_million, "dollars"),
        "gpusBand": [math.ceil(value) for value in one.band_gpus],
        "perUser": one.tokens_per_s_per_user,
        "perGpu": one.tokens_per_s_per_gpu,
        "extrapolates": [OUTSIDE[name] for name in one.extrapolates],
    }
    if not felt:
        return known
    return known | {
        "ttft": units.human(one.felt.ttft_s, "seconds"),
        "tpot": units.human(one.felt.tpot_s, "seconds"),
        "pause": units.human(one.felt.pause_s, "seconds"),
        "pauseBand": [units.human(value, "seconds") for value in one.band_s["pause_s"]],
        "goodput": units.human(one.felt.kept, "percent"),
        "ttftBand": [units.human(value, "seconds") for value in one.band_s["ttft_s"]],
        "tpotBand": [units.human(value, "seconds") for value in one.band_s["tpot_s"]],
        "requests": one.felt.requests,
        "sure": one.sure,
        "binds": BINDS[one.binding],
        "dearer": one.dearer_by,
        "commands": [commands(one, program) for program in PROGRAMS],
    }


def _seats(of: Replica) -> str:
    """The words that say for what the largest batch counts."""
    if of.dp > 1:
        return "on each GPU"
    return f"in each of a replica's {of.pp} batches" if of.pp > 1 else "on a replica"


def _price(asked: dict, dollars: float) -> str:
    """A GPU-hour in words, with who listed it and when."""
    listed = None if asked.get("dollars_per_gpu_hour") else catalog.price(asked["gpu"])
    of = f": {listed.provider}, {listed.date}" if listed else ", as you say"
    return f"{units.human(dollars, 'dollars')} for a GPU-hour{of}"


def _whole(value: float) -> Any:
    """The number as an int if it is whole, else unchanged: then the load refuses it."""
    return int(value) if math.isfinite(value) and value == math.floor(value) else value


def _asked(asked: dict) -> tuple:
    """The arguments of ``search.prepared``."""
    load: dict[str, Any] = {
        name: _whole(float(asked[name])) if name in WHOLE else float(asked[name]) for name in LOAD
    }
    limits = {name: float(asked[name]) for name in LIMITS if asked.get(name)}
    drafts: tuple[Drafts, ...] = ()
    if asked.get("drafted"):
        drafts = (Drafts(_whole(float(asked["drafted"])), float(asked["accepted"]), float(asked["step_s"])),)
    return (
        catalog.model(asked["model"]),
        layout.machine(catalog.gpu(asked["gpu"])),
        Load(**load),
        Limits(**limits),
        (asked["formats"],) if asked.get("formats") else None,
        (asked["caches"],) if asked.get("caches") else CACHES,
        asked.get("pools") != "one",
        drafts,
        float(asked["dollars_per_gpu_hour"]) if asked.get("dollars_per_gpu_hour") else None,
    )
