"""One checkpoint file: what goes in comes out to the bit, and any damage is seen."""

import hashlib
import json
import math
import os
import struct
import tracemalloc

import numpy as np
import pytest

from adfs.engine import checkpoint_file
from adfs.engine.checkpoint_file import Damaged, pack, read_header, unpack
from adfs.storage import write_whole

QUIET, LOUD = 0x7FF8_0000_0000_0000, 0xFFF4_DEAD_BEEF_0001  # NaNs with and without payload
STRANGE = [0.0, -0.0, 5e-324, -2.2e-308, 1e308, math.inf, -math.inf, 0.1]


def strange():
    with_nans = np.array([QUIET, LOUD, 1], dtype=np.uint64).view(np.float64)
    return np.concatenate([with_nans, STRANGE])


def save(path, header, arrays):
    write_whole(path, pack(header, arrays))
    return path


@pytest.fixture
def small(tmp_path):
    arrays = {"0/theta": np.arange(3.0), "0/flag": np.array(True), "1/theta": np.ones(2)}
    return save(tmp_path / "small", {"position": 7, "gap": 0.1}, arrays)


ARRAYS = {
    "floats": strange(),
    "single": np.array([np.nan, -0.0, 1e-45, np.inf], dtype=np.float32),
    "half": np.array([1.5, -0.0, np.inf], dtype=np.float16),
    "matrix": np.arange(6, dtype=np.int32).reshape(2, 3),
    "wide": np.array([2**63 - 1, -(2**63)]),
    "keys": np.array([2**64 - 1], dtype=np.uint64),
    "flags": np.array([True, False]),
    "one number": np.array(-0.0),
    "nothing": np.empty((0, 5)),
    "bytes": np.arange(65, dtype=np.uint8),
}


def test_arrays_come_back_to_the_bit(tmp_path):
    _, found = unpack(save(tmp_path / "file", {}, ARRAYS))
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
        assert found[name].flags.writeable


def test_arrays_of_any_layout_come_back_with_their_values(tmp_path):
    matrix = np.arange(12.0).reshape(3, 4)
    odd = {"fortran": np.asfortranarray(matrix), "strided": matrix[::2, ::-1],
           "big-endian": matrix.astype(">f8")}  # fmt: skip
    _, found = unpack(save(tmp_path / "file", {}, odd))
    for name, array in odd.items():
        assert found[name].dtype == np.float64
        assert found[name].flags.c_contiguous
        np.testing.assert_array_equal(found[name], array)


def test_floats_in_the_header_come_back_to_the_bit(tmp_path):
    header = {"floats": [*STRANGE, math.nan], "big": 2**200, "none": None, "yes": True,
              "text": 'naïve "\ud800\n', "deep": [{"a": [math.inf]}], "": {}}  # fmt: skip
    found, _ = unpack(save(tmp_path / "file", header, {}))
    assert list(found) == list(header)
    bits = [struct.pack("<d", number) for number in found["floats"]]
    assert bits == [struct.pack("<d", number) for number in header["floats"]]
    assert {k: v for k, v in found.items() if k != "floats"} == {
        k: v for k, v in header.items() if k != "floats"
    }


def test_numpy_scalars_and_tuples_become_plain():
    value = {"n": np.int64(3), "x": np.float32(0.1), "b": np.bool_(True), "t": (1, (2.0,))}
    found = json.loads(checkpoint_file.dumps(value))
    assert found == {"n": 3, "x": float(np.float32(0.1)), "b": True, "t": [1, [2.0]]}
    assert [type(found[name]) for name in "nxb"] == [int, float, bool]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [({"a": np.ones(2)}, "holds plain values, not ndarray; pass arrays as arrays"),
     ({"a": {1, 2}}, "holds plain values, not set")],
)  # fmt: skip
def test_what_json_cannot_hold_is_refused_when_it_is_saved(header, sentence):
    with pytest.raises(TypeError, match=sentence):
        pack(header, {})


@pytest.mark.parametrize(
    "array",
    [np.array([{}], dtype=object), np.array(["text"]), np.array([1], dtype="datetime64[s]"),
     np.array([(1, 2.0)], dtype="i4,f8"), np.ones(1, dtype=np.longdouble), np.ones(1, complex)],
)  # fmt: skip
def test_nothing_is_pickled_and_types_without_a_fixed_layout_are_refused(array):
    with pytest.raises(TypeError, match=r"array 'a' has dtype .*, which a checkpoint cannot hold"):
        pack({}, {"a": array})


def test_the_layout_is_the_one_that_the_documentation_gives(small):
    """Read by its description alone, without our reader."""
    content = small.read_bytes()
    assert content[:8] == bytes.fromhex("89 41 44 46 53 0d 0a 1a")
    version, length, n_text = struct.unpack_from("<QQQ", content, 8)
    assert (version, length) == (2, len(content))
    text = content[64 : 64 + n_text]
    assert content[32:64] == hashlib.sha256(content[:32] + text).digest()
    assert content[-32:] == hashlib.sha256(content[:-32]).digest()
    first = 64 * math.ceil((64 + n_text) / 64)
    arrays = {}
    for name, dtype, shape, offset in json.loads(text)["arrays"]:
        assert offset % 64 == 0
        count = math.prod(shape)
        arrays[name] = np.frombuffer(content, dtype, count, first + offset).reshape(shape)
    assert arrays["0/theta"].tolist() == [0, 1, 2]
    assert arrays["1/theta"].tolist() == [1, 1]
    assert arrays["0/flag"].shape == ()


