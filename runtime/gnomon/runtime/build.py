"""Which build of the compiled modules runs, for the rooms of the engine: the choice is the profiler package's own."""

from __future__ import annotations

from gnomon.profiler.build import is_compiled, use_chosen_build

__all__ = ["is_compiled", "use_chosen_build"]
