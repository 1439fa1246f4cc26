"""A user's function as a tool: its parameters, the one that takes the context, and how to call it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from pydantic import ConfigDict, create_model

from framewire.errors import SignatureError
from framewire.tools import _annotations

_PERMISSIVE = ConfigDict(arbitrary_types_allowed=True)
"""As the SDK's own argument models."""


@dataclass(frozen=True)
class Function:
    """A user's function, read once at decoration.

    Attributes:
        call: The function itself.
        name: Its name, for messages and as the tool's default name.
        parameters: Its parameters with resolved annotations, ``empty`` where none was written.
        returns: Resolved return annotation; ``inspect.Signature.empty`` where none was written or it cannot be resolved.
        context: Name of the parameter that takes the MCP ``Context``, if any.
    """

    call: Callable[..., Any]
    name: str
    parameters: Mapping[str, inspect.Parameter]
    returns: Any
    context: str | None

    @classmethod
    def read(cls, fn: Callable[..., Any]) -> Function:
        """Read ``fn``'s signature.

        Raises:
            SignatureError: It takes ``*args`` or ``**kwargs`` (a tool's parameters have names), or a parameter's
                annotation cannot be evaluated.
        """
        name = str(getattr(fn, "__name__", None) or getattr(_annotations.target(fn), "__name__", type(fn).__name__))
        signature = _annotations.signature_of(fn)
        parameters: dict[str, inspect.Parameter] = {}
        context = None
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise SignatureError(
                    f"The function {name!r} takes {parameter}, which a tool cannot have.",
                    hint="Give each of the tool's parameters a name.",
                )
            annotation = parameter.annotation
            if annotation is not parameter.empty:
                annotation = _resolved(parameter, name, fn)
                if context is None and _takes_context(annotation):
                    context, annotation = parameter.name, Context
            parameters[parameter.name] = parameter.replace(annotation=annotation)
        returns = signature.return_annotation
        if returns is not signature.empty:
            try:
                returns = _annotations.resolve(returns, fn)
            except Exception:  # as below; the result is then converted as it is
                returns = signature.empty
        return cls(fn, name, parameters, returns, context)

    def without(self, name: str) -> Function:
        """Return the function without one parameter, which framewire fills in."""
        return replace(self, parameters={k: v for k, v in self.parameters.items() if k != name})

    async def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function with ``arguments`` by name: on the loop if it is async, else in one of anyio's worker threads."""
        keywords = dict(arguments)
        signature = _annotations.signature_of(self.call)
        positional = [
            keywords.pop(p.name)
            for p in signature.parameters.values()
            if p.kind is p.POSITIONAL_ONLY and p.name in keywords
        ]
        if _is_async(self.call):
            return await self.call(*positional, **keywords)
        value = await anyio.to_thread.run_sync(partial(self.call, *positional, **keywords))
        return await value if inspect.isawaitable(value) else value


def _resolved(parameter: inspect.Parameter, name: str, fn: Callable[..., Any]) -> Any:
    try:
        return _annotations.resolve(parameter.annotation, fn)
    except Exception as exc:  # an annotation is an expression: it can raise anything
        raise SignatureError(
            f"The annotation {parameter.annotation!r} of the parameter {parameter.name!r} of {name!r} cannot be evaluated: "
            f"{exc}.",
            hint="Import what it names at run time, at module level, not under `if TYPE_CHECKING:`. "
            "Only pl., pa. and pd. are known without an import.",
        ) from exc


def _takes_context(annotation: Any) -> bool:
    """Whether the SDK would inject its ``Context`` here: the class, a parametrisation, or a union with it."""
    return any(inspect.isclass(part) and issubclass(part, Context) for part in (annotation, *get_args(annotation)))


def _is_async(fn: Callable[..., Any]) -> bool:
    while isinstance(fn, partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def build_wrapper(
    function: Function, added: Iterable[inspect.Parameter], run: Callable[[dict[str, Any]], Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """Build an async function with ``function``'s parameters and the ``added`` ones, all by keyword, that awaits ``run``.

    The user's return annotation is left out: framewire builds results itself.

    Raises:
        SignatureError: A parameter of ``function`` has the name of an added one.
    """
    ours = list(added)
    clash = [p.name for p in ours if p.name in function.parameters]
    if clash:
        raise SignatureError(
            f"The function {function.name!r} has a parameter {clash[0]!r}, which framewire adds to the tool itself.",
            hint=f"Rename it. Added names: {', '.join(p.name for p in ours)}.",
        )
    keywords = [p.replace(kind=p.KEYWORD_ONLY) for p in [*function.parameters.values(), *ours]]

    async def wrapper(**arguments: Any) -> Any:
        return await run(arguments)

    wrapper.__name__ = wrapper.__qualname__ = function.name
    wrapper.__doc__ = inspect.getdoc(function.call)
    # The SDK reads the signature for the schema, and the annotations for Context and Resolve(...).
    wrapper.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in keywords if p.annotation is not p.empty}
    return wrapper


def argument_names(wrapper: Callable[..., Any], name: str | None) -> frozenset[str]:
    """Return the names of the arguments that the tool will accept, as the SDK reads them.

    Raises:
        SignatureError: The SDK cannot make a tool of it; the message names the parameter where that is the reason.
    """
    try:
        tool = Tool.from_function(wrapper, name=name, description=" ", structured_output=False)
    except Exception as exc:  # the SDK and pydantic have a dozen classes for this
        raise _no_tool(wrapper, exc) from exc
    return frozenset(tool.parameters.get("properties", {}))


def _no_tool(wrapper: Callable[..., Any], reason: Exception) -> SignatureError:
    for parameter in inspect.signature(wrapper).parameters.values():
        if parameter.annotation in (parameter.empty, Context):
            continue
        try:
            create_model("Probe", __config__=_PERMISSIVE, it=(parameter.annotation, ...)).model_json_schema()
        except Exception:  # as above
            return SignatureError(
                f"The parameter {parameter.name!r} of {wrapper.__name__!r} has an annotation with no JSON schema.",
                hint="Tool parameters hold JSON: annotate it with a JSON type, a pydantic model, or not at all.",
            )
    return SignatureError(f"The function {wrapper.__name__!r} cannot become a tool: {reason}")
