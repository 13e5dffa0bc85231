"""What containers are started with, each in the words of a public example: docker run and its like, compose
files, Kubernetes manifests, a chart's values; with the GPUs that each is given and the place of each word."""

import json

import pytest
import yaml

import engine
from engine.launch import changes, containers, reading
from engine.launch.texts import Source
from engine.launch.yaml import documents
from tests.cases import in_one_test

# docs.vllm.ai, deployment/docker; docs.docker.com has the form of --gpus with devices
DOCKER = """docker run --runtime nvidia --gpus '"device=0,1"' \\
    -v ~/.cache/huggingface:/root/.cache/huggingface \\
    --env "HUGGING_FACE_HUB_TOKEN=<secret>" \\
    -p 8000:8000 -it --rm --ipc=host \\
    vllm/vllm-openai:latest \\
    --model mistralai/Mistral-7B-v0.1 --tensor-parallel-size 2
"""
# docs.sglang.ai, get started: an image whose own program is a shell
SGLANG = """docker run --gpus all --shm-size 32g -p 30000:30000 \\
  -v ~/.cache/huggingface:/root/.cache/huggingface --env "HF_TOKEN=<secret>" --ipc=host \\
  lmsysorg/sglang:latest \\
  python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --host 0.0.0.0 --tp 2
"""
COMPOSE = """services:
  vllm:
    image: vllm/vllm-openai:latest
    environment:
      - HF_TOKEN=${HF_TOKEN}
    command: >
      --model ${MODEL:-Qwen/Qwen2.5-7B-Instruct}
      --tensor-parallel-size 2
      --max-model-len 8192
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 2
              capabilities: [gpu]
  web:
    image: ghcr.io/open-webui/open-webui:main
    ports: ["3000:8080"]
"""
# docs.vllm.ai, deployment/k8s, shortened
DEPLOYMENT = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mistral-7b}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: mistral-7b
spec:
  replicas: 1
  template:
    spec:
      initContainers:
      - {name: fetch, image: vllm/vllm-openai, args: [--model, Qwen/Qwen2.5-7B]}
      containers:
      - name: mistral-7b
        image: vllm/vllm-openai:latest
        command: ["/bin/sh", "-c"]
        args: [
          "vllm serve mistralai/Mistral-7B-Instruct-v0.3 --max_num_batched_tokens 1024 -tp $(TP)"
        ]
        env:
        - name: HUGGING_FACE_HUB_TOKEN
          valueFrom: {secretKeyRef: {name: hf, key: token}}
        - name: TP
          value: "1"
        resources:
          limits:
            cpu: "10"
            nvidia.com/gpu: "1"
"""
# docs.vllm.ai, deployment/frameworks/lws, shortened
GROUP = """apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: vllm
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
        containers:
          - name: vllm-leader
            image: docker.io/vllm/vllm-openai:latest
            command:
              - sh
              - -c
              - "bash /multi-node-serving.sh leader --ray_cluster_size=$(LWS_GROUP_SIZE);
                 vllm serve meta-llama/Meta-Llama-3.1-405B-Instruct
                 --tensor-parallel-size 8 --pipeline_parallel_size 2"
            resources:
              limits:
                nvidia.com/gpu: "8"
    workerTemplate:
      spec:
        containers:
          - name: vllm-worker
            image: docker.io/vllm/vllm-openai:latest
            command: ["sh", "-c", "bash /multi-node-serving.sh worker --ray_address=$(LWS_LEADER_ADDRESS)"]
