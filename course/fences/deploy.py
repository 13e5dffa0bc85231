"""The Markdown fence for the page that plans a deployment.

    ``` deploy
    Chat with a 70B: {model: llama3.1-70b, gpu: h100-sxm, per_s: 20, prompt: 1000, output: 300, ttft_s: 1 s, tpot_s: 50 ms}
    ```

Each line is a state to start from: a title and the texts of its fields, as a reader would type them. A field
that is not named keeps its default from ``FIELDS``. The page opens in the first state. The page's own scripts
are in site/theme/assets/deploy; what they run of the engine is made by course/engine_in_page.py.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from course import strict_yaml
from course.fences import base
from course.strict_yaml import Refused
from engine import catalog
from engine.base import typed, units
from engine.launch import deploy_page as page
from engine.serving.deployment import finder
from engine.validation import points


class Field(NamedTuple):
    """A field of the form: its default text, and the unit of a number typed without one."""

    name: str
    label: str
    unit: str
    usual: str


FIELDS = (
    Field("per_s", "Requests a second", "count", "20"),
    Field("prompt", "Prompt, tokens (median)", "tokens", "1000"),
    Field("prompt_spread", "… its spread (σ of the logarithm)", "real", "0.6"),
    Field("output", "Answer, tokens (median)", "tokens", "300"),
    Field("output_spread", "… its spread", "real", "0.6"),
    Field("prefix_share", "Share of a prompt that a prefix cache holds", "%", "0 %"),
    Field("ttft_s", "First token within", "s", "1 s"),
    Field("tpot_s", "Each further token within", "ms", "50 ms"),
    Field("pause_s", "No pause longer than", "ms", ""),
    Field("share", "… for this share of the requests", "%", "90 %"),
)
# the fields that may stay empty, which means: no drafts, and the listed price
OWN = (
    Field("drafted", "Drafted tokens a step", "count", ""),
    Field("accepted", "… each kept with probability", "%", "70 %"),
    Field("step_s", "… seconds of drafting them", "ms", "1 ms"),
    Field("dollars_per_gpu_hour", "Dollars for a GPU-hour", "$", ""),
)
HINTS = {
    "pause_s": "any",
    "drafted": "none",
    "dollars_per_gpu_hour": "as listed",
}  # what an empty field means
CHOICES = {
    "formats": ("Weights", (("", "whichever is cheapest"), *((each, each) for each in finder.FORMATS))),
    "caches": ("Cache", (*((each, each) for each in finder.CACHES), ("", "whichever is cheaper"))),
    "pools": ("Pools", (("", "one or two"), ("one", "one: prompts and answers share"))),
}
MEASURED = (
    "serving_frontier",
    "decode_latency",
    "deployments",
    "spread_experts",
)  # published points that have both speeds

IN_16_BITS = "Ours multiplies in bf16, MLPerf's ran in fp8. "  # left out: it is about another figure

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<div class="deploy" data-deploy data-programs="{{ programs }}" data-published="{{ published }}">
<p class="deploy-without">This page computes with JavaScript, which is off here. The same search runs at a shell, after
<code>pip install .</code> in a clone of the course: <code>system-ml deploy --model llama3.1-70b --gpu h100-sxm --per-s 20 --prompt 1000
--output 300 --ttft-s 1 --tpot-s 0.05</code></p>
<p class="deploy-presets" data-presets hidden><span>Start from:</span>
{% for preset in presets %}<button type="button" data-preset="{{ preset.data }}">{{ preset.title }}</button>
{% endfor %}</p>
<div class="deploy-verdict" data-verdict hidden>
<p class="deploy-said" role="status" data-said></p>
<p class="deploy-jump"><button type="button" data-jump>Why, and how to start it</button></p>
</div>
<form class="deploy-form" data-search-exclude data-form hidden>
<div class="deploy-fields">
<label>Model <select name="model">{% for key, name in models %}<option value="{{ key }}">{{ name }}</option>{% endfor %}</select></label>
<label>GPU <select name="gpu">{% for key, name in gpus %}<option value="{{ key }}">{{ name }}</option>{% endfor %}</select></label>
{% for field in fields %}<label>{{ field.label }} <input name="{{ field.name }}" data-unit="{{ field.unit }}" data-usual="{{ field.usual }}" type="text" autocomplete="off"{% if field.name in hints %} placeholder="{{ hints[field.name] }}"{% endif %}></label>
{% endfor %}</div>
<details class="deploy-more" data-more><summary>Formats, pools, drafts and your price</summary>
<div class="deploy-fields">
{% for name, (label, options) in choices.items() %}<label>{{ label }} <select name="{{ name }}">{% for key, words in options %}<option value="{{ key }}">{{ words }}</option>{% endfor %}</select></label>
{% endfor %}{% for field in own %}<label>{{ field.label }} <input name="{{ field.name }}" data-unit="{{ field.unit }}" data-usual="{{ field.usual }}" type="text" autocomplete="off"{% if field.name in hints %} placeholder="{{ hints[field.name] }}"{% endif %}></label>
{% endfor %}</div></details>
</form>
<div class="deploy-answer" data-answer tabindex="-1" hidden>
<p class="deploy-how" data-how></p>
<div data-facts></div>
<figure class="deploy-frontier" data-frontier hidden></figure>
<div data-others></div>
<div data-commands></div>
</div>
</div>""")


