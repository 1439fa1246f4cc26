"""Errors that several modules of the client raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from framewire.errors import TooLargeError, TransferFailedError, TransferTimeoutError

if TYPE_CHECKING:
    from framewire.client._call import Headers

AGAIN: Final = "Nothing was kept; call the tool again, or fetch a fresh resource_url from the resource tool."


class CallCancelledError(Exception):
    """The caller of a blocking call has gone away; raised in the abandoned thread, where nobody sees it."""


class StaleConnectionError(Exception):
    """A kept connection was closed before the first byte of the response: the request may be sent once more."""


class BrokenTransferError(TransferFailedError):
    """The connection ended in the middle of an exchange; the request may be made again.

    Attributes:
        headers: Head of the response if it arrived, else None.
        buffer: Destination of the body; None before it was allocated.
        received: Bytes of the body that arrived.
    """

    headers: Headers | None = None
    buffer: Any = None
    received: int = 0


def timed_out(when: str) -> TransferTimeoutError:
    """The error for a deadline that passed ``when``."""
    return TransferTimeoutError(
        f"The deadline passed {when}.",
        hint="Select fewer rows or columns, raise FRAMEWIRE_DEADLINE_SECONDS, or try again.",
    )


def too_large(size: int | None, max_bytes: int) -> TooLargeError:
    """The error for a body above the limit; ``size`` is None when it was not announced."""
    return TooLargeError(
        f"The response body is {size} bytes, above the limit of {max_bytes}."
        if size is not None
        else f"The response body is above the limit of {max_bytes} bytes.",
        hint="Select fewer rows with row_ids or fewer columns, or raise FRAMEWIRE_MAX_BODY_BYTES.",
    )