def test_a_flip_of_any_bit_of_any_byte_is_detected(small):
    content = small.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            small.write_bytes(changed)
            with pytest.raises(Damaged):
                unpack(small)


def test_a_file_cut_at_any_length_or_with_a_byte_too_many_is_detected(small):
    content = small.read_bytes()
    for length in range(len(content)):
        small.write_bytes(content[:length])
        with pytest.raises(Damaged, match=r"is empty|has only|has \d+ bytes where it should have"):
            unpack(small)
    for more in (b"\0", b"\0" * 64, content):
        small.write_bytes(content + more)
        with pytest.raises(Damaged, match="bytes where it should have"):
            unpack(small)


def test_a_look_at_the_header_sees_every_flip_before_the_arrays(small):
    content = small.read_bytes()
    header = read_header(small)
    assert header == {"position": 7, "gap": 0.1}
    (n_text,) = struct.unpack_from("<Q", content, 24)
    for place in range(64 + n_text):
        changed = bytearray(content)
        changed[place] ^= 0x10
        small.write_bytes(changed)
        with pytest.raises(Damaged):
            read_header(small)


def test_only_wanted_arrays_are_kept_but_all_bytes_are_checked(small):
    _, found = unpack(small, lambda name: name.startswith("1/"))
    assert list(found) == ["1/theta"]
    content = bytearray(small.read_bytes())
    content[content.index(struct.pack("<d", 2.0))] ^= 1  # in 0/theta
    small.write_bytes(content)
    with pytest.raises(Damaged, match="its bytes do not match its checksum"):
        unpack(small, lambda name: name.startswith("1/"))


def forged(header, arrays=(), room=0, **changes):
    """A file whose checksums hold although its header is not ours."""
    text = header if isinstance(header, bytes) else json.dumps({"header": header, "arrays": arrays})
    text = text if isinstance(text, bytes) else text.encode()
    pad = -(64 + len(text)) % 64
    length = 64 + len(text) + pad + room + 32
    fields = struct.pack(
        "<8sQQQ",
        checkpoint_file.MAGIC,
        changes.get("version", 2),
        length,
        changes.get("n_text", len(text)),
    )
    content = fields + hashlib.sha256(fields + text).digest() + text + bytes(pad + room)
    return content + hashlib.sha256(content).digest()


HUGE = 2**60


@pytest.mark.parametrize(
    ("content", "reason"),
    [(forged({}, version=3), "has format 3, but this version of adfs reads format 2"),
     (forged({}, n_text=2**63), "its header is longer than the file"),
     (forged(b"not json"), "has a header that was not written by adfs"),
     (forged(b"[" * 100_000), "was not written by adfs"),
     (forged(b'{"header": {}}'), "was not written by adfs"),
     (forged([]), "does not describe its content"),
     (forged({}, room=64), "does not describe its content"),
     (forged({}, [["a", "<f8", [HUGE], 0]]), "does not describe its content"),
     (forged({}, [["a", "<f8", [0, HUGE], 0]]), "is impossible"),
     (forged({}, [["a", "<f8", [1], 0]] * 2, 128), "do not follow each other"),
     (forged({}, [["a", "<f8", [1], 0], ["a", "<f8", [1], 64]], 128), "not describe its content"),
     (forged({}, [["a", "|O", [1], 0]], 64), "was not written by adfs"),
     (forged({}, [["a", "<f8", [-1], 0]], 64), "was not written by adfs"),
     (forged({}, [["a", "<f8", [True], 0]], 64), "was not written by adfs"),
     (forged({}, [["a", "<f8", 1, 0]], 64), "was not written by adfs"),
     (b"PK\x03\x04" + bytes(200), "is not a checkpoint of adfs"),
     (b"", "is empty")],
)  # fmt: skip
def test_a_file_made_by_another_program_is_refused_without_harm(tmp_path, content, reason):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Damaged, match=reason):
        unpack(tmp_path / "file")


def test_a_forgery_that_describes_itself_is_read(tmp_path):
    """Shows that the forgeries above fail for the reason they name."""
    (tmp_path / "file").write_bytes(forged({"a": 1}, [["x", "<f8", [2], 0]], 64))
    header, arrays = unpack(tmp_path / "file")
    assert header == {"a": 1}
    assert arrays["x"].tolist() == [0.0, 0.0]


def test_what_is_not_an_ordinary_file_is_refused_at_once(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, reason in {
        "folder": "is a folder, not a file",
        "pipe": "is not an ordinary file",
        "loop": "cannot be read: Too many levels of symbolic links",
        "missing": "cannot be read: No such file or directory",
    }.items():
        with pytest.raises(Damaged, match=reason):
            unpack(tmp_path / name)


def test_saving_and_loading_copy_no_large_array(tmp_path):
    """Peak memory beyond the arrays themselves stays far below their size."""
    array = np.zeros(1 << 20)
    tracemalloc.start()
    try:
        save(tmp_path / "file", {}, {"0/a": array, "1/a": array})
        assert tracemalloc.get_traced_memory()[1] < array.nbytes / 4
        tracemalloc.reset_peak()
        unpack(tmp_path / "file", lambda name: name == "1/a")
        assert tracemalloc.get_traced_memory()[1] < 1.5 * array.nbytes
    finally:
        tracemalloc.stop()
