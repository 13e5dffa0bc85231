"""Exports: keys that the programs document, values that come back as the layout, files that their parsers
take."""

import json
import re
import tomllib
from dataclasses import replace

import pytest

import engine
from engine import catalog
from engine.catalog.models import resized
from engine.frameworks import deepspeed, registry, torchtitan
from engine.frameworks.described import Launch
from engine.frameworks.megatron import writer
from engine.launch import planned
from engine.mechanism import memory
from engine.step import cases, planner
from engine.step.cases import SCHEDULE_KEYS
from engine.step.layout import Job, Layout
from engine.validation import CASES

DOCUMENTED = json.loads((CASES / "exports.json").read_text(encoding="utf-8"))
LLAMA, DEEPSEEK, QWEN, SCOUT = (
    catalog.model(key) for key in ("llama3-70b", "deepseek-v3", "qwen2.5-7b", "llama4-maverick")
)
RUNS = {  # model, tp, pp, cp, dp, ep, expert_tp, zero, micro_batch, recompute, schedule, chunks, fp8
    "classic": (LLAMA, 8, 4, 1, 16, 1, 1, 1, 1, 0, "1f1b", 1, 0),
    "interleaved": (LLAMA, 4, 4, 2, 16, 1, 1, 0, 2, 2, "interleaved", 5, 1),
    "fsdp": (QWEN, 1, 1, 1, 64, 1, 1, 3, 1, 0, "1f1b", 1, 0),
    "latent experts": (DEEPSEEK, 1, 16, 1, 128, 64, 1, 2, 1, 2, "dualpipe", 1, 1),
    "every second layer": (SCOUT, 8, 2, 1, 32, 16, 8, 1, 1, 0, "zb-h1", 1, 0),
    "zb-h2": (LLAMA, 2, 8, 1, 8, 1, 1, 1, 1, 0, "zb-h2", 1, 0),
    "gpipe": (LLAMA, 2, 8, 1, 8, 1, 1, 1, 1, 0, "gpipe", 1, 0),
}


def run(name) -> cases.ExportedRun:
    model, tp, pp, cp, dp, ep, expert_tp, zero, micro_batch, recompute, schedule, chunks, fp8 = RUNS[name]
    return cases.ExportedRun(
        model,
        tp,
        pp,
        cp,
        dp,
        ep,
        expert_tp,
        zero,
        micro_batch,
        recompute,
        SCHEDULE_KEYS.index(schedule),
        chunks,
        SCHEDULE_KEYS,
        2048,
        4096,
        1e12,
        fp8,
    )


def arguments(text: str) -> dict:
    """Flag -> value, or True."""
    text = text.removeprefix("export CUDA_DEVICE_MAX_CONNECTIONS=1\n")
    assert text.startswith("ARGS=(\n") and text.endswith(")\n")
    found = {}
    for line in text.splitlines()[1:-1]:
        if not line.startswith("  # "):
            flag, value = re.fullmatch(r"  --([a-z0-9-]+)(?: (\S+))?", line).groups()
            assert flag not in found, f"--{flag} stands twice"
            found[flag] = value or True
    return found


@pytest.mark.parametrize("name", RUNS)
def test_megatron_arguments_are_documented_and_say_the_layout(name):
    known, here = DOCUMENTED["megatron"], run(name)
    found = arguments(writer.written(here))
    assert not set(found) - set(known["flags"])
    for flag, choices in known["choices"].items():
        assert found.get(flag) in (None, *choices)
    sizes = [int(found[f"{axis}-parallel-size"]) for axis in ("tensor-model", "pipeline-model", "context")]
    assert sizes == [here.tp, here.pp, here.cp]
    assert ("sequence-parallel" in found) == (here.tp > 1)
    assert int(found["micro-batch-size"]) == here.micro_batch and int(found["global-batch-size"]) == 2048
    assert int(found["train-iters"]) == 119210  # 1e12 / (2048 · 4096) = 119,209.3
    assert ("num-experts" in found) == bool(here.model.experts) == ("expert-model-parallel-size" in found)
    biased = bool(here.model.moe.router_bias)  # which Megatron-LM refuses beside softmax, its default
    assert ("moe-router-enable-expert-bias" in found) == biased
    assert found.get("moe-router-score-function") == ("sigmoid" if biased else None)
    assert ("multi-latent-attention" in found) == bool(here.model.attention.kv_lora)
    first, last = (
        int(found.get(f"decoder-{end}-pipeline-num-layers", here.model.depth / here.pp))
        for end in ("first", "last")
    )
    if here.pp > 2:
        assert (here.model.depth - first - last) % (
            here.pp - 2
        ) == 0  # what Megatron-LM asks of the stages between


