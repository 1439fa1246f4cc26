from __future__ import annotations

from typing import Any

import pytest

from framewire.errors import SettingError
from framewire.settings import VARIABLES, Settings


def test_every_field_has_a_variable_and_arguments_win() -> None:
    assert set(VARIABLES) == set(Settings.__dataclass_fields__)
    assert {f"FRAMEWIRE_{name.upper()}" for name in VARIABLES} == {variable for variable, _ in VARIABLES.values()}
    env = {
        "FRAMEWIRE_TTL_SECONDS": "30",
        "FRAMEWIRE_MAX_ROWS": "1_000",
        "FRAMEWIRE_ALLOW_PEERS": "http://A:80, https://b",
    }
    settings = Settings.from_env(env, ttl_seconds=5.0, max_rows=None)
    assert (settings.ttl_seconds, settings.max_rows) == (5.0, 1000)
    assert settings.allow_peers == ("http://a:80", "https://b")
    assert Settings.from_env({}).memory_budget_bytes > 1 << 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("public_url", "ftp://x"),
        ("public_url", "https://u:p@x"),
        ("public_url", "http://127.0.0.1:*"),
        ("public_url", "https://h/s2sp/data/t"),
        ("allow_peers", "http://*:80"),
        ("allow_peers", "example.org"),
        ("allow_peers", "http://example.org:*"),
        ("allow_peers", "http://127.1"),
        ("allow_peers", "http://h/a/../b"),
        ("trust_peers", "http://u@x"),
        ("same_host", "maybe"),
        ("memory_budget_bytes", "-1"),
        ("ttl_seconds", "nan"),
        ("ttl_seconds", "0"),
        ("max_rows", "many"),
    ],
)
def test_bad_values_name_their_variable(name: str, value: str) -> None:
    variable = VARIABLES[name][0]
    with pytest.raises(SettingError, match=variable):
        Settings.from_env({variable: value})
    argument: Any = (value,) if name.endswith("peers") else value
    with pytest.raises(SettingError, match=variable):
        Settings.from_env({}, **{name: argument})


def test_unknown_settings_and_trailing_slashes() -> None:
    with pytest.raises(SettingError, match="no setting 'ttl'"):
        Settings.from_env({}, ttl=3)
    assert Settings(public_url="https://h/data/").public_url == "https://h/data"
    assert Settings(allow_peers=("http://127.0.0.1:*",)).allow_peers == ("http://127.0.0.1:*",)
