"""Makes the web fonts in site/theme/assets/fonts. Needs the `fonts` extra; run it only to change the fonts'
contents.

    python -m course.fonts --serif FOLDER     FOLDER: the `files` folder of the npm package
    @fontsource/source-serif-4
    python -m course.fonts --sans FOLDER      FOLDER: the `TTF` folder of Adobe's npm package source-sans
    python -m course.fonts --mono FOLDER      FOLDER: the `files` folder of the npm package
    @fontsource/inconsolata
    python -m course.fonts --math             from the ziamath package

All families are under the SIL Open Font License 1.1, whose text is beside the fonts. Adobe reserves the name
"Source" for unmodified files, so our subsets have other names.
"""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fontTools.ttLib import TTFont  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).resolve().parents[1]
FONTS = ROOT / "site" / "theme" / "assets" / "fonts"
WIDTHS = ROOT / "widgets" / "kit" / "drawing" / "widths.json"  # of each letter, for code that measures texts
SERIF_NAME = "Course Serif"
SERIF_STYLES = {
    "400-normal": "course-serif.woff2",
    "400-italic": "course-serif-italic.woff2",
    "600-normal": "course-serif-semibold.woff2",
}
SANS_NAME = "Course Sans"
SANS_STYLES = {"Regular": "course-sans.woff2", "Semibold": "course-sans-semibold.woff2"}
WEIGHTS = {"Regular": "regular", "Semibold": "bold"}  # what widths.json calls them
# Source Sans is drawn small on its em square: its x-height is 0.486 em, Arial's 0.519. With a smaller square
# it is as large as the system's sans that a browser falls back to, and still a little narrower.
SANS_SQUARE = 936
MONO_NAME = "Course Mono"  # for code in pictures, whose columns must be equally wide on every machine
MONO_STYLES = {"400-normal": "course-mono.woff2"}
MONO_SQUARE = 930  # Inconsolata is narrow, so that two listings fit side by side, and small

ASCII = set(range(0x20, 0x7F))
PUNCTUATION = {ord(c) for c in " §°±²³µ·×–—‘’“”…−≈≤≥→"}
GREEK = set(range(0x391, 0x3CA))
LATIN_1 = set(range(0xA0, 0x100))
SIGNS = {ord(c) for c in "ˣᵀᵏᵗⁿ–—‘’“”…′″⁰⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄ℓ←↑→↓↔−√∞∂∑∏∆≈≠≤≥■□▲▼●○✓✗\u2009\u202f"}
SANS = (ASCII | LATIN_1 | GREEK | SIGNS) - {0x3A2}  # which is no letter
MONO = ASCII | PUNCTUATION
MATH_ITALIC = set(range(0x1D434, 0x1D468)) | {
    0x210E
}  # a one-letter <mi> is drawn from here; h has a place of its own
MATH_ITALIC_GREEK = set(range(0x1D6E2, 0x1D71C))
OPERATORS = {
    ord(c) for c in "∂∆∇∏∑−∓∗∘√∝∞∫∈∉∀∃∅∪∩⊂⊆≠≡≈∼≤≥≪≫⋅⋯…⋮⋱→←↔⇒⇐⇔↦⟨⟩⌈⌉⌊⌋∥∣⊙⊕⊗′″ℓℝ‖¯ˆ˜̂̄⏞⏟⎵×÷±·¬∧∨≲≳⟶⟹⟺⊤⧵µ"
}
MATH = ASCII | GREEK | MATH_ITALIC | MATH_ITALIC_GREEK | OPERATORS
# What an index or an exponent is made of: these have a stronger shape for small sizes. With two of them for
# every sign the font is half as large again.
SMALL = (ASCII | MATH_ITALIC) - {ord(c) for c in '"#$&:;<>?@\\^_`~%'}


def shrink(font: TTFont, characters: set[int], features: list[str], target: Path) -> None:
    """Write the subset of the font for these characters, as woff2."""
    from fontTools import subset  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    options = subset.Options(
        flavor="woff2",
        hinting=False,
        desubroutinize=True,
        layout_features=features,
        name_IDs=["*"],
        notdef_outline=True,
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(target)
    print(f"{target.name}: {target.stat().st_size / 1000:.1f} kB")


def spare_shapes(font: TTFont, characters: set[int]) -> None:
    """Keep shapes for small sizes only of these characters, and only the first of each."""
    names = font.getBestCmap()
    kept, table = {names[code] for code in characters if code in names}, font["GSUB"].table
    features = [each.Feature for each in table.FeatureList.FeatureRecord if each.FeatureTag == "ssty"]
    for at in {index for feature in features for index in feature.LookupListIndex}:
        for part in table.LookupList.Lookup[at].SubTable:
            part = getattr(part, "ExtSubTable", part)
            part.alternates = {name: by[:1] for name, by in part.alternates.items() if name in kept}


def rename(font: TTFont, name: str) -> None:
    """Rename the family; copyright and licence entries stay."""
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16, 21):
            record.string = name.replace(" ", "") if record.nameID == 6 else name


def widths(font: TTFont) -> dict[str, float]:
    """The width of each letter, in multiples of the size."""
    square, advances = font["head"].unitsPerEm, font["hmtx"].metrics
    return {
        chr(code): round(advances[name][0] / square, 4) for code, name in sorted(font.getBestCmap().items())
    }


def main() -> None:
    """Write the fonts, and the widths of their letters."""
    # imported here, because only this command needs the extra `fonts`; tests only read the lists of letters
    from fontTools.ttLib import TTFont  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for family in ("serif", "sans", "mono"):
        parser.add_argument(f"--{family}", type=Path, metavar="FOLDER")
    parser.add_argument("--math", action="store_true")
    given = parser.parse_args()

    if given.math:
        math = TTFont(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")
        spare_shapes(math, SMALL)
        shrink(math, MATH, ["ssty", "math", "dtls", "flac"], FONTS / "stix-two-math.woff2")
    for style, target in SERIF_STYLES.items() if given.serif else ():
        font = TTFont(given.serif / f"source-serif-4-latin-{style}.woff2")
        rename(font, SERIF_NAME)
        shrink(font, ASCII | PUNCTUATION, ["kern", "liga", "tnum", "pnum"], FONTS / target)
    measured = {}
    for style, target in SANS_STYLES.items() if given.sans else ():
        font = TTFont(given.sans / f"SourceSans3-{style}.ttf")
        font["head"].unitsPerEm = SANS_SQUARE
        rename(font, SANS_NAME)
        shrink(font, SANS, ["kern", "mark", "tnum", "pnum"], FONTS / target)
        measured[WEIGHTS[style]] = widths(font)
    if given.sans:
        WIDTHS.write_text(json.dumps(measured, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    for style, target in MONO_STYLES.items() if given.mono else ():
        font = TTFont(given.mono / f"inconsolata-latin-{style}.woff2")
        font["head"].unitsPerEm = MONO_SQUARE
        rename(font, MONO_NAME)
        shrink(font, MONO, [], FONTS / target)


if __name__ == "__main__":
    main()
