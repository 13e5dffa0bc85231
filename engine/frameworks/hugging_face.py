"""What the Hugging Face trainer is given: TrainingArguments, an Accelerate configuration, a DeepSpeed JSON.

The three overlap and are read as one. Names and defaults: huggingface/transformers training_args.py;
huggingface/accelerate examples/config_yaml_templates/fsdp.yaml at commit 1a6af0bd and
torch_native_parallelism/configs/nd.yaml at 26db67d5; huggingface/trl trl/trainer/sft_config.py and
base_config.py at f2cd5771 (July 2026); DeepSpeed 0.19 docs/_pages/config-json.md, with the
error of deepspeed/runtime/config.py.

Adapters are read by ``peft``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import catalog
from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.frameworks import deepspeed, host_memory, peft
from engine.frameworks.deepspeed import DISK
from engine.frameworks.framework import Claim, Command, Framework, LogLine, Meant, Sure, Where
from engine.frameworks.settings import FLAG, TEXT, Draft, Entry, Field, Ignored, Setting
from engine.frameworks.writing import Words, keys_of
from engine.mechanism import memory, offload
from engine.step.layout import Job, Layout, recipe_of

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.mechanism.adapters import Adapter
    from engine.step.cases import ExportedRun

TRAINER = {
    "per_device_train_batch_size": Field("micro_batch"),
    "per_gpu_train_batch_size": Field("micro_batch"),
    "gradient_accumulation_steps": Field("accumulated"),
    "gradient_checkpointing": Field("checkpointing", FLAG),
    "bf16": Field("bf16", FLAG),
    "fp16": Field("fp16", FLAG),
    "fsdp": Field("fsdp", TEXT),
    "optim": Field("optimizer", TEXT),
    "use_liger_kernel": Field("liger", FLAG),
    "model_name_or_path": Field("model", TEXT),
    "pretrained_model_name_or_path": Field("model", TEXT),
    "model_path": Field("model", TEXT),
    "model_id": Field("model", TEXT),
    "model_name": Field("model", TEXT),
    "max_length": Field("seq"),
    "max_seq_length": Field("seq"),
    "model_max_length": Field("seq"),
    "block_size": Field("seq"),
    "max_pixels": Field("pixels"),
    "packing": Field("packed", FLAG),
    "loss_type": Field("loss_type", TEXT),
    "activation_offloading": Field("activations", FLAG),
    "attn_implementation": Field("attention", TEXT),
    "deepspeed": Field("deepspeed_file", TEXT),
    "tensor_parallel_size": Field("tp"),
}
FSDP = {
    "sharding_strategy": Field("strategy", TEXT),
    "reshard_after_forward": Field("reshard", TEXT),
    "activation_checkpointing": Field("checkpointing", FLAG),
    "offload_params": Field("host_all", FLAG),
    "version": Field("fsdp_version"),
}
ACCELERATE = {
    "distributed_type": Field("distributed", TEXT),
    "mixed_precision": Field("mixed", TEXT),
    "deepspeed_config.zero_stage": Field("zero"),
    "deepspeed_config.gradient_accumulation_steps": Field("accumulated"),
    "deepspeed_config.deepspeed_config_file": Field("deepspeed_file", TEXT),
    "deepspeed_config.offload_optimizer_device": Field("host_optimizer", TEXT),
    "deepspeed_config.offload_param_device": Field("host_parameters", TEXT),
    "parallelism_config.parallelism_config_dp_replicate_size": Field("replicate"),
    "parallelism_config.parallelism_config_dp_shard_size": Field("shards"),
    "parallelism_config.parallelism_config_tp_size": Field("tp"),
    "parallelism_config.parallelism_config_cp_size": Field("cp"),
}
ENABLED = "model.gradient_checkpointing_enable"
# what a program calls, and what it sets there
CALLED = {
    "from_pretrained.0": Field("model", TEXT),
    "from_pretrained.model_name": Field("model", TEXT),
    "from_pretrained.pretrained_model_name_or_path": Field("model", TEXT),
    "from_pretrained.attn_implementation": Field("attention", TEXT),
    "from_pretrained.torch_dtype": Field("loaded_dtype", TEXT),
    "from_pretrained.dtype": Field("loaded_dtype", TEXT),
    "from_pretrained.load_in_4bit": Field("four_bits", FLAG),
    ENABLED: Field("checkpointing", FLAG),
}
CALLS = {
    "TrainingArguments": "",
    "Seq2SeqTrainingArguments": "",
    "SFTConfig": "",
    "SFTTrainer": "",
    "ModelConfig": "",
    "LoraConfig": peft.IN_A_CALL[0],
    "BitsAndBytesConfig": peft.IN_A_CALL[1],
    "gradient_checkpointing_enable": ENABLED,
    "prepare_model_for_kbit_training": "prepare_model_for_kbit_training",
}
MODELS = ("AutoModelForCausalLM", "AutoModel", "LlamaForCausalLM", "AutoModelForImageTextToText")
SFT = "SFTConfig."  # that it is called
CALLED[SFT] = Field("sft", FLAG)
CALLS |= {f"{name}.from_pretrained": "from_pretrained." for name in MODELS}
KEYS = keys_of(TRAINER)
FIELDS = deepspeed.FIELDS | TRAINER | ACCELERATE | peft.FIELDS | CALLED
FIELDS |= {f"fsdp_config.{prefix}{key}": field for key, field in FSDP.items() for prefix in ("fsdp_", "")}
FIELDS |= {f"fsdp_{key}": field for key, field in FSDP.items()}
UNMODELLED = (
    deepspeed.UNMODELLED
    | peft.UNMODELLED
    | {"pipeline_model_parallel_size": "pipelines of this trainer are not modelled"}
)
SHARDED = {
    "full_shard": 3,
    "shard_grad_op": 2,
    "no_shard": 0,
    "hybrid_shard": 3,
    "hybrid_shard_zero2": 2,
    "1": 3,
    "2": 2,
    "3": 0,
    "4": 3,
    "5": 2,
}
# of their names: they keep something else than Adam does
OTHER_OPTIMIZERS = ("galore", "apollo", "lomo", "muon", "ademamix", "4bit", "fp8", "came", "mini")
HYBRID = ("hybrid_shard", "hybrid_shard_zero2", "4", "5")
RECIPES = {"lion": "lion", "adafactor": "adafactor", "sgd": "sgd-momentum", "8bit": "adam-8bit"}
TOWER = "training of what reads pictures is not modelled"
WITHOUT_LIMIT = "nothing limits the pictures of a sequence: say the most tokens of one"
NODE = 8  # GPUs that share a copy of the state in a hybrid, unless it is said


def sharding(d: Draft, ranks: int, always: bool = False) -> tuple[int, int]:
    """The ZeRO stage, and how many GPUs share a copy of the state (0 for all). FSDP is on where it is asked
    for, or ``always``."""
    kind = (d.given("distributed") or "").lower()
    text = (
        (d.given("fsdp") or "").lower().replace("[", "").replace("]", "").replace('"', "").replace(",", " ")
    )
    asked = [word for word in text.split() if word in SHARDED and not word.isdigit()]
    strategy = (d.given("strategy") or (asked[0] if asked else "")).lower()
    stage = d.given("zero")
    reshard = str(d.given("reshard") or "").lower()
    d.given("fsdp_version")
    if stage is not None:
        if stage > 3:
            d.refuse(
                f"ValueError: zero_optimization.stage: Input should be 0, 1, 2 or 3, got {stage}", "zero"
            )
            stage = 3
        pieces = d.given("shard") or 0
        return stage, pieces if pieces > 1 and ranks % pieces == 0 else 0
    if kind == "fsdp" or strategy or always or "full_shard" in text:
        if not strategy:
            strategy = (
                reshard if reshard in SHARDED else "shard_grad_op" if reshard == "false" else "full_shard"
            )
            d.assume("strategy", strategy, "FSDP shards parameters, gradients and state")
        zero = SHARDED.get(strategy, 3)
        shards, replicas = d.given("shards") or 0, d.given("replicate") or 1
        if replicas > 1 and shards:
            return zero, shards if ranks % shards == 0 else 0
        return zero, NODE if strategy in HYBRID and ranks % NODE == 0 and ranks > NODE else 0
    if kind == "deepspeed":
        return d.get("zero", 2, "Accelerate's default stage"), 0
    named_file = (d.given("deepspeed_file") or "").lower()
    if named_file:
        return stage_of(d, named_file), 0
    d.assume("zero", 0, "neither FSDP nor DeepSpeed: every GPU holds the whole state (DDP)")
    return 0, 0


def deepspeeds(d: Draft) -> bool:
    """Whether DeepSpeed shards, and not FSDP."""
    asked = "zero" in d.settings or bool(d.given("deepspeed_file"))
    return asked or (d.given("distributed") or "").lower() == "deepspeed"


def stage_of(d: Draft, file: str) -> int:
    """The stage of a DeepSpeed file that is named and not given, by its name: ds_z3_config.json,
    stage2.json."""
    bare = file.split("/")[-1]
    short = bare.replace("_", "").replace("-", "").replace(".", "")
    for stage in (3, 2, 1, 0):
        if any(f"{mark}{stage}" in short for mark in ("z", "zero", "stage")):
            d.assume("zero", stage, f"by the name of {bare[:60]}: add that file to be sure")
            return stage
    d.assume("zero", 0, f"{bare[:60]} is not among these texts: add it")
    return 0


def on_host(d: Draft, zero: int) -> str:
    """What is moved to the host: by DeepSpeed's settings, by the name of its file, or by FSDP, which moves
    all of a shard."""
    if d.given("host_all"):
        return "optimizer+gradients+parameters" if zero else "none"
    moves = deepspeed.on_host(d, zero)
    file = (d.given("deepspeed_file") or "").lower().split("/")[-1]
    if "zero" in d.settings or "offload" not in file or not zero:
        return moves
    moved = "optimizer+gradients+parameters" if zero == 3 else "optimizer+gradients"
    d.assume("host", moved, f"by the name of {file[:60]}: add that file to be sure")
    return moved


def liger_chunks(shape: Model, tokens: int) -> int:
    """In how many chunks Liger computes the loss of this many tokens: each as large as its logits take no
    more than the tokens themselves do, rounded up to a power of two
    (linkedin/Liger-Kernel src/liger_kernel/ops/fused_linear_cross_entropy.py)."""
    size = -(-tokens // -(-shape.vocab // shape.hidden))
    rounded = 1
    while rounded < size:
        rounded *= 2
    return max(1, -(-tokens // rounded))


def batches(d: Draft, dp: int, usual_micro: int = 8, usual_batch: int = 0) -> tuple[int, int]:
    """Sequences of one GPU at a time, and of a step; DeepSpeed wants the three of them to agree. Unless it is
    said, batches are summed until a step has the usual number of sequences."""
    micro, accumulated, batch = d.given("micro_batch"), d.given("accumulated"), d.given("global_batch")
    if batch and micro and accumulated and batch != micro * accumulated * dp:
        d.refuse(
            "AssertionError: Check batch related parameters. train_batch_size is not equal to "
            f"micro_batch_per_gpu * gradient_acc_step * world_size {batch} != {micro} * {accumulated} * {dp}",
            "global_batch",
        )
        batch = None
    if batch and not micro:
        each = batch // dp // (accumulated or 1)
        if each < 1 or batch != each * (accumulated or 1) * dp:
            d.refuse(
                "AssertionError: Check batch related parameters. train_batch_size is not equal to "
                f"micro_batch_per_gpu * gradient_acc_step * world_size {batch} != {each} * "
                f"{accumulated or 1} * {dp}",
                "global_batch",
            )
        micro = max(1, each)
        batch = None
    if batch and micro and not accumulated and batch % (micro * dp):
        d.refuse(
            "AssertionError: Check batch related parameters. train_batch_size is not equal to "
            f"micro_batch_per_gpu * gradient_acc_step * world_size {batch} != {micro} * "
            f"{batch // (micro * dp)} * {dp}",
            "global_batch",
        )
        batch = None
    if not micro:
        d.assume("micro_batch", usual_micro, "its default")
        micro = usual_micro
    if not batch:
        if not accumulated:
            accumulated = max(1, -(-usual_batch // (micro * dp)))
            d.assume("accumulated", accumulated, "its default")
        batch = micro * (accumulated or 1) * dp
    return micro, batch


def state(d: Draft) -> tuple[str, Recipe]:
    """The optimizer's mark, and the bytes of a training in 16 bits with it."""
    optimizer = (d.given("optimizer") or "adamw").lower()
    key = next((RECIPES[mark] for mark in RECIPES if mark in optimizer), "bf16-adam")
    other = any(mark in optimizer for mark in OTHER_OPTIMIZERS)
    if other or (key == "bf16-adam" and "adam" not in optimizer):
        d.lacks("optimizer", "this optimizer is not modelled")
    return key, catalog.recipe(key)


