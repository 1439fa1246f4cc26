"""Annotations as objects: each parameter on its own, so that one which cannot be resolved spoils no other."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import linecache
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

_GUARDED_ROOTS: Final = (
    frozenset({"polars", "pyarrow", "pandas", "mcp", "mcp_types", "pydantic"}) | sys.stdlib_module_names
)
"""Packages that may be imported from an ``if TYPE_CHECKING:`` block. A user's own module is not: it may be guarded
because importing it here would be circular or slow, and framewire knows no form of what it holds."""

_CONVENTIONS: Final = {"pl": "polars", "pa": "pyarrow", "pd": "pandas"}
"""Where the source cannot be read (a notebook's ``exec``), the names that everyone uses."""


def target(fn: Callable[..., Any]) -> Any:
    """The plain function behind decorators, partials, bound methods and callable objects."""
    seen: Any = inspect.unwrap(fn)
    while isinstance(seen, functools.partial):
        seen = inspect.unwrap(seen.func)
    if inspect.ismethod(seen):
        return inspect.unwrap(seen.__func__)
    # A callable object; builtins have no Python code to look at.
    return seen if inspect.isroutine(seen) or inspect.isclass(seen) else inspect.unwrap(type(seen).__call__)


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """``inspect.signature`` without evaluating anything (on 3.14 annotations are evaluated when they are asked for)."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(fn, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(fn)


def resolve(annotation: Any, fn: Callable[..., Any]) -> tuple[Any, bool]:
    """Evaluate one annotation where ``fn`` was written.

    Returns:
        The annotation as an object with no unresolved name inside, and True; or ``Any`` and False.
    """
    plain = target(fn)
    scope: dict[str, Any] = dict(getattr(plain, "__globals__", {}))
    with suppress(TypeError, ValueError, AttributeError):
        scope |= inspect.getclosurevars(plain).nonlocals
    holder = SimpleNamespace(__annotations__={"it": annotation})
    for more in (_nothing, _guarded):
        try:
            names = {**more(plain, scope, str(annotation)), **scope}
            return typing.get_type_hints(holder, names, include_extras=True)["it"], True
        except Exception:  # whatever an annotation raises when it is evaluated, it is unresolved
            continue
    return Any, False


def _nothing(plain: Any, scope: dict[str, Any], annotation: str) -> dict[str, Any]:
    return {}


def _guarded(plain: Any, scope: dict[str, Any], annotation: str) -> dict[str, Any]:
    """What ``annotation`` needs of the imports under ``if TYPE_CHECKING:``, from the packages that framewire knows."""
    code = getattr(plain, "__code__", None)
    text = "".join(linecache.getlines(code.co_filename, scope)) if code is not None else ""
    found: dict[str, Any] = {}
    usual = ((alias, module, None) for alias, module in _CONVENTIONS.items())
    wanted: Iterable[tuple[str, str, str | None]] = _guarded_imports(text) if text else usual
    for alias, module, attribute in wanted:
        if alias not in annotation or module.partition(".")[0] not in _GUARDED_ROOTS:
            continue
        try:
            loaded = importlib.import_module(module)
            found[alias] = loaded if attribute is None else getattr(loaded, attribute)
        except (ImportError, AttributeError):
            continue
    return found


def _guarded_imports(text: str) -> Iterator[tuple[str, str, str | None]]:
    """(name bound, module, attribute or None) of each import under ``if TYPE_CHECKING:``."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue
        for statement in node.body:
            if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
                for item in statement.names:
                    yield item.asname or item.name, statement.module, item.name
            elif isinstance(statement, ast.Import):
                for item in statement.names:
                    root = item.name.partition(".")[0]
                    yield item.asname or root, item.name if item.asname else root, None
