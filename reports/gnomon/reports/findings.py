"""What an account says, in words: the largest losses first, each with its number.

A finding is a plain sentence about what was measured. It advises only where the measure itself names the remedy.

Contents: Finding, findings.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from gnomon.reports.account import Account
from gnomon.reports.durations import durations
from gnomon.reports.recording import TICKS, Recording
from gnomon.reports.units import bytes_text, count_text, cut, rate_text, time_text

__all__ = ["Finding", "findings"]


class Finding(NamedTuple):
    """A sentence, the tab that shows more, and how much of the capacity it speaks of (0 to 1; more for failures).

    ``filter`` is what the page should filter by to show it, as it stands in the page's hash.
    """

    text: str
    tab: str
    weight: float
    filter: str = ""


def findings(recording: Recording, account: Account, most: int = 5) -> list[Finding]:
    """The findings, weightiest first."""
    if not account.capacity or not account.tasks:
        return []
    found = [
        *_failures(recording, account),
        *_computing(account),
        *_edges(recording, account),
        *_idleness(account),
        *_overheads(recording, account),
        *_balance(account),
    ]
    return sorted(found, key=lambda finding: -finding.weight)[:most]


def _range(begin: int, end: int) -> str:
    return f"&t={begin / TICKS:.7f}-{end / TICKS:.7f}"


def _only(what: str, name: str) -> str:
    return f"&{what}={quote(name.encode('utf-8', 'replace'), safe='')}"


def _share(ticks: int, account: Account) -> float:
    return ticks / account.capacity


def _failures(recording: Recording, account: Account) -> list[Finding]:
    result = []
    if account.erred:
        cause = recording.errors[0] if recording.errors else None
        often = f"; most often {cause.type_name} in {cut(cause.prefix, 40)!r}" if cause else ""
        result.append(
            Finding(f"{count_text(account.erred)} of {count_text(account.tasks)} runs raised{often}.", "errors", 2.0)
        )
    gone = [each.worker for each in account.workers if each.worker.left is not None]
    if gone:
        names = ", ".join(cut(worker.label, 30) for worker in gone[:3])
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        text = f"{len(gone)} of {len(account.workers)} workers left before the end: {names}{more}."
        result.append(Finding(text, "workers", 1.5))
    return result


def _computing(account: Account) -> list[Finding]:
    top = account.prefixes[0]
    if not account.parts.compute + account.parts.offcpu:
        return []
    every = account.parts.compute + account.parts.offcpu
    spent = top.parts.compute + top.parts.offcpu
    share = spent / every
    if len(account.prefixes) == 1:
        return []
    text = (
        f"{cut(top.name, 40)!r} took {share:.0%} of all computing: {time_text(spent)} in "
        f"{count_text(top.tasks)} {'task' if top.tasks == 1 else 'tasks'}."
    )
    return [Finding(text, "tasks", _share(spent, account), _only("prefix", top.name))]


def _edges(recording: Recording, account: Account) -> list[Finding]:
    """Time in which no worker ran anything, at the block's beginning and end."""
    runs = recording.runs
    if not len(runs) or recording.ledgers["runs"].missed:
        return []
    first = max(0, min(runs.begins))
    last = max(0, recording.duration - max(runs.ends()))
    result = []
    if first > 0.05 * recording.duration:
        text = (
            f"No task ran in the first {time_text(first)}: the client was getting ready (its own code, building and "
            "sending tasks), or the workers were."
        )
        result.append(Finding(text, "timeline", first / recording.duration, _range(0, first)))
    if last > 0.05 * recording.duration:
        text = f"No task ran in the last {time_text(last)}: results were fetched, or the block did something else."
        result.append(
            Finding(text, "timeline", last / recording.duration, _range(recording.duration - last, recording.duration))
        )
    return result


