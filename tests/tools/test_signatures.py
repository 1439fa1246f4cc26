"""Annotations, parameters and defaults of the user's function, in the tool."""

from __future__ import annotations

import asyncio
import functools
import typing
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import pytest
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, Tool
from pydantic import BaseModel, Field

from framewire import S2SPServer, SignatureError
from framewire.tools._signature import Function

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as guarded_pa
    import pyarrow as pa
    from mcp.server.mcpserver import Context as GuardedContext
    from nowhere import Missing  # type: ignore[import-not-found]
    from pandas import DataFrame as PandasFrame

Call = typing.Callable[..., CallToolResult]
ROWS = [{"a": 1, "b": "x"}]


class Window(BaseModel):
    start: int
    stop: int = 9


def listed(server: S2SPServer, name: str) -> Tool:
    return {tool.name: tool for tool in asyncio.run(server.list_tools())}[name]


def properties(server: S2SPServer, name: str) -> dict[str, Any]:
    found: dict[str, Any] = listed(server, name).input_schema["properties"]
    return found


def test_defaults_field_metadata_and_required_ones_stay(server: S2SPServer) -> None:
    @server.sd_resource_tool()
    def flights(
        origin: str, month: Annotated[int, Field(description="1 to 12", ge=1, le=12)] = 6, top: int = Field(5, lt=100)
    ) -> pl.DataFrame:
        """Departures of 2013."""
        return pl.DataFrame(ROWS)

    tool = listed(server, "flights")
    assert tool.input_schema["required"] == ["origin"]
    assert list(tool.input_schema["properties"]) == ["origin", "month", "top", "abstract_domains", "mode"]
    assert tool.input_schema["properties"]["month"] == {
        "default": 6,
        "description": "1 to 12",
        "maximum": 12,
        "minimum": 1,
        "title": "Month",
        "type": "integer",
    }
    assert tool.input_schema["properties"]["top"]["exclusiveMaximum"] == 100
    assert tool.output_schema is None
    assert tool.description is not None
    assert tool.description.startswith("Departures of 2013.\n\nS2SP: set abstract_domains")


def test_values_are_validated_and_handed_over_as_their_types(server: S2SPServer, call: Call) -> None:
    seen: list[Any] = []

    @server.sd_resource_tool()
    def rows(window: Window, n: int = 2, /, *, tag: str = "t") -> list[dict[str, Any]]:
        seen.append((window, n, tag))
        return ROWS

    assert not call(server, "rows", window={"start": 3}, n="4").is_error
    assert seen == [(Window(start=3, stop=9), 4, "t")]
    assert call(server, "rows", window={"start": "no"}).is_error


def test_context_is_injected_and_hidden_however_it_is_written(server: S2SPServer, call: Call) -> None:
    @server.sd_resource_tool
    def plain(ctx: Context[Any, Any]) -> list[dict[str, Any]]:
        return [{"id": str(ctx.request_id is not None)}]

    @server.sd_resource_tool
    def optional(ctx: Context[Any, Any] | None = None) -> list[dict[str, Any]]:
        return [{"id": str(ctx is not None)}]

    @server.sd_consumer_tool
    async def consumer(ctx: Context[Any, Any], rows: pl.DataFrame) -> str:
        return f"{rows.height} {ctx.request_id is not None}"

    for name in ("plain", "optional"):
        assert "ctx" not in properties(server, name)
        assert call(server, name).structured_content == {"result": [{"id": "True"}]}
    assert "ctx" not in properties(server, "consumer")
    assert call(server, "consumer", body_data=[{"_row_id": 0, "a": 1}]).structured_content == {"result": "1 True"}
    # It is injected, never taken from the caller.
    assert call(server, "plain", ctx="mine").is_error


