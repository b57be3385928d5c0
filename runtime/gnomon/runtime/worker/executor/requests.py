"""Requests to an executor: functions that a client wants run in it, beside the tasks.

``run`` takes ``code``, the pickled ``(function, args, kwargs)``, and is answered by the pickled result; given by
reference, it is answered by reference. With ``wait`` false the answer, a pickled None, comes before the call. Like all
user code it runs on a thread of the default executor: after runs under way, before queued ones.

Contents: answer.
"""

from __future__ import annotations

from types import CoroutineType
from typing import Any

from gnomon.runtime.messages import ByReference, Failure, Message, Request, Response
from gnomon.runtime.protocol import dumps_code, loads_code
from gnomon.runtime.worker.executor.failing import record_failure
from gnomon.runtime.worker.executor.outgoing import Outgoing
from gnomon.runtime.worker.executor.running import finish_coroutine

__all__ = ["answer"]


def answer(request: Request, outgoing: Outgoing) -> None:
    """Do what is asked, on the calling thread, and answer. Raises nothing."""
    early = request.method == "run" and not request.arguments.get("wait", True)
    if early:
        _send(outgoing, Response(request.request_id, dumps_code(None)))
    try:
        if request.method != "run":
            raise ValueError(f"an executor knows no request {request.method!r}")
        reply: Message = Response(request.request_id, _run(request.arguments["code"]))
    except BaseException as exc:  # noqa: BLE001 - whatever the user's code raises is the answer
        reply = Failure(request.request_id, record_failure(exc))
    if not early:
        _send(outgoing, reply)


def _run(code: bytes | ByReference) -> Any:
    function, args, kwargs = loads_code(code)
    result = function(*args, **kwargs)
    if type(result) is CoroutineType:
        result = finish_coroutine(result)
    return ByReference(result) if isinstance(code, ByReference) else dumps_code(result)


def _send(outgoing: Outgoing, message: Message) -> None:
    outgoing.add(message)
    outgoing.flush()
