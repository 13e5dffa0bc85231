"""Whoever does what a figure advises has less of what it complains about: for every figure, in every state
tried that gives the advice. ``advice.py`` says how each piece of it is followed, and what should fall."""

import warnings
from functools import cache
from itertools import chain

import pytest

from engine.base import check
from tests import states
from tests.widgets.advice import ELSEWHERE, GIVEN, Advice, to
from widgets.kit.widget import Widget, all_widgets

FOLLOWED = [(slug, regime, advice) for (slug, regime), all_of in GIVEN.items() for advice in all_of]
SELDOM = {  # states that those below would miss
    "deployment_planner": [{"model": 3, "tpot": 0.01, "weights": 0}],
    "layout_planner": [{"gpus": 49152.0}],
    "prefill_decode": [{"prompt": 6600.0}, {"spread": 1.5}, {"replicas": 2.0}],
}
# figures whose states take Python long, and how many are tried with EVERY=1; half of them daily, as of all
SLOW = {"layout_planner": 12, "prefill_decode": 40, "deployment_planner": 80}


@cache
def tried(slug: str) -> list[dict]:
    """The default, the presets, the target, each with one control moved, and random states."""
    cls = all_widgets()[slug]
    starts = [states.default(cls), *states.presets(cls)]
    moved = (
        start | {name: value}
        for start in starts[:6]
        for name, control in cls.controls().items()
        if control.kind != "player"
        for value in states.some(states.values_of(control), 4)
    )
    found = list(chain(moved, states.scattered(cls, 60, between_stops=False)))
    most = SLOW.get(slug, len(found))
    seldom = [starts[0] | state for state in SELDOM.get(slug, ())]
    return [*starts, *seldom, states.at_the_target(cls), *states.daily(found[:: max(1, len(found) // most)])]


@cache
def met(slug: str) -> dict[str, list[tuple[dict, Widget, str]]]:
    """The states in which each regime is met, each with the figure in it, which keeps what it has computed,
    and the regime's words."""
    cls = all_widgets()[slug]
    found = {name: [] for name in cls.methods("regime_target")}
    with check.trusted(), warnings.catch_warnings(action="ignore"):
        for state in tried(slug):
            widget = cls()
            widget.set_raw(state)
            for name, met in found.items():
                is_met, words = getattr(widget, name)()
                if is_met:
                    met.append((state, widget, str(words)))
    return found


def taken_up(slug: str, regime: str, advice: Advice) -> list[tuple[dict, float, float, bool]]:
    """(state, before, after, whether the regime is still met), wherever it is given and can be followed."""
    cls = all_widgets()[slug]
    there, found = cls(), []
    with check.trusted(), warnings.catch_warnings(action="ignore"):
        for state, here, words in met(slug)[regime]:
            moved = advice.follow(cls, state, here) if advice.words in words else None
            if moved is None:
                continue
            there.set_raw(moved)
            after = float((advice.instead or advice.worse)(there))
            found.append((state, float(advice.worse(here)), after, bool(getattr(there, regime)()[0])))
    return found


@pytest.mark.parametrize(("slug", "regime", "advice"), FOLLOWED, ids=lambda it: getattr(it, "words", it))
def test_following_it_makes_it_better(slug, regime, advice):
    found = taken_up(slug, regime, advice)
    assert found, "no state gives this advice: are these still its words?"
    harmed = [
        (state, before, after)
        for state, before, after, _ in found
        if not (after <= before if advice.at_times else after < before)
    ]
    assert not harmed, f"worse in {len(harmed)} of {len(found)} states, as in {harmed[0]}"
    assert any(after < before for _, before, after, _ in found)
    if advice.enough:
        still = [state for state, _, _, left in found if left]
        assert not still, (
            f"followed, and still there in {len(still)} of {len(found)} states, as in {still[0]}"
        )


@pytest.mark.parametrize("slug", sorted(all_widgets()))
def test_every_first_response_is_tried_here_or_says_why_not(slug):
    """A regime that advises something has an entry, and none has two."""
    shown = met(slug).items()
    advising = {(slug, name) for name, each in shown if any("First response" in words for *_, words in each)}
    known = {key for key in (*GIVEN, *ELSEWHERE) if key[0] == slug}
    assert advising <= known, f"no entry: {advising - known}"
    assert not GIVEN.keys() & ELSEWHERE.keys()


def test_harmful_advice_would_be_found():
    """The bucket that ddp_overlap once advised: the largest, where smaller ones expose less."""
    too_large = Advice("larger ones", to(bucket=8192 * 2.0**20), lambda w: w.run()["exposed_s"])
    found = taken_up("ddp_overlap", "too_many", too_large)
    assert any(after > before for _, before, after, _ in found)
