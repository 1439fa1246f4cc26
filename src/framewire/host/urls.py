"""The grammar of a ``resource_url`` and of a configured peer: ours, strict, on ASCII.

General URL parsers disagree with each other on what a hostile URL means (``http://a@b``, ``http://127.1``, full-width
digits, back-slashes), and the disagreement is the attack. Here each part has one spelling or none, so that a later parser
cannot read it differently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from framewire import wire
from framewire.host.addresses import LOOPBACK_NAMES, Address, embedded_ipv4

MAX_URL_CHARS: Final = 2048
MAX_TOKEN_CHARS: Final = 256
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
BASE_HINT: Final = (
    "Write lower-case http:// or https://, a host name or canonical IP address, an optional port, and the path before "
    "/s2sp/data/ if there is one: https://data.example.org or https://example.org/data. Only http://127.0.0.1:*, "
    "http://localhost:* and http://[::1]:* may leave the port open."
)
"""The grammar of :func:`parse_base`, for errors. They never show the entry: it may hold a password, or a token."""

_HOST: Final = r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z._-]{1,253})"
_PREFIX: Final = r"(?P<prefix>(?:/[0-9A-Za-z._~-]+)*)"
_RESOURCE: Final = re.compile(
    rf"(?P<scheme>https?)://{_HOST}(?::(?P<port>[1-9][0-9]{{0,4}}))?{_PREFIX}"
    rf"{re.escape(wire.DATA_PREFIX)}(?P<token>[A-Za-z0-9_-]{{1,{MAX_TOKEN_CHARS}}})",
    re.ASCII,
)
_BASE: Final = re.compile(rf"(?P<scheme>https?)://{_HOST}(?::(?P<port>[1-9][0-9]{{0,4}}|\*))?{_PREFIX}/?", re.ASCII)
_LABEL: Final = re.compile(r"[0-9a-z_](?:[0-9a-z_-]{0,61}[0-9a-z_])?", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


@dataclass(frozen=True)
class Host:
    """A host name (lower case) or an address, never both meanings at once."""

    name: str
    address: Address | None

    def __str__(self) -> str:
        return f"[{self.name}]" if isinstance(self.address, IPv6Address) else self.name


@dataclass(frozen=True)
class ResourceURL:
    """The parts of a well-formed ``resource_url``; the policy decides whether it may be called."""

    scheme: str
    host: Host
    port: int
    prefix: str
    token: str = field(repr=False)

    @property
    def origin(self) -> str:
        """``scheme://host[:port]``, the port left out where it is the scheme's own."""
        return f"{self.scheme}://{self.host}" + ("" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}")

    @property
    def path(self) -> str:
        """The path that is requested; holds the token."""
        return f"{self.prefix}{wire.DATA_PREFIX}{self.token}"


@dataclass(frozen=True)
class Base:
    """A configured peer: an origin and the path prefix under which its data plane is. ``port`` None is any port."""

    scheme: str
    host: Host
    port: int | None
    prefix: str

    def covers(self, url: ResourceURL) -> bool:
        """Whether ``url`` is of this origin and under this peer's prefix."""
        same_peer = (self.scheme, self.host, self.prefix) == (url.scheme, url.host, url.prefix)
        return same_peer and self.port in (None, url.port)


def parse_resource_url(text: object) -> ResourceURL | None:
    """Split ``text`` into its parts; None if it is anything but ``<base>/s2sp/data/<token>`` in its one spelling."""
    if not isinstance(text, str) or len(text) > MAX_URL_CHARS or not text.isascii():
        return None
    match = _RESOURCE.fullmatch(text)
    if match is None:
        return None
    scheme, prefix = match["scheme"], match["prefix"]
    host = _parse_host(match["host"])
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    if host is None or port > 65535 or _climbs(prefix):
        return None
    return ResourceURL(scheme, host, port, prefix, match["token"])


def parse_base(text: object) -> Base | None:
    """Parse a configured peer, or return None. A trailing slash is dropped; the port ``*`` needs a loopback host.

    A whole ``resource_url`` is refused: its token would end up in the configuration.
    """
    if not isinstance(text, str) or len(text) > MAX_URL_CHARS or not text.isascii():
        return None
    match = _BASE.fullmatch(text)
    if match is None:
        return None
    scheme, prefix = match["scheme"], match["prefix"]
    host = _parse_host(match["host"])
    if host is None or _climbs(prefix) or wire.DATA_PREFIX in f"{prefix}/":
        return None
    if match["port"] == "*":
        return Base(scheme, host, None, prefix) if host.name in LOOPBACK_NAMES else None
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    return Base(scheme, host, port, prefix) if port <= 65535 else None


def _climbs(prefix: str) -> bool:
    """Whether a path has dot segments, which a server or proxy would resolve into another path than the one compared."""
    return any(set(segment) == {"."} for segment in prefix.split("/")[1:])


@lru_cache(maxsize=64)
def _parse_host(text: str) -> Host | None:
    if text.startswith("["):
        return _parse_ipv6(text[1:-1])
    name = text.lower()
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # Some parser takes any name that ends in a number for an IPv4 address (127.1, 2130706433, 0x7f.1, 0177.0.0.1).
        # Here only the canonical dotted quad is one, and the others are refused.
        return _parse_ipv4(name)
    return Host(name, None) if all(_LABEL.fullmatch(label) for label in labels) else None


def _parse_ipv4(text: str) -> Host | None:
    try:
        return Host(text, IPv4Address(text))  # accepts the dotted quad without leading zeros, and nothing else
    except ValueError:
        return None


def _parse_ipv6(text: str) -> Host | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # An embedded IPv4 address can be written as such; in this form it is a disguise.
    if not isinstance(address, IPv6Address) or embedded_ipv4(address):
        return None
    return Host(str(address), address)
