"""What goes wrong in a task stays with that task, arrives as a clear error, and the next task works."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import pytest

from gnomon.runtime.errors import FutureCancelledError, KilledWorker, TaskError

DEADLINE = 30


def inc(x):
    return x + 1


def works(client):
    """Both workers still take and finish tasks."""
    assert client.gather(client.map(inc, range(20), pure=False)) == list(range(1, 21))


class Boom(BaseException):
    pass


def raise_it(kind):
    raise kind("from the task")


@pytest.mark.parametrize("kind", [ValueError, Boom, SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_exceptions_of_every_kind_arrive(client, kind):
    future = client.submit(raise_it, kind, pure=False)
    error = future.exception(timeout=DEADLINE)
    assert type(error).__name__ == kind.__name__
    assert "from the task" in str(error)
    works(client)


def test_result_raises_with_the_tasks_traceback(client):
    future = client.submit(raise_it, ZeroDivisionError, pure=False)
    with pytest.raises(ZeroDivisionError, match="from the task") as caught:
        future.result(timeout=DEADLINE)
    assert "raise_it" in "".join(str(entry.name) for entry in caught.traceback)


def raise_from():
    try:
        raise_it(KeyError)
    except KeyError as exc:
        raise RuntimeError("outer") from exc


def test_cause_is_kept(client):
    error = client.submit(raise_from, pure=False).exception(timeout=DEADLINE)
    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, KeyError)


def test_unpicklable_function_and_argument_are_refused_at_once(client):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock"):
        client.submit(inc, lock)
    with pytest.raises(TypeError, match="lock"):
        client.submit(lambda: lock)
    works(client)


def make_lock():
    return threading.Lock()


def use(value):
    return type(value).__name__


def test_unpicklable_result_is_an_error_only_for_who_needs_it_elsewhere(client):
    future = client.submit(make_lock, pure=False)
    with pytest.raises(TypeError, match="lock"):
        future.result(timeout=DEADLINE)
    works(client)


class Undecodable:
    """Pickles, but never unpickles."""

    def __reduce__(self):
        return undecodable, ()


def undecodable():
    raise ValueError("cannot be decoded")


def make_undecodable():
    return Undecodable()


def test_result_that_no_consumer_can_decode(client):
    workers = list(client.scheduler_info()["workers"])
    made = client.submit(make_undecodable, workers=[workers[0]], pure=False)
    used = client.submit(use, made, workers=[workers[1]], pure=False)
    with pytest.raises(ValueError, match="cannot be decoded"):
        used.result(timeout=DEADLINE)
    with pytest.raises(ValueError, match="cannot be decoded"):
        made.result(timeout=DEADLINE)
    works(client)


class UnpicklableError(Exception):
    def __init__(self):
        super().__init__("has a lock")
        self.lock = threading.Lock()


class NeedsTwo(Exception):
    """Its default pickle can't be unpickled: __init__ takes two arguments, args holds one."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def raise_unpicklable():
    raise UnpicklableError


def raise_needs_two():
    raise NeedsTwo("has", "two")


def test_exceptions_that_cannot_travel_are_readable(client):
    assert "has a lock" in str(client.submit(raise_unpicklable, pure=False).exception(timeout=DEADLINE))
    assert "has two" in str(client.submit(raise_needs_two, pure=False).exception(timeout=DEADLINE))
    works(client)


def leave(code):
    os._exit(code)


def kill_me():
    os.kill(os.getpid(), signal.SIGKILL)


def test_task_that_exits_its_process_is_given_up_with_the_cause(client):
    with pytest.raises(KilledWorker, match="17"):
        client.submit(leave, 17, pure=False).result(timeout=60)
    works(client)


def test_what_killed_the_workers_is_named_to_those_who_wait_for_more(client):
    killer = client.submit(leave, 17, pure=False)
    with pytest.raises(KilledWorker) as raised:
        client.submit(str, killer, pure=False).result(timeout=60)
    assert raised.value.task == killer.key
    works(client)


def test_task_that_is_killed_is_given_up_with_the_signal(client):
    with pytest.raises(KilledWorker, match="SIGKILL"):
        client.submit(kill_me, pure=False).result(timeout=60)
    works(client)


def test_a_function_that_only_the_client_can_import(client, tmp_path, monkeypatch):
    (tmp_path / "only_here_now.py").write_text("def f():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here_now

    with pytest.raises(ModuleNotFoundError, match="only_here_now"):
        client.submit(only_here_now.f, pure=False).result(timeout=DEADLINE)
    works(client)


def slow(x, seconds):
    time.sleep(seconds)
    return x


def test_cancelled_and_resubmitted_key_never_gives_the_old_value(client):
    for i in range(30):
        old = client.submit(slow, "old", 0.01, key=f"again-{i}")
        old.cancel()
        new = client.submit(slow, "new", 0.0, key=f"again-{i}")
        assert new.result(timeout=DEADLINE) == "new"
        with pytest.raises(FutureCancelledError):
            old.result(timeout=DEADLINE)


def test_cancelled_futures_say_so(client):
    blocked = [client.submit(slow, i, 0.2, pure=False) for i in range(20)]
    client.cancel(blocked)
    for future in blocked:
        assert future.cancelled()
        with pytest.raises(FutureCancelledError):
            future.result(timeout=DEADLINE)
    works(client)


def test_errors_blame_the_task_that_raised_through_a_chain(client):
    first = client.submit(raise_it, ZeroDivisionError, pure=False)
    last = client.submit(inc, client.submit(inc, first))
    with pytest.raises(ZeroDivisionError):
        last.result(timeout=DEADLINE)
    assert last.status == "error"


def test_retries_run_a_task_again(client, tmp_path):
    marker = tmp_path / "tries"

    def flaky(path):
        with open(path, "a") as file:
            file.write("x")
        if os.path.getsize(path) < 3:
            raise OSError("not yet")
        return os.path.getsize(path)

    assert client.submit(flaky, str(marker), retries=5, pure=False).result(timeout=DEADLINE) == 3


def test_timeouts_are_kept(client):
    future = client.submit(slow, 1, 2.0, pure=False)
    with pytest.raises(TimeoutError):
        future.result(timeout=0.05)
    assert future.result(timeout=DEADLINE) == 1


def test_pickle_is_what_travels_for_plain_functions():
    """The guard of the tests above: these classes behave as they say."""
    with pytest.raises(ValueError, match="cannot be decoded"):
        pickle.loads(pickle.dumps(Undecodable()))
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(NeedsTwo("a", "b")))
    assert issubclass(KilledWorker, TaskError)
