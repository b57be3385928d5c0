"""The threads that a sampler looks at: who they are, under what number their samples go, and when they are gone.

Written by any thread, read by the sampler at each tick as one tuple that is never changed, only replaced.
"""

from __future__ import annotations

import re
import threading
import weakref

from gnomon.profiler.sampling.stacks import MAX_THREADS, Watched

__all__ = ["Roster"]

#: Beyond this many, threads whose names differ in digits only share a number: a thread for each request would
#: fill the table otherwise.
_FEW = 1024


class Roster:
    """See the module's head. ``threads`` are (ident, name) by number."""

    def __init__(self, *, few: int = _FEW) -> None:
        self.watched: tuple[Watched, ...] = ()
        self.threads: list[tuple[int, str]] = []
        self._few = few
        self._numbers: dict[tuple[int, str], int] = {}
        self._by_ident: dict[int, int] = {}  # number of the last thread that had an ident
        self._objects: dict[int, weakref.ref[threading.Thread]] = {}
        self._named: set[int] = set()  # idents of threads whose name was given

    def watch(self, ident: int, name: str | None = None) -> None:
        """Look at a thread from the next tick on."""
        self._watch(ident, name, _threads().get(ident))

    def meet(self, idents: list[int]) -> tuple[Watched, ...]:
        """Look at threads that were not known; return just them."""
        living = _threads()
        for ident in idents:
            self._watch(ident, None, living.get(ident))
        return self.watched[-len(idents) :]

    def _watch(self, ident: int, name: str | None, thread: threading.Thread | None) -> None:
        self.forget(ident)
        if thread is not None:
            self._objects[ident] = weakref.ref(thread)
        if name is not None:
            self._named.add(ident)
        else:
            name = thread.name if thread is not None else f"thread {ident}"
        number = self._number(ident, name)
        self._by_ident[ident] = number
        self.watched = (*self.watched, Watched(ident, number))

    def forget(self, ident: int) -> None:
        """Look at a thread no longer; its samples stay."""
        self._objects.pop(ident, None)
        self._named.discard(ident)
        if all(thread.ident != ident for thread in self.watched):
            return
        self.watched = tuple(thread for thread in self.watched if thread.ident != ident)

    def number_of(self, ident: int) -> int | None:
        """The number of the last thread that had an ident, whether or not it lives."""
        return self._by_ident.get(ident)

    def drop_absent(self) -> None:
        """Forget the threads that the last sample didn't find."""
        for thread in self.watched:
            if not thread.present:
                self.forget(thread.ident)

    def review(self, every_thread: bool) -> None:
        """Now and then: notice new names, and idents that went to another thread between two ticks.

        Such a thread is looked at in its own name if every thread is, else no longer.
        """
        living = _threads()
        for watched in self.watched:
            ident = watched.ident
            thread, known = living.get(ident), self._objects.get(ident)
            if thread is None or known is None:
                continue
            if known() is thread:
                if ident not in self._named:
                    self._rename(watched.number, thread.name)
            elif every_thread:
                self._watch(ident, None, thread)
            else:
                self.forget(ident)

    def forget_ended(self) -> None:
        """The numbers of threads that are no longer looked at won't be asked for any more."""
        self._by_ident = {watched.ident: watched.number for watched in self.watched}

    def forget_stacks(self) -> None:
        """The nodes have new numbers: what threads had last is worth nothing."""
        for thread in self.watched:
            thread.forget()

    def _number(self, ident: int, name: str) -> int:
        if len(self.threads) >= self._few:
            ident, name = 0, re.sub(r"\d+", "#", name)
        if len(self.threads) >= MAX_THREADS - 1:
            ident, name = 0, "(others)"
        number = self._numbers.get((ident, name))
        if number is None:
            number = self._numbers[ident, name] = len(self.threads)
            self.threads.append((ident, name))
        return number

    def _rename(self, number: int, name: str) -> None:
        ident, before = self.threads[number]
        if before != name and ident and (ident, name) not in self._numbers:
            del self._numbers[ident, before]
            self._numbers[ident, name] = number
            self.threads[number] = (ident, name)


def _threads() -> dict[int, threading.Thread]:
    return {thread.ident: thread for thread in threading.enumerate() if thread.ident is not None}
