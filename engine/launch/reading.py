"""Whose texts these are, and the launch that they describe together.

Several texts may be one launch: a script beside its DeepSpeed JSON and the model's config.json, in any order.
Texts of two frameworks are not, and are said so.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.catalog import config_json
from engine.catalog.models import Model
from engine.frameworks.described import Launch
from engine.frameworks.framework import Claim, Command, Framework, Sure
from engine.frameworks.registry import frameworks
from engine.frameworks.settings import (
    FALSE,
    FLAG,
    NOT_KNOWN,
    NUMBER,
    TEXT,
    TRUE,
    WHOLE,
    Assumed,
    Draft,
    Entry,
    Fault,
    Field,
    Ignored,
    Setting,
)
from engine.launch import containers, json, python, shell, toml, yaml
from engine.launch.containers import Started
from engine.launch.shell import Bit, Word
from engine.launch.texts import PASTED, Source, Texts, sources

JSON, TOML, YAML, SHELL, PYTHON = "json", "toml", "yaml", "shell", "python"
PROGRAM = "program"  # in Python; PYTHON are assignments to cfg
LATER = (JSON, TOML, PYTHON, PROGRAM, YAML, SHELL)  # the later wins: a command's flags go before its files
MOST_GPUS = 10**6
MOST_LAYERS = 10_000
# keys that say how many GPUs there are: per node, nodes, or all together
PER_NODE = ("nproc-per-node", "gpus-per-node", "num-gpus", "ntasks-per-node", "n-gpus-per-node", "ngpu")
NODES = ("nnodes", "num-nodes", "nodes", "num-machines", "n-nodes")
ALL = ("num-processes", "np", "world-size")
TOTAL = ("gpus", "ntasks")  # of a job, where nothing else says it
VISIBLE = "CUDA_VISIBLE_DEVICES"  # how many a shell or a container lets the programs see
LISTED = ("include", "gpu-ids", "gpu_ids")  # flags of launchers that list GPUs
# one-letter flags of launchers, as mpirun and Slurm have them
SHORT = {
    "srun": {"N": "nodes", "n": "ntasks", "G": "gpus"},
    "sbatch": {"N": "nodes", "n": "ntasks", "G": "gpus"},
    "salloc": {"N": "nodes", "n": "ntasks", "G": "gpus"},
    "mpirun": {"n": "np", "N": "nproc-per-node", "npernode": "nproc-per-node"},
    "mpiexec": {"n": "np", "N": "nproc-per-node", "npernode": "nproc-per-node"},
}
# what Slurm tells a job of what its lines have asked for
OF_SLURM = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "ntasks": ("SLURM_NTASKS",),
    "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "gpus": ("SLURM_GPUS",),
}
SHOW = ("echo", "printf", "cat", "grep", "ls", "man", "which")  # commands that start nothing they are given
REMOTE = ("ssh", "tmux", "screen", "su", "sbatch", "watch")  # whose last word may be a command
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
    counts: dict[str, Entry]  # how many GPUs this command alone is given
    unknown: list[Entry]  # keys whose values only running could tell


class Gathered:
    """Everything that the texts say, before it is known to be one launch."""

    def __init__(self, variables: dict[str, list[Word]]) -> None:
        self.variables = variables  # what texts that set nothing but variables set
        self.found: list[Fragment] = []
        self.counts: dict[str, Entry] = {}
        self.installed: dict[str, Entry] = {}  # package -> its release, where one is installed
        self.configs: list[Source] = []
        self.faults: list[Fault] = []
        self.loose: list[Loose] = []  # files that no framework knows as its own
        self.files: set[str] = set()  # that the commands name

    def source(self, source: Source, depth: int = 0) -> None:
        """One source, by its notation."""
        notation = notation_of(source.text)
        if notation == SHELL:
            self.script(source, depth)
            return
        if notation == PROGRAM:
            self.program(source)
            return
        manifest = notation == YAML or (notation == JSON and '"image"' in source.text)
        if manifest and self.contained(source, depth):
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
        self.found += between
        file = base(source.file or source.name)
        if self.asking(file) is not None:
            self.loose.append(Loose(source, notation, entries, file))
            return
        framework, sure = owner(notation, entries)
        if sure <= Sure.ONE_FLAG and source.name.startswith(PASTED) and self.asking("") is not None:
            self.loose.append(Loose(source, notation, entries, ""))
            return
        started = framework.commands(notation, entries) if sure > Sure.NOT else []
        if started:
            for each in started:
                words = [Word((Bit(e.value, e.line, e.start, True),) if e.value else ()) for e in each]
                self.command(words, source.name, {}, {}, 1)
            return
        self.counted(entries, True)
        if sure < Sure.FLAGS and is_config(notation, entries, sure > Sure.NOT):
            self.configs.append(source)
        elif sure > Sure.NOT:
            self.add(framework, entries, source.name, source.first_line, notation, {})
        elif not faults:
            self.loose.append(Loose(source, notation, entries, ""))

    def asking(self, file: str) -> Fragment | None:
        """The command that asks for a file of settings of that name; any that asks for one, of no name."""
        for one in self.found:
            for entry in one.entries:
                field = one.framework.fields.get(entry.key)
                if (
                    field
                    and field.name == "config"
                    and entry.value
                    and (not file or base(entry.value) == file)
                ):
                    return one
        return None

    def settle(self) -> None:
        """Give files of settings to the commands that ask for them: what the command says itself goes
        before. A file that nobody asks for is told."""
        for one in self.loose:
            asks = self.asking(one.file)
            if asks is None:
                words = f"a {one.notation.upper()} text of no framework that is known here"
                self.faults.append(Fault(one.source.name, one.source.first_line, words))
                continue
            fields = asks.framework.fields
            said = {fields[e.key].name for e in asks.entries if e.key in fields}
            entries = [
                e for e in flat(one.entries, asks.framework.separator) if _name(fields, e.key) not in said
            ]
            kept = [e for e in asks.entries if e.key not in fields or fields[e.key].name != "config"]
            self.found = [f._replace(entries=[*entries, *kept]) if f is asks else f for f in self.found]
        self.loose = []

    def contained(self, source: Source, depth: int) -> bool:
        """A file about containers; whether it was one."""
        roots, faults = yaml.documents(source)
        started = containers.of_file(roots, source, self.variables)
        if not started and not any(root.get("services") is not None or root.word("kind") for root in roots):
            return False
        self.faults += faults[:20]
        before = len(self.found)
        told = len(self.faults)
        for each in started:
            self.container(each, source.name)
        for root in roots if depth < 2 else []:
            data = root.get("data") if root.word("kind") == "ConfigMap" else None
            for key, item in data.pairs() if data is not None else []:
                if "." in key.text and item.kind == yaml.TEXT and item.text.strip():
                    start = -(10**9)
                    self.source(
                        Source(source.name, item.text, item.line + 1, start, source.given, key.text), 2
                    )
        if len(self.found) == before and len(self.faults) == told:
            words = "nothing that this file starts is known"
            self.faults.append(Fault(source.name, source.first_line, words))
        return True

    def container(self, started: Started, file: str, depth: int = 0) -> None:
        """What is started in a container: by its words, or by its image with them behind it."""
        before = len(self.found)
        self.command(started.words, file, {}, self.variables | started.variables, depth + 1)
        if len(self.found) == before and started.own and started.image:
            front = entry_words(started.image, started.line)
            if front:
                self.command(
                    [*front, *started.words], file, {}, self.variables | started.variables, depth + 1
                )
            elif started.words and started.words[0].text.startswith("--"):
                words = f"what the image {started.image[:60]} starts is not known: add the command"
                self.faults.append(Fault(file, started.line, words))
        for one in self.found[before:]:
            self.tagged(one.framework, started, file)
        counts: dict[str, Entry] = {}
        if started.gpus:
            counts[VISIBLE] = started.gpus
        if started.nodes:
            counts["nnodes"] = started.nodes
        for at in range(before, len(self.found)):
            self.found[at] = self.found[at]._replace(counts=counts | self.found[at].counts)
        together = any(key in self.counts for key in NODES)  # its copies are the nodes of one server
        if started.copies and len(self.found) > before and not together:
            words = (
                f"{started.copies.value} copies of this are started, each on GPUs of its own: one is checked"
            )
            self.faults.append(Fault(file, started.copies.line, words))

    def tagged(self, framework: Framework, started: Started, file: str) -> None:
        """Keep the release that an image's tag says (v0.11.0), where the image is the program's own."""
        if not framework.package or not any(containers.is_of(started.image, one) for one in framework.images):
            return
        tag = containers.image_name(started.image).partition(":")[2].removeprefix("v")
        tag = tag.split("-")[0].split(".post")[0]
        if tag.count(".") > 0 and tag.replace(".", "").isdigit() and len(tag) < 12:
            entry = Entry(framework.package, tag, file, started.line)
            self.installed.setdefault(framework.package, entry)

    def add(
        self,
        framework: Framework,
        entries: list[Entry],
        file: str,
        line: int,
        notation: str,
        counts: dict[str, Entry],
    ) -> None:
        """Keep the entries of a framework, without those that count GPUs."""
        entries = [e for e in entries if e.key.replace("_", "-").lower() not in (*PER_NODE, *NODES, *ALL)]
        self.found.append(Fragment(framework, entries, file, line, notation, counts, []))

    def script(self, source: Source, depth: int) -> None:
        """A shell script: its commands, the files that it writes, and Slurm's lines."""
        asked = self.slurm(source)
        script = shell.read(source, self.variables | asked)
        self.faults += script.faults[:20]
        before = len(self.found)
        for words, front in list(zip(script.commands, script.before))[:2000]:
            self.files |= {base(word.text) for word in words[:200]}
            self.command(words, source.name, front, script.variables, 0)
        if len(self.found) == before:  # an array of arguments without the command that takes it
            for words in list(script.variables.values())[:2000]:
                if any(word.text.startswith("--") for word in words):
                    self.command(words, source.name, {}, {}, 0)
        visible = containers.visible(script.variables, source.name)
        if visible:
            self.counts.setdefault(VISIBLE, visible)
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
                if notation_of(written.text) != SHELL or written.file.endswith((".sh", ".slurm", ".sbatch")):
                    self.source(written, depth + 1)

    def program(self, source: Source) -> None:
        """A program: the arguments of those calls that a framework knows, as its own keys."""
        found, unknown = python.read(source)
        framework, sure = owner(PROGRAM, found)
        if sure == Sure.NOT:
            words = "a program that calls nothing that is known here"
            self.faults.append(Fault(source.name, source.first_line, words))
            return
        entries = of_calls(framework, found)
        known = {e.key for e in entries}
        for entry in of_calls(framework, unknown):
            if entry.key in framework.fields or entry.key in framework.unmodelled:
                again = "; the other value is taken" if entry.key in known else ""
                words = f"{entry.key} is not a literal here, and no program is run: left out{again}"
                self.faults.append(Fault(source.name, entry.line, words))
        self.counted(entries)
        self.add(framework, entries, source.name, source.first_line, PROGRAM, {})

    def commands(self, source: Source) -> list[Fragment]:
        """What the commands launch that stand between the lines of a text of another notation."""
        before = len(self.found)
        for words in shell.read(source).commands[:2000]:
            self.command(words, source.name, {}, {}, 0)
        found = self.found[before:]
        self.found = self.found[:before]
        return found

    def slurm(self, source: Source) -> dict[str, list[Word]]:
        """``#SBATCH --nodes=4``, which a script's reader takes for a comment; the variables that Slurm sets
        by it."""
        asked: dict[str, list[Word]] = {}
        if "#SBATCH" not in source.text:
            return asked
        at = source.start
        for number, line in enumerate(source.text.split("\n"), source.first_line):
            begin, at = at, at + len(line) + 1
            if not line.startswith("#SBATCH"):
                continue
            words = shell.read(Source(source.name, line[7:], number, begin + 7)).commands
            for entry in named_short(flags(words[0], {}, "-").found, "sbatch") if words else []:
                if not entry.value.isdigit() or len(entry.value) > 7:
                    continue
                for name in OF_SLURM.get(entry.key, ()):
                    asked[name] = [Word((Bit(entry.value, entry.line, entry.start),))]
                if entry.key in (*PER_NODE, *NODES, *TOTAL):
                    told = entry._replace(key=f"#SBATCH --{entry.key}", file=source.name)
                    self.counts.setdefault(entry.key, told)
        return asked

    def counted(self, entries: list[Entry], of_file: bool = False) -> None:
        """Keep what says how many GPUs there are; a command's flags go before a file."""
        for entry in entries:
            key = entry.key.replace("_", "-").lower()
            if key in (*PER_NODE, *NODES, *ALL, *TOTAL) and entry.value.isdigit() and len(entry.value) < 8:
                self.counts[key] = self.counts.get(key, entry) if of_file else entry
            elif key in LISTED and containers.listed(entry.value.split(":")[-1]):
                many = containers.listed(entry.value.split(":")[-1])
                self.counts.setdefault(VISIBLE, entry._replace(value=str(many), start=-1, stop=-1))

    def command(
        self,
        words: list[Word],
        file: str,
        front: dict[str, Word],
        variables: dict[str, list[Word]],
        depth: int,
    ) -> None:
        """One command, if it launches something that is known here; ``front`` is set before it."""
        if not words or depth > 3 or base(words[0].text) in SHOW:
            return
        self.releases(words)
        run = containers.of_run(words, file)
        if run is not None:
            self.container(run, file, depth)
            return
        script = inside(words)
        if script is not None:
            program = base(words[0].text)
            if program in SHORT:
                self.counted(named_short(flags(words[:-1], {}, "-").found, program))
            known = variables | {name: [word] for name, word in front.items()}
            found = shell.within(file, script, known)
            self.faults += found.faults[:20]
            for each, before in list(zip(found.commands, found.before))[:2000]:
                self.command(each, file, front | before, found.variables, depth + 1)
            return
        framework, claim = launched(words)
        if claim.sure == Sure.NOT:
            return
        start = claim.start
        launcher = flags(words[:start], {}, "-")
        program = next((w.text.split("/")[-1] for w in words[:start] if w.text.split("/")[-1] in SHORT), "")
        self.counted(named_short(launcher.found, program))
        found = flags(words[start:], framework.fields, framework.separator)
        entries = framework.entries(found.found, found.bare, words)
        self.counted([e for e in entries if e.key not in framework.fields])
        known = variables | {name: [word] for name, word in front.items()}
        entries = [*of_environment(framework, known), *entries]
        for name, word in [*launcher.unknown, *found.unknown]:
            counts = name.replace("_", "-") in (*PER_NODE, *NODES, *ALL)
            if word.why and (not name or counts or name in framework.fields or name in framework.unmodelled):
                self.faults.append(word.why._replace(file=file))
        visible = containers.visible({name: [word] for name, word in front.items()}, file)
        self.add(framework, entries, "", words[0].line, SHELL, {VISIBLE: visible} if visible else {})
        open_ = [Entry(name, "", file, w.why.line) for name, w in found.unknown if w.why and not w.known]
        self.found[-1] = self.found[-1]._replace(unknown=open_)

    def releases(self, words: list[Word]) -> None:
        """Keep which releases ``pip install vllm==0.8.5`` installs."""
        if any(word.text == "install" for word in words[:6]):
            for word in words[:200]:
                name, equals, release = word.text.partition("==")
                if equals and len(release) < 40:
                    self.installed[name.split("[")[0]] = Entry(name, release, "", word.line)


