"""What users run in the tests of the executor; imported here and in the executor's process."""

import array
import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

from gnomon.runtime.messages import Request
from gnomon.runtime.worker.executor.context import cluster, current_task, secede

LOG = []
REFS = {}
KEPT = []


def ident(*args, **kwargs):
    return threading.get_ident()


def add(a, b=0):
    return a + b


def total(items):
    return sum(items)


def same(value):
    return value


def variable(name):
    return os.environ.get(name)


def where():
    return os.getcwd()


def descriptors():
    return len(os.listdir("/proc/self/fd"))


# ---- files as signals: what a test waits for, and what makes a task go on -------------------------------------------


def touch(path):
    Path(path).touch()


def wait_for(path, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.002)


def touch_and_wait(began, go):
    touch(began)
    wait_for(go)
    return threading.get_ident()


def hold_gil(began, seconds):
    touch(began)
    ctypes.PyDLL(None).sleep(seconds)


# ---- objects that tell on which thread they are handled --------------------------------------------------------------


class Spy:
    """Logs the thread of each step of its life; carries some bytes in a buffer of their own."""

    def __init__(self, tag, size=1):
        self.tag = tag
        self.data = array.array("b", bytes(size))

    def __reduce__(self):
        LOG.append(("reduce", self.tag, threading.get_ident()))
        return _rebuild, (self.tag, bytes(self.data)), {"tag": self.tag}

    def __setstate__(self, state):
        LOG.append(("setstate", self.tag, threading.get_ident()))

    def __del__(self):
        LOG.append(("del", self.tag, threading.get_ident()))


def _rebuild(tag, data):
    LOG.append(("rebuild", tag, threading.get_ident()))
    spy = Spy(tag, 0)
    spy.data.frombytes(data)
    return spy


def use(*args, **kwargs):
    LOG.append(("use", "", threading.get_ident()))
    return threading.get_ident()


def run_request(request_id, blob):
    return Request(request_id, "run", {"code": blob})


def make_spy(tag, size):
    LOG.append(("use", "", threading.get_ident()))
    return Spy(tag, size)


def make_closure(spy):
    return lambda: (use(), spy.tag)[0]


def take_log():
    taken = repr(LOG)
    LOG.clear()
    return taken


def spy_result(result):
    return type(result).__name__


# ---- failures --------------------------------------------------------------------------------------------------------


class NoPickle:
    def __reduce__(self):
        raise ValueError("no way out")


class NoUnpickle:
    def __init__(self, kind=ValueError):
        self.kind = kind

    def __reduce__(self):
        return _refuse, (self.kind,)


def _refuse(kind):
    raise kind("no way in")


class Deadly:
    def __reduce__(self):
        return os._exit, (9,)


class DeadlyToPickle:
    def __reduce__(self):
        os._exit(9)


def make_deadly_to_pickle():
    return DeadlyToPickle()


class Evil(Exception):
    def __str__(self):
        raise SystemExit("str")

    def __reduce__(self):
        raise SystemExit("reduce")


def raise_this(exc):
    raise exc


def raise_kind(kind, *args):
    raise kind(*args)


def make_no_pickle():
    return NoPickle()


def exit_with(code):
    os._exit(code)


def kill_self(number):
    os.kill(os.getpid(), number)
    signal.pause()


def segfault():
    ctypes.string_at(0)


def close_all_descriptors():
    os.closerange(3, 1000)


class Big:
    """Something weak references can point to."""


def no_gc():
    gc.disable()


def with_gc():
    gc.enable()


def _big(tag):
    big = Big()
    REFS[tag] = weakref.ref(big)
    return big


def fail_plain(tag, *args):
    big = _big(tag)
    raise ValueError(tag, bool(big))


def fail_chained(tag):
    big = _big(tag)
    try:
        raise KeyError(tag)
    except KeyError as exc:
        raise ValueError(bool(big)) from exc


def fail_in_cycle(tag):
    big = _big(tag)
    try:
        raise KeyError(tag)
    except KeyError as exc:
        kept = exc
        raise ValueError(bool(big), bool(kept)) from None


def fail_group(tag):
    def inner():
        big = _big(tag)
        raise KeyError(bool(big))

    try:
        inner()
    except KeyError as exc:
        kept = [exc]
    raise ExceptionGroup("several", kept)


def return_big(tag):
    return _big(tag)


class FailsToPickle(Big):
    def __init__(self, tag):
        REFS[tag] = weakref.ref(self)
        self.tag = tag

    def __reduce__(self):
        big = _big(self.tag + " local")
        raise ValueError(bool(big))


def make_fails_to_pickle(tag):
    return FailsToPickle(tag)


def alive(tag):
    return REFS[tag]() is not None


class BadDel:
    def __del__(self):
        raise ValueError("from __del__")


def make_bad_del():
    sys.unraisablehook = lambda info: KEPT.append(str(info.exc_value))
    return BadDel()


def take_kept():
    taken = repr(KEPT)
    KEPT.clear()
    return taken


# ---- where a task is -------------------------------------------------------------------------------------------------


def who_am_i():
    return repr(current_task())


def which_cluster():
    return repr(cluster())


async def coroutine_identity(value):
    await asyncio.sleep(0)
    inside = await asyncio.to_thread(lambda: current_task().key)
    return f"{current_task().key} {inside} {threading.get_ident()} {value}"


async def coroutine_fails():
    raise ValueError("awaited")


def secede_and_wait(began, go):
    secede()
    secede()
    return touch_and_wait(began, go)


def sigint_of_a_child():
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def pid_written(path):
    with contextlib.suppress(FileNotFoundError):
        return Path(path).read_text()
    return ""


class Entry:
    def __init__(self, function, *fixed):
        self.function = function
        self.fixed = fixed

    def run(self, values):
        return self.function(*self.fixed, *values)


async def coroutine_value_free():
    await asyncio.sleep(0)
    return "awaited"
