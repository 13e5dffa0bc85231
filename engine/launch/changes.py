"""The neighbours of a launch: each is the text with one setting edited, which is then read again.

So a change is right by construction: what is estimated is what the edited text says, and not what an edit was
meant to say. An edit that the reader does not understand as meant is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.frameworks.described import Launch
from engine.frameworks.framework import Where
from engine.frameworks.registry import frameworks
from engine.frameworks.settings import Entry, Setting
from engine.launch import reading as readings
from engine.launch.reading import JSON, PROGRAM, SHELL, TOML, YAML, LaunchReading, notation_of
from engine.launch.texts import parts

ADDED = "TrainingArguments"  # a text of one's own, where none of those given can hold a setting
LONGEST_LINE = 200
STEPS = {"tp": (0.5, 2), "pp": (0.5, 2), "cp": (0.5, 2), "ep": (0.5, 2), "micro_batch": (0.5, 2)}
INTERLEAVES = (1, 2, 4)
SHARES, CACHES = (0.95,), ("fp8",)


class Edited(NamedTuple):
    """Texts with a change in them: what was set, and the lines that now stand there."""

    what: tuple[tuple[str, object], ...]
    lines: tuple[str, ...]
    texts: dict[str, str]
    launch: Launch


def given_texts(reading: LaunchReading) -> dict[str, str]:
    """The texts as they were given, by name."""
    return {source.name: source.given for source in reading.sources}


def neighbours(reading: LaunchReading, gpus: int | None, longest: int = 0) -> Iterator[Edited]:
    """Every launch that differs in one setting and is understood as meant."""
    launch = reading.launch
    if launch is None:
        return
    texts = given_texts(reading)
    for name, value in moves(launch, longest):
        found = edited(texts, launch, name, value, gpus)
        if found:
            yield found


def again(one: Edited, other: tuple[str, object], gpus: int | None) -> Edited | None:
    """A second change on top of a first."""
    found = edited(one.texts, one.launch, *other, gpus)
    return found._replace(what=one.what + found.what, lines=one.lines + found.lines) if found else None


def moves(launch: Launch, longest: int = 0) -> list[tuple[str, object]]:
    """What may be set otherwise, and to what; ``longest`` are the tokens of a request that would fit a
    server."""
    if launch.server:
        s = launch.server  # twice the GPUs are offered too: whether they are there, the text says or nobody
        found: list[tuple[str, object]] = [
            ("share", share) for share in SHARES if share > s.share and not s.of_rest
        ]
        found += [("kv", kind) for kind in CACHES if s.kv_precision not in CACHES]
        found += [("tp", s.tp * 2)] + [("tp", s.tp // 2)] * (s.tp > 1)
        return found + [("longest", longest)] * (0 < longest < s.longest)
    a = launch.layout
    if a is None:
        return []
    allowed = frameworks()[launch.framework].moves(launch)
    found = []
    for name, steps in STEPS.items():
        if name in allowed and (name != "ep" or launch.model.experts):
            to = [getattr(a, name) * step for step in steps]
            found += [(name, int(value)) for value in to if value >= 1 and value == int(value)]
    found += [
        ("interleave", v) for v in INTERLEAVES if "interleave" in allowed and a.pp > 1 and v != a.interleave
    ]
    now: dict[str, object] = {"recompute": "selective" if a.recompute_layers else a.recompute, "zero": a.zero}
    for name in ("recompute", "zero"):
        found += [(name, value) for value in allowed.get(name, ()) if value != now[name]]
    if launch.job and launch.job.software.loss == "plain":
        found += [("loss", value) for value in allowed.get("loss", ())]
    return found + [("optimizer", value) for value in allowed.get("optimizer", ())]


def edited(
    texts: dict[str, str], launch: Launch, name: str, value: object, gpus: int | None
) -> Edited | None:
    """The texts with one of our names set to a value, read again; None where it is not understood as
    meant."""
    new, lines, work = dict(texts), [], _work(launch)
    for key, text in frameworks()[launch.framework].edit(name, value, launch):
        line = put(new, launch, key, text)
        if line is None:
            return None
        if line:
            lines.append(line)
        reread = readings.read(new, gpus)
        if reread.launch is None:
            return None
        launch = reread.launch
    if not lines or launch.refused or not meant(launch, name, value) or _work(launch) != work:
        return None
    kept = [line for line in dict.fromkeys(lines) if _stands(line, new)]
    return Edited(((name, value),), tuple(kept), new, launch)


def _stands(line: str, texts: dict[str, str]) -> bool:
    """Whether an edited line still stands so, and was not edited again since."""
    bare = line.split("] ")[-1] if line.startswith("[") else line.strip("… ")
    return line.startswith("without ") or any(bare in text for text in texts.values())


def _work(launch: Launch) -> tuple[int, int, int]:
    """What a step works through, which no change may change."""
    return (launch.job.global_batch, launch.job.seq, launch.gpus) if launch.job else (0, 0, 0)


def meant(launch: Launch, name: str, value: object) -> bool:
    """Whether the edited launch has the value that was meant."""
    if launch.server:
        return {"kv": launch.server.kv_precision, "share": launch.server.share}.get(
            name, getattr(launch.server, name, None)
        ) == value
    if name == "loss":
        return launch.job is not None and launch.job.software.loss != "plain"
    if name == "optimizer":
        return any(one.name == name and one.value == value for one in launch.settings)
    if launch.layout is None:
        return False
    if value == "selective":
        return launch.layout.recompute_layers > 0
    return getattr(launch.layout, name) == value


def put(texts: dict[str, str], launch: Launch, key: str, value: str | None) -> str | None:
    """Write a key's value into the texts, or take the key away; the line that now stands there ("" where
    nothing had to be done), or None where it cannot be done."""
    table = frameworks()[launch.framework].fields
    field = table.get(key) or table.get(key.replace("_", "-"))
    if field is None:
        return None
    setting = next((s for s in launch.settings if s.name == field.name and s.line), None)
    if setting is None:
        return "" if value is None else insert(texts, launch, key, value)
    entry = setting.entry
    text = texts.get(entry.file, "")
    notation = _notation(text, entry.start)
    if value is None:
        return _removed(texts, setting, notation)
    if value == "" or value == str(entry.value):
        return ""
    if entry.start < 0 or not text:
        return insert(texts, launch, key, value) if notation == SHELL else None
    inside = notation == PROGRAM and text[max(0, entry.start - 1) : entry.start] in ("'", '"')
    new = value if inside else _quoted(value, notation)
    texts[entry.file] = text[: entry.start] + new + text[entry.stop :]
    return line_at(texts[entry.file], entry.start)


def _removed(texts: dict[str, str], setting: Setting, notation: str) -> str | None:
    entry = setting.entry
    text = texts.get(entry.file, "")
    if notation != SHELL or entry.begin < 0 or not entry.begin < entry.stop <= entry.begin + 200:
        return None
    if "\n" in text[entry.begin : entry.stop]:
        return None
    texts[entry.file] = text[: entry.begin].rstrip(" ") + text[entry.stop :]
    return f"without {text[entry.begin : entry.stop]}"


def insert(texts: dict[str, str], launch: Launch, key: str, value: str) -> str | None:
    """A key that no text has yet, beside the others of its kind."""
    framework = frameworks()[launch.framework]
    called = [s.entry for s in launch.settings if s.entry.begin >= 0 and "." not in s.key]
    called = [e for e in called if _notation(texts.get(e.file, ""), e.begin) == PROGRAM]
    if called or any(notation_of(text) == PROGRAM for text in texts.values()):
        return _beside(texts, launch, called, key, value)
    for where in framework.new_keys:
        if where == Where.SECTION:
            return _section(texts, launch, key, value)
        if where == Where.ARGUMENT:
            return _argument(texts, launch, key, value)
        if where == Where.FLAG:
            flags = [s.entry for s in launch.settings if s.key in framework.fields and s.entry.begin >= 0]
            flags = [e for e in flags if _notation(texts.get(e.file, ""), e.begin) == SHELL]
            if flags:
                return _word(texts, flags[-1].file, flags[-1].begin, f"--{key} {value}".rstrip() + " ", 0)
        if where in (Where.BEHIND, Where.OVERRIDE):
            dotted = where == Where.OVERRIDE  # behind another override; a flag behind the model
            values = (s.entry for s in launch.settings if s.entry.stop > 0 and (not dotted or "." in s.key))
            entry = next(values, None)
            if entry is None or _notation(texts.get(entry.file, ""), entry.stop) != SHELL:
                return None
            word = f" {key}={value}" if dotted else f" --{key} {value}".rstrip()
            return _word(texts, entry.file, entry.stop, word, 1)
    return None


def _beside(texts: dict[str, str], launch: Launch, called: list[Entry], key: str, value: str) -> str | None:
    """An argument more in the call of a program that says how large a batch is."""
    sized = [s.entry for s in launch.settings if s.name in ("micro_batch", "accumulated")]
    entry = next((e for e in called if e in sized), None)
    if entry is None or "." in key:
        return None
    return _word(texts, entry.file, entry.begin, f"{key}={_quoted(value, PROGRAM)}, ", 0)


def _word(texts: dict[str, str], file: str, at: int, word: str, behind: int) -> str:
    """The line in which a word of a command was put at a place."""
    texts[file] = texts[file][:at] + word + texts[file][at:]
    return line_at(texts[file], at + behind)


def _section(texts: dict[str, str], launch: Launch, key: str, value: str) -> str | None:
    """A key of a TOML section, behind another of it or in a new one."""
    section, _, name = key.rpartition(".")
    line = f"{name} = {_quoted(value, TOML)}"
    beside = next(
        (s.entry for s in launch.settings if s.key.rpartition(".")[0] == section and s.entry.stop > 0), None
    )
    if beside:
        text = texts[beside.file]
        end = text.find("\n", beside.stop)
        end = len(text) if end < 0 else end
        texts[beside.file] = f"{text[:end]}\n{line}{text[end:]}"
        return f"[{section}] {line}"
    file = next((s.file for s in launch.settings if s.file in texts), None)
    if file is None or f"[{section}]" in texts[file]:
        return None
    texts[file] = f"{texts[file].rstrip()}\n\n[{section}]\n{line}\n"
    return f"[{section}] {line}"


def _argument(texts: dict[str, str], launch: Launch, key: str, value: str) -> str:
    """One of the TrainingArguments, at the end of a YAML file that has others, or in a text of its own."""
    flat = [
        s.file for s in launch.settings if "." not in s.key and notation_of(texts.get(s.file, "")) == YAML
    ]
    file, line = (flat[-1] if flat else ADDED), f"{key}: {value}"
    texts[file] = f"{texts.get(file, '').rstrip()}\n{line}\n".lstrip()
    return f"{line} ({ADDED})" if file == ADDED else line


def line_at(text: str, place: int) -> str:
    """The line around a place."""
    begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    line = text[begin : end if end >= 0 else len(text)].strip()
    if len(line) <= LONGEST_LINE:
        return line
    start = max(0, place - begin - LONGEST_LINE // 2)
    return f"… {line[start : start + LONGEST_LINE]} …"


def _notation(text: str, place: int) -> str:
    """The notation of the part of a text that a place is in."""
    for source in parts("", text):
        if source.start <= place <= source.start + len(source.text):
            return notation_of(source.text)
    return SHELL


def _quoted(value: str, notation: str) -> str:
    plain = value in ("true", "false") or all(c in "0123456789.-" for c in value)
    if notation == PROGRAM:
        return {"true": "True", "false": "False"}.get(value, value if plain else f'"{value}"')
    return value if plain or notation not in (JSON, TOML) else f'"{value}"'


def corrected(reading: LaunchReading, name: str, value: str) -> dict[str, str] | None:
    """The texts with an assumed value written into them; None where no text can hold it."""
    launch = reading.launch
    if launch is None or not value.strip() or len(value) > LONGEST_LINE or "\n" in value:
        return None
    for key in keys_of(launch, name):
        texts = given_texts(reading)
        if put(texts, launch, key, value.strip()):
            return texts
    return None


def keys_of(launch: Launch, name: str) -> list[str]:
    """The framework's keys for one of our names, those that it would write first."""
    table = frameworks()[launch.framework].fields
    flat = [key for key, field in table.items() if field.name == name]
    return sorted(flat, key=lambda key: key.startswith("train_micro")) if flat else []
