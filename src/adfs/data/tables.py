"""Reads tables, CSV, TSV and Parquet, with pyarrow: each column by its name.

Files are surveyed first (see `adfs.data.columns`); rows are then read with the types that all rows
agree on. A CSV file has one row per line, so that ranks can read some of its lines: a value with a
line break is refused. Of a Parquet file, ranks read the row groups that hold their rows.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.agreement import Peers, attempt
from adfs.data.columns import (
    MOST_CATEGORIES,
    NUMBER,
    TRUTH,
    WORD,
    ColumnSurvey,
    Survey,
    require_columns,
    require_unique,
    select,
    too_many,
)
from adfs.data.matrices import Matrix, Numbers
from adfs.data.reader import Piece, Reader, Selection, is_full, read_errors
from adfs.data.text_lines import MAGIC, Block, LineReader, line_numbers, open_text
from adfs.errors import DataError, shortened

SEPARATORS = {".csv": ",", ".tsv": "\t"}
MARK = b"\xef\xbb\xbf"  # some programs begin UTF-8 text with it
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
PARQUET_MAGIC = b"PAR1"
LONGEST_WORD = 1000  # letters of a category or a label
LONGEST_REASON = 120  # letters of a message of pyarrow
Place = Callable[[int], int]  # the number, in the file, of a row of a table
Feature = tuple[NDArray[Any], int | None]  # numbers and None, or of how many categories which


class TableReader(Reader):
    """What CSV and Parquet files have in common: columns with names."""

    path: Path
    selection: Selection
    target: str | None
    features: list[str]
    unit: str

    def choose(self, names: Sequence[str]) -> None:
        """The wanted columns among those of the file; at prediction those that a model knows."""
        given, known = self.selection, self.selection.columns
        self.columns = known
        require_unique(self.path, names)
        if given.n_features is not None:
            raise DataError(
                f"--n-features {given.n_features} pads rows without names, but {self.path} is a "
                "table; leave it out, or choose columns with --features."
            )
        if given.all_columns:
            require_columns(self.path, names, "--categorical", given.categorical)
            self.target, self.features = None, list(names)
            return
        if known is None:
            self.target, self.features = select(self.path, names, *given[1:4])
            return
        self.features = list(known.kinds)
        self.target = known.target if known.target in names else None
        if missing := [name for name in self.features if name not in names]:
            raise DataError(
                f"{self.path} must have the columns of the model, but has no "
                f"{shortened(', '.join(missing), 80)}; add them, or check the separator."
            )

    @property
    def wanted(self) -> list[str]:
        """The columns that are read."""
        return [*self.features, *([] if self.target is None else [self.target])]

    @property
    def n_features(self) -> int | None:
        """Number of features, once the columns are known."""
        return None if self.columns is None else len(self.columns.feature_names)

    def kind_of(self, name: str) -> str:
        """How a column is read."""
        assert self.columns is not None
        return self.columns.target_kind if name == self.target else self.columns.kinds[name]

    def empty_survey(self) -> Survey:
        """A survey without rows."""
        columns = {name: ColumnSurvey({}, set()) for name in self.wanted}
        return Survey(str(self.path), self.unit, self.target, self.features, columns)

    def encode(self, table: Any, place: Place) -> Block:
        """The rows of a table whose columns have the right types."""
        y = None
        if self.target is not None:
            y, words = self._values(table, self.target, place)
            y = y if words is None else words[y]
        return self._beside([self._feature(table, name, place) for name in self.features]), y

    def _values(
        self, table: Any, name: str, place: Place
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """A column without missing values: numbers and None, or numbers of words and the words."""
        column = table.column(name).combine_chunks()
        if self.kind_of(name) == WORD:
            encoded = column.dictionary_encode()
            words = encoded.dictionary.to_pylist()
            self._require_words(name, column, words, place)
            return np.asarray(encoded.indices), np.array(words, dtype=str)
        values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        self._require(name, ~np.isnan(values), place)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            self.refuse(
                name, place(row), f"a value must be finite, not {values[row]}", "correct it"
            )
        return values, None

    def _require(self, name: str, present: NDArray[np.bool_], place: Place) -> None:
        if not present.all():
            row = int(np.argmin(present))
            self.refuse(
                name, place(row), "a value is missing", "fill it in, or leave out the row or column"
            )

    def _require_words(self, name: str, column: Any, distinct: list[Any], place: Place) -> None:
        """Refuse missing and very long words of a column with these ``distinct`` words."""
        if column.null_count or not all(distinct):
            words = column.to_pylist()
            self._require(name, np.fromiter(map(bool, words), bool, len(words)), place)
        longest = max(distinct, key=len, default="")
        if len(longest) > LONGEST_WORD:
            row, length = column.index(longest).as_py(), len(longest)
            self.refuse(
                name, place(row), f"a word may have {LONGEST_WORD:,} letters, not {length:,}",
                "shorten it, or leave the column out with --features",
            )  # fmt: skip

    def _feature(self, table: Any, name: str, place: Place) -> Feature:
        """One column as a feature of numbers, or as the numbers of the categories."""
        values, words = self._values(table, name, place)
        if words is None:
            return values, None
        assert self.columns is not None
        categories = np.array(self.columns.categories[name])
        codes = np.searchsorted(categories, words)
        known = categories[np.minimum(codes, len(categories) - 1)] == words
        if not known.all():
            row = int(np.argmin(known[values]))
            self.refuse(
                name, place(row),
                f"{shortened(str(words[values[row]]), 30)!r} is a category that the training data "
                "had not", "correct it, leave out the row, or train again",
            )  # fmt: skip
        return codes[values], len(categories)

    @staticmethod
    def _beside(features: list[Feature]) -> Matrix:
        """Features side by side; dense if at least half is not zero."""
        n_rows, width = len(features[0][0]), sum(size or 1 for _, size in features)
        n_filled = sum(n_rows if size else int(np.count_nonzero(v)) for v, size in features)
        rows = np.arange(n_rows + 1)
        if not is_full(n_filled, n_rows, width):
            return sp.hstack(
                [
                    sp.csr_matrix(values[:, None])
                    if size is None
                    else sp.csr_matrix((np.ones(n_rows), values, rows), shape=(n_rows, size))
                    for values, size in features
                ],
                format="csr",
            )
        X, first = np.zeros((n_rows, width)), 0
        for values, size in features:
            if size is None:
                X[:, first] = values
            else:
                X[rows[:-1], first + values] = 1.0
            first += size or 1
        return X

    def refuse(self, name: str, place: int, rule: str, way_out: str) -> NoReturn:
        """Raise the error about one value."""
        error = DataError(f"{self.path}, {self.unit} {place}, column {name!r}: {rule}; {way_out}.")
        error.order = place
        raise error

    def note_words(
        self, survey: ColumnSurvey, name: str, values: Any, place: Place, are_names: bool
    ) -> None:
        """Add a column of words; what looks like a number counts as one unless it is a name."""
        distinct = values.unique().to_pylist()
        self._require_words(name, values, distinct, place)
        if len(distinct) > MOST_CATEGORIES and name != self.target:
            raise too_many(self.path, name)
        for word in distinct:
            kind = NUMBER if not are_names and is_number(word) else WORD
            if kind not in survey.found:
                survey.add(kind, place(values.index(word).as_py()), word)
        survey.words.update(distinct)


def is_number(word: str) -> bool:
    """Whether a word of a table is read as a number."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _pyarrow() -> Any:
    """The library, or a sentence about it."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "CSV and Parquet files need pyarrow, which is not installed; run pip install "
            "'.[tables]' in the folder of adfs's source."
        ) from None
    return pyarrow


def parquet_bytes(columns: Any) -> bytes:
    """A Parquet file with these columns: a table of pyarrow, or lists by their names."""
    arrow, buffer = _pyarrow(), BytesIO()
    if isinstance(columns, dict):
        columns = arrow.table({name: list(values) for name, values in columns.items()})
    arrow.parquet.write_table(columns, buffer)
    return buffer.getvalue()


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Every error of pyarrow as one sentence."""
    try:
        with read_errors(path):
            yield
    except (_pyarrow().ArrowException, UnicodeDecodeError) as error:
        reason = shortened(" ".join(str(error).split()).rstrip("."), LONGEST_REASON)
        raise DataError(f"{path} cannot be read: {reason}; check the file.") from None


