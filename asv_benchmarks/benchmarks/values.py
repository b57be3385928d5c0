"""The user's objects by family, of about so many bytes: what tasks return and take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["FAMILIES", "value"]


def _bytes(size: int) -> bytes:
    return bytes(size)


def _numpy(size: int) -> Any:
    import numpy as np

    return np.arange(max(1, size // 8), dtype="f8")


def _pandas(size: int) -> Any:
    import numpy as np
    import pandas as pd

    rows = max(1, size // 24)
    kinds = np.array(["north", "south", "east", "west"])[np.arange(rows) % 4]
    return pd.DataFrame({"x": np.arange(rows, dtype="f8"), "y": np.arange(rows), "kind": kinds})


def _nested(size: int) -> list[dict[str, Any]]:
    """Plain objects in plain containers: about 60 bytes pickled each."""
    return [{"name": f"item-{i}", "at": (i, i / 2), "tags": ["a", "b"]} for i in range(max(1, size // 60))]


FAMILIES: dict[str, Callable[[int], Any]] = {"bytes": _bytes, "numpy": _numpy, "pandas": _pandas, "nested": _nested}


def value(family: str, size: int) -> Any:
    """An object of a family with about ``size`` bytes of data."""
    return FAMILIES[family](size)
