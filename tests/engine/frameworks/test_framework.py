"""A framework is one module of its room: nothing in the rooms that use it knows one by name, and one more
file is one more framework."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

import engine
from engine import catalog, frameworks
from engine.frameworks import registry, settings
from engine.frameworks.framework import Framework
from engine.frameworks.settings import Field
from engine.launch import changes, planned, reading, shown
from engine.launch.verdict import judged
from engine.step.constraints import Constraints
from engine.step.layout import Job, Layout, machine
from tests.cases import in_one_test

ROOT = Path(engine.__file__).parent
ROOMS = [path for room in ("launch", "step") for path in sorted((ROOT / room).rglob("*.py"))]
TEXT = "toy:\n  what: llama3.1-8b\n  degree: 2\n  rows: 4\n  magicc: 1\n"


@pytest.fixture
def toy(monkeypatch):
    """A file more in the room, for one test."""
    monkeypatch.setattr(frameworks, "__path__", [*frameworks.__path__, str(Path(__file__).parent / "more")])
    for known in (registry.frameworks, registry.abilities):
        known.cache_clear()
    yield registry.frameworks()["toy"]
    for known in (registry.frameworks, registry.abilities):
        known.cache_clear()


def names() -> set[str]:
    """What the frameworks are called, as words of a program."""
    every = registry.frameworks().values()
    said = {
        word for each in every for word in (each.key, each.name, each.can.name if each.can else "") if word
    }
    words = {word.lower() for one in said for word in re.findall(r"[A-Za-z_0-9]{4,}", one)}
    return words - {"alone", "core", "pytorch", "zero", "face", "llama", "factory"}  # one is a model


def code(path: Path) -> str:
    """A module without its docstrings and comments."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            body[0] = ast.Pass()
    return ast.unparse(tree).lower()


@in_one_test("path", ROOMS, ids=[path.stem for path in ROOMS])
def test_launch_and_step_know_no_framework_by_name(path):
    found = {name for name in names() if re.search(rf"(?<![a-z]){name}(?![a-z])", code(path))}
    assert not found, f"{path.name} knows {found}"


def test_a_name_would_be_seen():
    assert {"megatron", "torchtitan", "deepspeed", "vllm", "sglang", "trtllm", "hugging_face"} <= names()


@in_one_test("key", list(registry.frameworks()))
def test_a_framework_says_all_that_is_asked(key):
    """As the Protocol has it, and each key once."""
    framework = registry.frameworks()[key]
    assert Framework in type(framework).__mro__ and framework.place < Framework.place
    kinds = (settings.WHOLE, settings.NUMBER, settings.FLAG, settings.TEXT, settings.ANY_TEXT)
    for field in framework.fields.values():
        assert isinstance(field, Field) and field.kind in kinds and re.fullmatch("[a-z_0-9 ]+", field.name)
        assert field.name not in kinds
    assert not set(framework.fields) & set(framework.unmodelled)
    assert framework.__class__.__doc__ and framework.name


WRITTEN_ONCE = [path for path in sorted((ROOT / "frameworks").rglob("*.py")) if path.name != "framework.py"]


