"""Public configurations with a published outcome, read as launch files: the measurements lie within the
engine's bands, which are those of the page Validation, except for the cases named here."""

import pytest

import engine
from engine import validation
from engine.launch.verdict import GIB
from engine.validation import launch_cases

CASES = {
    name: case
    for name, case in launch_cases.cases().items()
    if {"tokens_per_s_per_gpu", "memory_gib"} & set(case)
}
# Cases outside a band. The engine's time is too short in each of them: for 8B on 128 H100s limited to 500 W
# by a sixth, with longer sequences by a fifth and with eight context ranks by two fifths; for 405B by a
# sixth, and with chunks by three tenths. Its memory for 405B is a quarter too small. The causes are not
# known. The files are read correctly, since Validation's rows of the same runs give the same figures.
OUT = {"titan-8b-cp8", "titan-8b-long", "titan-405b-1f1b", "titan-405b-interleaved"}
# In fp8 on 64 H100s the engine's time is 8 % too long, half a per cent more than the band allows.
RECIPES_OUT = {"nemo_2412_llama2-70b_64"}
# launch file -> Validation's row of the same run, which was not read from a file
ROWS = {
    "titan-8b-8": "torchtitan_8b_8_bf16_compile",
    "titan-8b-8-float8": "torchtitan_8b_8_fp8_compile",
    "titan-8b-128": "torchtitan_8b_128_bf16_compile",
    "titan-8b-long": "torchtitan_8b_cp_32768",
    "titan-8b-cp2": "torchtitan_8b_cp_65536",
    "titan-8b-cp8": "torchtitan_8b_cp_262144",
    "titan-70b-tp8": "torchtitan_70b_256",
}
# NVIDIA's published runs, each a recipe of NeMo or Megatron-Bridge with overrides: row of Validation ->
# recipe
RECIPES = {
    "dgxc_llama31_70b_2504_bf16_512": "llama31_70b",
    "dgxc_llama31_70b_2411_bf16_64": "llama31_70b",
    "nemo_2412_llama3-70b_64": "llama3_70b",
    "nemo_2412_llama3-8b_8": "llama3_8b",
    "nemo_2412_llama2-70b_64": "llama2_70b",
}


def overridden(row: dict, recipe: str) -> str:
    """A row's layout and batch, written as overrides of the recipe."""
    layout, job = row["layout"], row["job"]
    mixed = "bf16_mixed" if row.get("precision", "bf16") == "bf16" else "bf16_with_fp8_current_scaling_mixed"
    given = {
        "model.tensor_model_parallel_size": layout["tp"],
        "model.sequence_parallel": str(layout["tp"] > 1).lower(),
        "model.pipeline_model_parallel_size": layout["pp"],
        "model.context_parallel_size": layout["cp"],
        "model.tp_comm_overlap": str("tensor" in validation.job_of(row).software.overlaps).lower(),
        "model.seq_length": job["seq"],
        "train.micro_batch_size": layout["micro_batch"],
        "train.global_batch_size": job["global_batch"],
        "ddp.use_distributed_optimizer": "true",
        "ddp.overlap_grad_reduce": "true",
        "ddp.overlap_param_gather": "true",
        "mixed_precision": mixed,
    }
    if layout["interleave"] > 1:
        given["model.virtual_pipeline_model_parallel_size"] = layout["interleave"]
    lines = [f"python run_recipe.py --recipe {recipe}_pretrain_config"]
    return " \\\n".join([*lines, *(f"  {key}={value}" for key, value in given.items())]) + "\n"


def is_within(measured: float, band: tuple[float, float]) -> bool:
    return band[0] <= measured <= band[1]


def outcomes(name: str) -> list[bool]:
    """Whether the published step time and the published memory of a case are within their bands."""
    case, found = CASES[name], report(name)
    estimate, said = found.estimate, []
    assert estimate is not None or "tokens_per_s_per_gpu" not in case
    if "tokens_per_s_per_gpu" in case:
        step_s = estimate.tokens / (case["tokens_per_s_per_gpu"] * found.launch.gpus)
        said.append(is_within(step_s, estimate.band_s))
    if "memory_gib" in case and estimate is not None:
        low, high = (each / estimate.terms.total_bytes for each in estimate.memory_band_bytes)
        said.append(is_within(case["memory_gib"] * GIB, (found.total_bytes * low, found.total_bytes * high)))
    return said


@pytest.mark.parametrize("name", CASES)
def test_a_public_configuration_is_within_the_bands_or_named(name):
    assert all(outcomes(name)) == (name not in OUT)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_with_its_overrides_is_validation_s_row_and_within_its_band(name):
    [row] = [each for each in validation.load() if each["id"] == name]
    found = engine.check_launch(overridden(row, RECIPES[name]), gpu=row["gpu"], gpus=row["layout"]["gpus"])
    assert found.launch.framework == "bridge" and not found.faults and not found.launch.refused
    assert found.estimate.step_s == pytest.approx(validation.row(name).predicted, rel=0.02)
    assert is_within(row["measured"]["step_s"], found.estimate.band_s) == (name not in RECIPES_OUT)


@pytest.mark.parametrize("name", ROWS)
def test_a_launch_is_read_as_the_run_that_validation_has(name):
    """What is left to differ is how a GPU of one's own scales its memory."""
    assert report(name).estimate.step_s == pytest.approx(validation.row(ROWS[name]).predicted, rel=0.02)


# ten cases of three frameworks, with the relative error of the step's time or, without one, of the memory
TEN = {
    "titan-70b-async": -0.01,
    "titan-8b-h200-32": -0.11,
    "titan-8b-8": -0.14,
    "titan-llama2-13b-none": -0.04,
    "titan-llama2-70b-full": -0.0,
    "bloom-176b": -0.13,
    "bloom-181b-pp4": 0.01,
    "dgxc_llama31_70b_2504_bf16_512": -0.03,
    "nemo_2412_llama3-70b_64": 0.05,
    "nemo_2412_llama2-70b_64": 0.07,
}


def deviation(name: str) -> float:
    if name in RECIPES:
        row = validation.row(name)
        return row.predicted / row.measured - 1.0
    case, found = CASES[name], report(name)
    if "tokens_per_s_per_gpu" in case:
        return case["tokens_per_s_per_gpu"] * found.launch.gpus / found.estimate.tokens_per_s - 1.0
    return found.total_bytes / GIB / case["memory_gib"] - 1.0


@pytest.mark.parametrize("name", TEN)
def test_ten_of_three_frameworks_are_reproduced(name):
    """Within their bands, as the tests above hold, and so far off as is said here."""
    assert name in RECIPES or name in set(CASES) - OUT
    assert deviation(name) == pytest.approx(TEN[name], abs=0.05)


def test_the_ten_are_of_three_frameworks_and_there_are_more():
    frameworks = {
        "Megatron-Bridge" if name in RECIPES else report(name).as_dict()["framework"] for name in TEN
    }
    assert len(TEN) == 10 and len(frameworks) == 3
    assert len(CASES) == 20 and len(set(CASES) - OUT) == 16


def report(name: str):
    case = CASES[name]
    return engine.check_launch(case["texts"], launch_cases.gpu_of(case), case["gpus"])
