"""The search index has each widget, rule, symbol and form of a word, and leads only to places that exist."""

import gzip
import json
import re
import subprocess
from pathlib import Path

import material
import pytest

from course import excerpts, search_index
from course.agent import passages
from course.links import glossary
from tests import machine
from widgets.kit.widget import all_widgets

LIMIT_GZIP_BYTES = 345_000  # the index of all pages, fetched once when a reader clicks into the search field


@pytest.fixture(scope="module")
def entries(site) -> dict[str, dict]:
    return {
        entry["location"]: entry
        for entry in json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    }


def test_every_entry_leads_to_a_place_that_exists(site, entries):
    pages = {}
    for location in entries:
        page, _, anchor = location.partition("#")
        if page not in pages:
            pages[page] = set(re.findall(r'\bid="([^"]+)"', (site / page / "index.html").read_text("utf-8")))
        assert not anchor or anchor in pages[page], location


def test_each_widget_is_there_with_its_slug_and_controls_in_its_lesson_and_alone(entries):
    for slug, cls in all_widgets().items():
        own = [
            entry
            for location, entry in entries.items()
            if location == f"{slug}/" or location.endswith(f"#w-{slug}")
        ]
        assert len(own) > 1, slug
        for entry in own:
            assert slug in entry["text"] and all(
                control.label in entry["text"].replace("&lt;", "<").replace("&amp;", "&")
                for control in cls.controls().values()
            )


def test_places_that_have_words_of_their_own_are_there(entries):
    assert not search_index.ASKED.keys() - entries.keys()


def test_a_section_does_not_repeat_its_figures(entries):
    assert "alonelink" not in "".join(entry["text"].replace(" ", "") for entry in entries.values())


def test_rules_forms_and_symbols_are_there(entries):
    rules = [
        f"{lesson.name}/#{rule.anchor}"
        for lesson in excerpts.lessons_with("rule")
        for rule in lesson.boxes("rule")
    ]
    assert len(rules) > 60 and all(entries[rule]["title"].startswith("Rule: ") for rule in rules)
    assert all(
        set(entry.also) <= set(entries[f"glossary/#{entry.anchor}"].get("tags", []))
        for entry in glossary.entries()
    )
    assert "alpha α" in entries["02-collectives/#rule-alpha-and-beta"]["text"]
    assert "Psi Ψ" in entries["05-fsdp-and-zero/#three-cuts"]["text"]
    assert "B_crit" in entries["04-data-parallel/#the-critical-batch"]["text"]


def test_the_words_of_a_table_s_cells_are_apart(entries):
    assert re.search(r"\bH100 SXM\b", entries["numbers/#accelerators"]["text"])


def test_numbers_in_a_row_are_left_out_but_where_one_looks_for_them(entries):
    """The rows of a table: its words are kept."""
    assert re.search(r"H100 SXM 2022 80 85.5 3.35 989", entries["numbers/#accelerators"]["text"])
    waves = entries["17-triton/#waves-and-tails"]["text"]
    assert "Tiles on 132" in waves and not re.search(r"\d (?:\d[\d.,]* ){3}", waves)


def test_of_a_long_listing_each_name_is_kept_once():
    lines = "".join(f"    total = add(total, part_{i % 3}, 1)\n" for i in range(20))
    kept = search_index.LISTING.sub(search_index.shortened, f"<pre><code>{lines}</code></pre>")
    assert kept == "<pre><code>total add part_0 part_1 part_2</code></pre>"
    short = "<pre><code>x = add(x, 1)\n</code></pre>"
    assert search_index.LISTING.sub(search_index.shortened, short) == short


def test_the_index_is_small(site):
    assert len(gzip.compress((site / "search" / "search_index.json").read_bytes())) < LIMIT_GZIP_BYTES


def test_no_answer_to_an_exercise_is_found(site, entries):
    """Of the solutions' own numbers none is in the index, where the text does not have it as well."""
    page = (site / "01-why-distributed" / "index.html").read_text(encoding="utf-8")
    assert page.count('class="solution"') == page.count('class="solution" data-search-exclude') > 4
    exercises = entries["01-why-distributed/#exercises"]["text"]
    assert "Solution" not in exercises and len(exercises) > 500


