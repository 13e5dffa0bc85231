"""The numbers of lesson 12, Disaggregated serving."""

from functools import cache

import numpy as np

from engine.catalog import gpu, link, model, models
from engine.catalog.models import Model
from engine.mechanism import memory
from engine.serving import (
    decoding,
    deployment,
    inference,
    pools,
    queues,
    steady_state,
    step_costs,
    under_traffic,
    wide,
)
from engine.serving.deployment.found import Deployment, Deployments
from engine.serving.pools import Bargain, Rates
from engine.serving.steady_state import Settled
from engine.serving.under_traffic import Service, Traffic
from engine.step import layout
from engine.step.layout import Machine

llama = model("llama3-70b")  # Llama 3 70B
opt = model("opt-66b")  # OPT-66B
deepseek = model("deepseek-v3")  # DeepSeek-V3
h100 = layout.machine(gpu("h100-sxm"))  # an H100 of a DGX node
a100 = layout.machine(gpu("a100-80"))  # an A100 of a DGX node
card = link("ib-ndr").bytes_per_s  # an InfiniBand card of 400 Gb/s
slow_wire = link("eth-10").bytes_per_s  # Ethernet at 10 Gb/s


def traffic(requests: int, per_s: int) -> Traffic:
    """Requests at random times, with lengths around a median of 2,000 tokens in and 200 out."""
    return under_traffic.Traffic(
        requests, per_s, prompt=2000, output=200, prompt_spread=0.6, output_spread=0.6, seed=1
    )


mean_prompt = 2000 * np.exp(0.6**2 / 2)  # the mean of prompts whose median is 2,000, with this spread


def together(budget: int) -> Service:
    """Six replicas, prompts before answers."""
    return under_traffic.Service(
        under_traffic.MODES["prefill_first"], instances=6, prefill_instances=3, budget=budget
    )


def in_chunks(budget: int) -> Service:
    """Six replicas, prompts in chunks."""
    return under_traffic.Service(
        under_traffic.MODES["chunked"], instances=6, prefill_instances=3, budget=budget
    )


def apart(prefill_instances: int) -> Service:
    """Six replicas, some of which only prefill."""
    return under_traffic.Service(
        under_traffic.MODES["disaggregated"], instances=6, prefill_instances=prefill_instances, budget=8192
    )


def read_s(at: Machine, prompt: int, tp: int = 4) -> float:
    """Seconds to read one prompt."""
    return inference.prefill(llama, at, tp=tp, batch=1, prompt=prompt).total_s


prompt_s = read_s(h100, prompt=2000)  # seconds to read 2,000 tokens on four H100s


def busy_to(spread: float = 0.0) -> float:
    """How busy a replica that reads may be, if nine of ten first tokens are to come within a second."""
    return queues.prefill_rate_within(prefill_s=prompt_s, ttft_s=1.0, spread=spread) * prompt_s


def write_s(users: int) -> float:
    """Seconds of a step that writes one token for each user."""
    return inference.decode_step(llama, h100, tp=4, batch=users, context=2100).total_s


# the cache of 2,000 tokens in fp8
fp8_cache_bytes = decoding.user_bytes(llama, context=2000, kv_value_bytes=1.0)


def of_four(
    at: Machine = h100,
    prompt: int = 2000,
    output: int = 300,
    ttft_s: float = 1.0,
    tpot_s: float = 0.04,
    wire_bytes_per_s: float = 50e9,
) -> Rates:
    """Requests a second of a replica on four GPUs, within its targets, in each role that it may have."""
    return pools.rates(
        llama,
        at,
        tp=4,
        users=pools.USERS,
        prompt=prompt,
        output=output,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        wire_bytes_per_s=wire_bytes_per_s,
    )


of_one = of_four()  # what four H100s do alone, with 2,000 tokens in and 300 out
of_short = of_four(prompt=500)  # the same with prompts of 500 tokens
# the same on four A100s, with more time for a token
of_one_a100 = of_four(at=a100, tpot_s=0.06, wire_bytes_per_s=25e9)


def reading_share(rates: Rates) -> float:
    """The share of a request's work that is reading."""
    return pools.prefill_share(prompt_s=1 / rates.prefill_per_s, output_s=1 / rates.decode_per_s)


def bargain(tpot_s: float, replicas: int = 16, wire_bytes_per_s: float = 50e9) -> Bargain:
    """The same replicas shared and split, with 2,000 tokens in and 300 out."""
    return pools.bargain(
        llama,
        h100,
        tp=4,
        prompt=2000,
        output=300,
        ttft_s=1.0,
        tpot_s=tpot_s,
        replicas=replicas,
        wire_bytes_per_s=wire_bytes_per_s,
    )