"""
JOB = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: ft}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
          - name: pytorch
            image: a.registry/mine
            command: [torchrun, --nproc_per_node=8, train.py]
            args: ["--model_name_or_path", "meta-llama/Llama-2-7b-hf", "--max_seq_length", "$(SEQ)",
                   "--per_device_train_batch_size=1", "--bf16", "True", "--fsdp", "full_shard auto_wrap"]
            env: [{name: SEQ, value: "1024"}]
            resources: {limits: {nvidia.com/gpu: 8}}
    Worker:
      replicas: 3
      template: {}
"""
# production-stack, tutorials/assets, shortened
CHART = """servingEngineSpec:
  runtimeClassName: ""
  modelSpec:
  - name: "llama3"
    repository: "vllm/vllm-openai"
    tag: "latest"
    modelURL: "meta-llama/Llama-3.1-8B-Instruct"
    replicaCount: 1
    requestGPU: 2
    vllmConfig:
      enableChunkedPrefill: false
      maxModelLen: 16384
      dtype: "bfloat16"
      tensorParallelSize: 2
      extraArgs: ["--gpu-memory-utilization", "0.8", "--max-num-seqs=64"]
"""
TASK = """envs:
  MODEL: Qwen/Qwen2.5-32B
resources:
  accelerators: {H100: 4}
run: |
  conda activate vllm
  vllm serve $MODEL \\
    --tensor-parallel-size 4 --max-model-len 8192
"""
SERVERS = {  # model, GPUs, tensor ranks, stages, longest
    "docker": (DOCKER, "mistral-7b", 2, 2, 1, 32768),
    "podman": (
        (
            "podman run --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 --security-opt=label=disable "
            "docker.io/vllm/vllm-openai:v0.9 --model=a/Qwen2.5-7B --tensor-parallel-size=2 --max-model-len=4k"
        ),
        *("qwen2.5-7b", 2, 2, 1, 4000),
    ),
    "an image without a program": (SGLANG, "llama3.1-8b", 2, 2, 1, 131072),
    "bash in a container": (
        (
            'sudo docker run -d --gpus 4 mine bash -c "export X=2 && vllm serve a/Qwen2.5-32B -tp \\$X \\\n'
            '  --max-model-len 8192"'
        ),
        *("qwen2.5-32b", 2, 2, 1, 8192),
    ),
    "exec": (
        "docker exec -it name vllm serve Qwen/Qwen2.5-7B --max-model-len 8192",
        "qwen2.5-7b",
        1,
        1,
        1,
        8192,
    ),
    "an entry point": (
        "docker run --entrypoint vllm mine:1 serve Qwen/Qwen2.5-7B --max-model-len 8192",
        *("qwen2.5-7b", 1, 1, 1, 8192),
    ),
    "apptainer": (
        "srun -N 1 apptainer exec --nv --bind /data:/data vllm.sif vllm serve Qwen/Qwen2.5-7B -tp 2",
        *("qwen2.5-7b", 2, 2, 1, 131072),
    ),
    "a folder of the machine": (
        "docker run --gpus all -v /data/models/Qwen2.5-7B:/model vllm/vllm-openai --model /model",
        *("qwen2.5-7b", 1, 1, 1, 131072),
    ),
    "the model without a flag": (
        "docker run --rm --gpus all --user 2000:0 -p 80:80 vllm/vllm-openai:latest a/Llama-3.1-8B-Instruct",
        *("llama3.1-8b", 1, 1, 1, 131072),
    ),
    "kubectl": (
        "kubectl run v --image=vllm/vllm-openai --restart=Never -- --model a/Qwen2.5-7B --max-model-len 4096",
        *("qwen2.5-7b", 1, 1, 1, 4096),
    ),
    "compose run": (
        "docker compose run --rm -p 1:1 vllm vllm serve Qwen/Qwen2.5-7B --max-model-len 4096",
        *("qwen2.5-7b", 1, 1, 1, 4096),
    ),
    "compose": (COMPOSE, "qwen2.5-7b", 2, 2, 1, 8192),
    "a deployment": (DEPLOYMENT, "mistral-7b", 1, 1, 1, 32768),
    "leader and workers": (GROUP, "llama3.1-405b", 16, 8, 2, 131072),
    "a chart": (CHART, "llama3.1-8b", 2, 2, 1, 16384),
    "a task": (TASK, "qwen2.5-32b", 4, 4, 1, 8192),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_in_a_container(name):
    text, model, gpus, tp, pp, longest = SERVERS[name]
    found = reading.read({"given": text})
    launch = found.launch
    assert launch is not None and launch.server is not None, found.faults
    assert (launch.model.key, launch.gpus) == (model, gpus)
    assert (launch.server.tp, launch.server.pp, launch.server.longest) == (tp, pp, longest)
    assert not launch.refused and not launch.unmodelled
    assert not [str(fault) for fault in found.faults]
    for one in launch.settings:
        if one.entry.start >= 0 and one.value is not True:
            assert text[one.entry.start : one.entry.stop] == one.entry.value
            assert text.count("\n", 0, one.entry.start) + 1 == one.line


def test_a_job_of_several_pods_has_their_gpus():
    """One master and three workers of 8."""
    launch = reading.read({"job.yaml": JOB}).launch
    assert launch.gpus == 32 and launch.layout.zero == 3 and launch.job.seq == 1024


@in_one_test(
    "text, gpus",
    [
        (DOCKER.replace('"device=0,1"', "1"), 1),
        (DOCKER.replace("--gpus '\"device=0,1\"'", "-e CUDA_VISIBLE_DEVICES=3"), 1),
        (COMPOSE.replace("count: 2", 'device_ids: ["3"]'), 1),
        (COMPOSE.replace("count: 2", "count: 1"), 1),
        (COMPOSE.split("    deploy:")[0] + "    gpus: 1\n", 1),
        (COMPOSE.split("    deploy:")[0] + "    gpus:\n      - {driver: nvidia, count: 1}\n", 1),
        (COMPOSE.split("    deploy:")[0].replace("- HF_TOKEN=${HF_TOKEN}", "- NVIDIA_VISIBLE_DEVICES=0"), 1),
        (CHART.replace("requestGPU: 2", "requestGPU: 1"), 1),
        (COMPOSE.replace("count: 2", "device_ids: ['3']").replace("parallel-size 2", "parallel-size 4"), 1),
        (COMPOSE.replace("count: 2", "device_ids: ['0,1']").replace("parallel-size 2", "parallel-size 4"), 2),
        (GROUP.replace("size: 2", "size: 1"), 8),
        (TASK.replace("{H100: 4}", "H100:2"), 2),
        ("#SBATCH --gres=gpu:h100:1\nvllm serve Qwen/Qwen2.5-7B -tp 2", 1),
    ],
)
def test_a_server_that_needs_more_gpus_than_it_is_given_does_not_start(text, gpus):
    report = engine.check_launch({"given": text}, "h100-sxm")
    assert report.verdict == "will not start"
    assert any(f"number of available GPUs ({gpus}) in this node" in one.error for one in report.refused)


@in_one_test(
    "text, words",
    [
        (
            "docker run --gpus all mine/server:1 --model Qwen/Qwen2.5-7B",
            "what the image mine/server:1 starts is not known: add the command",
        ),
        (
            "services:\n  a:\n    image: redis\n    ports: [6379]\n",
            "given:1: nothing that this file starts is known",
        ),
        (
            DEPLOYMENT.replace("replicas: 1", "replicas: 3"),
            "given:10: 3 copies of this are started, each on GPUs of its own: one is checked",
        ),
        (
            COMPOSE.replace("${MODEL:-Qwen/Qwen2.5-7B-Instruct}", "${MODEL}"),
            "given:7: the variable $MODEL is not known without running the script",
        ),
        (DEPLOYMENT.replace('value: "1"', "valueFrom: {}"), "given:20: the output of a command is not known"),
        (
            JOB.replace('value: "1024"', "valueFrom: {}"),
            "given:14: the variable $(SEQ) is not known without running it",
        ),
        (COMPOSE.replace("max-model-len 8192", "max-model-len huge"), "'huge' is no number of tokens"),
        (COMPOSE.replace("    deploy:", "   deploy:"), "given:10: not a line of YAML: deploy:"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, words):
    report = engine.check_launch({"given": text}, "h100-sxm")
    told = [*map(str, report.faults), *(one.error for one in report.refused)]
    assert any(words in one for one in told), told


def test_a_misspelt_key_of_the_chart_and_of_a_command_is_listed():
    report = engine.check_launch({"c.yaml": COMPOSE.replace("--max-model-len", "--max-modl-len")}, "h100-sxm")
    assert "max-modl-len is not known, did you mean max-model-len?" in str(report.faults[0])
    assert not report.ignored


def test_an_edit_is_written_into_the_file_where_the_value_stands():
    for text, said in ((COMPOSE, "--tensor-parallel-size 1"), (CHART, "tensorParallelSize: 1")):
        found = reading.read({"f.yaml": text})
        edits = [one for one in changes.neighbours(found, None) if one.what == (("tp", 1),)]
        assert len(edits) == 1 and said in edits[0].texts["f.yaml"]
        assert edits[0].texts["f.yaml"].count("\n") == text.count("\n")


def test_a_task_knows_what_it_asks_for():
    """SkyPilot's own variables, from what the task says (llm/deepseek-r1 of skypilot-org/skypilot)."""
    text = """resources:
  accelerators: {H200:8, H100:8}
num_nodes: 2
run: |
  TP=$(($SKYPILOT_NUM_GPUS_PER_NODE * $SKYPILOT_NUM_NODES))
  python -m sglang.launch_server --model deepseek-ai/DeepSeek-R1 --tp $TP --nnodes ${SKYPILOT_NUM_NODES} \\
    --node-rank ${SKYPILOT_NODE_RANK}
"""
    found = reading.read({"r1.yaml": text})
    assert (found.launch.gpus, found.launch.server.tp) == (16, 16) and not found.faults
    other = engine.check_launch({"r1.yaml": text.replace("H100:8", "A100:4")}, "h200")
    assert other.verdict == "cannot say" and "not known without running" in other.unmodelled[0].why


def test_pods_that_are_the_nodes_of_one_server_are_no_copies():
    """docker/k8s-sglang-distributed-sts.yaml of sgl-project/sglang, shortened."""
    text = """kind: StatefulSet
apiVersion: apps/v1
spec:
  replicas: 2
  template:
    spec:
      containers:
      - image: lmsysorg/sglang:latest
        command: [/bin/bash, -c]
        args:
        - |
          python3 -m sglang.launch_server --model deepseek-ai/DeepSeek-R1 --tensor-parallel-size 16 \\
          --nnodes 2 \\
          --node-rank $POD_INDEX
        resources: {limits: {nvidia.com/gpu: "8"}}
"""
    found = reading.read({"sts.yaml": text})
    assert found.launch.gpus == 16 and not found.faults and not found.launch.refused


def test_a_manifest_in_a_page_is_further_in_than_a_file():
    page = "A deployment:\n\n    ```yaml\n"
    page += (
        "".join(f"    {line}\n" for line in DEPLOYMENT.splitlines()) + "    ```\n\n```console\nDone.\n```\n"
    )
    found = reading.read({"k8s.md": page})
    assert found.launch.model.key == "mistral-7b" and not found.faults


def test_variables_of_a_file_beside_a_compose_file():
    text = COMPOSE.replace("${MODEL:-Qwen/Qwen2.5-7B-Instruct}", "${MODEL}")
    found = reading.read({"compose.yaml": text, ".env": "MODEL=Qwen/Qwen2.5-14B\nPORT=1\n"})
    assert found.launch.model.key == "qwen2.5-14b" and not found.faults


def test_a_script_of_a_config_map_is_read():
    text = (
        "kind: ConfigMap\napiVersion: v1\ndata:\n  run.sh: |\n    vllm serve Qwen/Qwen2.5-7B -tp 2\n---\n"
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: mine\n    command: [bash, /s/run.sh]\n"
    )
    assert reading.read({"p.yaml": text}).launch.gpus == 2


@in_one_test(
    "image, name, same",
    [
        ("vllm/vllm-openai:v0.9.1", "vllm/vllm-openai", True),
        ("docker.io/vllm/vllm-openai@sha256:00", "vllm/vllm-openai", True),
        ("my.registry:5000/mirror/vllm-openai", "vllm/vllm-openai", True),
        ("vllm/vllm-openai-cpu", "vllm/vllm-openai", False),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", "ggml-org/llama.cpp:server", True),
        ("ghcr.io/ggml-org/llama.cpp:full", "ggml-org/llama.cpp:server", False),
    ],
)
def test_images(image, name, same):
    assert containers.is_of(image, name) is same


@in_one_test(
    "text, count",
    [
        ("all", 0),
        ("2", 2),
        ('"device=0,1"', 2),
        ("device=GPU-1a", 1),
        ("count=3", 3),
        ("'\"device=1,2,3\",capabilities=utility'", 3),
        ("nvidia.com/gpu=all", 0),
    ],
)
def test_devices(text, count):
    assert containers.devices(text) == count


def test_hostile_files_end():
    deep = "services:\n" + "".join(" " * n + "a:\n" for n in range(1, 95)) + " " * 95 + "image: x\n"
    wide = "services:\n" + "".join(f"  s{n}: {{image: x, command: [a, b]}}\n" for n in range(5000))
    for text in (deep, wide):
        source = Source("f", text)
        assert len(containers.of_file(documents(source)[0], source, {})) <= containers.MOST


@in_one_test(
    "tag, release", [("v0.11.0", (0, 11)), ("v0.8.5.post1", (0, 8)), ("latest", (0, 28)), ("gptoss", (0, 28))]
)
def test_an_image_s_tag_says_the_release(tag, release):
    line = f"docker run --gpus all vllm/vllm-openai:{tag} --model Qwen/Qwen2.5-7B -tp 2"
    assert reading.read(line).launch.server.release == release


def test_an_image_of_llama_cpp_starts_its_server():
    text = (
        "docker run -v /m:/models --gpus all ghcr.io/ggml-org/llama.cpp:server-cuda -m /models/x.gguf -c 4096"
    )
    launch = reading.read({"a.sh": text.replace("x.gguf", "llama-3.1-8b-instruct-q4_k_m.gguf")}).launch
    assert (launch.framework, launch.model.key, launch.server.longest) == ("llamacpp", "llama3.1-8b", 4096)


def test_a_manifest_in_json():
    text = json.dumps(yaml.safe_load(DEPLOYMENT.split("---")[1]), indent=2)
    launch = reading.read({"pod.json": text}).launch
    assert (launch.model.key, launch.server.chunk) == ("mistral-7b", 1024)
    found = next(one.entry for one in launch.settings if one.name == "chunk")
    assert text[found.start : found.stop] == "1024"


SERVICE = "services:\n  v:\n    image: mine\n"
FOLDED = SERVICE.replace("mine", "vllm/vllm-openai")  # lines that are folded need no backslash, and one …
FOLDED += "    command: >\n      --model a/Qwen2.5-7B \\\n      -tp 2\n"  # … makes what follows no flag
QUOTED = SERVICE + "    entrypoint: [bash, -c]\n    command: |\n"
QUOTED += '      "vllm serve Qwen/Qwen2.5-7B -tp 2"\n'
BUILT = SERVICE.replace("image: mine", "build: .") + "    command: vllm serve Qwen/Qwen2.5-7B -tp 2\n"
BUILT += "    deploy: {replicas: 3}\n"


@in_one_test(
    "text, words",
    [
        (
            FOLDED,
            "given:6: the backslash before -tp makes the blank before it a part of the word: leave it out",
        ),
        (QUOTED, ""),
        (BUILT, "given:5: 3 copies of this are started, each on GPUs of its own: one is checked"),
        ("CMD='vllm serve Qwen/Qwen2.5-7B'\nCMD+=' -tp 2'\necho $CMD\neval $CMD\n", ""),
    ],
)
def test_what_people_write_that_means_something_else(text, words):
    found = reading.read({"given": text})
    assert found.launch.server.tp == 2
    assert [str(fault) for fault in found.faults] == ([words] if words else [])


def test_a_compose_file_that_starts_nothing_known_is_one_all_the_same():
    found = reading.read("services:\n  v:\n    build: .\n    environment:\n      MODEL_NAME: a/b\n")
    assert [str(fault) for fault in found.faults] == ["pasted:1: nothing that this file starts is known"]