def recipe(d: Draft) -> tuple[str, Recipe]:
    """The format of the products, and the bytes of the training state."""
    mixed = (d.given("mixed") or "").lower()
    narrow, half = d.given("bf16") or mixed == "bf16", d.given("fp16") or mixed == "fp16"
    _, found = state(d)
    if narrow or half or mixed == "fp8":
        return "fp8" if mixed == "fp8" else "bf16" if narrow else "fp16", found
    d.assume("precision", "fp32", "neither bf16 nor fp16")
    return "fp32", catalog.recipe("fp32-adam")


def with_checkpoints(moved: str) -> str:
    """What is on the host, with the checkpoints."""
    return offload.ACTIVATIONS if moved == "none" else f"{moved}+{offload.ACTIVATIONS}"


def without_master(found: Recipe, moment_bytes: float = 2.0) -> Recipe:
    """A recipe whose weights are 16 bits wide and updated as they are; Adam's moments have their width,
    unless they are stored in 8 bits."""
    moments = [min(each, moment_bytes) for each in (found.momentum_bytes, found.variance_bytes)]
    return replace(
        found,
        key=f"{found.key}+narrow",
        master_bytes=0.0,
        momentum_bytes=moments[0],
        variance_bytes=moments[1],
    )


def without_limit(d: Draft, shape: Model, limits: bool) -> None:
    """Note that pictures are not counted where nothing limits how many there are in a sequence: a picture may
    be 16,384 tokens for Qwen2.5-VL where nobody says how large it is at most (12,845,056 pixels, which
    ms-swift logs as ``Setting max_pixels``, issue 2536 of modelscope/ms-swift, November 2024), and a video
    as many again."""
    if shape.tower is None or limits or "seq" in d.settings:
        return
    model = d.settings.get("model")
    file, line = (model.file, model.line) if model else ("", 0)
    d.unmodelled.append(Ignored("pictures", "", file, line, WITHOUT_LIMIT))


