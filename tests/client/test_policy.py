from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framewire.client._call import Call, Request
from framewire.client._policy import PeerPolicy, Target
from framewire.client._pool import Peer
from framewire.client._transport import DirectTransport
from framewire.errors import SettingError, TransferDeniedError
from framewire.handle import new_token
from framewire.host.addresses import AddressKind, kind_of, parse_address
from framewire.host.registry import Registration
from framewire.host.urls import parse_base, parse_resource_url
from framewire.settings import Settings

TOKEN = "fw1" + "a2" * 16
GOOD = f"http://127.0.0.1:8080/s2sp/data/{TOKEN}"
CONFIGURED = (
    "https://data.example.org",
    "http://rebind.example:8080",
    "https://h.example/data",
    "http://10.1.2.3:9000",
)


def refusal(policy: PeerPolicy, url: Any) -> str:
    with pytest.raises(TransferDeniedError) as caught:
        policy.check(url)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None  # a context would print the host in a traceback
    return str(caught.value)


THE_TEXT = refusal(PeerPolicy(), "")
ANY_PORT = ["http://127.0.0.1:*"]


def answers(*addresses: str) -> Callable[..., list[tuple[Any, ...]]]:
    """A resolver with these answers."""

    def resolve(host: str, port: int, *, type: int) -> list[tuple[Any, ...]]:
        assert type == socket.SOCK_STREAM
        return [
            (socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses
        ]

    return resolve


def never_asked(*args: object, **kwargs: object) -> list[tuple[Any, ...]]:
    raise AssertionError("a name that nobody configured was resolved")


# --- the corpus -----------------------------------------------------------------------------------------------------

LOOPBACK_IN_DISGUISE = [
    "127.1", "127.0.1", "127", "0127.0.0.1", "127.0.0.01", "127.00.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f.1",
    "0x7f000001", "0X7F000001", "2130706433", "017700000001", "127.0.0.0x1", "127.0.0.1.", "127.0.0.256",
    "127.0.0.-1", "127.0.0.+1", "127.0.0", "127.0.0.1.1", "1.127.0.0.1", "127..0.0.1", ".127.0.0.1", "127.0.0.1e0",
    "127_0_0_1", "0", "00", "0x0", "0.0", "0.0.0.0", "0.0.0.1", "0.1.2.3", "localhost.", "localhost.localdomain",
    "localhost.example.org", "a.localhost", "lvh.me", "127.0.0.1.nip.io", "127-0-0-1.sslip.io", "localtest.me",
    "ip6-localhost", "ip6-loopback", "loopback", "0.0.0.0.nip.io",
]  # fmt: skip

EMBEDDED_IPV4 = [
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "[::FFFF:127.0.0.1]",
    "[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
    "[2002:7f00:1::1]", "[2002:a9fe:a9fe::]", "[::127.0.0.1]", "[::7f00:1]", "[::2]", "[2001:0:7f00:1::]",
    "[2001::80ff:fffe]", "[2001:0:a9fe:a9fe::1]", "[fe80::5efe:127.0.0.1]", "[2001:db8::5efe:7f00:1]",
    "[2001:db8::200:5efe:7f00:1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[::ffff:0.0.0.0]",
    "[::ffff:10.1.2.3]",
]  # fmt: skip

NEVER = [
    "169.254.169.254", "169.254.0.1", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.255", "[::]", "[fe80::1]", "[febf::1]", "[fec0::1]", "[ff02::1]",
    "[ff0e::1]", "[fd00:ec2::254]", "[fd20:ce::254]", "[fd00:c1::a9fe:a9fe]", "[100::1]", "[4000::1]", "[e000::1]",
]  # fmt: skip
"""Addresses (canonical spellings) that are refused even where they are configured."""

BAD_LITERALS = [
    "[::1%25lo]", "[::1%lo]", "[fe80::1%25eth0]", "[::1", "::1]", "::1", "[::1]]", "[[::1]]", "[]", "[:]", "[:::1]",
    "[v1.a]", "[127.0.0.1]", "[localhost]", "[::1].", "[::1]a", "a[::1]", "[0::0::1]", "[::g]", "[::1 ]",
    "[1:2:3:4:5:6:7:8:9]",
]  # fmt: skip

STRANGERS = [
    "example.com", "metadata", "metadata.google.internal", "instance-data", "kubernetes.default.svc", "router.local",
    "8.8.8.8", "10.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1",
    "[2001:4860:4860::8888]", "[fd00::2]", "[fc00::1]", "data.example.org.evil.com", "evildata.example.org",
    "data.example.org", "example.org", "xn--nxasmq6b", "www.data.example.org", "h.example", "rebind.example.",
    "rebind", "-", "-a", "a-", "a..b", "..", ".", "_._", "a" * 64, "a." * 130, "metadata.azure.internal",
    "host.docker.internal", "host.containers.internal", "burpcollaborator.net",
]  # fmt: skip

UNICODE = [
    "１２７.0.0.1", "127。0。0。1", "127．0．0．1", "①②⑦.⓪.⓪.①", "ｌｏｃａｌｈｏｓｔ", "localho\u017ft",
    "loc\u0430lhost", "١٢٧.٠.٠.١", "127.0.0.1\u200b", "\u200d127.0.0.1", "127\u3002"+"0.0.1", "\u202e127.0.0.1",
    "localhost\u00ad", "ⓛocalhost", "bücher.example", "faß.de", "127.0.0.1\u2044", "\ufeff127.0.0.1", "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "[::１]", "127.0.0.1\ud800",
]  # fmt: skip

AUTHORITIES = [
    "u@127.0.0.1:{port}", "u:p@127.0.0.1:{port}", "@127.0.0.1:{port}", ":@127.0.0.1:{port}",
    "data.example.org@127.0.0.1:{port}", "127.0.0.1:{port}@data.example.org", "data.example.org:443@127.0.0.1:{port}",
    "127.0.0.1%40data.example.org", "127.0.0.1:{port}:{port}", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:00",
    "127.0.0.1:0{port}", "127.0.0.1:+{port}", "127.0.0.1:-{port}", "127.0.0.1:65536", "127.0.0.1:{port} ",
    "127.0.0.1: {port}", "127.0.0.1:1e4", "127.0.0.1:0x50", "127.0.0.1:99999999999999999999", "127.0.0.1:８０",
    "127.0.0.1:*", "127.0.0.1:{port}\\@data.example.org", "127.0.0.1 :{port}", "127.0.0.1\\:{port}",
    "127.0.0.1#@data.example.org", "127.0.0.1?@data.example.org", "%31%32%37.0.0.1:{port}", "127.0.0.1%2e:{port}",
    "127.0.0.1%00:{port}", "127.0.0.1\x00:{port}", "127.0.0.1\t:{port}", "12\n7.0.0.1:{port}", "127.0.0.1:{port}\r",
    "", ":", ":{port}", "*", "*:{port}", "127.0.0.1,example.com", "127.0.0.1;example.com", "127.0.0.1|", "127.0.0.1^",
    "127.0.0.1`", "<127.0.0.1>", "127.0.0.1\x7f",
]  # fmt: skip

WHOLE = [
    "", " ", "/", "//", "x", "http:", "http:/", "http://", "http:///", "https://", "//127.0.0.1:{port}{path}",
    "127.0.0.1:{port}{path}", "{path}", "http:127.0.0.1:{port}{path}", "http:/127.0.0.1:{port}{path}",
    "http:///127.0.0.1:{port}{path}", "http:////127.0.0.1:{port}{path}", "http:\\\\127.0.0.1:{port}{path}",
    "http:/\\127.0.0.1:{port}{path}", "http//127.0.0.1:{port}{path}", "http://127.0.0.1:{port}\\{path}",
    " http://127.0.0.1:{port}{path}", "http://127.0.0.1:{port}{path} ", "http://127.0.0.1:{port}{path}\n",
    "\thttp://127.0.0.1:{port}{path}", "http://127.0.0.1:{port}{path}\x00", "\x00http://127.0.0.1:{port}{path}",
    "\ufeffhttp://127.0.0.1:{port}{path}", "ht\ntp://127.0.0.1:{port}{path}", "HTTP://127.0.0.1:{port}{path}",
    "hTTp://127.0.0.1:{port}{path}", "http ://127.0.0.1:{port}{path}", "url:http://127.0.0.1:{port}{path}",
    "file:///etc/passwd", "file://127.0.0.1{path}", "ftp://127.0.0.1:{port}{path}", "gopher://127.0.0.1:{port}{path}",
    "ws://127.0.0.1:{port}{path}", "dict://127.0.0.1:{port}{path}", "ldap://127.0.0.1:{port}{path}",
    "jar:http://127.0.0.1:{port}{path}", "data:text/plain,x", "javascript:1", "unix:///run/docker.sock",
    "http+unix://%2Frun%2Fdocker.sock{path}", "tftp://127.0.0.1{path}", "httpx://127.0.0.1:{port}{path}",
    "https+http://127.0.0.1:{port}{path}", "http://127.0.0.1:{port}{path}?x=1", "http://127.0.0.1:{port}{path}?",
    "http://127.0.0.1:{port}{path}#", "http://127.0.0.1:{port}{path}#frag", "http://127.0.0.1:{port}{path};a=1",
    "http://127.0.0.1:{port}{path}/", "http://127.0.0.1:{port}{path}/..", "http://127.0.0.1:{port}{path}%2f..",
    "http://127.0.0.1:{port}{path}%00", "http://127.0.0.1:{port}{path}%", "http://127.0.0.1:{port}{path}.",
    "http://127.0.0.1:{port}{path}=", "http://127.0.0.1:{port}{path}+", "http://127.0.0.1:{port}{path}~",
    "http://127.0.0.1:{port}{path}é", "http://127.0.0.1:{port}{path}\nHost: x",
    "http://127.0.0.1:{port}{path} HTTP/1.1\r\nX: y", "http://127.0.0.1:{port}", "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/s2sp/data", "http://127.0.0.1:{port}/s2sp/data/", "http://127.0.0.1:{port}//s2sp/data/t",
    "http://127.0.0.1:{port}/s2sp//data/t", "http://127.0.0.1:{port}/s2sp/data//t",
    "http://127.0.0.1:{port}/./s2sp/data/t", "http://127.0.0.1:{port}/../s2sp/data/t",
    "http://127.0.0.1:{port}/s2sp/data/../../admin", "http://127.0.0.1:{port}/s2sp/data/..",
    "http://127.0.0.1:{port}/s2sp/data/.", "http://127.0.0.1:{port}/s2sp/data/%2e%2e",
    "http://127.0.0.1:{port}/s2sp/data/a%2Fb", "http://127.0.0.1:{port}/s2sp/data/a\\b",
    "http://127.0.0.1:{port}/s2sp%2fdata%2ft", "http://127.0.0.1:{port}/S2SP/data/t",
    "http://127.0.0.1:{port}/s2sp/DATA/t", "http://127.0.0.1:{port}/s2sp/health", "http://127.0.0.1:{port}/admin",
    "http://127.0.0.1:{port}/latest/meta-data/", "http://127.0.0.1:{port}/other/s2sp/data/t",
    "http://127.0.0.1:{port}/data/s2sp/data/t", "http://127.0.0.1:{port}/s2sp/data/t/s2sp/data/t",
    "http://127.0.0.1:{port}\\s2sp\\data\\t", "http://127.0.0.1:{port}/s2sp/data/"+"t" * 257,
    "http://127.0.0.1:{port}/s2sp/data/"+"t" * 4096, "http://127.0.0.1:{port}/"+"p/" * 1000+"s2sp/data/t",
    "http://127.0.0.1:{port}/s2sp/data/t t", "https://h.example/s2sp/data/t", "https://h.example/data/../s2sp/data/t",
    "https://h.example/data/x/s2sp/data/t", "https://h.example/Data/s2sp/data/t",
    "https://h.example/data//s2sp/data/t", "https://h.example/data/./s2sp/data/t",
    "https://h.example/data%2f/s2sp/data/t", "http://h.example/data/s2sp/data/t",
    "https://h.example:8443/data/s2sp/data/t", "https://data.example.org:444{path}", "http://data.example.org{path}",
    "http://data.example.org:443{path}", "https://data.example.org/data{path}", "http://rebind.example{path}",
    "https://rebind.example:8080{path}", "http://10.1.2.3:9001{path}",
]  # fmt: skip


def corpus(port: int) -> list[str]:
    path = f"/s2sp/data/{TOKEN}"
    hosts = LOOPBACK_IN_DISGUISE + EMBEDDED_IPV4 + NEVER + BAD_LITERALS + STRANGERS + UNICODE
    urls = [f"http://{host}:{port}{path}" for host in hosts]
    urls += [f"http://{authority.format(port=port)}{path}" for authority in AUTHORITIES]
    urls += [whole.replace("{port}", str(port)).replace("{path}", path) for whole in WHOLE]
    return urls


class Counter:
    """A listener on loopback that counts connections."""

    def __init__(self) -> None:
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.sock.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            peer, _ = self.sock.accept()
            with peer:
                if peer.recv(65536) == b"stop":
                    return
                self.connections += 1
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"stop")
            self._thread.join()
        self.sock.close()


