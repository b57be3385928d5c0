"""The account of any window of a live run, at the price of what is new: whole seconds are accounted once and summed.

A second's account is made again when rows arrive that reach into it, or when other threads are taken to be in tasks
that have not ended: a long run changes the seconds behind it when it is told of.

Contents: Windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

from gnomon.reports.account import PrefixAccount, WorkerAccount
from gnomon.reports.dashboard.totals import Sums
from gnomon.reports.dashboard.underway import LiveAccount
from gnomon.reports.recording import TICKS, Recording

__all__ = ["Windows"]

#: Seconds whose account is kept.
_KEPT = 1_000


@dataclass(slots=True)
class _Second:
    """One second's account, and the runs that ended in it (each is counted in one second alone)."""

    account: LiveAccount
    prefixes: Sums
    workers: Sums


class Windows:
    """See the module.

    ``cut`` gives the recording between two times in ticks, ``ended`` the sums of those of its runs that ended between
    these; ``account`` makes the account of a recording that begins at a time, and may change the recording.
    """

    def __init__(
        self,
        cut: Callable[[int, int], Recording],
        ended: Callable[[Recording, int, int], tuple[Sums, Sums]],
        account: Callable[[Recording, int], LiveAccount],
    ) -> None:
        self._cut = cut
        self._ended = ended
        self._account = account
        self._seconds: dict[int, _Second] = {}

    def forget_from(self, when: int) -> None:
        """Rows came that reach back to a time in ticks."""
        first = floor(when / TICKS)
        for second in [second for second in self._seconds if second >= first]:
            del self._seconds[second]

    def account(self, low: int, high: int, now: int) -> LiveAccount:
        """The account between two times in ticks, widened to whole seconds; up to ``now`` at most."""
        result = LiveAccount()
        prefixes: dict[str, PrefixAccount] = {}
        workers: dict[int, WorkerAccount] = {}
        first = floor(low / TICKS)
        unmeasured: set[str] | None = None
        for at in range(first, ceil(min(high, now) / TICKS)):
            second = self._of(at, now)
            unmeasured = set(second.account.unmeasured) & (unmeasured or set(second.account.unmeasured))
            _add_prefixes(second, result, prefixes)
            _add_workers(second, (at - first) * TICKS, workers)
        result.unmeasured = tuple(sorted(unmeasured or ()))
        result.prefixes = sorted(prefixes.values(), key=lambda row: (-row.parts.busy, -row.tasks, row.name))
        result.workers = list(workers.values())
        return result

    def _of(self, at: int, now: int) -> _Second:
        known = self._seconds.get(at)
        if known is not None:
            return known
        low, high = at * TICKS, min((at + 1) * TICKS, now)
        recording = self._cut(low, high)
        prefixes, workers = self._ended(recording, low, high)
        second = _Second(self._account(recording, low), prefixes, workers)
        if high == (at + 1) * TICKS:
            self._seconds[at] = second
            while len(self._seconds) > _KEPT:
                del self._seconds[min(self._seconds)]
        return second


def _add_prefixes(second: _Second, result: LiveAccount, prefixes: dict[str, PrefixAccount]) -> None:
    part = second.account
    result.capacity += part.capacity
    result.alongside += part.alongside
    result.parts.add(part.parts)
    result.underway += part.underway
    for worker_id, ticks in part.underway_of.items():
        result.underway_of[worker_id] = result.underway_of.get(worker_id, 0) + ticks
    for prefix in part.prefixes:
        known = prefixes.setdefault(prefix.name, PrefixAccount(prefix.name))
        known.parts.add(prefix.parts)
        tasks, erred, nbytes, *_ = second.prefixes.get(prefix.name, (0, 0, 0))
        known.tasks, known.erred, known.nbytes = known.tasks + tasks, known.erred + erred, known.nbytes + nbytes
        result.tasks, result.erred, result.nbytes = result.tasks + tasks, result.erred + erred, result.nbytes + nbytes


def _add_workers(second: _Second, offset: int, workers: dict[int, WorkerAccount]) -> None:
    """Add a second's workers; their times are told from the first second on, ``offset`` ticks before this one."""
    for each in second.account.workers:
        left = None if each.worker.left is None else each.worker.left + offset
        worker = each.worker._replace(joined=each.worker.joined + offset, left=left)
        known = workers.setdefault(worker.worker_id, WorkerAccount(worker))
        known.worker = worker
        known.capacity += each.capacity
        known.alongside += each.alongside
        known.lead += each.lead
        known.parts.add(each.parts)
        tasks, erred, nbytes, *_ = second.workers.get(worker.worker_id, (0, 0, 0))
        known.tasks, known.erred, known.nbytes = known.tasks + tasks, known.erred + erred, known.nbytes + nbytes
