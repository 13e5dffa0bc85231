"""The tools: the engine's commands as a program calls them. What a command takes is read off its parser,
so a flag has one definition; what would read a file is left out, and a launch to check is passed as text."""

from __future__ import annotations

import argparse
import math
from argparse import Namespace
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from course.agent import passages
from engine import __main__ as numbers
from engine import api, arguments, catalog
from engine.base import printing
from engine.base.extras import Missing

WIDTH = 110  # columns of a table
LARGEST_ANSWER = 400_000  # characters of an answer, tables and data together
OF_FILES = {
    "model_file",
    "gpu_file",
    "files",
    "beside",
    "profile",
}  # flags that read files, or are flags themselves
OF_A_TERMINAL = {"help", "json", "csv", "watch"}
COMMANDS = {  # tool -> the command that it is
    "estimate": "estimate",
    "plan": "plan",
    "serve": "infer",
    "deploy": "deploy",
    "check": "check",
    "collective": "collective",
    "goodput": "goodput",
    "cost": "cost",
    "models": "models",
    "gpus": "gpus",
    "recipes": "recipes",
}
SAID = {  # what the command's own line does not say to a program
    "estimate": "The layout is yours; `plan` searches for one. band_s and memory_band_bytes are 80 % bands, "
    "`extrapolates` names what no measurement covers, `fits` says whether it fits.",
    "plan": "The best layout comes first, with step_s, memory_bytes, fits and what the others lose by.",
    "serve": "One replica with a batch of equal requests, no queue; `deploy` has a queue.",
    "deploy": "Simulated under traffic; with export the commands that start it are written as well.",
    "check": "The verdict is fits, close, does not fit, will not start or cannot say.",
    "collective": "bytes is the whole buffer. Bandwidths are one way.",
    "goodput": "How much of the time is useful, and how often to write a checkpoint.",
    "cost": "Give the hours, or a model and its tokens.",
    "models": "Keys for `model`; a name of the Hub, or the text of a config.json, does as well.",
    "gpus": "Keys for `gpu`, with memory, bandwidths and peaks as sold.",
    "recipes": "Keys for `recipe`: what the training state holds for each parameter.",
}
MODEL = "a key or a usual name, which the tool models lists, or the text of a config.json"
TEXTS = {
    "type": "object",
    "description": 'the texts of one launch by their file names, such as {"run.sh": "torchrun …"}',
    "additionalProperties": {"type": "string"},
    "minProperties": 1,
    "maxProperties": 64,
}
KINDS: dict[Any, dict] = {
    None: {"type": "string"},
    int: {"type": "integer"},
    arguments.length: {"type": "integer"},
    arguments.operation: {"type": "string"},
    float: {"type": "number"},
    arguments.percent: {"type": "number"},
    arguments.several_words: {"type": "array", "items": {"type": "string"}, "maxItems": 50},
    arguments.wholes: {"type": "array", "items": {"type": "integer"}, "maxItems": 50},
    arguments.one_or_range: {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
        "description": "from, to",
    },
}
LESSONS = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "a few words, such as: why FSDP gathers twice",
            "maxLength": 400,
        },
        "limit": {
            "type": "integer",
            "description": "passages at most (5)",
            "default": 5,
            "minimum": 1,
            "maximum": 20,
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


class Tool(NamedTuple):
    """A tool: its name, what it is for, what it takes as JSON Schema, and what answers."""

    name: str
    description: str
    takes: dict
    answer: Callable[[dict], Answer]

    def listed(self) -> dict:
        """It as the protocol lists it."""
        return {
            "name": self.name,
            "title": self.description.split(".")[0],
            "description": self.description,
            "inputSchema": self.takes,
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        }


class Answer(NamedTuple):
    """What a tool says, as a table for people and as data."""

    text: str
    data: dict


class Refused(Exception):
    """A question that cannot be answered: what is wrong with it, in one line."""


# -- what a command takes ------------------------------------------------------------------------------------
@cache
def tools() -> dict[str, Tool]:
    """All tools by name."""
    parsers = arguments.parser("").commands.choices
    made = {name: _of_command(name, parsers[command]) for name, command in COMMANDS.items()}
    search = (
        "search of the course's lessons. The passages that speak of a question, whole, with their addresses."
    )
    return made | {"lessons": Tool("lessons", search, LESSONS, _searched)}


def _of_command(name: str, parser: argparse.ArgumentParser) -> Tool:
    said = f"{parser.description}. {SAID[name]}"
    return Tool(name, said, takes(name, parser), lambda given: _commanded(name, parser, given))


def taken(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The flags of a command that a program may set."""
    return [each for each in parser._actions if each.dest not in OF_FILES | OF_A_TERMINAL]


def takes(name: str, parser: argparse.ArgumentParser) -> dict:
    """What a command takes, as JSON Schema."""
    one_of = {
        action.dest
        for group in parser._mutually_exclusive_groups
        if group.required
        for action in group._group_actions
    }
    known = {action.dest: _schema(action) for action in taken(parser)}
    needed = [each.dest for each in taken(parser) if each.required or each.dest in one_of]
    if "model" in known:
        known["model"]["description"] = MODEL
    if name == "check":
        known = {"texts": TEXTS} | known
        needed.append("texts")
    return {"type": "object", "properties": known, "required": needed, "additionalProperties": False}


def _kind(reader: Any) -> dict:
    """What a program writes where the command line has this reader; a quantity is a number in the unit of its
    name."""
    return {"type": "number"} if isinstance(reader, arguments.Quantity) else KINDS[reader]


def _schema(action: argparse.Action) -> dict:
    if isinstance(action, argparse._StoreTrueAction):
        found: dict[str, Any] = {"type": "boolean", "default": False}
    elif isinstance(action, argparse._AppendAction):
        found = {"type": "array", "items": {"type": "string"}, "maxItems": 50}
    else:
        found = dict(_kind(action.type))
        if isinstance(action.default, (str, int, float)):
            found["default"] = action.default
    if action.choices:
        found["enum"] = list(action.choices)
    words = (action.help or "").replace("%%", "%")
    found["description"] = "; ".join(filter(None, [words, found.get("description", "")]))
    return found


# -- a call --------------------------------------------------------------------------------------------------
def call(name: str, given: object) -> Answer:
    """The answer of a tool; Refused says what is wrong with the question."""
    tool = tools().get(name) if isinstance(name, str) else None
    if tool is None:
        raise Refused(f"tool must be one of {', '.join(tools())}, got {arguments.one_line(repr(name))}")
    try:
        hold(given, tool.takes, "arguments")
        found = tool.answer(given)  # type: ignore[arg-type]  held to be an object
        numbers.require_finite(found.data)
    except (ValueError, Missing) as error:
        raise Refused(arguments.one_line(error)) from None
    except ArithmeticError as error:  # a number overflowed, or underflowed and was divided by
        raise Refused(f"arguments must give finite results, not {arguments.one_line(error)}") from None
    return found


TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def hold(value: Any, kind: dict, name: str) -> None:
    """ValueError unless a value is of this kind: the part of JSON Schema that the tools use."""
    of_type = isinstance(value, TYPES[kind["type"]]) and (
        kind["type"] == "boolean" or not isinstance(value, bool)
    )
    if not of_type or (isinstance(value, float) and not math.isfinite(value)):
        article = "an" if kind["type"][0] in "aeio" else "a"
        raise ValueError(f"{name} must be {article} {kind['type']}, got {_quoted(value)}")
    if "enum" in kind and value not in kind["enum"]:
        raise ValueError(f"{name} must be one of {', '.join(kind['enum'])}, got {_quoted(value)}")
    size: float = len(value) if isinstance(value, (str, list, dict)) else value
    for least, most in (("minimum", "maximum"), ("minItems", "maxItems"), ("minProperties", "maxProperties")):
        if size < kind.get(least, size) or size > kind.get(most, size):
            raise ValueError(f"{name} must have from {kind.get(least, 0)} to {kind[most]}, got {size}")
    if isinstance(value, str) and size > kind.get("maxLength", size):
        raise ValueError(f"{name} must have at most {kind['maxLength']} characters, got {size}")
    if isinstance(value, list):
        for each in value:
            hold(each, kind["items"], name)
    if isinstance(value, dict):
        _hold_object(value, kind, name)


def _hold_object(value: dict, kind: dict, name: str) -> None:
    known, more = kind.get("properties", {}), kind["additionalProperties"]
    if missing := [each for each in kind.get("required", []) if each not in value]:
        raise ValueError(f"{name} must have {', '.join(missing)}")
    for key, each in value.items():
        if key not in known and not more:
            raise ValueError(f"{name} may have {', '.join(known)}; got {_quoted(key)}")
        hold(each, known.get(key, more), key if key in known else name)


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]} …"


def _commanded(name: str, parser: argparse.ArgumentParser, given: dict) -> Answer:
    known = {action.dest: action.default for action in parser._actions if action.dest != "help"}
    set_by_caller = {key: tuple(each) if isinstance(each, list) else each for key, each in given.items()}
    args = Namespace(**dict.fromkeys(OF_FILES) | known | set_by_caller)
    if getattr(args, "model", None) is not None:
        args.model = _model(args.model)
    if name == "check":
        found = numbers.checked(given["texts"], args.gpu, args.gpus)
    else:
        found = numbers.COMMANDS[COMMANDS[name]](args)
    data = found.data if isinstance(found.data, dict) else {"rows": found.data}
    return Answer("\n\n".join(filter(None, [printing.text(found.parts, WIDTH), found.script])), data)


def _model(name: str) -> catalog.Model:
    """A model by its name or by the text of its config.json; a path is neither."""
    return api.model(name) if name.lstrip().startswith("{") else catalog.model(name)


def _searched(given: dict) -> Answer:
    found = passages.search(given["query"], given.get("limit", LESSONS["properties"]["limit"]["default"]))
    said = [f"{each.title} ({each.address})\n{each.text}" for each in found]
    return Answer(
        "\n\n".join(said) or "No lesson speaks of that.", {"passages": [each._asdict() for each in found]}
    )
