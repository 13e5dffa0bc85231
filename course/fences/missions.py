"""The Markdown fence for the list of missions, each with its requirements, a series of hints, and the
planner's own answer.

    ``` missions
    ```

The page's script (site/theme/assets/widget/missions.js) stores progress in the reader's browser only.
"""

from __future__ import annotations

import json

from jinja2 import Environment

from course.fences import base
from engine.base import check, units
from engine.exam import missions
from engine.exam.missions import Mission
from engine.step import cases
from engine.step.cases import Layouts

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<div class="missions" data-missions="layout_missions">
<p class="missions-progress" data-progress role="status">{{ rows | length }} missions. Progress is kept in this browser.</p>
<ol>
{% for row in rows %}<li class="mission" data-mission="{{ row.key }}">
<p class="mission-name">{{ row.name }}</p>
<p>{{ row.brief }}</p>
<p class="mission-asks">{{ row.asks }}</p>
<p><button type="button" data-set="{{ row.take }}">Lay it out</button></p>
{% for hint in row.hints %}<details><summary>{{ "Hint" if loop.first else "Next hint" }}</summary><p>{{ hint }}</p>
{% endfor %}<details><summary>The planner's answer</summary><p>{{ row.answer }}</p>
<p><button type="button" data-set="{{ row.solution }}" data-given>Show it in the figure</button></p></details>
{% for hint in row.hints %}</details>{% endfor %}</li>
{% endfor %}</ol></div>
""")


def state(mission: Mission, a: Layouts) -> dict[str, str]:
    """The controls of ``layout_missions`` for a layout, as texts."""
    schedule = cases.SCHEDULE_NAMES[int(a.schedule)].replace(" ", "")
    whole = {name: str(int(getattr(a, name))) for name in ("tp", "pp", "cp", "ep", "zero", "micro_batch")}
    return {
        "mission": mission.key,
        **whole,
        "split": "on" if a.expert_tp > 1 else "off",
        "recompute": "full" if a.recompute else "none",
        "schedule": schedule,
    }


def asks(mission: Mission) -> str:
    """What a mission asks for, in one line."""
    asked = [
        f"{units.human(mission.gpus, 'count')} × {mission.gpu.name}",
        (
            f"{units.human(mission.batch, 'count')} sequences of {units.human(mission.seq, 'count')} tokens a "
            "step"
        ),
    ]
    if mission.least_mfu:
        asked.append(f"at least {units.human(mission.least_mfu, 'percent')} MFU")
    if mission.most_days < missions.NO_CEILING:
        asked.append(
            f"at most {units.human(mission.most_days, 'count')} days for "
            f"{units.human(mission.tokens, 'tokens')}"
        )
    if mission.most_dollars < missions.NO_CEILING:
        asked.append(
            f"at most {units.human(mission.most_dollars, 'dollars')}, at "
            f"{units.human(mission.price, 'dollars')} a GPU-hour"
        )
    return " · ".join(asked)


def _row(mission) -> dict:
    answer = missions.answer(mission)
    with check.trusted():
        verdict = missions.judge(mission, answer)
    words = (
        f"Tensor {answer.tp:.0f} × pipeline {answer.pp:.0f} × context {answer.cp:.0f} × data {answer.dp:.0f}"
        + (f", expert {answer.ep:.0f}" if answer.ep > 1 else "")
        + f", ZeRO {answer.zero:.0f}, micro-batch {answer.micro_batch:.0f}, "
        f"{cases.SCHEDULE_TITLES[int(answer.schedule)]}, "
        + ("every layer" if answer.recompute else "nothing")
        + " recomputed: "
        + f"{units.human(float(verdict.mfu), 'percent')} MFU, {units.human(float(verdict.days), 'count')} "
        "days, " + f"{units.human(float(verdict.dollars), 'dollars')}, "
        f"{units.human(float(verdict.total_bytes), 'bytes')} of "
        + f"{units.human(mission.hbm_bytes, 'bytes')} on the fullest GPU. Any layout that reaches the goal "
        "wins."
    )
    return {
        "key": mission.key,
        "name": mission.name,
        "brief": mission.brief,
        "asks": asks(mission),
        "hints": mission.hints,
        "answer": words,
        "take": json.dumps(state(mission, missions.first_try(mission))),
        "solution": json.dumps(state(mission, answer)),
    }


def render(source: str) -> str:
    """The HTML of the fence."""
    base.require_empty(source)
    return PAGE.render(rows=[_row(mission) for mission in missions.missions().values()]).strip()


format = base.formatter(render)
