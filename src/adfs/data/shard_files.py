"""Divides a file into the contents of one file per node, with the rows that `partition` gives each.

Lines are copied as they are, so every digit, quote and comment stays. A table that becomes another
kind of table passes through pyarrow, with all its columns. The file is kept in memory, and
beside it the content for one node.
"""

from __future__ import annotations

import bz2
import gzip
import heapq
import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from adfs.agreement import Alone
from adfs.data.columns import require_columns
from adfs.data.files import find_file, format_of
from adfs.data.libsvm import LibsvmReader
from adfs.data.matrices import Numbers
from adfs.data.npz import NpzReader, write_npz
from adfs.data.partition import partition_rows
from adfs.data.reader import Reader, Selection, read_all, require_labels
from adfs.data.tables import (
    CsvReader,
    ParquetReader,
    TableReader,
    arrow_errors,
    is_number,
    parquet_bytes,
    separator_of,
)
from adfs.data.text_lines import LineReader, line_numbers, open_text
from adfs.errors import DataError, ParameterError
from adfs.storage import Buffer, csv_bytes

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda text: gzip.compress(text, mtime=0), ".bz2": bz2.compress, ".xz": lzma.compress,
}  # fmt: skip
FORMATS: dict[type, str] = {
    NpzReader: "a .npz file", TableReader: "a table (.csv, .tsv or .parquet)",
    LibsvmReader: "LIBSVM text (.svm, .libsvm or .txt, or compressed as .svm.gz)",
}  # fmt: skip


class Rows(Protocol):
    """All rows of a file, of which some are written to another file."""

    n_rows: int

    def content(self, rows: Numbers) -> Iterable[Buffer]:
        """The content of a file with these rows, which are in ascending order."""
        ...


def split_file(
    source: str | os.PathLike[str],
    out: str,
    n_nodes: int,
    how: str = "even",
    seed: int = 0,
    by: str | None = None,
    categorical: Sequence[str] = (),
) -> Iterator[tuple[int, Iterable[Buffer]]]:
    r"""For each node, its number of rows and the content of its file, in the format of ``out``.

    Parameters
    ----------
    source : str or path
        One file or data set that `load_data` reads.
    out : str
        A file name, whose suffix says the format and the compression.
    n_nodes, how, seed
        Which rows a node gets; see `partition_rows` (``even`` or ``contiguous``).
    by : str, optional
        A column of a table: rows with one value of it go to one node; see `deal_values`.
    categorical : list of str
        Columns of a table of text that stay words in a Parquet file though they look like numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three.txt"
    ...     _ = path.write_text("+1 1:1\n-1 1:2\n+1 1:3\n")
    ...     [(n, b"".join(text)) for n, text in split_file(path, "x.svm", 2, "contiguous")]
    [(2, b'+1 1:1\n-1 1:2\n'), (1, b'+1 1:3\n')]
    """
    reader = _open(source, out, by, tuple(categorical))
    rows, words = _read(reader, out, by)
    if words is not None:
        parts = deal_values(words, n_nodes, f"--by {by}")
    elif n_nodes > rows.n_rows:
        raise ParameterError(
            f"n_nodes={n_nodes} must not exceed {rows.n_rows}, the number of rows, so that each "
            "node has one; lower it."
        )
    else:
        parts = partition_rows(rows.n_rows, n_nodes, how, seed)
    return ((len(part), rows.content(part)) for part in parts)


