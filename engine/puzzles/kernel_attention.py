"""A kernel for attention in one pass over the keys: a block of queries for each program, a running softmax."""

import math

from engine.puzzles.block_language import NAMES as NAMES
from engine.puzzles.block_language import NamedArray
from engine.puzzles.kernel_judging import drawn, numbers, ran, require
from engine.puzzles.kernel_softmax import softmax_row

TITLE = "attention in one pass"
LESSON = "17-triton"
STATEMENT = """
`q`, `k` and `v` have a row of `DIM` numbers for each of `tokens` tokens. Each program has `BLOCK` queries, and goes through the keys in blocks of `BLOCK`. The
score of a query and a key is their product times `scale`; a query's output is the mean of the values, weighted by the softmax of its scores. No program may keep
all scores: after each block it has, for each query, the `largest` score so far, the sum of the `weight`s, and the weighted sum of the values in `total`. The kernel below does not rescale
what it has summed when a larger score comes, and it counts keys that do not exist.
"""
FUNCTION = "attention_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, tokens, scale,
                     DIM: tl.constexpr, BLOCK: tl.constexpr):
    dims = tl.arange(0, DIM)[None, :]
    queries = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = (queries < tokens)[:, None]
    q = tl.load(q_ptr + queries[:, None] * DIM + dims, mask=mine, other=0.0)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, DIM), tl.float32)
    for start in range(0, tokens, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        left = (keys < tokens)[:, None]
        k = tl.load(k_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        new = tl.maximum(largest, tl.max(scores, axis=1))
        exps = tl.exp(scores - new[:, None])
        weight = weight + tl.sum(exps, axis=1)
        total = tl.dot(exps, v, total)
        largest = new
    out = total / weight[:, None]
    tl.store(out_ptr + queries[:, None] * DIM + dims, out, mask=mine)
"""
HINTS = (
    "A key that does not exist must have the weight 0, and exp(-inf) is 0: tl.where(keys < tokens, scores, -inf), with the mask as a row.",
    "What was summed so far is relative to the old maximum. Relative to the new one it is smaller, by the factor tl.exp(largest - new).",
    "kept = tl.exp(largest - new); weight = weight * kept + ..., and the accumulator that goes into tl.dot is total * kept[:, None].",
)
SOLUTION = START.replace(
    "        new = tl.max",
    '        scores = tl.where((keys < tokens)[None, :], scores, -float("inf"))\n        new = tl.max',
).replace(
    "        weight = weight + tl.sum(exps, axis=1)\n        total = tl.dot(exps, v, total)\n",
    "        kept = tl.exp(largest - new)\n        weight = weight * kept + tl.sum(exps, axis=1)\n        total = tl.dot(exps, v, total * kept[:, None])\n",
)
OPEN = (
    "Make it causal: a query sees the keys up to its own. Which blocks of keys can a program then leave out?"
)

DIM, BLOCK = 8, 8
CASES = ((12, 0.5), (8, 4.0), (1, 1.0))  # tokens and scale


def run(function):
    """Run the reader's kernel for the first length; returns the result in words, and the picture."""
    arrays, programs = asked(function, CASES[0])
    return (
        f"{CASES[0][0]} tokens in blocks of {BLOCK}: {programs} programs ran, and all outputs are right.",
        drawn(arrays, programs),
    )


def check(function):
    """Check the reader's kernel for all lengths; a Slip at the first wrong output."""
    words, picture = run(function)
    for case in CASES[1:]:
        asked(function, case)
    return f"Right, for {len(CASES)} lengths. {words}", picture


def scores_of(q, k, tokens, scale):
    """The scores of each query, as lists."""
    return [
        [
            scale * sum([q[one * DIM + at] * k[other * DIM + at] for at in range(DIM)])
            for other in range(tokens)
        ]
        for one in range(tokens)
    ]


def asked(function, case):
    """The arrays after a launch, and the number of programs; a Slip if an output is wrong."""
    tokens, scale = case
    q, k, v = [NamedArray("qkv"[at], numbers(tokens * DIM, at + 1), row=DIM) for at in range(3)]
    out, programs = NamedArray("out", [0.0] * (tokens * DIM), row=DIM), -(-tokens // BLOCK)
    arrays = [q, k, v, out]
    ran(function, programs, arrays, [tokens, scale], {"DIM": DIM, "BLOCK": BLOCK})
    scores = scores_of(q.numbers, k.numbers, tokens, scale)
    weights = [softmax_row(row) for row in scores]
    wanted = [
        sum([weights[one][other] * v.numbers[other * DIM + at] for other in range(tokens)])
        for one in range(tokens)
        for at in range(DIM)
    ]

    def why(found, at):
        """Words for a wrong output."""
        if found is None:
            return "Does each program have queries of its own?"
        if found != found:
            return "This is not a number. Is it -inf - (-inf), or 0 / 0?"
        beside = -tokens % BLOCK
        row = scores[at // DIM]
        largest = max([*row, 0.0])
        shares = [math.exp(each - largest) for each in row]
        phantom = sum([shares[other] * v.numbers[other * DIM + at % DIM] for other in range(tokens)])
        phantom /= sum(shares) + beside * math.exp(-largest)
        if beside and abs(found - phantom) < 1e-4:
            return f"{beside} keys that do not exist are counted, with a score of 0."
        return "When a larger score comes, are both sums rescaled by exp(largest - new), and is the maximum the query's own?"

    require(out, wanted, arrays, programs, 2e-5, why)
    return arrays, programs
