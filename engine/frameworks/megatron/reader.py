"""What Megatron-LM's arguments come to: the model, the job and its layout, and the errors that they end in.

Names, defaults and errors: NVIDIA/Megatron-LM megatron/training/arguments.py at commit 000c4ac24f61 (Core
0.15), ``validate_args`` and the groups; num_microbatches_calculator.py and transformer_config.py for three
errors; at tag core_v0.15.0 pipeline_parallel/schedules.py (groups of micro-batches),
tensor_parallel/mappings.py and layers.py (what ranks cut evenly); optimizers beside Adam and SGD at commit
d98e8a64 (August 2026). With ``--deepspeed``:
bigscience-workshop/Megatron-DeepSpeed, and deepspeed/runtime/bf16_optimizer.py.

Left out: the padding of the vocabulary (up to 1 % of it), the batch's ramp-up, and layouts of
``--pipeline-model-parallel-layout`` that are not even but for their ends.
"""

from __future__ import annotations

from dataclasses import replace

from engine import catalog
from engine.catalog.models import Model, described
from engine.catalog.recipes import Recipe
from engine.catalog.software import overlaps
from engine.frameworks.framework import Meant
from engine.frameworks.known_models import named
from engine.frameworks.megatron.fields import KEYS, NOT_DELAYED
from engine.frameworks.settings import Draft
from engine.mechanism.memory import MODULES
from engine.mechanism.pipeline import stage_layers
from engine.step.layout import Job, Layout

LARGE_EPSILON = 1e-5  # Megatron-LM's default
# what Core's optimizer_config.py asserts of an optimizer that is not told to keep its state narrow
ONLY_FP32 = {
    "gradient_dtype": "main_grads_dtype",
    "master_dtype": "main_params_dtype",
    "momentum_dtype": "exp_avg_dtype",
    "variance_dtype": "exp_avg_sq_dtype",
}
WIDTHS = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0}