@contextmanager
def listener() -> Iterator[Counter]:
    counter = Counter()
    try:
        yield counter
    finally:
        counter.close()


def call(policy: PeerPolicy, transport: DirectTransport, url: str) -> None:
    """What a fetch does with a URL."""
    connect_to(policy.check(url), transport)


def connect_to(target: Target, transport: DirectTransport) -> None:
    peer = Peer(target.scheme, target.host, target.port, target.address)
    host = ((b"Host", target.authority.encode()),)
    transport.send(Call(Request("GET", host, path=target.path), peer, time.monotonic() + 5, 1 << 20))


def test_hostile_urls_are_refused_alike_and_nobody_is_called() -> None:
    transport = DirectTransport()
    default = PeerPolicy(resolver=never_asked)
    configured = PeerPolicy(CONFIGURED, resolver=never_asked)
    with listener() as counter:
        urls = corpus(counter.port)
        assert len(set(urls)) >= 300
        for url in urls:
            for policy in (default, configured):
                with pytest.raises(TransferDeniedError) as caught:
                    call(policy, transport, url)
                assert str(caught.value) == THE_TEXT, url
                assert TOKEN not in repr(caught.value)
        assert counter.connections == 0
        allowing = PeerPolicy(ANY_PORT)
        call(allowing, transport, f"http://127.0.0.1:{counter.port}/s2sp/data/{TOKEN}")  # the listener does count
        assert counter.connections == 1
    transport.close()


