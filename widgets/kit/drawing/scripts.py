"""The scripts of a lesson's page that lie beside the Python modules to which they belong; and, as one text,
the part that a component's picture needs."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from engine.base import units
from widgets.kit.drawing import tokens

KIT = Path(__file__).parents[1]
# each imports only from those before it
NAMES = ("compiler/numbers.js", "drawing/layout.js", "drawing/theme.js")
SCRIPTS = {Path(name).name: KIT / name for name in NAMES}  # under assets/widget/ by these names


def constants(tables: dict) -> str:
    """The values that scripts read from Python, as a module of constants."""
    return "".join(
        f"export const {name} = {json.dumps(table, ensure_ascii=False)};\n" for name, table in tables.items()
    )


@cache
def together(*more: Path) -> str:
    """All scripts and the given constants as the body of a function: without the imports and exports of
    modules."""
    shared = constants({**units.tables(), "TOKENS": tokens.of_both_themes()})
    texts = [shared, *(path.read_text(encoding="utf-8") for path in (*SCRIPTS.values(), *more))]
    return re.sub(r"^(?:import [^;]*;|export )", "", "".join(texts), flags=re.MULTILINE)
