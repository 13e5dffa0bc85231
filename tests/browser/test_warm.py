"""A heavy figure is computed and painted a few times before its reader drags it, and a light one is left alone."""

import pytest

WARMED = """async ([slow, given]) => {
  const { warmUp } = await import("/assets/widget/warm.js");
  const seen = [];
  let painted = 0;
  const view = {
    controls: [{ name: "folded", grid: [1, 2] }, { name: "model" }, { name: "size", grid: [1, 2, 3, 4] }],
    values: { folded: 1, model: 0, size: 3 }, document: {}, moved: false, asksPython: () => false,
    $: selector => ({ checkVisibility: () => selector !== '[data-control="folded"]' }),
    compute: values => {
      seen.push(values);
      if (given.throws) throw new Error("cannot");
      for (const end = performance.now() + (seen.length <= slow ? 15 : 0); performance.now() < end;);
      if (seen.length === given.movedAt) view.moved = true;
    },
    repaint: () => { painted += 1; },
    ...given.view,
  };
  await warmUp(view);
  return [seen.map(values => values.size), painted];
}"""


def test_neighbours_of_a_heavy_figure_are_computed_and_it_is_painted(script):
    seen, painted = script.evaluate(WARMED, [3, {}])
    assert 16 <= len(seen) <= 24 and painted == 8  # a busy machine may be slow once more
    assert seen[:4] == [2, 1, 2, 3]  # of the one slider in sight, back from its end


def test_a_light_figure_is_computed_once_and_not_painted(script):
    for _ in range(3):  # a busy machine may hold it up
        seen, painted = script.evaluate(WARMED, [0, {}])
        if painted == 0:
            break
    assert len(seen) == 1 and painted == 0


def test_what_stays_heavy_is_not_computed_forever(script):
    assert len(script.evaluate(WARMED, [1000, {}])[0]) == 24


@pytest.mark.parametrize(
    ("given", "times"),
    [
        ({"movedAt": 2}, 2),
        ({"throws": True}, 1),
        ({"view": {"moved": True}}, 0),
        ({"view": {"document": None}}, 0),
        ({"view": {"controls": [{"name": "model"}]}}, 0),
    ],
)
def test_nothing_is_computed_that_nobody_waits_for(script, given, times):
    seen, painted = script.evaluate(WARMED, [1000, given])
    assert len(seen) == times and painted == 0
