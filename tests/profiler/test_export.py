"""What each format says of sessions with known stacks."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from gnomon.profiler import deep, export
from gnomon.profiler.export.collapsed import to_collapsed
from gnomon.profiler.export.flamegraph import to_html
from gnomon.profiler.export.pyinstrument import from_pyinstrument, to_pyinstrument
from gnomon.profiler.export.pyinstrument import to_html as pyinstrument_html
from gnomon.profiler.export.pyinstrument import to_json as pyinstrument_json
from gnomon.profiler.export.speedscope import to_speedscope
from gnomon.profiler.export.text import to_text
from gnomon.profiler.export.words import plain, seconds_text, share_text
from gnomon.profiler.sessions.calltree import by_function, call_tree
from gnomon.profiler.sessions.session import Function, RegionTime
from tests.profiler.made_sessions import REGION, check, made

JSON = "/usr/lib/python3.11/site-packages/jsonlib"
EVIL = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"
HOSTILE = {
    "evil": Function(EVIL, "/tmp/<b>&.py", 3, "<i>evil</i>"),
    "lines": Function("a\nb;c \x1b[31m\x00\x01l7\u2028${data} $title", "/tmp/a;b\n.py", 0, "m"),
    "long": Function("x" * 10_000, "", 1, ""),
    "named": Function(EVIL, REGION, 0, ""),
}


@pytest.fixture
def session():
    return made(
        ("main", 5),
        ("main parse:7", 10),
        ("main parse:8", 20, 1),
        ("main parse:8 loads decode", 40, 1),
        ("main parse:8 loads decode hook", 4, 0, 1),
        ("main engine", 21, 0, 1),
        regions=(RegionTime(0, 1, "engine.step", 7, 0.2, 0.2),),
    )


@pytest.fixture
def hostile():
    return made(
        ("main evil lines", 50),
        ("evil long named", 40, 1, 1),
        threads=(EVIL, "a;b\nc"),
        functions=HOSTILE,
        process=EVIL,
    )


# ----------------------------------------------------------------------------------------------------------------- text


def test_text_tree(session):
    lines = to_text(session, share=0.06).splitlines()
    assert lines[0] == "2.00 s of made"
    assert lines[1] == "100 samples of 2 threads, every 10.0 ms; ticks missed: 0 of 200; cost: 0.5 % of one core"
    tree = lines[4 : lines.index("", 4)]
    assert tree == [
        "   750 ms   75.0 %             thread MainThread of made",
        "   750 ms   75.0 %    50.0 ms  └─ main  /home/me/app/main.py:10",
        "   700 ms   70.0 %     300 ms     └─ parse  /home/me/app/parse.py:5",
        f"   400 ms   40.0 %                   └─ loads  {JSON}/__init__.py:299",
        f"   400 ms   40.0 %     400 ms           └─ JSONDecoder.decode  {JSON}/decoder.py:332",
        "   250 ms   25.0 %             thread pool-1 of made",
        "   250 ms   25.0 %             └─ main  /home/me/app/main.py:10",
        "   210 ms   21.0 %     210 ms     ├─ engine.step  region",
        "  40.0 ms    4.0 %                └─ parse  /home/me/app/parse.py:5",
        f"  40.0 ms    4.0 %                   └─ loads  {JSON}/__init__.py:299",
        f"  40.0 ms    4.0 %                      └─ JSONDecoder.decode  {JSON}/decoder.py:332",
        "  40.0 ms    4.0 %    40.0 ms              └─ (1 smaller)",
    ]  # fmt: skip
    functions = lines[lines.index("", 4) + 1 :]
    assert functions[1].split()[:6] == ["400", "ms", "40.0", "%", "440", "ms"]


def test_text_is_cut_to_the_terminal_and_coloured(session):
    narrow = to_text(session, width=60)
    assert max(len(line) for line in narrow.splitlines()[2:]) == 60
    colored = to_text(session, width=60, color=True)
    assert re.sub(r"\033\[\d+m", "", colored).splitlines()[2:] == narrow.splitlines()[2:]
    assert "\033[31m" in colored
    assert "└" not in to_text(session, unicode=False)
    to_text(session, unicode=False).encode("ascii")


def test_text_of_more_functions_than_asked_for(session):
    lines = to_text(session, functions=2).splitlines()
    assert lines[-1] == "   300 ms   30.0 %             3 more"
    assert "function" not in to_text(session, functions=0)


def test_text_says_that_there_is_nothing():
    assert "No samples" in to_text(made())


def test_text_of_hostile_names(hostile):
    text = to_text(hostile)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "a\\nb;c \\x1b[31m\\x00\\x01l7\\u2028" in text


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"), (2.5e-6, "2.50 µs"), (0.00051, "510 µs"), (0.0123, "12.3 ms"), (0.9999, "1.00 s"),
        (12.34, "12.3 s"), (119.9, "120 s"), (600, "10.0 min"), (86_400, "24.0 h"), (3.6e7, "10,000 h"),
    ],
)  # fmt: skip
def test_seconds_in_words(seconds, expected):
    assert seconds_text(seconds) == expected


def test_words():
    assert share_text(0, 0) == "0.0 %"
    assert plain("é😀 ok") == "é😀 ok"


# ---------------------------------------------------------------------------------------------------- collapsed, files


def test_collapsed(session):
    lines = to_collapsed(session).splitlines()
    assert "MainThread;main (/home/me/app/main.py:10);parse (/home/me/app/parse.py:5) 30" in lines
    assert "pool-1;main (/home/me/app/main.py:10);engine.step 21" in lines
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 100
    assert lines == sorted(lines)


def test_collapsed_hostile_names_stay_one_frame(hostile):
    lines = to_collapsed(hostile).splitlines()
    assert [line.count(";") for line in lines] == [3, 3]
    assert [int(line.rpartition(" ")[2]) for line in lines] == [50, 40]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", "text"), ("a.HTML", "html"), ("b.speedscope.json", "speedscope"), ("f.folded", "collapsed"),
        ("c.pyinstrument.html", "pyinstrument-html"), ("d.pyinstrument.json", "pyinstrument-json"),
        ("e.pyisession", "pyisession"), ("g.profile", "session"),
    ],
)  # fmt: skip
def test_the_file_name_tells_the_format(name, expected):
    assert export.format_of(f"/x/y.txt/{name}") == expected


def test_unknown_formats_are_refused(session, tmp_path):
    with pytest.raises(ValueError, match=r"known endings: \.txt"):
        export.format_of("a.json")
    with pytest.raises(ValueError, match="no format 'gif'"):
        export.render(session, "gif")
    with pytest.raises(ValueError, match="is not text"):
        export.render(session, "session")
    with pytest.raises(ValueError, match="no format is known"):
        export.write(session, tmp_path / "a.json")


@pytest.mark.parametrize("name", sorted(export.FORMATS))
def test_every_format_writes_every_session(name, hostile, tmp_path):
    for number, session in enumerate((made(), hostile)):
        path = tmp_path / f"{number}{export.FORMATS[name].endings[0]}"
        export.write(session, path)
        assert path.stat().st_size > 0 or (name == "collapsed" and number == 0)


# ----------------------------------------------------------------------------------------------------------- speedscope


def check_speedscope(document):
    """The parts of speedscope's documented schema (file-format-schema.json) that a sampled profile uses."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(document) <= {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
    frames = document["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"}
        assert type(frame["name"]) is str
        assert type(frame.get("file", "")) is str
        assert type(frame.get("line", 1)) is int
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(
            type(number) is int and 0 <= number < len(frames) for stack in profile["samples"] for number in stack
        )
        assert all(weight > 0 for weight in profile["weights"])
        assert math.isclose(profile["startValue"] + sum(profile["weights"]), profile["endValue"])