def test_the_refusal_names_the_settings_and_no_url() -> None:
    assert "FRAMEWIRE_ALLOW_PEERS" in THE_TEXT
    assert "FRAMEWIRE_TRUST_PEERS" in THE_TEXT
    assert refusal(PeerPolicy(), f"http://secret-host.example/s2sp/data/{TOKEN}") == THE_TEXT


@pytest.mark.parametrize("value", [None, 7, b"http://127.0.0.1/s2sp/data/t", ["x"], object()])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert refusal(PeerPolicy(), value) == THE_TEXT


@pytest.mark.parametrize("host", NEVER)
def test_never_addresses_stay_refused_when_configured(host: str) -> None:
    policy = PeerPolicy([f"http://{host}:8080"], [f"http://{host}:8080"])
    assert refusal(policy, f"http://{host}:8080/s2sp/data/{TOKEN}") == THE_TEXT


@pytest.mark.parametrize("host", [host.strip("[]") for host in NEVER])
def test_never_addresses_stay_refused_behind_a_configured_name(host: str) -> None:
    policy = PeerPolicy(["https://data.example.org"], resolver=answers("93.184.216.34", host))
    assert refusal(policy, f"https://data.example.org/s2sp/data/{TOKEN}") == THE_TEXT
    alone = PeerPolicy(["https://data.example.org"], resolver=answers(host))
    assert refusal(alone, f"https://data.example.org/s2sp/data/{TOKEN}") == THE_TEXT


