"""A sleep without the interpreter that another thread can end, in plain Python; ``native_alarm.pxd`` for compiled code.

Compiled, the interpreter can be let go before all that is done without it, not only for the sleep. Plain code can't do
without; there ``let_go`` and ``take_back`` do nothing.
"""

from __future__ import annotations

import threading

__all__ = ["bell_of", "let_go", "ring", "set_alarm", "sleep", "take_back"]


def set_alarm() -> threading.Lock:
    """A new one: what keeps the bell."""
    alarm = threading.Lock()
    alarm.acquire()
    return alarm


def bell_of(alarm: threading.Lock) -> threading.Lock:
    """What to sleep on and to ring, for as long as the alarm is kept."""
    return alarm


def sleep(bell: threading.Lock, seconds: float) -> bool:
    """Sleep for so long, or until it rings; whether it rang. Called between ``let_go`` and ``take_back``."""
    return bell.acquire(True, max(0.0, seconds))


def ring(bell: threading.Lock) -> None:
    """End the sleep, or the next one."""
    bell.release()


def let_go() -> object:
    """Let other threads run from here on; what to give to ``take_back``."""
    return None


def take_back(state: object) -> None:
    """Wait until this thread may run Python code again."""
