"""Names and limits of wire version 1, each with its reason. Normative text: ``docs/reference/wire-protocol.md``."""

from __future__ import annotations

from typing import Final

WIRE_VERSION: Final = "1"

# --- the row's identity ------------------------------------------------------------------------------------------------
ROW_ID: Final = "_row_id"
"""First column of every stored table: int64, not null, 0..n-1. The reference's name, so its clients can join on it."""

# --- paths and tokens --------------------------------------------------------------------------------------------------
PLANE_PREFIX: Final = "/s2sp/"
"""Every path of a data plane begins with it; where both planes share a port, all other paths are the MCP server's."""
DATA_PREFIX: Final = PLANE_PREFIX + "data/"
"""The reference's path; a presigned URL is ``<base>/s2sp/data/<token>``."""
HEALTH_PATH: Final = PLANE_PREFIX + "health"
TOKEN_PREFIX: Final = "fw1"
"""Promises wire version 1: a client may use ranges, Arrow and an empty selection with such a token only."""
TOKEN_RANDOM_CHARS: Final = 32
"""Lower-case base32 characters after the prefix: 5 bits each, 160 random bits."""
TOKEN_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"

# --- media types -------------------------------------------------------------------------------------------------------
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
"""Registered with IANA for the Arrow IPC streaming format."""
JSON: Final = "application/json"
CODECS: Final = ("zstd", "lz4")
"""Arrow's buffer compressions, as the parameter ``codecs`` of the media type names them."""
DATA_URL_PREFIX: Final = "data:application/vnd.apache.arrow.stream;base64,"

# --- headers -----------------------------------------------------------------------------------------------------------
H_VERSION: Final = "S2SP-Version"
H_ROWS: Final = "S2SP-Rows"
H_CHECKSUM: Final = "S2SP-Checksum"
H_TYPES: Final = "S2SP-Types"
H_LEASE: Final = "S2SP-Lease"
H_MAP: Final = "S2SP-Map"
"""Same-host mapping. A client sends the identity of its user and host; one with the same identity sends the body's location."""
TYPES_VIEWS: Final = "views"
"""Value of ``S2SP-Types`` sent by a client that reads string and binary views."""
CHECKSUM_ALGORITHM: Final = "xxh3-128"
"""25 GB/s here, against 1.7 GB/s for SHA-256: integrity of a transfer, not authenticity."""

# --- request keys ------------------------------------------------------------------------------------------------------
REQUEST_KEYS: Final = frozenset({"row_ids", "columns", "where"})
ACK_KEYS: Final = frozenset({"ack", "rows", "checksum"})

# --- schema metadata ---------------------------------------------------------------------------------------------------
KEPT_FIELD_METADATA: Final = frozenset(
    {b"_PL_ENUM_VALUES", b"_PL_ENUM_VALUES2", b"_PL_CATEGORICAL", b"_PL_CATEGORICAL2"}
)
"""Field metadata that is kept when a table is published: without it a Polars Enum arrives as a Categorical."""

# --- limits ------------------------------------------------------------------------------------------------------------
SLICE_BYTES: Final = 1 << 20
"""Bytes handed to the HTTP server at a time: large enough to amortise a call, small enough for back-pressure."""
MAX_REQUEST_BYTES: Final = 16 << 20
"""Largest request body: about two million scattered row ids."""
MIN_COMPRESSED_BYTES: Final = 64 << 10
"""Bodies below this are sent uncompressed: a round trip costs more than their bytes."""
MAX_JSON_ANSWER_BYTES: Final = 64 << 20
"""Largest JSON response to a reference client; Arrow has no such limit."""
MAX_REPLY_BYTES: Final = 1 << 20
"""Largest tool reply: older MCP clients refuse a server-sent event above 1 MiB."""
ABSTRACT_LIMIT: Final = 100
"""Rows shown to the agent unless the decorator says otherwise."""
MAX_SAFE_INTEGER: Final = (1 << 53) - 1
"""Largest integer that every JSON reader keeps exact; larger ones travel as text."""
MAX_COLUMNS: Final = 100_000
"""Columns that a consumer accepts: schemas are parsed before bodies, so this bounds work done for a stranger."""
