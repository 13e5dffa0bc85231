"""The page of symptoms: its rows are complete, its links lead somewhere, and 178 real questions find the
right row."""

import re
from collections import Counter

import pytest
import yaml
from markupsafe import Markup

from course import places
from course.fences import path, symptoms
from course.lessons import LessonFault
from tests.conftest import ROOT

QUESTIONS = yaml.safe_load((ROOT / "tests/course/symptoms_questions.yml").read_text(encoding="utf-8"))
HELD = [each for each in QUESTIONS if each.get("held")]
RANK = """async ([rows, alike, asked]) => {
  const { index, rank } = await import("/assets/js/ranking.js");
  const known = index(rows, alike);
  return asked.map(text => rank(text, known).map(({ at }) => at));
}"""
TELLING = """async texts => {
  const { stem, IDLE } = await import("/assets/js/ranking.js");
  const tells = word => word.length > 2 && !IDLE.has(stem(word));
  return texts.map(text => text.toLowerCase().match(/[a-z]+/g).filter(tells));
}"""
FIRST = 3  # the right row must be among so many first ones
TRACEBACK = """Traceback (most recent call last):
  File "/data/run/train.py", line 303, in <module>
    main()
  File "/data/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1751, in _wrapped_call
    return self._call_impl(*args, **kwargs)
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7fff3fe361b6 in libc10.so)
frame #1: <unknown function> + 0x374e1 (0x7f78cec984e1 in /usr/lib/libtorch_cuda.so)
2026-11-22 10:11:12,345 INFO step=1200 lr=3e-4
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of
79.11 GiB of which 1.06 GiB is free. Of the allocated memory 61.5 GiB is allocated by PyTorch and 14.9 GiB is
reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.
"""


@pytest.fixture(scope="module")
def find(script):
    """Texts -> the keys of the rows that the page's own script finds for each, the likeliest first."""
    known = symptoms.known()
    rows = [
        {name: Markup(row.shown(name)).striptags() for name in symptoms.TEXTS}
        | {"words": row.words, "lines": list(row.lines)}
        for row in known.rows
    ]
    alike = [list(ways) for ways in known.alike]

    def found(texts: list[str]) -> list[list[str]]:
        return [[known.rows[at].key for at in each] for each in script.evaluate(RANK, [rows, alike, texts])]

    return found


# -- the questions -------------------------------------------------------------------------------------------
def test_the_questions_are_real():
    """Each names its thread, and is short; a thread is asked once."""
    assert len(QUESTIONS) == 178 and len(HELD) == 10
    threads = [each["thread"] for each in QUESTIONS]
    assert len(set(threads)) == len(QUESTIONS)
    for each in QUESTIONS:
        assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", each["thread"])
        assert len(each["asks"]) < 700 and each["row"] in symptoms.anchors()
    assert len({each["row"] for each in QUESTIONS}) > 20


def test_the_right_row_is_among_the_first(find):
    found = find([each["asks"] for each in QUESTIONS])
    missed = [
        (each["row"], rows[:FIRST], each["asks"][:60])
        for each, rows in zip(QUESTIONS, found, strict=True)
        if each["row"] not in rows[:FIRST]
    ]
    assert len(missed) <= 4, missed


def test_held_questions_are_in_words_that_no_row_contains(script):
    """No word of them is in a row, but for those that the search passes over because they tell nothing."""
    rows = [" ".join([row.see, row.means, row.tell, row.words, *row.lines]) for row in symptoms.known().rows]
    told = {word for words in script.evaluate(TELLING, rows) for word in words}
    for each, words in zip(HELD, script.evaluate(TELLING, [each["asks"] for each in HELD]), strict=True):
        assert not told & {*words}, (each["asks"], told & {*words})
        assert len({*words}) >= 3, each["asks"]