@pytest.mark.parametrize(
    "found",
    [
        (),
        ("93.184.216.34", "127.0.0.1"),
        ("93.184.216.34", "10.0.0.1"),
        ("10.0.0.1", "93.184.216.34"),
        ("93.184.216.34", "::ffff:10.0.0.1"),
        ("93.184.216.34", "64:ff9b::7f00:1"),
        ("64:ff9b::a00:1",),
        ("2002:7f00:1::",),
        ("::7f00:1",),
        ("2001:4860::1", "fd00::1"),
        ("fe80::1%eth0",),
        ("127.0.0.1",),
        ("127.0.0.53",),
        ("::1",),
        ("::ffff:127.0.0.1",),
        ("data.example.org",),
        ("",),
        ("8.8.8.8",) * 65,
    ],
)
def test_every_answer_of_a_configured_name_is_checked(found: tuple[str, ...]) -> None:
    policy = PeerPolicy(["https://data.example.org"], resolver=answers(*found))
    assert refusal(policy, f"https://data.example.org/s2sp/data/{TOKEN}") == THE_TEXT


@pytest.mark.parametrize(
    ("found", "pinned"),
    [
        (("93.184.216.34", "8.8.8.8"), "93.184.216.34"),
        (("2001:4860::1", "93.184.216.34"), "2001:4860::1"),
        (("10.0.0.1", "192.168.1.1", "fd00::1"), "10.0.0.1"),
        (("::ffff:10.0.0.1",), "10.0.0.1"),
        (("64:ff9b::808:808",), "64:ff9b::808:808"),
    ],
)
def test_the_first_answer_is_pinned(found: tuple[str, ...], pinned: str) -> None:
    target = PeerPolicy(["https://data.example.org"], resolver=answers(*found)).check(
        f"https://data.example.org/s2sp/data/{TOKEN}"
    )
    assert (target.host, target.port, target.address) == ("data.example.org", 443, pinned)


