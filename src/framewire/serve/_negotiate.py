"""Content negotiation: the response format that a client accepts, and the range of bytes it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from framewire import wire
from framewire.errors import BadRangeError

_TYPES: Final = wire.H_TYPES.lower()
_MAP: Final = wire.H_MAP.lower()
_RANGE: Final = re.compile(r"\s*bytes\s*=\s*(\d{0,19})-(\d{0,19})\s*", re.ASCII | re.IGNORECASE)
_REMEMBERED_CHARS: Final = 512
"""Clients choose the headers, so only short ones are remembered: at most 64 times this."""


@dataclass(frozen=True)
class Accepted:
    """The response format that a client accepts.

    Attributes:
        arrow: An Arrow IPC stream; the reference's JSON otherwise.
        views: String and binary views may stay as they are.
        host: The client's host identity when it can map bodies of this host, else empty.
        codec: Arrow's buffer compression that the client reads and that may pay on its way, else None.
    """

    arrow: bool
    views: bool
    host: str = ""
    codec: str | None = None


def negotiate(headers: Mapping[str, str], *, near: bool = True) -> Accepted:
    """Read the format that a client accepts.

    Arrow only for a client that names its media type: ``*/*`` is what reference clients send, and they read JSON.

    Args:
        headers: The request's, by name in lower case.
        near: Whether the client is on this host, where compression never pays.
    """
    accept, types, host = headers.get("accept", ""), headers.get(_TYPES, ""), headers.get(_MAP, "")
    is_short = len(accept) + len(types) + len(host) <= _REMEMBERED_CHARS
    return (_remembered if is_short else _negotiate)(accept, types, host, near)


def _negotiate(accept: str, types: str, host: str, near: bool) -> Accepted:
    arrow = False
    codec: str | None = None
    for part in _split(accept, ","):
        media, *parameters = [piece.strip().lower() for piece in _split(part, ";")] or [""]
        values = dict(_parameter(text) for text in parameters)
        if media == wire.ARROW_STREAM and float(values.get("q", "1") or "1") > 0:
            arrow = True
            offered = [name.strip() for name in values.get("codecs", "").split(",")]
            codec = None if near else next((name for name in offered if name in wire.CODECS), None)
    views = wire.TYPES_VIEWS in [part.strip().lower() for part in types.split(",")]
    return Accepted(arrow, views, host, codec)


_remembered = lru_cache(maxsize=64)(_negotiate)


def _split(text: str, separator: str) -> list[str]:
    """Split outside of quoted strings: ``codecs="zstd, lz4"`` is one parameter."""
    return re.findall(rf'(?:[^{separator}"]|"[^"]*"?)+', text)


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    value = value.strip().strip('"')
    return name.strip(), value if name.strip() != "q" or re.fullmatch(r"[01](\.\d{0,3})?", value) else "1"


def parse_range(text: str, nbytes: int) -> range | None:
    """Read a ``Range`` header.

    Args:
        text: The header's value.
        nbytes: Length of the body, in bytes.

    Returns:
        Positions of the bytes; None where the header is to be ignored (RFC 9110: other units, several ranges, malformed text).

    Raises:
        BadRangeError: A well-formed range outside the body.
    """
    match = _RANGE.fullmatch(text)
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        positions = range(max(nbytes - int(last), 0), nbytes)
    elif last and int(last) < int(first):
        return None
    else:
        positions = range(int(first), min(int(last) + 1, nbytes) if last else nbytes)
    if not positions:
        raise BadRangeError(
            "The range lies outside the body.", hint=f"It has {nbytes} bytes.", details={"nbytes": nbytes}
        )
    return positions
