"""Where to decode the user's objects: on the loop, on a thread beside it, or in an executor's process.

An event loop has other work: a ticker here, whose lateness is what decoding costs everybody else. Values of mixed size
arrive together; all of them or only the large ones are decoded elsewhere. It is one process, but for the executor's
child.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.crew import Crew
from benchmarks.values import FAMILIES, value
from gnomon.runtime.comm import new_event_loop
from gnomon.runtime.protocol import Segment, decode_value, encode_payload, encode_value

#: How many values of which size arrive.
_MIX = ((1_000, 100), (50_000, 10), (500_000, 2))

#: Bytes of "from 20 kB".
_THRESHOLD = 20_000

#: Seconds between ticks of the loop's other work.
_TICK = 0.001


class Decoding:
    """Throughput of decoding, and the lag that it causes.

    Parameters: where values are decoded, all of them or those of so many bytes and more, with the rest inline; and
    what the values are.
    """

    params = (["inline", "thread", "thread from 20 kB", "executor", "executor from 20 kB"], list(FAMILIES))
    param_names = ("where", "family")

    def setup(self, where, family):
        place, _, limit = where.partition(" from ")
        threshold = _THRESHOLD if limit else 0
        values = [value(family, size) for size, count in _MIX for _ in range(count)]
        large = [place != "inline" and encode_value(item).nbytes >= threshold for item in values]
        self.here = [_frames(item) for item, far in zip(values, large, strict=True) if not far]
        there = [item for item, far in zip(values, large, strict=True) if far]
        self.there = [encode_payload(item) if place == "executor" else _frames(item) for item in there]
        self.pool = ThreadPoolExecutor(1) if place == "thread" else None
        self.crew = Crew("process") if place == "executor" else None
        self.runner = None if self.crew else asyncio.Runner(loop_factory=new_event_loop)
        self.run = (self.crew or self.runner).run
        self.lags = []
        self.ticker = self.run(self._start())
        self.run(self._decode())

    def teardown(self, where, family):
        self.run(self._stop())
        if self.pool:
            self.pool.shutdown()
        (self.crew or self.runner).close()
        for payload in self.there:
            if isinstance(payload, Segment):
                payload.close()

    def time_decode(self, where, family):
        self.run(self._decode())

    def track_lag(self, where, family):
        """The longest that a tick was late while values were decoded."""
        return self.run(self._watched()) * 1e3

    track_lag.unit = "ms"

    async def _start(self):
        return asyncio.get_running_loop().create_task(self._tick())

    async def _stop(self):
        self.ticker.cancel()

    async def _tick(self):
        while True:
            due = time.perf_counter() + _TICK
            await asyncio.sleep(_TICK)
            self.lags.append(max(0.0, time.perf_counter() - due))

    async def _watched(self):
        await asyncio.sleep(5 * _TICK)  # the ticks that were missed while the loop did not run
        self.lags.clear()
        await self._decode()
        await asyncio.sleep(2 * _TICK)  # what held the loop up at the end is seen by the next tick
        return max(self.lags)

    async def _decode(self):
        jobs = []
        if self.pool:
            loop = asyncio.get_running_loop()
            jobs = [loop.run_in_executor(self.pool, decode_value, frames) for frames in self.there]
        elif self.crew:
            jobs = [asyncio.ensure_future(self.crew.measure(self.there))]
        for frames in self.here:
            decode_value(frames)
            await asyncio.sleep(0)
        await asyncio.gather(*jobs)


def _frames(item):
    """A value's frames as they arrive, apart from the value."""
    return [bytearray(frame) for frame in encode_value(item).frames]
