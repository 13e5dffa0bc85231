"""The forms of a launch: what stands in front of a command, how many GPUs a launcher or Slurm gives it, what
is not known and matters, a file of flags beside a command, and texts in any order."""

from itertools import permutations

import pytest

import engine
from engine.launch import reading
from engine.launch.verdict import check_launch
from engine.validation import launch_cases
from tests.cases import in_one_test
from tests.engine.launch import test_containers, test_verdict

TRAIN = " train.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 True --per_device_train_batch_size 1"


@in_one_test(
    "text, gpus",
    [
        ("torchrun --nnodes=2 --nproc_per_node 4" + TRAIN, 8),
        ("accelerate launch --num_processes 4 --num_machines 2" + TRAIN, 4),
        ("deepspeed --num_nodes 2 --num_gpus 8" + TRAIN, 16),
        ("deepspeed --include localhost:0,1" + TRAIN, 2),
        ("mpirun -np 16 -N 8 -x X=1 python" + TRAIN, 16),
        ("srun -N 2 --gpus-per-node=h100:4 python" + TRAIN, 8),
        ("srun --gres=gpu:a100:4 --nodes=3 bash -c 'python" + TRAIN + "'", 12),
        ("#SBATCH -N 2\n#SBATCH --gres=gpu:4  # a node's\nsrun python" + TRAIN, 8),
        ("#SBATCH --gpus=8\n#SBATCH --ntasks=3\nsrun python" + TRAIN, 8),
        ("#SBATCH --ntasks=3\nsrun python" + TRAIN, 3),
        (
            "#SBATCH --nodes 2\n#SBATCH --gpus-per-node h100:4\n"
            "torchrun --nnodes $SLURM_NNODES --nproc_per_node=$SLURM_GPUS_ON_NODE" + TRAIN,
            8,
        ),
        ("sbatch --gres=gpu:2 --wrap='python" + TRAIN + "'", 2),
        ("CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node=gpu" + TRAIN, 3),
        ("env -u A HIP_VISIBLE_DEVICES=0,1 python" + TRAIN, 2),
        ("export CUDA_VISIBLE_DEVICES=0,1\nif true; then\n  nohup python" + TRAIN + " > log 2>&1 &\nfi", 2),
    ],
)
def test_launchers_say_how_many_gpus_there_are(text, gpus):
    launch = reading.read(text).launch
    assert launch is not None and launch.gpus == gpus


@in_one_test(
    "front",
    [
        "uv run vllm serve",
        "poetry run python -m vllm.entrypoints.openai.api_server --model",
        "conda run -n x vllm serve",
        "time sudo -E vllm serve",
        "cd /x && VLLM_X=1 nohup vllm serve",
        "ssh node1 'CUDA_VISIBLE_DEVICES=0,1 vllm serve Qwen/Qwen2.5-7B -tp 2' #",
        "MODEL=$1\n[ -z x ] || exit 1\nvllm serve",
        "ARGS=(--dtype auto)\nARGS+=(--seed 1)\nvllm serve ${ARGS[@]} --model",
    ],
)
def test_what_stands_in_front_of_a_command(front):
    found = reading.read(f"{front} Qwen/Qwen2.5-7B -tp 2")
    assert found.launch is not None and (found.launch.model.key, found.launch.gpus) == ("qwen2.5-7b", 2)
    assert not found.faults


def test_each_command_has_its_own_variables():
    text = "CUDA_VISIBLE_DEVICES=0 vllm serve a/Qwen2.5-7B\nCUDA_VISIBLE_DEVICES=1,2 vllm serve a/Qwen2.5-7B"
    launch = reading.read(text).launch
    assert launch.gpus == 1 and "gpus" not in {one.name for one in launch.assumed}


def test_a_variable_that_a_server_reads_is_not_passed_over():
    text = "VLLM_PP_LAYER_PARTITION=16,12 vllm serve Qwen/Qwen2.5-7B -pp 2"
    report = engine.check_launch(text, "h100-sxm")
    assert report.launch.server.fullest == 16 / 28  # of 28 layers
    wrong = engine.check_launch(text.replace("16,12", "16,16"), "h100-sxm")
    assert wrong.verdict == "will not start" and "does not match 28" in wrong.refused[0].error


