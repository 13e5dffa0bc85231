"""Search entries for what mkdocs does not index: widgets, boxed rules, symbols spelled out, and other forms
of words.

mkdocs indexes each section's text. Widgets are excluded from that (`data-search-exclude`) and get their own
entries here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path

from course import excerpts, lessons
from course.links import glossary
from widgets.kit.widget import all_widgets

OWN_PAGE_BOOST = 0.2  # ranks below the same widget in its lesson
RULE_BOOST = 1.2  # above words that only begin like one of the rule's, below the glossary's entry of one word
LEAST_TEXT = 40  # characters of a page before its first section, below which its description is shown
BREVITY = 0.5  # "Bubble" before "Zero-bubble schedule": mkdocs's search ignores a title's length
BOOSTS = {
    "glossary/#symbols": 100
}  # the table that defines the letters comes before the formulas that use them
ABOUT_THE_COURSE = {"about/", "components/", "decision-log/", "teach/"}
BEHIND_LESSONS = 0.3  # each typed word finds all that begin with it, so "a" finds "Take its numbers along"
# sections at the end of a lesson, which repeat its words
AT_THE_END = {"Exercises", "Takeaway", "Sources", "On the back of an envelope"}
BEHIND_SECTIONS = 0.5
# what people type to find a section that says it in other words: as tags, which count nearly as titles do
ASKED = {
    "planner/": ("how many GPUs for 70B", "layout"),
    "fit/": (
        "how many GPUs for 70B",
        "VRAM calculator",
        "memory calculator",
        "Megatron",
        "torchtitan",
        "DeepSpeed",
    ),
    "deploy/": ("vLLM", "SGLang", "TensorRT-LLM", "how many GPUs to serve"),
    "symptoms/#an-error-text": ("out of memory", "CUDA out of memory"),
    "symptoms/#hang-collective": ("NCCL timeout", "watchdog", "job hangs", "hang"),
    "glossary/#allreduce": ("allreduce",),
    "glossary/#graph-break": ("graph break", "graph breaks"),
    "glossary/#kv-cache": ("KV cache size",),
    "glossary/#fsdp": ("FSDP2", "fully_shard", "ZeRO-3"),
    "05-fsdp-and-zero/#in-pytorch": ("FSDP2", "fully_shard"),
    "05-fsdp-and-zero/#freeze-what-you-can-lora-and-qlora": ("fine-tuning", "PEFT"),
    "03-interconnect/": ("bandwidth",),
    "09-expert-parallel/": ("MoE", "mixture of experts"),
    "10b-the-long-run/#three-numbers-to-push-down": ("checkpoint interval", "MTBF"),
    "10b-the-long-run/#the-price-first": ("cost of training 70B", "price", "dollars", "budget"),
    "11-inference/#fewer-bits": ("quantization", "int4", "int8", "AWQ", "GPTQ"),
    "11b-the-server/#keeping-the-batch-full": ("continuous batching", "PagedAttention", "vLLM"),
    "14-mixed-precision/#eight-bits": ("fp8 training", "MXFP8", "NVFP4"),
    "numbers/#accelerators": ("H100 vs H200", "GPU specifications"),
    "teach/#in-a-learning-system": ("SCORM", "Moodle", "Canvas", "cmi5", "LMS"),
}
GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "lambda": "λ",
    "mu": "μ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "Psi": "Ψ",
    "Phi": "Φ",
}
COMMAND = re.compile(r"\\(?:var)?(" + "|".join(GREEK) + r")(?![a-zA-Z])")
FORMULA = re.compile(r"\$+([^$]+)\$+")
RUN = re.compile(r"(?<=\s)(?:[−–-]?\d[\d.,]*×?\s+){2,}")  # several numbers in a row, as in a table
OF_ROWS = "validation-rows/"  # tables of sources, which nobody looks for by their rows
BEGINNING = 500  # characters of one of its sections that are kept
OF_NUMBERS = "numbers/"  # the page of numbers, on which readers do search for a number
LISTING = re.compile(r"<pre[^>]*><code>(.*?)</code></pre>", re.DOTALL)
LONG_LISTING = 12  # lines, from which on only its names are kept, each once: they are what one looks for
NAME = re.compile(r"[A-Za-z_][\w.]{2,}")
WITH_INDEX = re.compile(r"(?<![A-Za-z])([A-Za-z])_\{?(?:\\(?:text|mathrm|rm)\s*)?\{?\s*([A-Za-z]{2,})")


def spelled(latex: str) -> list[str]:
    r"""'16\Psi + B_{\text{crit}}' -> ['Psi Ψ', 'B_crit']: what people type to search for these symbols."""
    greek = {f"{name} {GREEK[name]}" for name in COMMAND.findall(latex)}
    return sorted(greek | {f"{letter}_{index}" for letter, index in WITH_INDEX.findall(latex)})


def symbols_by_section(page: str) -> dict[str, str]:
    """Address of each section of a built page -> all its formulas; '' is the part before the first
    heading."""
    section, found = "", {}
    for heading, latex in re.findall(r'<h[23][^>]* id="([^"]+)"|<math alttext="([^"]*)"', page):
        section = heading or section
        found[section] = f"{found.get(section, '')} {unescape(latex)}"
    return found


def plain(html: str) -> str:
    """The words of a piece of HTML, without displayed formulas."""
    html = re.sub(r'<div class="math".*?</div>', " ", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", "", html).split())


def shortened(listing: re.Match) -> str:
    """A listing of code as the search keeps it: whole if it is short, otherwise its names."""
    code = unescape(listing[1])
    if code.count("\n") < LONG_LISTING:
        return listing[0]
    return f"<pre><code>{' '.join(dict.fromkeys(NAME.findall(code)))}</code></pre>"


def widget_entries(places: Callable[[str], list[tuple[str, str]]]) -> list[dict]:
    """Search entries for each widget at its places in the lessons, ``places`` by slug, and on its own
    page."""
    found = []
    for slug, cls in all_widgets().items():
        controls = [control for control in cls.controls().values() if control.label]
        folded = [control.label for control in controls if getattr(control, "more", False)]
        readouts = [method.readout_label for method in cls.methods("readout_label").values()]
        words = (
            f"Figure {slug}, {slug.replace('_', ' ')}. Controls: "
            f"{', '.join(control.label for control in controls)}. Shows: {', '.join(readouts)}."
        )
        entry = {
            "title": escape(cls.question, quote=False),
            "text": f"<p>{escape(words, quote=False)}</p>",
            "tags": [control.label for control in controls if control.label not in folded],
        }
        found += [entry | {"location": address.removeprefix("../")} for address, _ in places(slug)]
        found.append(entry | {"location": f"{slug}/", "boost": OWN_PAGE_BOOST})
    return found


def rule_entries() -> list[dict]:
    """A search entry for each boxed rule in its lesson."""
    return [
        {
            "location": f"{lesson.name}/#{rule.anchor}",
            "title": escape(f"Rule: {rule.name}", quote=False),
            "boost": RULE_BOOST,
            "text": f"<p>{plain(excerpts.html(rule.source, lesson))}</p><p>Symbols: "
            f"{', '.join(spelled(' '.join(FORMULA.findall(rule.source))))}</p>",
        }
        for lesson in excerpts.lessons_with("rule")
        for rule in lesson.boxes("rule")
    ]


def _description(page: str) -> str:
    """What a page says of itself, by its address."""
    return str(lessons.read(f"{page.strip('/') or 'index'}.md").front.get("description", "")).strip()


def enrich(site: Path, places: Callable[[str], list[tuple[str, str]]]) -> None:
    """Add to the index that mkdocs has written; ``places(slug)`` gives the lessons that show a widget."""
    path = site / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    forms = {f"glossary/#{entry.anchor}": list(entry.also) for entry in glossary.entries()}
    symbols = {
        page: symbols_by_section((site / page / "index.html").read_text(encoding="utf-8"))
        for page in {doc["location"].split("#")[0] for doc in index["docs"]}
    }
    for doc in index["docs"]:
        page, _, section = doc["location"].partition("#")
        doc["text"] = LISTING.sub(shortened, doc["text"])
        if page != OF_NUMBERS:
            doc["text"] = RUN.sub(" ", doc["text"])
        if page == OF_ROWS:
            begins = plain(doc["text"])[:BEGINNING].rpartition(" ")[0]
            doc["text"] = f"<p>{escape(begins, quote=False)}</p>"
        if not section and len(plain(doc["text"])) < LEAST_TEXT:  # of a page that begins with its figure
            doc["text"] = f"<p>{escape(_description(page), quote=False)}</p>"
        if found := spelled(symbols[page].get(section, "")):
            doc["text"] += f"<p>Symbols: {', '.join(found)}</p>"
        if tags := [*forms.get(doc["location"], []), *ASKED.get(doc["location"], [])]:
            doc["tags"] = tags
    index["docs"] += rule_entries() + widget_entries(places)
    for doc in index["docs"]:
        page = doc["location"].partition("#")[0]
        own = BOOSTS.get(doc["location"], BEHIND_LESSONS if page in ABOUT_THE_COURSE else 1)
        brevity = BEHIND_SECTIONS if doc["title"] in AT_THE_END else 1 + BREVITY / len(doc["title"].split())
        doc["boost"] = round(own * doc.get("boost", 1) * brevity, 3)
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
