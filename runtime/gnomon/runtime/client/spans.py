"""Spans: named blocks that group the tasks submitted in them, for reports; they nest.

Contents: span, current_span.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

__all__ = ["current_span", "span"]

_current: ContextVar[tuple[str, ...]] = ContextVar("gnomon_span", default=())


def current_span() -> tuple[str, ...]:
    """The names of the enclosing blocks, outermost first."""
    return _current.get()


class span:  # noqa: N801 - reads as a call in a with statement
    """``with span("load", "2026"): ...``: tasks submitted in the block are grouped by these names, one inside another.

    Holds for the thread or coroutine that is in the block. A span may be used again, but not while it is in use.
    """

    __slots__ = ("_token", "names")

    def __init__(self, *names: str) -> None:
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ValueError("a span needs names")
        self.names = names
        self._token: Token[tuple[str, ...]] | None = None

    def __enter__(self) -> span:
        self._token = _current.set(_current.get() + self.names)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None
