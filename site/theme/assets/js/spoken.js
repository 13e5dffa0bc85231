/* What people type into the search, and how the course says it: a pattern of whole words, in JSON, and what stands in its place.
   The search that assistants get reads the same table (course/agent/passages.py). Loaded before search.js. */
const spoken = {
  "ooms?": "out of memory",
  "all[- ]reduces?": "allreduce",
  "all[- ]gathers?": "allgather",
  "reduce[- ]scatters?": "reducescatter",
  "all[- ]to[- ]all": "alltoall",
  "band ?wi(?:th|dht|tdh|hdt)s?": "bandwidth",
  "thr(?:ough|u)put|troughput": "throughput",
  "latanc(?:y|ies)": "latency",
  "(?:mem+o?r+y|memroy)": "memory",
  "paralel+i[sz]m|parallism|parralelism": "parallelism",
  "pip(?:line|elien)s?": "pipeline",
  "col+ecti?ves?": "collective",
  "ch?ekpoint(?:ing)?|checkpiont(?:ing)?|ckpts?": "checkpoint",
  "quanti[sz]ed?|quantisation": "quantization",
  "optimi[sz]ers?": "optimizer",
  "kv-?caches?": "KV cache",
  "flash-?attn|fa[234]": "FlashAttention",
  "grad(?:ient)? accum": "gradient accumulation",
  "infin+iband|infin?band": "InfiniBand",
  "spec(?:ulative)? dec(?:ode|oding)?": "speculative decoding",
  "disagg": "disaggregation",
  "finetun(?:e|ing)": "fine-tuning"
};
const said = query => Object.entries(spoken).reduce(
  (text, [pattern, ours]) => text.replace(new RegExp(`(?<![\\p{L}\\p{N}_])(?:${pattern})(?![\\p{L}\\p{N}_])`, "giu"), ours), query);
