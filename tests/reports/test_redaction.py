"""A redacted recording tells nothing that could not be given away; its numbers are the same."""

from __future__ import annotations

from gnomon.reports.account import account
from gnomon.reports.page import build_page
from gnomon.reports.redaction import redacted


def test_nothing_private_is_left(cluster):
    w = cluster.worker("secret-host-7")
    mark = cluster.mark()
    for i in range(5):
        cluster.run(f"load-customer{i}", w, i, i + 0.5)
    cluster.telemetry.append_log("INFO", "secret-host-7 joined from 10.0.0.1", 1_790_000_001.0)
    cluster.now = 6.0
    recording = cluster.record(mark)
    recording.info.update(
        calling_code={"where": "/home/me/x.py", "text": "password = 1", "first": 1, "line": 1, "note": ""},
        machine={"host": "secret-host-7"},
        settings={"comm.secret": "abc"},
        raised="ValueError: customer4",
        versions={"python": "3.11"},
    )
    less = redacted(recording)
    data = build_page(less)
    for bad in ("secret-host-7", "customer", "10.0.0", "/home/me", "password", "comm.secret"):
        assert bad not in data
        assert bad.encode() not in less.dumps()
    assert "were left out on request" in data
    assert "The block raised: ValueError" in data
    assert account(less).parts == account(recording).parts
    assert recording.workers[0].name == "secret-host-7"
