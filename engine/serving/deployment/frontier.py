"""All deployments of a load at once: the speed of each user's answer against the throughput of each GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.serving.deployment.columns import Plans
from engine.serving.deployment.search import Search

SPARE = (1.0, 1.06, 1.12, 1.25, 1.4, 1.6, 2.0, 2.5, 3.2, 4.0, 6.0)  # factors on the fewest units that keep up
ANY = -1.0  # a share of the requests that is so low that every deployment reaches it


class Frontier(NamedTuple):
    """Deployments as columns: each plan with the fewest units that keep up with the load, and with more
    units."""

    plan: np.ndarray  # an index into the search's plans
    units: np.ndarray
    gpus: np.ndarray
    per_user: np.ndarray  # tokens a second of one answer, on average
    per_gpu: np.ndarray  # tokens written each second, for each GPU
    prompts_met: np.ndarray  # share of requests whose first token comes in time …
    tokens_met: np.ndarray  # … and of those whose other tokens do
    within: np.ndarray  # whether both limits are met
    best: np.ndarray  # whether no deployment within the limits is better in both respects


def frontier(search: Search) -> Frontier:
    """Every deployment in closed form; none is simulated here."""
    forms, plans = search.forms, search.plans
    fewest = forms.fewest(plans, ANY)
    able = np.nonzero(fewest > 0)[0]
    more = np.ceil(fewest[able][:, None] * np.array(SPARE)[None, :])
    fresh = np.concatenate([np.full((len(able), 1), True), more[:, 1:] > more[:, :-1]], axis=1)
    kind = np.broadcast_to(able[:, None], more.shape)[fresh]
    units = more[fresh]
    judged = forms.judge(Plans(*(column[kind] for column in plans)), units)
    of = np.array([float(one.gpus) for one in search.tables])
    each = plans.prefillers * of[plans.front] + plans.decoders * of[plans.table]
    gpus = units * each[kind]
    per_user, per_gpu = 1.0 / judged.token_s, search.load.per_s * forms.ask.answer / gpus
    within = judged.within(search.limits.share)
    return Frontier(
        kind,
        units,
        gpus,
        per_user,
        per_gpu,
        judged.prompts_met,
        judged.tokens_met,
        within,
        _unbeaten(per_user, per_gpu, within),
    )


def _unbeaten(x: np.ndarray, y: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Which points no other point is both right of and above."""
    order, found, highest = np.lexsort((-y, -x)), [False] * len(x), 0.0
    for i in order.tolist():
        if bool(of[i]) and float(y[i]) > highest:
            found[i], highest = True, float(y[i])
    return np.array(found)
