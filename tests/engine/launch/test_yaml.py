"""The YAML reader against PyYAML: wherever ours sees no fault, the values are the same. And each value knows
where it stands, since edits are written back in place."""

import random
import re
import time

import pytest
import yaml as library

from engine.launch import yaml
from engine.launch.texts import LONGEST, Source
from tests.cases import in_one_test


class Texts(library.SafeLoader):
    """PyYAML with every plain text as it is written, and tags passed over."""


def _untagged(loader, suffix, node):
    if isinstance(node, library.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, library.SequenceNode):
        return loader.construct_sequence(node, True)
    return loader.construct_mapping(node, True)


KINDS = [f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")]
Texts.yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("^(?:<<)$"))]}
Texts.yaml_constructors = {kind: Texts.yaml_constructors[kind] for kind in KINDS}
Texts.add_multi_constructor("", _untagged)


def tree(node: yaml.YamlNode):
    if node.kind == yaml.TEXT:
        return node.text
    if node.kind == yaml.LIST:
        return [tree(item) for item in node.items]
    return {key.text: tree(item) for key, item in node.pairs()}


def compared(text: str) -> str:
    """Whether both read the same: "same", "ours says a fault", or "only theirs does"."""
    nodes, faults = yaml.documents(Source("f", text))
    if faults:
        return "fault"
    try:
        theirs = [one for one in library.load_all(text, Loader=Texts) if one not in ("", None)]
    except library.YAMLError:
        return "theirs"
    assert [one for one in map(tree, nodes) if one != ""] == theirs, text
    return "same"


COMPOSE = r"""# a compose file as people write them
x-common: &common
  image: "vllm/vllm-openai:v0.9.2"
  environment: &env
    HF_HOME: /root/.cache
    NAME: 'it''s'   # why
  shm_size: 16g
services:
  one:
    <<: *common
    command: >-
      --model Qwen/Qwen3-8B
      --tensor-parallel-size 2

      --max-model-len 8192
        --more 1
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}
  two:
    <<: [*common, {ports: ["8000:8000", '80']}]
    environment:
      <<: *env
      NAME: other
    command:
    - --model
    - "a \
       b"
    - |
      line 1
        line 2

      line 3
    - plain text
      over lines

      and more
    - "double \"quoted\" \u00e9 \x41 \U0001F600
       and folded

       here"
---
kind: [a, b: c, {d: e,
  f: g}, "h", 'i
  j']
empty:
list:
  - - 1
    - 2
  -
    k: v
    l:
      m
  - &x y: z
    "q r": s
last: &z end
again: *z
...
"""
POD = """apiVersion: v1
kind: Pod
spec:
  containers:
  - name: a
    command: ["bash", "-c"]
    args:
    - |
      set -e
      python3 -m vllm.entrypoints.openai.api_server \\
        --model x
    - >
      folded
      text

        more

      end
    - |2-
        two
       one
    - >+
      kept


    - !!str 12
    env: [{name: A, value: "1"}, {name: B, value: &b two}]
    x: *b
"""
TRAINER = """### model
model_name_or_path: Qwen/Qwen2.5-7B   # the base
deepspeed: examples/deepspeed/ds_z3_config.json
lora_target: all
learning_rate: 1.0e-4
fsdp_config:
    fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer
    url: http://a.b/c?d=e#f
datasets:
- {path: a/b, type: alpaca}
- path: c
  type: chat_template
special_tokens:
"""
PIECES = (
    *("\n", "'", '"', ": ", "- ", "  ", "{", "}", "[", "]", ",", "#", " #", "&a ", "*a", "<<: *a", "!x "),
    *("|", ">", "?", "\n---\n", "...", "\\n", "\\", "\t", "%", "@", "\r\n", "x: y", "\n  ", "\n    ", "''"),
    *("|2\n", "a: |\n  b\n", ">-\n", "|+\n", "=", "null", "é", "\U0001f600"),
)


def mutant(rng: random.Random) -> str:
    text = rng.choice((COMPOSE, POD, TRAINER))
    if rng.random() < 0.5:  # a few lines of it, so that not every spoilt text is a fault somewhere else
        lines = text.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        text = "".join(lines[at : at + rng.randrange(1, 12)])
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        stop, what = min(len(text), at + rng.choice((0, 1, 3, 20))), rng.random()
        middle = rng.choice(PIECES) if what < 0.7 else text[at:stop] * 2 if what < 0.8 else ""
        text = text[:at] + middle + text[at if what < 0.4 else stop :]
    return text


def document(rng: random.Random, depth: int = 0):
    """Random values, nested."""
    kind = rng.random()
    if depth < 4 and kind < 0.35:
        return {word(rng) or "k": document(rng, depth + 1) for _ in range(rng.randrange(4))}
    if depth < 4 and kind < 0.6:
        return [document(rng, depth + 1) for _ in range(rng.randrange(4))]
    return word(rng)


def word(rng: random.Random) -> str:
    pieces = (
        "a",
        "B-2",
        " ",
        ":",
        ": ",
        "#",
        " #",
        "'",
        '"',
        "\n",
        "\n\n",
        "  ",
        "\\",
        "{",
        "]",
        ",",
        "-",
        "é",
    )
    return "".join(rng.choice(pieces) for _ in range(rng.choice((1, 2, 3, 5, 8, 40))))


