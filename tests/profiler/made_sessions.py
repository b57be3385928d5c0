"""Sessions made by hand: known stacks, known counts."""

from __future__ import annotations

from gnomon.profiler.sessions.session import REGION, Bucket, Function, Nodes, RegionTime, Samples, Session, Thread

T0 = 1_790_000_000.0
APP, LIBRARY = "/home/me/app/", "/usr/lib/python3.11/site-packages/"

#: The functions that stacks are written with: "main", "parse:12" (line 12), "json.loads".
FUNCTIONS = {
    "main": Function("main", APP + "main.py", 10, "app.main"),
    "parse": Function("parse", APP + "parse.py", 5, "app.parse"),
    "check": Function("Checker.check", APP + "parse.py", 50, "app.parse"),
    "loads": Function("loads", LIBRARY + "jsonlib/__init__.py", 299, "jsonlib"),
    "decode": Function("JSONDecoder.decode", LIBRARY + "jsonlib/decoder.py", 332, "jsonlib.decoder"),
    "scan": Function("scan", LIBRARY + "jsonlib/decoder.py", 343, "jsonlib.decoder"),
    "hook": Function("hook", APP + "main.py", 30, "app.main"),
    "engine": Function("engine.step", REGION, 0, ""),
}


def made(
    *rows: tuple[str, int] | tuple[str, int, int] | tuple[str, int, int, int] | tuple[str, int, int, int, str],
    ticks: int = 100,
    buckets: int = 2,
    threads: tuple[str, ...] = ("MainThread", "pool-1"),
    functions: dict[str, Function] | None = None,
    regions: tuple[RegionTime, ...] = (),
    process: str = "made",
) -> Session:
    """A session of one-second buckets; rows: ("main parse:12", count, bucket, thread, label)."""
    known = {**FUNCTIONS, **(functions or {})}
    names = list(known)
    numbers: dict[tuple[int, int, int], int] = {}
    labels = [""]
    samples = []
    for stack, count, *rest in rows:
        bucket, thread, label = (*rest, *(0, 0, "")[len(rest) :])
        node = -1
        for step in stack.split():
            name, _, line = step.partition(":")
            function = names.index(name)
            key = (node, function, int(line or known[name].first_line + 1))
            node = numbers.setdefault(key, len(numbers))
        if label not in labels:
            labels.append(label)
        samples.append((bucket, thread, labels.index(label), node, count))
    columns = zip(*numbers, strict=True) if numbers else ((), (), ())
    return Session(
        meta={
            "start": T0, "stop": T0 + buckets, "interval": 1 / ticks, "samples": sum(row[4] for row in samples),
            "ticks": ticks * buckets, "missed": 0, "cpu": 0.01, "pid": 4711, "process": process, "python": "3.11.7",
        },
        functions=tuple(known.values()),
        nodes=Nodes(*(tuple(column) for column in columns)),
        buckets=tuple(Bucket(T0 + n, T0 + n + 1, ticks, 0, 0.0, 0.0, 0.005) for n in range(buckets)),
        threads=tuple(Thread(1000 + n, name, process) for n, name in enumerate(threads)),
        labels=tuple(labels),
        samples=Samples(*(tuple(c) for c in zip(*samples, strict=True))) if samples else Samples((), (), (), (), ()),
        regions=regions,
    )  # fmt: skip


def stacks(session: Session) -> dict[str, int]:
    """The session's stacks as "thread|main parse:12" with their counts."""
    names = {function: name for name, function in FUNCTIONS.items()}
    result: dict[str, int] = {}
    for _, thread, _, node, count in zip(*session.samples, strict=True):
        steps: list[str] = []
        while node >= 0:
            function = session.functions[session.nodes.function[node]]
            line = session.nodes.line[node]
            name = names.get(function, function.name)
            steps.insert(0, name if line in (0, function.first_line + 1) else f"{name}:{line}")
            node = session.nodes.parent[node]
        key = f"{session.threads[thread].name}|{' '.join(steps)}"
        result[key] = result.get(key, 0) + count
    return result


def check(session: Session) -> None:
    """What holds for every session."""
    parents, functions, lines = session.nodes
    assert len(parents) == len(functions) == len(lines)
    assert all(-1 <= parent < node for node, parent in enumerate(parents))
    assert len(set(zip(parents, functions, lines, strict=True))) == len(parents)
    assert set(functions) == set(range(len(session.functions)))
    assert all(count > 0 for count in session.samples.count)
    rows = list(zip(*session.samples, strict=True))
    assert len({row[:4] for row in rows}) == len(rows)
    assert session.meta["samples"] == sum(session.samples.count)
    for bucket, thread, label, node, _ in rows:
        assert session.buckets[bucket]
        assert session.threads[thread]
        assert session.labels[label] is not None
        assert 0 <= node < len(parents)
