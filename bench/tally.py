"""Figures against what is allowed, and tables as they stand in RESULTS.md."""

from __future__ import annotations

MISSED: list[str] = []


def against(what: str, value: float, most: float, unit: str, digits: int = 1) -> str:
    """The figure as text; one over its budget is set in bold and remembered for the list at the end."""
    text = f"{value:.{digits}f}"
    if value <= most:
        return text
    MISSED.append(f"{what}: {text} {unit} (allowed {most:g})")
    return f"**{text}**"


def table(title: str, columns: list[str], rows: list[list]) -> None:
    """The first column is a name, the others are figures."""
    print(f"\n### {title}\n\n| {' | '.join(columns)} |\n|---|{'--:|' * (len(columns) - 1)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def missed() -> None:
    print(f"\n### Over budget: {len(MISSED)}\n")
    print("\n".join(f"- {line}" for line in MISSED) or "Nothing.")
