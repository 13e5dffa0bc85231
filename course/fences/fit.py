"""The Markdown fence for the page that checks a launch before it starts.

    ``` fit
    titan-8b-8: A torchtitan run that fits
    ```

Each line is an example to try, by its name in launches.toml or strangers.toml of engine/validation/published,
and what a reader sees of it. The page's own scripts are in site/theme/assets/fit; what they run of the engine is
made by course/engine_in_page.py.
"""

from __future__ import annotations

import json

from jinja2 import Environment
from markupsafe import Markup

from course.fences import base
from course.strict_yaml import Refused
from engine import catalog
from engine.launch import reading, texts
from engine.launch.verdict import USUAL
from engine.validation import launch_cases

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<div class="fit" data-fit data-longest="{{ longest }}" data-most="{{ most }}">
<p class="fit-without">This page reads your files with JavaScript, which is off here. The same check runs at a shell, after
<code>pip install .</code> in a clone of the course: <code>system-ml check FILE…</code></p>
<form data-search-exclude class="fit-form" data-form hidden>
<p class="fit-examples"><span>Try one:</span>
{% for example in examples %}<button type="button" data-example="{{ example.data }}">{{ example.title }}</button>
{% endfor %}</p>
<div class="fit-files" data-files></div>
<p class="fit-tools"><button type="button" data-add>Add a file</button>
<label class="fit-open">Open files…<input type="file" multiple data-open></label>
<button type="button" data-clear>Clear</button></p>
<p class="fit-where">
<label>GPU <select data-gpu><option value="">not said: {{ usual }}</option>
{% for key, name in gpus %}<option value="{{ key }}">{{ name }}</option>
{% endfor %}</select></label>
<label>Number of GPUs <input data-gpus type="text" inputmode="numeric" autocomplete="off" placeholder="as the files say"></label>
</p>
<details class="fit-own" data-own><summary>A GPU or a fabric of your own</summary>
<p>What differs from the GPU above; it is taken to reach the same shares of its peaks.</p>
<p class="fit-where">
{% for key, label, scale in own %}<label>{{ label }} <input data-own-{{ key | replace("_", "-") }} data-field="{{ key }}" data-scale="{{ scale }}" type="text" inputmode="decimal" autocomplete="off" placeholder="the usual"></label>
{% endfor %}</p></details>
</form>
<div class="fit-report" data-report hidden>
<p class="fit-said" role="status" tabindex="-1" data-said></p>
<div data-found></div>
<p class="fit-tools" data-take hidden><button type="button" data-link>Copy a link</button>
<button type="button" data-issue>Copy as issue text</button></p>
</div>
<div class="fit-lines" data-lines hidden></div>
</div>""")

# the fields for a GPU of one's own: the key in engine.launch.fit_page, the label, and the SI value of its
# unit
OWN = (
    ("hbm_bytes", "Memory, GB", 1e9),
    ("hbm_bytes_per_s", "HBM, TB/s", 1e12),
    ("bf16_flops_per_s", "Dense bf16, TFLOP/s", 1e12),
    ("link_bytes_per_s", "Link in the node, GB/s one way", 1e9),
    ("nic_bytes_per_s", "NIC for each GPU, GB/s", 1e9),
    ("gpus_per_node", "GPUs in a node", 1),
    ("host_bytes", "Host memory of a node, GB", 1e9),
)


def render(source: str) -> Markup:
    """The HTML of the fence."""
    gpus = [
        (key, gpu.name)
        for key, gpu in catalog.all_gpus().items()
        if gpu.bf16_flops_per_s or gpu.fp16_flops_per_s
    ]
    return Markup(
        PAGE.render(
            examples=[_example(line) for line in source.strip().splitlines()],
            gpus=gpus,
            own=OWN,
            usual=catalog.gpu(USUAL).name,
            longest=texts.LONGEST,
            most=reading.MOST_GPUS,
        ).strip()
    )


def _example(line: str) -> dict[str, str]:
    name, _, title = line.partition(": ")
    known = launch_cases.cases() | launch_cases.strangers()
    if name not in known or not title:
        raise Refused(f"an example is a line 'NAME: title', NAME one of {', '.join(known)}; got {line!r}")
    return {"title": title, "data": json.dumps(launch_cases.request(name))}


format = base.formatter(render)
