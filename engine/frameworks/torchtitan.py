"""torchtitan's job file, and the same settings on a command line (``--training.local_batch_size 2``).

Names, defaults and errors: pytorch/torchtitan torchtitan/config/job_config.py at commit 000204a4 (2025) and
at 0.2.0, parallel_dims.py and train.py. What is written is for 0.2.x, and its head says so: 0.3.0 reads no
file of settings, but a function of Python (--module, --config) and flags beside it (config/manager.py:48).
Most keys are the same there; gone are [model], [activation_checkpoint] mode, [quantize],
context_parallel_rotate_method, expert_tensor_parallel_degree and disable_loss_parallel, and
enable_async_tensor_parallel is one of [compile] (config/configs.py of 0.3.0).

Left out: what selective checkpointing by operator keeps in models with experts, latents or without a gate. It
is counted as half of the layers recomputed, and said so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import catalog
from engine.base import ops
from engine.base.types import Real
from engine.catalog.models import Model
from engine.catalog.software import overlaps
from engine.frameworks.framework import Claim, Command, Framework, LogLine, Meant, Sure, Where
from engine.frameworks.known_models import named
from engine.frameworks.settings import FLAG, TEXT, Draft, Entry, Field, Ignored, Setting
from engine.frameworks.writing import Line, Words, any_is_needed, given, keys_of
from engine.mechanism import memory
from engine.step import legality
from engine.step.constraints import EQUAL, Ability
from engine.step.layout import Job, Layout

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.step.cases import ExportedRun

FIELDS = {
    "model.name": Field("model_name", TEXT),
    "model.flavor": Field("flavor", TEXT),
    "model.hf_assets_path": Field("assets", TEXT),
    "model.tokenizer_path": Field("assets", TEXT),
    "model.converters": Field("converters", TEXT),
    "training.local_batch_size": Field("local_batch"),
    "training.batch_size": Field("local_batch"),
    "training.global_batch_size": Field("global_batch", TEXT),
    "training.seq_len": Field("seq"),
    "training.mixed_precision_param": Field("param_dtype", TEXT),
    "training.dtype": Field("dtype", TEXT),
    "training.compile": Field("compile", FLAG),
    "compile.enable": Field("compile_enable", FLAG),
    "compile.components": Field("components", TEXT),
    "parallelism.data_parallel_replicate_degree": Field("replicate", TEXT),
    "parallelism.data_parallel_shard_degree": Field("shard", TEXT),
    "parallelism.fsdp_reshard_after_forward": Field("reshard", TEXT),
    "parallelism.tensor_parallel_degree": Field("tp"),
    "parallelism.enable_async_tensor_parallel": Field("overlap_tensor", FLAG),
    "parallelism.disable_loss_parallel": Field("whole_loss", FLAG),
    "parallelism.pipeline_parallel_degree": Field("pp"),
    "parallelism.pipeline_parallel_schedule": Field("schedule", TEXT),
    "parallelism.pipeline_parallel_layers_per_stage": Field("layers_per_stage"),
    "parallelism.pipeline_parallel_microbatch_size": Field("micro_batch"),
    "parallelism.context_parallel_degree": Field("cp"),
    "parallelism.context_parallel_rotate_method": Field("rotate", TEXT),
    "parallelism.expert_parallel_degree": Field("ep"),
    "parallelism.expert_tensor_parallel_degree": Field("expert_tp"),
    "activation_checkpoint.mode": Field("ac_mode", TEXT),
    "activation_checkpoint.selective_ac_option": Field("ac_option", TEXT),
    "quantize.linear.float8.recipe_name": Field("float8", TEXT),
    "quantize.linear.float8.enable_fsdp_float8_all_gather": Field("float8_gather", FLAG),
    "quantize.linear.float8.filter_fqns": Field("not_in_float8", TEXT),
    "float8.enable_float8_linear": Field("float8_linear", FLAG),
    "float8.recipe_name": Field("float8", TEXT),
    "float8.enable_fsdp_float8_all_gather": Field("float8_gather", FLAG),
    "optimizer.name": Field("optimizer", TEXT),
}
FIELDS |= {
    f"experimental.{key.split('.')[1]}": field
    for key, field in FIELDS.items()
    if key.startswith(("parallelism.pipeline", "parallelism.context"))
}
KEYS = keys_of(FIELDS)
FIELDS["training.tensor_parallel_degree"] = FIELDS[KEYS["tp"]]
ROWWISE = (
    "fp8 with a scale for each row has kernels of its own (a step takes 1.4 times as long), not modelled"
)
UNMODELLED = {"training.enable_cpu_offload": "parameters offloaded to the host are not modelled"}
# classes of torch.distributed.pipelining that have the orders of our schedules, block by block
TORCH_SCHEDULES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "zb-v": "ZBVZeroBubble",
    "dualpipe-v": "DualPipeV",
}
# the models that it has by name, from this catalogue's keys; of two with one name the last is read
BY_NAME = {
    "llama3-8b": ("llama3", "8B"),
    "llama3-70b": ("llama3", "70B"),
    "llama3.1-8b": ("llama3", "8B"),
    "llama3.1-70b": ("llama3", "70B"),
    "llama3.1-405b": ("llama3", "405B"),
    "llama4-scout": ("llama4", "17bx16e"),
    "llama4-maverick": ("llama4", "17bx128e"),
    "deepseek-v2-lite": ("deepseek_v3", "16B"),
    "deepseek-v3": ("deepseek_v3", "671B"),
    "qwen3-0.6b": ("qwen3", "0.6B"),
    "qwen3-8b": ("qwen3", "8B"),
    "qwen3-14b": ("qwen3", "14B"),
    "qwen3-32b": ("qwen3", "32B"),
    "qwen3-30b-a3b": ("qwen3", "30B-A3B"),
    "qwen3-235b-a22b": ("qwen3", "235B-A22B"),
}
SPLIT = ("zb-v", "dualpipe-v")  # the backward, which PyTorch cannot where it is compiled
WITHOUT_STAGES = ("qwen3",)  # whose TrainSpec has no pipelining_fn (models/qwen3/__init__.py, line 199)
CAN = Ability(
    "torchtitan",
    "torchtitan 0.2.0",
    (2, 3),
    (3,),
    ("gpipe", "1f1b", "interleaved"),
    True,
    (2, 3),
    "torchtitan 0.2.0, config/job_config.py: FSDP2, torch.distributed.pipelining; distributed/"
    "parallel_dims.py: which ranks experts borrow, line 252: what a sequence is a multiple of; "
    "models/llama3: whole heads of keys and values; torch/distributed/pipelining/schedules.py at 00722e64, "
    "ScheduleInterleaved1F1B: equal rounds of micro-batches. It "
    "has ZB-V and DualPipeV too, but PyTorch does not split the backward of a compiled model "
    "(pytorch/pytorch#161904), and eager kernels cost more than these schedules save",
    counts_ends=True,
    borrows_ranks=True,
    mixes=False,
    rounds=EQUAL,
    row_tokens=2,
    whole=tuple(key for key, (name, _) in BY_NAME.items() if name in WITHOUT_STAGES),
)
MODELS = {(name, flavor.lower()): key for key, (name, flavor) in BY_NAME.items()}
SCHEDULES = {name.lower(): key for key, name in TORCH_SCHEDULES.items()}
ZERO_BUBBLE = "InterleavedZeroBubble"  # interleaved 1F1B with the backward split, which is not modelled
BREADTH_FIRST = "LoopedBFS"  # GPipe in chunks
VALID = [*TORCH_SCHEDULES.values(), ZERO_BUBBLE, BREADTH_FIRST]
SECTIONS = (
    "training",
    "parallelism",
    "activation_checkpoint",
    "job",
    "metrics",
    "experimental",
    "checkpoint",
    "model",
)
COMPILED = {"kernels": "compiled", "loss": "fused"}  # as compile.enable has it, which what is written sets
OF_A_COMMAND = ("training.", "parallelism.", "activation_checkpoint.", "job.")
MOVES = {"recompute": ("none", "selective", "full"), "zero": (2, 3), "loss": ("fused",)}
MOVES |= dict.fromkeys(("micro_batch", "tp", "pp", "cp", "ep"), ())  # by steps
FOLDED = ("zb-v", "dualpipe-v")
LOOPED = ("interleaved1f1b", "interleavedzerobubble", "zbvzerobubble", "dualpipev", "loopedbfs")
TWO = 2  # stages on each rank of a looped schedule, unless the layers of a stage are given


def _degree(d: Draft, name: str, otherwise: int) -> int:
    """A degree that may be −1, for what is left."""
    text = str(d.get(name, str(otherwise)))
    try:
        return int(text)
    except ValueError:
        d.refuse(f"ValueError: data_parallel_{name}_degree must be a whole number, got {text[:20]!r}", name)
        return otherwise


def borrowed_ranks(d: Draft, shape: Model, tp: int, cp: int, ep: int, expert_tp: int) -> None:
    """What torchtitan refuses of tensor ranks and experts (parallel_dims.py; heads of models/llama3)."""
    if not shape.attention.latent and shape.kv_heads % tp:
        d.refuse(
            f"RuntimeError: shape [-1, {shape.head_dim}] is invalid: tensor_parallel_degree {tp} cuts a head "
            f"of the {shape.kv_heads} of keys and values",
            "tp",
        )
    if ep > 1 and expert_tp not in (1, tp):
        d.refuse("AssertionError: Currently we only support ETP=TP or ETP=1", "expert_tp")
    elif ep > 1 and ep % (cp if expert_tp == tp else cp * tp):
        ranks = "cp" if expert_tp == tp else "(cp * tp)"
        d.refuse(f"AssertionError: assert ep % {ranks} == 0", "ep")


def precision(d: Draft) -> str:
    """The format of the products. ``training.dtype`` other than float32 also narrows the state, which is
    said."""
    kept = d.get("dtype", "float32")
    recipe = d.given("float8")
    for unread in ("float8_gather", "not_in_float8"):
        d.given(unread)
    if kept != "float32":
        d.assume("state", "16 bytes a parameter", f"as with training.dtype float32, not {kept}")
    if d.given("float8_linear") or "float8" in (d.given("converters") or ""):
        if recipe and recipe.lower().startswith("rowwise"):
            d.unmodelled.append(Ignored(*d.settings["float8"].entry[:4], ROWWISE))
        return "fp8"
    if recipe:
        d.assume("precision", "bf16", "a float8 recipe does nothing without [model] converters")
    return {"float32": "fp32", "float16": "fp16"}.get(d.get("param_dtype", "bfloat16"), "bf16")


def sharding(d: Draft, shards: int, pp: int) -> int:
    """The ZeRO stage: with weights gathered again for the backward pass 3, with weights kept 2. Under a
    pipeline a stage's weights stay gathered and its gradients are summed whole, in fp32, until the last
    micro-batch (``backward_maybe_with_nosync`` in torch/distributed/pipelining/stage.py): as with ZeRO-1."""
    policy = d.get("reshard", "default", "again after the forward pass, unless there is a pipeline")
    if shards < 2:
        return 0
    if policy == "default":
        alone = catalog.training_software("torchtitan").reshards == "alone"
        return 1 if pp > 1 and alone else 3
    return 3 if policy == "always" else 1 if pp > 1 else 2


def pipelined(d: Draft, shape: Model, pp: int) -> tuple[str, int]:
    """The schedule, and its chunks of layers on each stage."""
    if pp < 2:
        return "1f1b", 1
    written = d.get("schedule", "1F1B")
    key = SCHEDULES.get(written.lower())
    if written.lower() == ZERO_BUBBLE.lower():
        d.assume(
            "schedule", "interleaved 1F1B", f"{ZERO_BUBBLE} splits the backward, and idles a little less"
        )
        key = "interleaved"
    if written.lower() == BREADTH_FIRST.lower():
        d.assume("schedule", "GPipe", f"{BREADTH_FIRST} holds as much, and idles less for its chunks")
        key = "gpipe"
    if key is None:
        d.refuse(f"ValueError: Unknown schedule {written[:40]}. The valid options are {VALID}", "schedule")
        key = "1f1b"
    looped, each = written.lower() in LOOPED, d.given("layers_per_stage")
    per_rank = TWO if looped else 1
    if each:
        stages = -(-(shape.depth + 2) // each)
        if stages % pp:
            d.refuse(
                f"ValueError: Number of virtual stages ({stages}) must be divisible by pipeline parallel "
                f"size ({pp}). Each stage has {each} layers.",
                "layers_per_stage",
            )
            return "1f1b", 1
        per_rank = stages // pp
    if looped and per_rank < TWO:
        d.refuse(f"ValueError: The schedule {written} needs at least two stages on each rank", "schedule")
        return "1f1b", 1
    if not looped and per_rank > 1:
        d.refuse(
            f"ValueError: Stages per rank must be 1 for the schedule {written}, got {per_rank}",
            "layers_per_stage",
        )
        return "1f1b", 1
    if key in FOLDED and per_rank != TWO:
        d.refuse(
            f"ValueError: ZBV requires exactly 2 stages per rank, but got {per_rank}.", "layers_per_stage"
        )
        return "1f1b", 1
    return key, per_rank if key in ("interleaved", *FOLDED) else 1


def checkpointed(d: Draft, shape: Model, pp: int) -> tuple[str, int]:
    """What is computed again, and in how many layers of a stage (0 for all)."""
    mode = d.get("ac_mode", "selective")
    if mode == "selective":
        option = d.get("ac_option", "2")
        every = int(option) if option.isdigit() and int(option) else 2
        if not option.isdigit() and shape.gated and not shape.experts and not shape.attention.latent:
            return "every_other", 0
        if not option.isdigit():
            d.assume(
                "recompute_layers", "half of them", "about what selective checkpointing by operator saves"
            )
        return "full", max(1, -(-shape.depth // pp) // every)
    return ("full", 0) if mode == "full" else ("none", 0)


def loss(d: Draft) -> str:
    """A compiled loss keeps no wide copy of the logits. The older key training.compile did not compile it."""
    parts = d.get("components", '["model", "loss"]') if d.given("compile_enable") else ""
    if d.given("compile"):
        d.assume("loss", "plain", "training.compile, as in 2024, compiles the layers alone")
    if "loss" in parts:
        d.assume("loss", "fused", "compiled: the wide copy of the logits is never kept")
        return "fused"
    return "plain"


HEAD = """# for torchtitan 0.2.x, which reads it with --job.config_file; 0.3 reads no such file: there a
# function says the model (--module llama3 --config llama3_8b), and what stands below [training] and
# [parallelism] are flags (--training.seq_len 8192)
"""


def place_of(key: str) -> float:
    """A model's place among those that torchtitan has by name; 0 for one that it has not."""
    return 1.0 + list(BY_NAME).index(key) if key in BY_NAME else 0.0


