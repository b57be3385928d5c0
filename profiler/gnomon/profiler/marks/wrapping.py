"""Functions that run inside a context manager: what a decorator made of one returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

__all__ = ["wrapped"]

F = TypeVar("F", bound=Callable[..., Any])


def wrapped(context: AbstractContextManager[Any, Any], function: F) -> F:
    """``function`` inside ``context``, which is entered anew for each call; coroutine functions while they last."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            with context:
                return await function(*args, **kwargs)

    else:

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with context:
                return function(*args, **kwargs)

    return cast(F, run)
