"""The code keeps to its sizes: lines of a function, of a module and of the package, branches, names at the top."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "framewire"
MODULES = sorted(SOURCE.rglob("*.py"))

FUNCTION_LINES = 60
FUNCTION_COMPLEXITY = 15
MODULE_LINES = 400
TOP_LEVEL_NAMES = 26
PACKAGE_LINES = 15_200
"""Of what runs in a server or a consumer: all but ``framewire.testing``."""
TESTING_LINES = 1_200

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _lines(function: Function) -> int:
    """From ``def`` to the end, docstring included."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _complexity(function: Function) -> int:
    """McCabe's number with boolean operators and comprehensions counted, nested functions included (as radon does)."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.Assert):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, ast.match_case):
            count += not (isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None)
    return count


def _each_function() -> Iterator[tuple[str, Function]]:
    for path in MODULES:
        for function in _functions(ast.parse(path.read_text())):
            yield f"{path.relative_to(SOURCE)}:{function.lineno} {function.name}", function


def _listed(offenders: dict[str, int]) -> str:
    return "\n".join(f"{value} {name}" for name, value in sorted(offenders.items(), key=lambda item: -item[1]))


def test_functions_fit_on_a_screen() -> None:
    functions = dict(_each_function())
    assert len(functions) > 500, "few functions were found, so little was checked"
    long = {name: lines for name, function in functions.items() if (lines := _lines(function)) > FUNCTION_LINES}
    assert not long, _listed(long)


def test_functions_have_few_branches() -> None:
    measured = {name: _complexity(function) for name, function in _each_function()}
    branched = {name: value for name, value in measured.items() if value > FUNCTION_COMPLEXITY}
    assert not branched, _listed(branched)


def test_modules_and_the_package_keep_to_their_sizes() -> None:
    lines = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}
    long = {name: count for name, count in lines.items() if count > MODULE_LINES}
    assert not long, _listed(long)
    testing = sum(count for name, count in lines.items() if name.startswith("testing"))
    assert sum(lines.values()) - testing < PACKAGE_LINES
    assert testing < TESTING_LINES


def test_the_top_of_the_package_is_small() -> None:
    names = {path.name for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    names -= {"__pycache__", "__init__.py"}
    assert len(names) <= TOP_LEVEL_NAMES, sorted(names)
    private = sorted(name for name in names if name.startswith("_"))
    assert private == []


def test_what_is_counted() -> None:
    source = """
        async def f(a):
            "Docstring."
            if a and a.b or a.c:
                return [x for x in a if x if not x]
            elif a:
                return 1 if a else 2
            for _ in a:
                try:
                    pass
                except ValueError:
                    pass
            match a:
                case 1:
                    pass
                case _:
                    pass
    """
    (function,) = _functions(ast.parse(textwrap.dedent(source)))
    assert _lines(function) == 16
    # if, and, or, for-in, if, if, elif, if-else, for, except, case
    assert _complexity(function) == 1 + 11
