"""What the catalogue's entries need: those without a source, those that nobody has looked up for a year, and
those with figures that are not confirmed or were inferred. ``make catalogue`` prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple

from engine import catalog

YEAR_DAYS = 365
TABLES: dict[str, Callable[[], dict]] = {
    "gpus": catalog.all_gpus,
    "links": catalog.all_links,
    "nodes": catalog.all_nodes,
    "hosts": catalog.all_hosts,
    "models": catalog.all_models,
    "recipes": catalog.all_recipes,
    "software": catalog.all_software,
    "prices": catalog.all_prices,
    "runs": catalog.all_runs,
    "interruptions": catalog.all_interruptions,
    "compiled": catalog.compiled_steps,
}


class CatalogueEntry(NamedTuple):
    """What is asked of an entry, whatever it describes."""

    table: str
    key: str
    source: str
    checked: str  # empty where a figure could not be held against a source
    note: str
    inferred: str  # in words


class Need(NamedTuple):
    """The entries that need something."""

    unsourced: list[CatalogueEntry]
    old: list[CatalogueEntry]
    unconfirmed: list[CatalogueEntry]
    inferred: list[CatalogueEntry]


def entries() -> Iterable[CatalogueEntry]:
    """Every entry of every table."""
    for table, all_of in TABLES.items():
        for key, one in all_of().items():
            words = getattr(one, "inferred_words", "") or ", ".join(getattr(one, "inferred", ()))
            yield CatalogueEntry(table, key, one.source, one.checked, one.note, words)


def needs(today: date, found: Iterable[CatalogueEntry]) -> Need:
    """The entries without a source, those that were looked up more than a year before ``today``, those with a
    figure that was not confirmed, and those with one that was inferred."""
    known = list(found)
    return Need(
        [each for each in known if not each.source.strip()],
        [
            each
            for each in known
            if each.checked and (today - date.fromisoformat(each.checked)).days > YEAR_DAYS
        ],
        [each for each in known if not each.checked],
        [each for each in known if each.inferred],
    )


def lines(found: Need) -> list[str]:
    """The report."""
    parts = (
        ("without a source", found.unsourced, lambda each: ""),
        ("looked up more than a year ago", found.old, lambda each: each.checked),
        ("with a figure that is not confirmed", found.unconfirmed, _doubt),
        ("with inferred figures", found.inferred, lambda each: each.inferred),
    )
    said = []
    for words, each_of, what in parts:
        said += [
            *([""] if said else []),
            f"{len(each_of)} {'entry' if len(each_of) == 1 else 'entries'} {words}",
        ]
        said += [f"  {each.table:<14}{each.key:<24}{what(each)}".rstrip() for each in each_of]
    return said


def _doubt(each: CatalogueEntry) -> str:
    """What the note says behind the words "not confirmed"."""
    return each.note.partition("not confirmed: ")[2]


def main() -> int:
    """Print the report; 1 where an entry has no source."""
    found = needs(date.today(), entries())
    print("\n".join(lines(found)))
    return 1 if found.unsourced else 0


if __name__ == "__main__":
    sys.exit(main())
