"""Changes of bytes and texts, drawn from a generator."""

import re

import numpy as np

NUMBERS = (
    "0", "-0", "1", "-1", "+1", "2", "0.5", "1e-6", "1e3", "1e308", "1e309", "-1e400", "1e-320",
    "5e-324", "1e-400", "nan", "inf", "-inf", "NaN", "Infinity", "1_000", "0x10", "1e", ".", "1.",
    ".5", "--1", "1e+", "٣", "１", "", "2147483647", "2147483648", "4294967297",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "1" + "0" * 400,
    "0." + "0" * 400 + "1", "1,5", "1d3", "true", "null",
)  # fmt: skip
WORDS = ("", " ", "\0", "\n", "\r\n", "\r", "\t", "\x0b", "\x0c", "\x1a", "\x7f", "#", ":", "::",
         ";", ",", "=", '"', "'", "{", "}", "{node}", "[", "]", "--", "-", "é", "\ufeff", "\u2028",
         "\U0001f600", "qid:1", "%s", "{0}", "$HOME", "~")  # fmt: skip
BYTES = (b"\0", b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"PK\x03\x04", b"PK\x05\x06",
         b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0", b"\x93NUMPY", b"\0" * 8, b"\xff" * 8,
         b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\n" * 20)  # fmt: skip
NUMBER = re.compile(r"[-+]?[0-9][0-9.eE+-]*")


def pick(generator, values):
    """One of the values."""
    return values[int(generator.integers(len(values)))]


def some(generator, change, value, most=4):
    """The value after one or a few changes."""
    for _ in range(int(generator.integers(1, most + 1))):
        value = change(generator, value)
    return value


def mutated_bytes(generator, raw):
    """The bytes with one change."""
    return pick(generator, BYTE_CHANGES)(generator, raw)


def _place(generator, length):
    return int(generator.integers(length + 1))


def _span(generator, length):
    first = _place(generator, length)
    longest = pick(generator, (1, 4, 30, length))
    return first, min(length, first + int(generator.integers(longest + 1)))


def _flip_bit(generator, raw):
    if not raw:
        return raw
    place = int(generator.integers(len(raw)))
    return raw[:place] + bytes([raw[place] ^ (1 << int(generator.integers(8)))]) + raw[place + 1 :]


def _insert(generator, raw):
    place = _place(generator, len(raw))
    return raw[:place] + pick(generator, BYTES) + raw[place:]


def _overwrite(generator, raw):
    place, new = _place(generator, len(raw)), pick(generator, BYTES)
    return (raw[:place] + new + raw[place + len(new) :])[: max(len(raw), 1)]


def _remove(generator, raw):
    first, last = _span(generator, len(raw))
    return raw[:first] + raw[last:]


def _double(generator, raw):
    first, last = _span(generator, len(raw))
    return raw[:last] + raw[first:]


def _cut(generator, raw):
    return raw[: _place(generator, len(raw))]


def _noise(generator, raw):
    first, last = _span(generator, len(raw))
    return raw[:first] + generator.bytes(last - first) + raw[last:]


BYTE_CHANGES = (_flip_bit, _flip_bit, _insert, _overwrite, _remove, _double, _cut, _noise)


def mutated_text(generator, text):
    """The text with one change, of the kind that people and programs make."""
    return pick(generator, TEXT_CHANGES)(generator, text)


def _other_number(generator, text):
    places = list(NUMBER.finditer(text))
    if not places:
        return _insert_word(generator, text)
    found = pick(generator, places)
    return text[: found.start()] + pick(generator, NUMBERS) + text[found.end() :]


def _insert_word(generator, text):
    place = _place(generator, len(text))
    return text[:place] + pick(generator, WORDS + NUMBERS) + text[place:]


def _remove_part(generator, text):
    first, last = _span(generator, len(text))
    return text[:first] + text[last:]


def _swap_lines(generator, text):
    lines = text.split("\n")
    generator.shuffle(lines)
    return "\n".join(lines)


def _double_line(generator, text):
    lines = text.split("\n")
    return "\n".join([*lines, pick(generator, lines)])


def _other_ends(generator, text):
    return text.replace("\n", pick(generator, ("\r\n", "\r", "\n\n", " \n", "\n\r", "\0\n", "")))


def _marked(generator, text):
    return pick(generator, ("\ufeff", "# a remark\n", "\n\n", " ", "\x00")) + text


TEXT_CHANGES = (_other_number, _other_number, _other_number, _insert_word, _remove_part,
                _swap_lines, _double_line, _other_ends, _marked)  # fmt: skip


def hostile_number(generator):
    """A number as a float, anything that a float can be."""
    return float(pick(generator, (0.0, -0.0, 1.0, -1.0, 0.5, 1e-12, 1e12, 1e-300, 1e300, 5e-324,
                                  np.inf, -np.inf, np.nan, 3.0, 1e18)))  # fmt: skip
