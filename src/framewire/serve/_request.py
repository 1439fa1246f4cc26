"""One HTTP request of a data plane: its headers, query and body, read within limits."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

from framewire import wire
from framewire.errors import LifecycleError, SelectionError, TooLargeError
from framewire.host.addresses import is_local_peer

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_SMALL_BYTES: Final = 4096
"""A request body that is parsed on the loop, and read before its token is looked up."""


class Request:
    """One request, read from its ASGI scope.

    Attributes:
        method: In upper case.
        path: Decoded, below the path that the app is mounted at.
        headers: By name in lower case; repeated headers are joined by commas, so that two ``Host`` headers are neither.
        receive: ASGI's receive.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.receive = receive
        path, root = scope["path"], scope.get("root_path", "")
        self.path: str = path[len(root) :] if root and path.startswith(f"{root}/") else path
        self.headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self._query: bytes = scope.get("query_string", b"")
        self._client, self._server = scope.get("client"), scope.get("server")

    @property
    def is_near(self) -> bool:
        """Whether the client is on this host, by whichever address; one whose address is not known counts as near."""
        if self._client is None or (self._server and self._client[0] == self._server[0]):
            return True
        return is_local_peer(self._client[0])

    @property
    def is_small(self) -> bool:
        """Whether this is a ``POST`` whose announced body is small."""
        return self.method == "POST" and (length := self._length()) is not None and length <= _SMALL_BYTES

    def _length(self) -> int | None:
        text = self.headers.get("content-length", "")
        return int(text) if text.isdecimal() else None

    async def body(self) -> bytes:
        """Read the whole body.

        Raises:
            TooLargeError: It is above ``MAX_REQUEST_BYTES``; no more than that is read.
            LifecycleError: The client disconnected.
        """
        parts: list[bytes] = []
        size, more = 0, True
        while more and max(size, self._length() or 0) <= wire.MAX_REQUEST_BYTES:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise LifecycleError("The client disconnected before it had sent its whole request.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
        if more or size > wire.MAX_REQUEST_BYTES:
            raise TooLargeError(
                f"The request is above {wire.MAX_REQUEST_BYTES} bytes.",
                hint='Write neighbouring row ids as ranges ("5-99"), or split it.',
            )
        return b"".join(parts)

    def query_pairs(self) -> list[tuple[str, str]]:
        """Return the query's keys and values in order.

        Raises:
            SelectionError: The query string is malformed.
        """
        if not self._query:
            return []
        try:
            text = self._query.decode("ascii")
            return parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict")
        except ValueError:
            raise SelectionError(
                "The query string is malformed.", hint="Send ?row_ids=0,2,5-99&columns=a&columns=b."
            ) from None

    def query(self) -> dict[str, Any]:
        """Return ``row_ids=0,2,5-99&columns=a&columns=b`` as the object that a ``POST`` would have sent.

        Raises:
            SelectionError: The query string is malformed, or a key appears twice.
        """
        selection: dict[str, Any] = {}
        for key, value in self.query_pairs():
            if key == "columns":
                selection.setdefault("columns", []).append(value)
            elif key in selection:
                raise SelectionError(f"{key[:80]!r} appears twice in the query.", hint="Send it once.")
            else:
                selection[key] = value
        return selection


def parse_json(body: bytes) -> Any:
    """Parse a request body; an empty one is ``{}``.

    Raises:
        SelectionError: It is not JSON.
    """
    try:
        return json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise SelectionError(
            "The request is not valid JSON.", hint='Send {"row_ids": [...], "columns": [...]} or {}.'
        ) from None
