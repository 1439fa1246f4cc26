"""Annotations as objects, each evaluated on its own, and the function behind whatever wraps it."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

_GUARDED: Final = {"pl": "polars", "pa": "pyarrow", "pd": "pandas"}
"""Names by which frames are known where their import is under ``if TYPE_CHECKING:``."""


def target(fn: Callable[..., Any]) -> Any:
    """Return the plain function behind decorators, partials, bound methods and callable objects."""
    seen: Any = inspect.unwrap(fn)
    while isinstance(seen, functools.partial):
        seen = inspect.unwrap(seen.func)
    if inspect.ismethod(seen):
        return inspect.unwrap(seen.__func__)
    # A callable object; builtins have no Python code to look at.
    return seen if inspect.isroutine(seen) or inspect.isclass(seen) else inspect.unwrap(type(seen).__call__)


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """Return ``inspect.signature`` with annotations unevaluated (Python 3.14 evaluates them on access)."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(fn, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(fn)


def resolve(annotation: Any, fn: Callable[..., Any]) -> Any:
    """Evaluate one annotation where ``fn`` was written. ``pl.``, ``pa.`` and ``pd.`` need no import there.

    Returns:
        The annotation as an object with no unresolved name inside.

    Raises:
        Exception: Whatever evaluating the annotation raises, ``NameError`` for a name that does not exist at run time.
    """
    plain = target(fn)
    scope: dict[str, Any] = dict(getattr(plain, "__globals__", {}))
    with suppress(TypeError, ValueError, AttributeError):
        scope |= inspect.getclosurevars(plain).nonlocals
    for name, module in _GUARDED.items():
        if name not in scope and f"{name}." in str(annotation):
            with suppress(ImportError):
                scope[name] = importlib.import_module(module)
    holder = SimpleNamespace(__annotations__={"it": annotation})
    return typing.get_type_hints(holder, scope, include_extras=True)["it"]
