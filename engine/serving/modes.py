"""How a server orders prompts and answers, and what it does with a cache for which there is no room."""

PREFILL_FIRST = 0  # prompts first: no answer is written while a prompt is read
CHUNKED = 1  # pieces of prompts and the answers' next tokens in one step
DISAGGREGATED = 2  # prompts on some instances, answers on the others

RECOMPUTE = -1.0  # instead of seconds for swapping a token: a preempted request's cache is computed anew
