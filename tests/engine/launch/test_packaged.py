"""A deployment in containers: what is written reads back as the deployment, and each container has GPUs and a
port of its own."""

import pytest
import yaml

from engine import catalog
from engine.launch import packaged, reading
from engine.serving.deployment import Deployment, Limits, Load
from engine.serving.deployment.found import Measured
from engine.serving.replica import Replica
from tests.said import refused


def planned(model="llama3.1-8b", replica=Replica(2), replicas=3, prefill=0, weights="bf16") -> Deployment:
    return Deployment(
        *(model, "h100-sxm", replica, replicas, prefill, weights, "bf16", 1024, 64, None, 4096),
        *(Load(5.0), Limits(1.0, 0.05), Measured(0.5, 0.01, 0.03, 0.001, 0.02, 1000)),
        *(10.0, 200.0, 3.0, "capacity", ()),
    )


CASES = [planned(), planned(prefill=1), planned("qwen3-8b", Replica(1), 8, weights="fp8")]


@pytest.mark.parametrize("form", packaged.FORMS[1:])
@pytest.mark.parametrize("program", ["vllm", "sglang"])
@pytest.mark.parametrize("of", CASES, ids=str)
def test_each_container_reads_back_as_a_replica(of, program, form):
    text = packaged.packaged(of, program, form)
    found = reading.read({"containers.yaml": text}, None).launch
    assert found.framework == program and found.model.key == of.model and not found.refused
    server = found.server
    assert (server.tp, server.replicas) == (of.replica.tp, 1)
    assert (server.chunk, server.requests, server.longest) == (of.chunk, of.largest_batch, of.longest)
    assert (server.weight_precision or "bf16") == of.weights


@pytest.mark.parametrize("of", CASES, ids=str)
def test_services_share_no_gpu_and_no_port(of):
    services = yaml.safe_load(packaged.packaged(of, "vllm", "compose"))["services"]
    assert len(services) == of.replicas
    devices = [one["deploy"]["resources"]["reservations"]["devices"][0] for one in services.values()]
    gpus = [gpu for each in devices for gpu in each["device_ids"]]
    assert sorted(gpus) == sorted(str(gpu) for gpu in range(of.gpus))
    if of.apart:  # all in the host's network, where they also find each other's caches
        assert all(one["network_mode"] == "host" and "ports" not in one for one in services.values())
        words = [" ".join(one["command"]) for one in services.values()]
        ports = {line.split("--port ")[1].split()[0] for line in words}
        assert len(ports) == of.replicas
        sides = {one["environment"]["VLLM_NIXL_SIDE_CHANNEL_PORT"] for one in services.values()}
        assert len(sides) == of.replicas
    else:
        assert len({one["ports"][0] for one in services.values()}) == of.replicas
    gated = catalog.model(of.model).access == "gated"
    assert all((packaged.TOKEN in one.get("environment", {})) == gated for one in services.values())


@pytest.mark.parametrize("of", CASES, ids=str)
@pytest.mark.parametrize("program", ["vllm", "sglang"])
def test_a_container_answers_to_more_than_itself(program, of):
    """SGLang answers at 127.0.0.1 alone unless told otherwise (arg_groups/fields/serving.py:65 of 0.5.23),
    and vLLM offers caches at localhost (envs.py:1721 of 0.33): in a container nobody would reach either."""
    for one in list(yaml.safe_load_all(packaged.packaged(of, program, "kubernetes")))[::2]:
        (container,) = one["spec"]["template"]["spec"]["containers"]
        words = " ".join(container.get("args", []) + container.get("command", []))
        assert ("--host 0.0.0.0" in words) == (program == "sglang")
        hosts = [each for each in container.get("env", []) if each["name"] == "VLLM_NIXL_SIDE_CHANNEL_HOST"]
        assert len(hosts) == (program == "vllm" and of.apart)
        assert all(each["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP" for each in hosts)


@pytest.mark.parametrize("of", CASES, ids=str)
def test_kubernetes_has_a_deployment_for_each_pool_and_a_service_that_finds_it(of):
    objects = list(yaml.safe_load_all(packaged.packaged(of, "vllm", "kubernetes")))
    kinds = [one["kind"] for one in objects]
    assert kinds == ["Deployment", "Service"] * (2 if of.apart else 1)
    replicas, gpus = 0, 0
    for one, service in zip(objects[::2], objects[1::2], strict=True):
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"] == labels == one["spec"]["selector"]["matchLabels"]
        (container,) = one["spec"]["template"]["spec"]["containers"]
        assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["containerPort"]
        replicas += one["spec"]["replicas"]
        gpus += one["spec"]["replicas"] * int(container["resources"]["limits"]["nvidia.com/gpu"])
    assert (replicas, gpus) == (of.replicas, of.gpus)


def test_what_has_no_such_form_is_refused():
    with refused("form", "takes several nodes"):
        packaged.packaged(planned(replica=Replica(8, 2)), "vllm", "kubernetes")
    with refused("form", "compose has one node"):
        packaged.packaged(planned(replicas=5), "vllm", "compose")
    with refused("program", "vllm, sglang"):
        packaged.packaged(planned(), "dynamo", "compose")
    with refused("name", "int4"):
        packaged.packaged(planned(weights="int4"), "vllm", "compose")
    with refused("form", "script, compose, kubernetes"):
        packaged.packaged(planned(), "vllm", "helm")
    assert "mine/model" in packaged.packaged(planned(weights="int4"), "vllm", "compose", "mine/model")