def test_speedscope(session):
    document = json.loads(to_speedscope(session))
    check_speedscope(document)
    main, pool = document["profiles"]
    assert (main["name"], main["endValue"]) == ("MainThread of made", pytest.approx(0.75))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert [[names[number] for number in stack] for stack in main["samples"]] == [
        ["main"], ["main", "parse"], ["main", "parse"], ["main", "parse", "loads", "JSONDecoder.decode"],
    ]  # fmt: skip
    assert main["weights"] == pytest.approx([0.05, 0.1, 0.2, 0.4])
    assert pool["endValue"] == pytest.approx(0.25)
    parse = document["shared"]["frames"][names.index("parse")]
    assert parse == {"name": "parse", "file": "/home/me/app/parse.py", "line": 5}


def test_speedscope_of_odd_sessions(hostile):
    check_speedscope(json.loads(to_speedscope(hostile)))
    check_speedscope(json.loads(to_speedscope(made())))


# --------------------------------------------------------------------------------------------------------- pyinstrument


def test_pyinstrument_session(session):
    theirs = to_pyinstrument(session)
    assert sum(seconds for _, seconds in theirs.frame_records) == pytest.approx(1.0)
    assert theirs.duration == 2.0
    root = theirs.root_frame(trim_stem=False)
    root.self_check()
    times = {}

    def walk(frame, names=()):
        names = (*names, frame.function)
        times[names] = times.get(names, 0) + frame.time
        for child in frame.children:
            walk(child, names)

    for thread in root.children:
        walk(thread)
    assert times["MainThread", "main", "parse"] == pytest.approx(0.7)
    assert times["MainThread", "main", "parse", "loads", "JSONDecoder.decode"] == pytest.approx(0.4)
    assert times["pool-1", "main", "engine.step"] == pytest.approx(0.21)


