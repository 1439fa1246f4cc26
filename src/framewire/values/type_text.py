"""Parses types from text: a tool reply's ``schema`` holds ``str(pa.DataType)``, which is read back here.

The grammar is pyarrow's own output. A field's name ends at the first ``": "``, whatever else is in it; a name that
itself holds ``": "`` prints like several fields, so that such text is read as those fields or refused. Whatever is
returned prints as exactly the text that was given.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

import pyarrow as pa

from framewire.errors import ArgumentError

__all__ = ["parse_type"]

_MAX_DEPTH: Final = 64
"""Deepest nesting, beyond that of any table; bounds the recursion for foreign text."""
_MAX_CHARS: Final = 1 << 20

_PLAIN: Final[dict[str, pa.DataType]] = {
    str(kind): kind
    for kind in (
        *(pa.null(), pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()),
        *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns")),
        *(pa.uuid(), pa.bool8()),
    )
}
_PLAIN_RE = re.compile("|".join(re.escape(text) for text in sorted(_PLAIN, key=len, reverse=True)))
_TIMESTAMP_RE = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([^\]]+))?\]")
_DECIMAL_RE = re.compile(r"decimal(32|64|128|256)\((\d{1,3}), (-?\d{1,3})\)", re.ASCII)
_FIXED_BINARY_RE = re.compile(r"fixed_size_binary\[(\d{1,10})\]", re.ASCII)
_LIST_RE = re.compile(r"(list|large_list|list_view|large_list_view|fixed_size_list)<")
_SIZE_RE = re.compile(r"\[(\d{1,10})\]", re.ASCII)
_MAP_NAME_RE = re.compile(r" \('(.*?)'\)(?=, |>)", re.DOTALL)
_DICTIONARY_END_RE = re.compile(r", ordered=([01])>")
_DECIMALS: Final[dict[str, Any]] = {
    "32": pa.decimal32,
    "64": pa.decimal64,
    "128": pa.decimal128,
    "256": pa.decimal256,
}
_LISTS: Final[dict[str, Any]] = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
}


def parse_type(text: str) -> pa.DataType:
    """Parse the Arrow type that ``str()`` prints as ``text``.

    Args:
        text: For example ``"timestamp[us, tz=UTC]"``, ``"struct<a: int64 not null>"`` or
            ``"dictionary<values=string, indices=int32, ordered=0>"``.

    Returns:
        The type, without what ``str`` leaves out: field metadata, and whether a map's values may be null.

    Raises:
        ArgumentError: The text is not a type, is a type that no published table has (unions, run ends, intervals), or is
            ambiguous.
    """
    if len(text) > _MAX_CHARS:
        raise ArgumentError("The text of a type is longer than 1 MiB.", hint="Give it as str(pa.DataType) prints it.")
    parser = _Parser(text)
    try:
        kind = parser.kind(0)
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{_shown(text)} is not an Arrow type: a number in it is out of range.") from error
    if parser.at != len(text) or str(kind) != text:
        parser.fail()
    return kind


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "...")


class _Parser:
    """Recursive-descent parser; ``at`` is the position in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self) -> NoReturn:
        raise ArgumentError(
            f"{_shown(self.text)} is not an Arrow type that can be read (from character {self.at}).",
            hint="Give it as str(pa.DataType) prints it: 'int64', 'timestamp[us, tz=UTC]', 'list<item: string>'.",
        )

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def skip(self, literal: str) -> bool:
        found = self.text.startswith(literal, self.at)
        self.at += len(literal) * found
        return found

    def need(self, literal: str) -> None:
        if not self.skip(literal):
            self.fail()

    def kind(self, depth: int) -> pa.DataType:
        if depth > _MAX_DEPTH:
            self.fail()
        if match := self.take(_LIST_RE):
            return self.list_kind(match[1], depth)
        if self.skip("struct<"):
            return self.struct(depth)
        if self.skip("map<"):
            return self.map(depth)
        if self.skip("dictionary<values="):
            return self.dictionary(depth)
        if match := self.take(_TIMESTAMP_RE):
            return pa.timestamp(match[1], match[2])
        if match := self.take(_DECIMAL_RE):
            return _DECIMALS[match[1]](int(match[2]), int(match[3]))
        if match := self.take(_FIXED_BINARY_RE):
            return pa.binary(int(match[1]))
        if match := self.take(_PLAIN_RE):
            return _PLAIN[match[0]]
        self.fail()

    def field(self, depth: int) -> pa.Field:
        end = self.text.find(": ", self.at)
        if end < 0:
            self.fail()
        name, self.at = self.text[self.at : end], end + 2
        kind = self.kind(depth + 1)
        return pa.field(name, kind, nullable=not self.skip(" not null"))

    def list_kind(self, name: str, depth: int) -> pa.DataType:
        field = self.field(depth)
        self.need(">")
        if name != "fixed_size_list":
            return _LISTS[name](field)
        size = self.take(_SIZE_RE)
        if size is None:
            self.fail()
        return pa.list_(field, int(size[1]))

    def struct(self, depth: int) -> pa.DataType:
        fields: list[pa.Field] = []
        while not self.skip(">"):
            if fields:
                self.need(", ")
            fields.append(self.field(depth))
        return pa.struct(fields)

    def map(self, depth: int) -> pa.DataType:
        key = self.kind(depth + 1)
        key_name = self.take(_MAP_NAME_RE)
        self.need(", ")
        value = self.kind(depth + 1)
        value_name = self.take(_MAP_NAME_RE)
        keys_sorted = self.skip(", keys_sorted")
        self.need(">")
        return pa.map_(
            pa.field(key_name[1] if key_name else "key", key, nullable=False),
            pa.field(value_name[1] if value_name else "value", value),
            keys_sorted=keys_sorted,
        )

    def dictionary(self, depth: int) -> pa.DataType:
        values = self.kind(depth + 1)
        self.need(", indices=")
        indices = self.kind(depth + 1)
        ordered = self.take(_DICTIONARY_END_RE)
        if ordered is None:
            self.fail()
        return pa.dictionary(indices, values, ordered=ordered[1] == "1")
