"""What ``make catalogue`` says: entries without a source, those that are old, those with inferred figures."""

from datetime import date

import pytest

from engine.catalog import upkeep
from engine.catalog.upkeep import CatalogueEntry, lines, needs

TODAY = date(2026, 11, 30)
FRESH = CatalogueEntry("gpus", "fresh", "a datasheet", "2025-11-30", "", "")
OLD = FRESH._replace(key="old", checked="2025-11-29")
UNSOURCED = FRESH._replace(key="unsourced", source=" ")
UNCONFIRMED = FRESH._replace(key="unconfirmed", checked="", note="by hand; not confirmed: the cache")
INFERRED = FRESH._replace(key="inferred", inferred="NIC, power")


def test_each_entry_stands_under_what_it_needs():
    """A year and a day: 365 days are a year, 366 are more."""
    found = needs(TODAY, [FRESH, OLD, UNSOURCED, UNCONFIRMED, INFERRED])
    assert found == ([UNSOURCED], [OLD], [UNCONFIRMED], [INFERRED])
    said = "\n".join(lines(found))
    assert "1 entry without a source\n  gpus          unsourced\n" in said
    assert said.count("1 entry ") == 4 and "fresh" not in said
    for each, why in ((OLD, OLD.checked), (UNCONFIRMED, "the cache"), (INFERRED, "NIC, power")):
        assert f"  gpus          {each.key:<24}{why}" in said


def test_nothing_is_needed_where_nothing_is_wrong():
    assert [line[:9] for line in lines(needs(TODAY, [FRESH])) if line] == ["0 entries"] * 4


@pytest.mark.parametrize(("found", "status"), [([OLD, UNCONFIRMED, INFERRED], 0), ([FRESH, UNSOURCED], 1)])
def test_only_a_missing_source_fails(found, status, monkeypatch, capsys):
    monkeypatch.setattr(upkeep, "entries", lambda: found)
    assert upkeep.main() == status
    assert capsys.readouterr().out.count("\n") > 4


def test_every_table_of_the_catalogue_is_looked_at():
    found = list(upkeep.entries())
    assert {each.table for each in found} == set(upkeep.TABLES)
    assert ("gpus", "m3-ultra") in {each[:2] for each in found}
    assert not needs(TODAY, found).unsourced
