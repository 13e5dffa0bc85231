"""What a tensor core does with two numbers: it multiplies narrow ones and adds their exact product to a wide
sum, the accumulator. Each small box is a significant binary digit."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.mechanism import precision

HIGH, BETWEEN = 20.0, 12.0


def digits(number_format: precision.Format) -> int:
    """Significant binary digits of a format: those of its mantissa, and the leading one."""
    return number_format.mantissa_bits + 1


def rows() -> list[tuple[str, int, str]]:
    """Name, digits and look of each number, in the order in which they come about."""
    narrow, wide = digits(precision.BF16), digits(precision.FP32)
    return [
        ("a factor, bf16", narrow, "forward"),
        ("the other factor, bf16", narrow, "forward"),
        ("their product, exact", 2 * narrow, "backward"),
        ("the accumulator, fp32", wide, "hbm"),
        ("the sum, were it bf16", narrow, "past"),
    ]


def draw(width: float) -> Picture:
    narrow, wide = digits(precision.BF16), digits(precision.FP32)
    picture = Picture(
        f"Factors of {narrow} digits, a product of {2 * narrow}, a sum of {wide}.",
        "One below the other the significant digits of two factors, of their product, and of the sum to "
        "which a tensor core adds it; last the sum as it would be in bf16.",
        width,
    )
    left = 170.0 if picture.wide else 0.0
    step, y = (width - left - 30) / wide, 0.0
    for name, count, look in rows():
        if picture.wide:
            picture.text(0, y + HIGH / 2, name)
        else:
            picture.text(0, y + 8, name)
            y += 18
        for place in range(count):
            picture.box(left + place * step, y, step, HIGH, look, digit=place)
        picture.text(left + count * step + 6, y + HIGH / 2, f"{count}", ink="ink-soft")
        picture.tell(f"{name}: {count} significant binary digits")
        y += HIGH + BETWEEN
    return picture