# -- what people type ----------------------------------------------------------------------------------------
TYPED = {  # a question -> places; the best of one of the first two pages has to be one
    "LoRA": "glossary/#lora 05-fsdp-and-zero/#freeze-what-you-can-lora-and-qlora",
    "QLoRA": "05-fsdp-and-zero/#freeze-what-you-can-lora-and-qlora glossary/#lora",
    "fine-tuning": "05-fsdp-and-zero/#freeze-what-you-can-lora-and-qlora",
    "finetuning": "05-fsdp-and-zero/#freeze-what-you-can-lora-and-qlora",
    "FSDP2": "glossary/#fsdp 05-fsdp-and-zero/#in-pytorch",
    "fully_shard": "glossary/#fsdp 05-fsdp-and-zero/#in-pytorch",
    "ZeRO-3": "05-fsdp-and-zero/ glossary/#zero glossary/#fsdp",
    "how many GPUs for 70B": "planner/ fit/",
    "will it fit": "fit/",
    "VRAM calculator": "fit/",
    "OOM": "symptoms/",
    "out of memory": "symptoms/",
    "CUDA OOM": "symptoms/ 15-caching-allocator/",
    "bandwith": "03-interconnect/ 02-collectives/",
    "bandwidth": "03-interconnect/ 02-collectives/",
    "all-reduce": "glossary/#allreduce",
    "AllReduce": "glossary/#allreduce",
    "all-reduce bandwith": "03-interconnect/ 02-collectives/",
    "reduce-scatter": "glossary/#reducescatter",
    "quantization int4": "11-inference/#fewer-bits",
    "KV cache size": "glossary/#kv-cache",
    "kvcache": "glossary/#kv-cache",
    "vLLM": "deploy/ 11-inference/ validation/#launch-files",
    "speculative decoding": "11-inference/ glossary/#speculative-decoding",
    "MoE": "09-expert-parallel/ glossary/#expert",
    "mixture of experts": "09-expert-parallel/ glossary/#expert",
    "tensor parallel": "06-tensor-parallel/ glossary/#tensor-parallelism",
    "sequence parallel": "08-sequence-and-context/ glossary/#sequence-parallelism",
    "NCCL timeout": "symptoms/#hang-collective",
    "job hangs": "symptoms/#hang-collective symptoms/#a-machine-that-hangs",
    "gradient accumulation": "glossary/#accumulation",
    "activation checkpointing": "glossary/#activation-checkpointing",
    "recompute": "08-sequence-and-context/#what-recompute-adds glossary/#selective-recomputation",
    "ring attention": "glossary/#ring-attention 08-sequence-and-context/",
    "pipeline bubble": "glossary/#bubble 07-pipeline-parallel/",
    "1F1B": "glossary/#1f1b",
    "NVLink": "glossary/#nvlink",
    "MFU": "glossary/#mfu",
    "checkpoint interval": "10b-the-long-run/",
    "fp8 training": "14-mixed-precision/#eight-bits",
    "CUDA graphs": "19-cuda-graphs/ glossary/#cuda-graph",
    "continuous batching": "glossary/#continuous-batching 11-inference/#keeping-the-batch-full",
    "DeepSeek-V3 layout": "planner/",
    "H100 vs H200": "numbers/#accelerators",
    "cost of training 70B": "10b-the-long-run/#the-price-first 01-why-distributed/",
    "SCORM": "teach/#in-a-learning-system",
}
# runs Material's own search with our table, without a browser
ASKED_OF_MATERIAL = """
const fs = require("fs"), vm = require("vm");
const { worker, index, spoken, typed } = JSON.parse(fs.readFileSync(0));
let heard, told = [];
const page = {
  console, setTimeout, URL, location: { href: "http://x/" }, importScripts() {},
  postMessage: each => told.push(each),
  addEventListener: (kind, act) => { if (kind === "message") heard = act; },
};
page.self = page;
vm.createContext(page);
vm.runInContext(fs.readFileSync(worker, "utf8"), page);
const said = vm.runInNewContext(`${fs.readFileSync(spoken, "utf8")}; said`);
(async () => {
  const built = JSON.parse(fs.readFileSync(index));
  await heard({ data: { type: 0, data: { ...built, options: { suggest: false } } } });
  const found = {};
  for (const each of typed) {
    told = [];
    await heard({ data: { type: 2, data: said(each) } });
    const pages = told.find(({ type }) => type === 3).data.items;
    found[each] = pages.slice(0, 3).map(places => places.map(({ location }) => location));
  }
  console.log(JSON.stringify(found));
})();
"""


@pytest.fixture(scope="module")
def found(site) -> dict[str, list[list[str]]]:
    """Question -> of each of the first three pages, the places in it, the best first."""
    workers = Path(material.__file__).parent / "templates" / "assets" / "javascripts" / "workers"
    [worker] = workers.glob("search.*.min.js")
    given = {
        "worker": str(worker),
        "index": str(site / "search" / "search_index.json"),
        "spoken": str(site / "assets" / "js" / "spoken.js"),
        "typed": [*TYPED, "roofine", "roofine~1"],
    }
    ran = subprocess.run(
        [machine.node(), "-e", ASKED_OF_MATERIAL],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def test_forty_questions_find_their_place(found):
    """In Material's own search; a wanted place without an anchor stands for any on its page."""
    assert len(TYPED) >= 40
    missed = {}
    for typed, wanted in TYPED.items():
        best = [places[0] for places in found[typed][:2]]
        if not any(
            place == want or ("#" not in want and place.startswith(want))
            for place in best
            for want in wanted.split()
        ):
            missed[typed] = best
    assert missed == {}


def test_how_many_gpus_finds_the_two_tools_first(found):
    assert [places[0] for places in found["how many GPUs for 70B"][:2]] == ["planner/", "fit/"]
    assert found["OOM"] == found["out of memory"] and found["all-reduce"] == found["AllReduce"]
    assert found["bandwith"] == found["bandwidth"]


def test_a_word_with_a_wrong_letter_is_found_by_the_second_try(found):
    """The second try is what search.js makes of the first."""
    assert found["roofine"] == [] and found["roofine~1"][0][0] == "glossary/#roofline"


def test_the_search_of_assistants_finds_the_same(site, found):
    """By its own ranking: of the first five passages one is on a wanted page."""
    missed = {}
    for typed, wanted in TYPED.items():
        best = [each.address for each in passages.search(typed)]
        if not {place.partition("#")[0] for place in best} & {
            want.partition("#")[0] for want in wanted.split()
        }:
            missed[typed] = best
    assert missed == {}


def test_each_place_that_has_words_of_its_own_exists(entries):
    assert set(search_index.ASKED) <= set(entries)
    assert all(set(words) <= set(entries[place]["tags"]) for place, words in search_index.ASKED.items())
