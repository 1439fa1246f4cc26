"""Mistakes that a type checker finds. Each marked line, and no other, is an error for mypy and for pyright alike.

Not here, since no checker can find them: values of a wrong type where a pyarrow object would be right as well (what is
published, row ids). pyarrow ships no types, so that such a union accepts anything.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from framewire import DataPlane, DirectChannel, Handle, PeerPolicy, S2SPError, S2SPServer, Settings, fetch, resolve
from framewire import no_such_name as no_such_name  # E:

server = S2SPServer("numbers", port=8000)
S2SPServer(1)  # E:
S2SPServer("s", cache_ttl="600")  # E:
S2SPServer("s", settings={"max_rows": 10})  # E:
S2SPServer("s", policy=["http://127.0.0.1:*"])  # E:


@server.sd_resource_tool()
def numbers(n: int) -> pl.DataFrame:
    return pl.DataFrame({"n": range(n)})


@server.sd_consumer_tool
def total(rows: pl.DataFrame, column: str = "n") -> str:
    return str(rows[column].sum())


numbers("three")  # E:
numbers(3).no_such_method()  # E:
total([{"n": 1}])  # E:
total(pl.DataFrame(), colum="n")  # E:
server.sd_resource_tool(abstract_limit="many")  # E:
server.sd_resource_tool(abstract_limits=5)  # E:
server.sd_consumer_tool(abstract_limit=5)  # E:
server.sd_consumer_tool(5)  # E:
server.run("http")  # E:
server.s2sp_endpoint = "http://127.0.0.1"  # E:


def calls(url: str, handle: Handle, plane: DataPlane) -> None:
    fetch(handle)  # E:
    fetch(url, columns=5)  # E:
    fetch(url, [1], ["a"], None, Settings())  # E:
    fetch(url, deadline="5")  # E:
    resolve(url, row_id=[1])  # E:
    resolve("[]", url, column_mapping=["a"])  # E:
    rows: list[dict[str, Any]] = resolve("[]", url)  # E:
    DirectChannel.fetch_data(url)["a"]  # E:
    plane.publish([{"a": 1}], ttl="5")  # E:
    plane.publish([{"a": 1}], max_uses="once")  # E:
    plane.revoke(5)  # E:
    plane.base_url = url  # E:
    handle.total_rows = 5  # E:
    handle.schema["a"] = "int64"  # E:
    Handle(url)  # E:
    Handle.from_dict(url)  # E:
    print(rows)


def settings() -> None:
    Settings(max_row=5)  # E:
    Settings(max_rows="5")  # E:
    Settings().max_rows = 5  # E:
    PeerPolicy(5)  # E:
    PeerPolicy([1])  # E:
    PeerPolicy.from_settings({"allow_peers": ["http://127.0.0.1:*"]})  # E:


def errors() -> None:
    try:
        calls("", Handle.from_dict({}), DataPlane())
    except S2SPError as exc:
        exc.codes  # E:
        code: int = exc.code  # E:
        print(code)
    S2SPError()  # E:
