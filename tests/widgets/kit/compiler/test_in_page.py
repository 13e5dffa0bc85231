"""The engine's reader of launch files in the page: the translated modules give the same answers as Python."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from course import engine_in_page
from engine import catalog
from engine.catalog import models
from engine.launch import fit_page
from engine.validation import launch_cases
from tests import machine, states

IN_NODE = """
import fs from "fs";
const { modules } = await import("./assets/PAGE/engine.js");
const { $dict, $tuple, plain } = await import("./assets/fit/python.js");
const { $answer } = modules["engine.launch.fit_page"] ?? {};
const planner = modules["engine.launch.deploy_page"];
const launch = ({ files, gpu, gpus, own, also }) => {
  const more = also ? [$tuple(also)] : [];
  return plain($answer(files, gpu, BigInt(gpus), $dict(Object.entries(own)), ...more));
};
const deploy = asked => {
  const found = { took_ms: {} };
  for (const step of asked.steps ?? ["expected", "others", "simulated"]) {
    const began = process.cpuUsage();
    found[step] = plain(planner[`$${step}`]($dict(Object.entries(asked))));
    const { user, system } = process.cpuUsage(began);
    found.took_ms[step] = (user + system) / 1000;  // of the processor: another program may hold it up
  }
  return found;
};
const found = JSON.parse(fs.readFileSync("jobs.json", "utf8")).map(job => {
  try { return ({ fit: launch, deploy })["PAGE"](job); } catch (error) { return { failed: error.message }; }
});
fs.writeFileSync("found.json", JSON.stringify(found));
"""
# texts that people paste by mistake, each of which gets its own message
MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
)
MEGATRON += "--seq-length 128 --micro-batch-size 1 --global-batch-size 8 "
TITAN = "```\n[training]\nlocal_batch_size = 2\n[parallelism]\ntensor_parallel_degree = 2\n```\n"
BAD = {
    "marks of direction": '[model]\nname = "\u202ellama3\u3000\U0010ffff"\nflavor = "8B"\n[training]\n',
    "empty": "",
    "long": "x" * 200_001,
    "binary": "PK\x03\x04\0\0\0",
    "three frameworks": f"```\nvllm serve meta-llama/Llama-3.1-8B\n```\n```\n{MEGATRON}\n```\n{TITAN}",
    "three without fences": f"{MEGATRON}\n{TITAN.strip('`')}\nvllm serve meta-llama/Llama-3.1-8B\n",
    "unknown flag": MEGATRON + "--tensor-model-paralel-size 2",
    "contradiction": MEGATRON + "--tensor-model-parallel-size 3 --bf16",
    "numbers": "vllm serve Qwen/Qwen2.5-7B --max-model-len 1e99 --gpu-memory-utilization -3 -tp nan",
    "broken json": '{"train_micro_batch_size_per_gpu": 1,, }',
    "broken config": '{"hidden_size": 64, "num_hidden_layers": }',
    "letters": "vllm serve Übung/模型-8B --max-model-len 4096",
}


FILES = (
    "fit/python.js",
    "fit/library.js",
    "fit/numpy.js",
    "fit/stand_ins.js",
    "widget/numbers.js",
    "widgets/shared.js",
)


def in_node(jobs: list[dict], folder: Path, site: Path, page: str = "fit") -> list[dict]:
    """The answers of the page's translated modules, as the site serves them."""
    node = machine.node()
    for name in (*FILES, f"{page}/engine.js"):
        (folder / "assets" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(site / "assets" / name, folder / "assets" / name)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "run.js").write_text(IN_NODE.replace("PAGE", page), encoding="utf-8")
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    ran = subprocess.run(
        [node, "run.js"], cwd=folder, capture_output=True, text=True, timeout=300, encoding="utf-8"
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


def differences(mine, theirs, at: str = "", within: float = 1e-12, least: float = 0.0) -> list[str]:
    """The places where two answers differ. Numbers may differ by a share ``within``, and numbers below
    ``least`` by that share of ``least``."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = mine.keys() | theirs.keys()
        return [
            line
            for key in sorted(keys)
            for line in differences(mine.get(key), theirs.get(key), f"{at}.{key}", within, least)
        ]
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        return [
            line
            for i, pair in enumerate(zip(mine, theirs))
            for line in differences(*pair, f"{at}[{i}]", within, least)
        ]
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (mine, theirs))
    same = abs(mine - theirs) <= within * max(least, abs(theirs)) if numbers else mine == theirs
    return [] if same else [f"{at}: {mine!r:.200} is {theirs!r:.200} in Python"]


def held(jobs: dict[str, dict], folder: Path, site: Path) -> list[dict]:
    """The page's answers, after checking that they equal Python's."""
    found = in_node(list(jobs.values()), folder, site)
    for (name, job), mine in zip(jobs.items(), found, strict=True):
        theirs = json.loads(json.dumps(fit_page.answer(**job)))
        assert not differences(mine, theirs), (name, differences(mine, theirs)[:5])
    return found


@pytest.mark.parametrize("page", engine_in_page.PAGES)
def test_the_site_gives_out_what_the_sources_compile_to(page, site):
    assert (site / "assets" / page / "engine.js").read_text(encoding="utf-8") == engine_in_page.script(page)


def test_the_page_says_what_python_says_of_published_launches(tmp_path, site):
    names = states.daily([*launch_cases.cases()])
    found = held({name: launch_cases.request(name) for name in names}, tmp_path, site)
    for says in ("best", "changes"):
        assert sum(bool(each[says]) for each in found) > len(names) / 3


def test_the_page_says_what_python_says_of_models_whose_layers_are_of_several_kinds(tmp_path, site):
    mixed = [name for name, model in catalog.all_models().items() if models.has_mixers(model)]
    asked = {"gpu": "h200-sxm", "gpus": 4, "own": {}}
    jobs = {
        name: asked | {"files": [["a.sh", f"vllm serve '{name}' -tp 4 --max-model-len 65536"]]}
        for name in mixed
    }
    found = held(jobs, tmp_path, site)
    assert [each["model"] for each in found] == mixed and len(mixed) > 10
    assert sum(each["total_bytes"] > 0 for each in found) > 10  # of some the caches' layout is not modelled


def test_the_page_takes_a_gpu_and_a_fabric_of_one_s_own(tmp_path, site):
    job = launch_cases.request("titan-8b-8") | {"own": {}, "gpu": "h100-sxm"}
    own = {"hbm_bytes": 40e9, "hbm_bytes_per_s": 1e12, "bf16_flops_per_s": 200e12, "link_bytes_per_s": 50e9}
    own |= {"nic_bytes_per_s": 5e9, "gpus_per_node": 4.0}
    usual, smaller = held({"usual": job, "own": job | {"own": own}}, tmp_path, site)
    assert usual["fits"] is False or usual["capacity_bytes"] > smaller["capacity_bytes"] == 40e9
    assert smaller["step_s"] > 3 * usual["step_s"] and "gpu" in smaller["extrapolates"]


PROGRAM = """from unsloth import FastLanguageModel
longest = 2 * 1024
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/llama-3-8b-bnb-4bit", max_seq_length=longest)
model = FastLanguageModel.get_peft_model(model, r=16)
args = SFTConfig(per_device_train_batch_size=2, output_dir=f"out-{longest}", optim=chosen)
"""
ON_HOST = "tune run full_finetune_single_device --config llama3_2/3B_full_single_device optimizer_in_bwd=True"


def test_the_page_says_what_python_says_of_programs_and_of_what_is_on_the_host(tmp_path, site):
    asked = {"gpu": "h100-sxm", "gpus": 1, "own": {}}
    jobs = {name: asked | {"files": [["a", text]]} for name, text in (("p", PROGRAM), ("h", ON_HOST))}
    moved = '{"device": "cpu", "pin_memory": true}'
    sharded = (
        f'{{"zero_optimization": {{"stage": 3, "offload_optimizer": {moved}, "offload_param": {moved}}}}}'
    )
    run = "deepspeed --num_gpus=8 t.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 True --deepspeed d.json"
    offloads = asked | {"gpus": 8, "files": [["r.sh", run], ["d.json", sharded]]}
    jobs |= {"o": offloads, "s": offloads | {"own": {"host_bytes": 1e11}}}
    program, on_host, usual, small = held(jobs, tmp_path, site)
    assert program["verdict"] == on_host["verdict"] == "fits" and program["faults"]
    assert usual["hosted_bytes"] == small["hosted_bytes"] > 1e11 and small["verdict"] == "does not fit"


def test_the_page_says_what_python_says_of_bad_input(tmp_path, site):
    jobs = {name: {"files": [["a.sh", text]], "gpu": "", "gpus": 0, "own": {}} for name, text in BAD.items()}
    found = dict(zip(jobs, held(jobs, tmp_path, site), strict=True))
    assert found["long"]["verdict"] == found["binary"]["verdict"] == found["empty"]["verdict"] == "cannot say"
    assert found["contradiction"]["verdict"] == "will not start" and found["contradiction"]["refused"]
    assert any("did you mean" in each for each in found["unknown flag"]["faults"])
    assert all(
        each["faults"] for name, each in found.items() if name in ("long", "binary", "three frameworks")
    )
