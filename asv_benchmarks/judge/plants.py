"""Slow-downs to be planted, so that it is known what the gate's verdicts catch.

Each repeats work where the product does it: 3 of 10 times a step is done twice, or it is done several times over. Where
a function calls itself for that, those calls count, so that it is 3 of 13. They are edits of the source by what stands
there, not by line, and apply to any commit that still has those lines.

Contents: Edit, Plant, PLANTS, apply_plant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["PLANTS", "Edit", "Plant", "apply_plant"]

SOURCES = ("runtime", "profiler", "reports")


@dataclass(frozen=True, slots=True)
class Edit:
    """A text in one file that another one takes the place of. ``file`` is the end of a path."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Plant:
    """A slow-down and who has to see it."""

    name: str
    what: str
    edits: tuple[Edit, ...]
    named: str
    """A regular expression: one of the benchmarks called slower must match it, or the verdict missed the plant."""
    parts: tuple[str, ...] = ("times", "counters")
    """The parts of the gate where such benchmarks are."""


PLANTS = (
    Plant(
        "placement",
        "30 % more calls of placement.choose",
        (
            Edit(
                "core/placement.py",
                "    stamp = model.stamp\n",
                "    stamp = model.stamp\n    if stamp % 13 < 3:\n        choose(model, ts)\n",
            ),
        ),
        r"^core\.(Placement|PlacementInstructions|ZeroWorker|Instructions)\.",
    ),
    Plant(
        "framing",
        "30 % more work for each frame read and each batch written",
        (
            Edit(
                "comm/framing.py",
                "        (length,) = _PREFIX.unpack_from(self._buffer, self._start)\n",
                "        _PREFIX.unpack_from(self._buffer, self._start)\n"
                "        (length,) = _PREFIX.unpack_from(self._buffer, self._start)\n",
            ),
            Edit(
                "comm/framing.py",
                "    body = encode(messages)\n",
                "    global _batches\n"
                "    _batches += 1\n"
                "    if _batches % 13 < 3:\n"
                "        encode_batches(messages, limit)\n"
                "    body = encode(messages)\n",
            ),
            Edit("comm/framing.py", "\n\nclass FrameSizeError", "\n_batches = 0\n\n\nclass FrameSizeError"),
        ),
        r"^comm\.(Framing|Instructions)\.",
    ),
    Plant(
        "sampling",
        "30 % more looks at the threads' stacks",
        (
            Edit(
                "sampling/pulse.py",
                "        count = look.take(watched, self.strangers, own)\n",
                "        if self.cadence.ticks % 10 < 3:\n"
                "            look.take(watched, None, own)\n"
                "        count = look.take(watched, self.strangers, own)\n",
            ),
        ),
        r"^profiler\.(Ticks|Instructions)\.",
    ),
    Plant(
        "decoding",
        "30 % more unpickling in decode_value",
        (
            Edit(
                "protocol/values.py",
                "    return pickle.loads(frames[0], buffers=frames[1:])\n",
                "    global _decoded\n"
                "    _decoded += 1\n"
                "    if _decoded % 10 < 3:\n"
                "        pickle.loads(frames[0], buffers=frames[1:])\n"
                "    return pickle.loads(frames[0], buffers=frames[1:])\n",
            ),
            Edit("protocol/values.py", "\n\ndef encode_value(", "\n\n_decoded = 0\n\n\ndef encode_value("),
        ),
        r"^protocol\.(Values\.time_decode\(|Instructions\.track_decode\('values')",
    ),
    Plant(
        "core",
        "10 % more work in the core: each finished run looked up again and again",
        (
            Edit(
                "core/reactor.py",
                "        outbox.record_run(ts)\n        duration = ticks[4 * i + 3] - ticks[4 * i]\n",
                "        for _ in range(16):\n"
                "            by_id.get(task_ids[i])\n"
                "        outbox.record_run(ts)\n        duration = ticks[4 * i + 3] - ticks[4 * i]\n",
            ),
        ),
        r"^core\.(Instructions|ZeroWorker|SmallValues)\.",
    ),
    Plant(
        "message",
        "one message more per task, to its worker",
        (
            Edit(
                "core/transitions.py",
                "    outbox.to_worker(ws.worker_id).compute(ts, ws, duration)\n",
                "    outbox.to_worker(ws.worker_id).compute(ts, ws, duration)\n    outbox.free(ws, 0, 0)\n",
            ),
        ),
        r"\.track_messages\(",
        ("counters",),
    ),
)


def apply_plant(plant: Plant, checkout: Path) -> None:
    """Edit a checkout. Raises ValueError where a text does not stand exactly once in exactly one file."""
    for edit in plant.edits:
        paths = [path for root in SOURCES for path in (checkout / root).rglob(Path(edit.file).name)]
        paths = [path for path in paths if path.as_posix().endswith(f"/{edit.file}")]
        if len(paths) != 1:
            raise ValueError(f"{plant.name}: {len(paths)} files end with {edit.file}")
        text = paths[0].read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise ValueError(f"{plant.name}: {edit.file} has {text.count(edit.old)} times {edit.old!r}")
        paths[0].write_text(text.replace(edit.old, edit.new), encoding="utf-8")
