"""Archives that NumPy would not write: lies about sizes, other compressions, encrypted."""

import io
import struct
import zipfile

import numpy as np

METHODS = {"stored": zipfile.ZIP_STORED, "deflate": zipfile.ZIP_DEFLATED,
           "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}  # fmt: skip
LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


def npy(array):
    """An array as it stands in an archive."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def header(shape, descr="<f8", fortran=False):
    """The header of an array whose numbers are somewhere else, or nowhere."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def archive(method="stored", **members):
    """An archive of members given as arrays or as bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", METHODS[method]) as zipped:
        for name, content in members.items():
            whole = content if isinstance(content, bytes) else npy(np.asarray(content))
            zipped.writestr(f"{name}.npy", whole)
    return buffer.getvalue()


def with_method(content, number):
    """The same bytes, said to be compressed by another method."""
    return _patched(content, {LOCAL: 8, CENTRAL: 10}, struct.pack("<H", number))


def encrypted(content):
    """The same bytes, said to be encrypted."""
    return _patched(content, {LOCAL: 6, CENTRAL: 8}, struct.pack("<H", 1))


def with_sizes(content, size):
    """The same bytes, each member said to unpack to ``size`` bytes."""
    return _patched(content, {LOCAL: 22, CENTRAL: 24}, struct.pack("<I", size))


def _patched(content, offsets, value):
    patched = bytearray(content)
    for magic, offset in offsets.items():
        start = patched.find(magic)
        while start >= 0:
            patched[start + offset : start + offset + len(value)] = value
            start = patched.find(magic, start + 4)
    return bytes(patched)
