"""Every error that framewire raises.

The tree (stable ``code`` on the right; the same code travels on the wire)::

    S2SPError                       error
    ├── PublishError                publish_failed
    │   ├── NotATableError          not_a_table        (also a TypeError)
    │   ├── UnsupportedTypeError    unsupported_type   (also a TypeError)
    │   ├── UnsupportedValueError   unsupported_value  (also a ValueError)
    │   ├── ColumnNameError         bad_column_name    (also a ValueError)
    │   ├── ReplyTooLargeError      reply_too_large
    │   └── NoRoomError             no_room
    ├── RequestError                bad_request        (also a ValueError)
    │   ├── ArgumentError           bad_argument
    │   ├── SelectionError          bad_selection
    │   ├── RowOutOfRangeError      row_out_of_range
    │   ├── UnknownColumnError      unknown_column
    │   ├── UnknownKeyError         unknown_key
    │   ├── BadRangeError           bad_range
    │   ├── BadHostError            bad_host
    │   └── UnsupportedVersionError unsupported_version
    ├── InvalidTokenError           unknown_handle
    │   ├── ExpiredError            expired
    │   ├── SpentError              spent
    │   └── RevokedError            revoked
    ├── TransferDeniedError         peer_refused
    ├── TransferFailedError         transfer_failed
    │   ├── BadBodyError            bad_body
    │   ├── TooLargeError           too_large
    │   ├── LeasedError             leased
    │   └── OverloadedError         overloaded
    ├── TransferTimeoutError        deadline_exceeded  (also a TimeoutError)
    ├── SettingError                bad_setting        (also a ValueError)
    ├── SignatureError              bad_signature      (also a TypeError)
    └── LifecycleError              not_running        (also a RuntimeError)

A message names what was wrong (the column, row, value or setting); ``hint`` says what would have worked or what to do
next. ``str(error)`` is both, so that a model always sees what to do next. No message ever holds a token.
``S2SPError``, ``TransferDeniedError``, ``TransferFailedError``, ``TransferTimeoutError`` and ``InvalidTokenError`` keep
the names of the reference implementation (``mcp-sd``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar

__all__ = [
    "ArgumentError",
    "BadBodyError",
    "BadHostError",
    "BadRangeError",
    "ColumnNameError",
    "ExpiredError",
    "InvalidTokenError",
    "LeasedError",
    "LifecycleError",
    "NoRoomError",
    "NotATableError",
    "OverloadedError",
    "PublishError",
    "ReplyTooLargeError",
    "RequestError",
    "RevokedError",
    "RowOutOfRangeError",
    "S2SPError",
    "SelectionError",
    "SettingError",
    "SignatureError",
    "SpentError",
    "TooLargeError",
    "TransferDeniedError",
    "TransferFailedError",
    "TransferTimeoutError",
    "UnknownColumnError",
    "UnknownKeyError",
    "UnsupportedTypeError",
    "UnsupportedValueError",
    "UnsupportedVersionError",
]


class S2SPError(Exception):
    """Base of every error that framewire raises.

    Attributes:
        code: Stable machine-readable name; clients branch on it, never on the message.
        status: HTTP status that carries this error on the wire.
        message: What was wrong, naming the column, row, value or setting.
        hint: What would have worked, or what to do next. May be empty.
        details: Further JSON facts that travel with the error (for example ``rows_that_fit``).
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500

    def __init__(self, message: str, *, hint: str = "", details: Mapping[str, Any] | None = None) -> None:
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        super().__init__(f"{message} {hint}" if hint else message)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object that carries this error over HTTP; ``error`` is the key that reference clients read."""
        return {"code": self.code, "error": self.message, "hint": self.hint, **self.details}


class PublishError(S2SPError):
    """A value could not be published; nothing was stored and no handle exists."""

    code = "publish_failed"


class NotATableError(PublishError, TypeError):
    """A tool returned something that is not tabular."""

    code = "not_a_table"


class UnsupportedTypeError(PublishError, TypeError):
    """A column's type has no exact form on the wire."""

    code = "unsupported_type"

    @classmethod
    def of_column(cls, path: str, dtype: object, hint: str) -> UnsupportedTypeError:
        """The error for a column, or the part of one at ``path`` (``x.field``, ``x[]``)."""
        message = f"Column {path!r} is {dtype}, which has no exact form on the wire."
        return cls(message, hint=hint, details={"column": path, "type": str(dtype)})


class UnsupportedValueError(PublishError, ValueError):
    """A single value has no exact form in its column, or in JSON; the message names column, row and kind of value."""

    code = "unsupported_value"
    status = 406


class ColumnNameError(PublishError, ValueError):
    """A column's name is missing, duplicated, reserved or not text."""

    code = "bad_column_name"


