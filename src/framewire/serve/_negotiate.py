"""What a client can read, from its request headers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from framewire import wire


@dataclass(frozen=True)
class Wants:
    """The form of an answer.

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


class Headers:
    """Case-insensitive view of ASGI's header list; repeated headers are joined by commas."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in raw:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
            self._values[key] = f"{self._values[key]}, {text}" if key in self._values else text

    def get(self, name: str) -> str:
        """The header's value, or the empty text."""
        return self._values.get(name.lower(), "")


def negotiate(headers: Headers, *, near: bool = True) -> Wants:
    """Read what the client can read.

    Arrow only for a client that names its media type: ``*/*`` is what reference clients send, and they read JSON.

    Args:
        headers: The request's.
        near: Whether the client is on this host, where compression never pays.
    """
    arrow = False
    codec: str | None = None
    for part in _split(headers.get("accept"), ","):
        media, *parameters = (piece.strip().lower() for piece in _split(part, ";"))
        values = dict(_parameter(text) for text in parameters)
        if media == wire.ARROW_STREAM and float(values.get("q", "1") or "1") > 0:
            arrow = True
            offered = [name.strip() for name in values.get("codecs", "").split(",")]
            codec = None if near else next((name for name in offered if name in wire.CODECS), None)
    views = wire.TYPES_VIEWS in [part.strip().lower() for part in headers.get(wire.H_TYPES).split(",")]
    return Wants(arrow, views, headers.get(wire.H_MAP), codec)


def _split(text: str, separator: str) -> list[str]:
    """Split outside of quoted strings: ``codecs="zstd, lz4"`` is one parameter."""
    return re.findall(rf'(?:[^{separator}"]|"[^"]*"?)+', text)


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    value = value.strip().strip('"')
    return name.strip(), value if name.strip() != "q" or re.fullmatch(r"[01](\.\d{0,3})?", value) else "1"


@dataclass(frozen=True)
class ByteRange:
    """One satisfiable range of bytes, ``start`` to ``stop`` (exclusive)."""

    start: int
    stop: int


def parse_range(text: str, nbytes: int) -> ByteRange | None:
    """Read a ``Range`` header.

    Returns:
        The range; None where the header is to be ignored (RFC 9110: other units, several ranges, malformed text).

    Raises:
        ValueError: A well-formed range outside the body.
    """
    unit, found, spec = text.partition("=")
    first, dash, last = spec.strip().partition("-")
    if unit.strip().lower() != "bytes" or not found or not dash or "," in spec:
        return None
    if not (first.isdecimal() or first == "") or not (last.isdecimal() or last == "") or not (first or last):
        return None
    if not first:
        start, stop = max(nbytes - int(last), 0), nbytes
    else:
        start, stop = int(first), min(int(last) + 1, nbytes) if last else nbytes
        if last and int(last) < start:
            return None
    if start >= stop:
        raise ValueError(text)
    return ByteRange(start, stop)