class Loose(NamedTuple):
    """A file of settings, and the name by which a command asks for it; none where it has no owner."""

    source: Source
    notation: str
    entries: list[Entry]
    file: str


def base(path: str) -> str:
    """A path's last part."""
    return path.rsplit("/", 1)[-1]


def _name(fields: dict[str, Field], key: str) -> str:
    return fields[key].name if key in fields else ""


def flat(entries: list[Entry], separator: str) -> list[Entry]:
    """The entries of a file whose keys are flags: a list is several values, and what is nested is JSON, as
    the flag has it."""
    found: dict[str, Entry] = {}
    nested: dict[str, list[tuple[list[str], str]]] = {}
    for entry in entries:
        top, *below = entry.key.split(".")
        key = top.replace("-", separator).replace("_", separator)
        if below:
            nested.setdefault(key, []).append((below, entry.value))
            found.setdefault(key, entry._replace(key=key, start=-1, stop=-1))
        else:
            found[key] = entry._replace(key=key)
    for key, each in nested.items():
        if all(len(path) == 1 and path[0].isdigit() for path, _ in each):
            found[key] = found[key]._replace(value=" ".join(value for _, value in each))
        else:
            found[key] = found[key]._replace(value=_json(each))
    return list(found.values())


def _json(each: list[tuple[list[str], str]]) -> str:
    """Values by their paths as JSON."""
    if len(each) == 1 and not each[0][0]:
        value = each[0][1]
        bare = value in ("true", "false", "null") or value.replace(".", "", 1).isdigit()
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        return value if bare else f'"{quoted}"'
    below: dict[str, list[tuple[list[str], str]]] = {}
    for path, value in each:
        if path:
            below.setdefault(path[0], []).append((path[1:], value))
    items = [(name, _json(inside)) for name, inside in below.items()]
    if all(name.isdigit() for name in below):
        return "[" + ", ".join(value for _, value in items) + "]"
    return "{" + ", ".join(f'"{name}": {value}' for name, value in items) + "}"


