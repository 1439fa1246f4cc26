"""The guard against DNS rebinding: names are listed, and only a server on every address answers to any IP literal."""

from __future__ import annotations

import pytest

from framewire.errors import BadHostError
from framewire.serve._hosts import HostPolicy

LITERALS = ["192.0.2.7", "192.0.2.7:8000", "[2001:db8::1]", "[2001:db8::1]:8000"]
NAMES = [
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "192.0.2.7.evil.example",
    "localhost.evil.example",
]
BROKEN = ["", ":80", "[::1", "192.0.2.256", "192.0.2.7@evil.example", "evil.example#@127.0.0.1"]


def _answers(policy: HostPolicy, host: str, origin: str = "") -> bool:
    try:
        policy.check(host, origin)
    except BadHostError:
        return False
    return True


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "192.0.2.1", "0.0.0.0", "::", ""])
def test_every_server_answers_to_loopback_and_listed_names_only(bound: str) -> None:
    policy = HostPolicy(bound, ["Data.Example.org"])
    for host in ("127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:8000", "data.example.org", "DATA.example.org:443"):
        assert _answers(policy, host)
    for host in [*NAMES, *BROKEN]:
        assert not _answers(policy, host), host


@pytest.mark.parametrize("host", LITERALS)
def test_any_ip_literal_is_answered_on_every_address_only(host: str) -> None:
    assert _answers(HostPolicy("0.0.0.0"), host)
    assert _answers(HostPolicy("::"), host)
    assert not _answers(HostPolicy("127.0.0.1"), host)
    assert not _answers(HostPolicy("192.0.2.1"), host)


def test_the_address_that_was_bound_is_answered() -> None:
    assert _answers(HostPolicy("192.0.2.7"), "192.0.2.7:8000")
    assert not _answers(HostPolicy("192.0.2.7"), "192.0.2.8:8000")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "file://", "http://[::1", "evil.example"])
def test_a_foreign_origin_is_refused_whatever_the_host(origin: str) -> None:
    for bound in ("127.0.0.1", "0.0.0.0"):
        assert not _answers(HostPolicy(bound), "127.0.0.1", origin)


def test_the_refusal_says_what_to_set_and_repeats_nothing_that_a_stranger_sent() -> None:
    with pytest.raises(BadHostError, match="FRAMEWIRE_ALLOWED_HOSTS") as caught:
        HostPolicy("127.0.0.1").check("evil.example", "")
    assert "evil" not in str(caught.value)


def test_an_own_origin_is_answered() -> None:
    policy = HostPolicy("127.0.0.1", ["data.example.org"])
    for origin in ("", "http://localhost:5173", "https://data.example.org", "http://127.0.0.1:9"):
        assert _answers(policy, "localhost", origin)
    assert _answers(HostPolicy("0.0.0.0"), "192.0.2.7", "http://192.0.2.7:8000")


@pytest.mark.parametrize(
    ("bound", "host", "accepted"),
    [
        ("127.0.0.1", "127.0.0.1:80", True),
        ("127.0.0.1", "LocalHost", True),
        ("127.0.0.1", "[::1]:80", True),
        ("127.0.0.1", "data.example.org", True),
        ("127.0.0.1", "192.0.2.1", False),
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("0.0.0.0", "192.0.2.1", True),
        ("0.0.0.0", "[2001:db8::1]:80", True),
        ("", "192.0.2.1", True),
        ("0.0.0.0", "evil.example", False),
        ("0.0.0.0", "127.1", False),
        ("0.0.0.0", "[::1", False),
        ("0.0.0.0", "", False),
        ("0.0.0.0", "192.0.2.1, 192.0.2.1", False),
    ],
)
def test_which_hosts_are_accepted(bound: str, host: str, accepted: bool) -> None:
    policy = HostPolicy(bound, ["Data.example.org"])
    if accepted:
        policy.check(host, "")
        policy.check(host, f"http://{host}")
    else:
        with pytest.raises(BadHostError):
            policy.check(host, "")
        with pytest.raises(BadHostError):
            policy.check("localhost", f"http://{host}")
