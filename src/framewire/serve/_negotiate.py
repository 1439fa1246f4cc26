"""What a client can read, from its request headers."""

from __future__ import annotations

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
    """

    arrow: bool
    views: bool
    host: str = ""


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


def negotiate(headers: Headers) -> Wants:
    """Arrow only for a client that names its media type: ``*/*`` is what reference clients send, and they read JSON."""
    arrow = False
    for part in headers.get("accept").split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if media == wire.ARROW_STREAM and not any(p.replace(" ", "") in ("q=0", "q=0.0") for p in parameters):
            arrow = True
    views = wire.TYPES_VIEWS in [part.strip().lower() for part in headers.get(wire.H_TYPES).split(",")]
    return Wants(arrow, views, headers.get(wire.H_MAP))


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
