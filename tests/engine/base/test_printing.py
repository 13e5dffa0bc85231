"""Results as lines of text: columns as wide as their contents, and values in the family that a key names."""

from engine.base import printing


def test_a_table_is_as_wide_as_its_widest_cells():
    rows = [{"key": "a", "time_s": 0.5}, {"key": "longer", "time_s": 12e-6}]
    assert printing.table(rows, ["key", "time_s"]) == ["key     time_s", "a       500 ms", "longer  12 µs"]


def test_values_stand_in_a_column_and_groups_are_indented():
    assert printing.lines({"gpus": 8, "step_s": 1.5, "time_s": {"a": 0.001, "bb": 2.0}}) == [
        "gpus    8",
        "step_s  1.5 s",
        "time_s",
        "  a   1 ms",
        "  bb  2 s",
    ]
    assert printing.lines({}) == []
