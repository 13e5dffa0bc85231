"""Whose texts these are, and the launch that they describe together.

Several texts may be one launch: a script beside its DeepSpeed JSON and the model's config.json. Texts of two
frameworks are not, and are said so.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.catalog import config_json
from engine.catalog.models import Model
from engine.frameworks.described import Launch
from engine.frameworks.framework import Claim, Command, Framework, Sure
from engine.frameworks.registry import frameworks
from engine.frameworks.settings import FALSE, FLAG, TRUE, Assumed, Draft, Entry, Fault, Field, Setting
from engine.launch import json, shell, toml, yaml
from engine.launch.texts import Source, Texts, sources

JSON, TOML, YAML, SHELL, PYTHON = "json", "toml", "yaml", "shell", "python"
MOST_GPUS = 10**6
MOST_LAYERS = 10_000
# keys that say how many GPUs there are: per node, nodes, or all together
PER_NODE = ("nproc-per-node", "gpus-per-node", "num-gpus", "ntasks-per-node", "n-gpus-per-node", "ngpu")
NODES = ("nnodes", "num-nodes", "nodes", "num-machines", "n-nodes")
ALL = ("num-processes", "np", "world-size", "ntasks")
VISIBLE = "CUDA_VISIBLE_DEVICES"  # how many a shell lets the programs see
CONFIG = "num_hidden_layers n_layer num_layers n_layers architectures model_type text_config"


class LaunchReading(NamedTuple):
    """What came of the texts: a launch if there is one, the lines about what is wrong, and the sources."""

    launch: Launch | None
    faults: list[Fault]
    sources: list[Source]


class Fragment(NamedTuple):
    """Entries of one framework, where they begin, and in which notation they are written."""

    framework: Framework
    entries: list[Entry]
    file: str
    line: int
    notation: str


class Gathered:
    """Everything that the texts say, before it is known to be one launch."""

    def __init__(self) -> None:
        self.found: list[Fragment] = []
        self.counts: dict[str, Entry] = {}
        self.configs: list[Source] = []
        self.faults: list[Fault] = []

    def source(self, source: Source, depth: int = 0) -> None:
        """One source, by its notation."""
        notation = notation_of(source.text)
        if notation == SHELL:
            self.script(source, depth)
            return
        read = {JSON: json.read, TOML: toml.read, YAML: yaml.read, PYTHON: toml.read}[notation]
        entries, faults = read(source)
        if notation == PYTHON:
            entries = [
                e._replace(key=e.key.removeprefix("cfg.")) for e in entries if e.key.startswith("cfg.")
            ]
            faults = []
        between = self.commands(source) if faults and notation != JSON else []
        self.faults += [] if between else faults[:20]
        self.counted(entries)
        framework, sure = owner(notation, entries)
        if sure < Sure.FLAGS and is_config(notation, entries, sure > Sure.NOT):
            self.configs.append(source)
        elif sure > Sure.NOT:
            self.add(framework, entries, source.name, source.first_line, notation)
        elif not faults:
            words = f"a {notation.upper()} text of no framework that is known here"
            self.faults.append(Fault(source.name, source.first_line, words))
        self.found += between

    def add(self, framework: Framework, entries: list[Entry], file: str, line: int, notation: str) -> None:
        """Keep the entries of a framework, without those that count GPUs."""
        entries = [e for e in entries if e.key.replace("_", "-").lower() not in (*PER_NODE, *NODES, *ALL)]
        self.found.append(Fragment(framework, entries, file, line, notation))

    def script(self, source: Source, depth: int) -> None:
        """A shell script: its commands, the files that it writes, and Slurm's lines."""
        script = shell.read(source)
        self.faults += script.faults[:20]
        self.slurm(source)
        before = len(self.found)
        for words in script.commands[:2000]:
            self.command(words)
        if len(self.found) == before:  # an array of arguments without the command that takes it
            for words in list(script.variables.values())[:2000]:
                if any(word.text.startswith("--") for word in words):
                    self.command(words)
        visible = script.variables.get("CUDA_VISIBLE_DEVICES")
        if visible and visible[0].text.replace(",", "").isdigit():
            many = str(visible[0].text.strip(",").count(",") + 1)
            self.counts.setdefault(VISIBLE, Entry("CUDA_VISIBLE_DEVICES", many, source.name, visible[0].line))
        for name in ("NGPU", "GPUS_PER_NODE", "NPROC_PER_NODE", "NNODES", "WORLD_SIZE"):
            words = script.variables.get(name)
            if words and words[0].text.isdigit():
                key = {"NNODES": "nnodes", "WORLD_SIZE": "world-size"}.get(name, "nproc-per-node")
                start, stop = words[0].span()
                self.counts.setdefault(
                    key, Entry(name, words[0].text, source.name, words[0].line, start, stop)
                )
        if depth < 2:
            for written in script.written[:20]:
                if notation_of(written.text) != SHELL:
                    self.source(written, depth + 1)

    def commands(self, source: Source) -> list[Fragment]:
        """What the commands launch that stand between the lines of a text of another notation."""
        before = len(self.found)
        for words in shell.read(source).commands[:2000]:
            self.command(words)
        found = self.found[before:]
        self.found = self.found[:before]
        return found

    def slurm(self, source: Source) -> None:
        """``#SBATCH --nodes=4``, which a script's reader takes for a comment."""
        for number, line in enumerate(source.text.splitlines(), source.first_line):
            if line.startswith("#SBATCH"):
                for word in line.split()[1:]:
                    key, _, value = word.removeprefix("--").partition("=")
                    if key == "gres" and value.split(":")[-1].isdigit():
                        key, value = "gpus-per-node", value.split(":")[-1]
                    if key in (*PER_NODE, *NODES) and value.isdigit():
                        self.counts.setdefault(key, Entry(f"#SBATCH --{key}", value, source.name, number))

    def counted(self, entries: list[Entry]) -> None:
        """Keep what says how many GPUs there are."""
        for entry in entries:
            key = entry.key.replace("_", "-").lower()
            if key in (*PER_NODE, *NODES, *ALL) and entry.value.isdigit() and len(entry.value) < 8:
                self.counts[key] = entry

    def command(self, words: list[shell.Word]) -> None:
        """One command, if it launches something that is known here."""
        words = inside(words)
        framework, claim = launched(words)
        if claim.sure == Sure.NOT:
            return
        start = claim.start
        self.counted(flags(words[:start], {}, "-")[0])
        found, bare = flags(words[start:], framework.fields, framework.separator)
        entries = framework.entries(found, bare, words)
        self.counted(entries)
        self.add(framework, entries, "", words[0].line, SHELL)


