"""An entry that is written gives its model back."""

import json
import tomllib

from engine import catalog
from engine.catalog import config_json, entries, files
from engine.catalog.models import Grouping, Model, ModelSizes, described
from tests.cases import in_one_test
from tests.engine.catalog.test_mixers import CONFIGS


def read(text: str) -> Model:
    """The model of the only table in a TOML text, checked as the catalogue checks its own."""
    ((key, entry),) = tomllib.loads(text).items()
    kind = (Model, Grouping) if "groups" in entry else (Model, ModelSizes)
    return described(key, **files.checked("models.toml", key, entry, kind))


@in_one_test("model", catalog.all_models().values(), ids=lambda m: m.key)
def test_each_model_is_written_and_read_back(model):
    assert read(entries.entry(model)) == model


@in_one_test("name", CONFIGS)
def test_a_config_json_becomes_an_entry(name):
    model = config_json.model(json.dumps(CONFIGS[name]["config"]), "new", "New")
    assert read(entries.entry(model)) == model


def test_an_entry_says_no_more_than_it_must():
    text = entries.entry(catalog.model("llama3.1-8b"))
    assert text.startswith('["llama3.1-8b"]\nname = "Llama 3.1 8B"\n')
    assert "experts" not in text and "window" not in text and "qkv_bias" not in text
