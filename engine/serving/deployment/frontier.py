"""All deployments of a load at once: how fast each user's answer comes against how much each GPU brings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.serving.deployment.forms import Plans
from engine.serving.deployment.search import Search

SPARE = (1.0, 1.06, 1.12, 1.25, 1.4, 1.6, 2.0, 2.5, 3.2, 4.0, 6.0)  # units over the fewest that keep up
ANY = -1.0  # a share of the requests that every deployment gives its limits


class Frontier(NamedTuple):
    """Deployments as columns, each kind with the fewest units that keep up with the load and with more."""

    plan: np.ndarray  # an index into the search's plans
    units: np.ndarray
    gpus: np.ndarray
    per_user: np.ndarray  # tokens a second of one answer, on average
    per_gpu: np.ndarray  # tokens a second that are written for each GPU
    prompts_met: np.ndarray  # share of requests whose first token comes in time …
    tokens_met: np.ndarray  # … and of those whose other tokens do
    within: np.ndarray  # whether both limits are met
    best: np.ndarray  # whether none within the limits is better at both


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
    per_user, per_gpu = 1.0 / judged.token_s, search.load.per_s * forms.lengths.answer / gpus
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
    """Which of these no other is right of and above."""
    order, found, highest = np.lexsort((-y, -x)), [False] * len(x), 0.0
    for i in order.tolist():
        if bool(of[i]) and float(y[i]) > highest:
            found[i], highest = True, float(y[i])
    return np.array(found)
