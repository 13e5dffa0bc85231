"""Bad input in the catalogue: one line with file, line, what is allowed, and what was found."""

import re
import shutil

import pytest

from engine import catalog
from engine.catalog import files
from engine.catalog.software import all_unsaid
from engine.exam import missions
from engine.mechanism import hierarchy, matmul
from engine.one_gpu import dispatch, tiling

PLACE = files.PLACE
READ = {
    "achievable.toml": matmul._achievable,
    "compiled.toml": catalog.compiled_steps,
    "gpus.toml": catalog.all_gpus,
    "hosts.toml": catalog.all_hosts,
    "interruptions.toml": catalog.all_interruptions,
    "launches.toml": dispatch.cited,
    "links.toml": catalog.all_links,
    "memories.toml": hierarchy.hierarchies,
    "missions.toml": missions.missions,
    "models.toml": catalog.all_models,
    "nodes.toml": catalog.all_nodes,
    "prices.toml": catalog.all_prices,
    "products.toml": tiling.products,
    "recipes.toml": catalog.all_recipes,
    "runs.toml": catalog.all_runs,
    "software.toml": catalog.all_software,
    "unsaid.toml": all_unsaid,
}


@pytest.fixture
def spoil(tmp_path, monkeypatch):
    """Read a file of the catalogue in which something has been replaced, and give the complaint."""
    for path in files.PLACE.glob("*.toml"):
        shutil.copy(path, tmp_path)

    def complaint(name: str, before: str, after: str) -> str:
        path = tmp_path / name
        text = path.read_text(encoding="utf-8")
        assert re.search(before, text, re.MULTILINE), before
        path.write_text(re.sub(before, after, text, count=1, flags=re.MULTILINE), encoding="utf-8")
        monkeypatch.setattr(files, "PLACE", tmp_path)
        with pytest.raises(ValueError, match=r"^[^\n]+\Z") as error:
            READ[name].__wrapped__()
        return str(error.value)

    return complaint


def line_of(name: str, pattern: str) -> int:
    text = (PLACE / name).read_text(encoding="utf-8")
    return text[: re.search(pattern, text, re.MULTILINE).start()].count("\n") + 1


def test_every_table_is_read_through_the_check():
    assert {path.name for path in files.PLACE.glob("*.toml")} == set(READ)


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        (
            "gpus.toml",
            r"^hbm_bytes = .*$",
            'hbm_bytes = "80e9"',
            "hbm_bytes must be a number of at least 0, got '80e9'",
        ),
        (
            "gpus.toml",
            r"^hbm_bytes = .*$",
            "hbm_bytes = -3.0",
            "hbm_bytes must be a number of at least 0, got -3.0",
        ),
        ("gpus.toml", r"^hbm_bytes = .*$", "hbm_bytes = nan", "hbm_bytes must be a number of at least 0"),
        ("gpus.toml", r"^hbm_bytes = .*$", "hbm_bytes = true", "hbm_bytes must be a number of at least 0"),
        (
            "gpus.toml",
            r"^year = .*$",
            "year = 2020.5",
            "year must be a whole number of at least 0, got 2020.5",
        ),
        ("gpus.toml", r"^name = .*$", "name = 7", "name must be a text in quotes, got 7"),
        ("gpus.toml", r"^year = .*$", "yaer = 2020", "has no key 'yaer'; it may have name, vendor, year"),
        ("models.toml", r"^gated = .*$", "gated = 1", "gated must be true or false, got 1"),
        ("models.toml", r"^layers = .*$", "layers = 12.0", "layers must be a whole number"),
        ("links.toml", r"^latency_s = .*$", "latency_s = '1 ms'", "latency_s must be a number of at least 0"),
        ("recipes.toml", r"^weight_bytes = .*$", "weight_bytes = -2", "weight_bytes must be a number"),
        ("nodes.toml", r"^gpu = .*$", 'gpu = "h1000"', "gpu must be a key of the catalogue (near:"),
        ("nodes.toml", r"^gpu = .*$", "gpu = 100", "gpu must be a text in quotes, got 100"),
        ("nodes.toml", r"^nics = .*$", "nics = []", "nics must be a whole number"),
        ("prices.toml", r"^date = .*$", "date = 2026-11-01", "date must be a text in quotes"),
        ("runs.toml", r"^gpus = .*$", "gpus = -1", "gpus must be a whole number of at least 0, got -1"),
        ("interruptions.toml", r"^mtbf_s = .*$", 'mtbf_s = "3 h"', "mtbf_s must be a number"),
        ("compiled.toml", r"^eager_s = .*$", "eager_s = inf", "eager_s must be a number of at least 0"),
        ("hosts.toml", r"^link = .*$", 'link = "pigeon"', "link must be a key of the catalogue"),
        ("missions.toml", r"^tokens = .*$", 'tokens = "many"', "tokens must be a number of at least 0"),
        ("missions.toml", r"^hints = \[\"", 'hints = [3, "', "hints must be a list, each a text in quotes"),
        (
            "missions.toml",
            r"^start = .*$",
            "start = {tpp = 2}",
            "start must be a table with no keys but tp, pp",
        ),
        ("missions.toml", r"^start = .*$", "start = {tp = -2}", "start must be a table whose tp is a whole"),
        ("achievable.toml", r"^bf16 = .*$", "bf61 = 0.8", "has no key 'bf61'; it may have bf16, fp8"),
        ("launches.toml", r"^kind = .*$", "kind = 1", "kind must be a text in quotes, got 1"),
        ("products.toml", r"^m = .*$", "m = -1", "m must be a whole number of at least 0, got -1"),
    ],
)
def test_a_bad_value_is_told_with_its_line(spoil, name, before, after, words):
    said = spoil(name, before, after)
    assert said.startswith(f"engine/catalog/{name}:{line_of(name, before)}: ") and words in said, said


@pytest.mark.parametrize(("name", "field"), [("gpus.toml", "hbm_bytes"), ("missions.toml", "brief")])
def test_a_missing_key_is_told_with_the_line_of_its_entry(spoil, name, field):
    first = line_of(name, r"^\[")
    key = re.search(r"^\[(.+)\]", (files.PLACE / name).read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert spoil(name, rf"^{field} = .*$", "") == f"engine/catalog/{name}:{first}: '{key}' is missing {field}"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("hbm_bytes = 80 GB", "this is not TOML: Expected newline or end of document after a statement, in "),
        ("hbm_bytes = 80e9\nhbm_bytes = 141e9", "hbm_bytes stands twice; each key and each heading may "),
        ("name = {a = 1, a = 2}", "this is not TOML: Duplicate inline table key 'a', in "),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(spoil, wrong, words):
    said = spoil("gpus.toml", r"^hbm_bytes = .*$", wrong)
    line = line_of("gpus.toml", r"^hbm_bytes = .*$") + wrong.count("\n")
    assert said.startswith(f"engine/catalog/gpus.toml:{line}: {words}"), said


def test_a_heading_that_stands_twice_is_named(tmp_path):
    (tmp_path / "x.toml").write_text("[a]\nx = 1\n\n[a]\ny = 2\n")
    with pytest.raises(ValueError, match=r"x\.toml:4: \[a\] stands twice"):
        files.read(tmp_path / "x.toml")


def test_what_an_entry_refuses_itself_is_told_with_its_line(spoil):
    """Every model checks that its key and value heads divide its heads, and the like."""
    said = spoil("models.toml", r"^kv_heads = .*$", "kv_heads = 7")
    assert re.match(r"engine/catalog/models\.toml:\d+: '[\w.-]+': .*kv_heads", said), said
