"""What the demo computes, without a cluster."""

from __future__ import annotations

import ast

from gnomon.runtime.cli.workloads.stdlib import Counts, count_nodes, find_files, merge_counts


def test_files_of_the_standard_library():
    paths = find_files()
    assert len(paths) > 500
    assert any(path.endswith("/asyncio/tasks.py") for path in paths)
    assert not [path for path in paths if "site-packages" in path]


def test_count(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x = 1\ny = x + 2\n")
    counts = count_nodes(str(path))
    assert counts.files == 1
    assert counts.lines == 2
    assert counts.nodes["Assign"] == 2
    assert sum(counts.nodes.values()) == sum(1 for _ in ast.walk(ast.parse(path.read_text())))


def test_files_that_are_no_source(tmp_path):
    for content in (b"def (", b"x = \x00", b"\xff\xfe", b"# coding: nonsense\n"):
        path = tmp_path / "bad.py"
        path.write_bytes(content)
        counts = count_nodes(str(path))
        assert (counts.files, counts.unparsed, counts.nodes) == (1, 1, {})


def test_merge():
    merged = merge_counts([Counts(1, 0, 10, {"Name": 2}), Counts(2, 1, 5, {"Name": 1, "Call": 4})])
    assert merged == Counts(3, 1, 15, {"Name": 3, "Call": 4})
