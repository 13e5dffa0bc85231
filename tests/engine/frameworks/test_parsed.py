"""Exported files, parsed by the frameworks' own configuration classes: torchtitan's and DeepSpeed's, where
they are installed (``pip install -e '.[frameworks]'``)."""

import json
import tomllib
from types import SimpleNamespace

import pytest

from engine.frameworks import deepspeed, torchtitan
from tests import machine
from tests.engine.frameworks.test_written import RUNS, run

MISSING = "pip install -e '.[frameworks]'"
ALONE = [name for name in RUNS if all(degree == 1 for degree in RUNS[name][1:4]) and RUNS[name][5] == 1]


@pytest.mark.parametrize("name", RUNS)
def test_torchtitan_s_own_class_reads_what_was_meant(name, tmp_path):
    config = pytest.importorskip("torchtitan.config", reason=MISSING)
    here, file = run(name), tmp_path / "job.toml"
    text = torchtitan.written(here)
    file.write_text(text, encoding="utf-8")
    read = config.ConfigManager().parse_args(["--job.config_file", str(file)])
    split = read.parallelism
    assert (split.tensor_parallel_degree, split.pipeline_parallel_degree) == (here.tp, here.pp)
    assert (split.context_parallel_degree, split.expert_parallel_degree) == (here.cp, here.ep)
    assert split.data_parallel_replicate_degree * split.data_parallel_shard_degree == here.dp
    assert (read.training.global_batch_size, read.training.seq_len) == (2048, 4096)
    wanted = tomllib.loads(text)  # nothing that was written is dropped on the way
    for section, settings in wanted.items():
        for key, value in settings.items() if section != "quantize" else ():
            assert getattr(getattr(read, section), key) == value, (section, key)


@pytest.mark.parametrize("key", list(torchtitan.TORCH_SCHEDULES))
def test_pytorch_has_a_class_for_each_schedule_that_is_named(key):
    schedules = machine.torch("torch.distributed.pipelining.schedules")
    found = schedules.get_schedule_class(torchtitan.TORCH_SCHEDULES[key])
    several = issubclass(found, schedules.PipelineScheduleMulti)
    assert several == (key in ("interleaved", "zb-v", "dualpipe-v"))


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_deepspeed_s_own_class_reads_what_was_meant(name, zero, monkeypatch):
    """The class checks by itself that micro-batch × accumulation × ranks is the batch."""
    config = pytest.importorskip("deepspeed.runtime.config", reason=MISSING)
    here = run(name)._replace(zero=zero)
    monkeypatch.setattr(config.dist, "get_rank", lambda: 0)  # as in a job that torchrun has started
    ranks = SimpleNamespace(get_data_parallel_world_size=lambda: int(here.dp))
    read = config.DeepSpeedConfig(json.loads(deepspeed.written(here)), mpu=ranks)
    assert read.zero_config.stage == zero and read.train_batch_size == 2048
    assert read.train_micro_batch_size_per_gpu == here.micro_batch
    assert read.gradient_accumulation_steps == here.micro_batches and read.bfloat16_config.enabled