def notation_of(text: str) -> str:
    """JSON, TOML, YAML, assignments to ``cfg``, or else a shell script."""
    lines = [line for line in (raw.strip() for raw in text.split("\n", 2000)[:2000]) if line]
    bare = [line for line in lines if line[0] != "#" and not line.startswith("//")]
    if not bare:
        return SHELL
    if bare[0][0] == "{":
        return JSON
    if any(line.startswith("cfg.") and "=" in line for line in bare):
        return PYTHON
    if (bare[0].startswith("[") and bare[0].split("#")[0].rstrip().endswith("]")) or (
        any(line[0] == "[" and line.split("#")[0].rstrip()[-1:] == "]" for line in bare)
        and any(" = " in line for line in bare)
        and not lines[0].startswith("#!")
    ):
        return TOML
    keys = sum(line.split(" #")[0].rstrip().endswith(":") or ": " in line.split(" #")[0] for line in bare)
    items = sum(line.startswith("- ") or line == "---" for line in bare)
    starts = bare[0].split(":")[0]
    plain = all(c.isalnum() or c in "_.-\"' " for c in starts) and (
        ":" in bare[0] or bare[0] == "---" or bare[0][0] == "-"
    )
    if keys and keys + items >= 0.6 * len(bare) and plain and not bare[0].startswith(("--", "export ")):
        return YAML
    return SHELL


def owner(notation: str, entries: list[Entry]) -> tuple[Framework, int]:
    """The framework that is surest that a configuration file is its own, and how sure it is."""
    found = [(each, each.owns(notation, entries)) for each in frameworks().values()]
    return max(found, key=lambda pair: pair[1])


def is_config(notation: str, entries: list[Entry], claimed: bool) -> bool:
    """Whether a file is a model's config.json; where a framework might own it, its sizes have to stand
    there."""
    tops = {e.key.split(".")[0] for e in entries}
    if notation in (TOML, PYTHON) or not tops & set(CONFIG.split()):
        return False
    return bool({"hidden_size", "n_embd", "d_model", "text_config"} & tops) or (
        notation == JSON and not claimed
    )