def test_pyinstrument_json(session):
    document = json.loads(pyinstrument_json(session))
    assert document["sample_count"] == 100
    assert document["root_frame"]["time"] == pytest.approx(1.0)


def test_pyinstrument_page_keeps_hostile_names_inside_their_script(hostile):
    page = pyinstrument_html(hostile)
    assert page.count("</script>") == pyinstrument_html(made(("main", 1))).count("</script>")
    assert "<!--" not in page[page.index("sessionData = ") :]


def test_there_and_back(session):
    back = from_pyinstrument(to_pyinstrument(session))
    check(back)
    there = {
        (row.function.name, row.function.first_line): (row.own, row.total) for row in by_function(call_tree(session))
    }
    here = {(row.function.name, row.function.first_line): (row.own, row.total) for row in by_function(call_tree(back))}
    assert set(here) == set(there)
    for key, times in there.items():
        assert here[key] == pytest.approx(times, abs=0.011)
    assert back.duration == pytest.approx(1.0, abs=0.01)


def test_there_and_back_of_nothing():
    assert from_pyinstrument(to_pyinstrument(made())).samples.count == ()


# ---------------------------------------------------------------------------------------------------------- flame graph


class Page(HTMLParser):
    """Tags, scripts and texts of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.text, self._in = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._in = ""

    def handle_data(self, data):
        if self._in == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)


def data_of(page):
    return json.loads(Page(page).scripts[0])


def test_flame_graph_data_adds_up(session):
    data = data_of(to_html(session))
    samples, nodes, names = data["samples"], data["nodes"], data["functions"]["name"]
    assert sum(samples["value"]) == pytest.approx(1.0)
    assert data["total"] == pytest.approx(1.0)
    assert len(data["slices"]["start"]) == 2
    assert all(-1 <= parent < number for number, parent in enumerate(nodes["parent"]))
    assert [name for _, name in data["threads"]] == ["MainThread of made", "pool-1 of made"]
    assert sum(own for _, _, own in data["modules"]) == pytest.approx(1.0)
    engine = names.index("engine.step")
    assert data["regions"] == {str(engine): [7, 0.2]}
    parse = next(n for n, f in enumerate(nodes["function"]) if names[f] == "parse")
    assert data["lines"][str(parse)] == [[8, 0.6], [7, 0.1]]


def test_flame_graph_loads_nothing_and_hostile_names_are_text(hostile):
    page = to_html(hostile)
    harmless = Page(to_html(made(("main parse hook", 90))))
    parsed = Page(page)
    assert [tag for tag, _ in parsed.tags if tag in ("script", "style", "img", "link", "b", "i")] == [
        "style",
        "script",
        "script",
    ]
    assert {tag for tag, _ in parsed.tags} <= {tag for tag, _ in harmless.tags}
    for _, attributes in parsed.tags:
        assert not {"src", "href", "style", "onload", "onclick"} & set(attributes)
    assert parsed.scripts[1] == harmless.scripts[1]
    policy = next(a["content"] for tag, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert EVIL in data_of(page)["functions"]["name"]
    assert EVIL in "".join(parsed.text)


def test_many_buckets_become_few_slices():
    session = made(*(("main", 50, n) for n in range(1000)), buckets=1000)
    data = data_of(to_html(session))
    assert len(data["slices"]["start"]) <= 300
    assert sum(data["samples"]["value"]) == pytest.approx(500)
    assert data["resolution"] == pytest.approx(4.0)


def test_the_page_says_what_was_put_together_and_what_to_doubt():
    session = made(("main", 19_000), ("main parse", 1), ("main parse hook", 2), ticks=20_000)
    assert "put together as “(n smaller)”: 150 µs" in to_html(session)
    few = made(("main", 3))
    missed = replace(few, meta={**few.meta, "missed": 100})
    assert "Only 3 samples" in to_html(missed)
    assert "100 of 300 ticks were missed (33.3 %)" in to_html(missed)
    assert "badges" not in to_html(made(("main", 100))).partition("</style>")[2]


def test_colours_stay_with_their_modules():
    functions = {f"f{n}": Function(f"f{n}", f"/app/m{n}.py", 1, f"m{n}") for n in range(12)}
    pages = [
        data_of(to_html(made(*((f"f{n}", weight(n)) for n in range(12)), functions=functions)))
        for weight in (lambda n: 10 + n, lambda n: 100 - n)
    ]
    for data in pages:
        slots = [slot for _, slot, _ in data["modules"]]
        assert sorted(slots) == [-1, *range(8)]
    # The heaviest module has the colour that it has alone.
    alone = data_of(to_html(made(("f11", 9), functions=functions)))["modules"]
    assert next(row[1] for row in pages[0]["modules"] if row[0] == "m11") == alone[0][1]


# ----------------------------------------------------------------------------------------------------------------- deep


def busy(turns):
    return sum(step(turn) for turn in range(turns))


def fail_after(result):
    raise KeyError(result)


def step(turn):
    return sum(i * turn for i in range(200))


@pytest.mark.parametrize(("turns", "interval"), [(3000, 0.0005), (30, 1e-7)])
def test_deep_profile_begins_at_the_function(turns, interval):
    """Also where it is seen to start and stop, as it is at each call of the shortest interval."""
    result, data = deep.profile(busy, (turns,), interval=interval)
    assert result == busy(turns)
    theirs = deep.load(data)
    assert theirs.frame_records
    stacks = [[entry.split("\x00")[0] for entry in stack] for stack, _ in theirs.frame_records]
    assert all(len(stack) == 1 or stack[1] == "busy" for stack in stacks)
    assert any("step" in stack for stack in stacks)
    assert theirs.target_description == "busy"
    session = from_pyinstrument(theirs)
    check(session)
    tree = call_tree(session)
    assert {row.function.name: row.total for row in by_function(tree)}["busy"] >= 0.9 * tree.seconds


def test_deep_profile_passes_arguments_and_errors_on():
    assert deep.profile(dict, ([("a", 1)],), {"b": 2})[0] == {"a": 1, "b": 2}
    with pytest.raises(ZeroDivisionError):
        deep.profile(lambda: 1 / 0)
    assert sys.getprofile() is None


def test_a_recording_keeps_the_profile_of_a_failing_block():
    recording = deep.Recording(interval=0.0005)
    with pytest.raises(KeyError), recording:
        fail_after(busy(2000))
    stacks = [[entry.split("\x00")[0] for entry in stack] for stack, _ in deep.load(recording.data).frame_records]
    assert any(stack[1:3] == ["test_a_recording_keeps_the_profile_of_a_failing_block", "busy"] for stack in stacks)


def test_recordings_may_be_nested_and_a_profile_function_comes_back():
    heard = []

    def hear(frame, event, arg):
        heard.append(event)

    sys.setprofile(hear)
    try:
        (_, inner), outer = deep.profile(deep.profile, (busy, (2000,)))
        assert sys.getprofile() is hear
    finally:
        sys.setprofile(None)
    assert deep.load(inner).frame_records
    assert deep.load(outer).frame_records


def test_other_bytes_are_no_deep_profile():
    for data in (b"", b"x", deep.profile(busy, (10,))[1][:-9]):
        with pytest.raises(ValueError, match="no deep profile"):
            deep.load(data)


def test_pyinstrument_is_imported_only_when_needed():
    code = (
        "import sys, gnomon.profiler.deep, gnomon.profiler.export.pyinstrument; sys.exit('pyinstrument' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
