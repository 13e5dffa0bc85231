"""How a server orders prompts and answers, and what it does with a cache for which there is no room."""

# Prompts first: no answer is written while a prompt is read. Chunked: pieces of prompts and the answers' next
# tokens in one step. Disaggregated: prompts on some instances, answers on the others.
PREFILL_FIRST, CHUNKED, DISAGGREGATED = range(3)

RECOMPUTE = -1.0  # instead of seconds for swapping a token: a preempted request's cache is computed anew