WITHOUT_A_ROOT = (
    "fused",
    "8bit",
    "adafactor",
    "sgd",
    "lion",
)  # optimizers that take no tensor of square roots


def takes_roots(launch: Launch, usual: bool = True) -> bool:
    """Whether the optimizer is one of PyTorch's that takes a tensor of square roots; ``usual`` says so of the
    one that is taken where none is named."""
    optimizer = next((one for one in launch.settings if one.name == "optimizer"), None)
    if optimizer is None:
        return usual
    of_deepspeed = optimizer.key == "optimizer.type"
    return not of_deepspeed and not any(mark in str(optimizer.value).lower() for mark in WITHOUT_A_ROOT)


def training_arguments(run: ExportedRun, words: Any = Words, keys: dict[str, str] | None = None) -> str:
    """What DeepSpeed's JSON cannot hold of a layout, as TrainingArguments in YAML: the batch, recomputation,
    the length of a sequence (of TRL's SFTConfig) and the loss. ``keys`` are those of a trainer that calls
    them otherwise; "unchecked" is one that turns recomputation off."""
    n, keys = words.plain, KEYS if keys is None else keys
    full = run.recompute == memory.FULL
    checked = (keys["checkpointing"], words.choose(full, "true", "false"))
    if "unchecked" in keys:
        checked = (keys["unchecked"], words.choose(full, "false", "true"))
    lines = [
        f"{keys['micro_batch']}: {n(run.micro_batch)}\n",
        f"{keys['accumulated']}: {n(run.micro_batches)}\n",
        f"{checked[0]}: {checked[1]}\n",
        f"{keys['seq']}: {n(run.seq)}\n",
        f"{keys['bf16']}: true\n",
        f"{keys['deepspeed_file']}: ds_config.json\n",
    ]
    if run.loss != "plain":
        lines.append(f"{keys['liger']}: true\n")
    return "".join(map(str, lines))


