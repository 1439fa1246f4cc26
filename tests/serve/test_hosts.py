from __future__ import annotations

import pytest

from framewire.errors import BadHostError
from framewire.serve import HostPolicy


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