def failing(error: BaseException) -> Callable[..., Any]:
    def resolve(*args: object, **kwargs: object) -> Any:
        raise error

    return resolve


@pytest.mark.parametrize(
    "resolver",
    [
        failing(socket.gaierror(-2, "Name or service not known")),
        failing(UnicodeError("label too long")),
        failing(TimeoutError()),
        failing(RuntimeError("secret-host.example")),
        lambda *args, **kwargs: None,
        lambda *args, **kwargs: [()],
        lambda *args, **kwargs: [(2, 1, 6, "", ())],
        lambda *args, **kwargs: [(2, 1, 6, "", (None, 80))],
        lambda *args, **kwargs: [(2, 1, 6, "", (b"\xff", 80))],
    ],
)
def test_a_resolver_that_fails_is_a_refusal(resolver: Callable[..., Any]) -> None:
    policy = PeerPolicy(["https://data.example.org"], resolver=resolver)
    assert refusal(policy, f"https://data.example.org/s2sp/data/{TOKEN}") == THE_TEXT


def test_a_rebinding_resolver_is_asked_once_and_the_checked_address_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int, *, type: int) -> list[tuple[Any, ...]]:
        asked.append(host)
        return answers("93.184.216.34" if len(asked) == 1 else "127.0.0.1")(host, port, type=type)

    dialled: list[object] = []

    def connect(sock: socket.socket, address: object) -> None:
        dialled.append(address)
        raise ConnectionRefusedError(111, "refused")

    with listener() as counter:
        policy = PeerPolicy([f"http://rebind.example:{counter.port}"], resolver=rebinding)
        url = f"http://rebind.example:{counter.port}/s2sp/data/{TOKEN}"
        target = policy.check(url)
        assert (target.address, asked) == ("93.184.216.34", ["rebind.example"])
        with monkeypatch.context() as patched:
            patched.setattr(socket.socket, "connect", connect)
            patched.setattr(socket, "getaddrinfo", never_asked)
            with pytest.raises(Exception, match="No connection"):
                connect_to(target, DirectTransport())
        assert dialled == [("93.184.216.34", counter.port)]
        # The next check meets the second answer, and a name that is not this host's own never means loopback.
        assert refusal(policy, url) == THE_TEXT
        assert counter.connections == 0