@pytest.mark.parametrize(
    ("key", "flags"),
    [
        (
            "llama3-70b",
            {
                "normalization": "RMSNorm",
                "position-embedding-type": "rope",
                "disable-bias-linear": True,
                "swiglu": True,
                "untie-embeddings-and-output-weights": True,
            },
        ),
        ("qwen2.5-7b", {"normalization": "RMSNorm", "disable-bias-linear": True, "add-qkv-bias": True}),
        ("gpt3-175b", {"normalization": "LayerNorm", "position-embedding-type": "learned_absolute"}),
    ],
)
def test_megatron_s_defaults_are_gpt_2_s_and_other_models_say_what_they_are(key, flags):
    found = arguments(writer.written(run("classic")._replace(model=catalog.model(key))))
    assert {name: found.get(name) for name in flags} == flags
    assert key != "gpt3-175b" or not {
        "swiglu",
        "disable-bias-linear",
        "untie-embeddings-and-output-weights",
    } & set(found)


def test_what_megatron_cannot_do_is_said():
    assert "no schedule dualpipe" in writer.written(run("latent experts")) and "1F1B" in writer.written(
        run("every second layer")
    )
    assert "#" not in writer.written(run("classic"))
    assert "#" not in writer.written(run("zb-h2")._replace(pp=1))  # without a pipeline all schedules are one
    bloom = writer.written(run("classic")._replace(model=catalog.model("bloom-176b")))
    assert "no ALiBi" in bloom and "--position-embedding-type none\n" in bloom
    kimi = writer.written(run("latent experts")._replace(model=catalog.model("kimi-k2")))
    assert '"([0]*1+[1]*60)"' in kimi
    assert '"([0]*3+[1]*58)"' in writer.written(
        run("latent experts")
    ) and "--moe-layer-freq 2\n" in writer.written(run("every second layer"))


