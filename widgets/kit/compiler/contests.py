"""The contests of a sweep as lines of its loops: which combination costs least, in each row or group."""

from __future__ import annotations

from typing import Any

from engine.base.sweep import Grouped, Least


class InRows:
    """Writes the lines of a contest that is held in each row."""

    kind: Any = Least

    def __init__(self, name: str, values: list[str], groups: int) -> None:
        self.name, self.values, self.groups = name, values, groups

    def outputs(self) -> list[str]:
        """The names of the contest's columns."""
        return [f"{self.name}_{what}" for what in self.kind._fields]

    def columns(self) -> str:
        """The lines before the first row, which make the columns of results."""
        return "".join(f"const {output}=own(found,'{output}',rows).fill(NaN);" for output in self.outputs())

    def before_row(self) -> str:
        """The line before the combinations of a row."""
        return f"let {self.name}_low=Infinity,{self.name}_at=-1,{self.name}_n=0;"

    def entered(self) -> str:
        """The lines by which a combination takes part."""
        (cost, part), c = self.values, self.name
        return (
            f"if({part}){{{c}_n++;"
            f"if({cost}<{c}_low||({cost}==={c}_low&&cell<{c}_at)){{{c}_low={cost};{c}_at=cell;}}}}"
        )

    def after_row(self) -> str:
        """The line after the combinations of a row, which records the best."""
        c = self.name
        return f"if({c}_at>=0){{{c}_cost[i0]={c}_low;{c}_cell[i0]={c}_at;}}{c}_count[i0]={c}_n;"


class InGroups(InRows):
    """Writes the lines of a contest that is held in groups, which cut across the rows."""

    kind = Grouped

    def columns(self) -> str:
        """The lines before the first row, which make the columns of results."""
        *best, count = self.outputs()
        filled = [f"const {output}=own(found,'{output}',{self.groups}).fill(NaN);" for output in best]
        return "".join([*filled, f"const {count}=own(found,'{count}',{self.groups}).fill(0);"])

    def before_row(self) -> str:
        """Nothing: the best of a group is kept from row to row."""
        return ""

    def entered(self) -> str:
        """The lines by which a combination takes part in its group."""
        (cost, part, group), c = self.values, self.name
        first = f"({cost}==={c}_cost[g]&&{c}_row[g]===i0&&cell<{c}_cell[g])"
        return (
            f"if({part}){{const g={group};{c}_count[g]++;"
            f"if(!({cost}>={c}_cost[g])||{first}){{{c}_cost[g]={cost};{c}_row[g]=i0;{c}_cell[g]=cell;}}}}"
        )

    def after_row(self) -> str:
        """Nothing: the columns are up to date after each combination."""
        return ""
