"""Work that would hold up a loop, on a thread of its own: the loop's pool of threads is for nobody's long work.

Contents: off_loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["off_loop"]

_Result = TypeVar("_Result")


async def off_loop(function: Callable[[], _Result], name: str = "gnomon-work") -> _Result:
    """Call a function on a new thread, and wait for what it returns or raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def settle(result: _Result | None, error: BaseException | None) -> None:
        if done.done():
            return  # nobody waits any more
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def call() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as exc:  # noqa: BLE001 - it is raised where the result is waited for
            error = exc
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            pass  # the loop has ended

    threading.Thread(target=call, name=name, daemon=True).start()
    return await done
