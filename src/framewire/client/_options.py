"""Options of a fetch, as one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias, get_args

import httpx

from framewire.client import _httpx
from framewire.client._call import Call, Response
from framewire.client._cancellation import Cancellation
from framewire.client._policy import PeerPolicy
from framewire.client._transport import DirectTransport
from framewire.errors import ArgumentError, SelectionError
from framewire.settings import Settings

Transport: TypeAlias = DirectTransport | httpx.BaseTransport | httpx.AsyncBaseTransport

_SHARED_TRANSPORT: Final = DirectTransport()
"""The process's own: its kept connections serve every fetch. Closed at exit."""


@dataclass(frozen=True)
class Options:
    """How a fetch is carried out; as in :func:`framewire.fetch`.

    Attributes:
        settings: Limits, the deadline included.
        policy: Which peers may be called; None for that of the settings.
        transport: Replaces framewire's own.
        cancellation: Ends the fetch early.
    """

    settings: Settings
    policy: PeerPolicy | None = None
    transport: Transport | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)

    @classmethod
    def of(
        cls,
        settings: Settings | None = None,
        policy: PeerPolicy | None = None,
        transport: Transport | None = None,
        deadline_seconds: float | None = None,
    ) -> Options:
        """From the keyword arguments of the public functions.

        Raises:
            ArgumentError: ``policy`` or ``transport`` is of another type.
        """
        if policy is not None and not isinstance(policy, PeerPolicy):
            raise ArgumentError(f"policy is of type {type(policy).__name__}.", hint="Pass a framewire.PeerPolicy.")
        if transport is not None and not isinstance(transport, get_args(Transport)):
            raise ArgumentError(
                f"transport is of type {type(transport).__name__}.",
                hint="Pass a transport, such as httpx.HTTPTransport(), not a client; fetch_async takes async ones as well.",
            )
        return cls((settings or Settings.from_env()).replace(deadline_seconds=deadline_seconds), policy, transport)

    def sender(self) -> Callable[[Call], Response]:
        """The function that carries out calls."""
        if self.transport is None:
            return _SHARED_TRANSPORT.send
        if isinstance(self.transport, DirectTransport):
            return self.transport.send
        return partial(_httpx.send, self.transport)


def refuse_where(where: str | None) -> None:
    """Refuse the reserved argument, for now.

    Raises:
        SelectionError: It was passed.
    """
    if where:
        raise SelectionError("'where' is not available yet.", hint="Select with row_ids.")
