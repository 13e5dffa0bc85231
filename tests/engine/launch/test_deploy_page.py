"""The deployment planner as its page asks it: plain values go in, and plain values and words come out."""

import pytest

from engine.launch import deploy_page as page
from engine.serving.deployment import Deployment, Limits, Load
from engine.serving.deployment.found import Measured
from engine.serving.replica import Replica

ASKED = {
    "model": "llama3.1-8b",
    "gpu": "h100-sxm",
    "per_s": 4.0,
    "prompt": 1000.0,
    "output": 200.0,
    "prompt_spread": 0.5,
    "output_spread": 0.5,
    "prefix_share": 0.0,
    "ttft_s": 1.0,
    "tpot_s": 0.05,
    "share": 0.9,
    "formats": "bf16",
    "caches": "bf16",
    "pools": "",
}


def test_prompts_have_a_pool_of_their_own_unless_one_is_asked_for():
    both, one = (page.others(ASKED | {"pools": pools}) for pools in ("", "one"))
    assert any(both["prefill"]) and not any(one["prefill"])
    assert 0 < len(one["prefill"]) < len(both["prefill"])


@pytest.mark.parametrize(
    ("replica", "words"),
    [
        (Replica(8), "on a replica"),
        (Replica(4, 2), "in each of a replica's 2 batches"),
        (Replica(1, 1, 8), "on each GPU"),
    ],
)
def test_the_largest_batch_is_that_of_what_forms_one(replica, words):
    """A replica forms one batch, a pipeline one for each stage, and each GPU its own if data are parallel."""
    found = Deployment(
        *("mixtral-8x7b", "h100-sxm", replica, 2, 0, "bf16", "bf16", 2048, 64, None, 4096),
        *(Load(1), Limits(1.0, 0.05), Measured(0.5, 0.01, 0.03, 0.001, 0.02, 1000)),
        *(10.0, 200.0, 3.0, "capacity", ()),
    )
    assert page.shown(found)["seats"] == words
