"""Addresses: ``tcp://host:port``, ``tls://host:port``, ``inproc://name``; IPv6 hosts in brackets.

Contents: Address, parse_address, bracketed, is_loopback, contact_host.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

__all__ = ["SCHEMES", "Address", "bracketed", "contact_host", "is_loopback", "is_wildcard", "parse_address"]

SCHEMES = ("tcp", "tls", "inproc")


class Address(NamedTuple):
    """An address taken apart; ``str`` puts it together.

    Fields:
        scheme: one of ``SCHEMES``.
        host: without brackets; empty means every interface. For inproc the name.
        port: 0 means any when listening. Always 0 for inproc.
    """

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        if self.scheme == "inproc":
            return f"inproc://{self.host}"
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"


def parse_address(text: str, *, default_scheme: str = "tcp") -> Address:
    """Take an address apart; without a scheme it has the default one, without a port 0.

    Raises ValueError that says what is wrong.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        scheme, rest = default_scheme, text.strip()
    if scheme not in SCHEMES:
        raise ValueError(f"{text!r}: there is no transport {scheme!r}; there are {', '.join(SCHEMES)}")
    if scheme == "inproc":
        return Address(scheme, rest, 0)
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ValueError(f"{text!r}: an IPv6 address is written [host]:port")
        port = tail[1:]
    else:
        if rest.count(":") > 1:
            raise ValueError(f"{text!r}: an IPv6 address is written [host]:port")
        host, _, port = rest.partition(":")
    if any(c.isspace() or c in "/?#@" for c in host):
        raise ValueError(f"{text!r}: {host!r} is no host")
    if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"{text!r}: {port!r} is no port (0 to 65535)")
    return Address(scheme, host, int(port or 0))


def bracketed(host: str) -> str:
    """A host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(ip: str) -> bool:
    """Whether an IP address reaches this machine only."""
    return ipaddress.ip_address(ip.partition("%")[0]).is_loopback


def is_wildcard(host: str) -> bool:
    """Whether the host stands for every interface."""
    return host in ("", "0.0.0.0", "::")


def contact_host(family: socket.AddressFamily) -> str:
    """An address of this machine by which others are likely to reach it: that of the interface with the default route.

    Sends nothing: connecting a datagram socket only chooses the route. Without a network it is the loopback address.
    """
    probe, fallback = ("2001:db8::1", "::1") if family == socket.AF_INET6 else ("192.0.2.1", "127.0.0.1")
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((probe, 9))
            return str(sock.getsockname()[0])
        except OSError:
            return fallback