@in_one_test(
    "text, told",
    [
        ("mkdir $OUT; torchrun --nproc_per_node 8" + TRAIN + " --output_dir $OUT --data_path $DATA", []),
        ("torchrun --nproc_per_node 8 --master_addr $HOST --node_rank $RANK" + TRAIN, []),
        ("torchrun --nproc_per_node $N" + TRAIN, ["the variable $N is"]),
        ("torchrun $ARGS" + TRAIN, ["the variable $ARGS is"]),
        ("python" + TRAIN + ' "$@"', ["an argument of the script is"]),
        ("python" + TRAIN + " --max_seq_length $(cat x)", ["the output of a command is"]),
        ("python /$HOME/x/" + TRAIN.strip(), []),
    ],
)
def test_only_what_matters_and_is_not_known_is_said(text, told):
    found = [fault.words for fault in reading.read(text).faults]
    assert found == [f"{words} not known without running the script" for words in told]


def test_a_setting_that_is_not_known_is_not_guessed():
    report = engine.check_launch("vllm serve Qwen/Qwen2.5-7B --max-model-len $N", "h100-sxm")
    assert report.verdict == "cannot say"
    assert [(one.key, one.line) for one in report.unmodelled] == [("max-model-len", 1)]
    known = engine.check_launch("vllm serve Qwen/Qwen2.5-7B --served-model-name $N --port $P", "h100-sxm")
    assert known.verdict == "fits" and not known.faults


# -- a file of flags beside a command ------------------------------------------------------------------------
# docs.vllm.ai, serving/serve_args: the file's keys are long flags; the line goes before the file
FILE = """# config.yaml

model: meta-llama/Llama-3.1-8B-Instruct
host: "127.0.0.1"
port: 6379
uvicorn-log-level: "info"
tensor_parallel_size: 2
max-model-len: 8192
"""


@in_one_test(
    "texts, tp, longest",
    [
        ({"a.sh": "vllm serve --config config.yaml", "config.yaml": FILE}, 2, 8192),
        (
            {"config.yaml": FILE, "a.sh": "vllm serve --config /etc/vllm/config.yaml --chat-template /a/b"},
            2,
            8192,
        ),
        ({"a.sh": "vllm serve --config config.yaml -tp 4", "config.yaml": FILE}, 4, 8192),
        (["vllm serve --config config.yaml --max-model-len 4096", FILE], 2, 4096),
        ([FILE, "python -m sglang.launch_server --config config.yaml --context-length 4096"], 2, 4096),
        (f"cat <<EOF > c.yaml\n{FILE}EOF\nvllm serve --config c.yaml --max-model-len 4096\n", 2, 4096),
    ],
)
def test_a_file_of_flags(texts, tp, longest):
    found = reading.read(texts)
    assert found.launch is not None, found.faults
    server = found.launch.server
    assert (found.launch.model.key, server.tp, server.longest) == ("llama3.1-8b", tp, longest)
    assert not found.faults and not found.launch.unmodelled


def test_a_file_that_is_named_and_not_given_may_say_anything():
    report = engine.check_launch("vllm serve Qwen/Qwen2.5-7B --config conf.yaml", "h100-sxm")
    assert report.verdict == "cannot say" and "add it" in report.unmodelled[0].why


def test_what_is_nested_in_a_file_of_flags_is_one_flag():
    """A list is several values and a map is JSON, as the flags take them."""
    text = "speculative-config: {method: eagle3, model: a/head, layers: [1, 2]}\nmax-modl-len: 1\n"
    text += "lora-modules: [a=b, c=d]\n"
    report = engine.check_launch(
        {"a.sh": "vllm serve Qwen/Qwen2.5-7B --config c.yaml", "c.yaml": text}, "h100-sxm"
    )
    assert [(one.key, one.value) for one in report.unmodelled] == [
        ("speculative-config", '{"method": "eagle3", "model": "a/head", "layers": [1, 2]}')
    ]
    assert "max-modl-len is not known, did you mean max-model-len?" in str(report.faults[0])
    assert {one.key: one.value for one in report.ignored}["lora-modules"] == "a=b c=d"


