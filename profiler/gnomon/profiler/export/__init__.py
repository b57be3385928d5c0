"""Ways to show or hand on a session, each in a file of its own; here is which file name asks for which.

Nothing here is imported before a format is asked for, so that a program that only samples does not pay for pages.

Contents: Format, FORMATS, format_of, render, write.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

from gnomon.profiler.sessions.session import Session

__all__ = ["FORMATS", "Format", "format_of", "render", "write"]


class Format(NamedTuple):
    """One way to write a session. ``source`` is "module:function"; without one it is the session's own form."""

    name: str
    endings: tuple[str, ...]
    source: str
    says: str


#: All formats by name. Where two endings fit a file, the longer one counts.
FORMATS = {
    row.name: row
    for row in (
        Format("text", (".txt", ".text"), "text:to_text", "call tree as text"),
        Format("html", (".html", ".htm"), "flamegraph:to_html", "flame graph, one file that needs no network"),
        Format("speedscope", (".speedscope.json", ".speedscope"), "speedscope:to_speedscope", "for speedscope.app"),
        Format("collapsed", (".collapsed", ".folded"), "collapsed:to_collapsed", "one stack a line, with its count"),
        Format("pyinstrument-html", (".pyinstrument.html",), "pyinstrument:to_html", "pyinstrument's page"),
        Format("pyinstrument-json", (".pyinstrument.json",), "pyinstrument:to_json", "pyinstrument's JSON tree"),
        Format("pyisession", (".pyisession",), "pyinstrument:to_session_file", "session for `pyinstrument --load`"),
        Format("session", (".profile",), "", "our own form, which can be loaded, merged and compared"),
    )
}


def format_of(path: str | Path) -> str:
    """The name of the format that a file's name asks for; ``ValueError`` if none does."""
    name = Path(path).name.lower()
    fitting = [(len(ending), row.name) for row in FORMATS.values() for ending in row.endings if name.endswith(ending)]
    if not fitting:
        known = ", ".join(ending for row in FORMATS.values() for ending in row.endings)
        raise ValueError(f"no format is known for {Path(path).name!r}; known endings: {known}")
    return max(fitting)[1]


def render(session: Session, name: str) -> str:
    """The session as the text of a format; ``ValueError`` if there is no such format or it is no text."""
    if name not in FORMATS:
        raise ValueError(f"no format {name!r}; there are {', '.join(FORMATS)}")
    module, _, function = FORMATS[name].source.partition(":")
    if not module:
        raise ValueError(f"the format {name!r} is not text; write it to a file")
    found = cast(Callable[[Session], str], getattr(import_module(f"{__name__}.{module}"), function))
    return found(session)


def write(session: Session, path: str | Path, name: str = "") -> None:
    """Write the session to a file, in a format or in that of the file's ending."""
    name = name or format_of(path)
    if name in FORMATS and not FORMATS[name].source:
        session.save(path)
    else:
        Path(path).write_text(render(session, name), "utf-8", "replace")