def entry_words(image: str, line: int) -> list[Word]:
    """The words that an image's own program stands for; none where no framework knows it."""
    for each in frameworks().values():
        if any(containers.is_of(image, name) for name in each.images):
            return [Word((Bit(word, line),)) for word in each.image_runs]
    return []


def of_environment(framework: Framework, variables: dict[str, list[Word]]) -> list[Entry]:
    """Variables that a framework reads, as entries."""
    found = []
    for name, words in variables.items():
        known = name in framework.fields or name in framework.environment or name in framework.unmodelled
        if known and words and words[0].known:
            found.append(Entry(name, " ".join(w.text for w in words), "", words[0].line, *words[0].span()))
    return found


def named_short(entries: list[Entry], program: str) -> list[Entry]:
    """A launcher's flags by their long names; ``--gres=gpu:h100:8`` and ``--gpus-per-node=h100:8`` as
    counts."""
    short = SHORT.get(program, {})
    found = []
    for entry in entries:
        key, last = short.get(entry.key, entry.key), entry.value.split(":")[-1]
        if key == "gres" and entry.value.startswith("gpu"):
            each = last if last.isdigit() else "1"
            found.append(entry._replace(key="gpus-per-node", value=each, start=-1, stop=-1))
        elif ":" in entry.value and last.isdigit() and key in (*PER_NODE, *TOTAL):
            found.append(entry._replace(key=key, value=last, start=-1, stop=-1))
        else:
            found.append(entry._replace(key=key))
    return found


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
    if not lines[0].startswith("#!") and python.is_python(bare):
        return PROGRAM
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
    if not plain or not keys or bare[0].startswith(("--", "export ")):
        return SHELL
    if keys + items >= 0.6 * len(bare):
        return YAML
    roots, faults = yaml.documents(Source("", text))  # a script may stand inside it
    return YAML if not faults and any(root.kind == yaml.MAP for root in roots) else SHELL


