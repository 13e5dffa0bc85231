"""What a server's GPU holds beside weights and cache, as vLLM finds it with a run of dummy requests before
it divides the rest into blocks.

The run goes through all layers once with as many tokens as a step may have, and through the output layer and
the sampler with one row for each request. Layers: one keeps the token as it came, as it is now and its norm
(3·h values), and the inside of its MLP, which the tensor ranks divide; experts have two buffers for all
copies of the tokens, which stay. The sampler: the logits of all requests in fp32 on every rank, in several
copies.

Held against vLLM's own figures in llm-d-incubation/llm-d-planner accuracy/accuracy_report.md (57 runs of
0.19.0 on H100, 8,192 tokens and 1,024 requests, commit 875a4fd6) and those of 0.5 to 0.16 in issues; the
tests list them. Leaves out what a tower takes that reads pictures, and the kernels' own workspaces.
"""

from __future__ import annotations

from engine.base.types import Real
from engine.mechanism.shape import Shape

GIB = 2.0**30
VALUE = 2.0  # bytes of an activation
LOGIT = 4.0  # … and of a logit as it is sampled
STREAMS = 3.0  # values of a token's width that a layer holds: residual, input, norm
FIXED_BYTES = 0.085 * GIB  # buffers for requests and positions: what the 57 runs have in common
# copies of the logits in fp32. Until 0.16 PyTorch sorted them (values, places, sums); since 0.17 a kernel of
# vLLM's own picks. 5.64 GiB and 2.23 GiB of Qwen3-14B: the report's Part 2
SORTED, PICKED = 9.4, 3.57


def layers_bytes(size: Shape, tokens: Real, tp: Real) -> Real:
    """The most that one layer holds for this many tokens, on each tensor rank."""
    inner = 0.0
    for part in size.dense:
        inner = max(inner, (2.0 + part_gated(size)) * float(part.width) / tp)
    for part in size.routed:
        inner = max(inner, (2.0 + float(part.gated)) * float(part.shared_width) / tp)
    return tokens * VALUE * (inner + STREAMS * float(size.hidden))


def part_gated(size: Shape) -> float:
    """1 where a dense MLP has a gate."""
    return 1.0 if float(size.gated) > 0 else 0.0


def experts_bytes(size: Shape, tokens: Real, tp: Real) -> Real:
    """The two buffers of the experts' kernels for the copies of all tokens: in one stand what goes into the
    activation function and later what comes out of the experts, in the other what lies between."""
    most = 0.0
    for part in size.routed:
        width = float(part.width) / tp
        first = max((1.0 + float(part.gated)) * width, float(part.hidden))
        most = max(most, tokens * float(part.top_k) * VALUE * (first + width))
    return most


def sampler_bytes(size: Shape, tokens: Real, requests: Real, copies: Real) -> Real:
    """The logits of all requests, in ``copies``, beside the last layer's output."""
    return copies * LOGIT * requests * float(size.vocab) + VALUE * tokens * float(size.hidden)


def all_logits_bytes(size: Shape, tokens: Real, tp: Real) -> Real:
    """The logits of all tokens of a step in 16 bits, which the second engine made until 0.7 before it kept
    those of the last ones (v1/worker/gpu_model_runner.py, ``profile_run``): with tensor ranks a rank's part,
    all parts as they were gathered, and these in order. Beside the last layer's output."""
    copies = 2.0 + 1.0 / tp if tp > 1 else 1.0
    return tokens * VALUE * (copies * float(size.vocab) + float(size.hidden))


def early_peak_bytes(size: Shape, tokens: Real, tp: Real) -> float:
    """The most that this run held at once; its sampler was not tried."""
    most = max(layers_bytes(size, tokens, tp), all_logits_bytes(size, tokens, tp))
    return float(most + experts_bytes(size, tokens, tp) + FIXED_BYTES)


def step_bytes(size: Shape, tokens: Real, tp: Real) -> float:
    """What a step of this many tokens takes at least, whoever runs it: one layer, the experts' buffers, and
    those for requests. Leaves out logits, of which a prefill needs one row for each request, and what
    attention unpacks of a latent cache."""
    return float(layers_bytes(size, tokens, tp) + experts_bytes(size, tokens, tp) + FIXED_BYTES)


def peak_bytes(size: Shape, tokens: Real, requests: Real, tp: Real, copies: Real) -> float:
    """The most that the run holds at once: in a layer or in the sampler, beside what is never given back."""
    rows = min(requests, tokens)
    most = max(layers_bytes(size, tokens, tp), sampler_bytes(size, tokens, rows, copies))
    return float(most + experts_bytes(size, tokens, tp) + FIXED_BYTES)
