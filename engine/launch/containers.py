"""What containers are started with: a line of docker, podman or another runner, a compose file, a manifest of
Kubernetes, the values of a chart. Of each comes the image, the command with the place of each word, its
variables, and how many GPUs it is given where that is said.

Words: docs.docker.com (reference/cli/docker/container/run, compose file services and deploy),
kubernetes.io/docs (a container's command and args, dependent variables, extended resources),
kubeflow.org/docs (PyTorchJob, MPIJob), lws.sigs.k8s.io (leaderWorkerTemplate.size), docs.skypilot.co (task
YAML); all from memory but the chart values, which the frameworks know that they are for.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.frameworks.settings import Entry, Fault
from engine.launch import shell
from engine.launch.shell import Bit, Word
from engine.launch.texts import Source
from engine.launch.yaml import LIST, MAP, TEXT, YamlNode

RUNNERS = ("docker", "podman", "nerdctl", "docker-compose")
SANDBOXES = ("singularity", "apptainer", "enroot")
IN_FRONT = ("sudo", "nohup", "time", "exec", "nice", "stdbuf", "numactl")
# flags of the runners that take no value; every other takes one
BARE = frozenset(
    (
        *("detach", "interactive", "tty", "rm", "privileged", "init", "read-only", "no-healthcheck", "quiet"),
        *("publish-all", "oom-kill-disable", "sig-proxy", "disable-content-trust", "replace", "help", "nv"),
        *("rocm", "contain", "containall", "cleanenv", "writable", "writable-tmpfs", "no-home", "fakeroot"),
        *("nvccli", "no-mount-all", "compat", "unsquash", "root", "rw", "no-deps", "service-ports"),
    )
)
BARE_LETTERS = {"docker": "ditPq", "enroot": "rw", "": "Cecfu"}
VISIBLE = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
BESIDE_AN_IMAGE = (
    *("command", "entrypoint", "args", "extraArgs", "deploy", "gpus", "resources", "ports", "env"),
    "environment",
)
DEEPEST = 40
MOST = 200  # containers of one text


class Started(NamedTuple):
    """A command that starts in a container, or in a machine that a file asks for."""

    image: str
    words: list[Word]
    own: bool  # whether the image's own program stands before the words
    variables: dict[str, list[Word]]
    gpus: Entry | None = None  # for each copy of it, on each node
    nodes: Entry | None = None
    line: int = 0
    copies: Entry | None = None


def image_name(image: str) -> str:
    """An image without its registry's host and its digest, but with its tag."""
    bare = image.split("@")[0]
    first, _, rest = bare.partition("/")
    return rest if rest and ("." in first or ":" in first or first == "localhost") else bare


def is_of(image: str, name: str) -> bool:
    """Whether an image is one of that name, which a mirror keeps behind its last slash; ``name:tag`` also
    asks how the tag begins."""
    bare, _, tag = image_name(image).partition(":")
    asked, _, begins = name.partition(":")
    return bare.split("/")[-1] == asked.split("/")[-1] and tag.startswith(begins)


# -- GPUs ----------------------------------------------------------------------------------------------------
def devices(text: str) -> int:
    """How many devices a list of them names, ``0,1`` or ``"device=0,1"`` or ``2``; 0 where all are meant."""
    bare = text.strip("\"' ")
    for begin in ("device=", "count=", "nvidia.com/gpu="):
        if begin in bare:
            each = bare.split(begin)[1].split('"')[0].split("'")[0].split(",")
            if begin == "count=":
                return _whole(each[0])
            return len([one for one in each if one and one != "all" and "=" not in one])
    return _whole(bare)


