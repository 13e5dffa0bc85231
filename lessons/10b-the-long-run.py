"""The numbers of lesson 10b, The long run."""

import math
from functools import cache

from engine import catalog
from engine.catalog import model, models, price
from engine.exam import incident_cases as cases
from engine.mechanism import cost, flops, reliability
from engine.rules import advice
from engine.rules.advice import AdviceVerdict
from engine.step.layout import Estimate

parameters_405b = models.parameters(model("llama3.1-405b"))  # parameters of Llama 3 405B
# what a token's arithmetic is, attention and all, in parameters
counted_405b = (
    flops.matmul_parameters(model("llama3.1-405b"))
    + flops.attention_flops_per_token(model("llama3.1-405b"), 8192) / 2
)
price_h100 = price("h100-sxm").dollars_per_hour  # dollars of a GPU-hour


def hours_of(run: str) -> float:
    """GPU-hours of a published run."""
    return catalog.all_runs()[run].gpu_hours


def judged(tools: str = "context") -> AdviceVerdict:
    """What tree and search of lesson 10 say about 70B on 512 GPUs, with the software of a time."""
    return advice.judged("llama3-70b", gpus=512, global_batch=512, seq=8192, tools=tools)


classic = judged(tools="3d").search  # the fastest with whole replicas
mtbf_s = reliability.mean_time_between_failures_s  # seconds between failures of so many GPUs
M = mtbf_s(16384)  # the same, for 16,384


def young_s(checkpoint_s: float) -> float:
    """Young's interval on 16,384 GPUs."""
    return reliability.young_interval_s(checkpoint_s, M)


def useful(interval_s: float) -> float:
    """Goodput of 16,384 GPUs with a minute to write and ten to come back."""
    return reliability.useful_share(interval_s, checkpoint_s=60.0, mtbf_s=M, restart_s=600.0)


def useful_at_best(gpus: int, checkpoint_s: float, restart_s: int) -> float:
    """Goodput at the best interval."""
    return reliability.useful_share(
        reliability.best_interval_s(checkpoint_s, mtbf_s(gpus)), checkpoint_s, mtbf_s(gpus), restart_s
    )


# failures a second of one GPU in OPT-175B's logbook
opt_failures = reliability.failures_per_gpu_s(
    gpus=992, failures=1, duration_s=catalog.all_interruptions()["opt-175b"].mtbf_s
)


def dollars(gpus: int, seconds: float) -> float:
    """The bill at the figure's price and overhead."""
    return cost.run_dollars(
        cost.gpu_hours(gpus, seconds), dollars_per_gpu_hour=price_h100, overhead_share=0.1
    )


def lasts_s(budget: float, gpus: int) -> float:
    """How long a budget lasts at the same."""
    return cost.affordable_s(budget, gpus, dollars_per_gpu_hour=price_h100, overhead_share=0.1)


# tree and search about the run of the envelope, with ZeRO-1 and no context ranks
meta = advice.judged("llama3.1-405b", gpus=16384, global_batch=2048, seq=8192, tools="zero1")
checkpoint_bytes = 14 * parameters_405b  # a checkpoint of 405B
# what the envelope's run does with its time: useful, writing, doing again, coming back
envelope = reliability.shares(
    reliability.best_interval_s(checkpoint_bytes / 2e12, M), checkpoint_bytes / 2e12, mtbf_s=M, restart_s=600
)
lost_to_restart = envelope[3] / (1 - envelope[0])  # the part of the loss that is coming back
ideal_days_s = 15.6e12 / meta.rules.tokens_per_s  # the run of 405B, if nothing breaks
# the same with the envelope's goodput, as it is printed
run_days_s = ideal_days_s / round(float(envelope[0]), 3)
gpu_hours = cost.gpu_hours(16384, run_days_s)  # what it needs
bill_405b = dollars(gpus=16384, seconds=run_days_s)  # what it costs, overhead included
# what the hours of the model card cost at the same price
published_bill = cost.run_dollars(
    hours_of("llama3.1-405b"), dollars_per_gpu_hour=price_h100, overhead_share=0.1
)


def two_trillion_s(found: Estimate) -> float:
    """Seconds for two trillion tokens."""
    return 2e12 / found.tokens_per_s / 0.95


def two_trillion_bill(found: Estimate) -> float:
    """What they cost on 512 GPUs."""
    return cost.run_dollars(
        cost.gpu_hours(512, duration_s=two_trillion_s(found)), dollars_per_gpu_hour=price_h100
    )


# tree and search about 175B
design_judged = advice.judged("gpt3-175b", gpus=1024, global_batch=1536, seq=2048)
design = design_judged.search  # the fastest layout for 175B


# -- the incident room ---------------------------------------------------------------------------------------
@cache
def blamed_rightly() -> float:
    """Of 150 incidents, the share of those in which the job stands still where the rank that complains first
    is at fault."""
    hung, right = 0, 0
    for seed in range(1, 151):
        seen = cases.evidence(seed)
        if seen["hangs"]:
            hung += 1
            right += cases.first_to_speak(seen) == cases.case_of(seed).rank
    return right / hung


# the share of its pace that the job of incident 3 loses
slow_share = cases.lost_share(cases.evidence(3))

# -- what single sentences say -------------------------------------------------------------------------------
# time lost with checkpoints of a minute and ten minutes to come back
lost_with_minutes = reliability.wasted_share(young_s(60), checkpoint_s=60, mtbf_s=M, restart_s=600)
# GPU-hours of Llama 3.1 405B over those of DeepSeek-V3
hours_over_deepseek = hours_of("llama3.1-405b") / hours_of("deepseek-v3")
# what ten minutes to come back take of 131,072 GPUs' time
coming_back = 1 - math.exp(-600 / mtbf_s(131072))
# parameters that a token of DeepSeek-V3 uses
deepseek_active = models.active_parameters(model("deepseek-v3"))
# useful time of 16,384 GPUs whose checkpoints go out at 2 TB/s
useful_405b = useful_at_best(gpus=16384, checkpoint_s=checkpoint_bytes / 2e12, restart_s=600)
best_days_s = two_trillion_s(judged().search)  # seconds of two trillion tokens with the best layout
best_bill = two_trillion_bill(judged().search)  # dollars of two trillion tokens with the best layout
# seconds between checkpoints of a minute on 1,024 GPUs
checkpoint_every_s = reliability.best_interval_s(checkpoint_s=60, mtbf_s=mtbf_s(1024))
# dollars of the design's run, failures included
design_dollars = dollars(gpus=1024, seconds=3e11 / design.tokens_per_s / 0.971)
