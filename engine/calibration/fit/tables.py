"""The tables that constants are fitted on: what each column may hold, and the error for anything else."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.calibration.known import SYSTEMS


@dataclass(frozen=True)
class Column:
    """What one column may hold: a number above a bound, or one of several words."""

    words: tuple[str, ...] | None = None  # the allowed words, if the column is text; empty: any word
    at_least: float = 0.0
    above: bool = True  # the bound itself is excluded
    may_be_empty: bool = False

    def allowed(self) -> str:
        """What is allowed, in words."""
        if self.words is not None:
            return f"one of {', '.join(self.words)}" if self.words else "a word"
        bound = f"a number {'above' if self.above else 'of at least'} {self.at_least:g}"
        return bound + (" or empty" if self.may_be_empty else "")

    def read(self, text: str) -> str | float:
        """The value of a cell; ValueError where it is not allowed."""
        if self.words is not None:
            if (self.words and text not in self.words) or (not self.words and not text):
                raise ValueError
            return text
        if not text and self.may_be_empty:
            return np.nan
        value = float(text)
        if not np.isfinite(value) or value < self.at_least or (self.above and value == self.at_least):
            raise ValueError
        return value


SYSTEM = Column(tuple(SYSTEMS))
ANY = Column(())
ABOVE = Column()
FROM_ZERO = Column(above=False)
EMPTY = Column(above=False, may_be_empty=True)
KV = Column(("bf16", "fp8"))
FLAG = Column(("0", "1"))

TABLES: dict[str, dict[str, Column]] = {
    "gemm.csv": dict(
        system=SYSTEM, framework=Column(("trtllm", "sglang")),
        dtype=Column(("bf16", "fp8", "fp8_block", "nvfp4")), m=ABOVE, n=ABOVE, k=ABOVE,
        time_s=ABOVE, amax_s=EMPTY, cast_s=EMPTY,
    ),
    "attention_prefill.csv": dict(
        system=SYSTEM, kernel=ANY, heads=ABOVE, kv_heads=ABOVE, head_dim=ABOVE, window_tokens=FROM_ZERO,
        batch=ABOVE, tokens=ABOVE, kv_dtype=KV, time_s=ABOVE,
    ),
    "attention_decode.csv": dict(
        system=SYSTEM, kernel=ANY, heads=ABOVE, kv_heads=ABOVE, head_dim=ABOVE, window_tokens=FROM_ZERO,
        batch=ABOVE, kv_tokens=ABOVE, kv_dtype=KV, time_s=ABOVE,
    ),
    "mla.csv": dict(
        system=SYSTEM, phase=Column(("prefill", "decode")), heads=ABOVE, batch=ABOVE, tokens=ABOVE,
        kv_dtype=KV, time_s=ABOVE,
    ),
    "experts.csv": dict(
        system=SYSTEM, dtype=ANY, kernel=ANY, gated=FLAG, tokens=ABOVE, hidden=ABOVE, ffn=ABOVE,
        experts=ABOVE, tp=ABOVE, ep=ABOVE, routing=ANY, local_rows=ABOVE, touched_experts=ABOVE, time_s=ABOVE,
    ),
    "collectives.csv": dict(
        system=SYSTEM, source=ANY, op=Column(("all_reduce", "all_gather", "reduce_scatter", "all_to_all")),
        ranks=Column(at_least=2.0, above=False), nodes=ABOVE, bytes=ABOVE, time_s=ABOVE, main=FLAG,
    ),
    "custom_allreduce.csv": dict(
        system=SYSTEM, framework=ANY, graph=FLAG, ranks=Column(at_least=2.0, above=False), bytes=ABOVE,
        time_s=ABOVE,
    ),
    "deepep.csv": dict(
        system=SYSTEM, library=ANY, mode=ANY, ranks=Column(at_least=2.0, above=False), nodes=ABOVE,
        tokens_per_rank=ABOVE, hidden=ABOVE, top_k=ABOVE, experts=ABOVE, sms=EMPTY, dispatch_s=EMPTY,
        combine_s=EMPTY, dispatch_dtype=ANY,
    ),
    "p2p.csv": dict(system=ANY, nodes=ABOVE, bytes=ABOVE, time_s=ABOVE),
}  # fmt: skip


class Rows:
    """A table by columns: numbers as arrays of floats, words as arrays of objects."""

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def where(self, mask: np.ndarray) -> Rows:
        """The rows that a mask keeps."""
        return Rows({name: values[mask] for name, values in self.columns.items()})


def read(folder: Path, name: str) -> Rows:
    """One table of a folder. A bad value is a ValueError with file, line and what is allowed."""
    path, columns = Path(folder) / name, TABLES[name]
    if not path.is_file():
        raise ValueError(
            f"{path}: the folder of measurements must hold {', '.join(TABLES)}; this one is missing"
        )
    found: dict[str, list] = {column: [] for column in columns}
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise ValueError(
                f"{path}:1: the header must name {', '.join(columns)}; {', '.join(missing)} is missing"
            )
        places = {column: header.index(column) for column in columns}
        for cells in lines:
            if len(cells) != len(header):
                raise ValueError(
                    f"{path}:{lines.line_num}: a row must have {len(header)} cells; got {len(cells)}"
                )
            for column, rule in columns.items():
                text = cells[places[column]]
                try:
                    found[column].append(rule.read(text))
                except ValueError:
                    raise ValueError(
                        f"{path}:{lines.line_num}: {column} must be {rule.allowed()}; got {text!r}"
                    ) from None
    if not found["system"]:
        raise ValueError(f"{path}:2: a table must have at least one row")
    return Rows(
        {
            name: np.array(values, dtype=object if columns[name].words is not None else float)
            for name, values in found.items()
        }
    )
