"""Values of a grid from what stands on the command line: 0.33,0.335,0.34 or 0.12:0.123:0.001."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from naysay.checks import raise_invalid, shown

_MOST = 100_000
_RULE = "numbers separated by commas, or first:last:step"


def read_grid(option: str, text: str) -> list[float]:
    """The values; a range includes its last value, and its steps are decimal, so 0.12:0.123:0.001 has 0.121 itself.

    Example:
        >>> read_grid("thresholds", "--low-grid", "0.12:0.123:0.001")
        [0.12, 0.121, 0.122, 0.123]
    """
    is_range = ":" in text
    try:
        numbers = [Decimal(part.strip()) for part in text.split(":" if is_range else ",")]
    except InvalidOperation:
        raise_invalid(option, _RULE, shown(text))
    if not all(number.is_finite() for number in numbers) or (is_range and len(numbers) != 3):
        raise_invalid(option, _RULE, shown(text))
    if not is_range:
        return [float(number) for number in numbers]
    first, last, step = numbers
    if step <= 0 or last < first:
        raise_invalid(option, "a range that rises by a step above 0", shown(text))
    if (last - first) / step >= _MOST:
        raise_invalid(option, f"a range of at most {_MOST} values", shown(text))
    return [float(first + place * step) for place in range(int((last - first) / step) + 1)]
