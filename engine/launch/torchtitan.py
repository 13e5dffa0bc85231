"""torchtitan's job file, and the same settings on a command line (``--training.local_batch_size 2``).

Names, defaults and errors: pytorch/torchtitan torchtitan/config/job_config.py at commit 000204a4 (2025) and
at 0.2.0, parallel_dims.py and train.py.

Left out: what selective checkpointing by operator keeps in models with experts, latents or without a gate. It
is counted as half of the layers recomputed, and said so.
"""

from __future__ import annotations

from typing import Any

from engine import catalog
from engine.catalog.models import Model
from engine.launch.known_models import named
from engine.launch.settings import FLAG, TEXT, Draft, Field, Ignored
from engine.step.export import TITAN_MODELS, TORCH_SCHEDULES
from engine.step.layout import Job, Layout

NAME = "torchtitan"
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
FIELDS["training.tensor_parallel_degree"] = FIELDS["parallelism.tensor_parallel_degree"]
ROWWISE = (
    "fp8 with a scale for each row has kernels of its own (a step takes 1.4 times as long), not modelled"
)
UNMODELLED = {"training.enable_cpu_offload": "parameters offloaded to the host are not modelled"}
MODELS = {(name, flavor.lower()): key for key, (name, flavor) in TITAN_MODELS.items()}
SCHEDULES = {name.lower(): key for key, name in TORCH_SCHEDULES.items()}
ZERO_BUBBLE = "InterleavedZeroBubble"  # interleaved 1F1B with the backward split, which is not modelled
BREADTH_FIRST = "LoopedBFS"  # GPipe in chunks
KNOWN = [*TORCH_SCHEDULES.values(), ZERO_BUBBLE, BREADTH_FIRST]
FOLDED = ("zb-v", "dualpipe-v")
LOOPED = ("interleaved1f1b", "interleavedzerobubble", "zbvzerobubble", "dualpipev", "loopedbfs")
TWO = 2  # stages on each rank of a looped schedule, unless the layers of a stage are given


def model(d: Draft) -> Model:
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


def _degree(d: Draft, name: str, otherwise: int) -> int:
    """A degree that may be −1, for what is left."""
    text = str(d.get(name, str(otherwise)))
    try:
        return int(text)
    except ValueError:
        d.refuse(f"ValueError: data_parallel_{name}_degree must be a whole number, got {text[:20]!r}", name)
        return otherwise


def layout(d: Draft, shape: Model, gpus: int) -> tuple[Job, Layout, str]:
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
    schedule, chunks = pipelined(d, shape, pp)
    recompute, some = checkpointed(d, shape, pp)
    ep = max(1, d.get("ep", 1)) if shape.experts else 1
    expert_tp = max(1, d.get("expert_tp", 1)) if shape.experts else 1
    borrowed_ranks(d, shape, tp, cp, ep, expert_tp)
    zero = sharding(d, shard * cp, pp)
    job = Job(
        batch,
        seq,
        catalog.recipe("bf16-adam-fp32-grads" if zero == 1 else "bf16-adam"),
        gather_context=cp > 1 and d.get("rotate", "allgather") != "alltoall",
        overlap_tensor=bool(d.given("overlap_tensor")),
        loss=loss(d),
        kernels="compiled" if d.given("compile") or d.given("compile_enable") else "eager",
        fsdp="each",  # FSDP2
    )
    hybrid = shard * cp if zero and replicate > 1 else 0
    found = Layout(gpus, tp, pp, cp, ep, zero, micro, recompute, schedule, chunks, expert_tp, hybrid, some)
    return job, found, precision(d)


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
        return 1 if pp > 1 else 3
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
        d.refuse(f"ValueError: Unknown schedule {written[:40]}. The valid options are {KNOWN}", "schedule")
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


def write(name: str, value: object, launch: Any) -> list[tuple[str, str | None]]:
    """The settings that set one of our names to a value."""
    if name == "recompute":
        return [("activation_checkpoint.mode", str(value))]
    if name == "zero":
        return [("parallelism.fsdp_reshard_after_forward", "always" if value == 3 else "never")]
    if name == "loss":
        return [("compile.enable", "true")]
    if name == "micro_batch":
        key = (
            "parallelism.pipeline_parallel_microbatch_size"
            if launch.layout.pp > 1
            else "training.local_batch_size"
        )
        more = [("training.global_batch_size", str(launch.job.global_batch))] if launch.layout.pp == 1 else []
        return [(key, str(value)), *more]
    if name in ("tp", "pp", "cp"):
        axis = {"tp": "tensor", "pp": "pipeline", "cp": "context"}[name]
        a = launch.layout
        dp = a.gpus // (a.tp * a.pp * a.cp // getattr(a, name) * int(str(value)))
        shard = [("parallelism.data_parallel_shard_degree", str(dp))] if not a.shard else []
        local = (
            [("training.local_batch_size", str(max(1, launch.job.global_batch // dp)))]
            if a.pp > 1 and dp
            else []
        )
        batch = [("training.global_batch_size", str(launch.job.global_batch))]
        return [(f"parallelism.{axis}_parallel_degree", str(value)), *shard, *local, *batch]
    return [("parallelism.expert_parallel_degree", str(value))] if name == "ep" else []


MOVES = {
    "micro_batch": (),
    "recompute": ("none", "selective", "full"),
    "zero": (2, 3),
    "loss": ("fused",),
    "tp": (),
    "pp": (),
    "cp": (),
    "ep": (),
}
