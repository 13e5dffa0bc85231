"""How a server orders its work: prompts and answers, and what becomes of a cache that has no room."""

PREFILL_FIRST = 0  # prompts first: nobody writes while one is read
CHUNKED = 1  # pieces of prompts and the answers' next tokens in one step
DISAGGREGATED = 2  # prompts on some instances, answers on the others

RECOMPUTE = -1.0  # seconds for swapping a token: a preempted request's cache is dropped, and read anew
