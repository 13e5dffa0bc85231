"""Make the web fonts in site/theme/assets/fonts. Needs the `fonts` extra; run it only to change what the fonts hold.

    python site/fonts.py --serif FOLDER     FOLDER: the `files` folder of the npm package @fontsource/source-serif-4

The math font comes from the ziamath package. Both families are under the SIL Open Font License 1.1, whose text is
beside the fonts. Source Serif reserves the name "Source" for unmodified files, so our subset carries its own.
"""

import argparse
from importlib.resources import files
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FONTS = Path(__file__).parent / "theme" / "assets" / "fonts"
SERIF_NAME = "Course Serif"
SERIF_STYLES = {"400-normal": "course-serif.woff2", "400-italic": "course-serif-italic.woff2",
                "600-normal": "course-serif-semibold.woff2"}

ASCII = set(range(0x20, 0x7F))
PUNCTUATION = {ord(c) for c in " §°±²³µ·×–—‘’“”…−≈≤≥→"}
GREEK = set(range(0x391, 0x3CA))
MATH_ITALIC = set(range(0x1D434, 0x1D468)) | {0x210E}  # a one-letter <mi> is drawn from here; h has a place of its own
MATH_ITALIC_GREEK = set(range(0x1D6E2, 0x1D71C))
OPERATORS = {ord(c) for c in "∂∆∇∏∑−∓∗∘√∝∞∫∈∉∀∃∅∪∩⊂⊆≠≡≈∼≤≥≪≫⋅⋯…⋮⋱→←↔⇒⇐⇔↦⟨⟩⌈⌉⌊⌋∥∣⊙⊕⊗′″ℓℝ‖¯ˆ˜̂̄⏞⏟⎵×÷±·¬∧∨≲≳"}
MATH = ASCII | GREEK | MATH_ITALIC | MATH_ITALIC_GREEK | OPERATORS


def shrink(font: TTFont, characters: set[int], features: list[str], target: Path) -> None:
    """Write the part of the font that draws these characters, as woff2."""
    options = subset.Options(flavor="woff2", hinting=False, desubroutinize=True, layout_features=features,
                             name_IDs=["*"], notdef_outline=True)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(target)
    print(f"{target.name}: {target.stat().st_size / 1000:.1f} kB")


def rename(font: TTFont, name: str) -> None:
    """Give the family a name of its own; copyright and licence entries stay."""
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16, 21):
            record.string = name.replace(" ", "") if record.nameID == 6 else name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serif", type=Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().serif

    math = TTFont(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")
    shrink(math, MATH, ["ssty", "math", "dtls", "flac"], FONTS / "stix-two-math.woff2")
    for style, target in SERIF_STYLES.items():
        font = TTFont(folder / f"source-serif-4-latin-{style}.woff2")
        rename(font, SERIF_NAME)
        shrink(font, ASCII | PUNCTUATION, ["kern", "liga", "tnum", "pnum"], FONTS / target)


if __name__ == "__main__":
    main()
