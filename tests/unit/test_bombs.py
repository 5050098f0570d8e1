"""Small files that unpack to much, and files without an end: refused in bounded memory."""

import bz2
import gzip
import lzma
import os
import re
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from adfs.data.files import load_data, load_share
from adfs.errors import DataError
from support.archives import header, npy
from support.commands import here
from support.peers import on_ranks
from support.selection import covering

pytestmark = pytest.mark.slow  # starts processes
MOST_BYTES = 400e6
PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.fixture(autouse=True)
def limit():
    """A reader that goes on for ever fails here, instead of taking the machine with it."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + (5 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def repeated(piece, count, packing):
    """``count`` times the same text: compressed pieces may stand one after another."""
    return PACKED[packing](piece) * count


def peak(run):
    """Bytes that a run held at most, beyond what was there before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refuse_locally(path, words):
    with pytest.raises(DataError, match=words):
        load_data(path)


def refuse_by_ranks(path, words):
    outcomes, _ = on_ranks(2, lambda peers: load_share(peers, str(path), [0, 1], "squared"))
    for outcome in outcomes:
        assert isinstance(outcome, DataError), outcome
        assert re.search(words, str(outcome)) or "lines of at most" in str(outcome)


ENGINES = pytest.mark.parametrize("refuse", [refuse_locally, refuse_by_ranks])


@covering(
    packing=tuple(PACKED), letter=(b"\0", b"1"), refuse=(refuse_locally, refuse_by_ranks)
)  # fmt: skip
def test_a_packed_line_without_end_is_refused(tmp_path, packing, letter, refuse):
    words = {b"\0": "must be LIBSVM text", b"1": "lines of at most"}[letter]
    path = tmp_path / f"bomb.{packing}"
    path.write_bytes(repeated(letter * (8 << 20), 400, packing))  # 3.2 GB
    assert peak(lambda: refuse(path, words)) < MOST_BYTES


@ENGINES
def test_a_line_without_end_after_good_ones_is_refused(tmp_path, refuse):
    path = tmp_path / "bomb.gz"
    good = gzip.compress(b"1 1:1\n0 2:1\n" * 1000)
    path.write_bytes(good + repeated(b"1 2:3 ", 1, "gz") + repeated(b"9" * (8 << 20), 200, "gz"))
    assert peak(lambda: refuse(path, "lines of at most")) < MOST_BYTES


@ENGINES
def test_a_plain_file_of_zeros_is_refused(tmp_path, refuse):
    """It takes no room on disk, and every rank begins in another part of it."""
    path = tmp_path / "hole.txt"
    with path.open("wb") as file:
        file.truncate(4 << 30)
    assert peak(lambda: refuse(path, "must be LIBSVM text")) < MOST_BYTES


def test_a_long_line_that_is_a_sample_is_read(tmp_path):
    """A million features in one line of 15 MB."""
    line = b"1 " + b" ".join(b"%d:0.125" % k for k in range(1, 1_000_001))
    (tmp_path / "long.txt").write_bytes(line + b"\n0 1:1\n")
    X, y = load_data(tmp_path / "long.txt")
    assert X.shape == (2, 1_000_000)
    assert y.tolist() == [1, 0]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs the devices of Linux")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_devices_without_end_are_refused(device, tmp_path):
    for command in (["train", device], ["predict", "model.npz", device]):
        outcome = here(*command)
        assert outcome.code == 2
        assert outcome.err.count("\n") == 1
    assert "must be LIBSVM text" in here("train", device).err
    link = tmp_path / "link.npz"
    link.symlink_to(device)
    for command in (["predict", device, link], ["schedule", "show", device], ["train", link]):
        assert here(*command).code == 2


@ENGINES
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_unpacks_to_more_than_it_says_is_refused(tmp_path, method, refuse):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", method) as zipped:
        zipped.writestr("y.npy", npy(np.zeros(3)))
        zipped.writestr("X.npy", header("(3, 2)") + bytes(24 << 20))
        zipped.getinfo("X.npy").file_size = len(header("(3, 2)")) + 48
    assert peak(lambda: refuse(path, "must be a whole .npz file")) < 20e6


SCRIPT = """
import resource, sys
import numpy, scipy.sparse
from adfs.cli.main import main
import adfs.data.files, adfs.model
room = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (1 << 29)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's limit of memory")
@pytest.mark.parametrize("n_rows", [10**9, 10**15])
def test_an_archive_larger_than_memory_ends_with_the_sentence(tmp_path, n_rows):
    """It promises the same in its header and in the list of its members."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("y.npy", npy(np.zeros(3)))
        with zipped.open("X.npy", "w", force_zip64=True) as member:
            member.write(header(f"({n_rows}, 1)") + bytes(1 << 22))
            lie = len(header(f"({n_rows}, 1)")) + 8 * n_rows
        zipped.getinfo("X.npy").file_size = lie
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, "train", str(path)], capture_output=True, text=True
    )
    assert run.returncode == 1, run.stderr
    assert run.stderr == "adfs: this needs more memory than there is; use less data.\n"
