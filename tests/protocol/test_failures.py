"""Exceptions that cross processes."""

from __future__ import annotations

import copyreg
import pickle
import threading
import traceback

import pytest
from tblib import pickling_support

from gnomon.runtime import errors
from gnomon.runtime.messages import ByReference, ErrorRecord, decode, encode
from gnomon.runtime.messages.worker import TasksErred
from gnomon.runtime.protocol import RemoteError, decode_error, encode_error


def raised(exc: BaseException) -> BaseException:
    """The exception after it was raised from a function of its own."""
    try:
        _raise(exc)
    except BaseException as caught:
        return caught
    raise AssertionError


def _raise(exc: BaseException) -> None:
    raise exc


def there_and_back(exc: BaseException) -> BaseException:
    """As it arrives after the wire."""
    message = TasksErred((1,), (1,), (encode_error(exc),), (0,), b"")
    (received,) = decode(encode([message]))
    return decode_error(received.errors[0])


class Plain(Exception):
    pass


class TwoArguments(Exception):
    """Pickles, but does not unpickle: the commonest mistake there is."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class Holder(Exception):
    def __init__(self, held):
        super().__init__(held)
        self.held = held


class BadReduce(Exception):
    def __reduce__(self):
        raise SystemExit("not with me")


def _explode():
    raise SystemExit("boom")


class ExplodesOnArrival(Exception):
    def __reduce__(self):
        return _explode, ()


class NotAnException(Exception):
    def __reduce__(self):
        return int, ()


class BadText(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("x", 1),
        KeyError("k"),
        Plain("p"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        OSError(2, "no", "f"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "r"),
        StopIteration(5),
        MemoryError(),
        errors.KilledWorker("why", "key"),
        errors.FutureCancelledError("key", "lost", "m"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_type_arguments_and_traceback_survive(exc):
    result = there_and_back(raised(exc))
    assert type(result) is type(exc)
    assert result.args == exc.args
    assert [f.name for f in traceback.extract_tb(result.__traceback__)] == ["raised", "_raise"]
    assert traceback.extract_tb(result.__traceback__)[-1].line == "raise exc"


def test_an_exception_that_was_never_raised():
    result = there_and_back(ValueError("x"))
    assert result.args == ("x",)
    assert result.__traceback__ is None


@pytest.mark.parametrize(
    "exc",
    [TwoArguments(1, 2), Holder(threading.Lock()), BadReduce("r"), ExplodesOnArrival("e"), NotAnException("n")],
    ids=lambda e: type(e).__name__,
)
def test_what_cannot_be_rebuilt_is_readable(exc):
    record = encode_error(raised(exc))
    result = decode_error(record)
    assert type(result) is RemoteError
    assert result.type_name.endswith(type(exc).__name__)
    assert result.message == str(exc)
    assert type(exc).__name__ in str(result)
    assert "_raise" in result.text
    assert [f.name for f in traceback.extract_tb(result.__traceback__)] == ["raised", "_raise"]
    assert str(pickle.loads(pickle.dumps(result))) == str(result)


def test_an_exception_without_a_text():
    result = there_and_back(raised(BadText()))
    assert isinstance(result, BadText)


@pytest.fixture(params=["plain", "taught"])
def interpreter(request):
    """The interpreter as it is, and as it is where a library has taught it to pickle exceptions with all they have."""
    known = dict(copyreg.dispatch_table)
    if request.param == "taught":
        pickling_support.install()
    yield
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(known)


@pytest.mark.usefixtures("interpreter")
def test_cause_and_context():
    def inner():
        raise KeyError("first")

    def middle():
        try:
            inner()
        except KeyError:
            raise TwoArguments(1, 2)  # noqa: B904 - the context is what is tested

    try:
        try:
            middle()
        except TwoArguments as exc:
            raise ValueError("last") from exc
    except ValueError as exc:
        record = encode_error(exc)
    result = decode_error(record)
    assert isinstance(result, ValueError)
    assert isinstance(result.__cause__, RemoteError)
    assert result.__suppress_context__
    assert isinstance(result.__cause__.__context__, KeyError)
    assert traceback.extract_tb(result.__cause__.__context__.__traceback__)[-1].name == "inner"
    for word in ("first", "1 and 2", "last", "direct cause", "During handling"):
        assert word in record.text
    assert "first" in "".join(traceback.format_exception(result))


def test_from_none_hides_the_context():
    try:
        try:
            raise KeyError("hidden")
        except KeyError:
            raise ValueError("shown") from None
    except ValueError as exc:
        result = there_and_back(exc)
    assert "hidden" not in "".join(traceback.format_exception(result))


def test_cycles_of_causes():
    first, second = ValueError(1), KeyError(2)
    first.__cause__, second.__cause__ = second, first
    result = there_and_back(first)
    assert result.__cause__.__cause__ is result


def test_groups_keep_their_members_with_causes():
    try:
        try:
            raise KeyError("why")
        except KeyError as exc:
            raise TwoArguments(1, 2) from exc
    except TwoArguments as exc:
        member = exc
    group = BaseExceptionGroup("several", [member, ExceptionGroup("inner", [ValueError("v")]), SystemExit(1)])
    result = there_and_back(raised(group))
    assert type(result) is BaseExceptionGroup
    assert result.message == "several"
    bad, inner, leave = result.exceptions
    assert isinstance(bad, RemoteError)
    assert isinstance(bad.__cause__, KeyError)
    assert inner.exceptions[0].args == ("v",)
    assert isinstance(leave, SystemExit)


def test_notes_stay():
    exc = ValueError("x")
    exc.add_note("look here")
    assert there_and_back(exc).__notes__ == ["look here"]


def test_huge_exceptions_are_not_sent_whole():
    record = encode_error(raised(Holder("y" * 20_000_000)))
    assert len(record.exception) + len(record.text) + len(record.traceback) < 1_000_000
    result = decode_error(record)
    assert isinstance(result, RemoteError)
    assert result.message.startswith("yyy")


@pytest.mark.usefixtures("interpreter")
def test_deep_recursion():
    def dive(n):
        dive(n + 1)

    try:
        dive(0)
    except RecursionError as exc:
        record = encode_error(exc)
    result = decode_error(record)
    assert isinstance(result, RecursionError)
    assert len(traceback.extract_tb(result.__traceback__)) <= 128
    assert len(record.traceback) < 20_000


@pytest.mark.usefixtures("interpreter")
def test_an_exception_of_main_is_pickled_by_value_and_alone():
    space = {"__name__": "__main__"}
    exec("class Mine(Exception): pass", space)
    pickling_support.install(space["Mine"])
    exc = space["Mine"]("mine")
    exc.__context__ = TwoArguments(1, 2)
    result = there_and_back(exc)
    assert type(result).__name__ == "Mine"
    assert result.args == ("mine",)
    assert isinstance(result.__context__, RemoteError)


@pytest.mark.usefixtures("interpreter")
def test_what_users_registered_for_their_exceptions_is_used():
    copyreg.pickle(Plain, lambda exc: (Plain, ("by their own",)))
    assert there_and_back(Plain("x")).args == ("by their own",)


@pytest.mark.usefixtures("interpreter")
def test_long_chains_of_context_end():
    exc: BaseException = ValueError(0)
    for i in range(500):
        new = ValueError(i)
        new.__context__ = exc
        exc = new
    assert there_and_back(exc).args == (499,)


def test_text_is_always_encodable():
    assert "\\udc80" in encode_error(ValueError("\udc80")).text


def test_the_exception_itself_is_not_changed():
    exc = raised(ValueError("x"))
    tb = exc.__traceback__
    encode_error(exc)
    assert exc.__traceback__ is tb
    assert exc.__cause__ is None


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (ErrorRecord("m.E", "trace\nm.E: text"), RemoteError),
        (ErrorRecord("m.E", "m.E: text", b"garbage", b"garbage"), RemoteError),
        (ErrorRecord("gnomon.runtime.errors.WorkerLostError", "gone"), errors.WorkerLostError),
        (ErrorRecord("gnomon.runtime.errors.NoSuch", "gone"), RemoteError),
    ],
)
def test_records_made_without_pickle(record, kind):
    result = decode_error(record)
    assert type(result) is kind
    assert "text" in str(result) or "gone" in str(result)


def test_by_reference():
    exc = ValueError()
    assert decode_error(ErrorRecord("ValueError", "", ByReference(exc))) is exc