@pytest.mark.parametrize("seed", range(2))
def test_what_the_library_writes_is_read(seed):
    """In every style that it has: plain, quoted and block texts, in brackets or indented, lines folded."""
    rng = random.Random(seed)
    for _ in range(300):
        text = library.safe_dump(
            [{"top": document(rng)}],
            default_style=rng.choice((None, None, "'", '"', "|", ">")),
            default_flow_style=rng.choice((None, True, False)),
            width=rng.choice((20, 80, 10**6)),
            indent=rng.choice((2, 4)),
            allow_unicode=rng.random() < 0.5,
        )
        assert compared(text) == "same" or '? "' in text or "? '" in text or "? |" in text or "? >" in text, (
            text
        )


def test_spoilt_files_are_read_as_the_library_reads_them():
    rng = random.Random(7)
    found = [compared(mutant(rng)) for _ in range(2000)]
    assert found.count("same") > 600
    assert found.count("theirs") < 40  # tabs, and tags that are none


def test_the_three_files_themselves():
    assert [compared(text) for text in (COMPOSE, POD, TRAINER)] == ["same"] * 3


def test_a_value_knows_its_place_within_its_quotes():
    text = 'a: \'x\'\nb: &n "7"\nc: [1, "2"]\nd: >\n  y\ne: p\n  q\nf: *n\n'
    entries, faults = yaml.read(Source("f", "#\n" + text, 3, 100))
    assert not faults
    places = {e.key: (e.line, e.start, e.stop) for e in entries}
    assert places.pop("d")[1:] == places.pop("e")[1:] == (-1, -1)
    assert {key: ("#\n" + text)[start - 100 : stop - 100] for key, (_, start, stop) in places.items()} == {
        "a": "x",
        "b": "7",
        "c.0": "1",
        "c.1": "2",
        "f": "7",
    }
    assert [line for line, *_ in places.values()] == [4, 5, 6, 6, 5]


def test_merged_keys_come_from_their_anchor_and_own_ones_win():
    entries, _ = yaml.read(Source("f", "a: &a {x: 1, y: 2}\nb:\n  y: 3\n  <<: *a\n"))
    assert {e.key: e.value for e in entries} == {"a.x": "1", "a.y": "2", "b.x": "1", "b.y": "3"}


@in_one_test(
    "text, words",
    [
        ("a: 1\n  b: 2\n", "f:2: not a line of YAML: b: 2"),
        ("a: b: c\nd: 1\n", "f:1: not a line of YAML: a: b: c"),
        ("a: *x\n", "f:1: *x is no anchor that stands before it"),
        ("a: &x [*x]\n", "f:1: *x is no anchor that stands before it"),
        ("a: {b: 1\nc: 2\n", "f:2: a comma or a closing bracket was expected, got ':'"),
        ("a: [1, 2\n", "f:2: a bracket of line 1 is never closed"),
        ('a: "b\nc: 1\n', "f:1: a text in quotes is never closed"),
        ('a: "\\q"\n', "f:1: \\q is no escape of YAML"),
        ("a: {{ .Values.x }}\n", "f:1: a key that is a map or a list is not read here"),
        ("a: @b\n", "f:1: not a line of YAML: a: @b"),
        ("- " * 500, "f:1: nested too deeply"),
        ("<<: 1\n", "f:1: << takes a map, or a list of maps"),
    ],
)
def test_what_is_wrong_is_said_and_the_rest_is_read(text, words):
    assert str(yaml.read(Source("f", text))[1][0]) == words


def test_what_follows_a_line_that_is_no_yaml_is_read():
    entries, faults = yaml.read(Source("f", "a: 1\nno line\nb:\n  - c: [}\n  - d: 2\ne: 3\n"))
    assert [(e.key, e.value) for e in entries] == [("a", "1"), ("b.1.d", "2"), ("e", "3")]
    assert [fault.line for fault in faults] == [2, 4]


HOSTILE = {
    "aliases": "a0: &a0 {k: v}\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(90)),
    "merges": "b: &a\n" + "".join(f"  k{n}: v\n" for n in range(8000)) + "l:\n" + "- <<: *a\n" * 9000,
    "long keys": "".join(" " * n + "k" * 1000 + ":\n" for n in range(95)) + (" " * 99 + "k: v\n") * 900,
    "anchors": "".join(f"- &a{n} b\n" for n in range(15_000)),
    "blank lines": "a: b\n" + "\n" * LONGEST,
    "block texts": "a: |\n" * 40_000,
    "quotes": '"' * LONGEST,
    "brackets": "x: {\n" * 40_000,
    "dashes": "- " * LONGEST,
    "no lines": "@\n" * LONGEST,
    "keys": "a:\n" * 60_000,
    "items": "[" + "a," * LONGEST,
    "backslashes": 'a: "' + "\\" * LONGEST,
    "colons": ": " * LONGEST,
    "folds": "a: >\n" + "  x\n\n" * 40_000,
    "steps": "\n".join(" " * (600 - n) + "a: b" for n in range(600)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end(name):
    began = time.process_time()
    yaml.read(Source("f", HOSTILE[name][:LONGEST]))
    assert time.process_time() - began < 2.0