ASKED = {
    "30 % slower since I moved from 8 to 16 GPUs": "from-one-node-to-two",
    "my step is 30 % slower since I moved from 8 to 16 GPUs": "from-one-node-to-two",
    "OOM after 2000 steps": "oom-leak",
    "loss became NaN": "loss-nan",
    "nan": "loss-nan",
    "dataloader": "data-loader",
    "data loading": "data-loader",
    "stall": "hang-collective",
    "hanging": "hang-collective",
    "why is my job stuck?": "hang-collective",
    "nccl timeout": "hang-collective",
    "diverge": "loss-spikes",
    "illegal address": "illegal-address",
    "ttft": "first-token-late",
    "low mfu": "mfu-low",
    "oom": "oom-first-step",
    "fragmentation oom": "oom-fragmented",
    "OOM fragmentation": "oom-fragmented",
    "memory leak": "oom-leak",
    "recompiling": "compiling-for-minutes",
    "straggler": "straggler",
    "GPU usage drops to 0% periodically": "data-loader",
    "nvidia-smi shows 20% utilization": "data-loader",
    "NCCL error unhandled system error": "nccl-error",
    "64 GPUs has the same throughput as 32": "more-gpus-same-batch",
    "first request takes 10 seconds when many users send long prompts": "first-token-late",
    TRACEBACK: "oom-fragmented",
    "slow on two nodes": "from-one-node-to-two",
    "hang": "hang-collective",
    "job hangs in nccl allreduce": "hang-collective",
    "OOM when loading 13B for inference": "inference-does-not-fit",
    "bandwith": "busbw-low",
    "low bandwith between nodes": "busbw-low",
    "slow": "straggler",
    "slow triton matmul": "triton-slow",
    "attention uses N^2 memory": "attention-quadratic",
    "DDP slower than one GPU": "ddp-slower-than-one",
    "compiled model gives different numbers": "compiled-differs",
}
# a question, and the same with what somebody would add who tells more
LONGER = {
    "torch.compile slower than eager": "torch.compile slower than eager cross_entropy",
    "torch.compile slower than eager ": "compiled model slower than eager on cross_entropy, big vocabulary",
    "nccl timeout": "nccl timeout after 1800000 ms in the backward pass of my llama fine-tuning",
    "loss became nan": "loss became nan after 600 steps in fp16 with a learning rate of 3e-4",
    "OOM after 2000 steps": "OOM after 2000 steps when I log the loss in the validation loop on 8 A100",
    "slow triton matmul": "slow triton matmul, four times slower than torch with M=16 in bf16",
    "DDP slower than one GPU": "DDP slower than one GPU with two RTX 4090 on PCIe, resnet50, batch 32",
    "all_reduce busbw low": "all_reduce busbw low, 12 GB/s between two nodes with ConnectX-6 over RoCE",
    "first token late": "first token late when forty users send prompts of 8k to an H100 with vLLM",
}


def test_a_word_or_two_find_what_they_mean(find):
    for (text, row), rows in zip(ASKED.items(), find(list(ASKED)), strict=True):
        assert row in rows[:FIRST], (text, rows)


def test_a_longer_question_finds_what_the_shorter_one_did(find):
    """The first row of the shorter one is among the first of the longer one, which tells more of the same."""
    short, long = find([*LONGER]), find([*LONGER.values()])
    lost = [
        (text, few[0], more) for text, few, more in zip(LONGER, short, long) if few[0] not in more[:FIRST]
    ]
    assert lost == []


def test_a_rare_word_does_not_outweigh_all_others(find):
    """The name of a function that one row has among its log lines left that row alone."""
    [found] = find(["torch.compile slower than eager cross_entropy"])
    assert found[0] == "compiled-not-faster" and "oom-one-layer" not in found[:FIRST]


@pytest.mark.parametrize(
    ("text", "about"), {"dataloader": "data-loader", "OOM after 2000 steps": "oom-", "nan": "loss-"}.items()
)
def test_no_row_is_shown_that_is_about_something_else(find, text, about):
    assert [row for row in find([text])[0] if not row.startswith(about)] == []


@pytest.mark.parametrize(
    "text", ["", " ", "xyzzy", "the the the", "0x7fff3fe361b6", "12345", "/usr/lib/a/b.py", "?!"]
)
def test_what_says_nothing_finds_nothing(find, text):
    assert find([text]) == [[]]


def test_every_row_is_found_by_what_it_says_of_itself(find):
    rows = symptoms.known().rows
    by_sight = find([Markup(row.shown("see")).striptags() for row in rows])
    assert [row.key for row, found in zip(rows, by_sight) if row.key not in found[:FIRST]] == []
    lines = [(row.key, line) for row in rows for line in row.lines if len(line.split()) > 2]
    found = find([line for _, line in lines])
    missed = [pair for pair, each in zip(lines, found) if pair[0] not in each[:FIRST]]
    assert len(missed) <= len(lines) / 20, missed