@in_one_test("path", WRITTEN_ONCE, ids=[path.stem for path in WRITTEN_ONCE])
def test_a_key_stands_in_one_place(path):
    """In the table of its framework, by which it is read and written: no text of the module has it again."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    said = [text for text in texts if isinstance(text, str)]
    keys = {key for each in registry.frameworks().values() for key in each.fields if re.search("[-.]", key)}
    assert not [key for key in keys if said.count(key) > 1]


@in_one_test(
    "key, alone, piped, copied",
    [
        ("megatron", {0, 1}, {0, 1}, {1}),  # a distributed optimizer, or none; its instances
        ("torchtitan", {2, 3}, {3}, {2, 3}),  # FSDP2, which a pipeline would have gather once a micro-batch
        ("deepspeed", {0, 1, 2, 3}, set(), set()),  # its file sets a stage, and nothing beside it
        ("fsdp2", {2, 3}, set(), {2, 3}),  # reshard_after_forward, and meshes of two dimensions
    ],
)
def test_the_zero_stages_of_each_alone_under_a_pipeline_and_in_copies(key, alone, piped, copied):
    able, model = Constraints(frameworks.able(key)), catalog.model("llama3.1-8b")

    def stages(one: Layout) -> set[int]:
        return {zero for zero in range(4) if able.allows(model, replace(one, zero=zero))}

    assert stages(Layout(64)) == alone
    assert stages(Layout(64, pp=2)) == piped
    assert stages(Layout(64, shard=8)) - {0} == copied


def test_what_a_framework_s_own_launcher_and_buffers_do_to_memory():
    """torchtitan's run_train.sh makes segments expandable, as PyTorch does not by itself; Megatron-LM keeps
    its gradients in buffers; a trainer's batch is as long as its longest sequence."""
    of = registry.frameworks().values()
    assert {one.key for one in of if one.expands} == {"torchtitan"}
    buffered = {one.key for one in of if one.keeps_gradients}
    assert buffered == {"megatron", "bridge", "megatron_swift"}
    trainers = {"hugging_face", "trl", "unsloth", "llama_factory", "ms_swift"}  # transformers' Trainer
    assert {one.key for one in of if one.pads} == trainers


@in_one_test("key, splits", [("megatron", True), ("torchtitan", False)])
def test_whose_copies_of_the_state_split_a_context(key, splits):
    """Megatron-LM's instances of its optimizer divide the ranks of data and contexts taken together;
    torchtitan replicates over an axis of its own, inside of which whole contexts lie."""
    zero = 1 if key == "megatron" else 3
    one = Layout(64, cp=4, zero=zero, shard=8)  # eight ranks have two whole contexts of four …
    able = Constraints(frameworks.able(key))
    assert able.allows(catalog.model("llama3.1-8b"), one)
    assert able.allows(catalog.model("llama3.1-8b"), replace(one, shard=2)) == splits  # … two have a half


def test_a_toy_is_found_and_read(toy):
    found = reading.read({"toy.yaml": TEXT}, 16)
    launch = found.launch
    assert launch.framework == "toy" and (launch.layout.tp, launch.layout.micro_batch) == (2, 4)
    assert not launch.ignored and "toy.magicc is not known, did you mean toy.magic?" in str(launch.faults[0])
    script = reading.read("toytrain --toy.what llama3.1-8b --toy.degree 4 --toy.magic 1", 16).launch
    assert script.layout.tp == 4 and script.unmodelled[0].why == "magic is not modelled"


def test_a_toy_is_checked_and_edited(toy):
    report = engine.check_launch({"toy.yaml": TEXT}, "h100-sxm", 16)
    assert shown.headline(report).startswith("Toy, Llama 3.1 8B on 16 × H100")
    fewer = engine.check_launch({"toy.yaml": TEXT.replace("degree: 2", "degree: 3")}, "h100-sxm", 18)
    assert fewer.verdict == "will not start" and fewer.refused[0].error == "ToyError: 3 ranks cut a head"
    edits = list(changes.neighbours(reading.read({"toy.yaml": TEXT + "  again: none\n"}, 16), 16))
    [full] = [edit for edit in edits if edit.what == (("recompute", "full"),)]
    assert full.texts["toy.yaml"].endswith("again: full\n") and full.launch.layout.recompute == "full"
    assert judged(full.launch, "h100-sxm").total_bytes < report.total_bytes


def test_a_toy_is_searched_and_written(toy):
    """The planner's best for it is written in its own words, and comes back."""
    launch = reading.read({"toy.yaml": TEXT}, 16).launch
    best = planned.best(launch, machine(catalog.gpu("h200")))
    assert best.layout.zero == 0 and best.layout.pp == 1
    again = reading.read({"toy.yaml": planned.written(launch, best.layout)}, 16).launch
    assert again.layout == best.layout
    found = engine.plan("llama3.1-8b", "h200", Job(64, 2048), 16, framework="toy")
    assert (
        found.best.layout.pp == found.best.layout.ep == 1
        and str(Constraints(frameworks.able("toy"))) == "Toy 1.0"
    )