def inside(words: list[shell.Word]) -> list[shell.Word]:
    """The words of what ``bash -c "…"`` is given, each with its place; other commands as they are."""
    for shell_word, option, script in zip(words, words[1:], words[2:]):
        if shell_word.text.rsplit("/", 1)[-1] in ("bash", "sh") and option.text in ("-c", "-lc"):
            return shell.split(script)
    return words


def launched(words: list[shell.Word]) -> tuple[Framework, Claim]:
    """The framework that is surest that a command starts it, and how sure it is."""
    texts = [word.text for word in words[:5000]]
    keys = {text.partition("=")[0].lstrip("-").replace("-", "_") for text in texts if text.startswith("-")}
    keys |= {text.partition("=")[0] for text in texts if "=" in text and not text.startswith("-")}
    script = next((at + 1 for at, text in enumerate(texts) if text.endswith(".py")), 0)
    command = Command(texts, keys, script)
    found = [(each, each.claims(command)) for each in frameworks().values()]
    return max(found, key=lambda pair: pair[1].sure)


def flags(
    words: list[shell.Word], table: dict[str, Field], separator: str
) -> tuple[list[Entry], list[Entry]]:
    """The arguments ``--key value``, ``--key=value`` and ``-k value`` as entries; and the words that belong
    to none. A flag of the table that is a truth takes no word but true or false."""
    found: list[Entry] = []
    bare: list[Entry] = []
    at = 0
    while at < len(words):
        word, text = words[at], words[at].text
        at += 1
        if not text.startswith("-") or _number(text):
            bare.append(Entry("", text, "", word.line, *word.span()))
            continue
        key, equals, value = text.partition("=")
        drop = len(key) + 1
        name = (
            key.lstrip("-").replace("-", separator).replace("_", separator)
            if key.startswith("--")
            else key[1:]
        )
        at_key = word.span()[0]
        span, line = word.span(drop) if equals else (word.span()[1],) * 2, word.line
        if not equals:
            kind = table[name].kind if name in table else ""
            values: list[shell.Word] = []
            while at < len(words) and (not words[at].text.startswith("-") or _number(words[at].text)):
                if kind == FLAG and words[at].text.lower() not in (*TRUE, *FALSE):
                    break
                if (kind and kind != "text" and values) or (not kind and values):
                    break
                values.append(words[at])
                at += 1
            value = " ".join(v.text for v in values)
            if values:
                line = values[0].line
                span = values[0].span() if len(values) == 1 else (-1, -1)
            if any(not v.known for v in values) and not value:
                continue
        elif not word.known and not value:
            continue
        found.append(Entry(name, value, "", line, span[0], span[1], at_key))
    return found, bare


def _number(text: str) -> bool:
    return len(text) > 1 and text[1] in "0123456789."


# -- one launch ----------------------------------------------------------------------------------------------
def read(texts: Texts, gpus: int | None = None) -> LaunchReading:
    """The launch that these texts describe."""
    given, faults = sources(texts)
    gathered = Gathered()
    for source in given:
        before = [len(gathered.found), len(gathered.faults)]
        gathered.source(source)
        for at in range(before[0], len(gathered.found)):
            gathered.found[at] = _placed(gathered.found[at], source.name)
        gathered.counts = {k: e._replace(file=e.file or source.name) for k, e in gathered.counts.items()}
        if (
            source.text.strip()
            and before == [len(gathered.found), len(gathered.faults)]
            and source not in gathered.configs
        ):
            gathered.faults.append(
                Fault(source.name, source.first_line, "nothing here launches anything that is known")
            )
    faults += gathered.faults
    firsts: dict[str, Fragment] = {}
    for found in gathered.found:
        firsts.setdefault(found.framework.key, found)
    several = list(firsts.values())
    mains = [
        one for one in several if all(o is one or o.framework.key in one.framework.beside for o in several)
    ]
    if len(several) > 1 and not mains:
        told = ", ".join(f"{one.framework.name} ({one.file}:{one.line})" for one in several)
        faults.append(
            Fault("", 0, f"these texts are for {len(several)} frameworks: {told}; check one at a time")
        )
        return LaunchReading(None, faults, given)
    if not several:
        if gathered.configs:
            faults.append(
                Fault("", 0, "a config.json alone launches nothing: add the script or the configuration")
            )
        return LaunchReading(None, faults, given)
    draft = Draft()
    try:
        launch = _launch(gathered, draft, mains[0].framework, gpus, faults)
    except ValueError as error:
        faults += draft.faults
        faults.append(Fault("", 0, str(error)))
        return LaunchReading(None, faults, given)
    return LaunchReading(launch, faults, given)