# the last exercise, shared and split
agents = pools.bargain(llama, h100, tp=4, prompt=6000, output=400, ttft_s=2.0, tpot_s=0.03, replicas=16)
# what one of its replicas does alone
of_one_agent = of_four(prompt=6000, output=400, ttft_s=2.0, tpot_s=0.03)
# what the steps of four H100s take, with the caches of these requests
steps = step_costs.costs(
    llama, h100, tp=4, prompt=2048, context=under_traffic.context_of(traffic(requests=1, per_s=1))
)


def settled(per_s: int, service: Service, requests: int = 2000) -> Settled:
    """The steady state under these requests, with two targets."""
    return steady_state.settle(
        steps,
        traffic(requests=requests, per_s=per_s),
        service,
        ttft_s=1.0,
        tpot_s=(0.05, 0.025),
        within=0.03,
        longest=8000,
    )


def can_serve(service: Service) -> float:
    """Requests a second that a plan can serve at most."""
    return steady_state.can_serve_per_s(steps, traffic(requests=1, per_s=1), service)


opening = settled(per_s=8, service=together(budget=8192))  # the opening case
# the same requests on two pools at 10 Gb/s
on_a_slow_wire = settled(per_s=8, service=apart(prefill_instances=3)._replace(wire_bytes_per_s=slow_wire))


def in_chunks_s(at: Machine, prompt: int, chunk: int, of: Model = llama, tp: int = 4) -> float:
    """Seconds to read a prompt in chunks."""
    return step_costs.whole_or_in_chunks_s(
        step_costs.costs(of, at, tp=tp, prompt=prompt), prompt=prompt, chunk=chunk
    )


def chunks_s(chunk: int, tokens: int = 8000) -> float:
    """Seconds to read the first so many of 8,000 tokens in chunks, on four H100s."""
    return step_costs.whole_or_in_chunks_s(
        step_costs.costs(llama, h100, tp=4, prompt=8000), prompt=tokens, chunk=chunk
    )


def yi_chunks_s(chunk: int) -> float:
    """The same for 8,192 tokens of Yi-34B on two A100s."""
    return in_chunks_s(a100, prompt=8192, chunk=chunk, of=model("yi-34b"), tp=2)


def cheapest(
    per_s: int,
    tpot_s: float,
    pause_s: float = deployment.Limits.pause_s,
    formats: tuple[str, ...] | None = ("bf16",),
    top: int = 1,
) -> Deployments:
    """The cheapest deployments for these requests, with a first token within a second for nine of ten."""
    return deployment.deploy(
        llama,
        h100,
        deployment.Load(per_s, prompt=2000, output=200, prompt_spread=0.6, output_spread=0.6),
        deployment.Limits(ttft_s=1.0, tpot_s=tpot_s, pause_s=pause_s),
        formats=formats,
        top=top,
    )


def by_target(tpot_s: float, pause_s: float = deployment.Limits.pause_s) -> Deployment:
    """The cheapest for eight requests a second; by default answers may pause for any time."""
    return cheapest(per_s=8, tpot_s=tpot_s, pause_s=pause_s).best


# seconds of a step on 144 H800s whose GPUs share the experts, with 88 users on each
of_their_users_s = wide.decode_s(
    deepseek, layout.machine(gpu("h800"), "fp8"), tp=1, dp=144, batch=88, context=4989
)
h200_fp8 = layout.machine(gpu("h200"), "fp8")  # an H200, products in fp8
# seconds in which one H200 reads 4,000 tokens of Qwen3-32B
qwen_read_s = inference.prefill(model("qwen3-32b"), h200_fp8, tp=1, batch=1, prompt=4000).total_s
# seconds of a step on four H200s that writes a token for 60 users
qwen_write_s = inference.decode_step(
    model("qwen3-32b"), h200_fp8, tp=4, batch=60, context=4250, kv_precision="fp8"
).total_s


@cache
def yardstick() -> Deployment:
    """What the planner takes for AIConfigurator's example, 52 requests a second."""
    return deployment.deploy(
        model("qwen3-32b"),
        h200_fp8,
        deployment.Load(52, prompt=4000, output=500),
        deployment.Limits(ttft_s=0.3, tpot_s=0.01),
        formats=("fp8",),
        caches=("fp8",),
        top=1,
    ).best


def of_arithmetic(tokens: int, seconds: float) -> float:
    """The share of four H100s' arithmetic that a step of so many tokens uses."""
    return 2 * models.parameters(llama) * tokens / (seconds * 4 * gpu("h100-sxm").bf16_flops_per_s)


def of_bandwidth(caches: float, seconds: float) -> float:
    """The share of their bandwidth that reading weights and caches uses."""
    return (2 * models.parameters(llama) + caches) / (seconds * 4 * gpu("h100-sxm").hbm_bytes_per_s)