def _idleness(account: Account) -> list[Finding]:
    parts, result = account.parts, []
    if _share(parts.idle, account) > 0.05:
        known = "scheduler" not in account.unmeasured
        text = f"{_share(parts.idle, account):.0%} of the capacity " + (
            "had nothing to do: no task that could run had been asked for."
            if known
            else "lay before the threads' first task or after their last: work came late, or was too little."
        )
        result.append(Finding(text, "timeline", _share(parts.idle, account)))
    if _share(parts.between, account) > 0.05:
        text = (
            f"{_share(parts.between, account):.0%} of the capacity are gaps between two tasks of a thread: "
            "nothing was ready to run, or the next task was still on its way."
        )
        result.append(Finding(text, "timeline", _share(parts.between, account)))
    if _share(parts.scheduler, account) > 0.03:
        text = (
            f"{_share(parts.scheduler, account):.0%} of the capacity had no task while tasks waited at the scheduler "
            "or were on their way: the scheduler or the network is the limit there."
        )
        result.append(Finding(text, "scheduler", _share(parts.scheduler, account)))
    if _share(parts.handover, account) > 0.03:
        text = (
            f"{_share(parts.handover, account):.0%} of the capacity had no task while the worker itself had one ready: "
            "handing it to a thread took that long."
        )
        result.append(Finding(text, "timeline", _share(parts.handover, account)))
    if _share(parts.offcpu, account) > 0.05:
        text = (
            f"{_share(parts.offcpu, account):.0%} of the capacity is your code waiting inside tasks: for input or "
            "output, locks, sleep, or other threads that hold the GIL."
        )
        result.append(Finding(text, "tasks", _share(parts.offcpu, account)))
    if _share(parts.transfer, account) > 0.02:
        text = f"{_share(parts.transfer, account):.0%} of the capacity had no task while the worker fetched data."
        result.append(Finding(text, "communication", _share(parts.transfer, account)))
    return result


def _overheads(recording: Recording, account: Account) -> list[Finding]:
    parts, result = account.parts, []
    coding = parts.decode + parts.encode
    if parts.busy and coding / parts.busy > 0.1:
        text = (
            f"Threads in tasks spent {coding / parts.busy:.0%} of their time unpickling arguments and pickling results "
            f"({time_text(coding)})."
        )
        result.append(Finding(text, "tasks", _share(coding, account)))
    short_ones = {name for name, each in durations(recording).items() if each.median < TICKS // 1000}
    short = [prefix for prefix in account.prefixes if prefix.name in short_ones]
    many = sum(prefix.tasks for prefix in short) > max(1_000, account.tasks // 2)
    if many and sum(prefix.parts.busy for prefix in short) > parts.busy / 2 and parts.busy < account.capacity / 2:
        text = (
            f"Most tasks are shorter than 1 ms ({rate_text(account.tasks, recording.duration)} ran), and the threads "
            "waited more than they worked. Larger tasks would use them better."
        )
        result.append(Finding(text, "tasks", _share(parts.between, account)))
    moved = sum(pair.nbytes for pair in recording.pairs)
    if moved > 64 << 20:
        rate = bytes_text(moved * TICKS / max(1, recording.duration))
        text = f"{bytes_text(moved)} moved between workers, {rate}/s on average.{_fetching(recording)}"
        result.append(Finding(text, "communication", 0.02))
    return result


def _fetching(recording: Recording) -> str:
    """What the fetches' time was, where that was measured."""
    known = [pair for pair in recording.pairs if pair.hold >= 0]
    whole = sum(pair.wait + pair.ticks for pair in known)
    if not whole:
        return ""
    wait, hold, serialise = (
        sum(getattr(pair, name) for pair in known) / whole for name in ("wait", "hold", "serialise")
    )
    return (
        f" From asked to arrived, {wait:.0%} was waiting to begin, {hold:.0%} the holder's threads being busy, "
        f"{serialise:.0%} serialising, {max(0.0, 1 - wait - hold - serialise):.0%} the wire."
    )


def _balance(account: Account) -> list[Finding]:
    loads = [(each.parts.busy / each.capacity, each.worker) for each in account.workers if each.capacity]
    if len(loads) < 2:
        return []
    (least, slack), (greatest, loaded) = min(loads, key=lambda x: x[0]), max(loads, key=lambda x: x[0])
    if greatest - least < 0.25:
        return []
    text = (
        f"Load was uneven: {cut(loaded.label, 30)} was in tasks {greatest:.0%} of its time, "
        f"{cut(slack.label, 30)} {least:.0%}."
    )
    return [Finding(text, "workers", (greatest - least) / 2, _only("worker", slack.name or slack.address))]
