"""serving_frontier: the split it picks is the best of all by brute force, and its words follow from it."""

import numpy as np
import pytest

from engine import catalog
from engine.serving import decoding
from engine.step.layout import machine
from tests.widgets.reading import Reader
from widgets.serving.serving_frontier import DEGREES, DOTS, ServingFrontier

shown = Reader(ServingFrontier).shown


def best(target: float, fleet: int, model="llama3-70b", gpu="h100-sxm", prompt=2048.0, output=256.0):
    """(tokens/s per GPU, degree, users) of the best split, every number of users tried."""
    users = np.arange(1.0, 1500)
    found = decoding.steady(
        catalog.model(model), machine(catalog.gpu(gpu)), DEGREES[:, None], users[None, :], prompt, output
    )
    meets = (found.token_s <= target) & (DEGREES[:, None] <= fleet)
    brings = np.where(meets, found.tokens_per_s_per_gpu, 0.0)
    row, column = np.unravel_index(np.argmax(brings), brings.shape)
    return float(brings[row, column]), DEGREES[row], float(found.batch[row, column])


@pytest.mark.parametrize(("target", "fleet"), [(0.03, 64), (0.02, 64), (0.042, 64), (0.05, 64), (0.04, 4)])
def test_the_split_is_the_best_of_all(target, fleet):
    brings, degree, users = best(target, fleet)
    texts = {name: readout["text"] for name, readout in shown(target=target, fleet=fleet)["readouts"].items()}
    assert texts["split"] == f"{fleet // degree:.0f} × TP {degree:.0f}"
    assert texts["users"] == f"{users:.0f}" and float(texts["per_gpu"]) == pytest.approx(brings, rel=0.01)


def test_a_tighter_target_takes_more_gpus_a_replica_and_brings_less():
    loose, tight = (best(target, 64) for target in (0.2, 0.02))
    assert loose[0] > 1.5 * tight[0] and loose[1] < tight[1]


def test_the_frontier_passes_through_the_chosen_point():
    page = shown()
    chosen, frontier = page["parts"]["chosen"], page["parts"]["frontier"]
    at = np.searchsorted(frontier["target"], 0.03, side="right") - 1
    assert frontier["most"][at] == pytest.approx(float(chosen["y"]), rel=0.02)


def test_a_target_that_nothing_meets_says_so():
    page = shown(target=0.005)
    assert page["regimes"]["impossible"]["met"] and page["readouts"]["split"]["text"] == "none"
    assert page["summary"].startswith("No split of 64 H100 SXM")


def test_traffic_beyond_the_fleet_takes_whole_replicas_more():
    """181 tokens/s a GPU in replicas of eight: 20,000 need 13.8 of them, so 14, which are 112 GPUs."""
    page = shown(traffic=20_000)
    assert page["regimes"]["too_little"]["met"] and page["readouts"]["needed"]["text"] == "112, there are 64"


def test_a_point_says_what_it_is():
    place = 3 * len(DOTS)
    assert ServingFrontier().hints()["points"][place].startswith("TP 8, users a replica: 1; ")


def test_weights_in_fp8_are_multiplied_in_fp8_as_in_lesson_11():
    """Two H100s hold 79 chats of its design exercise within 50 ms; with widened weights it would be 58."""
    page = shown(target=0.05, fleet=2, weights="fp8", cache="fp8", output=512)
    users, at = np.arange(1.0, 200), machine(catalog.gpu("h100-sxm"), "fp8")
    found = decoding.steady(catalog.model("llama3-70b"), at, 2.0, users, 2048.0, 512.0, 1.0, 1.0)
    assert page["readouts"]["users"]["text"] == f"{np.max(users[found.token_s <= 0.05]):.0f}" == "79"


def test_a_gpu_without_fp8_widens_its_weights():
    assert shown(gpu="a100-80", weights="fp8")["readouts"]["split"]["text"] != "none"
