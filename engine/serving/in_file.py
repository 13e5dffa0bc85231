"""What llama.cpp holds on a GPU: weights as a GGUF file stores them, its cache, and the buffer for what it
computes.

Bits of a weight are those of whole files of Llama 3.1 8B in ggml-org/llama.cpp tools/quantize/README.md at
311c2c9f (outputs and some matrices have more bits than the name says); those of Q4_0 to Q5_1 and MXFP4 are
sums over the blocks of ggml/src/ggml-common.h at 01243c58 with an output layer in Q6_K, and Q3_K_M is from
memory. The input embedding stays in the host's memory. The buffer: the logits of a micro-batch in fp32 and
the mask of its context, or without flash attention the scores of one layer (Llama 3 8B, 8,192 tokens, 512 at
a time: 258.5 and 560 MiB in its log, as remembered; logs in public repositories with 32,768 and 262,144
tokens have 353 and 808 MiB, where this is 328 and 741). Leaves out what a tower takes that reads pictures.
"""

from __future__ import annotations

from engine.base.types import Real
from engine.catalog import models
from engine.catalog.models import Model
from engine.mechanism.shape import Shape

BITS = {
    "iq1_s": 2.0042,
    "iq1_m": 2.146,
    "iq2_xxs": 2.3824,
    "iq2_xs": 2.5882,
    "iq2_s": 2.7403,
    "iq2_m": 2.9294,
    "iq3_xxs": 3.2548,
    "iq3_xs": 3.4977,
    "iq3_s": 3.6606,
    "iq3_m": 3.7628,
    "iq4_xs": 4.4597,
    "iq4_nl": 4.6818,
    "q2_k_s": 2.9697,
    "q2_k": 3.1593,
    "q3_k_s": 3.6429,
    "q3_k_m": 3.99,
    "q3_k_l": 4.2979,
    "q4_0": 4.64,
    "q4_1": 5.1,
    "q4_k_s": 4.6672,
    "q4_k_m": 4.8944,
    "q5_0": 5.57,
    "q5_1": 6.04,
    "q5_k_s": 5.5704,
    "q5_k_m": 5.7036,
    "q6_k": 6.5633,
    "q8_0": 8.5008,
    "mxfp4": 4.64,
    "f16": 16.0005,
    "fp16": 16.0005,
    "bf16": 16.0005,
    "f32": 32.0,
}
# bytes of a cached value: blocks of 32 with a 16-bit scale (two with _1), ggml-common.h
CACHED = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
SCORE = 4.0  # bytes of a logit, and of a score without flash attention
MASKED = 2.0  # bytes of the mask for each token and each of the context
CONTEXT_BYTES = 0.4 * 2.0**30  # of CUDA and its kernels on each GPU: as remembered


def weight_bytes(model: Model, each: Real, on_gpu: Real, experts_away: Real, gpus: Real) -> float:
    """Bytes of weights on each of ``gpus`` that share the layers: of every weight but the input embedding,
    for the share ``on_gpu`` of the layers, without the routed experts of the share ``experts_away``. A tower
    is in another file."""
    ends = models.embedding_parameters(model) + models.head_parameters(model)
    layers = models.parameters(model) - ends - model.extra_params
    experts = models.routed_parameters(model) * min(on_gpu, experts_away)
    output = model.vocab * model.hidden if on_gpu >= 1.0 else 0.0
    return float(each * (layers * on_gpu - experts + output) / gpus)


def computed_bytes(size: Shape, rows: Real, context: Real, flash: bool) -> float:
    """The buffer for a micro-batch of ``rows`` tokens."""
    logits = SCORE * rows * float(size.vocab) + MASKED * rows * context
    heads = max(float(kind.heads) for kind in size.attended)
    scores = 0.0 if flash else SCORE * rows * heads * context
    return float(max(logits, scores))