def test_frames_of_guarded_imports_are_known_by_their_usual_names(server: S2SPServer, call: Call) -> None:
    @server.sd_consumer_tool
    def takes_arrow(table: pa.Table) -> str:
        return type(table).__module__

    @server.sd_consumer_tool
    def takes_pandas(table: pd.DataFrame | None) -> str:
        return type(table).__module__

    rows = [{"_row_id": 0, "a": 1}]
    assert call(server, "takes_arrow", body_data=rows).structured_content == {"result": "pyarrow.lib"}
    assert call(server, "takes_pandas", body_data=rows).structured_content == {"result": "pandas"}


def test_a_name_that_does_not_exist_at_run_time_fails_at_decoration(server: S2SPServer) -> None:
    def missing(what: Missing = 7) -> list[dict[str, Any]]:
        return []

    def aliased(table: guarded_pa.Table) -> str:
        return ""

    def from_import(table: PandasFrame) -> str:
        return ""

    def context(rows: pl.DataFrame, ctx: GuardedContext[Any, Any] | None = None) -> str:
        return ""

    functions: list[tuple[Any, str, str]] = [
        (missing, "what", "Missing"),
        (aliased, "table", "guarded_pa"),
        (from_import, "table", "PandasFrame"),
        (context, "ctx", "GuardedContext"),
    ]
    for function, parameter, name in functions:
        for decorate in (server.sd_resource_tool(), server.sd_consumer_tool()):
            with pytest.raises(SignatureError, match=f"parameter '{parameter}' of '{function.__name__}'") as caught:
                decorate(function)
            assert f"name '{name}' is not defined" in caught.value.message
            assert "Import what it names at run time" in caught.value.hint
    assert asyncio.run(server.list_tools()) == []


def test_a_return_annotation_that_does_not_exist_at_run_time_is_left_out(server: S2SPServer, call: Call) -> None:
    @server.sd_resource_tool
    def resource(n: int = 1) -> Missing:
        return [{"n": n}]

    assert call(server, "resource", n="3").structured_content == {"result": [{"n": 3}]}


def test_partials_methods_and_callable_objects(server: S2SPServer, call: Call) -> None:
    class Source:
        def rows(self, n: int = 1) -> list[dict[str, Any]]:
            return [{"n": n}]

        async def __call__(self, n: int = 1) -> list[dict[str, Any]]:
            return [{"n": n}]

    server.sd_resource_tool("bound")(Source().rows)
    server.sd_resource_tool("object")(Source())
    server.sd_resource_tool("partial")(functools.partial(Source().rows, n=5))
    assert call(server, "bound", n=2).structured_content == {"result": [{"n": 2}]}
    assert call(server, "object", n=2).structured_content == {"result": [{"n": 2}]}
    assert call(server, "partial").structured_content == {"result": [{"n": 5}]}


def test_decorators_return_the_function_and_take_name_description_and_the_rest(server: S2SPServer) -> None:
    def rows(n: int = 1) -> list[dict[str, Any]]:
        """Documentation."""
        return [{"n": n}]

    for decorate in (server.sd_resource_tool, server.sd_tool, server.s2sp_tool, server.s2sp_resource_tool):
        assert decorate(f"tool{decorate.__name__}{id(decorate)}")(rows) is rows
    assert server.sd_resource_tool(name="n", description="Mine.", title="T", meta={"k": 1})(rows) is rows
    assert rows(3) == [{"n": 3}]
    tool = listed(server, "n")
    assert (tool.title, tool.meta) == ("T", {"k": 1})
    assert str(tool.description).startswith("Mine.\n\nS2SP:")

    def eat(rows: pl.DataFrame) -> str:
        return ""

    assert server.sd_consumer_tool(eat) is eat
    assert server.s2sp_consumer_tool(name="other")(eat) is eat
    assert str(listed(server, "eat").description).startswith("S2SP consumer:")


