from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from framewire.host import memfd

pytestmark = pytest.mark.skipif(not memfd.is_available(), reason="needs Linux's memfd")

PARTS = [memoryview(b"abc"), memoryview(b""), memoryview(bytes(range(256)) * 4096)] + [memoryview(b"x")] * 2000
WHOLE = b"".join(PARTS)


@pytest.fixture
def fd() -> int:
    return memfd.create(PARTS)


def test_what_was_written_is_what_is_mapped_without_a_descriptor_of_its_own(fd: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    buffer = memfd.open_sealed(memfd.locate(fd))
    assert buffer is not None
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(fd)
    assert buffer.to_pybytes() == WHOLE


def test_it_can_neither_be_written_nor_cut(fd: int) -> None:
    with pytest.raises(PermissionError):
        os.write(fd, b"y")
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 1)
    os.close(fd)


def test_any_doubt_is_none(fd: int, tmp_path: Path) -> None:
    good = memfd.locate(fd)
    assert memfd.open_sealed(replace(good, inode=good.inode + 1)) is None
    assert memfd.open_sealed(replace(good, nbytes=good.nbytes - 1)) is None
    assert memfd.open_sealed(replace(good, pid=2**22 + 1)) is None
    os.close(fd)
    assert memfd.open_sealed(good) is None
    # A named descriptor could be anything of the user's: an unsealed memfd, a plain file, a pipe that would block.
    unsealed = os.memfd_create("other", os.MFD_ALLOW_SEALING)
    assert memfd.open_sealed(memfd.locate(unsealed)) is None
    plain = os.open(tmp_path / "f", os.O_CREAT | os.O_RDWR)
    assert memfd.open_sealed(memfd.locate(plain)) is None
    reading, writing = os.pipe()
    assert memfd.open_sealed(memfd.locate(reading)) is None
    for each in (unsealed, plain, reading, writing):
        os.close(each)


def test_another_process_maps_it(fd: int) -> None:
    code = (
        "import sys\nfrom framewire.host.memfd import *\nfrom framewire.host.memfd import Location\n"
        "b = open_sealed(Location(*map(int, sys.argv[1:])))\nprint(b.size, b.to_pybytes()[:3])"
    )
    place = memfd.locate(fd)
    numbers = [str(n) for n in (place.pid, place.fd, place.inode, place.nbytes)]
    done = subprocess.run([sys.executable, "-c", code, *numbers], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{len(WHOLE)} b'abc'"
    os.close(fd)
