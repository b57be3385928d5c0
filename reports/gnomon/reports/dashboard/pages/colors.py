"""Which colour a prefix has on these pages: the slot that the report of the same run gives it.

Contents: slots_of.
"""

from __future__ import annotations

from gnomon.reports import palette
from gnomon.reports.dashboard.model import Model

__all__ = ["slots_of"]


def slots_of(model: Model) -> dict[str, int]:
    """Slots by prefix, from the run's complete totals: most time first, as the account orders prefixes."""
    counters = model.counters
    if counters is None:
        return {}
    totals = sorted(
        counters.totals.values(),
        key=lambda each: (-(each.decode + each.compute + each.encode), -each.tasks, str(each.name)),
    )
    names = [str(each.name) for each in totals]
    known = set(names)
    return palette.slots([*names, *sorted(name for name in counters.prefixes if name not in known)])