def of_calls(framework: Framework, entries: list[Entry]) -> list[Entry]:
    """The entries of a program under the framework's own keys, where it knows what is called. The call itself
    is one where its table says so."""
    found = []
    for entry in entries:
        for name, prefix in framework.calls.items():
            own = prefix if prefix in framework.fields else f"{name}."
            if entry.key == name and own in framework.fields:
                found.append(entry._replace(key=own))
                break
            if entry.key.startswith(f"{name}."):
                found.append(entry._replace(key=prefix + entry.key.removeprefix(f"{name}.")))
                break
    return found


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


def inside(words: list[Word]) -> Word | None:
    """What ``bash -c "…"`` is given, or another program that runs its last word; None for other commands."""
    for at, word in enumerate(words[:-1]):
        script = words[at + 1]
        name = base(word.text)
        if name in ("bash", "sh", "zsh"):
            for option, behind in zip(words[at + 1 :], words[at + 2 :]):
                if not option.text.startswith("-"):
                    break
                if option.text[1:2] != "-" and option.text.endswith("c"):
                    return behind
        if script.text.startswith("--wrap="):
            return script.without(len("--wrap="))
    last = words[-1]
    return last if base(words[0].text) in REMOTE and " " in last.text.strip() else None


def launched(words: list[Word]) -> tuple[Framework, Claim]:
    """The framework that is surest that a command starts it, and how sure it is."""
    texts = [word.text for word in words[:5000]]
    keys = {text.partition("=")[0].lstrip("-").replace("-", "_") for text in texts if text.startswith("-")}
    keys |= {text.partition("=")[0] for text in texts if "=" in text and not text.startswith("-")}
    script = next((at + 1 for at, text in enumerate(texts) if text.endswith(".py")), 0)
    command = Command(texts, keys, script)
    found = [(each, each.claims(command)) for each in frameworks().values()]
    return max(found, key=lambda pair: pair[1].sure)


