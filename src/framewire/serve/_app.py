"""DataApp: the pure ASGI app that speaks wire version 1."""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.routing import Route, Router

from framewire import wire
from framewire.errors import ArgumentError, LifecycleError, RequestError, S2SPError, SelectionError, TooLargeError
from framewire.host.registry import CHALLENGE_CHARS, Registration, is_challenge
from framewire.selection import Selection, parse_selection
from framewire.serve._answer import Answer, answer, is_at_hand
from framewire.serve._hosts import HostPolicy
from framewire.serve._negotiate import Headers, Wants, negotiate
from framewire.serve._send import Message, Receive, Scope, Send, in_thread, send_answer, send_leased
from framewire.store import BodyStore, Entry, Hold

logger = logging.getLogger(__name__)

_SMALL_BYTES: Final = 4096
"""A request body that is parsed on the loop, and read before its token is looked up."""


class MethodError(RequestError):
    """A method that the path does not answer to."""

    status = 405


class DataApp:
    """ASGI app over a body store: ``/s2sp/data/{token}`` and ``/s2sp/health``.

    Args:
        store: Where bodies are.
        hosts: Which ``Host`` and ``Origin`` headers are answered.
        max_selection_bytes: Largest scattered selection that is materialised.

    Attributes:
        registration: This plane's entry in its user's registry, whose nonce it proves to know when challenged.
    """

    def __init__(self, store: BodyStore, hosts: HostPolicy, *, max_selection_bytes: int) -> None:
        self.hosts = hosts
        self.registration: Registration | None = None
        self._store = store
        self._max_selection_bytes = max_selection_bytes
        self._router = Router(
            [
                Route(wire.HEALTH_PATH, _Endpoint(self._health)),
                Route(wire.DATA_PREFIX + "{token}", _Endpoint(self._data)),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; every failure is one of framewire's JSON errors."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            headers = Headers(scope["headers"])
            self.hosts.check(headers.get("host"), headers.get("origin"))
            await self._router(scope, receive, watched)
        except S2SPError as exc:
            if started:
                raise
            await _send_error(exc, scope, send)
        except Exception:
            # Once bytes are out, only breaking the connection tells the client; before that, a plain error can.
            if started:
                raise
            logger.exception("A data-plane request failed")
            await _send_error(S2SPError("The data plane failed.", hint="Try again; its log says more."), scope, send)

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodError(f"{scope['method']} is not answered here.", hint="Use GET.")
        answer: dict[str, Any] = {"status": "ok"}
        challenge = dict(_pairs(scope.get("query_string", b""))).get("challenge")
        if challenge is not None:
            if not is_challenge(challenge):
                raise SelectionError(
                    "This is not a challenge.", hint=f"Send {CHALLENGE_CHARS} lower-case hexadecimal digits."
                )
            if self.registration is not None:
                answer["proof"] = self.registration.prove(challenge)
        await _send_json(200, answer, scope, send)

    async def _data(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = scope["path_params"]["token"]
        method = scope["method"]
        if method == "DELETE":
            self._store.revoke(token)
            await _send_json(200, {"revoked": True}, scope, send)
            return
        if method not in ("GET", "HEAD", "POST"):
            raise MethodError(f"{method} is not answered here.", hint="Use POST, GET, HEAD or DELETE.")
        headers = Headers(scope["headers"])
        request: Any = None
        if method == "POST" and _is_small(headers):
            request = _parse(await _read(receive, headers))
            if isinstance(request, dict) and "ack" in request:
                await self._acknowledge(token, request, scope, send)
                return
        with self._store.open(token) as entry:
            if method == "POST" and request is None:
                # Parsing a large list of ids would hold up every other transfer on this loop.
                request = await in_thread(_parse, await _read(receive, headers))
            elif method != "POST":
                request = _query(scope.get("query_string", b""))
            is_small = method != "POST" or _is_small(headers)
            selection = parse_selection(request) if is_small else await in_thread(parse_selection, request)
            wants = negotiate(headers, near=_is_near(scope))
            ranged = headers.get("range") if method == "GET" else ""
            make = partial(self._make, entry, selection, wants, ranged, headers.get("if-range"))
            if selection.is_whole and is_at_hand(entry, wants) and not ranged:
                # Nothing to compute: a hop to a thread would take longer than the answer.
                made = make()
            else:
                made = await in_thread(make)
            with made.room:
                cold = entry.body.kept.cold
                # Taken last: a refused request spends nothing of a limited handle.
                hold = None if method == "HEAD" else self._hold(made, entry, headers.get(wire.H_LEASE) or None)
                if hold is None:
                    await send_answer(made, send, head=method == "HEAD", cold=cold)
                else:
                    await send_leased(made, hold, receive, send, cold=cold, acknowledges=wants.arrow)

    async def _acknowledge(self, token: str, request: dict[str, Any], scope: Scope, send: Send) -> None:
        lease, rows, checksum = request["ack"], request.get("rows"), request.get("checksum")
        if (
            set(request) != wire.ACK_KEYS
            or type(rows) is not int
            or not isinstance(lease, str)
            or not isinstance(checksum, str)
        ):
            raise ArgumentError(
                "The acknowledgement is malformed.", hint='Send {"ack": lease, "rows": n, "checksum": "..."}.'
            )
        counts = self._store.acknowledge(token, lease, rows, checksum)
        await _send_json(200, {"acknowledged": True, "counts": counts}, scope, send)

    def _hold(self, made: Answer, entry: Entry, lease: str | None) -> Hold | None:
        """The lease under which an answer is sent, told what its acknowledgement must repeat; None without a limit."""
        hold = self._store.hold(entry, lease)
        if hold is not None and made.status == 200:
            hold.announce(int(made.headers[wire.H_ROWS]), made.headers[wire.H_CHECKSUM])
        return hold

    def _make(self, entry: Entry, selection: Selection, wants: Wants, byte_range: str, if_range: str) -> Answer:
        return answer(
            entry,
            selection,
            wants,
            self._store,
            max_selection_bytes=self._max_selection_bytes,
            byte_range=byte_range,
            if_range=if_range,
        )


class _Endpoint:
    """Marks a bound method as an ASGI app: starlette would take a plain function for a request handler."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        return (
            parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict") if raw else []
        )
    except ValueError:
        raise SelectionError(
            "The query string is malformed.", hint="Send ?row_ids=0,2,5-99&columns=a&columns=b."
        ) from None


def _query(raw: bytes) -> dict[str, Any]:
    """``row_ids=0,2,5-99&columns=a&columns=b`` as the object that a POST would have sent."""
    request: dict[str, Any] = {}
    for key, value in _pairs(raw):
        if key == "columns":
            request.setdefault("columns", []).append(value)
        elif key in request:
            raise SelectionError(f"{key[:80]!r} stands twice in the query.", hint="Send it once.")
        else:
            request[key] = value
    return request


async def _read(receive: Receive, headers: Headers) -> bytes:
    """The request's body, never more than the limit."""
    too_large = TooLargeError(
        f"The request is above {wire.MAX_REQUEST_BYTES} bytes.",
        hint='Write neighbouring row ids as ranges ("5-99"), or split it.',
    )
    if headers.get("content-length").isdecimal() and int(headers.get("content-length")) > wire.MAX_REQUEST_BYTES:
        raise too_large
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise LifecycleError("The client went away before its request was whole.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > wire.MAX_REQUEST_BYTES:
            raise too_large
        if not message.get("more_body", False):
            return b"".join(parts)


def _is_near(scope: Scope) -> bool:
    """Whether the client is on this host, by whichever address; one whose address is not known is taken to be."""
    client, server = scope.get("client"), scope.get("server")
    try:
        return client is None or (server and client[0] == server[0]) or ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return True


def _is_small(headers: Headers) -> bool:
    length = headers.get("content-length")
    return length.isdecimal() and int(length) <= _SMALL_BYTES


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise SelectionError(
            "The request is not valid JSON.", hint='Send {"row_ids": [...], "columns": [...]} or {}.'
        ) from None


async def _send_json(status: int, payload: Any, scope: Scope, send: Send) -> None:
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    headers = [
        (b"content-type", wire.JSON.encode()),
        (b"content-length", str(len(text)).encode()),
        (wire.H_VERSION.encode(), wire.WIRE_VERSION.encode()),
        (b"cache-control", b"no-store"),
    ]
    if isinstance(payload, dict) and "retry_after_seconds" in payload:
        headers.append((b"retry-after", str(payload["retry_after_seconds"]).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else text, "more_body": False})


async def _send_error(exc: S2SPError, scope: Scope, send: Send) -> None:
    await _send_json(exc.status, exc.to_wire(), scope, send)
