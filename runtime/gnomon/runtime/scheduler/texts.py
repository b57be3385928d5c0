"""Keys and long texts of users as they leave the scheduler: of bounded length, and such that any wire carries them.

Contents: KEY_TEXT, cut, key_text.
"""

from __future__ import annotations

from gnomon.runtime.messages import Key

__all__ = ["KEY_TEXT", "cut", "key_text"]

#: Characters of a key that leave the scheduler.
KEY_TEXT = 512


def key_text(key: Key) -> str:
    """A key for people."""
    return cut(key if isinstance(key, str) else repr(key), KEY_TEXT)


def cut(text: str, length: int) -> str:
    """The text, cut in the middle if it is longer than ``length``; without what UTF-8 can't carry."""
    if len(text) > length:
        half = length // 2
        text = f"{text[:half]}…({len(text) - 2 * half} characters)…{text[-half:]}"
    return text.encode("utf-8", "replace").decode("utf-8")