class Flags(NamedTuple):
    """The arguments of a command: its flags, the words that belong to none, and what is not known of both,
    by the flag's name."""

    found: list[Entry]
    bare: list[Entry]
    unknown: list[tuple[str, Word]]


def flags(words: list[Word], table: dict[str, Field], separator: str) -> Flags:
    """The arguments ``--key value``, ``--key=value`` and ``-k value`` as entries; and the words that belong
    to none. A flag of the table that is a truth takes no word but true or false."""
    found: list[Entry] = []
    bare: list[Entry] = []
    unknown: list[tuple[str, Word]] = []
    at = 0
    while at < len(words):
        word, text = words[at], words[at].text
        at += 1
        if not text.startswith("-") or _number(text):
            if word.why and (word.known or not text):
                unknown.append(("", word))
            bare.append(Entry("", text, "", word.line, *word.span()))
            continue
        key, equals, value = text.partition("=")
        drop = len(key) + 1
        name = (
            key.lstrip("-").replace("-", separator).replace("_", separator)
            if key.startswith("--")
            else key[1:]
        )
        if word.why and not equals:
            unknown.append((name, word))
        at_key = word.span()[0]
        span, line = word.span(drop) if equals else (word.span()[1],) * 2, word.line
        if not equals:
            no = name[3:] if name[:3] == f"no{separator}" else name
            kind = table[name].kind if name in table else table[no].kind if no in table else ""
            values: list[Word] = []
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
            for each in values:
                if each.why and (each.known or not value or kind != "text"):
                    unknown.append((name, each))
            if any(not v.known for v in values) and (not value or kind in (WHOLE, NUMBER)):
                continue
        elif word.why:
            unknown.append((name, word))
            if not word.known and not value:
                continue
        off = name[3:] if name[:3] == f"no{separator}" and name not in table else ""
        if off in table and table[off].kind == FLAG and not value:
            found.append(Entry(off, "false", "", line, -1, -1, at_key))  # ``--no-enable-prefix-caching``
            continue
        found.append(Entry(name, value, "", line, span[0], span[1], at_key))
    return Flags(found, bare, unknown)