class CsvReader(TableReader, LineReader):
    """One CSV (.csv) or TSV (.tsv) file with a header, plain or compressed."""

    kind = "text with one row per line"
    unit = "line"

    def __init__(self, peers: Peers, path: Path, selection: Selection) -> None:
        LineReader.__init__(self, peers, path, selection)
        self.separator = SEPARATORS[_suffix(path)]
        attempt(peers, self._read_header)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the suffix, apart from that of a compression, is .csv or .tsv."""
        return _suffix(path) in SEPARATORS

    def _read_header(self) -> None:
        _pyarrow()
        with open_text(self.path) as (file, _):
            line = self._rest_of_line(file)
        self.body, self.first_line = len(line), 2
        text = line.removeprefix(MARK).strip(b"\r\n")
        if not text.strip():
            raise DataError(
                f"{self.path} must begin with the names of its columns, but its first line is "
                "empty; add a header."
            )
        self._require_utf8(text, [1])
        try:
            (self.names,) = csv.reader([text.decode()], delimiter=self.separator, strict=True)
        except csv.Error as error:
            raise DataError(
                f"{self.path} must begin with the names of its columns, but its first line cannot "
                f"be read ({error}); check quotes and line ends."
            ) from None
        if len(self.names) == 1 and self.selection.columns is None:
            raise DataError(
                f"{self.path} must have columns separated by "
                f"{'commas' if self.separator == ',' else 'tabs'}, but its first line has none; "
                "check the separator (.csv: comma, .tsv: tab)."
            )
        self.choose(self.names)

    def holds_sample(self, line: bytes) -> bool:
        """Whether a line is not empty."""
        return bool(line.strip(b"\r\n"))

    def survey(self, rank: int, size: int) -> Survey:
        """Kinds and words of the lines that one of ``size`` ranks examines."""
        found, arrow = self.empty_survey(), _pyarrow()
        for first_line, text in self.texts() if size == 1 else self.own_texts(rank):
            numbers = line_numbers(first_line, text)
            self._require_utf8(text, numbers)
            place = self._places(text, numbers)
            table = self._read(text, place, {n: arrow.string() for n in self.selection.categorical})
            for name, column in found.columns.items():
                self._note(column, name, table.column(name).combine_chunks(), text, place)
        return found

    def _note(
        self, survey: ColumnSurvey, name: str, values: Any, text: bytes, place: Place
    ) -> None:
        """Add the values of one column in some lines to its survey."""
        types = _pyarrow().types
        if not len(values):
            return
        if not types.is_string(values.type):
            self._require(name, ~np.asarray(values.is_null()), place)
        if types.is_integer(values.type) or types.is_floating(values.type):
            if NUMBER not in survey.found:  # places ascend, and finding one takes long
                survey.add(NUMBER, place(0), str(values[0]))
        elif types.is_temporal(values.type):
            self.refuse(
                name, place(0), f"{values[0]} is a date or a time, which no model takes",
                "make it a number, or leave the column out with --features",
            )  # fmt: skip
        elif types.is_boolean(values.type):
            words = self._read(text, place, {name: _pyarrow().string()}).column(name)
            survey.add(TRUTH, place(0), words[0].as_py())
            survey.words.update(words.unique().to_pylist())
        else:
            self.note_words(survey, name, values, place, name in self.selection.categorical)

    def tables(self, types: dict[str, Any]) -> Iterator[tuple[bytes, Any]]:
        """Blocks of lines, as text and as a table; columns without a type get the one that fits."""
        for first_line, text in self.texts():
            numbers = line_numbers(first_line, text)
            self._require_utf8(text, numbers)
            yield text, self._read(text, self._places(text, numbers), types)

    def parse(self, text: bytes, numbers: Sequence[int]) -> Block:
        """Rows with the types that all rows agree on."""
        self._require_utf8(text, numbers)
        arrow, place = _pyarrow(), self._places(text, numbers)
        types = {NUMBER: arrow.float64(), TRUTH: arrow.bool_(), WORD: arrow.string()}
        table = self._read(text, place, {name: types[self.kind_of(name)] for name in self.wanted})
        return self.encode(table, place)

    def _places(self, text: bytes, numbers: Sequence[int]) -> Place:
        """Row of a table made of ``text`` -> number of its line."""
        return lambda row: numbers[int(self.find_lines(text)[1][row])]

    def _read(self, text: bytes, place: Place, types: dict[str, Any]) -> Any:
        """The wanted columns of some lines; columns without a type get the one that fits."""
        arrow, wrong = _pyarrow(), []

        def note(row: Any) -> str:
            wrong.append(row)
            return "skip"

        options = arrow.csv
        samples = self.find_lines(text)[1]
        if not len(samples):
            return arrow.table({name: arrow.array([], arrow.string()) for name in self.wanted})
        try:
            table = options.read_csv(
                BytesIO(text),
                options.ReadOptions(
                    use_threads=False, block_size=len(text) + 1, column_names=self.names
                ),
                options.ParseOptions(delimiter=self.separator, invalid_row_handler=note),
                options.ConvertOptions(
                    column_types=types, include_columns=self.wanted, true_values=TRUE,
                    false_values=FALSE,
                ),
            )  # fmt: skip
        except arrow.ArrowInvalid as error:
            self._explain(text, place, types)
            raise DataError(f"{self.path} cannot be read: {error}; check the file.") from None
        if wrong:
            self._refuse_row(text, place, wrong[0])
        if table.num_rows != len(samples):
            raise DataError(
                f"{self.path} must have one row per line, but after line {place(0)} a value in "
                "quotes goes on in the next line; remove the line break or close the quotes."
            )
        return table

    def _refuse_row(self, text: bytes, place: Place, row: Any) -> NoReturn:
        lines = [line.rstrip("\r") for line in text.decode(errors="replace").split("\n")]
        samples = self.find_lines(text)[1].tolist()
        at = next((k for k, line in enumerate(samples) if lines[line] == row.text), 0)
        error = DataError(
            f"{self.path}, line {place(at)}: a row must have {row.expected_columns} columns as the "
            f"header has, but this one has {row.actual_columns}; check separators and quotes."
        )
        error.order = place(at)
        raise error

    def _explain(self, text: bytes, place: Place, types: dict[str, Any]) -> None:
        """Raise the error about the first value that does not fit its type."""
        arrow = _pyarrow()
        rules = {
            arrow.float64(): ("a number", is_number), arrow.bool_(): ("true or false", _is_truth),
        }  # fmt: skip
        words = self._read(text, place, {name: arrow.string() for name in self.wanted})
        faults = []
        for name, kind in types.items():
            rule, fits = rules.get(kind, ("a word", bool))
            for row, word in enumerate(words.column(name).to_pylist()):
                if word and not fits(word):
                    faults.append((row, name, word, rule))
                    break
        if faults:
            row, name, word, rule = min(faults)
            self.refuse(
                name, place(row), f"this column holds {rule} per row, not {shortened(word, 30)!r}",
                "correct it",
            )  # fmt: skip

    def _require_utf8(self, text: bytes, numbers: Sequence[int]) -> None:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line = numbers[text.count(b"\n", 0, error.start)]
            raise DataError(
                f"{self.path}, line {line}: text must be UTF-8, but here is the byte "
                f"{text[error.start]:#04x}; save the file as UTF-8."
            ) from None


def _is_truth(word: str) -> bool:
    return word in TRUE or word in FALSE


def separator_of(path: Path) -> str | None:
    """What separates the columns in a file of this name; None if it is not CSV or TSV."""
    return SEPARATORS.get(_suffix(path))


def _suffix(path: Path) -> str:
    """The suffix in small letters, without that of a compression."""
    name = path.name.lower()
    for packed in MAGIC:
        name = name.removesuffix(f".{packed}")
    return Path(name).suffix


class ParquetReader(TableReader):
    """One Parquet file (.parquet)."""

    unit = "row"

    def __init__(self, peers: Peers, path: Path, selection: Selection) -> None:
        self.peers, self.path, self.selection = peers, path, selection
        attempt(peers, self._open)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the suffix, or else the content, is that of a Parquet file."""
        if path.suffix.lower() in (".parquet", ".pq"):
            return True
        if not path.is_file():
            return False
        with read_errors(path), path.open("rb") as file:
            return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC

    def _open(self) -> None:
        if self.path.is_dir():
            raise DataError(f"{self.path} must be a file, but is a folder; name a file in it.")
        arrow = _pyarrow()
        with arrow_errors(self.path):
            self.file = arrow.parquet.ParquetFile(self.path)
            about = self.file.metadata
            sizes = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
            self.schema = self.file.schema_arrow
            names = list(self.schema.names)
        self.first_row = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.choose(names)
        if not self.first_row[-1]:
            raise DataError(f"{self.path} must hold at least one sample, but has none; check it.")

    def count(self) -> int:
        return int(self.first_row[-1])

    def table(self) -> Any:
        """All rows of the wanted columns."""
        groups = range(len(self.first_row) - 1)
        return _pyarrow().concat_tables([self._read_group(k, self.wanted) for k in groups])

    def survey(self, rank: int, size: int) -> Survey:
        """Kinds of all columns, and the words in the row groups of one of ``size`` ranks."""
        arrow, found = _pyarrow(), self.empty_survey()
        types, wordy = arrow.types, []
        for name, column in found.columns.items():
            kind = self.schema.field(name).type
            if types.is_dictionary(kind):
                kind = kind.value_type
            is_text = types.is_string(kind) or types.is_large_string(kind)
            if is_text or name in self.selection.categorical:
                wordy.append(name)
            elif types.is_boolean(kind):
                column.add(TRUTH, 1, "true")
                column.words.update(("false", "true"))
            elif types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
                column.add(NUMBER, 1, "a number")
            else:
                raise DataError(
                    f"{self.path}, column {name!r}: a column must hold numbers, words or truth "
                    f"values, but holds {shortened(str(kind), 40)}; convert it, or leave it out "
                    "with --features."
                )
        for group in range(rank, len(self.first_row) - 1, size) if wordy else ():
            table = self._read_group(group, wordy)
            for name in wordy:
                column = found.columns[name]
                with arrow_errors(self.path):
                    values = table.column(name).cast(arrow.string()).combine_chunks()
                self.note_words(column, name, values, self._places(group), are_names=True)
        return found

    def read(self, rows: Numbers | None = None, keep: bool = True) -> Iterator[Piece]:
        """All rows, or some in any order, one piece per row group."""
        if rows is None:
            rows = np.arange(self.count())
        group_of = np.searchsorted(self.first_row, rows, side="right") - 1
        for group in np.unique(group_of).tolist():
            positions = np.flatnonzero(group_of == group)
            first = self.first_row[group]
            places, take = np.unique(rows[positions] - first, return_inverse=True)
            table = self._typed(self._read_group(group, self.wanted))
            if len(places) < table.num_rows:
                table = table.take(places)
            X, y = self.encode(table, (first + places + 1).item)
            if not np.array_equal(take, np.arange(len(places))):
                X, y = X[take], None if y is None else y[take]
            yield Piece(X, y, positions)

    def _read_group(self, group: int, names: list[str]) -> Any:
        with arrow_errors(self.path):
            table = self.file.read_row_group(group, columns=names, use_threads=False)
            table.validate(full=True)  # of a damaged file: words must be UTF-8
            return table

    def _typed(self, table: Any) -> Any:
        """Columns of the kinds that all rows agree on."""
        arrow, columns = _pyarrow(), {}
        for name in self.wanted:
            is_word = self.kind_of(name) == WORD
            kind, values = arrow.string() if is_word else arrow.float64(), table.column(name)
            try:
                if arrow.types.is_boolean(values.type) and not is_word:
                    values = values.cast(arrow.int8())
                columns[name] = values.cast(kind, safe=False)
            except arrow.ArrowException:
                raise DataError(
                    f"{self.path}, column {name!r}: this column must hold "
                    f"{'words' if is_word else 'numbers'}, but holds "
                    f"{shortened(str(values.type), 40)}; convert it."
                ) from None
        return arrow.table(columns)

    def _places(self, group: int) -> Place:
        first = int(self.first_row[group])
        return lambda row: first + row + 1
