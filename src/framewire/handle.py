"""Handle: the reference to a published table that the agent carries instead of its rows; and the form of its token."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from framewire import wire
from framewire.errors import ArgumentError

_TOKEN = re.compile(rf"{wire.TOKEN_PREFIX}[a-z2-7]{{{wire.TOKEN_RANDOM_CHARS}}}")


def new_token() -> str:
    """Mint a token: ``fw1`` and 32 base32 characters, 160 bits from the operating system."""
    return wire.TOKEN_PREFIX + "".join(secrets.choice(wire.TOKEN_ALPHABET) for _ in range(wire.TOKEN_RANDOM_CHARS))


def is_framewire_token(token: str) -> bool:
    """True for a token of wire version 1; any other belongs to a legacy peer."""
    return _TOKEN.fullmatch(token) is not None


def token_hash(token: str) -> bytes:
    """SHA-256 of a token. A store keeps only this, so that a dump of its index opens nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True)
class Handle:
    """A published table as the agent carries it.

    Attributes:
        resource_url: Presigned URL, ``<base>/s2sp/data/<token>``. A secret: it is absent from ``repr``.
        total_rows: Rows of the published table.
        schema: Column name to ``str(pa.DataType)``, in column order, ``_row_id`` first.
        nbytes: Bytes of the stored Arrow IPC stream.
        expires_at: When the handle stops working (aware, UTC).
        max_uses: Acknowledged deliveries allowed, or None for any number until expiry.
    """

    resource_url: str = field(repr=False)
    total_rows: int
    schema: Mapping[str, str]
    nbytes: int
    expires_at: datetime
    max_uses: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The handle as a JSON object, with ``expires_at`` in ISO 8601. Holds the token: do not log it."""
        return {
            "resource_url": self.resource_url,
            "total_rows": self.total_rows,
            "schema": dict(self.schema),
            "nbytes": self.nbytes,
            "expires_at": self.expires_at.isoformat().replace("+00:00", "Z"),
            "max_uses": self.max_uses,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Handle:
        """Rebuild a handle from :meth:`to_dict`.

        Raises:
            ArgumentError: A key is missing or a value has the wrong form.
        """
        try:
            return cls(
                resource_url=str(data["resource_url"]),
                total_rows=int(data["total_rows"]),
                schema={str(k): str(v) for k, v in data["schema"].items()},
                nbytes=int(data["nbytes"]),
                expires_at=datetime.fromisoformat(str(data["expires_at"])),
                max_uses=None if data.get("max_uses") is None else int(data["max_uses"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            # The values may hold the token, so only the kind of failure is named.
            raise ArgumentError(
                f"This is not a handle: {type(exc).__name__} while reading it.",
                hint="Pass the object that Handle.to_dict() returned, with all its keys.",
            ) from None