def written(run: ExportedRun, words: Any = Words, place: Real | None = None) -> str:
    """A job file: training, parallelism and activation checkpointing. ``place`` is the model's among those
    that torchtitan has by name (``place_of``), where its key does not say so; for one that it has not, the
    reader has to fill in name and flavor."""
    n, names = words.plain, [f'"{TORCH_SCHEDULES.get(key, "1F1B")}"' for key in run.schedules]
    replicated, operators = run.zero < 1, "every_other" in run.modules
    # one forward pass takes a local batch, which only a pipeline cuts further; the rest of the global batch
    # is accumulated (torchtitan/train.py)
    local_batch = ops.where(run.pp > 1, run.global_batch / run.dp, run.micro_batch)
    stages = run.pp * run.chunks
    parts = run.model.depth + 2.0  # embedding and output count as one layer each
    per_stage = ops.ceil(parts / stages)
    refused = words.choose(
        legality.fills_every_stage(parts, stages),
        "",
        "   # makes too few stages, which torchtitan refuses: name the modules of each stage",
    )
    copies = ops.where(replicated, run.dp, run.copies)
    at: Real = place_of(run.model.key) if place is None else place
    known, flavors = at > 0, [("", ""), *BY_NAME.values()]
    split = run.is_schedule(*SPLIT) & (run.pp > 1)
    whole = run.is_schedule(*(key for key in run.schedules if key not in SPLIT)) | (run.pp < 2)
    # compiled are the layers, and the loss too where the planner's is fused
    compiled = False if run.eager and run.loss != "fused" else whole
    settings = [
        Line(KEYS["model_name"], words.select(at, [f'"{name}"' for name, _ in flavors]), known),
        Line(KEYS["flavor"], words.select(at, [f'"{flavor}"' for _, flavor in flavors]), known),
        Line(KEYS["converters"], '["quantize.linear.float8"]', run.fp8 > 0),
        Line(KEYS["local_batch"], n(local_batch)),
        Line(KEYS["global_batch"], n(run.global_batch)),
        Line(KEYS["seq"], n(run.seq)),
        Line("training.steps", n(run.steps)),
        Line(KEYS["param_dtype"], '"bfloat16"'),
        Line(KEYS["replicate"], n(copies)),
        Line(KEYS["shard"], n(run.dp / copies)),
        Line(KEYS["reshard"], words.choose(run.zero == 3.0, '"always"', '"never"')),
        Line(KEYS["tp"], n(run.tp)),
        Line(KEYS["cp"], n(run.cp)),
        Line(KEYS["rotate"], '"allgather"' if run.gather_context else '"alltoall"', run.cp > 1),
        Line(KEYS["pp"], n(run.pp)),
        Line(KEYS["schedule"], words.select(run.schedule, names), run.pp > 1),
        Line(KEYS["layers_per_stage"], f"{n(per_stage)}{refused}", run.pp > 1),
        Line(KEYS["micro_batch"], n(run.micro_batch), run.pp > 1),
        Line(KEYS["ep"], n(run.ep), run.model.experts > 0),
        Line(KEYS["expert_tp"], n(run.expert_tp), run.model.experts > 0),
        Line(KEYS["ac_mode"], words.choose(run.recompute == memory.FULL, '"full"', '"none"'), not operators),
        Line(KEYS["ac_mode"], '"selective"', operators),
        Line(KEYS["ac_option"], '"op"', operators),
        Line(KEYS["compile_enable"], "true", compiled),
        Line(KEYS["components"], '["model"]', compiled if run.loss != "fused" else False),
        # latent attention is refused tensorwise over tensor ranks (models/deepseek_v3/infra/parallelize.py)
        Line(
            KEYS["float8"],
            words.choose((run.model.attention.latent > 0) & (run.tp > 1), '"rowwise"', '"tensorwise"'),
            run.fp8 > 0,
        ),
        Line(KEYS["not_in_float8"], '["output"]', run.fp8 > 0),  # which the engine counts in 16 bits
    ]
    lines = [
        HEAD,
        words.choose(
            known,
            "# [model] hf_assets_path is yours; the flavor has shape, vocabulary, rotary base and norms\n",
            "# [model] name, flavor and hf_assets_path are yours, and with them all that shapes the model\n",
        ),
    ]
    for lost, why in (
        (
            (run.zero == 1.0) & (run.pp < 2),
            "torchtitan has no ZeRO-1: this keeps the weights and shares gradients and state, ZeRO-2",
        ),
        (
            (run.pp > 1)
            & ((run.zero == 2.0) | (run.zero == 1.0) & (run.gradient_bytes > 0) & (run.gradient_bytes < 4)),
            "under a pipeline torchtitan sums whole gradients in fp32 until the last micro-batch: ZeRO-1",
        ),
        (replicated & (run.cp > 1), "torchtitan shares the state over context ranks too"),
        (
            False if operators else (run.recompute == memory.SELECTIVE) | (run.recompute == memory.BY_MODULE),
            "torchtitan recomputes whole layers or operators, not these modules",
        ),
        *(
            (
                run.is_schedule(key) & (run.pp > 1),
                f"PyTorch has no schedule {key}: this runs 1F1B, and slower than planned",
            )
            for key in dict.fromkeys(run.schedules)
            if key not in TORCH_SCHEDULES
        ),
        (
            split,
            (
                "PyTorch does not split a compiled backward (pytorch/pytorch#161904): this is not compiled, "
                "and slower than planned"
            ),
        ),
        (run.recompute_layers > 0, "torchtitan recomputes every layer, or every second one"),
        (
            (run.model.attention.latent > 0) & (run.tp > 1) & (run.fp8 > 0),
            (
                "torchtitan refuses one scale for each tensor here: with one for each row a step is up to "
                "1.4 times as long as planned, and check cannot say how long"
            ),
        ),
        (run.loss == "chunked", "torchtitan's loss is not computed in chunks"),
        (run.mtp > 0, "torchtitan has no multi-token prediction"),
        ((run.first_layers > 0) | (run.last_layers > 0), "torchtitan shares the layers out by itself"),
    ):
        if lost is not False:
            lines.append(words.choose(lost, f"# {why}\n", ""))
    sections: dict[str, list[Line]] = {}
    for line in settings:
        section, _, key = line.key.rpartition(".")
        sections.setdefault(section, []).append(line._replace(key=key))
    for section, inside in sections.items():
        lines.append(given(Line(section, when=any_is_needed(inside)), f"\n[{section}]\n", words))
        lines += [given(line, f"{line.key} = {line.value}\n", words) for line in inside]
    return "".join(map(str, lines))


