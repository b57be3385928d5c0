"""All that the scheduler knows: collections, and the indices into them. No policy: that is what the other modules are.

Contents: Model.
"""

from __future__ import annotations

from gnomon.runtime.core.clients import ClientState
from gnomon.runtime.core.codes import Code
from gnomon.runtime.core.options import Options
from gnomon.runtime.core.queueing import TaskQueue
from gnomon.runtime.core.settings import Settings
from gnomon.runtime.core.story import Story
from gnomon.runtime.core.task import TaskGroup, TaskPrefix, TaskState
from gnomon.runtime.core.worker import WorkerState
from gnomon.runtime.messages import NO_OPTIONS, Key, Payload, TaskOptions
from gnomon.runtime.messages.names import group_name, prefix_name

__all__ = ["Model"]

#: Prefixes and options that nobody uses are kept for what they have learnt, up to this many.
_KEPT = 10_000


class Model:
    """The state of the scheduler's brain.

    Attributes for the shell:
        placement_wanted: whether ``placement.run`` has something to do.
        stealing_useful: whether ``stealing.balance`` might have.
        workers, clients: by id. names, addresses: workers by name and by address.

    Attributes for the brain:
        now: time of what is being handled.
        tasks: the current definition of each key. by_id: every task that isn't forgotten.
        ready: tasks to be placed by the next pass; entries whose task is no longer ready are skipped.
        queue, no_worker: tasks in these states.
        open: workers that may have room; those found full leave it until a run of theirs ends.
        scattering: data on its way from a client, with the ids of the workers that are to receive it.
        moving: tasks asked back from their worker, by task id; see ``stealing``.
        retiring: workers that are to leave; for each, what was asked from whom to that end (see ``retiring``).
        workers_version: changes whenever the set of workers does.
        generation, generation_time: of the latest graph, see ``arrival``.
    """

    __slots__ = (
        "addresses",
        "backlog_bytes",
        "backlog_seconds",
        "bandwidth",
        "by_id",
        "checking",
        "clients",
        "generation",
        "generation_time",
        "groups",
        "last_base",
        "last_group",
        "log",
        "max_backlog",
        "moving",
        "names",
        "no_worker",
        "now",
        "open",
        "options",
        "placement_wanted",
        "prefixes",
        "queue",
        "ready",
        "retiring",
        "scattering",
        "settings",
        "stamp",
        "stealing_useful",
        "story",
        "tasks",
        "total_threads",
        "unknown_duration",
        "unseen_client",
        "unseen_code",
        "unseen_task",
        "unseen_worker",
        "workers",
        "workers_version",
    )

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.checking = settings.validate
        self.backlog_seconds = settings.backlog_seconds
        self.backlog_bytes = float(settings.backlog_bytes)
        self.max_backlog = settings.max_backlog
        self.bandwidth = settings.bandwidth
        self.unknown_duration = settings.unknown_duration
        self.placement_wanted = False
        self.stealing_useful = False
        self.now = 0.0
        self.tasks: dict[Key, TaskState] = {}
        self.by_id: dict[int, TaskState] = {}
        self.groups: dict[str, TaskGroup] = {}
        self.prefixes: dict[str, TaskPrefix] = {}
        self.options: dict[TaskOptions, Options] = {NO_OPTIONS: Options(NO_OPTIONS)}
        self.workers: dict[int, WorkerState] = {}
        self.names: dict[str, WorkerState] = {}
        self.addresses: dict[str, WorkerState] = {}
        self.clients: dict[int, ClientState] = {}
        self.ready: list[TaskState] = []
        self.queue = TaskQueue()
        self.no_worker: dict[TaskState, None] = {}
        self.open: dict[WorkerState, None] = {}
        self.scattering: dict[TaskState, list[int]] = {}
        self.moving: dict[int, TaskState] = {}
        self.retiring: dict[WorkerState, dict[TaskState, WorkerState]] = {}
        self.total_threads = 0
        self.workers_version = 0
        self.generation = 0
        self.generation_time = float("-inf")
        self.stamp = 0
        self.story = Story(settings.story_length)
        self.log = self.story.entries
        self.last_base = ""
        self.last_group: TaskGroup | None = None
        self.unseen_task = 1
        self.unseen_worker = 1
        self.unseen_client = 1
        self.unseen_code = 1

    def group_of(self, key: Key) -> TaskGroup:
        """The group that a key belongs to, made if need be."""
        base = ""
        if type(key) is str:
            base, _, tail = key.rpartition("-")
            # Neighbours in a graph mostly differ in their last word alone, a number or token.
            if base and base == self.last_base and self.last_group is not None and not tail.isalpha():
                return self.last_group
        name = group_name(key)
        group = self.groups.get(name)
        if group is None:
            group = self._new_group(name)
        if base and not tail.isalpha():
            self.last_base = base
            self.last_group = group
        return group

    def _new_group(self, name: str) -> TaskGroup:
        prefix_key = prefix_name(name)
        prefix = self.prefixes.get(prefix_key)
        if prefix is None:
            if len(self.prefixes) >= _KEPT:
                for idle in [p for p in self.prefixes.values() if p.groups == 0][: _KEPT // 2]:
                    del self.prefixes[idle.name]
            prefix = self.prefixes[prefix_key] = TaskPrefix(prefix_key)
        prefix.groups += 1
        group = self.groups[name] = TaskGroup(name, prefix)
        return group

    def drop_group(self, group: TaskGroup) -> None:
        """The last task of a group is forgotten."""
        del self.groups[group.name]
        group.prefix.groups -= 1
        if self.last_group is group:
            self.last_group = None

    def options_of(self, wish: TaskOptions) -> Options:
        """The shared record of these options."""
        options = self.options.get(wish)
        if options is None:
            if len(self.options) >= _KEPT:
                self.options.clear()
            options = self.options[wish] = Options(wish)
        return options

    def add_task(
        self, key: Key, code: Code | None, payload: Payload, options: Options, priority: tuple[int, int, int]
    ) -> TaskState:
        """A new definition of a key; one before it keeps its futures and dependents but not the name."""
        group = self.group_of(key)
        task_id = self.unseen_task
        self.unseen_task = task_id + 1
        ts = TaskState(task_id, key, group, code, payload, options, priority)
        group.alive += 1
        group.counts[0] += 1
        if code is not None:
            code.references += 1
        self.tasks[key] = ts
        self.by_id[task_id] = ts
        return ts

    def add_code(self, blob: Payload) -> Code:
        """A new blob that the caller names."""
        code = Code(self.unseen_code, blob)
        self.unseen_code += 1
        code.references = 1
        return code

    def workers_named(self, names: tuple[str, ...]) -> list[WorkerState]:
        """The workers that go by one of these addresses, names or hosts, oldest first."""
        wanted = set(names)
        return [
            ws
            for ws in self.workers.values()
            if ws.name in wanted or ws.address in wanted or ws.host in wanted or _host_of(ws.address) in wanted
        ]

    def eligible(self, options: Options) -> list[WorkerState]:
        """The workers that may run tasks with these options; empty if there is none now."""
        if options.eligible_version != self.workers_version:
            options.eligible_version = self.workers_version
            options.eligible = self._find_eligible(options)
        return options.eligible

    def _find_eligible(self, options: Options) -> list[WorkerState]:
        everyone = [ws for ws in self.workers.values() if not ws.retiring]
        able = [ws for ws in everyone if _has_resources(ws, options.resources)] if options.resources else everyone
        if not options.wish.workers:
            return able
        named = {ws.worker_id for ws in self.workers_named(options.wish.workers)}
        chosen = [ws for ws in able if ws.worker_id in named]
        return able if not chosen and options.loose else chosen


def _has_resources(ws: WorkerState, needed: tuple[tuple[str, float], ...]) -> bool:
    return all(ws.resources.get(name, 0.0) >= amount for name, amount in needed)


def _host_of(address: str) -> str:
    """The host part of ``scheme://host:port``."""
    return address.partition("://")[2].rpartition(":")[0].strip("[]")
