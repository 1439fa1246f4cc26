"""Calls that programs without MCP make: publish, fetch, resolve, settings, policies, errors, the reference's client."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, assert_type

import httpx
import polars as pl

from framewire import (
    DataPlane,
    DirectChannel,
    ExpiredError,
    Handle,
    InvalidTokenError,
    PeerPolicy,
    S2SPError,
    Settings,
    TransferTimeoutError,
    fetch,
    fetch_async,
    resolve,
    resolve_async,
    to_table,
)
from framewire.typing import ArrowStreamExportable, JSONValue


class Exports:
    """Any library's table: the Arrow C stream interface is all it takes."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise NotImplementedError


exportable: ArrowStreamExportable = Exports()
value: JSONValue = {"a": [1, 2.5, None, {"b": True}]}


def publishes() -> None:
    with DataPlane() as plane, DataPlane(Settings.from_env(), host="::1", port=8000, ttl_seconds=60) as other:
        handle = plane.publish(pl.DataFrame({"a": [1]}), ttl_seconds=5, max_uses=1, tool="t")
        assert_type(handle, Handle)
        assert_type(handle.resource_url, str)
        assert_type(handle.total_rows, int)
        assert_type(handle.schema, Mapping[str, str])
        assert_type(handle.nbytes, int)
        assert_type(handle.expires_at, datetime)
        assert_type(handle.max_uses, int | None)
        assert_type(Handle.from_dict(handle.to_dict()), Handle)
        assert_type(plane.base_url, str)
        assert_type(plane.stats().held_bytes, int)
        other.publish([{"a": 1}, {"b": None}])
        other.publish(pl.LazyFrame({"a": [1]}))
        other.publish(exportable)
        plane.revoke(handle)
        plane.revoke(handle.resource_url)
    to_table([{"a": 1}])
    assert_type(DataPlane().start(listen=False, base_url="https://example.org"), DataPlane)


def fetches(url: str) -> None:
    policy = PeerPolicy(["https://data.example.org"], trust=["http://127.0.0.1:8000"])
    fetch(url)
    fetch(url, [0, 2, "5-99"], ["a", "b"], policy=policy, settings=Settings(), deadline_seconds=5)
    fetch(url, "0-99", ("a",), transport=httpx.MockTransport(lambda request: httpx.Response(200)))
    assert_type(resolve('[{"_row_id": 0}]', url), pl.DataFrame)
    assert_type(resolve([{"_row_id": 0}], url, column_mapping={"a": "b"}, row_ids=[0, "3-"]), pl.DataFrame)
    assert_type(resolve(resource_url=url, row_ids=[1.0]), pl.DataFrame)
    assert_type(resolve([], body_data=[{"_row_id": 0}]), pl.DataFrame)


async def fetches_async(url: str, transport: httpx.AsyncBaseTransport) -> None:
    async with DataPlane() as plane:
        assert_type(await plane.publish_async([{"a": 1}]), Handle)
    await fetch_async(url, [1], transport=transport)
    assert_type(await resolve_async(resource_url=url, transport=transport), pl.DataFrame)
    assert_type(await DirectChannel.fetch_data(url, [1, 2], ["a"], {"a": "b"}), list[dict[str, Any]])
    assert_type(await DirectChannel.resolve("[]", url, "", '{"a": "b"}'), list[dict[str, Any]])
    assert_type(DirectChannel.remap_columns([{"a": 1}], {"a": "b"}), list[dict[str, Any]])


def errors(url: str) -> str:
    try:
        fetch(url)
    except ExpiredError as exc:
        token_error: InvalidTokenError = exc
        return token_error.code
    except TransferTimeoutError as exc:
        timeout: TimeoutError = exc
        return str(timeout)
    except S2SPError as exc:
        assert_type(exc.message, str)
        assert_type(exc.hint, str)
        assert_type(exc.to_wire(), dict[str, Any])
        return exc.code
    return ""


def settings() -> None:
    chosen = Settings(ttl_seconds=60, allow_peers=("http://127.0.0.1:*",), max_rows=1000)
    assert_type(chosen.replace(ttl_seconds=None, max_rows=5), Settings)
    assert_type(Settings.from_env({"FRAMEWIRE_TTL_SECONDS": "5"}, same_host="off"), Settings)
    assert_type(chosen.ttl_seconds, float)
    assert_type(PeerPolicy.from_settings(chosen), PeerPolicy)
