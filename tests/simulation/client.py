"""A model of the client's side of its stream: what it asks for at random, and whether what it is told may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.runtime.messages import (
    NO_OPTIONS,
    CancelFutures,
    ErrorRecord,
    Failure,
    ForgetCodes,
    FuturesCancelled,
    FuturesDone,
    FuturesErred,
    FuturesPending,
    ReleaseFutures,
    Request,
    Response,
    RetryFutures,
    ScatterData,
    TaskOptions,
    UpdateGraph,
    WantKeys,
)
from tests.simulation.definitions import Oracle, Outcome
from tests.simulation.scheduler import CLOSED, OPENED, Connection, Scheduler
from tests.simulation.worker import Network, Served
from tests.simulation.world import Link, SimulationError, World

__all__ = ["Client", "Future"]

PENDING, DONE, ERRED, CANCELLED = "pending", "done", "erred", "cancelled"


class Future:
    """One registration of a key.

    ``payload`` is the definition that came with it, empty if none did. ``fresh``: the key was this client's alone and
    cancelled before, so no other definition may answer.
    """

    def __init__(self, future_id: int, key: str, payload: bytes, fresh: bool) -> None:
        self.future_id = future_id
        self.key = key
        self.payload = payload
        self.fresh = fresh
        self.state = PENDING
        self.value: bytes | None = None
        self.gathering = False
        self.request = 0


class Client:
    """One client. The ``shared`` keys may be anybody's, others its own. ``narrow``: it asks for few, over and over."""

    def __init__(
        self,
        world: World,
        oracle: Oracle,
        network: Network,
        scheduler: Scheduler,
        name: str,
        wishes: list[TaskOptions],
        hostile: bool,
        narrow: bool,
    ) -> None:
        self.world = world
        self.oracle = oracle
        self.network = network
        self.scheduler = scheduler
        self.name = name
        self.alive = True
        self.hostile = hostile
        self.futures: dict[int, Future] = {}
        self.quarrels = 0
        self._wishes = wishes
        self._narrow = narrow
        self._chance = world.random(f"client/{name}")
        self._unused_future = 1
        self._unused_request = 1
        self._unused_key = 1
        self._codes: list[int] = []
        self._unused_code = 1
        self._pure_code = 0
        self._cancelled_keys: list[str] = []
        self._redefined: set[str] = set()
        self._answers: dict[int, Callable[[Any], None]] = {}
        self.connection = Connection(world, name, None, self._receive)
        connection = self.connection
        self._up = Link(world, f"{name}/up", lambda batch: scheduler.receive(connection, batch), (50, 2000))
        self._up.send(OPENED)

    # Wishes

    def act(self) -> None:
        """Do one thing that a client may do."""
        chance = self._chance
        if self._narrow:
            chance.choice((self.pure_chain, *[self.flicker] * 4, self.release, self.retry))()
            return
        often = (self.submit, self.submit, self.submit, self.fan_out, self.pure_chain)
        seldom = (self.cancel, self.retry, self.redefine, self.want, self.scatter, self.flicker)
        chance.choice((*often, self.release, self.release, *seldom))()

    def submit(self) -> None:
        """A small random graph, on top of what there is; some keys are not new."""
        chance = self._chance
        brought = []
        if not self._codes or chance.random() < 0.2:
            self._codes.append(self._unused_code)
            brought.append((self._unused_code, f"{self.name}-code-{self._unused_code}".encode()))
            self._unused_code += 1
        mine = [f.future_id for f in self.futures.values() if f.state != CANCELLED]
        externals = tuple(chance.sample(mine, min(len(mine), chance.randint(0, 3))))
        count = chance.randint(1, 10)
        keys: list[str] = []
        rows: list[tuple[int, ...]] = []
        futures: list[int] = []
        payloads: list[bytes] = []
        for i in range(count):
            key, fresh = self._choose_key(keys)
            keys.append(key)
            choices = [*range(i), *(-1 - j for j in range(len(externals)))]
            needs = chance.sample(choices, min(len(choices), chance.choice((0, 0, 1, 1, 2, 3))))
            if needs and chance.random() < 0.05:
                needs.append(needs[0])
            rows.append(tuple(needs))
            payloads.append(self.oracle.define().payload)
            wanted = i == count - 1 or chance.random() < 0.5
            futures.append(self._new_future(key, payloads[i], fresh) if wanted else 0)
        wishes = tuple(dict.fromkeys(chance.choice(self._wishes) for _ in range(2)))
        self._up.send(
            [
                UpdateGraph(
                    tuple(brought),
                    tuple(keys),
                    tuple(chance.choice(self._codes) for _ in keys),
                    tuple(payloads),
                    tuple(rows) if any(rows) else (),
                    externals,
                    tuple(futures),
                    wishes,
                    tuple(chance.randrange(len(wishes)) for _ in keys),
                )
            ]
        )

    def fan_out(self) -> None:
        """One large value that many tasks need: they gather where it is, until others steal them."""
        chance = self._chance
        if not self._codes:
            self.submit()
        count = chance.randint(5, 25)
        keys = [self._new_key() for _ in range(count)]
        payloads = [self.oracle.define(large=i == 0).payload for i in range(count)]
        futures = [0, *[self._new_future(keys[i], payloads[i], True) for i in range(1, count)]]
        rows = ((), *[(0,)] * (count - 1))
        codes = (self._codes[0],) * count
        self._up.send([UpdateGraph((), tuple(keys), codes, tuple(payloads), rows, (), tuple(futures))])

    def pure_chain(self) -> None:
        """A chain that other clients bring as well, in the same words; of its parts a random few are wanted."""
        chance = self._chance
        group = chance.randint(0, 2)
        keys = [f"pure-{group}-{i}" for i in range(chance.randint(1, 6))]
        payloads = [self.oracle.define_pure(key) for key in keys]
        wanted = [chance.random() < 0.3 for _ in keys[1:]] + [True]
        futures = [self._new_future(keys[i], payloads[i], False) if wanted[i] else 0 for i in range(len(keys))]
        rows = tuple((i - 1,) if i else () for i in range(len(keys)))
        self._pure_code = self._pure_code or self._unused_code
        brought: tuple[tuple[int, bytes], ...] = ()
        if self._pure_code not in self._codes:
            self._codes.append(self._pure_code)
            self._unused_code += 1
            brought = ((self._pure_code, b"pure"),)
        codes = (self._pure_code,) * len(keys)
        options = (TaskOptions(retries=3),) if self._narrow else (NO_OPTIONS,)
        self._up.send([UpdateGraph(brought, tuple(keys), codes, tuple(payloads), rows, (), tuple(futures), options)])

    def redefine(self) -> None:
        """Give keys that failed another definition, without a word to the old."""
        futures = self._some(ERRED, 2)
        if futures and self._codes:
            keys = tuple(dict.fromkeys(f.key for f in futures))
            self._redefined.update(keys)
            payloads = tuple(self.oracle.define().payload for _ in keys)
            wanted = tuple(self._new_future(key, payload, False) for key, payload in zip(keys, payloads, strict=True))
            self._up.send([UpdateGraph((), keys, (self._codes[0],) * len(keys), payloads, (), (), wanted)])

    def _new_key(self) -> str:
        self._unused_key += 1
        return f"{self.name}-{self._unused_key % 3}-{self._unused_key}"

    def _choose_key(self, taken: list[str]) -> tuple[str, bool]:
        chance = self._chance
        draw = chance.random()
        if draw < 0.1 and self._cancelled_keys:
            key = chance.choice(self._cancelled_keys)
            if key not in taken:
                self._cancelled_keys.remove(key)
                return key, True
        elif draw < 0.2:
            key = f"shared-{chance.randint(0, 15)}"
            if key not in taken:
                return key, False
        return self._new_key(), True

    def _new_future(self, key: str, payload: bytes, fresh: bool) -> int:
        future_id = self._unused_future
        self._unused_future += 1
        self.futures[future_id] = Future(future_id, key, payload, fresh)
        return future_id

    def _some(self, state: str | None = None, most: int = 4) -> list[Future]:
        futures = [f for f in self.futures.values() if state is None or f.state == state]
        return self._chance.sample(futures, min(len(futures), self._chance.randint(1, most)))

    def release(self) -> None:
        """Let go of some futures."""
        self.release_all(self._some())

    def release_all(self, futures: list[Future]) -> None:
        """Let go of these."""
        for future in futures:
            del self.futures[future.future_id]
        if futures:
            self._up.send([ReleaseFutures(tuple(f.future_id for f in futures))])

    def cancel(self) -> None:
        """Cancel some; sometimes the same key is defined anew at once."""
        futures = self._some(PENDING, 2)
        if not futures:
            return
        force = self._chance.random() < 0.2
        self._up.send([CancelFutures(tuple(f.future_id for f in futures), force, "cancelled", "by a client")])
        for future in futures:
            future.state = CANCELLED
            del self.futures[future.future_id]
            others = [f for f in self.futures.values() if f.key == future.key]
            if future.fresh and not others and future.key not in self._redefined:
                self._cancelled_keys.append(future.key)
        if self._chance.random() < 0.5:
            self.submit()

    def retry(self) -> None:
        """Have failed ones run again."""
        futures = self._some(ERRED)
        if futures:
            self._up.send([RetryFutures(tuple(f.future_id for f in futures))])

    def want(self) -> None:
        """Register interest in a key by name, known or not."""
        key = f"shared-{self._chance.randint(0, 15)}"
        self._up.send([WantKeys((key,), (self._new_future(key, b"", False),))])

    def flicker(self) -> None:
        """Want a part of a chain, let go of it, want it again in quick succession: its runs overlap."""
        chance = self._chance
        ends = [f.key for f in self.futures.values() if f.key.startswith("pure") and f.payload and f.state == DONE]
        group, _, length = chance.choice(ends or ["pure-0-0"]).rpartition("-")
        if length == "0":
            self.pure_chain()  # there is none of which a part was released
            return
        key = f"{group}-{chance.randint(0, int(length) - 1)}"
        pause = chance.randint(200, 5000)
        for i in range(chance.randint(2, 8)):
            self.world.after(i * pause, self._want_anew, key)

    def _want_anew(self, key: str) -> None:
        if self.alive:
            self.release_all([f for f in self.futures.values() if f.key == key and not f.payload])
            self._up.send([WantKeys((key,), (self._new_future(key, b"", False),))])

    def scatter(self) -> None:
        """Bring data: small inside the message, large to workers."""
        self._unused_key += 1
        key = f"{self.name}-data-{self._unused_key}"
        future_id = self._new_future(key, b"", False)
        small = self._chance.random() < 0.5
        value = f"data {key}".encode()
        number = self._unused_request
        self._unused_request += 1
        if not small:
            future = self.futures[future_id]
            future.request = number
            self._answers[number] = lambda rows: self._send_values(future, rows[0])
        copies = self._chance.choice((1, 1, 2, 0))
        nbytes = len(value) if small else 100_000
        self._up.send([ScatterData(number, (key,), (future_id,), (nbytes,), (value if small else None,), (), copies)])

    def _send_values(self, future: Future, row: tuple[int, int, tuple[str, ...]]) -> None:
        """Send a value to the workers that are to hold it; if none takes it, the future is of no use."""
        task_id, attempt, addresses = row
        left = [len(addresses), 0]

        def answered(taken: bool) -> None:
            left[0] -= 1
            left[1] += taken
            if left == [0, 0] and self.alive and future.future_id in self.futures:
                del self.futures[future.future_id]
                self._up.send([CancelFutures((future.future_id,), True, "lost", "no worker took it")])

        for address in addresses:
            self.network.put(address, task_id, attempt, b"scattered", answered)

    def leave(self) -> None:
        """Close the stream without a word."""
        self.alive = False
        self.world.trace(self.name, "leaves")
        self.connection.down.cut()
        self._up.cut(CLOSED)

    def forget_codes(self) -> None:
        """The last word of a tidy client."""
        self._up.send([ForgetCodes(tuple(self._codes))])
        self._codes = []

    # News

    def _receive(self, batch: list[Any]) -> None:
        if not self.alive:
            return
        self.world.trace(self.name, batch)
        self.world.count(batch)
        for message in batch:
            kind = type(message)
            if kind is FuturesDone:
                for future_id, value in zip(message.future_ids, message.values, strict=True):
                    self._done(future_id, value)
            elif kind is FuturesErred:
                for future_id, row in zip(message.future_ids, message.error_rows, strict=True):
                    self._erred(future_id, message.errors[row])
            elif kind is FuturesCancelled:
                for future_id in message.future_ids:
                    self._cancelled(future_id, message)
            elif kind is FuturesPending:
                for future_id in message.future_ids:
                    self._pending(future_id)
            elif kind is Failure:
                self._answers.pop(message.request_id)
                for future in [f for f in self.futures.values() if f.request == message.request_id]:
                    del self.futures[future.future_id]
            elif kind is Response:
                answer = self._answers.pop(message.request_id, None)
                if answer is not None:
                    answer(message.result)

    def _promise(self, future: Future) -> Outcome:
        ident = self.connection.ident
        assert ident is not None
        promise = self.oracle.promises.get((ident, future.future_id))
        if promise is None:
            raise SimulationError(f"{self.name}: future {future.future_id} of {future.key} stands for nothing")
        if future.fresh and promise.payload != future.payload:
            raise SimulationError(f"{self.name}: another definition of {future.key} answers for {future.payload!r}")
        return promise

    def _done(self, future_id: int, value: bytes | None) -> None:
        future = self.futures.get(future_id)
        if future is None:
            return
        if future.state == DONE:
            raise SimulationError(f"{self.name}: {future.key} is done a second time, and wasn't said to be pending")
        if self._promise(future).hopeless:
            raise SimulationError(f"{self.name}: {future.key} is done, but it always fails")
        future.state = DONE
        if value is not None:
            self._check(future, value)
        elif not future.gathering:
            self._gather(future)

    def _pending(self, future_id: int) -> None:
        future = self.futures.get(future_id)
        if future is None:
            return
        if future.state == DONE and not self.hostile and future.payload not in self._promise(future).blamed:
            # (One that is to blame may be a value that can't leave its worker: that is made anew.)
            raise SimulationError(f"{self.name}: {future.key} is computed again, though nothing was lost")
        future.state = PENDING

    def _check(self, future: Future, value: bytes) -> None:
        expected = self._promise(future).value
        if value != expected:
            raise SimulationError(f"{self.name}: {future.key} is {value!r} instead of {expected!r}")
        future.value = value

    def _erred(self, future_id: int, error: Any) -> None:
        future = self.futures.get(future_id)
        if future is None:
            return
        future.state = ERRED
        if (self.connection.ident, future_id) not in self.oracle.promises:
            return  # the task was gone as soon as it had come; that it is cancelled comes next
        promise = self._promise(future)
        if error.type_name == "ValueError" and error.text.encode() in promise.blamed:
            payload = error.text.encode()
            wish = self.oracle.wishes[payload]
            if not self.oracle.definitions[payload].trapped and self.oracle.raised.get(payload, 0) <= wish.retries:
                raise SimulationError(f"{self.name}: {future.key} failed with retries left")
            return
        if "CommError" in error.type_name and self.network.was_blocked:
            return
        if "KilledWorker" in error.type_name:
            allowed = self.scheduler.model.settings.allowed_failures
            if any(self.oracle.deaths.get(task_id, 0) > allowed for task_id in promise.task_ids):
                return
        raise SimulationError(f"{self.name}: {future.key} failed for no good reason: {error}")

    def _cancelled(self, future_id: int, message: FuturesCancelled) -> None:
        future = self.futures.get(future_id)
        if future is None:
            return
        ident = self.connection.ident
        promise = self.oracle.promises.get((ident or 0, future_id))
        future.state = CANCELLED
        if promise is None or (ident or 0, future_id) in self.oracle.cancelled:
            return
        if message.reason != "lost" or not promise.brought:
            raise SimulationError(f"{self.name}: {future.key} was cancelled for no good reason: {message}")

    # Values

    def _gather(self, future: Future) -> None:
        """Get a large value, by asking where it is."""
        future.gathering = True
        number = self._unused_request
        self._unused_request += 1
        self._answers[number] = lambda rows: self._located(future, rows[0])
        self._up.send([Request(number, "locate", {"future_ids": (future.future_id,)})])

    def _located(self, future: Future, row: tuple[int, int, int, tuple[str, ...], bytes | None]) -> None:
        _, task_id, attempt, addresses, value = row
        future.gathering = False
        if future.state != DONE or future.future_id not in self.futures:
            return
        if value is not None:
            self._check(future, value)
        elif addresses:
            future.gathering = True
            address = self._chance.choice(addresses)
            rows = [(task_id, attempt)]
            self.network.get(
                self.name, address, rows, lambda values: self._fetched(future, task_id, attempt, address, values)
            )

    def _fetched(self, future: Future, task_id: int, attempt: int, address: str, values: list[Served] | None) -> None:
        future.gathering = False
        if not self.alive or future.future_id not in self.futures:
            return
        if values is not None and isinstance(values[0], bytes):
            self._check(future, values[0])
            return
        if values is not None and isinstance(values[0], ErrorRecord):
            future.value = b"trapped"
            if values[0].text.encode() not in self._promise(future).blamed:
                raise SimulationError(f"{self.name}: {future.key} can't leave {address}: {values[0]}")
            return
        self.quarrels += 1
        if self.quarrels > 5000:
            raise SimulationError(f"{self.name} can't get {future.key} from {address}")
        arguments = {"task_ids": (task_id,), "attempts": (attempt,), "holder": address, "lost": values is not None}
        self._up.send([Request(0, "missing", arguments)])
        future.gathering = True
        self.world.after(10_000, self._gather_again, future)

    def _gather_again(self, future: Future) -> None:
        future.gathering = False
        if self.alive and future.state == DONE and future.future_id in self.futures:
            self._gather(future)
