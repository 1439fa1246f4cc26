"""``python -m bench``: run suites, write results, print the tables and how each goal stands."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from dataclasses import replace
from pathlib import Path

from bench import memory
from bench.config import FULL, QUICK
from bench.contenders import CONTENDERS
from bench.goals import report
from bench.plot import draw
from bench.session import Session
from bench.suites.bulk import CASES

HERE = Path(__file__).parent
SUITES = ("bulk", "projection", "sparse", "small", "publish", "toolcall", "memory", "concurrent", "steps", "shaped")


def main() -> int:
    """Run what the command line asks for. Returns 1 where a suite failed; a missed goal is a result, not a failure."""
    options = _parse()
    plan = QUICK if options.quick else FULL
    session = Session(replace(plan, bulk=options.bulk or plan.bulk), options.contenders)
    folder = options.out or HERE / ("out" if options.quick else "results")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = int(memory.total_bytes() * session.plan.warm_fraction)
    nbytes = min(wanted, int(memory.available_bytes() * 0.7))
    session.say(f"touching {nbytes >> 20} MiB of memory once")
    memory.warm(nbytes)
    for name in options.suite:
        importlib.import_module(f"bench.suites.{name}").run(session)
        session.results.write(folder / "bench.jsonl")  # what was measured is not lost with what comes after
    text = _text(session, quick=options.quick)
    print(text)
    (folder / "bench.md").write_text(text)
    if drawn := draw(session.results, folder):
        session.say(f"wrote {', '.join(map(str, drawn))}")
    session.say(f"wrote {folder / 'bench.jsonl'} and {folder / 'bench.md'}")
    return int(session.failed)


def _text(session: Session, *, quick: bool) -> str:
    """Machine, tables, what was left out, goals."""
    results = session.results
    size = "quick, too small for judging goals" if quick else "full"
    parts = [
        f"# Benchmarks of framewire ({size})\n",
        f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores, {memory.total_bytes() / (1 << 30):.0f} GiB,"
        f" Python {platform.python_version()}.\n",
        _versions(session),
        *results.tables(),
    ]
    if results.skipped:
        parts.append(
            "## Not measured\n\n" + "\n".join(f"- {what}: {reason}" for what, reason in results.skipped) + "\n"
        )
    parts.append(report(results))
    return "\n".join(parts)


def _versions(session: Session) -> str:
    """Those of this environment, and for contenders of another those that differ."""
    found: dict[str | None, dict[str, str]] = {}
    for record in session.results.records:
        contender = CONTENDERS.get(record.contender)
        found.setdefault(contender and contender.environment, {}).update(record.versions)
    ours = found.pop(None, {})
    python = ours.pop("python", platform.python_version())
    lines = ["Versions: " + ", ".join(f"{k} {v}" for k, v in sorted(ours.items())) + "."]
    for name, theirs in found.items():
        other = {k: v for k, v in sorted(theirs.items()) if (ours | {"python": python}).get(k) != v}
        lines.append(f"{name} in an environment of its own: " + ", ".join(f"{k} {v}" for k, v in other.items()) + ".")
    return "\n".join(lines) + "\n"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--suite", default=",".join(SUITES), help="comma-separated: %(default)s")
    parser.add_argument("--contenders", help=f"comma-separated: {','.join(CONTENDERS)}")
    parser.add_argument("--bulk", help=f"tables of the bulk suite, comma-separated: {','.join(CASES)}")
    parser.add_argument(
        "--quick", action="store_true", help="small tables, to see that everything runs (about a minute)"
    )
    parser.add_argument("--out", type=Path, help="folder for results (bench/results; bench/out with --quick)")
    options = parser.parse_args()
    options.suite = _names(parser, options.suite, SUITES)
    options.contenders = _names(parser, options.contenders, tuple(CONTENDERS)) if options.contenders else None
    options.bulk = tuple(_names(parser, options.bulk, tuple(CASES))) if options.bulk else None
    return options


def _names(parser: argparse.ArgumentParser, text: str, known: tuple[str, ...]) -> list[str]:
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
