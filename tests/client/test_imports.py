from __future__ import annotations

import subprocess
import sys

NOT_FOR_FETCH = {
    "framewire.client._legacy",
    "framewire.consume",
    "framewire.frame",
    "framewire.inline",
    "framewire.join",
    "framewire.values",
    "pandas",
    "polars",
    "pyarrow.compute",
    "uvicorn",
}


def _loaded(code: str) -> set[str]:
    code += "\nimport sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_fetch_loads_neither_json_values_nor_frames() -> None:
    loaded = _loaded("import framewire; framewire.fetch; framewire.fetch_async")
    assert {"framewire.client", "pyarrow", "httpx"} <= loaded
    assert loaded & NOT_FOR_FETCH == set()


def test_a_fetch_loads_them_only_for_a_legacy_peer() -> None:
    """Whose rows are JSON."""
    code = """
import httpx, framewire
answers = lambda request: httpx.Response(200, json={"body": [{"_row_id": 0, "n": 1}]})
url = "http://127.0.0.1:9/s2sp/data/"
def fetch(token):
    policy = framewire.PeerPolicy(["http://127.0.0.1:9"])
    return framewire.fetch(url + token, policy=policy, transport=httpx.MockTransport(answers))
try:
    fetch("fw1" + "a" * 32)
except framewire.UnsupportedVersionError:
    pass
"""
    assert _loaded(code) & NOT_FOR_FETCH == set()
    assert {"framewire.client._legacy", "framewire.values"} <= _loaded(code + 'assert fetch("legacy").num_rows == 1')