def _placed(found: Fragment, name: str) -> Fragment:
    entries = [e if e.file else e._replace(file=name) for e in found.entries]
    return found._replace(entries=entries, file=found.file or name)


def _launch(
    gathered: Gathered, draft: Draft, framework: Framework, gpus: int | None, faults: list[Fault]
) -> Launch:
    several = [f for f in gathered.found if f.framework is framework]
    if framework.serves and len(several) > 1:
        words = f"{len(several)} servers are started here: the one of line {several[0].line} is checked"
        faults.append(Fault(several[1].file, several[1].line, words))
        several = several[:1]
    for found in several:
        draft.read(found.entries, framework.fields, framework.unmodelled)
    for found in gathered.found:
        if found.framework is not framework:
            framework.read_beside(draft, found.entries)
    model = _model(gathered, draft, framework)
    if model.depth > MOST_LAYERS:
        raise ValueError(f"num-layers must be at most {MOST_LAYERS:,}, got {model.depth:,}")
    count = 0 if framework.serves else count_of(gathered.counts, draft, gpus, framework)
    meant = framework.read(draft, model, count)
    count = meant.gpus
    if meant.server:
        there = gpus or (int(gathered.counts[VISIBLE].value) if VISIBLE in gathered.counts else count)
        if count > there:
            draft.refuse(
                f"ValueError: World size ({count}) is larger than the number of available GPUs ({there}) "
                "in this node.",
                "tp",
            )
        elif count < there:
            draft.assume("gpus", count, f"what the server takes of the {there} GPUs")
    faults += draft.faults
    draft.leave()
    return Launch(
        framework.key,
        model,
        count,
        meant.precision,
        meant.job,
        meant.layout,
        meant.server,
        tuple(
            sorted(
                (s for s in draft.settings.values() if s.name in draft.used), key=lambda s: (s.file, s.line)
            )
        ),
        tuple(draft.assumed),
        tuple(draft.ignored),
        tuple(draft.unmodelled),
        tuple(draft.refused),
        tuple(faults),
    )


def _model(gathered: Gathered, draft: Draft, framework: Framework) -> Model:
    """The model: of a config.json if there is one, else of what the launch says."""
    if len(gathered.configs) > 1:
        raise ValueError(f"{len(gathered.configs)} config.json are given: check one model at a time")
    if not gathered.configs:
        return framework.model_of(draft, None)
    return framework.model_of(draft, lambda: _of_config(gathered.configs[0]))


def _of_config(source: Source) -> Model:
    try:
        return config_json.model(source.text)
    except ValueError as error:
        raise ValueError(f"{source.name}:{source.first_line}: {error}") from None


def count_of(counts: dict[str, Entry], draft: Draft, gpus: int | None, framework: Framework) -> int:
    """How many GPUs: as asked, as the launcher says, or as few as the layout takes."""
    each = next((counts[key] for key in PER_NODE if key in counts), None)
    nodes = next((counts[key] for key in NODES if key in counts), None)
    every = next((counts[key] for key in ALL if key in counts), None)
    if not each and not every and VISIBLE in counts:
        each = counts[VISIBLE]
    said = int(every.value) if every else int(each.value) * int(nodes.value if nodes else 1) if each else 0
    if gpus is not None:
        if said and said != gpus:
            draft.assume("gpus", gpus, f"as asked; the texts say {said}")
        return gpus
    used = [entry for entry in ((every,) if every else (each, nodes)) if entry]
    if said:
        if said > MOST_GPUS:
            raise ValueError(f"the texts ask for {said:,} GPUs, where at most {MOST_GPUS:,} can be")
        for number, entry in enumerate(used):
            draft.settings[f"gpus {number}"] = Setting("gpus", int(entry.value), entry)
            draft.used |= {"gpus", f"gpus {number}"}
        return said
    least = 1
    for name in framework.degrees:
        degree = draft.settings[name].value if name in draft.settings else 1
        if isinstance(degree, str):
            degree = int(degree) if degree.isdigit() and len(degree) < 8 else 1
        least *= max(1, degree)
    if nodes:
        least = max(least, 8 * int(nodes.value))
    if least > MOST_GPUS:
        raise ValueError(f"the layout takes {least:,} GPUs, where at most {MOST_GPUS:,} can be")
    draft.assumed.append(Assumed("gpus", least, "no text says how many: as few as the degrees take"))
    return least
