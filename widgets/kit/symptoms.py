"""The Markdown fence for the page of symptoms: what every lesson says under "Where it breaks", sorted by what is seen.

    ``` symptoms
    ```

A lesson writes each failure as one paragraph: its name, what it is, *Symptom:* what is seen, *First response:* what to do.
They are read out of the lessons when the page is built, and the first lesson's table of walls stands before them. A field
above both leaves in sight what holds the words typed there, or words that mean the same (site/theme/assets/js/course.js).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from jinja2 import Environment
from markupsafe import Markup

from widgets.kit import excerpts
from widgets.kit.locate import LESSONS

FAILURE = re.compile(
    r"\*{1,2}(?P<name>[^*]+?)\.?\*{1,2}\s*(?P<what>.*?)\s*\*Symptom:\*\s*(?P<symptom>.*?)"
    r"(?:\s*\*Threshold:\*\s*(?P<threshold>.*?))?\s*\*First\s+response:\*\s*(?P<response>.*)", re.DOTALL)
SERVING = ("11-", "12-")
# What is seen -> words of the symptom that tell; the first group that knows one has it.
GROUPS = {
    "Out of memory": r"\bOOM\b|out of memory|memory\b(?! bandwidth)|reserved|unallocated|OutOfResources|rank 0 dies|num_alloc|nvidia-smi",
    "It stops, or never starts": r"hangs?\b|watchdog|assertion|always starting|wall clock that|error at capture|never end",
    "Wrong, or worse than it should be": r"\bloss\b|quality|drift|differ|does not repeat|do not\s+learn|checkpoint of|results change|"
                                         r"scale goes|estimate is off|\bwrong\b",
    "Answers come late": None,                                  # what is left of the lessons on serving
    "Too slow": "",                                             # and of the others
}
# What readers type for one thing -> other words by which a lesson may say it; each is looked for at the beginning of a word.
SYNONYMS = {
    "OOM|out of memory|OutOfMemoryError|CUDA out of memory": "OutOfResources|does not fit|memory grows|memory jumps",
    "fragmentation|fragmented": "unallocated",
    "memory leak|leak": "memory grows",
    "NaN|NaNs|not a number|overflow|underflow": "infinite|loss scale|loss spikes|fp16",
    "divergence|diverges|diverged|diverging": "loss rises|loss spikes|drift|loss stops",
    "accuracy|quality": "results change|plausible and wrong|loss",
    "TTFT|time to first token|first token": "time to the first token|first token",
    "TPOT|ITL|inter-token latency|time per token|time between tokens": "milliseconds a token|a token takes|tokens come",
    "MFU|HFU|utilisation|utilization": "idle|gaps between kernels|throughput",
    "low MFU|poor MFU|low utilisation|low utilization": "MFU is low|MFU falls|idle|gaps between kernels|lanes have gaps|low FLOP/s|far from HBM",
    "throughput|tokens per second|tokens/s": "tokens per second|tokens a second",
    "NCCL timeout|timeout|timed out|watchdog|hang|hung|stuck|deadlock|freeze|frozen": "timeout|watchdog|hang",
    "slow|slower": "crawls|no faster|no shorter|far longer|twice what you estimated",
    "crash|crashes|crashed|died|killed|exception": "dies|assertion|error",
    "recompile|recompilation|recompiling": "recompil|busy with compilers",
    "straggler|slow rank|slow GPU": "slow one|ranks wait|all ranks but one|except one",
    "preemption|preempted|evicted": "preempt|put out|pushed out",
    "jitter|stutter|unsteady": "stutter|uneven|vary in time|changes from run to run|then stop",
    "reproducible|nondeterministic|deterministic": "does not repeat|results change|differ",
}
# Words of a question that tell nothing.
IDLE = "a an and are as at but by do does i in is it my of on or our so that the their then there to too very we what when why with".split()
PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<p class="symptoms-find"><label for="symptom-words">What do you see?</label>
<input id="symptom-words" type="search" data-filter=".symptom, .walls tbody tr" data-synonyms="{{ synonyms }}" data-idle="{{ idle }}" \
placeholder="OOM, hangs, NaN, low MFU …" autocomplete="off">
<span data-filter-count role="status"></span></p>
<section class="wide walls">
{{ walls }}
</section>
{% for title, failures in groups.items() %}<section class="wide">
<h2 id="{{ slug(title) }}">{{ title }}<a class="headerlink" href="#{{ slug(title) }}" title="Link to this section">#</a></h2>
{% for each in failures %}<div class="symptom">
<p class="symptom-seen">{{ line(sentence(each.symptom)) }}</p>
<div><p><b>{{ each.name }}.</b> {{ line(each.what) }}</p>
{% if each.threshold %}<p><i>Threshold:</i> {{ line(each.threshold) }}</p>
{% endif %}<p><i>First response:</i> {{ line(each.response) }}</p>
<p class="symptom-lesson"><a href="../{{ each.lesson }}/#{{ each.anchor }}">{{ each.title }}</a></p></div>
</div>
{% endfor %}</section>
{% endfor %}""")


@dataclass(frozen=True)
class Failure:
    """One way in which a lesson's strategy breaks; texts are Markdown."""

    lesson: str
    title: str
    anchor: str
    name: str
    what: str
    symptom: str
    threshold: str
    response: str

    @property
    def group(self) -> str:
        """The heading under which a reader looks for it."""
        for title, words in GROUPS.items():
            if self.lesson.startswith(SERVING) if words is None else re.search(words, self.symptom):
                return title
        raise AssertionError("the last group takes what is left")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def failures() -> list[Failure]:
    """Every failure of every lesson, in their order."""
    found = []
    for lesson in excerpts.lessons_with("breaks"):
        for box in lesson.boxes:
            for paragraph in re.split(r"\n\s*\n", box.source):
                if match := FAILURE.search(paragraph.strip()):
                    parts = {name: _one_line(text) for name, text in match.groupdict().items()}
                    found.append(Failure(lesson.name, lesson.title, box.anchor, **parts))
    return found


def sentence(text: str) -> str:
    """With a capital at its beginning, where it does not begin with code."""
    return text[:1].upper() + text[1:]


def walls() -> Markup:
    """Lesson 01's table: where each wall sends you."""
    text = (LESSONS / "01-why-distributed.md").read_text(encoding="utf-8")
    table = re.search(r"^## Where each wall sends you\n.*?(?P<table>^\|.+?)\n\n", text, re.MULTILINE | re.DOTALL)["table"]
    return excerpts.html(table)


def synonyms() -> list[list[list[str]]]:
    """(what is typed, other words for it) in groups, as the page's script compares them."""
    return [[words.lower().split("|") for words in pair] for pair in SYNONYMS.items()]


def format(source, language, css_class, options, md, **kwargs) -> Markup:
    """The pymdownx superfences formatter."""
    known = failures()
    groups = {title: [each for each in known if each.group == title] for title in GROUPS}
    return Markup(PAGE.render(
        groups=groups, walls=walls(), synonyms=json.dumps(synonyms()), idle=json.dumps(IDLE), line=excerpts.line, sentence=sentence,
        slug=lambda title: re.sub(r"\W+", "-", title.lower()).strip("-")).strip())