def render(source: str) -> Markup:
    """The HTML of the fence."""
    gpus = [(key, gpu.name) for key, gpu in catalog.all_gpus().items() if gpu.bf16_flops_per_s]
    return Markup(
        PAGE.render(
            presets=[{"title": title, "data": json.dumps(state)} for title, state in presets(source).items()],
            models=[(key, model.name) for key, model in catalog.all_models().items()],
            gpus=gpus,
            fields=FIELDS,
            choices=CHOICES,
            own=OWN,
            hints=HINTS,
            programs=json.dumps(page.NAMES),
            published=json.dumps(published()),
        ).strip()
    )


def presets(source: str) -> dict[str, dict[str, str]]:
    """Title -> what each field says."""
    usual = {field.name: field.usual for field in (*FIELDS, *OWN)} | {
        name: options[0][0] for name, (_, options) in CHOICES.items()
    }
    found = {}
    for title, given in strict_yaml.mapping(source).items():
        if not isinstance(given, dict):
            raise Refused(f"a preset is a line 'TITLE: {{model: …, gpu: …}}', got {title!r}")
        unknown = [name for name in given if name not in page.FIELDS]
        if unknown or not {"model", "gpu"} <= given.keys():
            raise Refused(
                f"a preset names a model, a gpu and some of {', '.join(page.FIELDS)}; got "
                f"{', '.join(given)} in {title!r}"
            )
        state = usual | given
        found[title] = state
        refused = page.expected(asked(state))["refused"]
        if refused:
            raise Refused(f"{title!r} has no answer: {refused}")
    return found


def asked(state: dict[str, str]) -> dict[str, str | float]:
    """The arguments for the engine in a state: the texts of the fields as numbers."""
    found: dict[str, str | float] = dict(state)
    for field in (*FIELDS, *OWN):
        if not (said := state.get(field.name, "")):
            continue
        value = typed.parse(said, field.unit).value
        if value is None:
            raise Refused(
                f"{field.name} must be a number, in {field.unit} where it has no unit; got {said!r}"
            )
        found[field.name] = value
    return found


def published() -> list[dict]:
    """Measured points with a speed for each user and for each GPU, and the models and the GPU that they are of."""
    found = []
    for point in (each for file in MEASURED for each in points.points(file)):
        at, served = point.at, point.quantity == "tokens_per_s_per_gpu"
        if not served and not ("batch" in at and point.quantity == "time_s"):
            continue
        user = 1.0 / at["token_s"] if served else 1.0 / point.measured
        ours = point.ours
        error = units.human(abs(ours / point.measured - 1.0), "percent", 2)
        found.append(
            {
                "models": _alike(point.case["catalog_model"]),
                "gpu": at["gpu"],
                "user": user,
                "gpus": point.measured if served else at["batch"] * user / at["tp"],
                "what": point.what,
                "load": f"; prompts of {at['prompt']} tokens, answers of {at['output']}"
                if "output" in at
                else "",
                "ours": f"We say {point.said(ours)}: {error} {'less' if ours < point.measured else 'more'}.",
                "differs": point.differs.removeprefix(IN_16_BITS),
                "source": point.source.name,
            }
        )
    return found


def _alike(key: str) -> list[str]:
    """The models of the catalogue that cost a server the same as this one: they differ at most in
    vocabulary."""
    asked = catalog.model(key)
    same = ("depth", "hidden", "heads", "kv_heads", "ffn", "experts")
    return [
        other
        for other, model in catalog.all_models().items()
        if all(getattr(model, name) == getattr(asked, name) for name in same)
    ]


format = base.formatter(render)
