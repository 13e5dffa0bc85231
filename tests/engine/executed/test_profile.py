"""A profile of an executed pipeline, by hand: when each stage computes, and what its messages wait for."""

from engine.executed import profile


def test_two_stages_of_two_micro_batches():
    """1F1B with passes of 1 s and 2 s and messages of 0.25 s, which floats hold exactly. The second stage
    waits for its first input alone: the second one arrives while it computes, so no kernel waits for it. The
    first stage waits for both gradients."""
    found = profile.pipeline("1f1b", 2, 2, 1.0, 2.0, 0.25)
    first, first_sends, second, second_sends = (
        [(event.start_s, event.end_s) for event in lane.events] for lane in found.lanes
    )
    assert first == [(0, 1), (1, 2), (4.5, 6.5), (7.5, 9.5)]
    assert second == [(1.25, 2.25), (2.25, 4.25), (4.25, 5.25), (5.25, 7.25)]
    assert first_sends == [(1, 1.25), (2, 4.5), (6.5, 7.5)]
    assert second_sends == [(0, 1.25), (4.25, 4.5), (7.25, 7.5)]
    assert found.end_s == 9.5