class ReplyTooLargeError(PublishError):
    """A reply that would enter the agent's context, or an inline body, is above the limit."""

    code = "reply_too_large"


class NoRoomError(PublishError):
    """The memory (and disk) budget cannot hold another body."""

    code = "no_room"
    status = 503


class RequestError(S2SPError, ValueError):
    """A request that cannot succeed unchanged."""

    code = "bad_request"
    status = 400


class ArgumentError(RequestError):
    """A tool or function argument is malformed."""

    code = "bad_argument"


class SelectionError(RequestError):
    """``row_ids``, ``columns`` or ``where`` is malformed."""

    code = "bad_selection"
    status = 422


class RowOutOfRangeError(RequestError):
    """A selected ``_row_id`` does not exist."""

    code = "row_out_of_range"
    status = 422


class UnknownColumnError(RequestError):
    """A named column does not exist."""

    code = "unknown_column"
    status = 422

    @classmethod
    def build(cls, missing: str, available: Iterable[str]) -> UnknownColumnError:
        """Build the error for one missing name, with the nearest match and the names that exist (at most 100)."""
        names = list(available)
        near = get_close_matches(missing, names, n=1)
        shown = ", ".join(names[:100]) + (f", ... ({len(names)} in all)" if len(names) > 100 else "")
        did = f" Did you mean {near[0]!r}?" if near else ""
        return cls(f"There is no column {missing!r}.{did}", hint=f"The columns are: {shown or '(none)'}.")


class UnknownKeyError(RequestError):
    """A request has a key that wire version 1 does not define."""

    code = "unknown_key"
    status = 422


class BadRangeError(RequestError):
    """A ``Range`` header lies outside the body."""

    code = "bad_range"
    status = 416


class BadHostError(RequestError):
    """The ``Host`` or ``Origin`` header names another server than this data plane."""

    code = "bad_host"
    status = 421


class UnsupportedVersionError(RequestError):
    """The peer speaks another version of the wire."""

    code = "unsupported_version"


class InvalidTokenError(S2SPError):
    """The handle is unknown to the resource server."""

    code = "unknown_handle"
    status = 404


class ExpiredError(InvalidTokenError):
    """The handle's time to live has passed."""

    code = "expired"
    status = 410


class SpentError(InvalidTokenError):
    """The handle's uses are all acknowledged."""

    code = "spent"
    status = 410


class RevokedError(InvalidTokenError):
    """The handle was revoked by its owner."""

    code = "revoked"
    status = 410


class TransferDeniedError(S2SPError):
    """The peer policy refuses this ``resource_url``; no connection was made."""

    code = "peer_refused"
    status = 403


class TransferFailedError(S2SPError):
    """A transfer broke off, or the body differs from what was announced. No partial table is ever returned."""

    code = "transfer_failed"
    status = 502


class BadBodyError(TransferFailedError):
    """The bytes that arrived are not a valid body."""

    code = "bad_body"


class TooLargeError(TransferFailedError):
    """A body, selection or expansion is above a limit; ``details`` may say ``rows_that_fit``."""

    code = "too_large"
    status = 413


class LeasedError(TransferFailedError):
    """All remaining uses of a limited handle are in flight; try again later."""

    code = "leased"
    status = 409


class OverloadedError(TransferFailedError):
    """The resource server has no room for this request now; try again later."""

    code = "overloaded"
    status = 503


class TransferTimeoutError(S2SPError, TimeoutError):
    """The deadline for the whole exchange has passed."""

    code = "deadline_exceeded"
    status = 504


class SettingError(S2SPError, ValueError):
    """A setting or constructor argument is malformed; the message names it."""

    code = "bad_setting"


class SignatureError(S2SPError, TypeError):
    """A function cannot become a tool; raised when it is decorated, naming function and parameter."""

    code = "bad_signature"


class LifecycleError(S2SPError, RuntimeError):
    """A data plane was used before it was started, after it was stopped, or in a forked child."""

    code = "not_running"
    status = 503


def _all_errors(cls: type[S2SPError]) -> Iterable[type[S2SPError]]:
    yield cls
    for sub in cls.__subclasses__():
        yield from _all_errors(sub)


def error_from_wire(payload: Mapping[str, Any]) -> S2SPError:
    """Rebuild the error that a data plane sent; an unknown code becomes ``TransferFailedError``."""
    # Reversed, so that a subclass that shares a code with its base does not replace it.
    known = {cls.code: cls for cls in reversed([*_all_errors(S2SPError)])}
    cls = known.get(str(payload.get("code", "")), TransferFailedError)
    details = {k: v for k, v in payload.items() if k not in ("code", "error", "hint")}
    return cls(
        str(payload.get("error", "The resource server refused.")), hint=str(payload.get("hint", "")), details=details
    )