def _number(text: str) -> bool:
    return len(text) > 1 and text[1] in "0123456789."


# -- one launch ----------------------------------------------------------------------------------------------
def read(texts: Texts, gpus: int | None = None) -> LaunchReading:
    """The launch that these texts describe."""
    given, faults = sources(texts)
    several = [(notation_of(source.text) != SHELL, source.given, source.start, source) for source in given]
    gathered = Gathered(only_set([one[3] for one in several if not one[0]]))
    quiet: list[Source] = []  # texts that launch nothing
    for one in sorted(several, key=lambda one: one[:3]):
        source = one[3]
        before = [len(gathered.found), len(gathered.faults), len(gathered.loose), len(gathered.installed)]
        gathered.source(source)
        for at in range(before[0], len(gathered.found)):
            gathered.found[at] = _placed(gathered.found[at], source.name)
        gathered.counts = {k: e._replace(file=e.file or source.name) for k, e in gathered.counts.items()}
        after = [len(gathered.found), len(gathered.faults), len(gathered.loose), len(gathered.installed)]
        if source.text.strip() and before == after and source not in gathered.configs:
            quiet.append(source)
    gathered.settle()
    gathered.found = sorted(gathered.found, key=lambda one: LATER.index(one.notation))
    named = any(base(source.name) in gathered.files for source in given)
    launching = {found.file for found in gathered.found}
    for source in sorted(quiet, key=lambda one: (one.name, one.start)):
        if source.name in launching:  # another part of a page, such as an output
            continue
        if not (gathered.found and (named or only_set([source]))):
            words = "nothing here launches anything that is known"
            gathered.faults.append(Fault(source.name, source.first_line, words))
    faults += gathered.faults
    firsts: dict[str, Fragment] = {}
    for found in gathered.found:
        firsts.setdefault(found.framework.key, found)
    several = list(firsts.values())
    mains = [
        one for one in several if all(o is one or o.framework.key in one.framework.beside for o in several)
    ]
    if len(several) > 1 and not mains:
        several = sorted(several, key=lambda one: (one.file, one.line))
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