def deal_values(words: Any, n_nodes: int, flag: str) -> list[Numbers]:
    """The rows of each node if rows with the same word go to one node.

    The words are dealt in their order (that of numbers, if all are), each to the node with the
    fewest rows so far, and to the first of those.

    Examples
    --------
    >>> import pyarrow
    >>> words = pyarrow.chunked_array([["b", "a", "a", "a", "c"]])
    >>> [part.tolist() for part in deal_values(words, 2, "--by letter")]
    [[1, 2, 3], [0, 4]]
    """
    encoded = words.combine_chunks().dictionary_encode()
    found, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    kind = float if all(map(is_number, found)) else object
    values, order = np.unique(np.array(found, dtype=kind), return_inverse=True)
    if len(values) < n_nodes:
        raise DataError(
            f"{flag} must have a value for each of {n_nodes} nodes, but has only {len(values)} "
            "different ones; lower --nodes, or choose another column."
        )
    codes, heap, node_of = order[codes], [(0, node) for node in range(n_nodes)], []
    for count in np.bincount(codes).tolist():
        size, node = heap[0]
        heapq.heapreplace(heap, (size + count, node))
        node_of.append(node)
    nodes = np.array(node_of)[codes]
    return np.split(np.argsort(nodes, kind="stable"), np.cumsum(np.bincount(nodes))[:-1])


def _open(
    source: str | os.PathLike[str], out: str, by: str | None, categorical: tuple[str, ...]
) -> Reader:
    """The file, if it can become one of the name ``out`` and has the named columns."""
    path, selection = find_file(source, Selection(categorical=categorical, all_columns=True))
    kind = format_of(path)
    _require_same_form(path, kind, out)
    if by is not None and not issubclass(kind, TableReader):
        raise DataError(f"--by {by} names a column of a table, but {path} is none; leave it out.")
    reader = kind(Alone(), path, selection)
    if by is not None and isinstance(reader, TableReader):
        require_columns(path, reader.features, "--by", [by])
    return reader


def _require_same_form(path: Path, kind: type[Reader], out: str) -> None:
    """Refuse another format, but tables of one kind may become tables of another."""
    given, named = (
        next(about for form, about in FORMATS.items() if issubclass(each, form))
        for each in (kind, format_of(Path(out)))
    )
    if given != named:
        raise ParameterError(
            f"--out {out} must be {given}, as {path} is, but is {named} by its suffix; rename it."
        )


def _read(reader: Reader, out: str, by: str | None) -> tuple[Rows, Any]:
    """All rows, and the words of the column ``by`` if it is given."""
    if isinstance(reader, NpzReader):
        return ArrayRows(reader), None
    if isinstance(reader, LineReader) and separator_of(reader.path) == separator_of(Path(out)):
        lines = LineRows(reader, out, by)
        return lines, lines.words
    assert isinstance(reader, TableReader)
    rows = TableRows(reader, out)
    return rows, None if by is None else rows.as_words(by)


class ArrayRows:
    """Rows of a .npz file, checked."""

    def __init__(self, reader: NpzReader) -> None:
        self.samples, self.n_rows = require_labels(*read_all(reader), reader.path), reader.count()

    def content(self, rows: Numbers) -> Iterator[Buffer]:
        """Arrays X, or its CSR parts, and y."""
        buffer = BytesIO()
        write_npz(buffer, self.samples.X[rows], self.samples.y[rows])
        yield buffer.getbuffer()


class LineRows:
    """Lines of a file with one row per line, checked and as they are; a table's first line too."""

    def __init__(self, reader: LineReader, out: str, by: str | None) -> None:
        self.pack = PACKERS.get(Path(out).suffix.lower())
        with open_text(reader.path) as (file, _):
            self.header = file.read(reader.body)
        self.blocks: list[tuple[bytes, Numbers, Numbers]] = []
        columns: list[Any] = []
        for text, table in _checked_blocks(reader):
            text += b"" if text.endswith(b"\n") else b"\n"
            bounds, samples = reader.find_lines(text)
            self.blocks.append((text, bounds[samples], bounds[samples + 1]))
            columns += [] if by is None else table.column(by).chunks
        self.first_row = np.cumsum([0, *(len(starts) for _, starts, _ in self.blocks)])
        self.n_rows, self.words = int(self.first_row[-1]), None
        reader.require_samples(self.n_rows)
        if by is not None:
            import pyarrow

            self.words = pyarrow.chunked_array(columns)

    def content(self, rows: Numbers) -> Iterator[Buffer]:
        """The lines of these rows, compressed if the name of the file says so."""
        if self.pack is None:
            yield from self._lines(rows)
        else:
            yield self.pack(b"".join(self._lines(rows)))

    def _lines(self, rows: Numbers) -> Iterator[bytes]:
        yield self.header
        cuts = pairwise(np.searchsorted(rows, self.first_row).tolist())
        for block, first, (a, b) in zip(self.blocks, self.first_row[:-1], cuts, strict=True):
            text, starts, stops = block
            own = rows[a:b] - first
            pairs = zip(starts[own].tolist(), stops[own].tolist(), strict=True)
            yield b"".join([text[start:stop] for start, stop in pairs])


