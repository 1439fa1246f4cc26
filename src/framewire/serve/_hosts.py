"""Which ``Host`` and ``Origin`` headers a data plane accepts: the guard against DNS rebinding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from framewire.errors import BadHostError
from framewire.host.addresses import LOOPBACK_NAMES, WILDCARD_NAMES, parse_address

_HINT: Final = "The server's operator can add it to FRAMEWIRE_ALLOWED_HOSTS, or set FRAMEWIRE_PUBLIC_URL."


class HostPolicy:
    """Decides by which names a request may address this server.

    A page in a browser can make any name resolve to this server, but cannot change the name that the browser sends: so names
    are listed. A server bound to every address also answers to any IP literal, which no name server can forge.

    Args:
        bound: The address that the listener is bound to.
        names: Further host names: the public URL's, and those of ``FRAMEWIRE_ALLOWED_HOSTS``.
    """

    def __init__(self, bound: str, names: Iterable[str] = ()) -> None:
        self._any_literal = bound in WILDCARD_NAMES
        self._names = LOOPBACK_NAMES | {bound.lower()} | {name.lower() for name in names}

    def check(self, host: str, origin: str) -> None:
        """Refuse a foreign ``Host`` or ``Origin``.

        Raises:
            BadHostError: The name is not this server's.
        """
        if not self._knows(f"//{host}"):
            raise BadHostError("The Host header names another server.", hint=_HINT)
        if origin and not self._knows(origin):
            raise BadHostError("The Origin header names another site.", hint=_HINT)

    def _knows(self, url: str) -> bool:
        try:
            name = (urlsplit(url).hostname or "").lower()
        except ValueError:
            return False
        if name in self._names:
            return bool(name)
        return self._any_literal and parse_address(name) is not None