@pytest.mark.parametrize("name", RUNS)
def test_torchtitan_reads_its_file(name):
    known, here = DOCUMENTED["torchtitan"], run(name)
    found = tomllib.loads(torchtitan.written(here))
    float8 = found.pop("quantize", {"linear": {"float8": {}}})["linear"]["float8"]
    assert not set(float8) - set(known["sections"]["quantize.linear.float8"]) and bool(float8) == bool(
        here.fp8
    )
    for section, settings in found.items():
        assert not set(settings) - set(known["sections"][section])
    split, batch = found["parallelism"], found["training"]
    degrees = [split[f"{axis}_parallel_degree"] for axis in ("tensor", "pipeline", "context")]
    assert degrees == [here.tp, here.pp, here.cp]
    assert split["data_parallel_replicate_degree"] * split["data_parallel_shard_degree"] == here.dp
    # train.py: gradient_accumulation_steps = global_batch_size // (local_batch_size * dp_degree), one forward
    # pass each; with a pipeline a pass is cut into micro-batches of pipeline_parallel_microbatch_size
    passes = batch["global_batch_size"] / (batch["local_batch_size"] * here.dp)
    at_once = split["pipeline_parallel_microbatch_size"] if here.pp > 1 else batch["local_batch_size"]
    assert batch["global_batch_size"] == 2048 and at_once == here.micro_batch
    assert passes == (1 if here.pp > 1 else 2048 / (here.micro_batch * here.dp))
    assert split.get("pipeline_parallel_schedule", "1F1B") in known["pipeline_schedules"]
    assert ("pipeline_parallel_schedule" in split) == (here.pp > 1)
    assert set(torchtitan.TORCH_SCHEDULES) == set(SCHEDULE_KEYS) - {"zb-h1", "zb-h2", "dualpipe"}
    assert set(torchtitan.TORCH_SCHEDULES.values()) < set(known["pipeline_schedules"])
    if (
        here.pp > 1
    ):  # torchtitan counts embedding and output as a layer each, and wants so many stages for every rank
        stages = -(-(here.model.depth + 2) // split["pipeline_parallel_layers_per_stage"])
        assert stages % here.pp == 0 or "torchtitan refuses" in torchtitan.written(here)


def test_torchtitan_compiles_the_layers_unless_the_schedule_splits_their_backward():
    """The planner's times assume fast kernels, so its file asks for them; with the loss alone left uncompiled
    where the planner's loss is plain."""
    here = run("gpipe")
    assert tomllib.loads(torchtitan.written(here))["compile"] == {"enable": True, "components": ["model"]}
    fused = tomllib.loads(torchtitan.written(here._replace(loss="fused")))
    assert fused["compile"] == {"enable": True}, "torchtitan compiles both by itself"
    assert "compile" not in tomllib.loads(torchtitan.written(here._replace(eager=True)))
    for key in torchtitan.SPLIT:
        text = torchtitan.written(here._replace(schedule=SCHEDULE_KEYS.index(key), chunks=2, loss="fused"))
        assert "compile" not in tomllib.loads(text) and "not compiled, and slower than planned" in text


def test_torchtitan_s_own_count_of_stages():
    """Mixtral's 32 layers and two more on two ranks: 17 a stage. 8 would make five stages, which it
    refuses."""
    text = torchtitan.written(run("classic")._replace(model=catalog.model("mixtral-8x7b"), pp=2))
    assert "pipeline_parallel_layers_per_stage = 17\n" in text


def test_megatron_takes_equal_chunks_or_a_written_layout_and_a_checkpoint_of_shards():
    even, sharded = writer.written(run("interleaved")), writer.written(run("latent experts"))
    assert (
        "--num-virtual-stages-per-pipeline-rank 5\n" in even and "pipeline-model-parallel-layout" not in even
    )
    uneven = writer.written(run("interleaved")._replace(chunks=7))
    assert (
        "--num-virtual-stages-per-pipeline-rank" not in uneven
        and "--pipeline-model-parallel-layout" in uneven
    )
    assert "--ckpt-format fsdp_dtensor\n" in sharded and "ckpt-format" not in even


@pytest.mark.parametrize("name", ["classic", "interleaved", "latent experts", "zb-h2"])
def test_deepspeed_says_what_its_file_cannot_hold(name):
    assert deepspeed.written(run(name)) == deepspeed.CUT_ELSEWHERE


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_deepspeed_reads_its_file(zero):
    known, here = DOCUMENTED["deepspeed"]["keys"], run("fsdp")._replace(zero=zero)
    found = json.loads(deepspeed.written(here))
    assert not set(found) - set(known[""])
    for section in set(known) - {""}:
        assert not set(found[section]) - set(known[section])
    assert found["train_batch_size"] == (
        found["train_micro_batch_size_per_gpu"] * found["gradient_accumulation_steps"] * here.dp
    )
    assert found["zero_optimization"]["stage"] == zero
    assert found["zero_optimization"]["overlap_comm"] == (
        zero > 0
    )  # an option of ZeRO, not of plain replicas


def test_pytorch_s_fully_shard_is_torchtitan_s_file_with_every_other_degree_one():
    found = tomllib.loads(registry.frameworks()["fsdp2"].write(run("fsdp")))
    degrees = {key: value for key, value in found["parallelism"].items() if key.endswith("degree")}
    assert degrees.pop("data_parallel_shard_degree") == 64 and set(degrees.values()) == {1}


def test_the_planner_s_run_is_the_winner():
    case = cases.Case(LLAMA, *_machine(), catalog.recipe("bf16-adam"), 512, 1024, 8192)
    layouts = planner.found(case).layouts
    here = cases.run(case, layouts, 1e12, 0.0)
    assert (
        here.tp * here.pp * here.cp * here.dp == 512
        and here.schedules[int(here.schedule)] == SCHEDULE_KEYS[int(layouts.schedule[0])]
    )


def _machine():
    from engine.step.layout import machine

    at = machine(catalog.gpu("h100-sxm"))
    return at.chip, at.wires, memory.capacity_bytes(at.gpu)


def test_megatron_s_fused_loss():
    assert "cross-entropy" not in writer.written(run("classic"))
    fused = writer.written(run("classic")._replace(loss="fused"))
    assert "--cross-entropy-loss-fusion\n  --cross-entropy-fusion-impl te\n" in fused
    assert "no chunked loss" in writer.written(run("classic")._replace(loss="chunked"))


def test_megatron_s_modules_and_some_layers():
    modules = writer.written(run("classic")._replace(modules=("layernorm", "moe_act")))
    assert "--recompute-granularity selective\n  --recompute-modules layernorm moe_act\n" in modules
    some = writer.written(run("interleaved")._replace(recompute_layers=10.0))
    assert "--recompute-method block\n  --recompute-num-layers 2\n" in some  # of each of five chunks


def unrolled(layout: str) -> list[str]:
    """A layout string as Megatron-LM unrolls it (pipeline_parallel_layer_layout.py, parse_str_to_list)."""
    for pattern in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        layout = re.sub(pattern, lambda found: found[1] * int(found[2]), layout)
    return layout.split("|")


@pytest.mark.parametrize(("layers", "pp", "chunks"), [(80, 4, 7), (61, 8, 2), (90, 4, 4), (32, 3, 2)])
def test_an_uneven_cut_is_written_out_as_the_engine_has_it(layers, pp, chunks):
    here = run("interleaved")._replace(model=resized(LLAMA, layers=layers), pp=pp, chunks=chunks)
    here = here._replace(global_batch=2304)  # whole rounds of three, four and eight micro-batches
    text = writer.written(here)
    found = arguments(text)
    assert "#" not in text and "num-virtual-stages-per-pipeline-rank" not in found
    parts = unrolled(found["pipeline-model-parallel-layout"].strip('"'))
    assert len(parts) == pp * chunks and parts[0][0] == "E" and parts[-1][-1] == "L"
    held = [sum(part.count("t") for part in parts[stage::pp]) for stage in range(pp)]
    cut = here.stage_layers
    assert held == [cut.first, *[cut.full] * (pp - 2), cut.last] and sum(held) == layers
    launch = f"torchrun pretrain_gpt.py {' '.join(text.split('ARGS=(')[1].split()[:-1])}"
    report = engine.check_launch(launch, "h100-sxm", here.tp * pp * here.cp * here.dp)
    assert report.estimate.layout.interleave == chunks and not report.launch.refused
    assert not [one for one in report.launch.assumed if "layers of each stage" in str(one)]


def test_a_cut_that_no_first_and_last_chunk_make_even_is_said():
    text = writer.written(run("interleaved")._replace(model=resized(LLAMA, layers=61), pp=4, chunks=5))
    assert "write another cut" in text and "pipeline-model-parallel-layout" not in text


@pytest.mark.parametrize(
    ("key", "window", "every"),
    [("gpt-oss-120b", "128,0", "2"), ("gemma3-27b", "1024,0", "6"), ("mistral-7b", "4096,0", None)],
)
def test_windows_are_written_as_megatron_has_them(key, window, every):
    """gpt-oss: every second layer; Gemma 3: five of six, 52 of 62; Mistral: all."""
    found = arguments(writer.written(run("classic")._replace(model=catalog.model(key))))
    assert (found.get("window-size"), found.get("window-attn-skip-freq")) == (window, every)


def test_megatron_counts_embedding_and_loss_where_that_makes_chunks_equal():
    here = run("interleaved")._replace(model=catalog.model("llama3.1-405b"), pp=16, chunks=8)
    text = writer.written(here)
    assert (
        "--num-virtual-stages-per-pipeline-rank 8\n" in text and "pipeline-model-parallel-layout" not in text
    )
    assert "--account-for-embedding-in-pipeline-split\n  --account-for-loss-in-pipeline-split\n" in text
    assert "account-for" not in writer.written(run("interleaved"))


def test_megatron_s_uneven_ends():
    text = writer.written(run("classic")._replace(first_layers=19.0, last_layers=19.0))
    assert "--decoder-first-pipeline-num-layers 19\n  --decoder-last-pipeline-num-layers 19\n" in text


def test_megatron_s_multi_token_prediction():
    assert "--mtp-num-layers 1\n" in writer.written(run("latent experts")._replace(mtp=1.0))
    assert "mtp" not in writer.written(run("latent experts"))


@pytest.mark.parametrize(
    ("key", "base", "epsilon"),
    [
        ("llama2-7b", "10000", None),
        ("llama3-70b", "500000", None),
        ("qwen3-32b", "1000000", "1e-6"),
        ("deepseek-v3", "10000", "1e-6"),
        ("gpt-oss-120b", "150000", None),
        ("gpt3-175b", None, None),
        ("bloom-176b", None, None),
    ],
)
def test_the_rotary_base_and_the_norms_epsilon_are_written(key, base, epsilon):
    """As the models' own config.json has them; Megatron-LM's defaults are 10000 and 1e-5."""
    found = arguments(writer.written(run("classic")._replace(model=catalog.model(key))))
    assert (found.get("rotary-base"), found.get("norm-epsilon")) == (base, epsilon)


def test_every_model_with_rotations_has_a_base_and_an_own_one_says_that_it_needs_one():
    for key, model in catalog.all_models().items():
        rotary = not model.max_positions and not model.embedding_norm
        assert (model.rotary_base > 0) == rotary or (rotary and model.counted_params), key
    own = writer.written(run("classic")._replace(model=replace(LLAMA, rotary_base=0)))
    assert "--rotary-base is yours" in own and "--rotary-base 5" not in own


@pytest.mark.parametrize(
    ("key", "normed"),
    [("qwen3-32b", True), ("deepseek-v3", True), ("llama3-70b", False), ("olmo2-7b", False)],
)
def test_norms_of_heads_and_of_latents_are_written_and_others_are_said(key, normed):
    text = writer.written(run("classic")._replace(model=catalog.model(key)))
    assert ("--qk-layernorm\n" in text) == normed
    assert ("further norms" in text) == (key == "olmo2-7b")  # over all heads, which Megatron-LM has not


@pytest.mark.parametrize("key", ["llama3-70b", "deepseek-v3", "mixtral-8x7b"])
def test_torchtitan_s_float8_needs_a_converter_with_or_without_a_flavor(key):
    here = run("interleaved")._replace(model=catalog.model(key))
    found = tomllib.loads(torchtitan.written(here))
    assert found["model"]["converters"] == ["quantize.linear.float8"]
    assert found["quantize"]["linear"]["float8"]["filter_fqns"] == ["output"]
    assert ("flavor" in found["model"]) == (key != "mixtral-8x7b")
    assert "converters" not in tomllib.loads(torchtitan.written(here._replace(fp8=0.0))).get("model", {})


@pytest.mark.parametrize(
    ("tp", "cp", "zero", "asked"), [(2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 1, 0), (2, 1, 3, 0)]
)
def test_megatron_gets_the_variable_that_it_asks_for_under_tensor_and_context_parallelism(
    tp, cp, zero, asked
):
    """validate_args asserts CUDA_DEVICE_MAX_CONNECTIONS == 1 on Hopper and before, and that it is not 1 under
    its FSDP."""
    one = Layout(16, tp, 1, cp, zero=zero)
    launch = Launch("megatron", catalog.model("llama3.1-8b"), 16, "bf16", job=Job(64, 4096), layout=one)
    assert ("CUDA_DEVICE_MAX_CONNECTIONS=1" in planned.written(launch, one)) == asked


def test_torchtitan_s_qwen3_gets_no_stages():
    """Its TrainSpec has no pipelining_fn, and the trainer refuses a pipeline then."""
    can = engine.Constraints(able=(registry.frameworks()["torchtitan"].can,))
    for key, may in (("qwen3-32b", False), ("llama3.1-70b", True)):
        assert can.allows(catalog.model(key), Layout(64, 1, 4, zero=3), Job(512, 4096)) == may
        assert can.allows(catalog.model(key), Layout(64, zero=3), Job(512, 4096))
