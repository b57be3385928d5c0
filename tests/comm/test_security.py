"""Certificates and secret: where they come from, what they let through, and that they do not leak."""

from __future__ import annotations

import json
import os
import pickle
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from gnomon.runtime import config
from gnomon.runtime.comm import Security
from gnomon.runtime.comm.secret import resolve_secret, user_secret_path
from gnomon.runtime.errors import AuthenticationError, ConfigError, HandshakeError, ListenRefusedError

from .conftest import Server, connected, message

Run = Callable[..., Any]
LONG = "a secret that is long enough"


# -- The secret --------------------------------------------------------------------------------------------------------


def test_the_users_own_secret_is_made_once_and_is_private() -> None:
    first = resolve_secret()
    assert not first.explicit
    assert len(first.value) >= 32
    assert resolve_secret() == first
    path = Path(user_secret_path())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["secret"], "no draft is left"


def test_the_users_own_secret_is_private_whatever_the_umask() -> None:
    before = os.umask(0)
    try:
        resolve_secret()
    finally:
        os.umask(before)
    path = Path(user_secret_path())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_many_who_come_at_once_agree() -> None:
    found: list[bytes] = []
    barrier = threading.Barrier(8)

    def look() -> None:
        barrier.wait()
        found.append(resolve_secret().value)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_the_order_of_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_text("from the file, long enough\n")
    file.chmod(0o600)
    with config.set({"security.secret_file": str(file)}):
        assert resolve_secret() == (b"from the file, long enough", True)
        monkeypatch.setenv("GNOMON_SECRET", "from the environment")
        assert resolve_secret() == (b"from the environment", True)
        assert resolve_secret(b"given, and long enough") == (b"given, and long enough", True)
        assert Security(secret=LONG).secret == (LONG.encode(), True)
        assert Security().has_explicit_secret
    assert not Path(user_secret_path()).exists(), "the user's own is not made when there is another"


@pytest.mark.parametrize("source", ["argument", "environment", "file"])
def test_short_secrets_are_refused(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_text("short" if source == "file" else LONG)
    file.chmod(0o600)
    if source == "environment":
        monkeypatch.setenv("GNOMON_SECRET", "short")
    with config.set({"security.secret_file": str(file)}), pytest.raises(ConfigError, match="has 5 bytes") as error:
        resolve_secret(b"short" if source == "argument" else None)
    assert "short" not in str(error.value).replace(str(file), "")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o660])
def test_a_file_open_to_others_is_refused(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(LONG)
    file.chmod(mode)
    with config.set({"security.secret_file": str(file)}), pytest.raises(ConfigError, match=f"mode {mode:o}.*chmod 600"):
        resolve_secret()


def test_the_users_own_secret_in_an_open_folder_or_file_is_refused() -> None:
    resolve_secret()
    path = Path(user_secret_path())
    path.parent.chmod(0o755)
    with pytest.raises(ConfigError, match="chmod 700"):
        resolve_secret()
    path.parent.chmod(0o700)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        resolve_secret()


def test_links_are_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text(LONG)
    target.chmod(0o600)
    link.symlink_to(target)
    with config.set({"security.secret_file": str(link)}), pytest.raises(ConfigError, match="symbolic link"):
        resolve_secret()
    private = Path(user_secret_path()).parent
    private.parent.mkdir(parents=True)
    private.symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="no folder"):
        resolve_secret()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(LONG)
    file.chmod(0o600)
    os.chown(file, 12345, -1)
    with config.set({"security.secret_file": str(file)}), pytest.raises(ConfigError, match="belongs to another user"):
        resolve_secret()


def test_a_missing_file_is_named() -> None:
    with config.set({"security.secret_file": "/no/such/file"}), pytest.raises(ConfigError, match="/no/such/file"):
        resolve_secret()


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="set GNOMON_SECRET instead"):
        resolve_secret()


# -- Security ----------------------------------------------------------------------------------------------------------


def test_nothing_secret_is_shown(certificates: dict[str, Any]) -> None:
    security = Security.from_dict({**certificates, "secret": LONG.encode().hex()})
    for shown in (repr(security), str(security), repr(security.secret), str(security.identity("client", accept=[]))):
        assert LONG not in shown
        assert LONG.encode().hex() not in shown
        assert "BEGIN" not in shown
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(security)
    assert "tls_ca_file='/some/path'" in repr(Security(tls_ca_file="/some/path"))


def test_the_plain_form_goes_and_comes_back(certificates: dict[str, Any]) -> None:
    security = Security.from_dict(json.loads(json.dumps(certificates)))
    assert security.to_dict() == certificates
    assert security.secret.explicit
    assert Security.from_dict(Security().to_dict()).to_dict()["secret"] is None
    assert Security.from_dict(Security(True, secret=LONG).to_dict()).require_encryption


