"""``gnomon report`` at the command line."""

from __future__ import annotations

from click.testing import CliRunner

from gnomon.reports.cli import report
from gnomon.reports.page import build_page


def test_show_prints_the_account(busy, tmp_path):
    path = busy(300).save(tmp_path / "a.gnomon")
    result = CliRunner().invoke(report, ["show", str(path)])
    assert result.exit_code == 0, result.output
    assert "300 tasks" in result.output
    assert "Computing" in result.output
    assert "Capacity" in result.output


def test_show_reads_a_page_and_writes_it_again(busy, tmp_path):
    page = build_page(busy(30))
    (tmp_path / "a.html").write_text(page, "utf-8")
    out = tmp_path / "b.html"
    result = CliRunner().invoke(report, ["show", str(tmp_path / "a.html"), "--html", str(out)])
    assert result.exit_code == 0, result.output
    assert 'id="recording"' in out.read_text("utf-8")


def test_a_wrong_file_is_one_line(tmp_path):
    (tmp_path / "x").write_bytes(b"nonsense")
    result = CliRunner().invoke(report, ["show", str(tmp_path / "x")])
    assert result.exit_code == 1
    assert "not a gnomon recording" in result.output
    assert "Traceback" not in result.output
