"""Tables for the command line: nested results as aligned lines, with units derived from the end of each
key, and rows as CSV, in plain SI figures."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from engine.base import units

# end of a key -> how its value is shown
FAMILIES = (
    ("_flops_per_s", "flops_per_s"),
    ("_flops_per_gpu_per_s", "flops_per_s"),
    ("tokens_per_s", "count"),
    ("tokens_per_s_per_gpu", "count"),
    ("layouts_per_s", "count"),
    ("_bytes_per_s", "bytes_per_s"),
    ("bandwidth", "bytes_per_s"),
    ("_bytes", "bytes"),
    ("bytes_per_token", "bytes"),
    ("bytes_per_gpu", "bytes"),
    ("_s", "seconds"),
    ("parameters", "params"),
    ("mfu", "percent"),
    ("mfu_non_causal", "percent"),
    ("hfu", "percent"),
    ("share", "percent"),
    ("goodput", "percent"),
    ("slower_by", "percent"),
    ("dollars", "dollars"),
    ("error", "percent"),
)


def shown(key: str, value: Any) -> str:
    """A value as text: formatted by its key's family, other numbers with three digits."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(key, item) for item in value) or "nothing"
    value = float(value)
    for ending, family in FAMILIES:
        if key.endswith(ending) and math.isfinite(value):
            return units.human(value, family)
    return f"{int(value)}" if value == int(value) and abs(value) < 1e6 else units.number(value)


def lines(result: dict, indent: str = "") -> list[str]:
    """A nested result, one value per line; the key of a group determines the family of its members (time_s,
    memory_bytes)."""
    width = max((len(key) for key in result), default=0)
    out = []
    for key, value in result.items():
        if isinstance(value, dict):
            out.append(f"{indent}{key}")
            out += lines(
                {k: shown(key if not isinstance(v, str) else k, v) for k, v in value.items()}, indent + "  "
            )
        else:
            out.append(f"{indent}{key:<{width}}  {shown(key, value)}")
    return out


def table(rows: list[dict], columns: list[str]) -> list[str]:
    """Rows under their column names, each column as wide as its widest value."""
    cells = [[shown(column, row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(columns, *cells)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip()
        for line in [columns, *cells]
    ]


def as_csv(rows: Sequence[dict]) -> str:
    """Rows under the names of all their columns; what is nested gets a name with a dot, such as
    memory_bytes.weights."""
    flat = [_flat(row) for row in rows]
    out = io.StringIO()
    columns = list(dict.fromkeys(name for row in flat for name in row))
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue().removesuffix("\n")


def _flat(row: dict, before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{key}.")
        elif isinstance(value, (list, tuple)):
            found[before + key] = ", ".join(map(str, value))
        else:
            found[before + key] = str(value).lower() if isinstance(value, bool) else value
    return found