def _checked_blocks(reader: LineReader) -> Iterator[tuple[bytes, Any]]:
    """Blocks of lines whose rows can be read, and what they hold if it is a table."""
    if isinstance(reader, CsvReader):
        import pyarrow

        yield from reader.tables(dict.fromkeys(reader.names, pyarrow.string()))
        return
    for first_line, text in reader.texts():
        reader.parse(text, line_numbers(first_line, text))
        yield text, None


class TableRows:
    """Rows of a table that becomes a file of another kind, or of Parquet."""

    def __init__(self, reader: TableReader, out: str) -> None:
        self.path, self.out = reader.path, out
        self.separator, self.pack = separator_of(Path(out)), PACKERS.get(Path(out).suffix.lower())
        if isinstance(reader, ParquetReader):
            self.table = reader.table()
        else:
            assert isinstance(reader, CsvReader)
            self.table = _table_of_text(reader, typed=self.separator is None)
        self.n_rows = self.table.num_rows
        if self.separator is not None:
            self.table = self._as_lines()

    def as_words(self, name: str) -> Any:
        """One column as words: numbers with all digits, missing values empty."""
        import pyarrow

        column = self.table.column(name)
        if pyarrow.types.is_floating(column.type):
            column = column.cast(pyarrow.float64())
        with arrow_errors(self.path):
            return column.cast(pyarrow.string()).fill_null("")

    def _as_lines(self) -> Any:
        """All columns as words that fit in a line."""
        import pyarrow
        from pyarrow import compute

        columns = {name: self.as_words(name) for name in self.table.column_names}
        for name, words in columns.items():
            if compute.any(compute.match_substring_regex(words, "[\r\n\0]")).as_py():
                raise DataError(
                    f"{self.path}, column {name!r}: a word must not hold a line break, since "
                    f"{self.out} has one row per line; remove it, or write .parquet files."
                )
        return pyarrow.table(columns)

    def content(self, rows: Numbers) -> Iterator[Buffer]:
        """A Parquet file, or text with a separator, compressed if its name says so."""
        with arrow_errors(self.path):
            part = self.table.take(rows)
        if self.separator is None:
            yield parquet_bytes(part)
            return
        lines = zip(*(column.to_pylist() for column in part.columns), strict=True)
        text = csv_bytes([part.column_names, *lines], self.separator)
        yield text if self.pack is None else self.pack(text)


def _table_of_text(reader: CsvReader, typed: bool) -> Any:
    """A table of words, or with the type of each column that fits all its values."""
    import pyarrow

    types = dict.fromkeys(reader.selection.categorical if typed else reader.names, pyarrow.string())
    if typed:
        found = [table.schema for _, table in reader.tables(types) if table.num_rows]
        for name in reader.names:
            types[name] = _common_type({schema.field(name).type for schema in found})
    tables = [table for _, table in reader.tables(types) if table.num_rows]
    reader.require_samples(len(tables))
    return pyarrow.concat_tables(tables)


def _common_type(types: set[Any]) -> Any:
    """The type of a column whose parts have these; words if nothing else fits all of them."""
    import pyarrow

    numbers = {pyarrow.int64(), pyarrow.float64()}
    found = types - {pyarrow.null()}
    if len(found) == 1:
        return found.pop()
    return pyarrow.float64() if found == numbers else pyarrow.string()