def test_unknown_keywords_are_named() -> None:
    with pytest.raises(TypeError, match="no tls_cert; it takes"):
        Security(tls_cert="x")


def test_paths_come_from_the_settings() -> None:
    with config.set({"security.tls_ca_file": "/a/ca.pem", "security.require_encryption": True}):
        security = Security()
    assert security.has_tls
    assert security.require_encryption
    with pytest.raises(ConfigError, match=r"can't use tls_ca_file '/a/ca\.pem'"):
        security.get_listen_args("scheduler")


def test_contexts(certificates: dict[str, Any]) -> None:
    assert Security().get_connection_args("client") == {"ssl_context": None, "require_encryption": False}
    security = Security.from_dict(certificates)
    for arguments in (security.get_connection_args, security.get_listen_args):
        for role in ("client", "worker", "scheduler", "peer"):
            context = arguments(role)["ssl_context"]
            assert context.minimum_version == ssl.TLSVersion.TLSv1_3
            assert context.verify_mode == ssl.CERT_REQUIRED
            assert arguments(role)["ssl_context"] is context
    assert security.get_connection_args("client")["ssl_context"].check_hostname
    with pytest.raises(ValueError, match="no role 'boss'"):
        security.get_listen_args("boss")
    without = Security.from_dict({**certificates, "tls_worker_cert": "", "tls_worker_key": ""})
    with pytest.raises(ConfigError, match="set tls_worker_cert"):
        without.get_listen_args("worker")


