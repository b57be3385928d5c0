"""How a cost grows: the exponent of a power law through measured points."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["exponent"]


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The ``b`` of ``cost = a * size ** b`` that fits best (least squares of the logarithms).

    1 is linear; 0 is a cost that doesn't depend on the size. Raises ValueError for fewer than two sizes, or for
    numbers that are not positive.
    """
    if len(set(sizes)) < 2 or len(sizes) != len(costs):
        raise ValueError("an exponent needs a cost for each of at least two sizes")
    xs = [math.log(size) for size in sizes]
    ys = [math.log(cost) for cost in costs]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
