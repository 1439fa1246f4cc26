from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from framewire.errors import ExpiredError, InvalidTokenError, LifecycleError, NoRoomError, RevokedError
from framewire.split import add_row_id
from framewire.store import Body, MemoryStore


class Clock:
    """Seconds that pass when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def _body(rows: int = 100, tool: str = "flights") -> Body:
    return Body.of(add_row_id(pa.table({"x": pa.array(range(rows), pa.int64())})), tool=tool)


def _put(store: MemoryStore, body: Body, ttl_seconds: float = 10) -> str:
    with store.reserve(body.nbytes) as reservation:
        return store.put(body, reservation, ttl_seconds=ttl_seconds)


def test_a_body_comes_back_until_its_time_is_over() -> None:
    clock = Clock()
    store = MemoryStore(1 << 20, clock=clock)
    body = _body()
    token = _put(store, body)
    with store.open(token) as entry:
        assert entry.body is body
    assert store.stats().held_bytes == body.nbytes
    clock.now = 10.0
    with pytest.raises(ExpiredError, match="expired. Call the tool 'flights' again"), store.open(token):
        pass
    assert store.stats().held_bytes == 0
    clock.now = 19.9
    with pytest.raises(ExpiredError), store.open(token):
        pass
    clock.now = 20.1
    store.sweep()
    with pytest.raises(InvalidTokenError, match="unknown") as caught, store.open(token):
        pass
    assert caught.value.code == "unknown_handle"


def test_the_sweeper_needs_no_request() -> None:
    clock = Clock()
    store = MemoryStore(1 << 20, clock=clock)
    _put(store, _body(), ttl_seconds=5)
    _put(store, _body(), ttl_seconds=7)
    assert store.sweep() == 5.0
    clock.now = 5.0
    assert store.sweep() == 2.0
    assert store.stats().bodies == 1


def test_a_body_that_is_being_read_keeps_its_room() -> None:
    store = MemoryStore(1 << 20)
    body = _body()
    token = _put(store, body)
    with store.open(token):
        store.revoke(token)
        assert store.stats().held_bytes == body.nbytes
        assert store.stats().readers == 1
    assert store.stats().held_bytes == 0
    with pytest.raises(RevokedError, match="was revoked"), store.open(token):
        pass
    with pytest.raises(RevokedError):
        store.revoke(token)


def test_room_is_reserved_before_it_is_used_and_given_back() -> None:
    body = _body()
    store = MemoryStore(body.nbytes * 2)
    _put(store, body)
    with (
        store.reserve(body.nbytes),
        pytest.raises(NoRoomError, match="published bodies hold.*FRAMEWIRE_MEMORY_BUDGET_BYTES"),
    ):
        store.reserve(1)
    assert store.stats().reserved_bytes == 0
    _put(store, body)
    with pytest.raises(NoRoomError):
        store.reserve(1)


def test_expired_bodies_make_room_for_a_publish() -> None:
    clock = Clock()
    body = _body()
    store = MemoryStore(body.nbytes, clock=clock)
    expired = _put(store, body, ttl_seconds=1)
    clock.now = 1.0
    token = _put(store, body)
    assert store.stats().bodies == 1
    with store.open(token) as entry:
        assert entry.body is body
    with pytest.raises(ExpiredError), store.open(expired):
        pass


def test_the_plain_form_is_made_once_and_counted() -> None:
    table = add_row_id(pa.table({"s": pa.array(["a text longer than twelve bytes"] * 10, pa.string_view())}))
    body = Body.of(table)
    store = MemoryStore(1 << 20)
    token = _put(store, body)
    with store.open(token) as entry:
        assert entry.body.has_views
        plain = entry.form(views=False)
        assert plain is entry.form(views=False)
        assert entry.form(views=True) is body.stored
        assert plain.etag != body.stored.etag
        assert store.stats().held_bytes == body.nbytes + plain.buffer.size
    store.revoke(token)
    assert store.stats().held_bytes == 0


def test_tokens_are_not_kept() -> None:
    store = MemoryStore(1 << 20)
    token = _put(store, _body())
    assert token not in repr(vars(store))


def test_a_closed_store_says_so() -> None:
    store = MemoryStore(1 << 20)
    _put(store, _body())
    store.close()
    with pytest.raises(LifecycleError, match="stopped"):
        store.reserve(1)
    assert store.stats().held_bytes == 0


def test_many_threads_leave_the_count_right() -> None:
    store = MemoryStore(1 << 24)
    body = _body()

    def work() -> None:
        for _ in range(50):
            token = _put(store, body)
            with store.open(token):
                store.revoke(token)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = store.stats()
    assert (stats.bodies, stats.held_bytes, stats.reserved_bytes, stats.readers) == (0, 0, 0, 0)


def test_dictionaries_are_unified_so_that_any_range_can_be_sent() -> None:
    column = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()])
    body = Body.of(add_row_id(pa.table({"d": column})))
    assert body.table.column("d").to_pylist() == ["a", "b", "c", "b"]
    assert len({id(c.dictionary) and c.dictionary.to_pylist().__repr__() for c in body.table.column("d").chunks}) == 1
