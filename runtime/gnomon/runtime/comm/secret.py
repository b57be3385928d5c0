"""The cluster's secret: where it comes from, and the file that a user's own processes share.

The first that is there counts: what ``Security`` was given, ``GNOMON_SECRET``, the file ``security.secret_file``, and
at last a file of the user's own, made on first use, by which all processes of one user on one machine trust each other.
Only the last is not **explicit**: it is no reason to listen to other machines. A file is read only if its owner is
this user and nobody else may read or write it. Secrets never appear in a repr, a message or a log.

Contents: Secret, resolve_secret, user_secret_path.
"""

from __future__ import annotations

import os
import secrets
import stat
from typing import NamedTuple

from gnomon.runtime import config
from gnomon.runtime.errors import ConfigError

__all__ = ["MINIMUM", "Secret", "checked_secret", "resolve_secret", "user_secret_path"]

#: Bytes that a secret has at least. Short ones could be found by trying.
MINIMUM = 16

_LONGEST = 4096


class Secret(NamedTuple):
    """A secret, and whether somebody set it on purpose."""

    value: bytes
    explicit: bool

    def __repr__(self) -> str:
        return f"Secret(<hidden>, explicit={self.explicit})"


def resolve_secret(given: bytes | None = None) -> Secret:
    """The secret in force; ``given`` is the one in the program. Makes the user's own file if there is no other.

    Raises ConfigError.
    """
    if given is not None:
        return Secret(checked_secret(given, "the secret given"), explicit=True)
    variable = os.environ.get("GNOMON_SECRET", "")
    if variable:
        return Secret(checked_secret(variable.strip().encode(), "GNOMON_SECRET"), explicit=True)
    path = config.get().security.secret_file
    if path:
        return Secret(_read(os.path.expanduser(path), "security.secret_file"), explicit=True)
    return Secret(_user_secret(), explicit=False)


def checked_secret(value: bytes, source: str) -> bytes:
    """The value, if it is long enough.

    Raises ConfigError.
    """
    if len(value) < MINIMUM:
        raise ConfigError(f"{source} has {len(value)} bytes, fewer than {MINIMUM}; make one by: openssl rand -hex 32")
    return value


def user_secret_path() -> str:
    """Where the user's own secret lies: ``~/.config/gnomon/private/secret`` (or under ``XDG_CONFIG_HOME``)."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "gnomon", "private", "secret")


def _user_secret() -> bytes:
    path = user_secret_path()
    try:
        try:
            return _read(path, "your own secret file")
        except FileNotFoundError:
            _make(path)
            return _read(path, "your own secret file")
    except OSError as exc:
        raise ConfigError(f"could not make the secret file {path} ({exc.strerror}); set GNOMON_SECRET instead") from exc


def _make(path: str) -> None:
    """Write a new secret whole under another name, then link it into place: who comes second keeps the first's."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    _check_folder(folder)
    draft = f"{path}.{os.getpid()}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(32).encode() + b"\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
    finally:
        os.unlink(draft)


def _read(path: str, source: str) -> bytes:
    """A secret from a file that is this user's alone.

    Raises ConfigError; FileNotFoundError if the user's own file is not there yet.
    """
    own = source == "your own secret file"
    if own:
        _check_folder(os.path.dirname(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        if own:
            raise
        raise ConfigError(f"{source} names {path}, which does not exist") from None
    except OSError as exc:
        raise ConfigError(f"{source}: can't read {path} ({exc.strerror}; a symbolic link is not followed)") from exc
    with os.fdopen(descriptor, "rb") as file:
        _check_owner(os.fstat(descriptor), path, "600")
        value = file.read(_LONGEST).strip()
    return checked_secret(value, f"{source} ({path})")


def _check_folder(folder: str) -> None:
    """Refuse a folder in which others could have put a file. Raises ConfigError or FileNotFoundError."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{folder} is no folder, but your secret is to be kept in it")
    _check_owner(status, folder, "700")


def _check_owner(status: os.stat_result, path: str, mode: str) -> None:
    if not hasattr(os, "getuid"):  # Windows: the profile's folder is the user's own
        return
    if status.st_uid != os.getuid():
        raise ConfigError(
            f"{path} belongs to another user (uid {status.st_uid}); a secret in it would not be yours alone"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigError(f"{path} is open to others (mode {stat.S_IMODE(status.st_mode):o}); run: chmod {mode} {path}")
