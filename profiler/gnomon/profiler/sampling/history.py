"""Samples over time: exact for the last while, then in buckets, then in ever coarser buckets; never without bound.

The newest buckets keep every tick with its time, so that any window of them is exact to a tick: a run of 50 ms has its
five samples. When there are too many ticks, the oldest such bucket is folded to counts. When there are too many
buckets or counts, two neighbours become one: those whose joint length is smallest beside their age. So resolution
fades with age, and the whole life of a process fits in a fixed space.

A sample is a number (``stacks``): this module looks at its node only to move it when the tree was pruned.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace

from gnomon.profiler.sampling.tape import Tape

__all__ = ["History", "Piece", "RegionTotals"]

#: (thread, slot) -> entries, seconds, own seconds.
RegionTotals = dict[tuple[int, int], tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class Piece:
    """Counts of samples between two times. ``late`` is a sum, times are in seconds.

    ``points``: what the counts of a thread that was there all the time add up to.
    """

    start: float
    stop: float
    ticks: int = 0
    points: int = 0
    missed: float = 0.0
    late: float = 0.0
    late_max: float = 0.0
    cpu: float = 0.0
    counts: Counter[int] = field(default_factory=Counter)
    regions: RegionTotals = field(default_factory=dict)

    def joined(self, later: Piece) -> Piece:
        """This piece and one that follows as one."""
        regions = dict(self.regions)
        for key, (entries, seconds, own) in later.regions.items():
            before = regions.get(key, (0, 0.0, 0.0))
            regions[key] = (before[0] + entries, before[1] + seconds, before[2] + own)
        return Piece(
            self.start,
            max(self.stop, later.stop),
            self.ticks + later.ticks,
            self.points + later.points,
            self.missed + later.missed,
            self.late + later.late,
            max(self.late_max, later.late_max),
            self.cpu + later.cpu,
            self.counts + later.counts,
            regions,
        )


class _Ticks:
    """A bucket with every tick: its time, lateness and weight, and where its samples end in ``keys``."""

    __slots__ = ("cpu", "ends", "keys", "lates", "missed", "regions", "start", "stop", "times", "weights")

    def __init__(self, start: float) -> None:
        self.start = start
        self.stop = start
        self.times: array[float] = array("d")
        self.lates: array[float] = array("d")
        self.ends: array[int] = array("q")
        self.keys: array[int] = array("q")
        self.weights: array[int] = array("q")
        self.missed = 0
        self.cpu = 0.0
        self.regions: RegionTotals = {}

    def copy(self) -> _Ticks:
        """The bucket as it is now."""
        copy = _Ticks(self.start)
        copy.stop, copy.missed, copy.cpu, copy.regions = self.stop, self.missed, self.cpu, dict(self.regions)
        copy.times, copy.lates, copy.weights = self.times[:], self.lates[:], self.weights[:]
        copy.ends, copy.keys = self.ends[:], self.keys[:]
        return copy

    def piece(self, start: float, stop: float) -> Piece:
        """What lies in a window. Regions, CPU and missed ticks have no times: they are taken in proportion."""
        first, last = bisect_left(self.times, start), bisect_right(self.times, stop)
        begin = self.ends[first - 1] if first else 0
        end = self.ends[last - 1] if last else 0
        lates, weights = self.lates[first:last], self.weights[first:last]
        counts = Counter(self.keys[begin:end])
        for tick, weight in enumerate(weights, first):
            if weight > 1:
                for key in self.keys[self.ends[tick - 1] if tick else 0 : self.ends[tick]]:
                    counts[key] += weight - 1
        start, stop = max(start, self.start), min(stop, self.stop)
        part = (stop - start) / (self.stop - self.start) if self.stop > self.start else 1.0
        return Piece(
            start,
            stop,
            last - first,
            sum(weights),
            self.missed * part,
            sum(lates),
            max(lates, default=0.0),
            self.cpu * part,
            counts,
            {key: (n * part, total * part, own * part) for key, (n, total, own) in self.regions.items()},
        )


class History:
    """The samples of one sampler. ``samples``: how many keep their tick; ``buckets`` and ``counts``: see the head."""

    def __init__(self, *, samples: int = 200_000, buckets: int = 600, counts: int = 400_000) -> None:
        self.max_samples = samples
        self.max_buckets = buckets
        self.max_counts = counts
        self._folded: list[Piece] = []
        self._ticks: list[_Ticks] = []
        self._open: _Ticks | None = None
        self._samples = 0
        self._counts = 0

    @property
    def opened(self) -> float | None:
        """When the unfinished bucket began; None if there is none."""
        return self._open.start if self._open is not None else None

    def size(self) -> int:
        """How many buckets there are."""
        return len(self._folded) + len(self._ticks)

    def open(self, now: float) -> None:
        """Begin a bucket."""
        self._open = _Ticks(now)
        self._ticks.append(self._open)

    def take(self, tape: Tape) -> None:
        """The ticks on a tape go to the open bucket, and the tape is empty.

        Raises ValueError where there are some and no bucket is open.
        """
        if not tape.ticks:
            return
        bucket = self._open
        if bucket is None:
            raise ValueError("no bucket is open")
        times, lates, weights, ends, keys = tape.columns()
        before = len(bucket.keys)
        bucket.times.extend(times)
        bucket.lates.extend(lates)
        bucket.weights.extend(weights)
        bucket.ends.extend(end + before for end in ends)
        bucket.keys.extend(keys)
        bucket.stop = times[-1]
        self._samples += len(keys)
        tape.clear()

    def close(self, now: float, *, missed: int, cpu: float, regions: RegionTotals) -> None:
        """End the open bucket, and keep within bounds. A bucket in which nothing happened is not kept."""
        bucket, self._open = self._open, None
        if bucket is None:
            return
        bucket.stop, bucket.missed, bucket.cpu, bucket.regions = now, missed, cpu, regions
        if not bucket.times and not regions:
            self._ticks.remove(bucket)
        self._fold(now)

    def _fold(self, now: float) -> None:
        half = self.max_buckets // 2
        while len(self._ticks) > 1 and (self._samples > self.max_samples or len(self._ticks) > half):
            oldest = self._ticks.pop(0)
            self._samples -= len(oldest.keys)
            piece = oldest.piece(oldest.start, oldest.stop)
            self._counts += len(piece.counts)
            self._folded.append(piece)
        while len(self._folded) > 1 and (len(self._folded) > half or self._counts > self.max_counts):
            pieces = self._folded
            at = min(
                range(len(pieces) - 1),
                key=lambda i: (pieces[i + 1].stop - pieces[i].start) / (now - pieces[i].start + 1e-9),
            )
            joined = pieces[at].joined(pieces[at + 1])
            self._counts += len(joined.counts) - len(pieces[at].counts) - len(pieces[at + 1].counts)
            pieces[at : at + 2] = [joined]

    def copy(self) -> History:
        """The history as it is now, for a reader who takes longer than the sampler should wait."""
        copy = History(samples=self.max_samples, buckets=self.max_buckets, counts=self.max_counts)
        copy._folded, copy._ticks = list(self._folded), list(self._ticks)
        copy._samples, copy._counts = self._samples, self._counts
        if self._open is not None:
            copy._open = copy._ticks[-1] = self._open.copy()
        return copy

    def window(self, start: float, stop: float) -> list[Piece]:
        """The pieces of a window of time, oldest first.

        A folded bucket is in the window if its middle is; a window that lies within one bucket gets that bucket.
        """
        found = [piece for piece in self._folded if start <= (piece.start + piece.stop) / 2 <= stop]
        if not found:
            found = [piece for piece in self._folded if piece.start <= start and stop <= piece.stop]
        for bucket in self._ticks:
            if bucket.start <= stop and bucket.stop >= start and (bucket.times or bucket.regions):
                piece = bucket.piece(start, stop)
                if piece.ticks or piece.regions:
                    found.append(piece)
        return found

    def nodes(self, mask: int) -> Counter[int]:
        """How many samples ended in each node (the bits of ``mask``)."""
        total: Counter[int] = Counter()
        for piece in self._folded:
            for key, count in piece.counts.items():
                total[key & mask] += count
        for bucket in self._ticks:
            total.update(key & mask for key in bucket.keys)
        return total

    def move(self, moved: list[int], mask: int) -> None:
        """The nodes have new numbers, ``moved[old]``; samples whose node is gone for good (-1) are dropped."""
        self._folded = [_move_piece(piece, moved, mask) for piece in self._folded]
        ticks = [_move_ticks(bucket, moved, mask) for bucket in self._ticks]
        if self._open is not None:
            self._open = ticks[self._ticks.index(self._open)]
        self._ticks = ticks
        self._counts = sum(len(piece.counts) for piece in self._folded)
        self._samples = sum(len(bucket.keys) for bucket in self._ticks)


def _move_piece(piece: Piece, moved: list[int], mask: int) -> Piece:
    counts: Counter[int] = Counter()
    for key, count in piece.counts.items():
        node = moved[key & mask]
        if node >= 0:
            counts[key & ~mask | node] += count
    return replace(piece, counts=counts)


def _move_ticks(bucket: _Ticks, moved: list[int], mask: int) -> _Ticks:
    copy = bucket.copy()
    copy.keys = array("q")
    begin = 0
    for tick, end in enumerate(bucket.ends):
        for key in bucket.keys[begin:end]:
            node = moved[key & mask]
            if node >= 0:
                copy.keys.append(key & ~mask | node)
        begin = end
        copy.ends[tick] = len(copy.keys)
    return copy
