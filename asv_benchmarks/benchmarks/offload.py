"""Where to decode the user's objects: on the loop, on a thread beside it, or in an executor's process.

An event loop has other work: a ticker here, whose lateness is what decoding costs everybody else. Values of mixed size
arrive together; those of ``threshold`` bytes and more are decoded elsewhere. All of it in one process, but for the
executor's child.
"""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.values import FAMILIES, value
from benchmarks.worker import Crew
from gnomon.runtime.comm import new_event_loop
from gnomon.runtime.messages import PutSegments, PutValues
from gnomon.runtime.protocol import Segment, decode_value, dumps_call, encode_payload, encode_value

#: How many values of which size arrive.
_MIX = ((1_000, 100), (50_000, 20), (2_000_000, 2))
_TICK = 0.001


class _Ticker:
    """The loop's other work: due every millisecond."""

    def __init__(self):
        self.lags = []
        self._task = None

    async def __aenter__(self):
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(5 * _TICK)
        self.lags.clear()
        return self

    async def __aexit__(self, *exc_info):
        await asyncio.sleep(2 * _TICK)  # what holds the loop up now is seen by the next tick
        self._task.cancel()

    async def _run(self):
        while True:
            due = time.perf_counter() + _TICK
            await asyncio.sleep(_TICK)
            self.lags.append(max(0.0, time.perf_counter() - due))


class Decoding:
    """Throughput of decoding, and the lag that it causes.

    Parameters: where the large values are decoded; from how many bytes on that is (0: all of them; inline there is no
    other place); what the values are.
    """

    params = (["inline", "thread", "executor"], [0, 20_000], list(FAMILIES))
    param_names = ("where", "threshold", "family")

    def setup(self, where, threshold, family):
        if where == "inline" and threshold:
            raise NotImplementedError("all is decoded inline, whatever the threshold")
        values = [value(family, size) for size, count in _MIX for _ in range(count)]
        encoded = [encode_value(item) for item in values]
        here, there = [], []
        for item in encoded:
            (there if where != "inline" and item.nbytes >= threshold else here).append(item)
        self.here = [[bytes(frame) for frame in item.frames] for item in here]
        self.there = [[bytes(frame) for frame in item.frames] for item in there]
        self.crew = Crew("process") if where == "executor" else None
        self.pool = ThreadPoolExecutor(1) if where == "thread" else None
        self.run = self.crew.run if self.crew else None
        if self.run is None:
            self.runner = asyncio.Runner(loop_factory=new_event_loop)
            self.run = self.runner.run
        self.run(self._decode())

    def teardown(self, where, threshold, family):
        if self.pool:
            self.pool.shutdown()
        if self.crew:
            self.crew.close()
        else:
            self.runner.close()

    async def _decode(self):
        for frames in self.here:
            decode_value(frames)
            await asyncio.sleep(0)
        if self.pool:
            loop = asyncio.get_running_loop()
            await asyncio.gather(*[loop.run_in_executor(self.pool, decode_value, frames) for frames in self.there])
        elif self.crew:
            await self._decode_in_executor()
