"""``performance_report``: records what a cluster does during a block, and writes the page when it ends.

The page is built in the calling process; the scheduler only hands out pages of its records. It is written also when the
block raises, and nothing that goes wrong while writing hides the block's own exception.

Contents: performance_report.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Generator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from gnomon.reports.collect import Ask, collect
from gnomon.reports.collect.calling_code import calling_code
from gnomon.reports.collect.environment import environment
from gnomon.reports.page import build_page
from gnomon.reports.recording import Recording
from gnomon.reports.redaction import redacted
from gnomon.runtime.client import default_client

__all__ = ["performance_report"]


class performance_report:  # noqa: N801 - reads as a function that can be used in a with statement
    """Write a report of what the cluster does during the block.

        with performance_report("report.html"):
            ...

    With an asynchronous client: ``async with``. After the block ``recording`` holds the data of the page. A file name
    that ends in ``.gnomon`` saves the recording alone.

    Arguments:
        filename: path or URL to write to (URLs by fsspec).
        stacklevel: which caller's code to show; 1 is the one with the ``with`` statement.
        mode: where the page takes its scripts from; the page holds them itself, so ``"inline"`` is all there is.
        storage_options: passed to fsspec with a URL.
        client: the client to ask; the default client if not given.
        redact: leave out calling code, keys, hosts, addresses, profiles and texts of errors and logs.
        save_recording: also write the recording beside the page, under the same name with the ending ``.gnomon``.

    Raises ValueError without a client or for another mode; what goes wrong when the page is written raises at the end
    of the block, or is a RuntimeWarning if the block itself raised.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str] = "gnomon-report.html",
        stacklevel: int = 1,
        mode: str | None = None,
        storage_options: dict[str, Any] | None = None,
        client: Any = None,
        redact: bool = False,
        save_recording: bool = False,
    ) -> None:
        if mode not in (None, "inline"):
            raise ValueError(f"mode={mode!r}: a report holds its scripts itself and opens offline; use mode='inline'")
        self.filename = os.fspath(filename)
        self.recording: Recording | None = None
        self._stacklevel = stacklevel
        self._storage_options = storage_options
        self._client = client
        self._redact = redact
        self._save_recording = save_recording
        self._mark: dict[str, Any] = {}
        self._info: dict[str, Any] = {}

    def __enter__(self) -> performance_report:
        client = self._find_client()
        if client.asynchronous:
            raise TypeError("the client is asynchronous: use `async with performance_report(...)`")
        self._note_caller(sys._getframe(1))
        self._mark = client.request("telemetry_mark")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._note_outcome(error)
            self.recording = _ask(collect(self._mark), self._client)
            self._write(self.recording)
        except Exception as exc:
            if error is None:
                raise
            self._warn(exc)

    async def __aenter__(self) -> performance_report:
        client = self._find_client()
        self._note_caller(sys._getframe(1))
        self._mark = await _answer(client.request("telemetry_mark"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._note_outcome(error)
            self.recording = await _ask_async(collect(self._mark), self._client)
            await asyncio.to_thread(self._write, self.recording)
        except Exception as exc:
            if error is None:
                raise
            self._warn(exc)

    def _find_client(self) -> Any:
        if self._client is None:
            self._client = default_client()
        return self._client

    def _note_caller(self, frame: FrameType | None) -> None:
        self._info = {"calling_code": calling_code(frame, self._stacklevel)._asdict(), **environment()}

    def _note_outcome(self, error: BaseException | None) -> None:
        if error is not None:
            self._info["raised"] = "".join(traceback.format_exception_only(error)).strip()

    def _warn(self, exc: Exception) -> None:
        """The report could not be made, and the block's own exception must not be hidden by that."""
        warnings.warn(
            f"the performance report {self.filename!r} was not written: {exc!r}", RuntimeWarning, stacklevel=3
        )

    def _write(self, recording: Recording) -> None:
        recording.info.update(self._info)
        if self._redact:
            recording = self.recording = redacted(recording)
        if self.filename.endswith(".gnomon"):
            self._write_bytes(self.filename, recording.dumps())
            return
        self._write_bytes(self.filename, build_page(recording).encode("utf-8"))
        if self._save_recording:
            self._write_bytes(self.filename.removesuffix(".html") + ".gnomon", recording.dumps())

    def _write_bytes(self, filename: str, data: bytes) -> None:
        if "://" not in filename:
            Path(filename).write_bytes(data)
            return
        import fsspec

        with fsspec.open(filename, "wb", **(self._storage_options or {})) as file:
            file.write(data)


def _ask(conversation: Generator[Ask, Any, Recording], client: Any) -> Recording:
    """Hold the conversation with a client that waits."""
    answer = None
    while True:
        try:
            ask = conversation.send(answer)
        except StopIteration as stop:
            result: Recording = stop.value
            return result
        try:
            answer = client.request(ask.method, **ask.arguments)
        except Exception:
            if not ask.optional:
                raise
            answer = None


async def _ask_async(conversation: Generator[Ask, Any, Recording], client: Any) -> Recording:
    """Hold the conversation with a client of either kind."""
    answer = None
    while True:
        try:
            ask = conversation.send(answer)
        except StopIteration as stop:
            result: Recording = stop.value
            return result
        try:
            answer = await _answer(client.request(ask.method, **ask.arguments))
        except Exception:
            if not ask.optional:
                raise
            answer = None


async def _answer(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
