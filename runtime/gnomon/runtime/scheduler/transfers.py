"""What moved between workers: a ring of fetches, and complete sums by pair of workers and by type of value.

Contents: Transfers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from gnomon.runtime.messages import TransfersDone
from gnomon.runtime.scheduler.ring import Column, Ring, table

__all__ = ["Transfers"]

_COLUMNS = (
    Column("q"),
    Column("q"),
    Column("q"),
    Column("d"),
    Column("d"),
    Column("O"),
    Column("d", 3),
    Column("O"),
)

#: What a fetch of several types is called, and what further types are.
_SEVERAL = "(several)"
_OTHER = "(other types)"

#: Characters of a type's name that are kept, and what numbers a peer may bring.
_NAME = 100
_MOST = 1 << 60

_UNKNOWN = (nan, nan, nan)


class Transfers:
    """``length``: fetches whose details are kept; ``groups``: pairs, and likewise types, with sums of their own."""

    def __init__(self, length: int, groups: int) -> None:
        self.ring = Ring(_COLUMNS, length)
        self._groups = groups
        self._pairs: dict[tuple[int, int, str], list[Any]] = {}
        self._types: dict[str, list[Any]] = {}

    def append(self, to_id: int, message: TransfersDone, holders: Mapping[str, int], offset: float) -> None:
        """Record fetches that the worker ``to_id`` reports; see ``Telemetry.append_transfers``.

        Raises ValueError or TypeError for rows that are none, and records nothing of them then.
        """
        rows = len(message.holders)
        from_ids = [holders.get(address, -1) for address in message.holders]
        starts = [float(t) + offset for t in message.starts]
        stops = [float(t) + offset for t in message.stops]
        parts = [_checked_parts(row) for row in message.parts] or [_UNKNOWN] * rows
        types = [_checked_types(row) for row in message.types] or [[] for _ in range(rows)]
        names = [row[0][0] if len(row) == 1 else _SEVERAL if row else "" for row in types]
        flat = [seconds for row in parts for seconds in row]
        self.ring.extend(
            (from_ids, [to_id] * rows, message.nbytes, starts, stops, message.transports, flat, names), rows
        )
        for row, (from_id, nbytes, transport) in enumerate(
            zip(from_ids, message.nbytes, message.transports, strict=True)
        ):
            seconds = stops[row] - starts[row]
            wait, hold, serialise = (each if each == each else 0.0 for each in parts[row])
            self._add_to_pair((from_id, to_id, transport), nbytes, (seconds, wait, hold, serialise))
            self._add_to_types(types[row], (seconds, wait, hold, serialise))

    def _add_to_pair(self, name: tuple[int, int, str], nbytes: int, seconds: Sequence[float]) -> None:
        pair = self._pairs.get(name)
        if pair is None:
            pair = self._pairs.setdefault(
                name if len(self._pairs) < self._groups else (-2, -2, ""), [0, 0, 0.0, 0.0, 0.0, 0.0]
            )
        pair[0] += 1
        pair[1] += nbytes
        for at, amount in enumerate(seconds, 2):
            pair[at] += amount

    def _add_to_types(self, types: Sequence[tuple[str, int, int]], seconds: Sequence[float]) -> None:
        """Share a fetch out over the types of what it brought: by bytes, or where there are none by number."""
        rows = types or [("", 0, 0)]
        weights = [nbytes for _, _, nbytes in rows]
        if not any(weights):
            weights = [count for _, count, _ in rows]
        whole = sum(weights)
        for (name, count, nbytes), weight in zip(rows, weights, strict=True):
            if name not in self._types and len(self._types) >= self._groups:
                name = _OTHER
            total = self._types.setdefault(name, [0, 0, 0.0, 0.0, 0.0, 0.0])
            share = weight / whole if whole else 1.0 / len(rows)
            total[0] += count
            total[1] += nbytes
            for at, amount in enumerate(seconds, 2):
                total[at] += share * amount

    def mark(self) -> dict[str, Any]:
        """The sums; see ``Telemetry.mark``."""
        return {**self.pairs(), "types": [(name, *amounts) for name, amounts in self._types.items()]}

    def pairs(self) -> dict[str, Any]:
        """The sums by pair of workers and transport; see ``Telemetry.mark``."""
        return {
            "pairs": [(*name, *amounts[:3]) for name, amounts in self._pairs.items()],
            "pair_parts": [(*name, *amounts[3:]) for name, amounts in self._pairs.items()],
        }

    def since(self, number: int, limit: int) -> tuple[dict[str, Any], int, int]:
        """A page, how many rows are gone, and the number to go on with."""
        columns, missed, after = self.ring.read(number, limit)
        from_ids, to_ids, moved, starts, stops, transports, parts, types = columns
        transport_names, transport_rows = table(transports)
        type_names, type_rows = table(types)
        page = {
            "froms": from_ids.tobytes(),
            "tos": to_ids.tobytes(),
            "nbytes": moved.tobytes(),
            "starts": starts.tobytes(),
            "stops": stops.tobytes(),
            "transport_names": transport_names,
            "transports": transport_rows.tobytes(),
            "parts": parts.tobytes(),
            "type_names": type_names,
            "types": type_rows.tobytes(),
        }
        return page, missed, after


def _checked_parts(row: Sequence[float]) -> tuple[float, float, float]:
    """Seconds of a fetch's parts. Raises ValueError for what is none."""
    wait, hold, serialise = map(float, row)
    if wait < 0.0 or hold < 0.0 or serialise < 0.0:
        raise ValueError("a part of a transfer that took less than no time")
    return wait, hold, serialise


def _checked_types(row: Sequence[Sequence[Any]]) -> list[tuple[str, int, int]]:
    """Type, number and bytes of what a fetch brought. Raises ValueError or TypeError for what is none."""
    checked = []
    for name, count, nbytes in row:
        if type(count) is not int or type(nbytes) is not int or not 0 <= count <= _MOST or not 0 <= nbytes <= _MOST:
            raise ValueError("a number of values or bytes that is none")
        checked.append((str(name)[:_NAME], count, nbytes))
    return checked
