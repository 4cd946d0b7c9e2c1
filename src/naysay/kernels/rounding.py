"""Vectors rounded for a fast product, each with a bound on what the rounding took away.

A row x becomes scale * code with the code on a coarse grid. Kept are scale, |x| / scale and |x / scale - code|: what a
bound by Cauchy and Schwarz needs. The two norms are float64 sums in any order, so a user of them widens them a little.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined

LANES = 16


@compiled
def to_int8(start: Any, stop: Any, rows: Any, codes: Any, scales: Any, sizes: Any, errors: Any) -> None:
    """Codes from -127 to 127; the scale is the largest coordinate / 127. A row of zeros has the scale 1."""
    width = rows.shape[1]
    whole = width - width % LANES
    most, lost, kept = np.empty(LANES, np.float64), np.empty(LANES, np.float64), np.empty(LANES, np.float64)
    for row in range(start, stop):
        line, code = rows[row], codes[row]
        most[:] = 0.0
        for base in range(0, whole, LANES):
            for lane in range(LANES):
                value = abs(np.float64(line[base + lane]))
                most[lane] = value if value > most[lane] else most[lane]
        for i in range(whole, width):
            most[i - whole] = max(most[i - whole], abs(np.float64(line[i])))
        top, total, rest = 0.0, 0.0, 0.0
        for lane in range(LANES):  # the methods of arrays would load a part of numba that takes long
            top = max(top, most[lane])
        scale = top / 127.0 if top > 0.0 else 1.0
        back = 1.0 / scale
        lost[:] = 0.0
        kept[:] = 0.0
        for base in range(0, whole, LANES):
            for lane in range(LANES):
                value = np.float64(line[base + lane]) * back
                near = np.rint(value)
                code[base + lane] = np.int8(near)
                lost[lane] += (value - near) * (value - near)
                kept[lane] += value * value
        for i in range(whole, width):
            value = np.float64(line[i]) * back
            near = np.rint(value)
            code[i] = np.int8(near)
            lost[i - whole] += (value - near) * (value - near)
            kept[i - whole] += value * value
        for lane in range(LANES):
            total += kept[lane]
            rest += lost[lane]
        scales[row], sizes[row], errors[row] = scale, np.sqrt(total), np.sqrt(rest)


@inlined
def _unit(line: Any, near: Any) -> Any:
    """The row at norm 1 in `near`, float32; its scale."""
    top = 0.0
    for i in range(len(line)):
        top = max(top, abs(np.float64(line[i])))
    if top == 0.0:
        near[:] = 0.0
        return 1.0
    total = 0.0
    for i in range(len(line)):
        value = np.float64(line[i]) / top
        total += value * value
    scale = top * np.sqrt(total)
    for i in range(len(line)):
        near[i] = np.float64(line[i]) / scale
    return scale


@inlined
def _sizes(line: Any, near: Any, scale: Any) -> Any:
    """|x / scale| and |x / scale - near|."""
    kept, lost = 0.0, 0.0
    for i in range(len(line)):
        value = np.float64(line[i]) / scale
        gap = value - np.float64(near[i])
        kept += value * value
        lost += gap * gap
    return np.sqrt(kept), np.sqrt(lost)


@compiled
def to_float32(start: Any, stop: Any, rows: Any, codes: Any, scales: Any, sizes: Any, errors: Any) -> None:
    """Codes of norm 1 in float32. A row of zeros has the scale 1."""
    for row in range(start, stop):
        scale = _unit(rows[row], codes[row])
        scales[row] = scale
        sizes[row], errors[row] = _sizes(rows[row], codes[row], scale)
