"""What protects a cluster: certificates for TLS, and a secret.

With neither given, the processes of one user on one machine trust each other by a secret file of that user's, and
nobody else gets in. Other machines need a secret set on purpose, or TLS; TLS with mutual certificates alone will do,
and a secret set on purpose is proved inside it as well.

Contents: Security.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from gnomon.runtime import config
from gnomon.runtime.comm.certificates import make_certificates
from gnomon.runtime.comm.handshake import Identity
from gnomon.runtime.comm.secret import Secret, checked_secret, resolve_secret
from gnomon.runtime.errors import ConfigError

__all__ = ["Security"]

_TLS_FIELDS = (
    "tls_ca_file",
    "tls_client_cert",
    "tls_client_key",
    "tls_scheduler_cert",
    "tls_scheduler_key",
    "tls_worker_cert",
    "tls_worker_key",
)
#: Whose certificate each role shows.
_CERTIFICATE_OF = {"scheduler": "scheduler", "worker": "worker", "peer": "worker", "client": "client"}


class Security:
    """Certificates and secret of one cluster. Immutable; its repr shows neither keys nor secret.

    Arguments:
        require_encryption: refuse addresses that are neither ``tls://`` nor within the process.
        secret: at least 16 bytes (text is taken as UTF-8); None: ``GNOMON_SECRET``, ``security.secret_file``, or the
            user's own.
        tls: ``tls_ca_file``, ``tls_client_cert``, ``tls_client_key``, ``tls_scheduler_cert``, ``tls_scheduler_key``,
            ``tls_worker_cert``, ``tls_worker_key``: paths of PEM files, or PEM text itself. What is not given is taken
            from the settings ``security.*``.

    Raises ConfigError for a short secret, TypeError for other keywords.
    """

    def __init__(
        self, require_encryption: bool | None = None, *, secret: str | bytes | None = None, **tls: Any
    ) -> None:
        unknown = [name for name in tls if name not in _TLS_FIELDS]
        if unknown:
            raise TypeError(
                f"Security has no {', '.join(unknown)}; it takes require_encryption, secret, {', '.join(_TLS_FIELDS)}"
            )
        settings = config.get().security
        self.require_encryption = settings.require_encryption if require_encryption is None else require_encryption
        self._pem: dict[str, str] = {}
        for name in _TLS_FIELDS:
            value = tls.get(name)
            self._pem[name] = os.fspath(value) if value is not None else getattr(settings, name)
        self._given: bytes | None = None
        if secret is not None:
            self._given = checked_secret(
                secret.encode() if isinstance(secret, str) else bytes(secret), "the secret given"
            )
        self._resolved: Secret | None = None
        self._contexts: dict[tuple[str, bool], ssl.SSLContext] = {}

    @classmethod
    def temporary(
        cls,
        *,
        hosts: Iterable[str] = (),
        days: float = 30,
        require_encryption: bool = True,
        secret: str | bytes | None = None,
    ) -> Security:
        """A new authority, a certificate per role and a new secret, all in memory: for a cluster of one program.

        Arguments:
            hosts: names and addresses workers and scheduler are reached at, beside those of this machine.
            days: after that, no new connection is accepted.
            secret: instead of a new one.
        """
        authority, issued = make_certificates(hosts, days)
        return cls(
            require_encryption,
            secret=secrets.token_bytes(32) if secret is None else secret,
            tls_ca_file=authority,
            **{f"tls_{role}_cert": pair.certificate for role, pair in issued.items()},
            **{f"tls_{role}_key": pair.key for role, pair in issued.items()},
        )

    def __repr__(self) -> str:
        shown = {name: "temporary" if _is_pem(value) else repr(value) for name, value in self._pem.items() if value}
        shown = {name: value for name, value in shown.items() if not name.endswith("_key")}
        if self._given is not None:
            shown["secret"] = "<hidden>"
        parts = [f"require_encryption={self.require_encryption}", *(f"{name}={value}" for name, value in shown.items())]
        return f"Security({', '.join(parts)})"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Security holds secrets and is not pickled; hand Security.to_dict() to a child by a pipe, not argv"
        )

    # -- Secret and identity -------------------------------------------------------------------------------------------

    @property
    def secret(self) -> Secret:
        """The secret in force (see ``gnomon.runtime.comm.secret``), looked up once.

        Raises ConfigError.
        """
        if self._resolved is None:
            self._resolved = resolve_secret(self._given)
        return self._resolved

    @property
    def has_explicit_secret(self) -> bool:
        """Whether somebody set a secret on purpose; does not make the user's own file."""
        return self._given is not None or bool(os.environ.get("GNOMON_SECRET") or config.get().security.secret_file)

    def identity(
        self, role: str, *, accept: Collection[str], tls: bool = False, info: Mapping[str, Any] | None = None
    ) -> Identity:
        """What a process of this role brings into its handshakes.

        Arguments:
            accept: roles that the other side may have.
            tls: whether the connection is under TLS, whose certificates are enough where no secret was set on purpose.
            info: what is said of oneself; about 600 bytes at most.
        """
        if tls and not self.has_explicit_secret:
            secret, origin = b"", "certificates"
        else:
            secret, origin = self.secret.value, "explicit" if self.secret.explicit else "user"
        return Identity(role, secret, origin, frozenset(accept), info or {}, config.get().comm.allow_relay)

    # -- TLS -----------------------------------------------------------------------------------------------------------

    @property
    def has_tls(self) -> bool:
        """Whether an authority is known, without which there is no TLS."""
        return bool(self._pem["tls_ca_file"])

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """``ssl_context`` for connecting in this role (None where no authority is set), and ``require_encryption``.

        Raises ConfigError for files that can't be used.
        """
        return {"ssl_context": self._context(role, server=False), "require_encryption": self.require_encryption}

    def get_listen_args(self, role: str) -> dict[str, Any]:
        """``ssl_context`` for listening in this role (None where no authority is set), and ``require_encryption``.

        Raises ConfigError for files that can't be used.
        """
        return {"ssl_context": self._context(role, server=True), "require_encryption": self.require_encryption}

    def _context(self, role: str, *, server: bool) -> ssl.SSLContext | None:
        if role not in _CERTIFICATE_OF:
            raise ValueError(f"there is no role {role!r}; roles are {', '.join(_CERTIFICATE_OF)}")
        if not self.has_tls:
            return None
        if (role, server) not in self._contexts:
            self._contexts[role, server] = self._new_context(_CERTIFICATE_OF[role], server=server)
        return self._contexts[role, server]

    def _new_context(self, owner: str, *, server: bool) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        if server:
            context.num_tickets = 0  # sessions are never resumed: each connection proves itself anew
        authority = self._pem["tls_ca_file"]
        certificate, key = self._pem[f"tls_{owner}_cert"], self._pem[f"tls_{owner}_key"]
        try:
            if _is_pem(authority):
                context.load_verify_locations(cadata=authority)
            else:
                context.load_verify_locations(cafile=authority)
        except (OSError, ssl.SSLError) as exc:
            raise ConfigError(f"security: can't use tls_ca_file {_named(authority)}: {exc}") from exc
        if not certificate:
            raise ConfigError(f"security: TLS needs a certificate: set tls_{owner}_cert and tls_{owner}_key")
        try:
            _load_certificate(context, certificate, key)
        except (OSError, ssl.SSLError) as exc:
            raise ConfigError(
                f"security: can't use tls_{owner}_cert {_named(certificate)} with tls_{owner}_key {_named(key)}: {exc}"
            ) from exc
        return context

    # -- To children of this process -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values, **keys and secret included**: for a child, by a pipe; never argv or a log."""
        explicit = self.secret.value.hex() if self.has_explicit_secret else None
        return {"require_encryption": self.require_encryption, "secret": explicit, **self._pem}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Security:
        """The Security that ``to_dict`` described."""
        values = dict(values)
        secret = values.pop("secret")
        return cls(secret=None if secret is None else bytes.fromhex(secret), **values)


def _is_pem(value: str) -> bool:
    return "-----BEGIN " in value


def _named(value: str) -> str:
    return "(PEM text)" if _is_pem(value) else repr(value)


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """The ssl module reads files only: PEM text goes through one that nobody else can see, and that is gone at once."""
    if not _is_pem(certificate) and not _is_pem(key):
        context.load_cert_chain(certificate, key or None)
        return
    with tempfile.TemporaryDirectory(prefix="gnomon-") as folder:
        os.chmod(folder, 0o700)
        paths = []
        for name, value in (("cert.pem", certificate), ("key.pem", key)):
            if _is_pem(value):
                path = Path(folder, name)
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(value)
                paths.append(str(path))
            else:
                paths.append(value)
        context.load_cert_chain(paths[0], paths[1] or None)
