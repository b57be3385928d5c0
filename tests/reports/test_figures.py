"""The task stream: lanes, level of detail, colours."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from gnomon.reports import palette
from gnomon.reports.figures import Lane, lanes, rectangles, task_stream


def test_every_thread_has_a_lane(cluster):
    a = cluster.worker("a", nthreads=2)
    cluster.worker("idle", nthreads=1)
    mark = cluster.mark()
    cluster.run("x-1", a, 0.0, 1.0, thread=5)
    cluster.run("x-2", 77, 0.0, 1.0)
    cluster.now = 2.0
    assert lanes(cluster.record(mark)) == [Lane(0, 0), Lane(0, 5), Lane(1, 0), Lane(-1, 0)]


def test_few_tasks_stand_alone(busy):
    recording = busy(200)
    drawn = rectangles(recording, [0] * len(recording.runs.prefix_names))
    assert (drawn.alone, drawn.merged, len(drawn.left)) == (200, 0, 200)
    assert set(drawn.slot) <= {0, palette.ERRED}


@pytest.mark.parametrize("limit", [100, 2_000])
def test_many_tasks_are_merged_and_counted(busy, limit):
    recording = busy(5_000, mean=0.001)
    drawn = rectangles(recording, [1] * len(recording.runs.prefix_names), limit=limit)
    assert drawn.alone + drawn.merged == 5_000
    assert drawn.merged > 0
    assert len(drawn.left) <= limit + 2 * len(lanes(recording))
    for left, right, bottom, top in zip(drawn.left, drawn.right, drawn.bottom, drawn.top, strict=True):
        assert right >= left
        assert int(bottom) < top <= int(bottom) + 1


def test_a_narrow_view_shows_single_tasks(busy):
    recording = busy(5_000, mean=0.001)
    slots = [1] * len(recording.runs.prefix_names)
    middle = recording.duration // 2
    drawn = rectangles(recording, slots, begin=middle, end=middle + recording.duration // 50, limit=1_000)
    assert drawn.merged == 0
    assert 0 < drawn.alone < 1_000


def test_merged_bars_are_as_high_as_the_thread_was_busy(cluster):
    w = cluster.worker("w")
    mark = cluster.mark()
    for i in range(1_000):
        cluster.run(f"x-{i}", w, i / 100, i / 100 + 0.005)
    cluster.now = 10.0
    drawn = rectangles(cluster.record(mark), [3], limit=10)
    heights = [top - bottom for top, bottom in zip(drawn.top, drawn.bottom, strict=True)]
    assert drawn.merged == 1_000
    assert sum(heights[:8]) / 8 == pytest.approx(0.84 / 2, rel=0.02)


def test_colours_are_stable_and_distinct():
    names = [f"prefix-{i}" for i in range(12)]
    slots = palette.slots(names)
    assert sorted(slots[name] for name in names[:9]) == list(range(9))
    assert all(palette.HATCHED <= slots[name] < palette.GREYED for name in names[9:])
    assert set(palette.slots([f"p-{i}" for i in range(30)]).values()) >= {palette.OTHER}
    assert palette.slots(["parse"])["parse"] == palette.slots(["parse", "count", "sum"])["parse"]


#: What the two main kinds of colour blindness make of linear red, green and blue (Machado and others, 2009).
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
}


def lab(color, matrix):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in
              (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))]  # fmt: skip
    r, g, b = (max(0, min(1, sum(a * v for a, v in zip(row, linear, strict=True)))) for row in matrix)
    xyz = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (
        0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089  # fmt: skip
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("blindness", sorted(BLINDNESS))
@pytest.mark.parametrize("colors", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_every_pair_of_colours_can_be_told_apart(colors, blindness):
    seen = [lab(color, BLINDNESS[blindness]) for color in colors[: palette.HATCHED]]
    assert min(math.dist(one, other) for one, other in itertools.combinations(seen, 2)) > 12


def test_the_figure_has_typed_columns_and_no_text_per_task(busy):
    from bokeh.embed import json_item

    recording = busy(300)
    drawn = rectangles(recording, [0] * len(recording.runs.prefix_names))
    plot = task_stream(recording, drawn)
    source = plot.select_one({"name": "stream-source"})
    assert all(column.dtype.kind in "fu" for column in source.data.values())
    text = json.dumps(json_item(plot))
    assert not any(key in text for key in recording.runs.keys)
    assert plot.lod_threshold is None
