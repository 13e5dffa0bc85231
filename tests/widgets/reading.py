"""What a widget shows once some of its controls are set, given as the texts of a link: moe_routing's
``skew="1.5"``."""

from __future__ import annotations


class Reader:
    """Reads one widget, each time from its default state."""

    def __init__(self, cls):
        self.cls = cls

    def widget(self, **texts):
        made = self.cls()
        made.set_state(texts)
        return made

    def shown(self, **texts) -> dict:
        return self.widget(**texts).shown()

    def part(self, name: str, **texts) -> dict:
        """The columns of one data source."""
        return self.shown(**texts)["parts"][name]

    def met(self, **texts) -> set[str]:
        """The regimes that are met."""
        return {name for name, regime in self.shown(**texts)["regimes"].items() if regime["met"]}

    def readouts(self, **texts) -> dict[str, str]:
        return {name: readout["text"] for name, readout in self.shown(**texts)["readouts"].items()}

    def text(self, name: str, **texts) -> str:
        """One readout's words."""
        return self.readouts(**texts)[name]
