"""Throw-away certificates for one cluster: an authority whose key is never kept, and a certificate per role.

Made in memory as PEM text. Each certificate names the roles that its owner may have, as a URI among its alternative
names; ``check_role`` holds peers to it. Certificates from elsewhere name no roles, and may then have any.

Contents: RoleCertificate, make_certificates, check_role.
"""

from __future__ import annotations

import datetime
import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gnomon.runtime.errors import AuthenticationError

__all__ = ["RoleCertificate", "check_role", "make_certificates"]

_ROLE_URI = "urn:gnomon:role:"

#: Which roles the certificate of each kind may act in. Executors of a worker make clients of their own.
_ROLES = {"scheduler": ("scheduler",), "worker": ("worker", "peer"), "client": ("client",)}


class RoleCertificate(NamedTuple):
    """A certificate and its private key, as PEM text."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "RoleCertificate(<hidden>)"


def make_certificates(hosts: Iterable[str], days: float) -> tuple[str, dict[str, RoleCertificate]]:
    """A new authority's certificate (PEM), and what it issued by role: scheduler, worker, client.

    Arguments:
        hosts: names and addresses the certificates are good for, beside those of this machine.
        days: how long they are good for.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = datetime.datetime.now(datetime.UTC)
    begin, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(days=days)

    def builder(name: str, key: Any, issuer: str, issuer_key: Any, *, authority: bool) -> Any:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
            .add_extension(_key_usage(x509, authority=authority), critical=True)
        )

    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = "gnomon temporary authority"
    authority = builder(authority_name, authority_key, authority_name, authority_key, authority=True)
    authority_pem = authority.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()

    names: list[Any] = []
    for host in dict.fromkeys([*_own_hosts(), *hosts]):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    issued = {}
    for role, allowed in _ROLES.items():
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if role != "client" else [])
        uris = [x509.UniformResourceIdentifier(_ROLE_URI + name) for name in allowed]
        certificate = (
            builder(f"gnomon {role}", key, authority_name, authority_key, authority=False)
            .add_extension(x509.SubjectAlternativeName([*uris, *(names if role != "client" else [])]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        issued[role] = RoleCertificate(certificate.public_bytes(serialization.Encoding.PEM).decode(), key_pem.decode())
    return authority_pem, issued


def _key_usage(x509: Any, *, authority: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _own_hosts() -> list[str]:
    """Names and addresses of this machine."""
    import psutil

    hosts = ["localhost", "127.0.0.1", "::1"]
    name = socket.gethostname()
    if name.isascii():
        hosts.append(name)
    for addresses in psutil.net_if_addrs().values():
        ips = (entry.address for entry in addresses if entry.family in (socket.AF_INET, socket.AF_INET6))
        hosts.extend(ip.partition("%")[0] for ip in ips)
    return hosts


def check_role(certificate: Mapping[str, Any] | None, role: str, address: str) -> None:
    """Hold a peer to the roles that its certificate names, if it names any.

    Arguments:
        certificate: as by ``getpeercert()``; None without TLS.

    Raises AuthenticationError.
    """
    names = certificate.get("subjectAltName", ()) if certificate else ()
    roles = [value.removeprefix(_ROLE_URI) for kind, value in names if kind == "URI" and value.startswith(_ROLE_URI)]
    if roles and role not in roles:
        raise AuthenticationError(f"{address} acts as a {role} with the certificate of a {' or '.join(roles)}")