@pytest.mark.parametrize("name", ["abstract_domains", "mode"])
def test_a_resource_parameter_with_an_added_name_fails_at_decoration(server: S2SPServer, name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f({name}: str = ''): return []", scope)
    with pytest.raises(SignatureError, match=f"'f' has a parameter '{name}'"):
        server.sd_resource_tool()(scope["f"])


@pytest.mark.parametrize("name", ["abstract_data", "resource_url", "body_data", "column_mapping", "row_ids"])
def test_a_consumer_parameter_with_an_added_name_fails_at_decoration(server: S2SPServer, name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f(rows, {name}=''): return ''\ndef g({name}: list[dict]): return ''", scope)
    for function in ("f", "g"):
        with pytest.raises(SignatureError, match=f"'{function}' has a parameter '{name}'"):
            server.sd_consumer_tool()(scope[function])


def test_what_has_no_place_in_a_tool_is_refused_by_name(server: S2SPServer) -> None:
    def variadic(*names: str) -> list[dict[str, Any]]:
        return []

    def framed(base: pl.DataFrame) -> list[dict[str, Any]]:
        return []

    def private(_hidden: int = 1) -> list[dict[str, Any]]:
        return []

    for function, text in ((variadic, r"\*names"), (framed, "'base'"), (private, "_hidden")):
        with pytest.raises(SignatureError, match=text):
            server.sd_resource_tool()(function)
    with pytest.raises(SignatureError, match="lambda"):
        server.sd_resource_tool()(lambda: ROWS)
    server.sd_resource_tool("named")(lambda: ROWS)
    assert [tool.name for tool in asyncio.run(server.list_tools())] == ["named"]


def test_frame_parameter_rules() -> None:
    from framewire.frame import FORMS, Form
    from framewire.tools._consumer import frame_parameter

    def annotated(top: int, data: pl.LazyFrame, extra: list[dict[str, Any]]) -> None: ...
    def by_list(top: int, data: list[dict[str, Any]]) -> None: ...
    def by_name(top, rows) -> None: ...  # type: ignore[no-untyped-def]
    def first_free(top: int, ctx: Context[Any, Any], data) -> None: ...  # type: ignore[no-untyped-def]
    def named_among_two(rows: pl.DataFrame, base: pl.DataFrame) -> None: ...

    chosen: dict[Any, Any] = {
        annotated: ("data", Form.POLARS_LAZY),
        by_list: ("data", Form.ROWS),
        by_name: ("rows", FORMS[0]),
        first_free: ("data", FORMS[0]),
        named_among_two: ("rows", Form.POLARS_FRAME),
    }
    for function, expected in chosen.items():
        assert frame_parameter(Function.read(function)) == expected, function

    def two(left: pl.DataFrame, right: pl.DataFrame) -> None: ...
    def two_lists(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None: ...
    def none(top: int) -> None: ...

    several = "'left', 'right'"
    wrong: list[tuple[Any, str]] = [(two, several), (two_lists, several), (none, "no parameter for the")]
    for function, text in wrong:
        with pytest.raises(SignatureError, match=text):
            frame_parameter(Function.read(function))


def test_parameters_that_models_write_in_several_ways(server: S2SPServer, call: Call) -> None:
    seen: list[Any] = []

    @server.sd_consumer_tool
    def take(rows: list[dict[str, Any]]) -> str:
        seen.append([row["_row_id"] for row in rows])
        return ""

    body = [{"_row_id": i, "a": i} for i in range(4)]
    for value in ("1,3", "[1, 3]", [1, 3], ["1", 3.0], [1, "3-"]):
        assert not call(server, "take", body_data=body, row_ids=value).is_error, value
    call(server, "take", body_data=body, row_ids=2)
    call(server, "take", body_data=body, row_ids=[])
    call(server, "take", body_data=body, row_ids=None, abstract_data=None, resource_url=None, column_mapping=None)
    assert seen == [[1, 3]] * 5 + [[2], [], [0, 1, 2, 3]]
    for bad in (True, -1, 1.5, [9]):
        assert call(server, "take", body_data=body, row_ids=bad).is_error, bad
