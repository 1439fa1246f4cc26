"""Body: one published table as the server keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from framewire.arrow import read, types, write
from framewire.arrow.cast import cast_table
from framewire.store._storage import Heap, Storage, StoredBytes


@dataclass(frozen=True)
class Representation:
    """One form in which a whole body can be sent.

    Attributes:
        buffer: The Arrow IPC stream.
        checksum: ``xxh3-128=<hex>`` of its bytes.
    """

    buffer: pa.Buffer
    checksum: str

    @property
    def etag(self) -> str:
        """Strong validator: representations with other bytes have other tags."""
        return f'"{self.checksum.partition("=")[2]}"'


@dataclass(frozen=True)
class Body:
    """A published table: its stored stream, and the table decoded from it without a copy.

    Attributes:
        stored: The stream as stored; string and binary views are kept.
        table: Columns that are views into ``stored.buffer``; ``_row_id`` first.
        tool: Name of the tool that published it, for errors that say what to call again. May be empty.
        has_views: Whether a peer that does not read views needs another representation.
        stored_bytes: The memory or file behind ``stored.buffer``.
    """

    stored: Representation
    table: pa.Table = field(repr=False)
    tool: str
    has_views: bool
    stored_bytes: StoredBytes = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored stream."""
        return int(self.stored.buffer.size)

    @property
    def total_rows(self) -> int:
        """Rows of the table."""
        return int(self.table.num_rows)

    @classmethod
    def of(cls, table: pa.Table, *, tool: str = "", storage: Storage | None = None) -> Body:
        """Write ``table`` (``_row_id`` first) once, to memory that nobody else can change: ``storage``, or the heap.

        Dictionaries that differ between chunks are unified first (indices are rewritten, values shared), so that any row
        range can be sent with one dictionary.
        """
        unified = table.unify_dictionaries() if _has_dictionaries(table.schema) else table
        parts = write.collect(unified)
        with write.checksum_beside(parts) as checksum:
            stored = (storage or Heap()).write(parts, sum(map(len, parts)))
        return cls(
            Representation(stored.buffer, checksum()),
            read.open_own(stored.buffer),
            tool,
            has_views=types.plain_schema(table.schema) != table.schema,
            stored_bytes=stored,
        )

    def build(self, *, views: bool, codec: str | None) -> Representation | None:
        """The whole body in another form; same rows, other bytes.

        Args:
            views: Keep string and binary views; ``large_string`` and ``large_binary`` take their place otherwise.
            codec: Buffer compression, or None.

        Returns:
            The form, or None where ``codec`` saves too little.
        """
        table = self.table if views else cast_table(self.table, types.plain_schema(self.table.schema))
        if codec is not None and not write.compresses_well(table, codec):
            return None
        encoded = write.encode(table, codec=codec)
        return Representation(write.gather(encoded.parts, encoded.nbytes), encoded.checksum)


def _has_dictionaries(schema: pa.Schema) -> bool:
    return any(types.any_type(pa.types.is_dictionary, field.type) for field in schema)