def test_a_file_that_nobody_asks_for_is_told():
    found = reading.read({"a.sh": "vllm serve Qwen/Qwen2.5-7B", "b.yaml": "colour: red\nshape: round\n"})
    assert [str(fault) for fault in found.faults] == [
        "b.yaml:1: a YAML text of no framework that is known here"
    ]


def test_a_command_s_count_goes_before_its_file_s():
    file = "distributed_type: FSDP\nnum_processes: 4\nmixed_precision: bf16\n"
    for count, gpus in ((" --num_processes 8", 8), ("", 4)):
        line = f"accelerate launch{count} --config_file acc.yaml" + TRAIN
        for texts in ({"a.sh": line, "acc.yaml": file}, {"acc.yaml": file, "a.sh": line}):
            assert reading.read(texts).launch.gpus == gpus


# -- several texts -------------------------------------------------------------------------------------------
ARGUMENTS = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 1\nbf16: true\nmax_length: 4096\n"
)


def test_a_command_that_names_a_file_which_is_read_is_no_fault():
    found = reading.read({"launch.sh": "some-trainer train full.yaml\n", "full.yaml": ARGUMENTS})
    assert found.launch is not None and not found.faults
    other = reading.read({"launch.sh": "some-trainer train other.yaml\n", "full.yaml": ARGUMENTS})
    assert [str(one) for one in other.faults] == ["launch.sh:1: nothing here launches anything that is known"]


def test_auto_in_one_file_takes_what_another_says():
    json = '{"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}'
    for texts in ({"ds.json": json, "a.yaml": ARGUMENTS}, {"a.yaml": ARGUMENTS, "ds.json": json}):
        found = reading.read(texts, 8)
        assert found.launch.precision == "bf16" and not found.faults


SEVERAL = {name: case["texts"] for name, case in launch_cases.cases().items() if len(case["texts"]) > 1}
SEVERAL |= {
    name: texts[0]
    for name, texts in test_verdict.READ.items()
    if isinstance(texts[0], dict | list) and len(texts[0]) > 1
}
SEVERAL |= {
    "compose and .env": {"compose.yaml": test_containers.COMPOSE, ".env": "MODEL=Qwen/Qwen2.5-14B\n"},
    "flags and file": {"a.sh": "vllm serve --config c.yaml -tp 4", "c.yaml": FILE},
    "flags and file, no names": ["vllm serve --config c.yaml -tp 4", FILE],
    "two servers": {"a.sh": test_verdict.VLLM, "b.sh": test_verdict.VLLM.replace("14B", "32B")},
    "two that train": ["python" + TRAIN, "torchrun --nproc_per_node 4" + TRAIN.replace("7b", "13b")],
    "auto": {
        "ds.json": '{"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}',
        "a.yaml": ARGUMENTS,
        "run.sh": "deepspeed --num_gpus 4 train.py --deepspeed ds.json --max_length 1024",
    },
}


@pytest.mark.parametrize("name", SEVERAL)
def test_the_order_of_the_texts_changes_nothing(name):
    texts = SEVERAL[name]
    pairs = list(texts.items()) if isinstance(texts, dict) else texts
    found = set()
    for order in list(permutations(pairs))[:6]:
        report = check_launch(list(order), "h100-sxm", also=())
        values = sorted((one.name, str(one.value)) for one in report.launch.settings) if report.launch else []
        found.add((report.verdict, report.total_bytes, str(values)))
    assert len(found) == 1


def test_there_are_texts_to_permute():
    assert len(SEVERAL) > 9


def test_a_flag_is_turned_off_by_its_no():
    report = engine.check_launch("vllm serve --no-enable-lora Qwen/Qwen2.5-7B --no-enforce-eager", "h100-sxm")
    assert report.launch.server.adapters == 0 and report.launch.model.key == "qwen2.5-7b"
    assert not [one for one in report.ignored if "not known" in one.why]
