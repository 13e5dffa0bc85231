"""What a fit writes: the constants, a summary of the residuals, and a table for people.

Only constants and summaries are kept, no row of a table.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from engine.calibration.fit.judge import BAND, FIT, HIGH, LOW, FitReport
from engine.calibration.fit.solver import rounded

FEWEST = 40  # minimum number of rows for a separate band
SOURCES = {
    "gemm, attention, mla, experts, collectives, custom_allreduce": (
        "ai-dynamo/aiconfigurator 095f58a51c4ca8e61b66ec108d86f223f8d559ce, "
        "aic-core/src/aiconfigurator_core/systems/data (Apache-2.0)"
    ),
    "p2p": "microsoft/vidur 7d47513363ec447a741ac5e47241580b47724fbf, data/profiling/network (MIT)",
}


def _text(value) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', "'") + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_text(v)}" for k, v in value.items()) + " }"
    if isinstance(value, int):
        return str(value)
    text = repr(float(value))
    return text if any(c in text for c in ".en") else text + ".0"


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'


def toml(tables: dict, head: str) -> str:
    """Nested tables as TOML, one line for each entry of the innermost kind."""
    lines = [f"# {line}" for line in head.splitlines()]

    def walk(path: list[str], table: dict):
        leaves = {k: v for k, v in table.items() if not _holds_tables(v)}
        if leaves:
            lines.extend(["", f"[{'.'.join(map(_key, path))}]"])
            lines.extend(f"{_key(k)} = {_text(v)}" for k, v in leaves.items())
        for k, v in table.items():
            if _holds_tables(v):
                walk([*path, k], v)

    for name, table in tables.items():
        walk([name], table)
    return "\n".join(lines) + "\n"


def _holds_tables(value) -> bool:
    """Whether a value is a table that contains further tables."""
    return isinstance(value, dict) and any(isinstance(inner, (dict, list)) for inner in value.values())


# -- bands ---------------------------------------------------------------------------------------------------
def _quantiles(ratios) -> list[float]:
    """The band's quantiles, widened for few rows: the k-th of n rows, k = ⌊q·(n + 1)⌋ from either end."""
    ratios = np.sort(ratios)
    k = max(1, int(LOW * (len(ratios) + 1)))
    return [rounded(float(ratios[k - 1])), rounded(float(ratios[-k]))]


def bands(judged: list[dict], way: str, parts: range) -> dict[str, dict[str, list[float]]]:
    """Measured over predicted time, by kind: for a key, GPU and size where there are enough rows, for a key
    and size over all GPUs, and for everything."""
    groups: dict = defaultdict(lambda: defaultdict(list))
    for row in judged:
        if row["way"] == way and row["part"] in parts:
            for name in _names(row):
                groups[row["kind"]][name].append(row["ratio"])
    return {
        kind: {name: _quantiles(r) for name, r in sorted(found.items()) if len(r) >= FEWEST or name == "all"}
        for kind, found in groups.items()
    }


def _names(row: dict) -> tuple[str, str, str]:
    key, size = row["key"], row["size"]
    return f"{key}.{row['gpu']}.{size}", f"{key}.{size}", "all"


def _inside(row: dict, found: dict) -> bool:
    low, high = next(found[name] for name in _names(row) if name in found)
    return low <= row["ratio"] <= high


# -- residuals -----------------------------------------------------------------------------------------------
def summary(rows: list[dict], found: dict | None = None) -> dict[str, float]:
    """A summary of residuals: rows, median absolute error of all rows and of those above twice the floor,
    mean signed error, 10th and 90th percentile of measured over predicted, and how often the band held."""
    ratio = np.array([row["ratio"] for row in rows])
    error = np.abs(1.0 / ratio - 1.0)
    above = error[[row["above"] for row in rows]]
    said = dict(
        rows=len(rows),
        median_error=round(float(np.median(error)), 4),
        above_floor=round(float(np.median(above)), 4) if len(above) else round(float(np.median(error)), 4),
        mean_signed=round(float(np.mean(1.0 / ratio - 1.0)), 4),
        p10=rounded(float(np.quantile(ratio, LOW))),
        p90=rounded(float(np.quantile(ratio, HIGH))),
    )
    if found is not None:
        unseen = [row for row in rows if row["part"] >= BAND]
        if unseen:
            said["coverage"] = round(sum(_inside(row, found) for row in unseen) / len(unseen), 3)
    return said


def _grouped(rows, *names):
    groups: dict = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return dict(sorted(groups.items()))