SFT_LENGTH, SFT_CHUNK = 1024, 256  # tokens, of TRL's SFTConfig
FUSED = "adamw_torch_fused"  # the same Adam, whose square roots stay in registers
MOVES = {"micro_batch": (), "recompute": ("none", "full"), "zero": (0, 1, 2, 3), "loss": ("chunked",)}
TRAINER_FLAGS = {KEYS[name] for name in ("micro_batch", "checkpointing", "model", "deepspeed_file")} | {
    "deepspeed_config"
}
OF_DEEPSPEED = {
    "zero_optimization",
    "zero_allow_untested_optimizer",
    *(deepspeed.KEYS[name] for name in ("micro_batch", "global_batch")),
}
OF_A_FILE = {key.split(".")[0] for key in FIELDS} | {"num_processes", "compute_environment", "num_machines"}


def edit(name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
    """The settings that set one of our names to a value: the first that the texts have is edited."""
    assert launch.job is not None and launch.layout is not None
    if name == "recompute":
        return [(KEYS["checkpointing"], "true" if value == "full" else "false")]
    if name == "loss":
        return [(KEYS["liger"], "true")]
    if name == "optimizer":
        return [(KEYS["optimizer"], str(value))]
    if name == "micro_batch":
        steps = launch.job.global_batch // (launch.layout.dp * int(str(value)))
        names = {one.name for one in launch.settings if one.key in deepspeed.FIELDS}
        micro = (deepspeed.KEYS if "micro_batch" in names else KEYS)["micro_batch"]
        return [(micro, str(value)), (KEYS["accumulated"], str(steps))]
    if name == "zero":
        given = {one.name: one.key for one in launch.settings}
        if "zero" in given:
            return [(given["zero"], str(value))]
        strategy = {3: "FULL_SHARD", 2: "SHARD_GRAD_OP"}.get(int(str(value)))
        if "strategy" in given and strategy:
            return [(given["strategy"], strategy)]
        return [(KEYS["fsdp"], "full_shard auto_wrap")] if value == 3 else []
    return []


class HuggingFace(Framework):
    """Files and flags of the Trainer and of Accelerate, and programs that call them. What trainers built on
    them do otherwise is a method of its own."""

    key = "hugging_face"
    name = "Hugging Face"
    log_lines = (  # the first two of its progress bar: 500/500 [10:21<00:00, 1.24s/it]
        LogLine("step_s", r"\d+/\d+ \[[\d:]+<[\d:?]+,\s*{number}s/it"),
        LogLine("steps_per_s", r"\d+/\d+ \[[\d:]+<[\d:?]+,\s*{number}it/s"),
        LogLine("tokens_per_s", r"'train_tokens_per_second':\s*'?{number}"),
    )
    place = 35
    fields = FIELDS
    unmodelled = UNMODELLED
    names_model = "give model_name_or_path, or its config.json"
    calls = CALLS
    lightens = (DISK, peft.QUANTISED)
    can = deepspeed.CAN
    program = "trainer"
    new_keys = (Where.FLAG, Where.ARGUMENT)
    pads = True
    usual_micro = 8  # sequences of a GPU
    usual_batch = 0  # of a step, if batches are summed by default
    usual_roots = True  # of the optimizer that is taken where none is named

    def claims(self, command: Command) -> Claim:
        """One of the trainer's flags."""
        return Claim(Sure.ONE_FLAG if command.flags & TRAINER_FLAGS else Sure.NOT, command.script)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A DeepSpeed JSON, or a file with one of its keys, which a model's config.json may have too."""
        tops = {entry.key.split(".")[0] for entry in entries}
        if notation == "toml":
            return Sure.NOT
        if tops & OF_DEEPSPEED:
            return Sure.OWN_SECTIONS
        if notation == "program" and any(entry.key.split(".")[0] in CALLS for entry in entries):
            return Sure.FLAGS
        return Sure.ONE_FLAG if tops & OF_A_FILE and notation != "program" else Sure.NOT

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """What is trained; a trainer with models beside it adds them."""
        return self.trained(d, shape, gpus)

    def trained(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """Job, layout and precision; what DeepSpeed refuses is noted."""
        tp, cp = max(1, d.given("tp") or 1), max(1, d.given("cp") or 1)
        if gpus % (tp * cp):
            d.refuse(f"ValueError: tp × cp = {tp * cp} must divide the {gpus} processes", "tp")
            tp = cp = 1
        dp = gpus // (tp * cp)
        zero, shard = self.sharding(d, dp * cp)
        micro, batch = batches(d, dp, self.usual_micro, self.usual_batch)
        seq = max(1, self.length(d))
        without_limit(d, shape, self.limits(d))
        if cp > 1 and seq % (2 * cp):
            d.refuse(
                f"ValueError: the sequence of {seq} tokens must be a multiple of 2 × cp = {2 * cp}", "seq"
            )
        recompute = "full" if self.checkpointed(d) else "none"
        precision, state = self.recipe(d, zero)
        d.given("deepspeed_file")
        d.ask("pixels", "frame_pixels")
        for name in ("frozen_tower", "frozen_aligner"):
            if d.given(name) is False:
                d.lacks(name, TOWER)
        speed = "zero" in d.settings and not d.given("fsdp")
        hides = bool(d.get("overlap", zero > 2, "on from stage 3 up")) and zero > 0 if speed else True
        loss, chunks = self.loss(d, shape, micro * seq // cp)
        by_fsdp = zero > 0 and not deepspeeds(d)
        by = catalog.training_software(
            "trainer",
            fsdp=("each" if d.given("fsdp_version") == 2 else "flat") if by_fsdp else "",
            gathers_ends=by_fsdp,
            kernels="compiled" if self.joins(d) else "eager",
            written_out=not self.joins(d),
            sequence_parallel=tp == 1,
            attention="fused" if self.fuses(d) else "scores",
            overlaps="data" if hides else "",
            loss=loss,
            loss_chunks=chunks,
        )
        job = Job(batch, seq, state, by, adapter=self.adapter(d, shape))
        moved = self.on_host(d, zero)
        layout = Layout(gpus, tp, 1, cp, 1, zero, micro, recompute, shard=shard, offload=moved)
        return Meant(gpus, precision, job, layout)

    def sharding(self, d: Draft, ranks: int) -> tuple[int, int]:
        """The ZeRO stage, and how many GPUs share a copy of the state."""
        return sharding(d, ranks)

    def length(self, d: Draft) -> int:
        """Tokens of a sequence."""
        d.given("packed")
        if d.given("sft"):
            return d.get("seq", SFT_LENGTH, "SFTConfig's default")
        return d.get("seq", 2048, "no text says how long a sequence is")

    def limits(self, d: Draft) -> bool:
        """Whether longer sequences are cut or dropped where no text says how long one is."""
        return bool(d.given("sft"))

    def checkpointed(self, d: Draft) -> bool:
        """Whether activations are recomputed."""
        prepared = bool(d.given("prepared"))  # for a base in 4 bits, which turns checkpoints on, too
        if d.given("sft"):
            return d.get("checkpointing", True, "SFTConfig's default since TRL 0.20")
        return d.get("checkpointing", prepared)

    def recipe(self, d: Draft, zero: int) -> tuple[str, Recipe]:
        """The format of the products, and the bytes of the training state."""
        d.given("loaded_dtype")
        wide = d.given("fp16") or d.given("mixed") or d.given("bf16") is not None
        if d.given("sft") and not wide:
            d.assume("precision", "bf16", "SFTConfig's default since TRL 0.20")
            return "bf16", state(d)[1]
        return recipe(d)

    def fuses(self, d: Draft) -> bool:
        """Whether attention is fused."""
        return d.get("attention", "flash", "fused attention, PyTorch's SDPA") not in ("eager", "disabled")

    def joins(self, d: Draft) -> bool:
        """Whether norms and activation functions are kernels of their own: Liger's."""
        return bool(d.given("liger"))

    def loss(self, d: Draft, shape: Model, tokens: int) -> tuple[str, int]:
        """How the loss of this many tokens is computed, and in how many chunks."""
        chunked = d.given("loss_type") == "chunked_nll"
        if d.given("liger"):
            return "chunked", liger_chunks(shape, tokens)
        if d.given("sft") and not chunked:
            d.assume("loss", "of all logits", "as in TRL before 2026, which computes it in chunks today")
        return ("chunked", max(1, tokens // SFT_CHUNK)) if chunked else ("plain", 8)

    def adapter(self, d: Draft, shape: Model) -> Adapter | None:
        """What alone is trained."""
        return peft.adapter(d, shape)

    def on_host(self, d: Draft, zero: int) -> str:
        """What is moved to the host."""
        moved = on_host(d, zero)
        if not d.given("activations"):
            return moved
        if self.checkpointed(d):
            return with_checkpoints(moved)
        d.lacks("activations", "activations on the host without checkpoints are not modelled")
        return moved

    def moves(self, launch: Launch) -> dict[str, tuple]:
        """The optimizer only where it takes a tensor that another does not."""
        return MOVES | {"optimizer": (FUSED,)} if takes_roots(launch, self.usual_roots) else MOVES

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The settings that set one of our names to a value."""
        return edit(name, value, launch)

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """A DeepSpeed JSON and TrainingArguments."""
        return deepspeed.written(what, words) + training_arguments(what, words) + peft.written(what.adapter)

    def buckets_bytes(self, launch: Launch, gradients_bytes: float) -> float:
        """Gradients are copied into the buckets of DistributedDataParallel, which stay: as large as all
        gradients, unless these are views of them (``gradient_as_bucket_view``, which neither the Trainer nor
        Accelerate sets)."""
        at = launch.layout
        return gradients_bytes if at and not at.zero and at.dp * at.cp > 1 else 0.0

    def hosted_bytes(self, launch: Launch) -> float:
        """DeepSpeed's buffers, pinned where it is told so; or what FSDP moves."""
        given = {one.name: one.value for one in launch.settings}
        if not any(name in given for name in ("zero", "deepspeed_file")):
            return host_memory.plain_bytes(launch)
        pins = [given.get(name) is True for name in ("pins_optimizer", "pins_parameters")]
        return host_memory.deepspeed_bytes(launch, pins[0], pins[1])

    def passing_bytes(self, launch: Launch, optimizer_bytes: float) -> float:
        """What the optimizer's step takes and gives back, on each GPU.

        PyTorch's own Adam takes the square roots of all second moments at once, as wide as these are
        (torch/optim/adam.py, ``_multi_tensor_adam``). DeepSpeed brings an Adam of its own only where its JSON
        names one, and first copies the gradients of a rank's part to fp32
        (deepspeed/runtime/zero/stage_1_and_2.py, stage3.py).
        """
        assert launch.job is not None and launch.layout is not None
        state = recipe_of(launch.job)
        each = state.master_bytes + state.momentum_bytes + state.variance_bytes
        if each <= 0:
            return 0.0
        params = optimizer_bytes / each
        roots = takes_roots(launch, self.usual_roots)
        speed = (
            any(one.name in ("zero", "deepspeed_file") for one in launch.settings) and launch.layout.zero > 0
        )
        copied = speed and state.gradient_bytes < 4
        if speed and launch.layout.zero > 2:
            params = min(params, host_memory.SUB_GROUP)
        return params * (state.variance_bytes * int(roots) + 4.0 * int(copied))


FRAMEWORK: Framework = HuggingFace()
