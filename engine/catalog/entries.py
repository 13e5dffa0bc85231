"""A model's entry in the catalogue, written: the table of models.toml that gives the model back."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from engine.catalog.models import ATTENTIONS, LISTS, MLPS, OWN, Model, ModelSizes, in_short_keys, sizes_of
from engine.catalog.towers import Tower

FIRST = ("name", "family", "year")
LAST = ("published_params", "published_active_params", "counted_params", "mtp_modules", "checkpoint", "chat")
LATEST = ("access", "stored", *LISTS, "source", "checked", "note")
TOWER = {field.name: field.default for field in fields(Tower)}
USUAL = {field.name: field.default for field in (*fields(Model), *fields(ModelSizes))}


def entry(model: Model) -> str:
    """The TOML table of a model, with its layers in short keys where these describe it, and in groups where
    not."""
    own = {name: getattr(model, name) for name in OWN if name != "key"}
    said = {name: own.pop(name) for name in FIRST}
    end = {name: own.pop(name) for name in (*LAST, *LATEST)}
    if in_short_keys(model):
        layers: dict[str, Any] = sizes_of(model)
        said |= {name: layers[name] for name in layers if layers[name] != USUAL.get(name)}
    said |= {name: value for name, value in own.items() if name not in said}
    lines = [f"[{_key(model.key)}]"]
    lines += [f"{name} = {_value(value)}" for name, value in said.items() if value != USUAL.get(name)]
    if not in_short_keys(model):
        lines += ["groups = [", *(f"    {_value(_group(group))}," for group in model.layers), "]"]
    lines += [f"{name} = {_value(value)}" for name, value in end.items() if value != USUAL.get(name)]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    plain = all(letter.isalnum() or letter in "-_" for letter in key)
    return key if plain else json.dumps(key, ensure_ascii=False)


def _group(group: Any) -> dict[str, Any]:
    """A group of layers as ``models.group_from`` reads it."""
    found: dict[str, Any] = {
        "count": group.count,
        "attention": _part(group.attention, ATTENTIONS),
        "mlp": _part(group.mlp, MLPS),
    }
    if group.window:
        found["window"] = group.window.tokens
        found |= {"chunked": True} if group.window.chunked else {}
    found |= {"norms": group.norms} if group.norms != 2 else {}
    return found | ({"first": group.first} if group.first else {})


def _part(part: Any, kinds: dict[str, type]) -> dict[str, Any]:
    kind = next((name for name, each in kinds.items() if type(part) is each), "")
    found: dict[str, Any] = {"kind": kind} if kind else {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name == "hidden" or value is None or value == field.default:
            continue
        found[field.name] = _part(value, kinds) if is_dataclass(value) else value
    return found


def _value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Tower):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
        value = {name: each for name, each in value.items() if each != TOWER.get(name)}
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)