@pytest.mark.parametrize(
    "host",
    [
        *LOOPBACK_IN_DISGUISE[:23],
        *EMBEDDED_IPV4,
        *BAD_LITERALS,
        *UNICODE,
        "a.127",
        "a.b.0",
        "a.0x7f",
        "a.0x",
        "1.2.3.4.5",
    ],
)
def test_the_grammar_alone_refuses_a_host_with_two_readings(host: str) -> None:
    assert parse_resource_url(f"http://{host}/s2sp/data/t") is None
    assert parse_base(f"http://{host}") is None


@pytest.mark.parametrize(
    "prefix", ["/..", "/.", "/a/..", "/...", "/a/./b", "//a", "/a/", "/%2e", "/a b", "/a;b", "/a@b"]
)
def test_the_grammar_alone_refuses_a_prefix_with_two_readings(prefix: str) -> None:
    assert parse_resource_url(f"http://h{prefix}/s2sp/data/t") is None


# --- what is allowed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1.2.3", "127.1.2.3"),
        ("[::1]", "::1"),
        ("[0:0::1]", "::1"),
        ("localhost", "127.0.0.1"),
        ("LOCALHOST", "127.0.0.1"),
    ],
)
def test_loopback_is_called_only_where_a_data_plane_of_this_user_is_registered(host: str, address: str) -> None:
    # ::1 is first in the answers of many hosts, while servers listen on 127.0.0.1.
    resolver = answers("::1", "127.0.0.1")
    literal = f"[{address}]" if ":" in address else address
    entry = Registration(f"http://{literal}:8080", 1, 1, "00")
    own = PeerPolicy(registered=lambda origin: entry if origin == entry.origin else None, resolver=resolver)
    target = own.check(f"http://{host}:8080/s2sp/data/{TOKEN}")
    assert (target.address, target.trusted, target.port, target.registration) == (address, False, 8080, entry)
    assert refusal(own, f"http://{host}:8081/s2sp/data/{TOKEN}") == THE_TEXT
    assert refusal(own, f"http://{host}:8080/prefix/s2sp/data/{TOKEN}") == THE_TEXT
    for alone in (PeerPolicy(resolver=resolver), PeerPolicy(registered=None, resolver=resolver)):
        assert refusal(alone, f"http://{host}:8080/s2sp/data/{TOKEN}") == THE_TEXT


@pytest.mark.parametrize("found", [("10.0.0.1",), ("8.8.8.8",), ("127.0.0.1", "8.8.8.8"), ("0.0.0.0",), ()])
def test_localhost_must_resolve_to_loopback(found: tuple[str, ...]) -> None:
    policy = PeerPolicy(["http://localhost:8080"], resolver=answers(*found))
    assert refusal(policy, f"http://localhost:8080/s2sp/data/{TOKEN}") == THE_TEXT


