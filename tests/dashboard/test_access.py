"""Who is let in: each rule alone, without a server."""

from __future__ import annotations

import pytest

from gnomon.reports.dashboard.access import Access, Asked, local_hosts

TOKEN = "a-token-of-forty-three-characters-or-so-000"
HOSTS = ("127.0.0.1:8787", "localhost:8787", "tools.example.org")


@pytest.fixture
def access():
    return Access(TOKEN, HOSTS, port=8787, open_paths=["/health"])


def asked(path="/", host="127.0.0.1:8787", method="GET", **others):
    return Asked(method, path, host, **others)


def cookie(access):
    return f"other=1; {access.cookie_name}={access.cookie_value}"


def test_the_token_lets_in_once_and_sets_a_cookie(access):
    verdict = access.judge(asked(token=TOKEN))
    assert (verdict.status, verdict.admit) == (0, True)
    verdict = access.judge(asked(cookie=cookie(access)))
    assert (verdict.status, verdict.admit) == (0, False)
    assert TOKEN not in access.cookie_value


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"token": ""},
        {"token": TOKEN[:-1]},
        {"token": TOKEN + "x"},
        {"token": "é"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong"},
        {"cookie": "gnomon-dashboard-8787="},
        {"cookie": f"gnomon-dashboard-8787={TOKEN}"},
        {"cookie": "gnomon-dashboard-8787"},
        {"cookie": ";;=;\x00"},
    ],
)
def test_without_the_token_nobody_is_let_in(access, others):
    verdict = access.judge(asked(**others))
    assert verdict.status == 401
    assert TOKEN not in verdict.text


def test_the_cookie_of_another_dashboard_is_none(access):
    other = Access(TOKEN + "2", HOSTS, port=8787)
    assert access.judge(asked(cookie=cookie(other))).status == 401


def test_machines_bring_the_token_as_a_bearer(access):
    verdict = access.judge(asked("/metrics", authorization=f"bearer {TOKEN}"))
    assert (verdict.status, verdict.admit) == (0, False)


def test_only_health_is_open(access):
    assert access.judge(asked("/health")).status == 0
    assert access.judge(asked("/healthy")).status == 401
    assert access.judge(asked("/health", host="evil.example:8787")).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", ""])
def test_nothing_can_be_changed(access, method):
    assert access.judge(asked(method=method, cookie=cookie(access))).status == 405


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:8788",
        "127.0.0.1:8787.evil.example",
        "[::1]:8787",
        "x@localhost:8787",
    ],
)
def test_unknown_hosts_are_refused_even_with_the_token(access, host):
    """Else a page of somebody else's could reach us by a name of its own that it lets point here."""
    assert access.judge(asked(host=host, cookie=cookie(access), token=TOKEN)).status == 403


@pytest.mark.parametrize("host", ["localhost:8787", "LOCALHOST:8787", "tools.example.org"])
def test_known_hosts_are_served(access, host):
    assert access.judge(asked(host=host, cookie=cookie(access))).status == 0


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.example", "http://127.0.0.1:8788", "http://127.0.0.1", "http://localhost:8787.evil.example",
        "http://localhost:8787@evil.example", "http://evil.example#localhost:8787", "file://", "ftp://localhost:8787",
        "http://localhost:8787/", "localhost:8787", "https://tools.example.org.", "http://u@localhost:8787",
    ],
)  # fmt: skip
@pytest.mark.parametrize("websocket", [False, True])
def test_pages_of_others_are_refused(access, origin, websocket):
    verdict = access.judge(asked("/ws", origin=origin, cookie=cookie(access), websocket=websocket))
    assert verdict.status == 403


@pytest.mark.parametrize("origin", ["http://localhost:8787", "http://127.0.0.1:8787", "https://tools.example.org"])
def test_our_own_pages_are_served(access, origin):
    assert access.judge(asked("/ws", origin=origin, cookie=cookie(access), websocket=True)).status == 0


def test_a_websocket_says_where_it_is_from(access):
    assert access.judge(asked("/ws", cookie=cookie(access), websocket=True)).status == 403


def test_hosts_are_checked_where_no_token_is_asked_for():
    access = Access("", HOSTS, port=8787)
    assert access.judge(asked()).status == 0
    assert access.judge(asked(host="evil.example:8787")).status == 403
    assert access.judge(asked(origin="http://evil.example")).status == 403


def test_names_of_this_machine():
    assert set(local_hosts("127.0.0.1", 8787)) == {"127.0.0.1:8787", "localhost:8787", "[::1]:8787"}
    assert local_hosts("10.0.0.5", 80) == ["10.0.0.5:80", "10.0.0.5"]
    assert local_hosts("fe80::1", 1, ["b.example", " "]) == ["[fe80::1]:1", "b.example"]
    everywhere = local_hosts("0.0.0.0", 8787)
    assert "127.0.0.1:8787" in everywhere
    assert not [host for host in everywhere if not host.endswith(":8787")]
