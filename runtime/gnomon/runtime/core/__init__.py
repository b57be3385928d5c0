"""The scheduler's brain: what is known, what must happen next, and no input or output at all.

A shell decodes messages, calls one function of ``reactor`` for each thing that happened, runs one ``placement`` pass
if ``model.placement_wanted``, and drains the ``outbox`` into one write per peer. Time comes in as an argument. The
modules that have a ``.pxd`` beside them run compiled where an extension was built, with the same results.
"""

from __future__ import annotations

from gnomon.runtime.build import use_chosen_build

use_chosen_build(__name__, __path__)

from gnomon.runtime.core.model import Model  # noqa: E402
from gnomon.runtime.core.outbox import Outbox, RunColumns  # noqa: E402
from gnomon.runtime.core.settings import Settings  # noqa: E402

__all__ = ["Model", "Outbox", "RunColumns", "Settings"]