def _whole(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 6 else 0


def listed(text: str) -> int:
    """How many devices a variable such as CUDA_VISIBLE_DEVICES names; 0 where that is all, or not known."""
    each = [one.strip() for one in text.strip("\"' ").split(",") if one.strip()]
    fine = all(one.isdigit() or one.startswith(("GPU-", "MIG-")) for one in each)
    return len(each) if fine else 0


def visible(variables: dict[str, list[Word]], file: str) -> Entry | None:
    """How many GPUs the variables let a program see."""
    for name in VISIBLE:
        words = variables.get(name)
        many = listed(words[0].text) if words and words[0].known else 0
        if many and words:
            return Entry(name, str(many), file, words[0].line)
    return None


# -- a line of a shell ---------------------------------------------------------------------------------------
def _verb(words: list[Word]) -> tuple[str, str, int]:
    """The runner, what it is asked to do, and where its options begin; no runner in another command."""
    texts = [word.text.split("/")[-1] for word in words[:60]]
    at = next((place for place, text in enumerate(texts) if text in (*RUNNERS, *SANDBOXES)), -1)
    if at < 0 or any(not _in_front(text) for text in texts[:at]):
        return "", "", 0
    program = texts[at]
    at += 1
    verbs = ("run", "exec", "create", "start", "compose", "container")
    verb = ""
    while (
        at < len(words)
        and (words[at].text in verbs or words[at].text.startswith("-"))
        and verb in ("", "compose", "container")
    ):
        if words[at].text in verbs:
            verb = words[at].text
            at += 1
        else:
            at += 1 if "=" in words[at].text or words[at].text.lstrip("-") in BARE else 2
    known = verb in ("run", "exec", "create") or (verb == "start" and program == "enroot")
    return (program, verb, at) if known else ("", "", 0)


def of_run(words: list[Word], file: str) -> Started | None:
    """What ``docker run`` and its like start; None for every other command."""
    if [word.text for word in words[:2]] == ["kubectl", "run"]:
        return _of_kubectl(words)
    program, verb, at = _verb(words)
    if not program:
        return None
    letters = BARE_LETTERS.get(program, BARE_LETTERS["" if program in SANDBOXES else "docker"])
    variables: dict[str, list[Word]] = {}
    mounts: list[str] = []
    entry: list[Word] = []
    gpus: Entry | None = None
    named = 0  # devices that are named one by one
    while at < len(words) and words[at].text.startswith("-"):
        word, text = words[at], words[at].text
        at += 1
        key, equals, _ = text.lstrip("-").partition("=")
        value = word.without(text.index("=") + 1) if equals else None
        if not text.startswith("--"):
            bare = set(text[1:]) <= set(letters)
            if not bare and len(text) > 2 and not equals:
                key, value = text[1], word.without(2)
        else:
            bare = key in BARE
        if value is None and not bare and at < len(words):
            value = words[at]
            at += 1
        if value is None:
            continue
        if key in ("e", "env"):
            name, has, _ = value.text.partition("=")
            if has:
                variables[name] = [value.without(len(name) + 1)]
        elif key in ("v", "volume", "B", "bind"):
            mounts.append(value.text)
        elif key == "entrypoint":
            entry = [one for each in shell.within(file, value).commands[:1] for one in each]
        elif key in ("gpus", "device"):
            many = devices(value.text) if key == "gpus" or "nvidia.com/gpu=" in value.text else 0
            named = named + many if key == "device" else many
            if named:
                place = value.span() if value.text == str(named) else (-1, -1)
                gpus = Entry(f"--{key}", str(named), file, value.line, place[0], place[1])
    if at >= len(words):
        return None
    image, behind = words[at], mounted(words[at + 1 :], mounts)
    own = verb in ("run", "create") and not entry and program in RUNNERS
    gpus = gpus or visible(variables, file)
    return Started(image.text if own else "", [*entry, *behind], own, variables, gpus, None, image.line)


def _of_kubectl(words: list[Word]) -> Started | None:
    """``kubectl run NAME --image=IMAGE -- arguments``."""
    image = next((at for at, word in enumerate(words) if word.text.startswith("--image")), -1)
    begin = next((at + 1 for at, word in enumerate(words) if word.text == "--"), len(words))
    if image < 0:
        return None
    named = words[image].without(8).text or (words[image + 1].text if image + 1 < len(words) else "")
    own = all(word.text != "--command" for word in words[:begin])
    return Started(named, words[begin:], own, {}, None, None, words[image].line)


def mounted(words: list[Word], mounts: list[str]) -> list[Word]:
    """Words with the folders of the machine in place of those of the container, where a model's name may
    stand."""
    to: dict[str, str] = {}
    for mount in mounts:
        host, _, rest = mount.partition(":")
        folder = rest.split(":")[0].rstrip("/")
        if folder and host.strip("/") and "$" not in host:
            to[folder] = host.rstrip("/")
    found = []
    for word in words:
        text = word.text
        folder = next((f for f in to if (text + "/").startswith(f + "/")), "")
        if not folder or to[folder] == folder:
            found.append(word)
        else:
            found.append(Word((Bit(to[folder] + text[len(folder) :], word.line),), word.known, word.why))
    return found


def _in_front(text: str) -> bool:
    return text in IN_FRONT or text.startswith(("-", "srun", "mpirun")) or "=" in text or text.isdigit()


# -- texts of a file -----------------------------------------------------------------------------------------
def word_of(node: YamlNode, source: Source) -> Word:
    """A text of a YAML file as a word: of each of its lines the part that stands so in the file."""
    raw = source.text[node.start - source.start : node.stop - source.start] if node.start >= 0 else ""
    if raw == node.text:
        return Word((Bit(node.text, node.line, node.start, True),) if raw else ())
    bits: list[Bit] = []
    at, place, line = 0, node.start, node.line
    line += node.style in ("|", ">")
    for piece in raw.split("\n"):
        bare = piece.strip()
        gap = at
        while gap < len(node.text) and node.text[gap] in " \t\r\n":
            gap += 1
        if bare and node.text.startswith(bare, gap):
            if gap > at:
                bits.append(Bit(node.text[at:gap], line, -1, True))
            start = place + len(piece) - len(piece.lstrip())
            bits.append(Bit(bare, line, start, True))
            at = gap + len(bare)
        elif bare:
            break
        place, line = place + len(piece) + 1, line + 1
    if at < len(node.text):
        bits.append(Bit(node.text[at:], min(line, node.line + raw.count("\n")), -1, True))
    return Word(tuple(bits))


def filled(word: Word, variables: dict[str, list[Word]], file: str, opening: str) -> Word:
    """A word with its variables: ``${NAME:-default}`` and ``$NAME`` in a compose file, ``$(NAME)`` in a
    manifest, where nothing else is one. Two dollar signs are one."""
    if "$" not in word.text:
        return word
    bits: list[Bit] = []
    known, why, script = word.known, word.why, " " in word.text.strip()
    for bit in word.bits:
        at = 0
        while at < len(bit.text):
            place = bit.text.find("$", at)
            place = len(bit.text) if place < 0 else place
            if place > at:
                bits.append(Bit(bit.text[at:place], bit.line, bit.start + at if bit.start >= 0 else -1, True))
            if place >= len(bit.text):
                break
            name, default, stop = _variable(bit.text, place, opening)
            if bit.text[place : place + 2] == "$$" or not name:
                stop = place + (2 if bit.text[place : place + 2] == "$$" else 1)
                bits.append(Bit("$", bit.line, -1, True))
            elif name in variables and all(one.known for one in variables[name]):
                for one in variables[name]:
                    bits += [b if b.line else b._replace(line=bit.line) for b in one.bits]
            elif default is not None:
                begin = bit.text.find(default, place)
                bits.append(Bit(default, bit.line, bit.start + begin if bit.start >= 0 else -1, True))
            else:
                known = False
                words = f"the variable {bit.text[place:stop][:40]} is not known without running it"
                why = why or Fault(file, bit.line, words)
                if script:  # which is read itself
                    begin = bit.start + place if bit.start >= 0 else -1
                    bits.append(Bit(bit.text[place:stop], bit.line, begin, True))
            at = stop
    return Word(tuple(bits), known, why)


def _variable(text: str, place: int, opening: str) -> tuple[str, str | None, int]:
    """The name, the default and the end of a variable that may begin here."""
    closing = {"{": "}", "(": ")"}.get(text[place + 1 : place + 2], "")
    if closing and (opening == "{") == (closing == "}"):
        end = text.find(closing, place)
        inside = text[place + 2 : end] if end > 0 else ""
        name = inside
        for cut in (":-", "-", ":?", "?", ":+", "+"):
            name = name.split(cut)[0]
        behind = inside[len(name) :]
        default = behind.lstrip(":")[1:] if behind.lstrip(":")[:1] == "-" else None
        return (name if name and set(name) <= shell.NAME else ""), default, end + 1
    end = place + 1
    while opening == "{" and end < len(text) and text[end] in shell.NAME:
        end += 1
    return text[place + 1 : end], None, end


def words_of(
    node: YamlNode | None, source: Source, variables: dict[str, list[Word]], opening: str
) -> list[Word]:
    """A command as a file has it: a list of words, or a text that is cut into them."""
    if node is None:
        return []
    if node.kind == LIST:
        each = [one for one in node.items if one.kind == TEXT]
        return [filled(word_of(one, source), variables, source.name, opening) for one in each]
    if node.kind != TEXT or not node.text.strip():
        return []
    word = filled(word_of(node, source), variables, source.name, opening)
    found = [one for words in shell.within(source.name, word).commands for one in words]
    return [_unblanked(one, source.name) for one in found]


def _unblanked(word: Word, file: str) -> Word:
    """A flag behind a backslash that was to continue a line. Where the lines are folded it makes the blank
    behind it a part of the word."""
    if word.text[:1] != " " or not word.text.strip().startswith("-"):
        return word
    flag = word.text.strip()[:40]
    words = f"the backslash before {flag} makes the blank before it a part of the word: leave it out"
    return Word(word.without(1).bits, word.known, word.why or Fault(file, word.line, words))


def _environment(node: YamlNode | None, source: Source) -> dict[str, list[Word]]:
    """Variables of a container: a map, a list of ``NAME=value``, or one of names and values."""
    found: dict[str, list[Word]] = {}
    if node is None:
        return found
    for key, item in node.pairs():
        if item.kind == TEXT:
            found[key.text] = [word_of(item, source)]
    for item in node.items if node.kind == LIST else []:
        value = item.get("value") if item.kind == MAP else None
        if item.kind == TEXT and "=" in item.text:
            name = item.text.split("=", 1)[0]
            found[name] = [word_of(item, source).without(len(name) + 1)]
        elif value is not None and value.kind == TEXT:
            found[item.word("name")] = [word_of(value, source)]
    return found


# -- a file --------------------------------------------------------------------------------------------------
class _Files:
    """The containers of a file, as they are found."""

    def __init__(self, source: Source, variables: dict[str, list[Word]]) -> None:
        self.source, self.given = source, variables
        self.found: list[Started] = []
        self.seen = 0

    def look(self, node: YamlNode, of: YamlNode | None, pod: bool, depth: int) -> None:
        """Containers anywhere below a node; ``of`` is the workload that asks for them."""
        self.seen += 1
        if depth > DEEPEST or self.seen > 20_000 or len(self.found) >= MOST:
            return
        if node.kind == LIST:
            for item in node.items:
                self.look(item, of, pod, depth + 1)
        if node.kind != MAP:
            return
        of = node if node.word("kind") and node.get("spec") is not None else of
        built = node.get("build") is not None and node.get("command") is not None
        if image_of(node) or built or (pod and node.get("command") is not None):
            self.container(node, of, pod)
            return
        for key, item in node.pairs():
            if key.text not in ("initContainers", "init_containers"):
                self.look(item, of, pod or key.text == "containers", depth + 1)

    def container(self, node: YamlNode, of: YamlNode | None, pod: bool) -> None:
        """One container of a pod, or one service of a compose file."""
        opening = "(" if pod else "{"
        env = _environment(node.get("env" if pod else "environment"), self.source)
        env = {
            name: [filled(w, self.given | env, self.source.name, opening) for w in ws]
            for name, ws in env.items()
        }
        first, second = ("command", "args") if pod else ("entrypoint", "command")
        lookup = env if pod else self.given
        if not pod and node.get("args") is not None and node.get("entrypoint") is None:
            first, second = "command", "args"  # a chart's values
        image = node.get("image")
        entry = node.get(first) or (image.get("command") if image is not None and image.kind == MAP else None)
        if entry is not None and entry.kind == TEXT and first == "entrypoint" and not entry.text.strip():
            entry = None
        front = words_of(entry, self.source, lookup, opening)
        behind = node.get(second)
        words = words_of(behind, self.source, lookup, opening)
        script = behind is not None and behind.kind == TEXT and front and front[-1].text in ("-c", "-lc")
        if behind is not None and script and len(words) > 1:
            words = [filled(word_of(behind, self.source), lookup, self.source.name, opening)]
        words = [*front, *words]
        words += words_of(node.get("extraArgs"), self.source, lookup, opening)
        volumes = node.get("volumes")
        each = volumes.items if volumes is not None and volumes.kind == LIST and not pod else []
        words = mounted(words, [one.text for one in each if one.kind == TEXT])
        gpus = self.limit(node) if pod or node.get("resources") is not None else self.reserved(node)
        self.found.append(
            Started(
                image_of(node),
                words,
                not front,
                env,
                gpus or visible(env, self.source.name),
                self.nodes(of),
                node.line,
                self.copies(of, node),
            )
        )

    def limit(self, node: YamlNode) -> Entry | None:
        """The GPUs of a container's limits, or else of its requests; parts of GPUs are none."""
        for kind in ("limits", "requests"):
            asked = node.at("resources", kind)
            for key, item in asked.pairs() if asked is not None else []:
                if key.text.split("/")[-1] == "gpu" and _whole(item.text):
                    return self.entry(key.text, item)
        return None

    def entry(self, key: str, item: YamlNode) -> Entry:
        """A count with its place."""
        start, stop = word_of(item, self.source).span()
        return Entry(key, item.text, self.source.name, item.line, start, stop)

    def reserved(self, node: YamlNode) -> Entry | None:
        """The GPUs of a service."""
        asked = node.at("deploy", "resources", "reservations", "devices")
        own = node.get("gpus")
        each = list(asked.items) if asked is not None and asked.kind == LIST else []
        each += list(own.items) if own is not None and own.kind == LIST else []
        if own is not None and own.kind == TEXT and _whole(own.text):
            return self.entry("gpus", own)
        for one in each:
            ids, count = one.list("device_ids"), one.get("count")
            if ids:
                many = sum(len(one.text.split(",")) for one in ids)
                return Entry("device_ids", str(many), self.source.name, ids[0].line)
            if count is not None and _whole(count.text):
                return self.entry("count", count)
        return None

    def nodes(self, of: YamlNode | None) -> Entry | None:
        """The nodes of one job, or of one group of pods that serve together."""
        if of is None:
            return None
        size = of.at("spec", "leaderWorkerTemplate", "size")
        if size is not None and _whole(size.text):
            return self.entry("size", size)
        many, line = 0, 0
        jobs = of.at("spec", "pytorchReplicaSpecs")
        for _, item in jobs.pairs() if jobs is not None else []:
            many, line = many + max(1, _whole(item.word("replicas"))), item.line
        workers = of.at("spec", "mpiReplicaSpecs", "Worker", "replicas")
        if workers is not None:
            return self.entry("replicas", workers)
        return Entry("replicas", str(many), self.source.name, line) if many > 1 else None

    def copies(self, of: YamlNode | None, node: YamlNode) -> Entry | None:
        """How many equal servers a workload asks for, or a service."""
        own = node.at("deploy", "replicas")
        if own is not None:
            return self.entry("replicas", own) if _whole(own.text) > 1 else None
        kinds = ("Deployment", "StatefulSet", "LeaderWorkerSet", "ReplicaSet")
        many = of.at("spec", "replicas") if of is not None and of.word("kind") in kinds else None
        return self.entry("replicas", many) if many is not None and _whole(many.text) > 1 else None


def image_of(node: YamlNode) -> str:
    """The image of a container or of a service, or of a chart's values; nothing where there is none."""
    image = node.get("image")
    if image is None:
        return ""
    if image.get("command") is None and all(node.get(key) is None for key in BESIDE_AN_IMAGE):
        return ""
    if image.kind == MAP:
        tag = image.word("tag")
        return image.word("repository") + (f":{tag}" if tag else "")
    return image.text if image.kind == TEXT else ""


def of_file(roots: list[YamlNode], source: Source, variables: dict[str, list[Word]]) -> list[Started]:
    """What the containers of a YAML file start; nothing where it is about something else."""
    files = _Files(source, variables)
    for root in roots:
        task = root.get("run") or root.get("commands")
        if task is not None and root.get("jobs") is None and root.get("services") is None:
            files.found += _task(root, task, source)
        else:
            files.look(root, None, False, 0)
    return files.found


def _task(root: YamlNode, task: YamlNode, source: Source) -> list[Started]:
    """A task of SkyPilot, ``run: |`` on ``resources.accelerators: H100:8``, or one of dstack, with a list of
    ``commands`` and ``resources.gpu``."""
    env = _environment(root.get("envs") or root.get("env"), source)
    asked = root.at("resources", "accelerators")
    asked = asked if asked is not None else root.at("resources", "gpu")
    gpus: Entry | None = None
    if asked is not None:  # ``H100:8``, ``{H100: 8}`` or ``{H100:8, A100:8}``, any of which will do
        each = [asked.text] if asked.kind == TEXT else [one.text for one in asked.items or asked.keys]
        if asked.kind == MAP:
            each = [k.text if ":" in k.text else f"{k.text}:{i.text or 1}" for k, i in asked.pairs()]
        if asked.get("count") is not None:
            each = [f"gpu:{asked.word('count')}"]
        counts = {one.split(":")[-1] if ":" in one else "1" for one in each}
        if len(counts) == 1 and _whole(next(iter(counts))):
            gpus = Entry("accelerators", next(iter(counts)), source.name, asked.line)
    count = root.get("num_nodes") or root.get("nodes")
    nodes = None
    if count is not None and _whole(count.text):
        nodes = Entry("num_nodes", count.text, source.name, count.line)
    for name, entry in (("SKYPILOT_NUM_GPUS_PER_NODE", gpus), ("SKYPILOT_NUM_NODES", nodes)):
        value = entry.value if entry else "1" if name == "SKYPILOT_NUM_NODES" else ""
        if value:
            env[name] = [Word((Bit(value, entry.line if entry else root.line),))]
    each = task.items if task.kind == LIST else [task]
    scripts = [word_of(one, source) for one in each if one.kind == TEXT and one.text.strip()]
    shell_c = [Word((Bit("bash", root.line),)), Word((Bit("-c", root.line),))]
    return [Started("", [*shell_c, one], False, env, gpus, nodes, one.line) for one in scripts]