class Torchtitan(Framework):
    """A TOML file, or its settings as flags."""

    key = "torchtitan"
    name = "torchtitan"
    log_lines = (
        LogLine("tokens_per_s_per_gpu", r"\btps:\s*{number}\s+tflops"),
        LogLine("memory_bytes", r"\bmemory:\s*{number}GiB\(", 2.0**30),
    )
    place = 20
    fields = FIELDS
    unmodelled = UNMODELLED
    tried = MOVES
    can = CAN
    program = "torchtitan"
    switches = COMPILED
    degrees = ("tp", "pp", "cp", "shard", "replicate")
    new_keys = (Where.FLAG, Where.SECTION)
    expands = True  # run_train.sh sets expandable_segments:True

    def claims(self, command: Command) -> Claim:
        """Settings of its sections, or its module."""
        words = command.words
        start = next(
            (at + 1 for at, w in enumerate(words) if w.endswith(".py") or w.startswith("torchtitan.")), 0
        )
        if any(flag.startswith(OF_A_COMMAND) for flag in command.flags):
            return Claim(Sure.OWN_SECTIONS, start)
        named = any(word.endswith("torchtitan/train.py") or word == "torchtitan.train" for word in words)
        return Claim(Sure.ONE_FLAG if named else Sure.NOT, start)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A TOML file with one of its sections."""
        mine = notation == "toml" and any(entry.key.split(".")[0] in SECTIONS for entry in entries)
        return Sure.OWN_SECTIONS if mine else Sure.NOT

    def named_model(self, d: Draft) -> Model:
        """The model of ``[model] name`` and ``flavor``."""
        name, flavor = (d.given("model_name") or "").lower(), (d.given("flavor") or "").lower()
        d.given("assets")
        if (name, flavor) in MODELS:
            return catalog.model(MODELS[name, flavor])
        if name and flavor:
            try:
                return named(f"{name}-{flavor}")
            except ValueError:
                pass
        if d.given("assets"):
            return named(d.given("assets"))
        raise ValueError(
            f"[model] name {name!r} and flavor {flavor!r} name no model of the catalogue: give its "
            "config.json as well"
        )

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """Job, layout and precision; what torchtitan refuses is noted."""
        tp, pp, cp = (max(1, d.get(name, 1)) for name in ("tp", "pp", "cp"))
        replicate, shard = _degree(d, "replicate", 1), _degree(d, "shard", -1)
        ranks = tp * pp * cp
        if shard < 0:
            shard = max(1, gpus // (max(1, replicate) * ranks))
        replicate, shard = max(1, replicate), max(1, shard)
        if replicate * shard * ranks != gpus:
            d.refuse(
                f"AssertionError: Invalid parallel dims: dp_replicate({replicate}) * dp_shard({shard}) * "
                f"cp({cp}) * tp({tp}) * pp({pp}) != WORLD_SIZE({gpus})",
                "shard",
            )
        dp = max(1, gpus // ranks)
        local = max(1, d.get("local_batch", 8))
        batch = _degree(d, "global_batch", -1)
        batch = local * dp if batch < 0 else max(1, batch)
        if batch % (local * dp):
            d.refuse(
                "AssertionError: global batch size must be multiple of local batch size times data-parallel "
                f"degree ({batch} % ({local} * {dp}) != 0)",
                "global_batch",
            )
        micro = max(1, d.get("micro_batch", 1)) if pp > 1 else local
        if pp > 1 and local % micro:
            d.refuse(
                f"ValueError: Batch size {local} must be divisible by microbatch_size {micro}.", "local_batch"
            )
        seq = max(1, d.get("seq", 2048))
        whole = TWO * tp * cp  # ParallelDims.seq_len_divisor
        if seq % whole:
            d.refuse(
                f"AssertionError: Sequence length {seq} must be divisible by the product of TP degree ({tp}) "
                f"and 2 * CP degree ({cp}), i.e. {whole}.",
                "seq",
            )
        schedule, chunks = pipelined(d, shape, pp)
        rounds = max(1, local // micro // pp)
        if chunks > 1 and schedule == "interleaved" and local // micro % rounds:
            d.refuse(
                "ValueError: Interleaved 1F1B requires the number of microbatches to be a multiple of the "
                f"number of rounds ({rounds}), but got {local // micro}.",
                "micro_batch",
            )
        recompute, some = checkpointed(d, shape, pp)
        ep = max(1, d.get("ep", 1)) if shape.experts else 1
        expert_tp = max(1, d.get("expert_tp", 1)) if shape.experts else 1
        if shape.experts and ep == 1:  # apply_moe_ep_tp: TensorParallel, whatever the degree
            expert_tp = tp
        borrowed_ranks(d, shape, tp, cp, ep, expert_tp)
        zero = sharding(d, shard * cp, pp)
        rotated = cp > 1 and d.get("rotate", "allgather") == "alltoall"
        by = catalog.training_software(
            "torchtitan",
            context="ring" if rotated else "gather",
            overlaps=overlaps(data=True, tensor=d.given("overlap_tensor")),
            loss=loss(d),
            kernels="compiled" if d.given("compile") or d.given("compile_enable") else "eager",
        )
        if "adam" not in (d.given("optimizer") or "AdamW").lower():
            d.lacks("optimizer", "this optimizer is not modelled")
        job = Job(batch, seq, catalog.recipe("bf16-adam-fp32-grads" if zero == 1 else "bf16-adam"), by)
        hybrid = shard * cp if zero and replicate > 1 else 0
        found = Layout(
            gpus, tp, pp, cp, ep, zero, micro, recompute, schedule, chunks, expert_tp, hybrid, some
        )
        return Meant(gpus, precision(d), job, found)

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The settings that set one of our names to a value."""
        assert launch.job is not None and launch.layout is not None
        if name == "recompute":
            return [(KEYS["ac_mode"], str(value))]
        if name == "zero":
            return [(KEYS["reshard"], "always" if value == 3 else "never")]
        if name == "loss":
            return [(KEYS["compile_enable"], "true")]
        if name == "micro_batch":
            key = KEYS["micro_batch" if launch.layout.pp > 1 else "local_batch"]
            more = [(KEYS["global_batch"], str(launch.job.global_batch))] if launch.layout.pp == 1 else []
            return [(key, str(value)), *more]
        if name in ("tp", "pp", "cp"):
            a = launch.layout
            dp = a.gpus // (a.tp * a.pp * a.cp // getattr(a, name) * int(str(value)))
            shard = [(KEYS["shard"], str(dp))] if not a.shard else []
            each = str(max(1, launch.job.global_batch // dp)) if dp else ""
            local = [(KEYS["local_batch"], each)] if a.pp > 1 and dp else []
            batch = [(KEYS["global_batch"], str(launch.job.global_batch))]
            return [(KEYS[name], str(value)), *shard, *local, *batch]
        return [(KEYS["ep"], str(value))] if name == "ep" else []

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """A job file."""
        return written(what, words)


FRAMEWORK: Framework = Torchtitan()
