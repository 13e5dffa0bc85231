"""What servers share: how the words that start one are read, and how a deployment is written as commands.

A server's module has its arguments, its defaults, what it does with ranks that share experts, and the command
of one pool; what it has no flag for is a comment. What a program holds beside weights and cache is in its own
module, as ``holds``; where that says nothing, a fixed size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from engine import catalog
from engine.catalog.models import Model, bytes_of_a_weight
from engine.frameworks.described import Server
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, Where
from engine.frameworks.known_models import stored_formats, stored_precision
from engine.frameworks.settings import Draft, Entry, Ignored, Setting
from engine.frameworks.writing import Words, keys_of

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.serving.deployment import Deployment
    from engine.serving.replica import Replica

DRAFT = "a draft model's memory and time are not modelled"
UNMODELLED = {
    "cpu-offload-gb": "weights on the host are not modelled",
    "speculative-config": DRAFT,
    "speculative-model": DRAFT,
    "speculative-algorithm": DRAFT,
    "speculative-draft-model-path": DRAFT,
    "enable-lora": "adapters are not modelled",
    "lora-paths": "adapters are not modelled",
    "num-gpu-blocks-override": "a cache of a given number of blocks is not modelled",
}
STORED = {
    "fp8": "fp8",
    "fp8_per_tensor": "fp8",
    "fp8_per_block": "fp8",
    "w8a8_fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "modelopt": "fp8",
    "modelopt_fp8": "fp8",
    "ptpc_fp8": "fp8",
    "awq": "int4",
    "awq_marlin": "int4",
    "gptq": "int4",
    "gptq_marlin": "int4",
    "marlin": "int4",
    "bitsandbytes": "int4",
    "bnb": "int4",
    "modelopt_fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "w8a8_int8": "int8",
    "gguf": "int4",
}
# in which a checkpoint is stored whose name or flag says so; what else it has (embeddings, norms, a tower
# that reads pictures) stays in 16 bits
KEPT = {"int4": "rest awq", "int8": "rest int8"}
UNITS = {"k": 1000, "K": 1024, "m": 10**6, "M": 2**20}
BOTH, READS, WRITES = "", "prefill", "decode"  # what a server of the deployment does
CUT = 8  # letters that a flag has at least where it is cut short
PER_LINE = 100  # characters
USUAL_NODE = 8  # GPUs


class Pool(NamedTuple):
    """Equal replicas that do the same."""

    role: str
    replicas: int
    of: Replica


NVIDIA_S = "attention bf16, rest nvfp4"  # what NVIDIA's checkpoints in NVFP4 mostly are


class Group(NamedTuple):
    """Equal processes on a node, or on each of several."""

    pool: Pool  # with as many replicas as one process starts
    here: int  # on a node
    nodes: int
    last: int  # on the last node
    each: int  # GPUs of a process
    first: int  # GPU of the node that they begin at
    alone: bool = False  # whether the other pool is on nodes of its own


SHEBANG = "#!/usr/bin/env bash"


def placed(of: Deployment, by_one_command: bool) -> list[Group]:
    """The processes of each pool on nodes of the usual size. Two pools share a node where both fit on it."""
    found, first = [], 0
    share_a_node = of.gpus <= USUAL_NODE
    for pool in pools(of):
        per_node = max(1, USUAL_NODE // pool.of.gpus)
        here = min(pool.replicas, per_node)
        nodes = -(-pool.replicas // here)
        last = pool.replicas - (nodes - 1) * here
        together = by_one_command and pool.of.dp == 1
        one = pool._replace(replicas=here if together else 1)
        each = pool.of.gpus * one.replicas
        alone = of.apart and not share_a_node
        found.append(Group(one, 1 if together else here, nodes, last, each, first, alone))
        first = first + pool.replicas * pool.of.gpus if share_a_node else 0
    return found


def said_above(group: Group) -> list[str]:
    """What a group of processes is, and on how many nodes it runs."""
    pool, replicas = group.pool, group.here * group.pool.replicas
    what = f"that {pool.role}" if pool.role else "alike"
    count = "once" if replicas == 1 else f"{replicas} times"
    told = [f"# {count}, on {pool.of.gpus} GPUs{'' if replicas == 1 else ' each'}, {what}:"]
    if nodes_of(pool.of) > 1:
        count = "once, on" if group.nodes == 1 else f"{group.nodes} times, each on"
        return [f"# {count} {nodes_of(pool.of)} nodes of {USUAL_NODE} GPUs, {what}:"]
    if group.nodes > 1:
        rest = "" if group.last == replicas else f", of which the last has {group.last}"
        told.insert(0, f"# on each of {group.nodes} nodes of {USUAL_NODE} GPUs{rest}:")
    return told


def nodes_of(replica: Replica) -> int:
    """Over how many nodes of the usual size a replica lies."""
    return -(-replica.gpus // USUAL_NODE)


def indented(lines: list[str]) -> list[str]:
    """Lines inside something."""
    return [f"  {line}" for line in lines]


def in_background(lines: list[str]) -> list[str]:
    """A command that does not wait for its end."""
    return [*lines[:-1], f"{lines[-1]} &"] if lines else []


class ServerCommand(Framework):
    """A server: the word that starts it, and its flags."""

    serves = True
    unmodelled = UNMODELLED
    names_model = "write it behind `serve`, or give --model, or its config.json"
    separator = "-"
    new_keys = (Where.FLAG, Where.BEHIND)
    program = ""  # what starts it, with ``serve`` behind it unless it does so alone
    alone = False
    module = ""  # or how the Python module is called that does
    joins = "-"  # between the words of a flag that is written
    share = 0.9  # of the memory that it takes by default …
    of_rest = False  # … or of what is left beside the weights
    requests = 256  # at once, by default
    limits_all = False  # whether its limits are those of all groups that share experts together
    fp8 = "fp8"  # what it calls weights in 16 bits that it stores in fp8 itself
    of_fp8 = ""  # what its checkpoint in fp8 has to be
    public: dict[str, dict[str, str]] = {}  # checkpoint in 16 bits -> the same in other formats
    loads_whole = False  # whether it loads all in 16 bits before it shrinks them to fp8
    by_one_command = True  # whether a command may start several replicas
    port = 8000  # of the first process …
    port_step = 1  # … and how far the next one's is away
    listens = ""  # the address that it answers at, where that is not every one of its machine's by default
    written_for = ""  # the releases whose own parser takes what is written
    image = ""  # a release of its image, where its containers are written
    image_starts = False  # whether that starts its program by itself

    def claims(self, command: Command) -> Claim:
        """Its program or its module is named."""
        words = command.words
        for at, word in enumerate(words):
            serve = at + 1 < len(words) and words[at + 1] == "serve"
            started = self.program and word.split("/")[-1] == self.program and (serve or self.alone)
            if started or (self.module and word.startswith(self.module)):
                return Claim(Sure.NAMED, at + (2 if serve else 1))
        return Claim(Sure.NOT)

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """The flags, and the model, which stands behind ``serve``, or was taken for an unknown flag's
        value."""
        found = [self.whole(entry) for entry in found]
        if any(entry.key in self.fields and self.fields[entry.key].name == "model" for entry in found):
            return found
        if not bare and any(_names_a_file(self, entry) for entry in found):
            return found
        for entry in [*bare, *(each for each in found if each.key not in self.fields)]:
            if "/" in entry.value or catalog.model_key(entry.value):
                return [*found, entry._replace(key="model")]
        return found + [entry._replace(key="model") for entry in bare[:1]]

    def whole(self, entry: Entry) -> Entry:
        """A flag that is cut short with its whole key, as Python's parser of arguments takes it."""
        known = [*self.fields, *self.unmodelled]
        if len(entry.key) < CUT or entry.key in known:
            return entry
        begun = [key for key in known if key.startswith(entry.key)]
        return entry._replace(key=begun[0]) if len(begun) == 1 else entry

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """The server, the format of its products, and the GPUs of all its replicas."""
        if d.given("config"):
            entry = d.settings["config"].entry
            d.unmodelled.append(Ignored(*entry[:4], "this file is not among these texts: add it"))
        tp, pp = max(1, d.get("tp", 1)), max(1, d.get("pp", 1))
        replicas = max(1, d.given("replicas") or 1)
        release = self.release(d)
        usual = self.usual_share(release)
        share = d.get("share", usual)
        if not 0 < share <= 1:
            d.refuse(
                f"ValueError: {self.flag('share')[0][2:]} must be above 0 and at most 1, got {share:g}.",
                "share",
            )
            share = usual
        text = d.given("longest")
        longest = (tokens_of(d, text, "longest") if text else None) or shape.max_context
        if not text:
            d.assume("longest", longest, "the model's own limit")
        requests_said = bool(d.given("requests"))
        requests = max(1, d.get("requests", self.requests))
        stored = STORED.get((d.given("quantization") or "").lower()) or stored_precision(
            d.given("model") or ""
        )
        kept = (d.get("kv", "auto", "16 bits") or "auto").lower()
        kind = (d.given("dtype") or "bfloat16").lower()
        precision = (
            "fp32" if kind in ("float32", "float") else "fp16" if kind in ("half", "float16") else "bf16"
        )
        if "nvfp4" in (d.given("model") or "").lower():
            stored = None  # what its name says, whatever the flag for its maker's formats
        formats = NVIDIA_S if "nvfp4" in (d.given("model") or "").lower() else shape.stored
        if stored == "fp8" or (stored is None and "fp8" in formats):
            precision = "fp8"
        weights = bytes_of_a_weight(shape, formats) if stored is None and formats else stored
        named_so = stored_precision(d.given("model") or "")
        online = stored == "fp8" and named_so is None and "fp8" not in shape.stored
        for name in ("exchange", "exchange_mode", "halves", "balanced", "dp_head", "ep", "expert_kernels"):
            d.given(name)
        tp, dp, replicas = self.spread(d, shape, tp, replicas)
        if shape.heads % tp:
            d.refuse(
                f"ValueError: Total number of attention heads ({shape.heads}) must be divisible by tensor "
                f"parallel size ({tp}).",
                "tp",
            )
        kv = "fp8" if "fp8" in kept else "fp32" if precision == "fp32" else "bf16"
        chunk = d.given("chunk") or None
        if isinstance(chunk, str):
            chunk = self.tokens_of_a_step(d, chunk)
        if self.limits_all and dp > 1:
            requests, chunk = max(1, requests // dp), chunk and chunk // dp
        slots = self.slots(d, shape)
        server = Server(
            tp, pp, replicas, share, self.of_rest, longest, requests, weights, kv, chunk, dp, *slots
        )
        server = replace(
            server,
            formats=stored_formats(d.given("model") or "") or KEPT.get(stored or "", ""),
            loaded_whole=online and self.loads_whole,
            on_host_bytes=(d.given("on_host") or 0.0) * 2.0**30,
            eager=bool(d.given("eager")),
            requests_said=requests_said,
            share_said=d.given("share") is not None,
            release=release,
        )
        server = self.more_of(d, shape, server)
        return Meant(tp * pp * dp * replicas, precision, server=server)

    def tokens_of_a_step(self, d: Draft, text: str) -> int | None:
        """What the flag for the tokens of a step says; None if it is no number."""
        return tokens_of(d, text, "chunk")

    def more_of(self, d: Draft, shape: Model, server: Server) -> Server:
        """A server with what only this program's flags say."""
        return server

    def release(self, d: Draft) -> tuple[int, int]:
        """Of which release the program is, where its memory depends on that."""
        return 0, 0

    def usual_share(self, release: tuple[int, int]) -> float:
        """The share that a release takes by default."""
        return self.share

    def slots(self, d: Draft, shape: Model) -> tuple[int, int]:
        """How many adapters a GPU keeps beside the base, and of which rank."""
        return 0, 1

    def spread(self, d: Draft, shape: Model, tp: int, replicas: int) -> tuple[int, int, int]:
        """Tensor ranks, groups of them that share the experts, and replicas."""
        return tp, 1, replicas

    def flag(self, name: str, *value: str) -> tuple[str, ...]:
        """The flag for one of our names, or one that is only written, with its value."""
        return f"--{keys_of(self.fields).get(name, name).replace('-', self.joins)}", *value

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The flag that sets one of our names."""
        text = f"{value:g}" if isinstance(value, float) else str(value)
        return [(self.flag(name)[0][2:], text)] if name in keys_of(self.fields) else []

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """The lines that start a deployment, each pool by one command; ``name`` is the checkpoint's, unless
        given the model's public repository on Hugging Face, or the catalogue's key where there is none."""
        of: Deployment = what
        front = self.front(of)
        lines = [SHEBANG, *(f"# {line}" for line in self.told(of, bool(name)))]
        groups = placed(of, self.by_one_command)
        if len(groups) == 1 and groups[0].here == 1 and not front:
            lines += said_above(groups[0])
            return "\n".join([*lines, *self.started(of, name or self.served(of), groups[0].pool)]) + "\n"
        apart = groups[0].alone
        if apart:
            lines += ["# on each node say which pool it is of: POOL=prefill or POOL=decode"]
        for at, group in enumerate(groups):
            before = 0 if apart else sum([earlier.here for earlier in groups[:at]])
            port = self.port + self.port_step * before
            told = [*([] if at else in_background(front)), *said_above(group)]
            told += self.several(of, name or self.served(of), group, port)
            if apart:
                told = [
                    f'if [ "${{POOL:?prefill or decode}}" = {group.pool.role} ]; then',
                    *indented(told),
                    "fi",
                ]
            lines += told
        return "\n".join([*lines, "wait"]) + "\n"

    def told(self, of: Deployment, is_named: bool) -> list[str]:
        """What is started, and what the flags cannot say."""
        name = f"{self.name} ({self.written_for})" if self.written_for else self.name
        return [_heading(of, name), *([] if is_named else _named(of)), *self.notes(of)]

    def several(self, of: Deployment, name: str, group: Group, port: int) -> list[str]:
        """The processes of a group on a node, each on its own GPUs and at its own port, in the background."""
        counted, gpus, step = group.here > 1, group.each, self.port_step
        whose = [f"{group.first + gpu}" for gpu in range(gpus)]
        place = ",".join([f"$(({gpus} * i + {gpu}))" for gpu in whose] if counted else whose)
        before = [f"CUDA_VISIBLE_DEVICES={place}"] if gpus <= USUAL_NODE else []
        along = "i" if step == 1 else f"{step} * i"
        at = f"$(({port} + {along}))" if counted else f"{port}"
        before += self.variables(of, group, counted)
        told = self.started(of, name, group.pool, at)
        if before:
            told = [f"{' '.join(before)} \\", *indented(told)]
        if not counted:
            return in_background(told)
        numbers = " ".join([f"{i}" for i in range(group.here)])
        return [f"for i in {numbers}; do", *indented(in_background(told)), "done"]

    def served(self, of: Deployment) -> str:
        """What is served where nobody has named a checkpoint: the public one, if it is in this format or the
        program makes it so; else yours."""
        if as_stored(of) or (of.weights == "fp8" and in_16_bits(of) and not self.of_fp8):
            return checkpoint(of) or of.model
        return self.public.get(checkpoint(of), {}).get(of.weights, "") or unnamed(of)

    def variables(self, of: Deployment, group: Group, counted: bool) -> list[str]:
        """Variables of a process: what must differ from its neighbours', and what no flag says."""
        return []

    def over_nodes(self, one: Replica) -> list[tuple[str, ...]]:
        """What the command of a replica says where it runs once on each of several nodes."""
        return []

    def front(self, of: Deployment) -> list[str]:
        """What stands in front of the servers."""
        return []

    def started(self, of: Deployment, name: str, pool: Pool, port: str = "") -> list[str]:
        """The command of one process of a pool, at a port of its own where one is given."""
        raise ValueError("no command starts this server")

    def at_port(self, port: str) -> list[tuple[str, ...]]:
        """The flags for the address and the port at which a process answers."""
        if not port:
            return []
        host = [self.flag("host", self.listens)] if self.listens else []
        return [*host, self.flag("port", port)]

    def notes(self, of: Deployment) -> list[str]:
        """What the flags cannot say."""
        told = self.stored(of)
        if of.drafts is not None:
            told.append(
                f"{of.drafts.drafted} drafted tokens a step were planned: name your drafts to the server"
            )
        if max(of.reads.gpus, of.replica.gpus) > USUAL_NODE:
            told += self.on_each_node()
        return told + self.beside_pools(of)

    def on_each_node(self) -> list[str]:
        """What to do for a replica that lies over several nodes."""
        return [
            "a replica on several nodes: its command runs on each, with FIRST=the address of the first of",
            "them, and with LATER=1 on the second, LATER=2 on the third and so on",
        ]

    def stored(self, of: Deployment) -> list[str]:
        """What the checkpoint has to be."""
        if as_stored(of):
            return [] if in_16_bits(of) else [f"this checkpoint is {YOURS[of.weights]} as it comes"]
        if of.weights == "int4":
            return ["the checkpoint has to be one in 4 bits (AWQ or GPTQ): name yours"]
        return [self.of_fp8] if of.weights == "fp8" and self.of_fp8 else []

    def beside_pools(self, of: Deployment) -> list[str]:
        """What two pools need beside their servers."""
        router = "in front of the two pools stands a router of yours, which sends each request to both"
        return [router] if of.apart else []

    def quantization(self, of: Deployment) -> list[tuple[str, ...]]:
        """The flag for the format of the weights, where one is needed."""
        if of.weights == "bf16" or as_stored(of):
            return []
        return [self.flag("quantization", {"fp8": self.fp8, "int4": "awq_marlin"}[of.weights])]


def _names_a_file(of: Framework, entry: Entry) -> bool:
    """Whether a flag names a file of flags, which may name the model."""
    return entry.key in of.fields and of.fields[entry.key].name == "config"


def pools(of: Deployment) -> list[Pool]:
    """The pools of a deployment: one, or that which prefills and that which decodes."""
    if not of.apart:
        return [Pool(BOTH, of.replicas, of.replica)]
    return [Pool(READS, of.prefill_replicas, of.reads), Pool(WRITES, of.decode_replicas, of.replica)]


def tokens_of(d: Draft, text: str, name: str) -> int | None:
    """A number of tokens, which may be written 32k; None if it is no number."""
    scale = UNITS.get(text[-1:], 1)
    digits = text[:-1] if scale > 1 else text
    if not digits.isdigit() or len(digits) > 12 or not int(digits):
        d.refuse(f"ValueError: {text[:20]!r} is no number of tokens", name)
        return None
    return int(digits) * scale


def _heading(of: Deployment, name: str) -> str:
    """What the commands start."""
    pools = (
        f"{of.prefill_replicas} that prefill and {of.decode_replicas} that decode" if of.apart else "alike"
    )
    return (
        f"{name}: {of.split} on {of.gpu}, {pools}, {of.weights} weights, "
        f"for {of.load.per_s:g} requests a second"
    )


def checkpoint(of: Deployment) -> str:
    """The model's public repository on Hugging Face, of what chats where the model itself does not; empty for
    one that has none, or is none of the catalogue's."""
    known = catalog.all_models()
    if of.model not in known:
        return ""
    return known[of.model].chat or known[of.model].checkpoint


YOURS = {"int4": "in 4 bits", "fp8": "in fp8", "bf16": "in 16 bits"}


def unnamed(of: Deployment) -> str:
    """In place of a checkpoint that is yours to name: a shell stops there, and says so."""
    return f'"${{CHECKPOINT:?name a checkpoint {YOURS[of.weights]}}}"'


def _named(of: Deployment) -> list[str]:
    """What the commands take as the model, where nobody has named one."""
    name = checkpoint(of)
    if not name:
        return [f"name your checkpoint: {of.model} is this catalogue's key, and we know of no public one"]
    if catalog.model(of.model).access == "gated":
        return [f"{name} is gated: ask for access on huggingface.co, and set HF_TOKEN"]
    return []


def as_stored(of: Deployment) -> bool:
    """Whether the public checkpoint has its weights in this format already, so that no flag says so."""
    known = catalog.all_models()
    stored = known[of.model].stored if of.model in known else ""
    if of.weights == "int4":
        return "mxfp4" in stored or "int4" in stored
    return "fp8" in stored if of.weights == "fp8" else not stored


def in_16_bits(of: Deployment) -> bool:
    """Whether the public checkpoint has all weights in 16 bits."""
    known = catalog.all_models()
    return of.model not in known or not known[of.model].stored


def command(words: list[tuple[str, ...]], start: str) -> list[str]:
    """One command, its flags on as many lines as they need."""
    lines = [start]
    for flag in words:
        text = " ".join(flag)
        if len(lines[-1]) + len(text) + 3 > PER_LINE:
            lines[-1] += " \\"
            lines.append(f"  {text}")
        else:
            lines[-1] += f" {text}"
    return lines
