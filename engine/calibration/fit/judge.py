"""Fitting on one part of the rows and judging on the others.

Rows are split by a hash of their shape, so that a shape is held out on every system at once: six tenths are
used to fit, two tenths to set the band, two tenths to check how often the band holds. A second check leaves
out a whole GPU and predicts it from its data sheet and the medians of the others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np

from engine.calibration import known
from engine.calibration.fit import tables
from engine.calibration.fit.kinds import KINDS, Kind, classes
from engine.calibration.fit.solver import fit
from engine.calibration.fit.tables import Rows

FIT, BAND = 6, 8  # tenths: below 6 fit, below 8 set the band, the rest check it
ROWS_A_CONSTANT = 2  # minimum for a fit
LOW, HIGH = 0.1, 0.9
NEAREST = {"gb300": "gb200", "gb200": "b200", "b200": "gb200"}  # which sibling predicts a chip


def tenths(rows: Rows, shape: tuple[str, ...]) -> np.ndarray:
    """A number from 0 to 9 for each row, determined by its shape alone."""
    columns = [rows[name] for name in shape]
    texts = (" ".join(v if isinstance(v, str) else f"{v:g}" for v in cells) for cells in zip(*columns))
    return np.array([crc32(text.encode()) % 10 for text in texts])


@dataclass
class FitReport:
    """Everything that one run of the fit finds."""

    constants: dict[str, dict[str, dict[str, dict[str, float]]]] = field(default_factory=dict)
    ranges: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    judged: list[dict] = field(default_factory=list)  # residuals of held-out rows, one entry per row
    by_axis: dict[tuple[str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))


def of_kind(kind: Kind, rows: Rows, found: FitReport) -> None:
    """Fits one kind on each GPU and adds what it finds."""
    rows = rows.where(kind.keep(rows))
    keys, part, sizes = kind.keys(rows), tenths(rows, kind.shape), classes(kind, rows)
    gpus = np.array([known.SYSTEMS[name]["gpu"] for name in rows["system"]], dtype=object)
    first = rows["framework"] != "sglang" if kind.table == "gemm.csv" else np.ones(len(rows), bool)
    constants: dict = defaultdict(dict)
    for key in sorted(set(keys)):
        for gpu in sorted(set(gpus)):
            mask = (keys == key) & (gpus == gpu) & (part < FIT) & first
            if mask.sum() < ROWS_A_CONSTANT * len(kind.starts):
                continue
            some, sheet = rows.where(mask), known.sheet(gpu)
            measured = kind.time(some)

            def predicted(c, some=some, sheet=sheet, key=key):
                return kind.predict(some, known.BUILDERS[kind.name](c, sheet, key), sheet)

            starts = kind.starts | kind.extra(key)
            absent = _absent(kind, some)
            starts = {name: start for name, start in starts.items() if name not in absent}
            best = fit(lambda c, f=predicted: f(_filled(c)), measured, starts, kind.also_from)
            constants[key][gpu] = _filled(best)
        if key in constants:
            seen = rows.where((keys == key) & first)
            found.ranges.setdefault(kind.name, {})[key] = {
                kind.renamed.get(name, name): [float(seen[name].min()), float(seen[name].max())]
                for name in kind.ranges
            }
    found.constants[kind.name] = dict(constants)
    _judge(kind, rows, keys, gpus, part, sizes, first, found)


WIDTHS = (64, 128, 256, 512)  # head dimensions that a prefill has a rate for


def _absent(kind: Kind, rows: Rows) -> set[str]:
    """The constants that no row can determine: eight ranks in a box of four GPUs, and rates of heads narrower
    or wider than were measured."""
    if kind.name == "collective" and rows["ranks"].max() < 8:
        return {f"{what}_8" for what in ("reduce", "gather", "direct")}
    if kind.name == "prefill":
        low, high = rows["head_dim"].min(), rows["head_dim"].max()
        return {f"share_{w}" for w in WIDTHS if 2 * w <= low or w >= 2 * high}
    return set()


def _filled(c: dict[str, float]) -> dict[str, float]:
    """The constants with missing ones filled in: eight ranks get the rates of four, a width those of the
    nearest."""
    held = {name[:-1] + "8": value for name, value in c.items() if name.endswith("_4")}
    widths = [w for w in WIDTHS if f"share_{w}" in c]
    if widths:
        nearest = {w: min(widths, key=lambda v: abs(np.log(v / w))) for w in WIDTHS}
        held |= {f"share_{w}": c[f"share_{v}"] for w, v in nearest.items()}
    return held | c


def _judge(kind, rows, keys, gpus, part, sizes, first, found: FitReport) -> None:
    """Residuals of the held-out rows, predicted by the GPU's own constants and by others'."""
    for key, chips in found.constants[kind.name].items():
        for gpu in chips:
            sheet = known.sheet(gpu)
            others = [c for g, c in chips.items() if g != gpu]
            ways = {"own": (chips[gpu], part >= FIT)}
            if others and kind.name != "send":
                ways["others"] = (known.medians(others), np.ones(len(rows), bool))
            sibling = NEAREST.get(gpu)
            if sibling in chips:
                ways[f"as {sibling}"] = (chips[sibling], np.ones(len(rows), bool))
            for way, (used, allowed) in ways.items():
                mask = (keys == key) & (gpus == gpu) & allowed
                if not mask.any():
                    continue
                some = rows.where(mask)
                rates = known.BUILDERS[kind.name](used, sheet, key)
                ratio = kind.time(some) / kind.predict(some, rates, sheet)
                if way == "own":
                    for axis, words in kind.axes.items():
                        for word, r in zip(words(some), ratio):
                            found.by_axis[kind.name, axis, word].append(float(r))
                floor = getattr(rates, "launch_s", getattr(rates, "start_s", 0.0))
                for r, s, p, measured, own in zip(
                    ratio, sizes[mask], part[mask], kind.time(some), first[mask]
                ):
                    found.judged.append(
                        dict(kind=kind.name, key=key, gpu=gpu, way=way if own else f"{way}, second library",
                             size=s, part=int(p), ratio=float(r), above=bool(measured > 2.0 * floor))
                    )  # fmt: skip


def all_kinds(folder: Path) -> FitReport:
    """Every kind, on the tables of one folder."""
    found, read = FitReport(), {}
    for kind in KINDS:
        if kind.table not in read:
            read[kind.table] = tables.read(folder, kind.table)
        of_kind(kind, read[kind.table], found)
    return found