def test_keys_leave_no_file_behind(
    certificates: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Security.from_dict(certificates).get_listen_args("scheduler")
    assert list(tmp_path.iterdir()) == [tmp_path / "config"] or list(tmp_path.iterdir()) == []


# -- Listening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["tcp://0.0.0.0", "tcp://", "0.0.0.0:0", "tcp://[::]:0"])
def test_listening_to_others_needs_protection(run: Run, address: str) -> None:
    async def main() -> None:
        with pytest.raises(ListenRefusedError, match="GNOMON_SECRET=") as error:
            await Server().start(address)
        for way in ("security.secret_file", "Security(secret=", "tls://", "127.0.0.1"):
            assert way in str(error.value)

    run(main())
    assert not Path(user_secret_path()).exists()


@pytest.mark.parametrize("way", ["argument", "environment", "file", "tls"])
def test_listening_to_others_with_protection(
    run: Run, way: str, certificates: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    security = Security()
    if way == "argument":
        security = Security(secret=LONG)
    elif way == "environment":
        monkeypatch.setenv("GNOMON_SECRET", LONG)
    elif way == "file":
        file = tmp_path / "secret"
        file.write_text(LONG)
        file.chmod(0o600)
        config.set({"security.secret_file": str(file)})
    else:
        security = Security.from_dict({**certificates, "secret": None})

    async def main() -> None:
        scheme = "tls" if way == "tls" else "tcp"
        server = await Server().start(f"{scheme}://0.0.0.0:0", security=security)
        assert server.listener.address.startswith(f"{scheme}://0.0.0.0:")
        assert "0.0.0.0" not in server.address
        port = server.address.rpartition(":")[2]
        comm, _ = await connected(f"{scheme}://127.0.0.1:{port}", security=security)
        comm.send([message(1)])
        await (await server.end()).received(1)
        await server.close()

    run(main())


def test_required_encryption(run: Run) -> None:
    async def main() -> None:
        strict = Security(True)
        with pytest.raises(ListenRefusedError, match="require_encryption"):
            await Server().start("tcp://127.0.0.1", security=strict)
        with pytest.raises(ConfigError, match="require_encryption"):
            await connected("tcp://127.0.0.1:1", security=strict)
        server = await Server().start("inproc://", security=strict)
        await connected(server.address, security=strict)
        await server.close()
        with pytest.raises(ConfigError, match="needs certificates"):
            await connected("tls://127.0.0.1:1", security=strict)

    run(main())


# -- TLS from end to end -----------------------------------------------------------------------------------------------


@pytest.fixture(params=[("asyncio", True), ("asyncio", False), ("tornado", True)], ids=["uvloop", "std", "tornado"])
def backend(request: pytest.FixtureRequest, own_home: None) -> Any:
    with config.set({"comm.backend": request.param[0], "comm.uvloop": request.param[1]}):
        yield


def files_of(authority: trustme.CA, folder: Path, **certificates: trustme.LeafCert) -> dict[str, str]:
    """PEM files as ``Security`` takes them."""
    folder.mkdir(exist_ok=True)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    result = {"tls_ca_file": str(folder / "ca.pem")}
    for owner, certificate in certificates.items():
        certificate.private_key_pem.write_to_path(folder / f"{owner}.key")
        certificate.cert_chain_pems[0].write_to_path(folder / f"{owner}.pem")
        result[f"tls_{owner}_cert"] = str(folder / f"{owner}.pem")
        result[f"tls_{owner}_key"] = str(folder / f"{owner}.key")
    return result


def attempt(run: Run, server_side: Security, client_side: Security, host: str = "127.0.0.1", **options: Any) -> None:
    """A client connects to a server and sends a message."""

    async def main() -> None:
        server = await Server().start(f"tls://{host}", security=server_side)
        try:
            comm, _ = await connected(server.address, security=client_side, **options)
            comm.send([message(1)])
            await (await server.end()).received(1)
            assert comm.peer.role == "scheduler"
        except HandshakeError:
            assert server.ends == []
            raise
        finally:
            await server.close()

    run(main())


def test_certificates_from_elsewhere_without_a_secret(run: Run, backend: None, tmp_path: Path) -> None:
    authority = trustme.CA()
    files = files_of(
        authority, tmp_path, scheduler=authority.issue_cert("127.0.0.1"), client=authority.issue_cert("me@example.com")
    )
    attempt(run, Security(**files), Security(**files))
    assert not Path(user_secret_path()).exists(), "certificates are proof enough"


def test_a_secret_set_on_purpose_is_proved_inside_tls(run: Run, backend: None, tmp_path: Path) -> None:
    authority = trustme.CA()
    files = files_of(
        authority, tmp_path, scheduler=authority.issue_cert("127.0.0.1"), client=authority.issue_cert("me@example.com")
    )
    attempt(run, Security(secret=LONG, **files), Security(secret=LONG, **files))
    with pytest.raises(AuthenticationError, match="none but its TLS certificates"):
        attempt(run, Security(secret=LONG, **files), Security(**files))


def test_a_server_of_another_authority(run: Run, backend: None, tmp_path: Path) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    server = files_of(theirs, tmp_path / "s", scheduler=theirs.issue_cert("127.0.0.1"))
    client = files_of(ours, tmp_path / "c", client=ours.issue_cert("me@example.com"))
    with pytest.raises(AuthenticationError, match=r"certificate of tls://127\.0\.0\.1:\d+ is refused"):
        attempt(run, Security(**server), Security(**client))


def test_a_client_of_another_authority(
    run: Run, backend: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    server = files_of(theirs, tmp_path / "s", scheduler=theirs.issue_cert("127.0.0.1"))
    client = files_of(ours, tmp_path / "c", client=ours.issue_cert("me@example.com"))
    client["tls_ca_file"] = server["tls_ca_file"]
    with pytest.raises(AuthenticationError, match="refused this side's certificate"):
        attempt(run, Security(**server), Security(**client))
    assert "certificate" in caplog.text


def test_a_client_without_a_certificate(certificates: dict[str, Any]) -> None:
    without = Security.from_dict({**certificates, "tls_client_cert": "", "tls_client_key": ""})
    with pytest.raises(ConfigError, match="set tls_client_cert"):
        without.get_connection_args("client")


def test_a_certificate_for_another_host(run: Run, backend: None, tmp_path: Path) -> None:
    authority = trustme.CA()
    files = files_of(
        authority,
        tmp_path,
        scheduler=authority.issue_cert("example.com"),
        client=authority.issue_cert("me@example.com"),
    )
    with pytest.raises(AuthenticationError, match="is refused: IP address mismatch"):
        attempt(run, Security(**files), Security(**files))


def test_an_expired_certificate(run: Run, backend: None) -> None:
    security = Security.temporary(days=-0.01)
    with pytest.raises(AuthenticationError, match="expired"):
        attempt(run, security, security)


def test_a_workers_certificate_does_not_make_a_scheduler(
    run: Run, backend: None, certificates: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    thief = {
        **certificates,
        "tls_scheduler_cert": certificates["tls_worker_cert"],
        "tls_scheduler_key": certificates["tls_worker_key"],
    }
    with pytest.raises(AuthenticationError, match="acts as a scheduler with the certificate of a worker"):
        attempt(run, Security.from_dict(thief), Security.from_dict(certificates))
    thief = {
        **certificates,
        "tls_worker_cert": certificates["tls_client_cert"],
        "tls_worker_key": certificates["tls_client_key"],
    }
    with pytest.raises(AuthenticationError, match="acts as a worker with the certificate of a client"):
        attempt(run, Security.from_dict(certificates), Security.from_dict(thief), role="worker")


def test_by_name(run: Run, backend: None, certificates: dict[str, Any]) -> None:
    security = Security.from_dict(certificates)
    attempt(run, security, security, host="localhost")


def test_a_secret_is_on_no_command_line_nor_in_children(certificates: dict[str, Any]) -> None:
    """A child gets it by its standard input."""
    code = "import json, sys; from gnomon.runtime.comm import Security; print(Security.from_dict(json.load(sys.stdin)))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(certificates), capture_output=True, text=True, check=True
    )
    assert "secret=<hidden>" in done.stdout
