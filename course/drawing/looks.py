"""The looks of marks: one visual grammar for all pictures, using the colours in
widgets/kit/drawing/tokens.json.

A resource has its hue: solid where work is done or bytes are held, pale with an outline for a second kind of
it. Passes of a network are work, so they have the hue of compute: a forward is light, a backward dark, a
weight gradient an outline. Idle time, or what is held elsewhere, is white with a hairline. Text on a mark
uses whichever of the two inks is more legible there. `css()` writes all this as rules that follow the page's
theme.
"""

from __future__ import annotations

from typing import NamedTuple

from widgets.kit.drawing import tokens

THEMES = tuple(tokens.SCHEMES)


class Look(NamedTuple):
    """A fill, given as a share of a token's colour on a ground in each theme; an outline; and whether it is
    dashed."""

    fill: str
    shares: tuple[float, float] = (1.0, 1.0)  # in light and in dark
    ground: str = "paper"
    line: str = "paper"
    dashed: bool = False


RESOURCES = ("compute", "hbm", "link", "network")
LOOKS = {
    "forward": Look("compute"),
    "backward": Look("compute-deep"),
    "forward-2": Look("compute", (0.42, 0.42), line="compute"),
    "backward-2": Look("compute-deep", (0.42, 0.42), line="compute-deep"),
    "weight": Look("paper", line="compute"),
    "idle": Look("paper", line="axis"),
    "other-step": Look("idle", (0.2, 0.25), line="axis"),
    "elsewhere": Look("paper", line="axis", dashed=True),
    "plain": Look("panel", line="ink-faint"),
    "past": Look("over", (0.1, 0.1), line="over"),
    **{name: Look(name) for name in RESOURCES},
    **{f"{name}-pale": Look(name, (0.22, 0.22), line=name) for name in RESOURCES},
}
INKS = ("ink", "ink-soft", "ink-faint", "over")  # of texts on the page
LINES = (*INKS, *RESOURCES, "axis")


def hex_of(channels: tuple[float, ...]) -> str:
    """A colour in hex, from its channels."""
    return "#" + "".join(f"{round(channel):02X}" for channel in channels)


def channels(colour: str) -> tuple[int, ...]:
    """Red, green and blue of a colour in hex, from 0 to 255."""
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def luminance(colour: str) -> float:
    """Relative luminance as defined in WCAG 2."""
    parts = [value / 255 for value in channels(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def fill(name: str, theme: str) -> str:
    """The colour of a look's fill."""
    look, palette = LOOKS[name], tokens.palette(theme)
    share = look.shares[THEMES.index(theme)]
    pairs = zip(channels(palette[look.fill]), channels(palette[look.ground]), strict=True)
    return hex_of(tuple(share * top + (1 - share) * under for top, under in pairs))


def line(name: str, theme: str) -> str:
    """The colour of a look's outline."""
    return tokens.palette(theme)[LOOKS[name].line]


def ink(name: str, theme: str) -> str:
    """The colour of a text: the ink of that name, or the one of the two extremes that is legible on a
    look."""
    if name not in LOOKS:
        return tokens.palette(theme)[name]
    extremes = [tokens.palette(each)[token] for each in THEMES for token in ("ink", "paper")]
    return max(extremes, key=lambda colour: contrast(colour, fill(name, theme)))


def css() -> str:
    """The rules of every look, for both themes; paper is light."""

    def variables(theme: str) -> str:
        return "".join(
            f" --d-{name}: {fill(name, theme)}; --d-{name}-ink: {ink(name, theme)};" for name in LOOKS
        )

    light, dark = (f'[data-md-color-scheme="{scheme}"]' for scheme in tokens.SCHEMES.values())
    rules = [
        f":root, {light} {{{variables('light')} }}",
        f"@media screen {{ {dark} {{{variables('dark')} }} }}",
    ]
    for name, look in LOOKS.items():
        dashes = " stroke-dasharray: 3 3;" if look.dashed else ""
        rules.append(f".diagram .m-{name} {{ fill: var(--d-{name}); stroke: var(--c-{look.line});{dashes} }}")
        rules.append(f".diagram .on-{name} {{ fill: var(--d-{name}-ink); }}")
    rules += [f".diagram .t-{name} {{ fill: var(--c-{name}); }}" for name in INKS]
    rules += [f".diagram .l-{name} {{ stroke: var(--c-{name}); }}" for name in LINES]
    rules += [f".diagram .h-{name} {{ fill: var(--c-{name}); }}" for name in LINES]
    return "\n".join(rules) + "\n"
