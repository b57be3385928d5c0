"""Deep profiles of chosen tasks: the call runs under pyinstrument, on the task's own thread.

What is made here travels in the place of the user's function, so the module imports next to nothing.

Contents: Profiled, run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import CoroutineType
from typing import Any

from gnomon.runtime.worker.executor.context import keep_profile

__all__ = ["Profiled", "run"]

_NO_KEYWORDS: Mapping[str, Any] = {}


class Profiled:
    """A function that is profiled whenever it is called in a task. Pickles as the function does, beside its name."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.__name__ = name

    def __reduce__(self) -> tuple[type[Profiled], tuple[Callable[..., Any], str]]:
        return Profiled, (self.function, self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and keep the profile for the task's outcome."""
        return run(self.function, args, kwargs, self.__name__)


def run(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] = _NO_KEYWORDS, name: str = ""
) -> Any:
    """Call a function under the profiler; a coroutine is run to its end. The profile is kept whatever it raises."""
    from gnomon.profiler.deep import Recording  # only where it is asked for
    from gnomon.runtime.worker.executor.running import finish_coroutine

    recording = Recording(description=name)
    try:
        with recording.below(sys._getframe()):
            result = function(*args, **kwargs)
            if type(result) is CoroutineType:
                result = finish_coroutine(result)
            return result
    finally:
        keep_profile(recording.data)
