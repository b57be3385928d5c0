"""A redacted recording tells nothing that could not be given away; its numbers are the same."""

from __future__ import annotations

import base64
import re
import zlib

import msgpack

from gnomon.profiler import Session
from gnomon.profiler.sessions.session import Bucket, Function, Nodes, Samples, Thread
from gnomon.reports import performance_report
from gnomon.reports.account import account
from gnomon.reports.page import build_page
from gnomon.reports.redaction import redacted
from gnomon.runtime.messages import ErrorRecord
from tests.reports.conftest import T0

#: What must not survive: keys, hosts, addresses, source, paths, texts.
PRIVATE = ("secret-host-7", "customer", "10.0.0", "/home/me", "password", "comm.secret", "my_thread", "secret_function")


def everything(cluster):
    """A recording with something private wherever there is room for it."""
    w = cluster.worker("secret-host-7")
    mark = cluster.mark()
    for i in range(5):
        cluster.run(f"load-customer{i}", w, i, i + 0.5, ok=i > 0)
    cluster.fetch(w, w, 1.0, 1.5)
    cluster.telemetry.append_log("INFO", "secret-host-7 joined from 10.0.0.1", T0 + 1.0)
    error = ErrorRecord(
        "ValueError", "customer4 in /home/me/x.py", "Traceback: password = 1\nValueError: customer4", b""
    )
    cluster.telemetry.append_errors(["load-customer0"], ["load"], w, [error], T0 + 1.0)
    stall = {"cause": "python", "detail": "customer4", "function": "spin", "file": "/home/me/a.py", "line": 3,
             "holder": "my_thread", "stack": [["secret_function", "/home/me/a.py", "3"]], "start": T0 + 1.5,
             "duration": 0.25}  # fmt: skip
    cluster.telemetry.append_report(w, {"stalls": {"agent": [stall]}})
    session = Session(
        meta={"start": T0, "stop": T0 + 1, "interval": 0.01, "samples": 1, "ticks": 1, "missed": 0, "cpu": 0.0,
              "pid": 1, "process": "secret-host-7", "python": "3"},
        functions=(Function("secret_function", "/home/me/f.py", 1, "app"),), nodes=Nodes((-1,), (0,), (1,)),
        buckets=(Bucket(T0, T0 + 1, 1, 0, 0.0, 0.0, 0.0),), threads=(Thread(1, "my_thread", "p"),), labels=("",),
        samples=Samples((0,), (0,), (0,), (0,), (1,)),
    )  # fmt: skip
    packed = zlib.compress(msgpack.packb(session.to_plain()))
    cluster.profiles = {"executor": {"a": packed}}
    cluster.leave(w, 5.5, "secret-host-7 was switched off")
    cluster.now = 6.0
    return mark


def in_bytes(page):
    """All that a page holds: its text, and its recording as it is once unpacked."""
    packed = base64.b64decode(re.search(r'id="recording">([^<]*)<', page).group(1))
    return page.encode() + zlib.decompress(packed)


def test_nothing_private_is_left(cluster):
    mark = everything(cluster)
    recording = cluster.record(mark)
    assert recording.profiles
    assert recording.errors
    assert recording.stalls
    recording.info.update(
        calling_code={"where": "/home/me/x.py", "text": "password = 1", "first": 1, "line": 1, "note": ""},
        machine={"host": "secret-host-7"},
        settings={"comm.secret": "abc"},
        raised="ValueError: customer4",
        versions={"python": "3.11"},
    )
    whole = in_bytes(build_page(recording))
    assert [bad for bad in PRIVATE if bad.encode() not in whole] == []
    less = redacted(recording)
    page = build_page(less)
    assert [bad for bad in PRIVATE if bad.encode() in in_bytes(page)] == []
    assert [bad for bad in PRIVATE if bad.encode() in zlib.decompress(less.dumps())] == []
    assert "were left out on request" in page
    assert (
        "Left out on request: 5 keys, 1 profiles, 1 texts of errors, 1 texts of log lines, 1 stacks of stalls" in page
    )
    assert "The block raised: ValueError" in page
    assert account(less).parts == account(recording).parts
    assert recording.workers[0].name == "secret-host-7"


def test_a_redacted_report_writes_nothing_else(cluster, tmp_path):
    everything(cluster)
    password = "password"  # in the calling code
    with performance_report(tmp_path / "r.html", client=cluster, redact=True, save_recording=True):
        cluster.run(f"load-customer-{password}", 1, 4.0, 4.5)
    written = in_bytes((tmp_path / "r.html").read_text("utf-8")), zlib.decompress((tmp_path / "r.gnomon").read_bytes())
    for data in written:
        assert [bad for bad in (*PRIVATE, str(tmp_path), __file__) if bad.encode() in data] == []