def test_a_host_may_call_itself_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Box7")
    policy = PeerPolicy(["http://box7.corp.example:9000", "http://dev.localhost:9000"], resolver=answers("127.0.1.1"))
    assert policy.check(f"http://box7.corp.example:9000/s2sp/data/{TOKEN}").address == "127.0.1.1"
    assert policy.check(f"http://dev.localhost:9000/s2sp/data/{TOKEN}").address == "127.0.1.1"


def test_the_target_of_a_good_url() -> None:
    target = PeerPolicy(ANY_PORT).check(GOOD)
    assert target == Target(
        scheme="http",
        host="127.0.0.1",
        port=8080,
        address="127.0.0.1",
        path=f"/s2sp/data/{TOKEN}",
        token=TOKEN,
        is_legacy=False,
        origin="http://127.0.0.1:8080",
        trusted=False,
        url=GOOD,
    )
    assert TOKEN not in repr(target)


@pytest.mark.parametrize(
    ("token", "is_legacy"),
    [
        (TOKEN, False),
        (TOKEN + "a", True),
        (TOKEN[:-1], True),
        (TOKEN.upper(), True),
        ("0b9c-x_Y", True),
        ("t" * 256, True),
    ],
)
def test_a_token_without_the_promise_is_a_legacy_peer(token: str, is_legacy: bool) -> None:
    assert PeerPolicy(ANY_PORT).check(f"http://127.0.0.1:1/s2sp/data/{token}").is_legacy is is_legacy
    assert not PeerPolicy(ANY_PORT).check(f"http://127.0.0.1:1/s2sp/data/{new_token()}").is_legacy


def test_allow_and_trust_are_exact_and_trust_wins() -> None:
    policy = PeerPolicy(
        ["https://a.example", "https://h.example/data", "http://10.0.0.5:9000/"],
        ["https://a.example:443", "https://h.example/data/own/"],
        resolver=answers("8.8.8.8"),
    )
    assert policy.check("https://a.example/s2sp/data/t").trusted
    assert policy.check("https://A.example:443/s2sp/data/t").origin == "https://a.example"
    assert not policy.check("https://h.example/data/s2sp/data/t").trusted
    assert policy.check("https://h.example/data/own/s2sp/data/t").trusted
    assert policy.check("http://10.0.0.5:9000/s2sp/data/t").path == "/s2sp/data/t"
    for url in (
        "http://a.example/s2sp/data/t",
        "https://a.example:444/s2sp/data/t",
        "https://a.example/data/s2sp/data/t",
        "https://h.example/s2sp/data/t",
        "https://h.example/data/other/s2sp/data/t",
        "http://10.0.0.5/s2sp/data/t",
    ):
        assert refusal(policy, url) == THE_TEXT


def test_a_wildcard_is_for_one_loopback_host() -> None:
    policy = PeerPolicy(ANY_PORT)
    assert policy.check("http://127.0.0.1:54321/s2sp/data/t").port == 54321
    for url in ("https://127.0.0.1:54321/s2sp/data/t", "http://127.0.0.2:1/s2sp/data/t", "http://[::1]:1/s2sp/data/t"):
        assert refusal(policy, url) == THE_TEXT


BAD_ENTRIES = [
    "", "h", "h:80", "//h", "ftp://h", "HTTP://h", "http://u@h", "http://h?x", "http://h#x", "http://h:0",
    "http://h:99999", "http://h:*", "http://10.0.0.1:*", "http://127.1", "http://*", "http://h/../x", "http://h/a b",
    "http://h/%2f", "http://[::ffff:1.2.3.4]", "http://h/s2sp/data/"+TOKEN, "http://h/s2sp/data",
    "http://bücher.example", 7,
]  # fmt: skip


@pytest.mark.parametrize("entry", BAD_ENTRIES)
def test_a_malformed_entry_is_a_setting_error_that_does_not_show_it(entry: Any) -> None:
    with pytest.raises(SettingError) as caught:
        PeerPolicy([entry])
    assert "allow" in str(caught.value)
    assert TOKEN not in str(caught.value)
    with pytest.raises(SettingError, match="trust"):
        PeerPolicy(trust=[entry])


