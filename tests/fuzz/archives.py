"""Archives of arrays (.npz) made by hand, so that each of their parts can be wrong."""

import io
import struct
import warnings
import zipfile

import numpy as np

from fuzz.mutations import mutated_bytes, mutated_text, pick, some

TYPES = ("<f8", ">f8", "<f4", "<f2", "<f16", "<i8", "<i4", ">i4", "|i1", "<u8", "|b1", "<c16", "|O",
         "<U8", "|S8", "|V8", "<M8[s]", "<m8", "f8", "", "<f9", "O", "[('a', '<f8')]",
         "('<f8', (2,))", "None", "<f8,<i4")  # fmt: skip
SHAPES = ("()", "(0,)", "(1,)", "(3,)", "(0, 3)", "(3, 0)", "(1000000000000,)", "(2, 2, 2)",
          "(-1,)", "(1.5,)", "('3',)", "(9223372036854775807,)", "(9223372036854775808, 9)", "3",
          "None", "(True,)", "(4294967296, 4294967296)", "[3]", "(4, 2)")  # fmt: skip
ARRAYS = (np.zeros(0), np.zeros((0, 3)), np.ones(3), np.ones((3, 2)), np.array(1.0), np.array("x"),
          np.array([b"x"]), np.ones(3, complex), np.full((4, 2), np.nan), np.ones((4, 2), ">f8"),
          np.arange(8).reshape(4, 2), np.ones((4, 2), "f2"), np.ones((2, 2, 2)),
          np.array([2**62, -1]), np.ones((4, 2), bool), np.ones((4, 2), np.longdouble),
          np.array(["a", "b", "c", "d"]), np.array([1, 2, 3, 2**31], np.uint64),
          np.zeros(4, "M8[s]"), np.full((4, 2), 1e300), np.full((4, 2), 5e-324),
          np.asfortranarray(np.ones((4, 2))), np.zeros(4, [("a", "f8")]))  # fmt: skip


def npy(array):
    """The bytes of an array in a file of its own."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def archive(members, method=zipfile.ZIP_STORED):
    """The bytes of a .npz file with these members, a mapping or pairs of names and bytes."""
    stream = io.BytesIO()
    pairs = members.items() if isinstance(members, dict) else members
    with zipfile.ZipFile(stream, "w", method) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name that is there twice
        for name, raw in pairs:
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), raw, compress_type=method)
    return stream.getvalue()


def mutated_archive(generator, arrays):
    """A .npz file of these arrays with something wrong; ``arrays`` by name."""
    members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    how = generator.random()
    if how < 0.25:
        return some(generator, mutated_bytes, archive(members, _method(generator)))
    if how < 0.35:
        return _wrong_directory(generator, archive(members, _method(generator)))
    name = pick(generator, list(members))
    if how < 0.6:
        members[name] = npy(pick(generator, ARRAYS))
    elif how < 0.7:
        members[name] = some(generator, mutated_bytes, members[name])
    elif how < 0.85:
        members[name] = _wrong_header(generator, members[name])
    elif how < 0.95:
        members = _wrong_names(generator, members, name)
    else:
        members[name] = _bomb(generator)
        return archive(members, zipfile.ZIP_DEFLATED)
    return archive(members, _method(generator))


def _method(generator):
    return pick(generator, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))


def _wrong_header(generator, raw):
    """The array with another header: its type, its shape, its order, or any text."""
    end = raw.index(b"\n") + 1
    text, numbers = raw[10:end].decode(), raw[end:]
    how = generator.integers(5)
    if how == 0:
        text = f"{{'descr': '{pick(generator, TYPES)}', 'fortran_order': False, 'shape': (4, 2), }}"
    elif how == 1:
        text = f"{{'descr': '<f8', 'fortran_order': True, 'shape': {pick(generator, SHAPES)}, }}"
    elif how == 2:
        text = some(generator, mutated_text, text)
    elif how == 3:
        text = pick(generator, ("(" * 300, "{" * 5000, "[" * 100_000, "-" * 50_000, "9" * 5000, ""))
    version = pick(generator, ((1, 0), (1, 0), (2, 0), (3, 0), (9, 9)))
    return header(text.encode("utf-8", "surrogatepass"), version) + numbers


def header(text, version=(1, 0)):
    """The header of an array, with any text in it."""
    form = "<H" if version == (1, 0) else "<I"
    length = struct.pack(form, min(len(text), 65535 if form == "<H" else 1 << 31))
    return b"\x93NUMPY" + bytes(version) + length + text


def _wrong_names(generator, members, name):
    raw = members.pop(name)
    how = generator.integers(5)
    if how == 0:
        return members
    if how == 1:
        return [*members.items(), (name, raw), (name, raw)]
    other = pick(generator, ("", "../up.npy", "/X.npy", name.removesuffix(".npy"), name.upper(),
                             "é.npy", "a" * 300, "X_shape.npy", f"folder/{name}"))  # fmt: skip
    return {other: raw, **members}


def _wrong_directory(generator, raw):
    """The archive with one number of its directory, or of a member's head, changed."""
    place = raw.find(pick(generator, (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06")))
    place += int(generator.integers(4, 30))
    new = pick(generator, (b"\0", b"\1", b"\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x63"))
    return raw[:place] + new + raw[place + len(new) :]


def _bomb(generator):
    """An array that is far larger than its file."""
    count = pick(generator, (1 << 22, 1 << 24))
    shape = f"({count}, 1)" if generator.random() < 0.5 else f"({count},)"
    text = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return header(text.ljust(117) + b"\n") + bytes(count)
