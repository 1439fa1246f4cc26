"""IP addresses and host names: the network an address belongs to, loopback and wildcard names, a listener's own URL.

Kinds are judged by our own tables. ``ipaddress.is_global`` is not used: its answer changes between Python releases, and
Python 3.11 calls global what is not (``64:ff9b::7f00:1``, ``2002:7f00:1::``, ``::127.0.0.1``, ``fec0::1``).
"""

from __future__ import annotations

import logging
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

Address: TypeAlias = IPv4Address | IPv6Address

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names that every host calls itself by."""
WILDCARD_NAMES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Addresses that bind every interface, and the loopback address that reaches such a listener."""


class AddressKind(Enum):
    """The network an address belongs to. All addresses of one name must be of the same kind."""

    LOOPBACK = "loopback"
    PRIVATE = "private"
    PUBLIC = "public"
    NEVER = "never"


_LOOPBACK_4: Final = IPv4Network("127.0.0.0/8")

_NEVER_4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # "this host": Linux connects 0.0.0.0 to loopback
        "169.254.0.0/16",  # link-local, and the metadata service of most clouds
        "100.100.100.200/32",  # metadata, Alibaba
        "168.63.129.16/32",  # metadata, Azure
        "192.0.0.0/24",  # protocol assignments; 192.0.0.192 is Oracle's metadata
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and 255.255.255.255
    )
)

_PRIVATE_4: Final = tuple(
    IPv4Network(text)
    for text in (
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "172.16.0.0/12",
        "192.168.0.0/16",
        "192.0.2.0/24",  # documentation, here and in the next two
        "198.51.100.0/24",
        "203.0.113.0/24",
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "198.18.0.0/15",  # benchmarks
    )
)

_NEVER_6: Final = tuple(
    IPv6Network(text)
    for text in (
        "fd00:ec2::254/128",  # metadata, Amazon
        "fd20:ce::254/128",  # metadata, Google
        "fd00:c1::a9fe:a9fe/128",  # metadata, Oracle
    )
)

_PRIVATE_6: Final = (IPv6Network("fc00::/7"), IPv6Network("2001:db8::/32"), IPv6Network("3fff::/20"))
_PUBLIC_6: Final = IPv6Network("2000::/3")

_TRANSLATED: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("::ffff:0:0:0/96"))
"""NAT64's two prefixes, and the one of stateless translation (SIIT): an IPv4 address in the last 32 bits."""
_COMPATIBLE: Final = IPv6Network("::/96")
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""Upper half of the interface identifier of an ISATAP address; its lower half is an IPv4 address."""


def parse_address(text: str) -> Address | None:
    """Parse ``text`` as an address, or return None. IPv4 is strictly a dotted quad without leading zeros; zone ids are refused.

    An IPv4-mapped address becomes the IPv4 address that it stands for: the kernel dials it as such.
    """
    if not text.isascii() or "%" in text or "/" in text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def embedded_ipv4(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses inside a mapped, translated, 6to4, Teredo, ISATAP or IPv4-compatible address; else empty."""
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    if any(address in network for network in _TRANSLATED):
        return (low,)
    if address in _COMPATIBLE and int(address) > 1:
        return (low,)
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return (low,)
    return ()


def kind_of(address: Address) -> AddressKind:
    """Return the kind of one address; an address that embeds others is judged by them.

    A translated or tunnelled address that embeds anything but public addresses is ``NEVER``: what it reaches depends on
    a gateway, so "loopback" or "private" inside of it means nothing that an operator could have allowed.
    """
    if isinstance(address, IPv4Address):
        return _kind_4(address)
    inner = embedded_ipv4(address)
    if inner:
        kinds = {_kind_4(ipv4) for ipv4 in inner}
        if address.ipv4_mapped is not None:
            return kinds.pop()
        return AddressKind.PUBLIC if kinds == {AddressKind.PUBLIC} else AddressKind.NEVER
    return _kind_6(address)


def _kind_4(address: IPv4Address) -> AddressKind:
    if address in _LOOPBACK_4:
        return AddressKind.LOOPBACK
    if any(address in network for network in _NEVER_4):
        return AddressKind.NEVER
    return AddressKind.PRIVATE if any(address in network for network in _PRIVATE_4) else AddressKind.PUBLIC


def _kind_6(address: IPv6Address) -> AddressKind:
    if int(address) == 1:
        return AddressKind.LOOPBACK
    if any(address in network for network in _NEVER_6):
        return AddressKind.NEVER
    if any(address in network for network in _PRIVATE_6):
        return AddressKind.PRIVATE
    # An address that is neither private nor global unicast is unspecified, link-local, site-local, multicast or reserved.
    return AddressKind.PUBLIC if address in _PUBLIC_6 else AddressKind.NEVER


@lru_cache(maxsize=256)
def is_local_peer(text: str) -> bool:
    """Whether a connected peer is on this host. One whose address is not an IP address (a Unix socket's) is."""
    address = parse_address(text.partition("%")[0])
    return address is None or kind_of(address) is AddressKind.LOOPBACK


def listener_url(host: str, port: int) -> str:
    """Return the URL at which a listener is reached from this host; a wildcard address is reached on loopback."""
    name = WILDCARD_NAMES.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def warn_unreachable(bound: str, advertised: str) -> None:
    """Warn when a listener accepts connections of other hosts but advertises a URL that they cannot reach.

    Args:
        bound: Host name or address that the listener is bound to.
        advertised: Base of the URLs that are handed out.
    """
    name = urlsplit(advertised).hostname or ""
    if bound not in LOOPBACK_NAMES and (name in LOOPBACK_NAMES or name in WILDCARD_NAMES):
        logger.warning(
            "The server listens on %r but its data plane advertises %s, which other hosts cannot reach. "
            "Set FRAMEWIRE_PUBLIC_URL (or public_url=) to the address that consumers use.",
            bound,
            advertised,
        )