@pytest.mark.parametrize("entry", [entry for entry in BAD_ENTRIES if isinstance(entry, str) and entry])
def test_an_entry_that_the_policy_refuses_is_refused_by_the_settings(entry: str) -> None:
    for name in ("allow_peers", "trust_peers"):
        with pytest.raises(SettingError) as caught:
            Settings(**{name: (entry,)})  # type: ignore[arg-type]
        assert name.upper() in str(caught.value)
        assert TOKEN not in str(caught.value)


def test_text_is_no_list_of_entries() -> None:
    with pytest.raises(SettingError, match="list"):
        PeerPolicy("http://a.example")


def test_settings_give_the_policy_with_base_paths() -> None:
    settings = Settings.from_env(
        {"FRAMEWIRE_ALLOW_PEERS": "https://H.example/data/, http://127.0.0.1:*", "FRAMEWIRE_TRUST_PEERS": "http://10.0.0.5:9000"}
    )  # fmt: skip
    assert settings.allow_peers == ("https://h.example/data", "http://127.0.0.1:*")
    policy = PeerPolicy.from_settings(settings)
    assert policy.check("http://10.0.0.5:9000/s2sp/data/t").trusted
    assert "example" not in repr(policy)


@pytest.mark.parametrize("entry", [f"http://h/s2sp/data/{TOKEN}", f"http://u:{TOKEN}@h", f"http://h?{TOKEN}", TOKEN])
def test_a_setting_that_holds_a_secret_is_refused_without_showing_it(entry: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings.from_env({"FRAMEWIRE_ALLOW_PEERS": entry})
    assert "FRAMEWIRE_ALLOW_PEERS" in str(caught.value)
    assert TOKEN not in str(caught.value)


# --- the parser under random text -----------------------------------------------------------------------------------

PIECES = [
    "http", "https", "://", ":", "/", "//", "@", "?", "#", "\\", "%", "%2e", "..", ".", "[", "]", "::1", "127.0.0.1",
    "localhost", "0x7f", "8080", "65536", "/s2sp/data/", "s2sp", "data", TOKEN, "a", "-", "_", "\x00", "\n", " ", "é",
    "１", "*", "h.example", "/data",
]  # fmt: skip
NEARLY = st.builds(
    lambda at, cut, put: GOOD[: at % len(GOOD)] + put + GOOD[at % len(GOOD) + cut :],
    st.integers(0, 200),
    st.integers(0, 3),
    st.text(max_size=3),
)


def target_or_none(policy: PeerPolicy, text: str) -> Target | None:
    try:
        return policy.check(text)
    except TransferDeniedError as error:
        if str(error) != THE_TEXT:
            raise
        return None


@given(st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | NEARLY)
@example(GOOD)
@example("https://h.example/data/s2sp/data/t")
def test_any_text_is_a_target_or_the_one_refusal(text: str) -> None:
    policy = PeerPolicy(["https://h.example/data"], resolver=answers("127.0.0.1"))
    local = PeerPolicy(["https://h.example/data"], resolver=answers("8.8.8.8"))
    for one in (policy, local):
        target = target_or_none(one, text)
        if target is None:
            continue
        # Another parser reads the same things in what was allowed.
        seen = httpx.URL(target.url)
        assert (seen.scheme, seen.host, seen.raw_path) == (target.scheme, target.host, target.path.encode())
        assert (seen.port or {"http": 80, "https": 443}[seen.scheme]) == target.port
        assert not seen.userinfo
        assert target.url.lower() == text.lower().replace(":443/", "/").replace(":80/", "/") or "[" in text
        address = parse_address(target.address)
        assert address is not None
        assert (kind_of(address) is AddressKind.LOOPBACK) is (target.host != "h.example")