def mean_first_s(busy: float) -> float:
    """A first token's mean, on a replica that reads for this share of its time."""
    return prompt_s + queues.m_d_1_wait_s(per_s=busy / prompt_s, service_s=prompt_s)


def nine_of_ten_s(busy: float, spread: float = 0.0) -> float:
    """What nine first tokens of ten need at most; with prompts whose lengths differ by this spread."""
    return prompt_s + queues.wait_within_s(per_s=busy / prompt_s, service_s=prompt_s, spread=spread)


def left_s(wire: float) -> float:
    """Seconds of copying 2,000 tokens that remain after the prefill, if each layer is sent at once."""
    cache_bytes = decoding.user_bytes(llama, context=2000)
    return pools.exposed_transfer_s(cache_bytes, wire_bytes_per_s=wire, prefill_s=prompt_s, layers=80)


def last_chunk_s(chunk: int) -> float:
    """Seconds of the last whole chunk of 8,000 tokens."""
    whole = 8000 // chunk
    before_s = chunks_s(chunk, tokens=(whole - 1) * chunk) if whole > 1 else 0
    return chunks_s(chunk, tokens=whole * chunk) - before_s


def chunks_cost(chunk: int) -> float:
    """What such chunks add to reading the 8,000 tokens."""
    return chunks_s(chunk) / chunks_s(chunk=8000) - 1


def in_time(found: Settled, target: int) -> object:
    """Per cent of requests within the first or the second target, where the plan keeps up."""
    return found.met and f"{100 * found.met[target].value:.0f} ± {np.ceil(100 * found.met[target].error):.0f}"


# FLOPs for each byte at an H100's ridge
h100_ridge = gpu("h100-sxm").bf16_flops_per_s / gpu("h100-sxm").hbm_bytes_per_s
# FLOPs for each byte at an A100's ridge
a100_ridge = gpu("a100-80").bf16_flops_per_s / gpu("a100-80").hbm_bytes_per_s
# a token's time with a prompt in front of it, over its usual time
pause_over_token = (prompt_s + write_s(users=32)) / write_s(users=32)
# how busy the prefill pool may be for a first token in a second
prefill_busy_to = queues.prefill_rate(prefill_s=prompt_s, ttft_s=1.0) * prompt_s
# the rate of 10 Gb/s over what a busy replica makes
slow_wire_share = slow_wire / (decoding.user_bytes(llama, context=2000) / prompt_s)
# two pools over one, at 25 ms a token
tight_gain = bargain(tpot_s=0.025).apart_per_s / bargain(tpot_s=0.025).sharing_per_s
# two pools over one, at 200 ms a token
loose_gain = bargain(tpot_s=0.2).apart_per_s / bargain(tpot_s=0.2).sharing_per_s
# what chunks of 512 add to a prompt of 8,192 tokens
chunks_of_512_cost = yi_chunks_s(chunk=512) / yi_chunks_s(chunk=8192) - 1
prompts_first_rate = can_serve(together(budget=8192))  # requests a second that prompts first can serve
chunks_of_512_rate = can_serve(in_chunks(budget=512))  # requests a second with chunks of 512
chunks_of_2048_rate = can_serve(in_chunks(budget=2048))  # requests a second with chunks of 2,048
four_rate = can_serve(apart(prefill_instances=4))  # requests a second of the best split


@cache
def promise_costs() -> float:
    """GPUs for the tightest target over those for the loosest."""
    return by_target(0.015).gpus / by_target(0.1).gpus


# nodes by the published rates over the published nodes
nodes_off = (608e9 / 86400 / 73.7e3 + 168e9 / 86400 / 14.8e3) / 226.75 - 1
# caches that a GPU of DeepSeek's service holds
caches_bytes = 14.8e3 / 21 / 8 * decoding.user_bytes(deepseek, context=4989)
# bytes a second that a busy replica makes with caches in fp8
fp8_makes_bytes_per_s = decoding.user_bytes(llama, context=2000, kv_value_bytes=1.0) / prompt_s
long_prompt_s = read_s(h100, prompt=4000)  # seconds to read 4,000 tokens on four H100s


@cache
def on_twelve(budget: int) -> Settled:
    """The opening case's requests on three replicas, with so many tokens a step."""
    return settled(per_s=8, service=in_chunks(budget=budget)._replace(instances=3))


# memory of four H100s beside the weights
room_bytes = 4 * memory.server_bytes(gpu("h100-sxm")) - 2 * models.parameters(llama)
# what a session of 32,768 tokens takes of the room for caches on four H100s
cache_share = decoding.user_bytes(llama, context=32768) / room_bytes
