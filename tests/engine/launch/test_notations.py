"""TOML, JSON and YAML are read to the same keys and values as by the usual libraries, with the right place of
each value."""

import json as python_json
import tomllib

import yaml as library
from hypothesis import given
from hypothesis import strategies as st

from engine.launch import json, toml, yaml
from engine.launch.texts import Source
from tests.cases import in_one_test

KEY = st.text("abcdefgh_", min_size=1, max_size=6)
LEAF = st.one_of(st.integers(-999, 10**6), st.booleans(), st.text("abc xyz-/.", max_size=8).map(str.strip))
TREE = st.dictionaries(
    KEY, st.one_of(LEAF, st.dictionaries(KEY, LEAF, min_size=1, max_size=3)), min_size=1, max_size=4
)


def flat(tree, path="") -> dict[str, str]:
    """Nested values in the flat form that our readers return."""
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    else:
        text = python_json.dumps(tree) if isinstance(tree, bool) or tree is None else str(tree)
        return {path: text}
    found = {}
    for key, value in items:
        found |= flat(value, f"{path}.{key}" if path else str(key))
    return found


def read(reader, text: str) -> dict[str, str]:
    entries, faults = reader.read(Source("f", text))
    assert not faults, [str(fault) for fault in faults]
    for entry in entries:
        if entry.start >= 0:
            assert text[entry.start : entry.stop].strip("\"'") == entry.value.strip("\"'")
            assert text.count("\n", 0, entry.start) + 1 == entry.line
    return {entry.key: entry.value for entry in entries}


@given(TREE, st.sampled_from([None, 1, 4]))
def test_json(tree, indent):
    assert read(json, python_json.dumps(tree, indent=indent)) == flat(tree)


@given(TREE)
def test_toml(tree):
    tops = [
        f"{key} = {python_json.dumps(value)}" for key, value in tree.items() if not isinstance(value, dict)
    ]
    for key, value in tree.items():
        if isinstance(value, dict):
            tops += [f"\n[{key}]  # a section"] + [
                f"{k} = {python_json.dumps(v)} # why" for k, v in value.items()
            ]
    text = "\n".join(tops) + "\n"
    assert read(toml, text) == flat(tomllib.loads(text))


@given(TREE)
def test_yaml(tree):
    text = library.safe_dump(tree, default_flow_style=False, sort_keys=False)
    whole = flat(library.safe_load(text))
    assert {k: v.strip("'") for k, v in read(yaml, text).items()} == {
        k: v.strip("'") for k, v in whole.items()
    }


def test_of_a_line_of_yaml_the_value_is_edited_and_not_its_comment():
    """A comment often says the number again."""
    text = "batch: 2  # 2 fit, 4 do not\nkinds:\n  - 'a b' # or 'a b'\n"
    entries, faults = yaml.read(Source("f", text))
    assert not faults
    assert [one.value for one in entries] == ["2", "a b"]
    assert [(text[: one.start], text[one.start : one.stop]) for one in entries] == [
        ("batch: ", "2"),
        (text[: text.index("a b")], "a b"),  # the quotes stay
    ]


def test_lists_and_one_line_maps():
    text = "a:\n- x\n- y\nb:\n  - k: 1\n    l: 2\n  - k: 3\nc: {d: 4, e: [5, 6]}\nf: [7, 8]\n"
    assert read(yaml, text) == {
        "a.0": "x",
        "a.1": "y",
        "b.0.k": "1",
        "b.0.l": "2",
        "b.1.k": "3",
        "c.d": "4",
        "c.e.0": "5",
        "c.e.1": "6",
        "f.0": "7",
        "f.1": "8",
    }
    assert read(toml, 'a = [\n  "x", # one\n  "y"\n]\nb = 1\n')["b"] == "1"
    assert read(json, '{"a": [1, {"b": [true, null]}], "c": {}} // end\n') == {
        "a.0": "1",
        "a.1.b.0": "true",
        "a.1.b.1": "null",
    }


@in_one_test(
    "reader, text, words",
    [
        (json, '{"a": 1,}', "f:1: not JSON: a comma before the closing bracket, column 9"),
        (
            json,
            '{"a": 1\n "b": 2}',
            "f:2: not JSON: a comma or a closing bracket was expected, got '\"', column 2",
        ),
        (json, '{"a": tru}', "f:1: not JSON: a value was expected, got 'tru}', column 10"),
        (json, '{"a": "x', "f:1: not JSON: a text is never closed, column 9"),
        (json, "[" * 500, "f:1: not JSON: nested too deeply, column 201"),
        (json, "{", "f:1: not JSON: a name in double quotes was expected, column 2"),
        (toml, "[a]\nb\n", "f:2: not a line of TOML: b"),
        (yaml, "a: 1\njust words\n", "f:2: not a line of YAML: just words"),
        (yaml, "a: @x\n", "f:1: not a line of YAML: a: @x"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(reader, text, words):
    assert [str(fault) for fault in reader.read(Source("f", text))[1]] == [words]