def test_a_long_paste_is_ranked_at_once(find, script):
    """As long as the field keeps, letters, digits and nonsense; no pattern may try every way to part it."""
    used = "() => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; }"
    began_s = script.evaluate(used, None)
    n = symptoms.LONGEST
    found = find(
        [("a" * n), ("1" * n), ("/a" * (n // 2)), ("Ab" * (n // 2)), (TRACEBACK * 99)[-n:], "a_" * (n // 2)]
    )
    assert script.evaluate(used, None) - began_s < 20  # processor time, so that other programs do not count
    assert found[4][0] == "oom-fragmented"


# -- the rows ------------------------------------------------------------------------------------------------
def test_rows_are_whole_and_readable():
    """Written for the page: a sentence or two each, with a check to run or a number to look at."""
    known = symptoms.known()
    assert len(known.rows) >= 75
    for row in known.rows:
        assert 20 < len(row.see) < 140 and 40 < len(row.means) < 330 and 40 < len(row.tell) < 330, row.key
        assert row.means.endswith(".") and row.tell.endswith((".", "`")), row.key
        assert not re.search(r"\bas above\b|in the figure|the same, and", row.means + row.tell), row.key
    for group in known.groups:
        assert sum(row.group == group.key for row in known.rows) >= 4


def test_each_lesson_is_led_to_by_three_rows():
    """A second page of a lesson, 10b, counts with its first."""
    led = Counter(row.lesson[:2] for row in symptoms.known().rows)
    assert {number: led[number] for number in map("{:02}".format, range(1, 20)) if led[number] < 3} == {}


def test_each_row_ends_at_a_section_that_is_there():
    for row in symptoms.known().rows:
        page, _, place = row.lesson.partition("#")
        assert place in places.anchors(page) and row.section


def test_ways_of_saying_a_thing_lead_to_rows(find):
    """A line of `alike` that no row speaks of leads nowhere."""
    lines = symptoms.known().alike
    ways = [
        way.replace("<n>", "8")
        for line in lines
        for way in line[:1]
        if way not in ("afterwards", "morenodes")
    ]
    assert [way for way, rows in zip(ways, find(ways)) if not rows and " " in way] == []


def test_old_addresses_still_lead_to_the_page():
    for place in (
        "out-of-memory",
        "it-stops-or-never-starts",
        "wrong-or-worse-than-it-should-be",
        "answers-come-late",
        "too-slow",
    ):
        assert place in path.anchors("symptoms.md")
        assert f'id="{place}"' in symptoms.render("")


def test_addresses_are_unique():
    page = symptoms.render("")
    found = re.findall(r' id="([^"]+)"', page)
    assert len(set(found)) == len(found)


GOOD = """groups:
  error:
    title: An error
    about: It says why.
rows:
  one:
    group: error
    see: This is seen
    means: It is this.
    tell: Look there.
    lesson: 01-why-distributed.md#the-memory-wall
    words: a, b
alike:
  - oom | out of memory
"""


def test_a_good_file_is_read():
    read = symptoms.read(GOOD)
    assert read.rows[0].section.endswith("The memory wall") and read.rows[0].lines == ()
    assert read.alike == (("oom", "out of memory"),)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("group: error", "group: curve", 7, "there is no group 'curve'; there are error"),
        (
            "#the-memory-wall",
            "#the-paper-wall",
            11,
            "01-why-distributed.md has no place 'the-paper-wall'; it has",
        ),
        ("01-why-distributed.md", "01-why.md", 11, "there is no page '01-why.md'"),
        ("    tell: Look there.\\n", "", 6, "one needs a line 'tell: …'"),
        ("    words: a, b", "    wrods: a, b", 12, "unknown key 'wrods'; allowed are group, see"),
        ("    words: a, b", "    words: a, b\\n    words: c", 13, "the key 'words' stands twice"),
        ("    words: a, b", "    words: a, b\\n    lines: x", 13, "lines must be a list of texts"),
        ("    words: a, b", "    words: [a, b]", 12, "words must be a text"),
        ("    title: An error\\n", "", 2, "error needs a line 'title: …'"),
        ("alike:", "like:", 13, "unknown key 'like'"),
    ],
)
def test_a_wrong_row_stops_the_build_with_its_line(monkeypatch, tmp_path, old, new, line, words):
    assert old.replace("\\n", "\n") in GOOD
    file = tmp_path / "symptoms.yml"
    file.write_text(GOOD.replace(old.replace("\\n", "\n"), new.replace("\\n", "\n")), encoding="utf-8")
    monkeypatch.setattr(symptoms, "FILE", file)
    symptoms.known.cache_clear()
    try:
        with pytest.raises(LessonFault, match=rf"^course/symptoms\.yml:{line}: {re.escape(words)}"):
            symptoms.known()
    finally:
        symptoms.known.cache_clear()
