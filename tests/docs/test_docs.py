"""Every Python block in README and docs runs as written, and prints what the page says it prints.

A block with ``title="name.py"`` is saved under that name; the others of a page run in order, in one process; a block
``text output`` is what the block before it prints. Links to files must lead somewhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", *(ROOT / "examples").rglob("*.md")]
)
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_MARK = "--- end of block ---"


@dataclass(frozen=True)
class Page:
    """The blocks of one page."""

    files: dict[str, str]
    script: str
    expected: list[str | None]


def _read(text: str) -> Page:
    files: dict[str, str] = {}
    blocks: list[str] = []
    expected: list[str | None] = []
    for language, info, code in _FENCE.findall(text):
        title = re.search(r'title="([^"]+)"', info)
        if language == "python" and title:
            files[title[1]] = code
        elif language == "python":
            blocks.append(code + f"\nprint({_MARK!r}, flush=True)\n")
            expected.append(None)
        elif language == "text" and "output" in info:
            expected[-1] = code
    return Page(files, "\n".join(blocks), expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_run_and_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    found = _read(page.read_text())
    if not found.script:
        for code in found.files.values():
            compile(code, str(page), "exec")
        return
    for name, code in found.files.items():
        (tmp_path / name).write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", found.script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(_MARK + "\n")[:-1]
    assert len(printed) == len(found.expected)
    for got, wanted in zip(printed, found.expected, strict=True):
        if wanted is not None:
            assert got == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_runner_finds_blocks() -> None:
    page = _read('```python title="a.py"\nx\n```\n\n```python\nprint(1)\n```\n\n```text output\n1\n```\n')
    assert page.files == {"a.py": "x\n"}
    assert page.expected == ["1\n"]
    assert sum(bool(_read(p.read_text()).script) for p in PAGES) >= 2


def test_the_api_page_names_every_export_and_setting() -> None:
    import framewire
    from framewire.settings import VARIABLES

    page = (ROOT / "docs/reference/api.md").read_text()
    missing = [name for name in framewire.__all__ if name != "__version__" and name not in page]
    missing += [variable for variable, _ in VARIABLES.values() if f"`{variable}`" not in page]
    assert not missing
