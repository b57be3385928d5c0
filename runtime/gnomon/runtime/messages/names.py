"""What a task's name says about its kind: the group and the prefix that tasks alike share.

``("read-parquet-5f1c0e2a", 3)`` belongs to the group ``read-parquet-5f1c0e2a`` and to the prefix ``read-parquet``;
``inc-0a1b2c3d`` to the prefix ``inc``, which is its group as well: a group per submitted task would tell nothing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["group_name", "prefix_name"]

_HEX = frozenset("0123456789abcdef")


def group_name(key: Any) -> str:
    """The name that tasks of one collection share."""
    if type(key) is tuple and key and type(key[0]) is str:
        name: str = key[0]
        return name
    if type(key) is str:
        return prefix_name(key)
    return type(key).__name__


def prefix_name(name: str) -> str:
    """The words of a name before the first that looks like a token or a number."""
    words = name.split("-")
    result = words[0]
    if len(words) == 1 and len(name) == 32 and _HEX.issuperset(name):
        return "data"
    for word in words[1:]:
        if not word.isalpha() or (len(word) == 8 and _HEX.issuperset(word)):
            break
        result = f"{result}-{word}"
    return result
