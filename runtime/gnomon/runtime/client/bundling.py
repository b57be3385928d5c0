"""Converted graphs to what travels: bundles of consecutive tasks pickled together, and the columns of one message.

Contents: Bundled, bundle, columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon.runtime.client.entries import Entries
from gnomon.runtime.client.future import FutureState
from gnomon.runtime.client.graph import Conversion, GraphTask, wire_key
from gnomon.runtime.client.outgoing import Code, Part
from gnomon.runtime.messages import ByReference, Key, Payload, TaskOptions
from gnomon.runtime.protocol import Bundle, dumps_bundle, dumps_index

__all__ = ["bundle", "columns"]

#: Tasks pickled together: more share more (0.7 µs and 26 bytes a task at 64, 1.0 and 32 at 32), and each worker that
#: runs one of them decodes all.
TASKS = 64

#: A bundle above this many bytes is split: its tasks carry data, which should go only where it is needed.
MAX_BUNDLE = 256 << 10

#: A single task above this is refused: a frame of the control plane must hold it.
MAX_TASK = 48 << 20

_INDICES: list[Payload] = [dumps_index(i) for i in range(TASKS)]


def bundle(
    tasks: Mapping[Any, GraphTask], number: Callable[[], int], by_reference: bool
) -> tuple[list[Code], list[int], list[Payload]]:
    """The tasks as code: the blobs, and per task its code and payload.

    Raises BundleError (a TypeError) naming a task that can't be pickled, ValueError for one that is too large.
    """
    codes: list[Code] = []
    task_codes: list[int] = []
    payloads: list[Payload] = []
    keys = list(tasks)
    specs = [task.spec for task in tasks.values()]
    pending = [(start, min(start + TASKS, len(specs))) for start in range(0, len(specs), TASKS)][::-1]
    while pending:
        start, stop = pending.pop()
        entries = Entries(specs[start:stop])
        blob: Payload
        if by_reference:
            blob = ByReference(Bundle(entries))
        else:
            blob = dumps_bundle(entries, keys[start:stop])
            if len(blob) > MAX_BUNDLE and stop - start > 1:
                step = (stop - start + 3) // 4
                pending += [(at, min(at + step, stop)) for at in range(start, stop, step)][::-1]
                continue
            if len(blob) > MAX_TASK:
                raise ValueError(
                    f"the task {keys[start]!r} carries {len(blob) >> 20} MiB of data: "
                    "scatter it, or load it inside a task"
                )
        code = Code(number(), blob)
        codes.append(code)
        task_codes += [code.number] * (stop - start)
        payloads += _INDICES[: stop - start]
    return codes, task_codes, payloads


def columns(
    conversion: Conversion,
    task_codes: Sequence[int],
    payloads: Sequence[Payload],
    outputs: Mapping[Any, FutureState],
    options: Mapping[Any, TaskOptions],
    default: TaskOptions,
    fifo_timeout: float,
    parent_task: int,
) -> Part:
    """The rows of a converted graph. ``outputs`` are the futures of the tasks that are wanted by key."""
    tasks, known = conversion
    row_of: dict[Any, int] = {key: row for row, key in enumerate(tasks)}
    externals: dict[int, int] = {}
    for key, state in known.items():
        row_of[key] = -1 - externals.setdefault(state.id, len(externals))
    keys: list[Key] = [wire_key(key) for key in tasks]
    dependencies = [tuple([row_of[need] for need in task.needs]) for task in tasks.values()]
    future_ids = [0] * len(keys)
    for key, state in outputs.items():
        future_ids[row_of[key]] = state.id
    distinct: dict[TaskOptions, int] = {}
    option_rows: list[int] = []
    if options:
        option_rows = [distinct.setdefault(options.get(key, default), len(distinct)) for key in tasks]
    return Part(
        tuple(keys),
        tuple(task_codes),
        tuple(payloads),
        tuple(dependencies) if any(dependencies) else (),
        tuple(externals),
        tuple(future_ids),
        tuple(distinct) or (default,),
        tuple(option_rows) if len(distinct) > 1 else (),
        fifo_timeout,
        parent_task,
    )
