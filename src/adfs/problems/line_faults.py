"""What is wrong with a line of LIBSVM text: the rule, the value and the way out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from adfs.errors import DataError

LARGEST_INDEX = np.iinfo(np.int32).max


class LineError(DataError):
    """A line that breaks a rule; ``order`` is its number, so that the first one can be told."""

    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.order = line


def first_fault(
    path: Path, text: bytes, numbers: Iterable[int], n_features: int | None
) -> LineError:
    """The error about the first line of ``text`` that breaks a rule; ``numbers`` count the lines.

    The numbers may have holes, where ``text`` was picked from a longer one.
    """
    first = None
    for number, line in zip(numbers, text.split(b"\n"), strict=False):
        first = number if first is None else first
        fault = _line_fault(line, n_features)
        if fault:
            return LineError(f"{path}, line {number}: {fault}.", number)
    first = first or 1
    return LineError(
        f"{path}, after line {first - 1}: this is not LIBSVM text; check the file.", first
    )


def _line_fault(line: bytes, n_features: int | None) -> str | None:
    """What is wrong with one line: the rule, the value and the way out."""
    tokens = line.split(b"#")[0].split()
    if not tokens:
        return None
    label, *pairs = tokens
    if not math.isfinite(_number(label)):
        return (
            f"a line must begin with a finite label, not {_show(label)}; "
            "write 'label index:value ...', separated by spaces"
        )
    if pairs and pairs[0].startswith(b"qid:"):
        del pairs[0]
    previous = 0
    for pair in pairs:
        name, colon, value = pair.partition(b":")
        index = _whole_number(name)
        if not colon or index is None:
            return f"a feature must read index:value, not {_show(pair)}; check the separators"
        fault = _index_fault(index, previous, n_features)
        if fault:
            return fault
        if not math.isfinite(_number(value)):
            return f"a value must be a finite number, not {_show(value)}; remove or replace it"
        previous = index
    return None


def _index_fault(index: int, previous: int, n_features: int | None) -> str | None:
    """What is wrong with an index that follows ``previous`` in its row."""
    if index < 1:
        return f"LIBSVM indices start at 1, but {index} was found; add 1 to every index"
    if index <= previous:
        return (
            f"indices must ascend within a row, each once, but {index} follows {previous}; "
            "sort the row and merge what is double"
        )
    if index > (n_features or LARGEST_INDEX):
        limit = f"n_features={n_features}" if n_features else f"the limit {LARGEST_INDEX}"
        return f"index {index} is above {limit}; raise n_features or check the file"
    return None


def _whole_number(token: bytes) -> int | None:
    """The whole number a token spells, if it spells one."""
    try:
        return int(token)
    except ValueError:
        return None


def _number(token: bytes) -> float:
    """The number a token spells, NaN where it spells none."""
    try:
        return float(token)
    except ValueError:
        return math.nan


def _show(token: bytes) -> str:
    """A token, cut to a readable length, as a message shows it."""
    return repr(token[:30].decode("utf-8", "replace"))
