"""The page: offline, escaped, small, and with the numbers in its text."""

from __future__ import annotations

import html.parser
import re

import pytest

from gnomon.reports.account import account
from gnomon.reports.page import build_page

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "$$x$$",
    "</script><script>alert(2)</script>",
    "😀 snow",
    "\"quote' &amp;",
    "x" * 10_000,
]


class Outline(html.parser.HTMLParser):
    """Elements, their attributes, and the text outside scripts and styles."""

    def __init__(self):
        super().__init__()
        self.elements = []
        self.text = []
        self._inside = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag):
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data):
        if not self._inside:
            self.text.append(data)


def outline(page):
    parser = Outline()
    parser.feed(page)
    return parser


def words(page):
    return re.sub(r"\s+", " ", " ".join(outline(page).text))


def test_no_reference_leaves_the_file(busy):
    parsed = outline(build_page(busy(500)))
    for tag, attributes in parsed.elements:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            value = attributes.get(name) or ""
            assert not value or value.startswith(("#", "data:")), (tag, name, value)
    policy = next(a["content"] for t, a in parsed.elements if t == "meta" and a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "http" not in policy
    style = re.findall(r"url\(([^)]*)\)", build_page(busy(5)).split("</style>")[0])
    assert style == []


def test_hostile_names_are_text(cluster):
    w = cluster.worker('<b>"w"</b>$$y$$')
    mark = cluster.mark()
    for i, name in enumerate(HOSTILE):
        cluster.run(name, w, i, i + 0.5, prefix=name, ok=False)
    cluster.run(("tuple", 1), w, 10, 11, prefix="tuple")
    cluster.telemetry.append_log("INFO", "<script>alert(3)</script>", 1_790_000_001.0)
    cluster.now = 12.0
    recording = cluster.record(mark)
    recording.info["raised"] = "ValueError: <img onerror=x>"
    page = build_page(recording)
    parsed = outline(page)
    assert not [tag for tag, attributes in parsed.elements if tag == "img" or "onerror" in attributes]
    assert page.count("</script>") == len([t for t, _ in parsed.elements if t == "script"])
    text = words(page)
    for name in HOSTILE[:5]:
        assert re.sub(r"\s+", " ", name) in text
    assert "('tuple', 1)" in text
    assert len([cell for cell in parsed.text if "x" * 200 in cell]) == 0  # cut where it is shown


@pytest.mark.parametrize(("tasks", "most"), [(10, 1.8e6), (20_000, 3e6)])
def test_size(busy, tasks, most):
    assert len(build_page(busy(tasks, mean=0.002)).encode()) <= most


def test_own_scripts_and_styles_are_small():
    from gnomon.reports.page import build

    assert len(build.own_css().encode()) + len(build.own_js().encode()) <= 100_000


def test_the_summary_is_readable_without_scripts(busy):
    recording = busy(300)
    result = account(recording)
    text = words(build_page(recording))
    assert "Where did the time go?" in text
    for part in ("Computing", "Decoding", "Encoding", "Waiting for data", "Between tasks", "Idle", "Unaccounted"):
        assert part in text
    shown = f"{result.capacity / 1e7:,.3f}"
    assert f"Capacity {shown} 100.0 %" in text
    assert f"+ unaccounted 0.000 s = capacity {shown} s." in text


def column(page, table, index):
    """A column's texts, without the closing row."""
    body = re.search(rf'<table id="table-{table}">.*?<tbody>(.*?)</tbody>', page, re.S).group(1)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [re.sub("<[^>]*>", "", re.findall(r"<td.*?</td>", row, re.S)[index]) for row in rows]


@pytest.mark.parametrize("tasks", [1, 37, 2_000])
def test_what_is_shown_adds_up(busy, tasks):
    page = build_page(busy(tasks))
    for table, amount, share in (("account", 1, 2), ("prefix-share", 2, 3), ("worker-share", 3, None)):
        last = re.search(rf'<table id="table-{table}">.*?<tfoot>(.*?)</tfoot>', page, re.S).group(1)
        closing = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", last, re.S)]
        amounts = [round(float(text.replace(",", "")) * 1000) for text in column(page, table, amount) if text != "-"]
        assert sum(amounts) == round(float(closing[amount].replace(",", "")) * 1000)
        if share is not None:
            assert (
                round(sum(float(text.rstrip(" %")) for text in column(page, table, share) if text != "-"), 6) == 100.0
            )


def test_nothing_is_said_plainly(cluster):
    cluster.worker("w")
    mark = cluster.mark()
    cluster.now = 0.2
    page = build_page(cluster.record(mark))
    text = words(page)
    assert "No task ended in this block (200 ms). Is the computing inside the `with`?" in text
    assert 'id="stream-item"' not in page
    for bad in ("NaN", "Infinity", "nan", "None"):
        assert bad not in re.sub(r"None in the calling process|None of", "", text)


def test_no_workers(cluster):
    assert "No worker was there" in words(build_page(cluster.record(cluster.mark())))


def test_truncation_is_said_in_numbers(make_cluster):
    cluster = make_cluster(length=100)
    w = cluster.worker("w")
    mark = cluster.mark()
    for i in range(250):
        cluster.run(f"x-{i}", w, i, i + 0.5)
    cluster.now = 250.0
    text = words(build_page(cluster.record(mark)))
    assert "Details of 100 of 250 tasks" in text
    assert re.search(r"250\s+100\s+150", text)
    assert "of the capacity is unaccounted" in text


def test_a_block_that_raised_says_so(busy):
    recording = busy(5)
    recording.info["raised"] = "ValueError: no luck"
    assert "The block raised: ValueError: no luck" in words(build_page(recording))


def test_workers_that_left_are_listed(busy):
    text = words(build_page(busy(200)))
    assert "its process was killed by signal 9" in text
    assert "1 of 4 workers left before the end: worker-3." in text


def test_a_page_is_made_again_from_its_file(busy):
    from gnomon.reports import Recording

    recording = busy(100)
    assert words(build_page(Recording.loads(recording.dumps()))) == words(build_page(recording))