def residuals(found: FitReport) -> dict:
    """Everything that residuals.toml holds."""
    own = bands(found.judged, "own", range(FIT, BAND))
    said: dict = {"band": own, "band_elsewhere": bands(found.judged, "others", range(10))}
    by_gpu: dict = {}
    by_size: dict = {}
    totals: dict = {}
    held = [row for row in found.judged if row["way"] == "own"]
    for (kind, key, gpu, way), rows in _grouped(found.judged, "kind", "key", "gpu", "way").items():
        by_gpu.setdefault(kind, {}).setdefault(f"{key}.{gpu}", {})[way] = summary(
            rows, own[kind] if way == "own" else None
        )
    for (kind, key, size), rows in _grouped(held, "kind", "key", "size").items():
        by_size.setdefault(kind, {})[f"{key}.{size}"] = summary(rows, own[kind])
    for (kind,), rows in _grouped(held, "kind").items():
        totals[kind] = summary(rows, own[kind])
    by_axis: dict = {}
    for (kind, axis, word), ratio in found.by_axis.items():
        error = 1.0 / np.array(ratio) - 1.0
        by_axis.setdefault(kind, {})[f"{axis} {word}"] = dict(
            rows=len(ratio),
            median_error=round(float(np.median(np.abs(error))), 4),
            median_signed=round(float(np.median(error)), 4),
        )
    totals = {"held_out": totals}
    return said | {"total": totals, "by_size": by_size, "by_gpu": by_gpu, "by_axis": by_axis}


# -- what is written -----------------------------------------------------------------------------------------
HEAD = """\
Written by `make calibrate MEASUREMENTS=folder`, not by hand. README.md beside it says what each of it is."""


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{100.0 * share:.1f}"


def table(said: dict) -> str:
    """The table of residuals for README.md, by key and GPU."""
    lines = [
        "| kind | key | GPU | held out | median error, % | above floor, % | mean, % | band covers, % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, entries in said["by_gpu"].items():
        for name, ways in entries.items():
            s = ways["own"]
            gpu = name.split(".")[-1]
            key = name[: -len(gpu) - 1]
            covers = percent(s["coverage"]) if "coverage" in s else ""
            lines.append(
                f"| {kind} | {key} | {gpu} | {s['rows']} | {percent(s['median_error'])} | "
                f"{percent(s['above_floor'])} | {100.0 * s['mean_signed']:+.1f} | {covers} |"
            )
    return "\n".join(lines)


def table_elsewhere(said: dict) -> str:
    """The table of residuals with each GPU left out of the fit: its rows are predicted by the medians of the
    other GPUs, or by a sibling's constants."""
    lines = [
        "| kind | key | GPU | predicted by | rows | median error, % | mean, % |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, entries in said["by_gpu"].items():
        for name, ways in entries.items():
            gpu = name.split(".")[-1]
            for way, s in ways.items():
                if way.startswith("own"):
                    continue
                lines.append(
                    f"| {kind} | {name[: -len(gpu) - 1]} | {gpu} | {way} | {s['rows']} | "
                    f"{percent(s['median_error'])} | {100.0 * s['mean_signed']:+.1f} |"
                )
    return "\n".join(lines)


def table_sizes(said: dict) -> str:
    """The residuals by size, over all GPUs."""
    lines = [
        "| kind | key, size | rows | median error, % | 10 % … 90 % of measured / predicted |",
        "|---|---|---|---|---|",
    ]
    for kind, entries in said["by_size"].items():
        for name, s in entries.items():
            lines.append(
                f"| {kind} | {name.replace('.', ', ')} | {s['rows']} | {percent(s['median_error'])} | "
                f"{s['p10']:.2f} … {s['p90']:.2f} |"
            )
    return "\n".join(lines)


def table_axes(said: dict) -> str:
    """The residuals along the other properties of a row, over all GPUs and keys."""
    lines = ["| kind | axis | rows | median error, % | median signed, % |", "|---|---|---|---|---|"]
    for kind, entries in said["by_axis"].items():
        for name in sorted(entries):
            s = entries[name]
            signed = f"{100.0 * s['median_signed']:+.1f}"
            lines.append(f"| {kind} | {name} | {s['rows']} | {percent(s['median_error'])} | {signed} |")
    return "\n".join(lines)


def written(place: Path, marks: dict[str, str]) -> None:
    """Replace the text between each name's marks in README.md."""
    readme = place / "README.md"
    if not readme.is_file():
        return
    text = readme.read_text(encoding="utf-8")
    for name, inside in marks.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin, 1)
        text = before + begin + "\n" + inside + "\n" + end + rest.split(end, 1)[1]
    readme.write_text(text, encoding="utf-8")


def write(found: FitReport, place: Path) -> dict:
    """Write fitted.toml, residuals.toml and the tables of README.md."""
    said = residuals(found)
    fitted = {"sources": SOURCES, "constants": found.constants, "ranges": found.ranges}
    (place / "fitted.toml").write_text(toml(fitted, HEAD), encoding="utf-8")
    (place / "residuals.toml").write_text(toml(said, HEAD), encoding="utf-8")
    written(
        place,
        {
            "by GPU": table(said),
            "by size": table_sizes(said),
            "elsewhere": table_elsewhere(said),
            "by axis": table_axes(said),
        },
    )
    return said
