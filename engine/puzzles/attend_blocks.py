"""Attention in Triton in one pass over the keys, with a running softmax."""

import math

from engine.puzzles.judging import Slip
from engine.puzzles.tl_blocks import Tensor
from engine.puzzles.tl_cases import by_tile, compared, empty, launched, some
from engine.puzzles.tl_language import cdiv, given

TITLE = "attention in one pass over the keys"
LESSON = "17-triton"
STATEMENT = """
`attention_kernel[(blocks of queries,)](q, k, v, out, tokens, scale, DIM=16, BLOCK_Q=16, BLOCK_K=16)`: `q`, `k` and `v` are `tokens × DIM`, row by row. Every program has one block of queries
and goes through the keys **once**, a block at a time. It must end with $\\text{softmax}(Q K^\\top \\cdot \\text{scale})\\, V$ for its queries, and may not keep the scores of all keys.

The kernel below treats each block of keys as if it were the only one. It has to remember, for each query, the largest score so far, the sum of the weights and the weighted sum of the values, and to rescale both sums when a larger score comes.
"""
FUNCTION = "attention_kernel"
START = """import triton
import triton.language as tl

@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, tokens, scale,
                     DIM: tl.constexpr, BLOCK_Q: tl.constexpr,
                     BLOCK_K: tl.constexpr):
    dims = tl.arange(0, DIM)[None, :]
    queries = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    mine = (queries < tokens)[:, None]
    q = tl.load(q_ptr + queries[:, None] * DIM + dims, mask=mine, other=0.0)
    out = tl.zeros((BLOCK_Q, DIM), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_K):
        keys = start + tl.arange(0, BLOCK_K)
        left = (keys < tokens)[:, None]
        k = tl.load(k_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        exps = tl.exp(scores - tl.max(scores, axis=1)[:, None])
        weight = tl.sum(exps, axis=1)
        out = tl.dot(exps, v) / weight[:, None]
    tl.store(out_ptr + queries[:, None] * DIM + dims, out, mask=mine)
"""
HINTS = (
    "Scores of keys behind the last must count nothing: tl.where((keys < tokens)[None, :], scores, -float('inf')), because a key of zeros has the score 0 and not -inf.",
    "Before the loop: largest = tl.full((BLOCK_Q,), -float('inf'), tl.float32), and zeros for weight and total. Divide once, after the loop.",
    "In the loop: new = tl.maximum(largest, tl.max(scores, axis=1)); what was summed before is multiplied by tl.exp(largest - new), and the exps are relative to new.",
)
SOLUTION = """import triton
import triton.language as tl

@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, tokens, scale,
                     DIM: tl.constexpr, BLOCK_Q: tl.constexpr,
                     BLOCK_K: tl.constexpr):
    dims = tl.arange(0, DIM)[None, :]
    queries = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    mine = (queries < tokens)[:, None]
    q = tl.load(q_ptr + queries[:, None] * DIM + dims, mask=mine, other=0.0)
    largest = tl.full((BLOCK_Q,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK_Q,), tl.float32)
    total = tl.zeros((BLOCK_Q, DIM), tl.float32)
    for start in range(0, tokens, BLOCK_K):
        keys = start + tl.arange(0, BLOCK_K)
        left = (keys < tokens)[:, None]
        k = tl.load(k_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where((keys < tokens)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        kept, exps = tl.exp(largest - new), tl.exp(scores - new[:, None])
        weight = weight * kept + tl.sum(exps, axis=1)
        total = tl.dot(exps, v, total * kept[:, None])
        largest = new
    tl.store(out_ptr + queries[:, None] * DIM + dims, total / weight[:, None],
             mask=mine)
"""
OPEN = "Make it causal: a query sees the keys up to its own. From which block of keys on can a program stop?"

CASES = ((16, 0.25), (40, 0.25), (24, 30.0))  # tokens, scale
DIM = SIDE_Q = 16


def attended(q, k, v, tokens, scale):
    """Attention by its definition, flat."""
    rows = [[values[at * DIM : (at + 1) * DIM] for at in range(tokens)] for values in (q, k, v)]
    out = []
    for query in rows[0]:
        scores = [scale * sum([x * y for x, y in zip(query, key)]) for key in rows[1]]
        top = max(scores)
        weights = [math.exp(score - top) for score in scores]
        total = sum(weights)
        columns = [[value[dim] for value in rows[2]] for dim in range(DIM)]
        out += [sum([weight * x for weight, x in zip(weights, column)]) / total for column in columns]
    return out


def tried_on(kernel, tokens, scale):
    """The launch of the reader's kernel; a Slip if the result is wrong or keys are read twice."""
    q, k, v = [Tensor(name, some(tokens * DIM, seed)) for name, seed in (("q", 3), ("k", 5), ("v", 8))]
    out = Tensor("out", empty(tokens * DIM))
    draw = lambda launch, wrong: by_tile(launch, "out", (tokens, DIM), (SIDE_Q, DIM), wrong)
    blocks = {"DIM": DIM, "BLOCK_Q": SIDE_Q, "BLOCK_K": 16}
    launch = launched(kernel, (cdiv(tokens, SIDE_Q),), (q, k, v, out, tokens, scale), draw, **blocks)
    wanted = attended(q.values, k.values, v.values, tokens, scale)
    last = attended(q.values, k.values, v.values, tokens, 0.0)
    compared(launch, out, wanted, draw, lambda place, value: why(place, value, last))
    for name in ("k", "v"):
        times = len([1 for _, tensor, _ in launch.loads if tensor == name])
        if times > launch.grid[0] * tokens * DIM:
            raise Slip(
                f"{name} is read {times / (launch.grid[0] * tokens * DIM):.1f} times by each program: once is enough."
            )
    return launch, draw(launch, ())


def why(place, value, plain):
    """What helps with this wrong element."""
    at = f"It is dimension {place % DIM} of query {place // DIM}."
    if abs(value - plain[place]) < 1e-6:
        return f"{at} That is the plain mean of the values: the scores have no effect."
    return f"{at} Do all blocks of keys count, relative to the same maximum, and keys behind the last not at all?"


def run(kernel):
    """Run the reader's kernel for 40 tokens."""
    tokens, scale = CASES[1]
    launch, drawn = tried_on(kernel, tokens, scale)
    return (
        f"{launch.grid[0]} programs have attended to {tokens} keys in {cdiv(tokens, 16)} blocks each, and no score left a program.",
        drawn,
    )


def check(kernel):
    """Check it for all cases."""
    for tokens, scale in CASES:
        try:
            tried_on(kernel, tokens, scale)
        except Slip as slip:
            slip.words = f"For {tokens} tokens{', with large scores' if scale > 1 else ''}: {slip.words}"
            raise
    words, drawn = run(kernel)
    return f"Right, for {len(CASES)} lengths, with large scores among them. {words}", drawn