def only_set(scripts: list[Source]) -> dict[str, list[Word]]:
    """The variables of texts that do nothing but set them, such as a .env beside a compose file."""
    found: dict[str, list[Word]] = {}
    for source in sorted(scripts, key=lambda one: one.given):
        if len(source.text) < 20_000 and "=" in source.text:
            script = shell.read(source)
            for name, words in [] if script.commands else script.variables.items():
                found[name] = [Word(tuple(Bit(b.text, 0) for b in w.bits), w.known, w.why) for w in words]
    return found


def _placed(found: Fragment, name: str) -> Fragment:
    entries = [e if e.file else e._replace(file=name) for e in found.entries]
    return found._replace(entries=entries, file=found.file or name)


def _launch(
    gathered: Gathered, draft: Draft, framework: Framework, gpus: int | None, faults: list[Fault]
) -> Launch:
    several = [f for f in gathered.found if f.framework is framework]
    commands = [f for f in several if f.notation == SHELL]
    if framework.serves and len(commands) > 1 and not framework.in_parts:
        first = commands[0]
        place = f"{first.file}:{first.line}" if first.file != commands[1].file else f"line {first.line}"
        words = f"{len(commands)} servers are started here: the one of {place} is checked"
        faults.append(Fault(commands[1].file, commands[1].line, words))
        several = [f for f in several if f.notation != SHELL or f is first]
    for found in several:
        draft.read(found.entries, framework.fields | framework.environment, framework.unmodelled)
    for entry in [one for found in several for one in found.unknown]:
        if entry.key in framework.fields:
            draft.unknown[framework.fields[entry.key].name] = Ignored(*entry[:4], NOT_KNOWN)
    if framework.package in gathered.installed:
        draft.take(Field("release", TEXT), gathered.installed[framework.package])
    for found in gathered.found:
        if found.framework is not framework:
            framework.read_beside(draft, found.entries)
    model = _model(gathered, draft, framework)
    if model.depth > MOST_LAYERS:
        raise ValueError(f"num-layers must be at most {MOST_LAYERS:,}, got {model.depth:,}")
    own = next((found.counts for found in several if found.counts), {})
    counts = own | gathered.counts
    if VISIBLE in own:
        counts[VISIBLE] = own[VISIBLE]
    there = gpus or said_of({k: e for k, e in counts.items() if k not in (*ALL, "ntasks")})[0]
    if framework.takes_all:
        count = there or 1
    else:
        count = 0 if framework.serves else count_of(counts, draft, gpus, framework)
    meant = framework.read(draft, model, count)
    count = meant.gpus
    if meant.server:
        there = there or count
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
        meant.roles,
        meant.leaves,
        meant.handed,
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


def said_of(counts: dict[str, Entry]) -> tuple[int, list[Entry]]:
    """How many GPUs the texts say that there are, and where they say it; 0 where they do not."""
    every = next((counts[key] for key in ALL if key in counts), None)
    each = next((counts[key] for key in (*PER_NODE, VISIBLE) if key in counts), None)
    nodes = next((counts[key] for key in NODES if key in counts), None)
    total = next((counts[key] for key in TOTAL if key in counts), None)
    if every:
        return int(every.value), [every]
    if each:
        return int(each.value) * int(nodes.value if nodes else 1), [each, nodes] if nodes else [each]
    return (int(total.value), [total]) if total else (0, [])


def count_of(counts: dict[str, Entry], draft: Draft, gpus: int | None, framework: Framework) -> int:
    """How many GPUs: as asked, as the launcher says, or as few as the layout takes."""
    said, used = said_of(counts)
    nodes = next((counts[key] for key in NODES if key in counts), None)
    if gpus is not None:
        if said and said != gpus:
            draft.assume("gpus", gpus, f"as asked; the texts say {said}")
        return gpus
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
