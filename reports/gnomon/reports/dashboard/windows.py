"""The account of any window of a live run, at the price of what is new: whole seconds are accounted once and summed.

A second's account is made again when rows arrive that reach into it, or when other threads are taken to be in tasks
that have not ended: a long run changes the seconds behind it when it is told of.

Contents: Windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from gnomon.reports.account import PrefixAccount
from gnomon.reports.dashboard.totals import Sums
from gnomon.reports.dashboard.underway import LiveAccount
from gnomon.reports.recording import TICKS, Recording, Worker
from gnomon.reports.worker_accounts import WorkerAccounts

__all__ = ["Windows"]

#: Seconds whose account is kept.
_KEPT = 1_000

#: The sums of who has no runs.
_NOTHING = (0, 0, 0)


@dataclass(slots=True)
class _Second:
    """One second's account, with the runs that ended in it (each is counted in one second alone)."""

    account: LiveAccount
    prefixes: Sums
    worker_ids: tuple[int, ...]


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

    def forget_from(self, when: float) -> None:
        """Rows came that reach back to a time in ticks."""
        first = floor(when / TICKS)
        for second in [second for second in self._seconds if second >= first]:
            del self._seconds[second]

    def account(self, low: int, high: int, now: int) -> LiveAccount:
        """The account between two times in ticks, widened to whole seconds; up to ``now`` at most."""
        result = LiveAccount()
        prefixes: dict[str, PrefixAccount] = {}
        seconds: list[_Second] = []
        first = floor(low / TICKS)
        unmeasured: set[str] | None = None
        for at in range(first, ceil(min(high, now) / TICKS)):
            second = self._of(at, now)
            unmeasured = set(second.account.unmeasured) & (unmeasured or set(second.account.unmeasured))
            _add_prefixes(second, result, prefixes)
            seconds.append(second)
        result.unmeasured = tuple(sorted(unmeasured or ()))
        result.prefixes = sorted(prefixes.values(), key=lambda row: (-row.parts.busy, -row.tasks, row.name))
        result.workers = _add_workers(seconds)
        return result

    def _of(self, at: int, now: int) -> _Second:
        known = self._seconds.get(at)
        if known is not None:
            return known
        low, high = at * TICKS, min((at + 1) * TICKS, now)
        recording = self._cut(low, high)
        prefixes, workers = self._ended(recording, low, high)
        account = self._account(recording, low)
        ids = tuple(worker.worker_id for worker in account.workers.workers)
        ended = [workers.get(worker_id, _NOTHING) for worker_id in ids]
        for which, name in enumerate(("tasks", "erred", "nbytes")):
            account.workers.number(name)[:] = [amounts[which] for amounts in ended]
        second = _Second(account, prefixes, ids)
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


def _add_workers(seconds: Sequence[_Second]) -> WorkerAccounts:
    """The workers of consecutive seconds; their times are told from the first one on."""
    import numpy

    latest = {second.worker_ids: number for number, second in enumerate(seconds)}
    workers: dict[int, Worker] = {}
    for number in sorted(latest.values()):
        offset = number * TICKS
        for worker in seconds[number].account.workers.workers:
            left = None if worker.left is None else worker.left + offset
            workers[worker.worker_id] = worker._replace(joined=worker.joined + offset, left=left)
    place = {worker_id: at for at, worker_id in enumerate(workers)}
    places = {ids: numpy.asarray([place[worker_id] for worker_id in ids], "q") for ids in latest}
    result = WorkerAccounts(list(workers.values()))
    for second in seconds:
        at = places[second.worker_ids]
        result.parts[:, at] += second.account.workers.parts
        result.numbers[:, at] += second.account.workers.numbers
    return result
