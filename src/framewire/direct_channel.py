"""DirectChannel: the client surface of the reference implementation (``mcp-sd``), with framewire's rules.

The names, the parameters and their order are the reference's. What differs is what used to pass in silence: an unknown
row or column, a renaming that collides, a repeated id, a response that is not a table are errors here; ``row_ids=[]`` selects
no rows; a column of the resource wins over what the agent says of it. The reference's class also runs a server, which
:class:`framewire.DataPlane` does here, so this one is never instantiated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framewire.client import Options, fetch_table, in_thread
from framewire.consume import Sources, resolve_form_async
from framewire.errors import ArgumentError
from framewire.frame import Form, to_form
from framewire.join import new_names, parse_mapping, rename
from framewire.typing import RowIds

__all__ = ["DirectChannel"]


class DirectChannel:
    """Fetch and resolve without MCP, as lists of dicts.

    Values are exact Python values (see ``docs/reference/frames.md``); for a frame use :func:`framewire.fetch` and
    :func:`framewire.resolve`.
    """

    @staticmethod
    async def fetch_data(
        resource_url: str,
        row_ids: RowIds | None = None,
        columns: Sequence[str] | None = None,
        column_mapping: Mapping[str, str] | str | None = None,
    ) -> list[dict[str, Any]]:
        """Fetch rows from a data plane.

        Args:
            resource_url: Presigned URL of a resource tool's reply.
            row_ids: Rows in the order wanted, duplicates kept; every row when None, none for ``[]``.
            columns: Columns wanted, by the resource's names; every column when None. ``_row_id`` always comes.
            column_mapping: Old name to new, applied to what was fetched.

        Returns:
            One dict for each row, ``_row_id`` first.

        Raises:
            S2SPError: Whatever :func:`framewire.fetch` raises; an unknown name or a collision in ``column_mapping``; a
                value that has no exact Python form.
        """
        mapping = parse_mapping(column_mapping)

        def fetched(options: Options) -> list[dict[str, Any]]:
            return to_form(rename(fetch_table(options, resource_url, row_ids, columns), mapping), Form.ROWS)

        return await in_thread(fetched, Options.of())

    @staticmethod
    async def resolve(
        abstract_data: str | Sequence[Any] | Mapping[str, Any],
        resource_url: str = "",
        body_data: str | Sequence[Any] | Mapping[str, Any] = "",
        column_mapping: str | Mapping[str, str] = "",
    ) -> list[dict[str, Any]]:
        """The agent's rows joined with their bodies.

        Args:
            abstract_data: JSON array of the agent's rows; its ids choose the rows and their order. ``""``: every row.
            resource_url: Presigned URL of the body (async mode).
            body_data: The body itself (sync mode).
            column_mapping: JSON object from old name to new, applied after the join.

        Returns:
            One dict for each row: ``_row_id``, the resource's columns, then what the agent added.

        Raises:
            S2SPError: Whatever :func:`framewire.resolve` raises, or a value that has no exact Python form.
        """
        sources = Sources(abstract_data, resource_url, body_data, column_mapping)
        rows: list[dict[str, Any]] = await resolve_form_async(Options.of(), sources, Form.ROWS)
        return rows

    @staticmethod
    def remap_columns(
        rows: Sequence[Mapping[str, Any]], column_mapping: Mapping[str, str] | str
    ) -> list[dict[str, Any]]:
        """Rename the keys of rows, all at once (two names may be swapped). The given rows are not changed.

        Raises:
            UnknownColumnError: No row has a key that is to be renamed.
            ArgumentError: Two keys would get one name, ``_row_id`` would change, or a row is not a dict.
        """
        mapping = parse_mapping(column_mapping)
        for position, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ArgumentError(
                    f"Row {position} is a {type(row).__name__}, not a dict.", hint="Pass a list of dicts."
                )
        if rows:
            # All keys of all rows: a row that lacks one must not decide whether two names collide.
            names = list(dict.fromkeys(name for row in rows for name in row))
            mapping = dict(zip(names, new_names(names, mapping), strict=True))
        return [{mapping.get(name, name): value for name, value in row.items()} for row in rows]