def model(draft: Draft) -> Model:
    """The model that the sizes describe; ValueError for what is missing or contradicts itself."""
    d = draft
    missing = [KEYS[name] for name in ("layers", "hidden", "heads") if not d.given(name)]
    if missing:
        raise ValueError(f"the model needs --{', --'.join(missing)}: give them, or its config.json")
    hidden, heads, gated = d.given("hidden"), d.given("heads"), bool(d.given("gated"))
    latent = bool(d.given("latent"))
    if not d.given("head_dim") and hidden % heads and not latent:
        raise ValueError(
            f"hidden-size {hidden} must be a multiple of the {heads} attention heads, or kv-channels be given"
        )
    grouped = bool(d.given("grouped"))
    kv_heads = d.given("kv_heads") if grouped else None
    dense = int(4 * hidden * 2 / 3 / 64) * 64 if gated else 4 * hidden
    ffn = d.get("ffn", dense, "4 × hidden-size, ⅔ of it with --swiglu")
    d.given("positions")
    kind = d.get("position_type", "learned_absolute")
    elsewhere = [d.given("rotary"), d.given("unplaced")]
    placed = kind == "learned_absolute" and not any(elsewhere)
    rotary = kind == "rope" or bool(d.given("rotary"))
    dropout = d.get("attention_dropout", 0.1) > 0 or d.get("hidden_dropout", 0.1) > 0
    experts, layers = d.given("experts") or 0, d.given("layers")
    shared = d.given("shared_ffn") or 0
    first, every = _pattern(d, layers) if experts else (0, 1)
    expert_ffn = (d.given("expert_ffn") or ffn) if experts else 0
    many = shared // expert_ffn if experts and shared and shared % expert_ffn == 0 else 1
    window, windowed_layers = _windows(d, layers)
    norm = d.get("normalization", "LayerNorm")
    width = d.given("head_dim") or (128 if latent else hidden // heads)
    return described(
        key="own",
        name="the model of these arguments",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads if latent or not kv_heads else kv_heads,
        head_dim=width,
        ffn=ffn if not experts or first or every > 1 else 0,
        vocab=vocabulary(d),
        gated=gated,
        tied=not d.given("untied"),
        max_positions=(d.given("positions") or 0) if placed else 0,
        rotary_base=(d.given("rotary_base") or 10000) if rotary else 0,
        biases=not d.given("unbiased"),
        qkv_bias=bool(d.given("qkv_bias")),
        norm_bias=norm != "RMSNorm",
        small_epsilon=(d.given("norm_epsilon") or LARGE_EPSILON) < LARGE_EPSILON,
        embedding_norm=bool(d.given("embedding_norm")),
        dropout=dropout,
        q_lora=d.given("q_lora") or 0 if latent else 0,
        kv_lora=(d.given("kv_lora") or 32) if latent else 0,
        rope_dim=(d.given("rope_dim") or 64) if latent else 0,
        nope_dim=(d.given("nope_dim") or 128) if latent else 0,
        v_dim=(d.given("v_dim") or 128) if latent else 0,
        extra_params_per_layer=2 * width if d.given("qk_norm") and not latent else 0,
        expert_groups=(d.given("expert_groups") or 0) if experts else 0,
        top_groups=(d.given("top_groups") or 0) if experts else 0,
        router_bias=bool(d.given("router_bias")) and experts > 0,
        experts=experts,
        top_k=d.get("top_k", 2) if experts else 0,
        expert_ffn=expert_ffn,
        shared_experts=many if shared and experts else 0,
        shared_ffn=shared // many if shared and experts else 0,
        first_dense_layers=first,
        moe_every=every,
        window=window,
        windowed_layers=windowed_layers,
    )


def _windows(d: Draft, layers: int) -> tuple[int, int]:
    """The window of attention, and in how many layers it is: every n-th has none."""
    window, every = str(d.given("window") or "").strip("()\"' "), str(d.given("full_every") or "").strip()
    tokens = window.split(",")[0].strip()
    if not tokens.isdigit() or len(tokens) > 9:
        return 0, 0
    if every and not every.isdigit():
        d.assume("windowed layers", "all", "a pattern in --window-attn-skip-freq is not read")
    least = int(every) if every.isdigit() and len(every) < 5 else 0
    return int(tokens), layers - layers // least if least else layers


def vocabulary(d: Draft) -> int:
    """The vocabulary's size: given, or that of the model whose tokenizer is named."""
    size, tokenizer = d.given("vocab"), d.given("tokenizer")
    if size:
        return size
    if tokenizer:
        try:
            found = named(tokenizer)
        except ValueError:
            pass
        else:
            d.assume("vocab", found.vocab, f"that of {found.name}, whose tokenizer is named")
            return found.vocab
    d.assume("vocab", 51200, "no --vocab-size: GPT-2's, padded")
    return 51200


def _pattern(d: Draft, layers: int) -> tuple[int, int]:
    """Dense layers before the first expert, and every how many layers there are experts."""
    text = str(d.get("moe_every", "1")).replace(" ", "")
    if text.isdigit():
        return 0, max(1, int(text))
    for first in range(layers):
        if text.strip("\"'()") in (
            f"[0]*{first}+[1]*{layers - first}",
            ",".join("0" * first + "1" * (layers - first)),
        ):
            return first, 1
    d.assume("moe_every", 1, f"experts in every layer: the pattern {text[:30]} is not read")
    return 0, 1


MUONS = ("muon", "dist_muon")


def is_emerging(d: Draft) -> bool:
    """Whether the optimizer is one of those that take whole matrices to the data ranks, Lion among them."""
    return d.given("optimizer") not in (None, "adam", "sgd") and not d.given("deepspeed")


def recipe(d: Draft) -> tuple[str, Recipe]:
    """The format of the products and the bytes of the training state. With --bf16 gradients are summed in
    fp32 unless --grad-reduce-in-bf16 is given (validate_args).

    Megatron-LLaMA's overlapped optimizer keeps of all but the weights a data rank's part alone: a sum of the
    gradients and those that have just been received, and beside the fp32 copy one in 16 bits, from which
    weights are gathered (alibaba/Megatron-LLaMA megatron/optimizer/overlapped_dist_optimizer.py). Leaves out
    its buckets, of which two are filled at a time."""
    half, narrow = bool(d.given("fp16")), bool(d.given("bf16"))
    if half and narrow:
        d.refuse("AssertionError: assert not args.bf16", "bf16")
    if not half and not narrow:
        d.assume("precision", "fp32", "neither --bf16 nor --fp16")
        return "fp32", catalog.recipe("fp32-adam")
    wide = narrow and not d.given("narrow_gradients") and d.given("gradient_dtype") in (None, "fp32")
    wide = wide or bool(d.given("wide_gradients"))
    found = catalog.recipe("bf16-adam-fp32-grads" if wide else "bf16-adam")
    if wide and d.given("deepspeed"):  # its bf16 optimizer sums the gradients of each micro-batch in fp32
        found = catalog.recipe("bf16-adam-two-grads")
    if not d.given("aware"):
        for name, theirs in ONLY_FP32.items():
            if WIDTHS.get(d.given(name) or "fp32", 4.0) != 4.0:
                d.refuse(
                    f"AssertionError: {theirs} can only be fp32 when not using precision-aware optimizer",
                    name,
                )
    if d.given("aware"):
        summed = 2.0 if d.given("narrow_gradients") else 4.0
        found = replace(
            found,
            key=f"{found.key}+aware",
            gradient_bytes=min(summed, WIDTHS.get(d.given("gradient_dtype") or "fp32", 4.0)),
            master_bytes=WIDTHS.get(d.given("master_dtype") or "fp32", 4.0),
            momentum_bytes=WIDTHS.get(d.given("momentum_dtype") or "fp32", 4.0),
            variance_bytes=WIDTHS.get(d.given("variance_dtype") or "fp32", 4.0),
        )
    if d.given("parted"):
        found = replace(
            found,
            key=f"{found.key}+parted",
            gradient_bytes=2.0 * found.gradient_bytes,
            gradient_sum_bytes=found.gradient_bytes,
            master_bytes=found.master_bytes + found.weight_bytes,
        )
    chosen = d.given("optimizer") or "adam"
    if chosen == "sgd":
        found = catalog.recipe("sgd-momentum")
    elif chosen in MUONS:
        whole = catalog.recipe("muon").matrices
        if whole:
            whole = replace(whole, steps=max(1, d.get("muon_steps", 5, "Megatron-LM's default")))
        found = replace(found, key=f"{found.key}+muon", matrices=whole)
    elif chosen == "lion":
        found = replace(found, key=f"{found.key}+lion", variance_bytes=0.0)
    elif chosen != "adam":
        d.lacks("optimizer", "this optimizer is not modelled")
    if half and is_emerging(d):
        d.refuse("ValueError: emerging optimizer with fp16 is not supported.", "optimizer")
    fp8 = d.given("fp8") or d.given("fp8_hybrid")
    return "fp8" if fp8 else "fp16" if half else "bf16", found


def recomputed(d: Draft, chunks: int, stage: int) -> tuple[str, int]:
    """What is computed again, and in how many layers of a stage (0 for all)."""
    granularity = "selective" if d.given("recompute_activations") else d.given("granularity")
    method, layers, modules = (
        d.given("recompute_method"),
        d.given("recompute_layers"),
        d.given("recompute_modules"),
    )
    if d.given("checkpointed"):
        if d.given("deepspeed"):
            return "full", 0
        d.refuse(
            "RuntimeError: --checkpoint-activations is no longer valid, use --recompute-activations, or, for "
            "more control, --recompute-granularity and --recompute-method.",
            "checkpointed",
        )
    if not granularity or granularity == "none":
        return "none", 0
    if granularity == "selective":
        if method:
            d.refuse(
                "AssertionError: recompute method is not yet supported for selective recomputing granularity"
            )
        bare = (modules or "").strip("[]").replace(",", " ").replace('"', " ").replace("'", " ")
        asked = [name for name in bare.split() if name in MODULES]
        delayed = (d.given("fp8") or d.given("fp8_hybrid")) and (d.given("fp8_recipe") or "delayed")
        if delayed == "delayed" and set(asked) & set(NOT_DELAYED):
            d.refuse(
                "ValueError: Delayed scaling does not support moe_act and layernorm recompute for fp8.",
                "recompute_modules",
            )
        return ("+".join(dict.fromkeys(asked)), 0) if asked else ("selective", 0)
    if method == "block" and layers:
        every = layers * chunks
        return "full", 0 if every >= stage else every
    if method == "uniform" and layers and layers > 1:
        d.assume("recompute_layers", "all", f"groups of {layers} layers count like single ones")
    return "full", 0


def stage(d: Draft) -> int:
    """The ZeRO stage."""
    strategy = d.given("strategy")
    if d.given("deepspeed"):
        given, narrow = d.given("zero") or 0, bool(d.given("bf16"))
        if narrow and not given:
            d.assume("zero", 1, "DeepSpeed's bf16 optimizer shards its state by itself")
        return 1 if narrow and not given else min(3, given)
    if d.given("fsdp2"):
        return 3
    if d.given("fsdp"):
        known = {"optim": 1, "optim_grads": 2, "optim_grads_params": 3}
        return known.get(strategy or "no_shard", 0)
    if d.given("parted"):
        return 2
    return 1 if d.given("distributed") or d.given("optimizer") == "dist_muon" else 0


def shared(d: Draft, ranks: int) -> int:
    """GPUs that share one copy of the state, of these data-parallel ranks; 0 for all."""
    copies = d.given("copies") or 1
    if ranks % copies:
        d.refuse(
            "AssertionError: Data parallel size should be divisible by partial DistOpt shard factor", "copies"
        )
        return 0
    return ranks // copies if copies > 1 else 0


def chunked(d: Draft, layers: int, pp: int) -> int:
    """Chunks of layers on each stage."""
    if d.given("interleave"):
        return d.given("interleave")
    each, text = d.given("chunk_layers"), d.given("pipeline_layout")
    if each:
        if layers % pp:
            d.refuse(
                "AssertionError: number of layers of the model must be divisible pipeline model parallel "
                "size",
                "chunk_layers",
            )
            return 1
        if (layers // pp) % each:
            d.refuse(
                "AssertionError: number of layers per pipeline stage must be divisible number of layers per "
                "virtual pipeline stage",
                "chunk_layers",
            )
            return 1
        return layers // pp // each
    if text:
        parts = chunk_layers(text)
        stages = len(parts)
        if not _is_even(parts, pp, layers):
            d.assume("layers of each stage", "even", "the layout's own split is not modelled")
        if stages % pp:
            d.refuse(
                "AssertionError: The length of pipeline_model_parallel_layout must be divisible by "
                f"pipeline_model_parallel_size (num_stages={stages}, args.pipeline_model_parallel_size={pp})",
                "pipeline_layout",
            )
            return 1
        return stages // pp
    return 1


MOST_PARTS = 10_000  # more chunks than any pipeline has


def chunk_layers(text: str) -> list[int]:
    """The layers of each chunk of a layout string: bars part them, and x*n or (…)*n repeats something."""
    found = [0]
    _walk(found, text, 1)
    return found


def _walk(found: list[int], text: str, times: int) -> None:
    """Add the chunks of a text, so many times over, to those found."""
    for _ in range(times):
        at = 0
        while at < len(text) and len(found) < MOST_PARTS:
            if text[at] == "(":
                close = text.find(")", at)
                if close < 0:
                    return
                again, after = _times(text, close + 1)
                _walk(found, text[at + 1 : close], again)
            else:
                again, after = _times(text, at + 1)
                if text[at] == "t":
                    found[len(found) - 1] += again
                elif text[at] == "|":
                    for _ in range(again):
                        found.append(0)
            at = after


def _times(text: str, at: int) -> tuple[int, int]:
    """How often what stands before this place is repeated, and where the text goes on."""
    if text[at : at + 1] != "*":
        return 1, at
    end = at + 1
    while end < len(text) and text[end].isdigit() and end < at + 5:
        end += 1
    return int(text[at + 1 : end] or "1"), end


def _is_even(parts: list[int], pp: int, layers: int) -> bool:
    """Whether the engine shares the layers out in the same way."""
    chunks = len(parts) // pp
    if len(parts) % pp or sum(parts) != layers or not chunks:
        return False
    cut = stage_layers(float(layers), float(pp), float(chunks))
    held = [sum(parts[stage::pp]) for stage in range(pp)]
    return held == [cut.first, *[cut.full] * (pp - 2), cut.last][:pp]


def meant(d: Draft, shape: Model, gpus: int) -> Meant:
    """Job, layout and precision; what Megatron-LM refuses is noted."""
    tp, pp, cp = (max(1, d.get(name, 1)) for name in ("tp", "pp", "cp"))
    ep = max(1, d.get("ep", 1)) if shape.experts else 1
    expert_tp = max(1, d.get("expert_tp", tp, "that of the tensor ranks")) if shape.experts else 1
    micro = max(1, d.get("micro_batch", 1))
    dp = max(1, gpus // (tp * pp * cp))
    batch = max(
        1, d.get("global_batch", micro * dp, "micro-batch × data-parallel ranks, Megatron-LM's default")
    )
    seq = max(1, d.get("seq", 2048, "no --seq-length"))
    chunks = max(1, chunked(d, shape.depth, pp))
    first, last = d.given("first_layers") or 0, d.given("last_layers") or 0
    if pp > 1 and (first or last):
        even = stage_layers(float(shape.depth), float(pp), float(chunks))
        if (first or even.full, last or even.full) == (even.first, even.last):
            first = last = 0  # what the engine does by itself where layers do not divide evenly
    most = -(-shape.depth // pp)
    recompute, some = recomputed(d, chunks, most)
    precision, state = recipe(d)
    parallel = bool(d.given("sequence_parallel")) and tp > 1
    comm = d.get("cp_comm", "p2p") if cp > 1 else "p2p"
    fused = bool(d.given("fused_loss")) and d.get("loss_impl", "native") == "te"
    old = bool(d.given("deepspeed"))
    kernel = (d.given("attention") or "auto").lower()
    by_blocks = (d.given("fp8_recipe") or "").lower() in ("mxfp8", "blockwise")
    if kernel not in ("auto", "flash", "fused", "unfused", "local"):
        d.refuse(
            f"train.py: error: argument --attention-backend: invalid choice: {kernel[:40]!r}", "attention"
        )
    scores = kernel in ("unfused", "local") or (d.given("implementation") == "local" and not d.given("flash"))
    d.ask("flash")
    if old and not d.given("flash"):
        d.assume("flash", False, "Megatron-DeepSpeed's own attention, which keeps the scores")
        scores = True
    hidden = overlaps(
        data=d.given("overlap"), tensor=d.given("overlap_tensor"), experts=d.given("overlap_experts")
    )
    by = catalog.training_software(
        "megatron-core",
        sequence_parallel=parallel or tp == 1,
        attention="scores" if scores else "fused",
        scales="blocks" if by_blocks else "tensor",
        overlaps=hidden,
        gradients="separate" if old or d.given("unfused") else "fused",
        context="gather" if comm in ("allgather", "all_gather") else "ring",
        loss="fused" if fused else "plain",
        saves_fp8=precision == "fp8",  # Transformer Engine's
        orthogonal=tensor_mode(d),
        flat_buffers=old,
    )
    job = Job(batch, seq, state, by, mtp=d.given("mtp") or 0)
    d.given("overlap_gather")
    zero = stage(d)
    found = Layout(
        gpus,
        tp,
        pp,
        cp,
        ep,
        zero,
        micro,
        recompute,
        "interleaved" if chunks > 1 else "1f1b",
        chunks,
        expert_tp,
        shared(d, dp * cp) if zero else 0,
        some,
        first,
        last,
        on_host(d),
    )
    errors(d, shape, job, found, parallel)
    return Meant(gpus, precision, job, found)


def on_host(d: Draft) -> str:
    """What is moved to the host."""
    share = d.given("host_share")
    if not d.given("host_optimizer"):
        return "none"
    if share is not None and share != 1.0:
        d.lacks("host_share", "a part of the optimizer on the host is not modelled")
    return "optimizer"


def tensor_mode(d: Draft) -> str:
    """How tensor ranks make a matrix orthogonal together."""
    modes, mode = ("duplicated", "blockwise", "distributed"), d.given("orthogonal") or "duplicated"
    if mode in modes:
        return mode
    d.refuse(f"error: argument --muon-tp-mode: invalid choice: '{mode}'", "orthogonal")
    return modes[0]


def _groups(d: Draft, job: Job, a: Layout) -> None:
    """What an interleaved pipeline refuses of its micro-batches: any but full groups of as many as there are
    stages."""
    many = job.global_batch // (a.micro_batch * a.dp)
    if a.interleave < 2 or a.pp < 2:
        return
    if many < a.pp:
        d.refuse(
            "ValueError: The number of contiguous micro-batches in a virtual pipeline stage"
            f"should range in [PP={a.pp} , M={many}]",
            "interleave",
        )
    elif many % a.pp:
        d.refuse(
            "RuntimeError: The remainder of M (the total micro-batches) divided by N (number of contiguous "
            "micro-batches in a virtual pipeline stage) should be 0, or larger than or equal to the "
            f"pipeline-parallel size, but it is {many % a.pp}. Otherwise, it introduces dependency bubbles "
            "in the pipeline and reduces throughput.",
            "interleave",
        )


def _rows(d: Draft, m: Model, job: Job, a: Layout, parallel: bool) -> None:
    """What its tensor ranks refuse to cut unevenly: a sequence, under sequence parallelism, and the width of
    an MLP."""
    if parallel and job.seq // a.cp % a.tp:
        d.refuse(
            "AssertionError: First dimension of the tensor should be divisible by tensor parallel size", "tp"
        )
    for width, ranks in ((m.ffn, a.tp), (m.expert_ffn, a.expert_tp), (m.shared_ffn, a.tp)):
        if width % ranks:
            d.refuse(f"AssertionError: {width} is not divisible by {ranks}", "tp")
            return


def errors(d: Draft, m: Model, job: Job, a: Layout, parallel: bool) -> None:
    """What Megatron-LM refuses, in its words."""
    ranks = a.tp * a.pp * a.cp
    counted = m.depth + bool(d.given("embedding_counts")) + bool(d.given("loss_counts"))
    if a.gpus % ranks:
        d.refuse(
            f"AssertionError: world size ({a.gpus}) is not divisible by total_model_size "
            f"(total_model_size={ranks})",
            "tp",
        )
        return
    if job.global_batch % (a.micro_batch * a.dp):
        d.refuse(
            f"AssertionError: global batch size ({job.global_batch}) is not divisible by micro batch size "
            f"({a.micro_batch}) times data parallel size ({a.dp})",
            "global_batch",
        )
    if d.given("router_bias") and (d.given("router_scores") or "softmax") != "sigmoid":
        d.refuse(
            "ValueError: Expert bias for aux-loss-free routing only supports sigmoid score function.",
            "router_bias",
        )
    if m.heads % a.tp:
        d.refuse(
            f"ValueError: num_attention_heads ({m.heads}) must be a multiple of "
            f"tensor_model_parallel_size ({a.tp}).",
            "tp",
        )
    elif not m.attention.latent and m.kv_heads % a.tp:
        d.refuse(
            f"ValueError: num_query_groups ({m.kv_heads}) must be a multiple of "
            f"tensor_model_parallel_size ({a.tp}).",
            "tp",
        )
    uneven = d.given("first_layers") or d.given("last_layers") or d.given("pipeline_layout")
    uneven = uneven or d.given("deepspeed")  # which shares layers out by their parameters
    if not uneven and a.interleave == 1 and counted % a.pp:
        d.refuse(
            "AssertionError: Number of layers should be divisible by the pipeline-model-parallel size", "pp"
        )
    if a.interleave > 1 and a.pp < 2:
        d.refuse(
            "AssertionError: When interleaved schedule is used, pipeline-model-parallel size should be "
            "greater than 1",
            "interleave",
        )
    _groups(d, job, a)
    _rows(d, m, job, a, parallel)
    if a.cp > 1 and job.seq % (2 * a.cp):
        d.refuse(
            "AssertionError: seq-length should be a multiple of 2 * context-parallel-size if "
            "context-parallel-size > 1.",
            "seq",
        )
    positions = d.given("positions")
    if positions and positions < job.seq:
        d.refuse(
            f"AssertionError: max_position_embeddings ({positions}) must be greater than or equal to "
            f"seq_length ({job.seq}).",
            "positions",
        )
    if is_emerging(d):
        if d.given("fsdp2"):
            d.refuse("AssertionError: Emerging optimizer does not support Torch-FSDP2 for now.", "fsdp2")
        if d.given("fsdp"):
            d.refuse("AssertionError: Emerging optimizer does not support Megatron-FSDP for now.", "fsdp")
        if a.shard:
            d.refuse(
                "AssertionError: LayerWiseDistributedOptimizer does not support "
                "num_distributed_optimizer_instances > 1.",
                "copies",
            )
    shares = d.given("distributed") or d.given("fsdp") or d.given("optimizer") == "dist_muon"
    if d.given("overlap_gather") and not shares:
        d.refuse(
            "AssertionError: --overlap-param-gather only supported with distributed optimizer or "
            "megatron fsdp",
            "overlap_gather",
        )
    if d.given("overlap_tensor") and not parallel:
        d.refuse(
            "AssertionError: Tensor parallel communication/GEMM overlap can happen only when sequence "
            "parallelism is enabled",
            "overlap_tensor",
        )
