"""Consumer tools: a function that takes a frame -> a tool that takes a handle, and fetches the frame itself."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from framewire.client import Options, PeerPolicy
from framewire.consume import Sources, resolve_form_async
from framewire.errors import SignatureError
from framewire.frame import FORMS, Form, form_of
from framewire.host.threads import CONVERTING
from framewire.settings import Settings
from framewire.tools._arguments import CONSUMER_PARAMETERS
from framewire.tools._errors import failure
from framewire.tools._result import Results
from framewire.tools._signature import Function, build_wrapper

_DEFAULT_NAME = "rows"
"""The parameter's name in the reference."""


def consumer_tool(
    fn: Callable[..., Any], *, name: str, settings: Settings, policy: PeerPolicy | None
) -> tuple[Callable[..., Awaitable[Any]], dict[str, Any] | None]:
    """Wrap ``fn`` for ``MCPServer.add_tool``: its own parameters without the frame, and those of :class:`Sources`.

    Args:
        fn: Sync or async; one parameter takes the frame, its annotation says in which form.
        name: The tool's name.
        settings: The server's, limits of what is fetched.
        policy: Which peers may be called; None for that of the settings.

    Returns:
        The wrapper, and the JSON schema of its structured content (None where it has none).

    Raises:
        SignatureError: ``fn`` cannot become a tool, or it is not clear which parameter takes the frame.
    """
    function = Function.read(fn)
    frame, form = frame_parameter(function)
    results = Results.of(function)
    options = Options(settings, policy)
    added = [parameter.name for parameter in CONSUMER_PARAMETERS]

    async def run(arguments: dict[str, Any]) -> Any:
        sources = Sources(**{key: arguments.pop(key, "") for key in added})
        try:
            rows = await resolve_form_async(options, sources, form)
            value = await function({**arguments, frame: rows})
            return await CONVERTING.run(results.convert, value)
        except BaseException as exc:
            return failure(exc, name)

    if frame in added:
        build_wrapper(function, CONSUMER_PARAMETERS, run)  # raises: the name is taken
    return build_wrapper(function.without(frame), CONSUMER_PARAMETERS, run), results.schema


def frame_parameter(function: Function) -> tuple[str, Form]:
    """The parameter that takes the frame, and the form it wants.

    The one annotated with a frame (``list[dict]`` counts when no other is); without one, ``rows``, else the first
    without an annotation. The default form is ``pl.DataFrame``.

    Raises:
        SignatureError: There is none, or more than one.
    """
    forms = {name: form for name, p in function.parameters.items() if (form := form_of(p.annotation)) is not None}
    # list[dict] is also an ordinary JSON parameter; a data frame can be nothing else.
    certain = {name: form for name, form in forms.items() if form is not Form.ROWS}
    for found in (certain, forms):
        if len(found) == 1:
            return next(iter(found.items()))
        if _DEFAULT_NAME in found:
            return _DEFAULT_NAME, found[_DEFAULT_NAME]
        if found:
            listed = ", ".join(map(repr, found))
            raise SignatureError(
                f"The function {function.name!r} has several parameters that could take the frame: {listed}.",
                hint=f"Annotate one with a frame type, or call it {_DEFAULT_NAME!r}.",
            )
    return _unannotated(function), FORMS[0]


def _unannotated(function: Function) -> str:
    """The parameter that takes the frame where no annotation says so."""
    free = [n for n, p in function.parameters.items() if n != function.context and _is_open(p)]
    unannotated = [n for n in free if function.parameters[n].annotation is function.parameters[n].empty]
    for name in (*(n for n in free if n == _DEFAULT_NAME), *unannotated):
        return name
    raise SignatureError(
        f"The function {function.name!r} has no parameter for the frame.",
        hint="Annotate one as pl.DataFrame, pl.LazyFrame, pa.Table, pa.RecordBatchReader, pd.DataFrame or list[dict].",
    )


def _is_open(parameter: inspect.Parameter) -> bool:
    """Whether the parameter's annotation, if any, says nothing of what it takes."""
    return parameter.annotation in (parameter.empty, Any)
