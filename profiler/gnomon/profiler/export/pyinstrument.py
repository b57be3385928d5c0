"""Between our sessions and pyinstrument's, for its page, its JSON and its command line; and the way back.

pyinstrument is imported when a function is called, not with this module.

Contents: to_pyinstrument, from_pyinstrument, to_html, to_json, to_session_file.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from typing import TYPE_CHECKING

from gnomon.profiler.export.ordered import by_thread
from gnomon.profiler.sessions.names import module_of, modules_by_file
from gnomon.profiler.sessions.session import MARKER, Bucket, Function, Nodes, Samples, Session, Thread

if TYPE_CHECKING:
    from pyinstrument.session import Session as PyinstrumentSession

__all__ = ["from_pyinstrument", "to_html", "to_json", "to_pyinstrument", "to_session_file"]

#: What pyinstrument puts between the parts of a stack entry, and before its attributes.
_PARTS, _ATTRIBUTES, _LINE = "\x00", "\x01", "l"
_CONTROL = re.compile(r"[\x00-\x1f]")
#: pyinstrument's page holds the names inside a script element, unescaped: what would end or upset that is broken up.
_ENDS_SCRIPT = re.compile(r"<(?=/script|script|!--)", re.IGNORECASE)

#: Steps of time of a session made from pyinstrument's.
_SLICES = 250


def to_pyinstrument(session: Session) -> PyinstrumentSession:
    """The session as one of pyinstrument's: threads one after the other, each in order of time."""
    from pyinstrument.session import Session as Theirs

    entries = [
        _PARTS.join((_clean(function.name), _clean(function.file), str(function.first_line)))
        for function in session.functions
    ]
    stacks: list[list[str]] = []
    for parent, function, line in zip(*session.nodes, strict=True):
        entry = f"{entries[function]}{_ATTRIBUTES}{_LINE}{line}" if line else entries[function]
        stacks.append([*stacks[parent], entry] if parent >= 0 else [entry])
    records: list[tuple[list[str], float]] = []
    for thread, samples in by_thread(session).items():
        row = session.threads[thread]
        top = _PARTS.join((_clean(row.name), "<thread>", str(row.ident)))
        records.extend(([top, *stacks[sample.node]], sample.seconds) for sample in samples)
    interval = float(session.meta.get("interval", 0.0))
    return Theirs(
        frame_records=records,
        start_time=float(session.meta["start"]),
        duration=session.duration,
        min_interval=interval,
        max_interval=interval,
        sample_count=sum(session.samples.count),
        start_call_stack=[""],
        target_description=_clean(str(session.meta.get("process") or "profile")),
        cpu_time=0.0,
        sys_path=list(sys.path),
        sys_prefixes=Theirs.current_sys_prefixes(),
    )


def to_html(session: Session) -> str:
    """pyinstrument's page."""
    from pyinstrument.renderers import HTMLRenderer

    return str(HTMLRenderer().render(to_pyinstrument(session)))


def to_json(session: Session) -> str:
    """pyinstrument's JSON: the session's facts and the tree of frames."""
    from pyinstrument.renderers import JSONRenderer

    return str(JSONRenderer(show_all=True).render(to_pyinstrument(session)))


def to_session_file(session: Session) -> str:
    """What ``pyinstrument --load`` reads."""
    return json.dumps(to_pyinstrument(session).to_json())


def from_pyinstrument(theirs: PyinstrumentSession) -> Session:
    """A pyinstrument session as one of ours, its time cut into 250 slices.

    pyinstrument gives each stack the seconds since the one before; ours count ticks, so seconds are rounded to whole
    intervals, and the rounding errors are carried on, so that they don't add up.
    """
    builder = _Builder()
    spent = sum(seconds for _, seconds in theirs.frame_records)
    tick = theirs.min_interval or 0.001
    in_slice = max(1, round(spent / tick / _SLICES))
    now, exact = 0, 0.0
    for stack, seconds in theirs.frame_records:
        exact += seconds / tick
        thread, node = builder.stack(stack)
        while now < round(exact):
            slice_number = now // in_slice
            stop = min(round(exact), (slice_number + 1) * in_slice)
            builder.add(slice_number, thread, node, stop - now)
            now = stop
    buckets = []
    for number in range(-(-now // in_slice)):
        first, last = number * in_slice, min(now, (number + 1) * in_slice)
        begin = theirs.start_time
        buckets.append(Bucket(begin + first * tick, begin + last * tick, last - first, 0, 0.0, 0.0, 0.0))
    rows = sorted((*key, count) for key, count in builder.counts.items())
    return Session(
        meta={
            "start": theirs.start_time,
            "stop": theirs.start_time + now * tick,
            "interval": theirs.min_interval,
            "samples": now,
            "ticks": now,
            "missed": 0,
            "cpu": 0.0,
            "pid": 0,
            "process": theirs.target_description,
            "python": platform.python_version(),
        },
        functions=tuple(builder.functions),
        nodes=Nodes(tuple(builder.parent), tuple(builder.function), tuple(builder.line)),
        buckets=tuple(buckets),
        threads=tuple(builder.threads),
        labels=("",),
        samples=Samples(*(tuple(column) for column in zip(*rows, strict=True)))
        if rows
        else Samples((), (), (), (), ()),
    )


class _Builder:
    """Numbers the threads, functions and nodes of stacks, and counts ticks."""

    def __init__(self) -> None:
        self.threads: dict[Thread, int] = {}
        self.functions: dict[Function, int] = {}
        self.parent: list[int] = []
        self.function: list[int] = []
        self.line: list[int] = []
        self.counts: dict[tuple[int, int, int, int], int] = {}
        self._modules = modules_by_file()
        self._nodes: dict[tuple[int, int, int], int] = {}

    def stack(self, entries: list[str]) -> tuple[int, int]:
        """The thread and the last node of a stack."""
        name, _, ident = self._parts(entries[0])[0]
        thread = self.threads.setdefault(Thread(ident, name, ""), len(self.threads))
        node = -1
        for entry in entries[1:] or [f"(nothing){_PARTS}{MARKER}{_PARTS}0"]:
            (name, file, first_line), line = self._parts(entry)
            what = self.functions.setdefault(
                Function(name, file, first_line, module_of(file, self._modules)), len(self.functions)
            )
            key = (node, what, line)
            if key not in self._nodes:
                self._nodes[key] = len(self.parent)
                for column, value in zip((self.parent, self.function, self.line), key, strict=True):
                    column.append(value)
            node = self._nodes[key]
        return thread, node

    def add(self, bucket: int, thread: int, node: int, ticks: int) -> None:
        """Count ticks."""
        key = (bucket, thread, 0, node)
        self.counts[key] = self.counts.get(key, 0) + ticks

    @staticmethod
    def _parts(entry: str) -> tuple[tuple[str, str, int], int]:
        """Name, file and first line of an entry, and the line that ran (0: not told)."""
        identity, *attributes = entry.split(_ATTRIBUTES)
        name, file, first_line, *_ = (*identity.split(_PARTS), "", "0", "")
        lines = [int(a[1:]) for a in attributes if a.startswith(_LINE) and a[1:].isdigit()]
        return (name, file, int(first_line) if first_line.isdigit() else 0), lines[0] if lines else 0


def _clean(text: str) -> str:
    """A name that can neither be taken for more parts of a stack entry nor end the script element of the page."""
    return _ENDS_SCRIPT.sub("<\u200b", _CONTROL.sub(" ", text))
