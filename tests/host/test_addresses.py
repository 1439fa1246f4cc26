from __future__ import annotations

import logging

import pytest

from framewire.host.addresses import AddressKind, is_local_peer, kind_of, listener_url, parse_address, warn_unreachable
from tests.client.test_policy import NEVER


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("127.0.0.1", AddressKind.LOOPBACK),
        ("127.255.255.255", AddressKind.LOOPBACK),
        ("::1", AddressKind.LOOPBACK),
        ("::ffff:127.0.0.1", AddressKind.LOOPBACK),
        ("10.0.0.1", AddressKind.PRIVATE),
        ("172.31.255.255", AddressKind.PRIVATE),
        ("100.64.0.1", AddressKind.PRIVATE),
        ("192.168.0.1", AddressKind.PRIVATE),
        ("fd00::1", AddressKind.PRIVATE),
        ("2001:db8::1", AddressKind.PRIVATE),
        ("172.32.0.1", AddressKind.PUBLIC),
        ("8.8.8.8", AddressKind.PUBLIC),
        ("192.0.1.1", AddressKind.PUBLIC),
        ("2001:4860:4860::8888", AddressKind.PUBLIC),
        ("64:ff9b::808:808", AddressKind.PUBLIC),
        ("2002:808:808::1", AddressKind.PUBLIC),
        ("64:ff9b::a00:1", AddressKind.NEVER),
        ("64:ff9b:1::808:a00:1", AddressKind.NEVER),
        ("2002:7f00:1::", AddressKind.NEVER),
        ("2001:0:808:808::f5ff:fffe", AddressKind.NEVER),  # Teredo: the client's address, 10.0.0.1, is stored inverted
        ("2001:0:7f00:1::f7f7:f7f7", AddressKind.NEVER),
        ("::127.0.0.1", AddressKind.NEVER),
        ("2a00:1::5efe:7f00:1", AddressKind.NEVER),  # ISATAP, in both its forms
        ("2a00:1::200:5efe:7f00:1", AddressKind.NEVER),
        ("fec0::1", AddressKind.NEVER),
        ("::", AddressKind.NEVER),
        *((host.strip("[]"), AddressKind.NEVER) for host in NEVER),
    ],
)
def test_the_kind_of_an_address(text: str, kind: AddressKind) -> None:
    address = parse_address(text)
    assert address is not None
    assert kind_of(address) is kind


@pytest.mark.parametrize(
    "text", ["", "127.1", "0x7f.0.0.1", "127.0.0.01", "1.2.3.4/32", "::1%lo", "١.1.1.1", "localhost", "[::1]"]
)
def test_text_that_is_not_an_address(text: str) -> None:
    assert parse_address(text) is None


def test_a_peer_is_local_by_its_address() -> None:
    for text in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "", "testclient"):
        assert is_local_peer(text)
    for text in ("192.0.2.1", "::", "::127.0.0.1", "64:ff9b::7f00:1", "fe80::1%eth0"):
        assert not is_local_peer(text)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7"),
        ("localhost", "http://localhost:7"),
        ("192.0.2.1", "http://192.0.2.1:7"),
        ("2001:db8::1", "http://[2001:db8::1]:7"),
        ("0.0.0.0", "http://127.0.0.1:7"),
        ("", "http://127.0.0.1:7"),
        ("::", "http://[::1]:7"),
    ],
)
def test_the_url_of_a_listener(host: str, url: str) -> None:
    assert listener_url(host, 7) == url


@pytest.mark.parametrize(
    ("bound", "advertised", "warned"),
    [
        ("0.0.0.0", "http://127.0.0.1:1", True),
        ("::", "http://[::1]:1", True),
        ("192.0.2.1", "http://localhost:1", True),
        ("0.0.0.0", "http://0.0.0.0:1", True),
        ("127.0.0.1", "http://127.0.0.1:1", False),
        ("0.0.0.0", "https://data.example.org", False),
        ("192.0.2.1", "http://192.0.2.1:1", False),
    ],
)
def test_a_url_that_other_hosts_cannot_reach_is_warned_of(
    caplog: pytest.LogCaptureFixture, bound: str, advertised: str, warned: bool
) -> None:
    warn_unreachable(bound, advertised)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * warned
