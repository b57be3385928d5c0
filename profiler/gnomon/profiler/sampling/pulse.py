# cython: cdivision=True
"""From one deadline to the next: sleep, look, note what was seen, and reckon what that cost. Compiled.

Beside a busy program a tick comes when the processor's caches hold other things: all that it touches is fetched anew,
and it takes twenty times what ticks in a row take. The program stands still meanwhile. So what happens at every tick is
here, compiled; it touches little, and what needs no object is done without the interpreter. All else is the sampler's,
which is called when there is something to attend to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from gnomon.profiler import clock
from gnomon.profiler.clock import OFFSET
from gnomon.profiler.reading import plain as snapshot
from gnomon.profiler.sampling import alarm
from gnomon.profiler.sampling.cadence import Cadence
from gnomon.profiler.sampling.handover import Handover
from gnomon.profiler.sampling.roster import Roster
from gnomon.profiler.sampling.stacks import Look

__all__ = ["Pulse"]

#: The same as a plain number of C where this is compiled.
_OFFSET = OFFSET

#: Share of one CPU: a process whose stacks stay as they are, and that uses less than this, is idle.
_IDLE = 0.1


class Pulse:
    """What a sampler's thread does at each tick. ``with pulse:`` there is none until the block ends; may be nested.

    ``attend_at``: when the sampler is to be called, whatever a tick finds (wall clock). ``hooked``: whether somebody
    rides on the ticks. ``switch_interval``: the interpreter's, seconds. ``cpu`` (seconds), ``samples``: so far.
    """

    __slots__ = (
        "_alarm",
        "_asked",
        "_attention",
        "_before",
        "_bell",
        "_holds",
        "_lock",
        "_spent",
        "_used",
        "_woke",
        "attend_at",
        "cadence",
        "cpu",
        "handover",
        "hooked",
        "look",
        "roster",
        "samples",
        "strangers",
        "switch_interval",
    )

    def __init__(self, cadence: Cadence, look: Look, roster: Roster, *, every_thread: bool) -> None:
        self.cadence = cadence
        self.look = look
        self.roster = roster
        self.handover = Handover()
        self.strangers: list[int] | None = [] if every_thread else None
        self.hooked = False
        self.attend_at = 0.0
        self.switch_interval = 0.005
        self.cpu = 0.0
        self.samples = 0
        self._lock = threading.RLock()
        self._holds = 0
        self._alarm = alarm.set_alarm()
        self._bell = alarm.bell_of(self._alarm)
        self._woke = 0.0
        self._attention = False  # whether one of those who ride asked for the next tick soon
        self._asked = 0.0  # when it began to wait for the interpreter
        self._used = 0.0
        self._spent = 0.0
        self._before = 0.0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holds += 1

    def __exit__(self, *exception: object) -> None:
        self._holds -= 1
        self._lock.release()

    def run(self, attend: Callable[[float], None], call_hooks: Callable[[float, float], bool]) -> None:
        """Tick until ``stop`` is called.

        ``attend(at)``, called after a tick that found something, holds the pulse; ``call_hooks(due, woke)`` does not,
        and says whether the next tick is wanted soon.
        """
        own = threading.get_ident()
        state = alarm.let_go()
        self._begin()
        ended = self._sleep()
        alarm.take_back(state)
        while not ended:
            due, found = self.cadence.deadline, False
            self._woke = _now()
            # One that is taken at once, and meets no strangers, needs no lock: who holds the pulse can't be at work.
            if snapshot.AT_ONCE and self._holds == 0 and self.strangers is None:
                found = self.tick(self._woke, own)
            else:
                with self:
                    found = self.tick(self._woke, own)
            if found:
                with self:
                    attend(self._woke)
            if self.hooked:
                self._attention = call_hooks(due, self._woke)
            state = alarm.let_go()
            self._reckon()
            ended = self._sleep()
            alarm.take_back(state)

    def stop(self) -> None:
        """End ``run``, or the next one."""
        alarm.ring(self._bell)

    def tick(self, at: float, own: int) -> bool:
        """One look at all threads but the sampler's ``own``; whether there is something to attend to."""
        look = self.look
        weight = self.cadence.tick(at)
        watched = self.roster.watched
        count = look.take(watched, self.strangers, own)
        absent = count < len(watched)
        if self.strangers:
            count += look.take(self.roster.meet(self.strangers), None, own)
            self.strangers.clear()
        self.samples += count
        look.tape.end(at, self.cadence.late, weight)
        return absent or look.renewed or at >= self.attend_at or look.tape.full()

    def _begin(self) -> None:
        """Read the clocks from which ``_reckon`` goes on."""
        self._used, self._spent = clock.process_cpu(), clock.thread_cpu()
        self._before = _now()

    def _sleep(self) -> bool:
        """Sleep until the next tick is due; whether there is to be none."""
        ended = alarm.sleep(self._bell, self.cadence.delay(_now()))
        self._asked = _now()
        return ended

    def _reckon(self) -> None:
        """What the tick cost, and whether the program did anything since the one before: so the next ones come."""
        used, spent = clock.process_cpu(), clock.thread_cpu()
        cost = spent - self._spent
        others = used - self._used - cost
        passed = self._woke - self._before
        self._used, self._spent, self._before = used, spent, self._woke
        self.cpu += cost
        idle = not (self._attention or self.look.changed) and others < _IDLE * self.cadence.base * self.cadence.stretch
        share = others / passed if passed > 0.0 else 1.0
        cost += self.handover.tick(self._woke - self._asked, self.switch_interval)
        self.cadence.spent(cost, idle, share)
        self.look.changed = False
        self._attention = False


def _now() -> float:
    """Wall clock: ``clock.now`` without the interpreter."""
    return clock.perf_counter() + _OFFSET
