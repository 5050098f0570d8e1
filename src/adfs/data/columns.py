"""How columns of a table become features: numbers as they are, words as a column per category.

All rows decide together: a survey notes which kinds of values each column holds, and surveys of
other files, or of the parts that other ranks read, are merged with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adfs.errors import DataError, shortened

NUMBER, TRUTH, WORD = KINDS = ("number", "truth", "word")
MOST_CATEGORIES = 10_000
LONGEST_LIST = 100  # letters of column names in a message


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are features, in order, and the one that is the target.

    Parameters
    ----------
    kinds : dict
        Kind of each feature column by its name: ``number``, ``truth`` (true or false, as 1 or 0) or
        ``word`` (one column of 0 and 1 per category).
    categories : dict
        The categories of each ``word`` column, in order.
    target, target_kind : str
        Name of the target column, and whether it holds numbers or words.

    Examples
    --------
    >>> Columns({"age": "number", "city": "word"}, {"city": ("Oslo", "Rome")}, "y").feature_names
    ['age', 'city=Oslo', 'city=Rome']
    """

    kinds: Mapping[str, str]
    categories: Mapping[str, tuple[str, ...]]
    target: str
    target_kind: str = NUMBER

    @property
    def feature_names(self) -> list[str]:
        """Name of each feature."""
        return [
            f"{name}={category}" if kind == WORD else name
            for name, kind in self.kinds.items()
            for category in self.categories.get(name, ("",))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a model file holds them."""
        return {
            "target": self.target,
            "target_kind": self.target_kind,
            "kinds": dict(self.kinds),
            "categories": {name: list(each) for name, each in self.categories.items()},
        }

    @classmethod
    def from_dict(cls, values: Any) -> Columns:
        """The same read back; anything else is refused."""
        try:
            kinds = {str(name): str(kind) for name, kind in values["kinds"].items()}
            categories = {
                str(name): tuple(map(str, each)) for name, each in values["categories"].items()
            }
            columns = cls(kinds, categories, str(values["target"]), str(values["target_kind"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise DataError(f"its columns cannot be read ({type(error).__name__})") from None
        words = {name for name, kind in kinds.items() if kind == WORD}
        if not {*kinds.values(), columns.target_kind} <= {*KINDS} or words != {*categories}:
            raise DataError("its columns have unknown kinds")
        return columns


@dataclass
class ColumnSurvey:
    """What one column holds: where each kind of value first occurs, and all words.

    ``found`` has the place (line or row number) and the text of the first value of each kind.
    """

    found: dict[str, tuple[int, str]]
    words: set[str]

    def add(self, kind: str, place: int, text: str) -> None:
        """Note a value, if it is the first of its kind."""
        if kind not in self.found or place < self.found[kind][0]:
            self.found[kind] = (place, text)

    def merge(self, other: ColumnSurvey) -> None:
        """Add what another part of the rows holds."""
        for kind, (place, text) in other.found.items():
            self.add(kind, place, text)
        self.words |= other.words


@dataclass
class Survey:
    """What all wanted columns of a file, or of a part of it, hold."""

    source: str
    unit: str  # what places count: lines or rows
    target: str | None
    features: list[str]
    columns: dict[str, ColumnSurvey]

    def to_plain(self) -> list[Any]:
        """As other ranks receive it."""
        columns = [
            [name, [[kind, *first] for kind, first in each.found.items()], sorted(each.words)]
            for name, each in self.columns.items()
        ]
        return [self.source, self.unit, self.target, self.features, columns]

    @classmethod
    def from_plain(cls, values: Sequence[Any]) -> Survey:
        """The same from another rank."""
        source, unit, target, features, columns = values
        read = {
            name: ColumnSurvey({kind: (place, text) for kind, place, text in found}, set(words))
            for name, found, words in columns
        }
        return cls(source, unit, target, list(features), read)


def require_unique(source: object, names: Sequence[str]) -> None:
    """Refuse a table with a column without a name, or with two of the same name."""
    for name in names:
        if not name.strip() or names.count(name) > 1:
            what = "one without a name" if not name.strip() else f"{shortened(name, 40)!r} twice"
            raise DataError(
                f"{source} must name each column once, but has {what}; give every column its own "
                "name."
            )


def require_columns(source: object, names: Sequence[str], flag: str, wanted: Iterable[str]) -> None:
    """Refuse a name that no column of a table has."""
    for name in wanted:
        if name not in names:
            shown = shortened(", ".join(names), LONGEST_LIST)
            raise DataError(
                f"{flag} {name} must be a column of {source}, but its columns are {shown}; "
                "check the name, and the separator of the file."
            )


def select(
    source: object,
    names: Sequence[str],
    target: str | None,
    features: Sequence[str] | None,
    categorical: Iterable[str],
) -> tuple[str, list[str]]:
    """The target and the feature columns of a table with these column names.

    Examples
    --------
    >>> select("a.csv", ["x", "y", "z"], "y", None, ())
    ('y', ['x', 'z'])
    """
    if target is None:
        shown = shortened(", ".join(names), LONGEST_LIST)
        raise DataError(
            f"{source} is a table, so --target must name the column to predict; its columns are "
            f"{shown}."
        )
    require_columns(source, names, "--target", [target])
    require_columns(source, names, "--features", features or ())
    require_columns(source, names, "--categorical", categorical)
    if target in (features or ()):
        raise DataError(f"--features must not hold the target {target!r}; leave it out.")
    chosen = list(features) if features is not None else [n for n in names if n != target]
    if not chosen:
        raise DataError(f"{source} must have a column beside the target {target!r}; add features.")
    return target, chosen


def decide(surveys: Sequence[Survey], n_files: int, categorical: Iterable[str]) -> Columns:
    """One rule for each column, from the surveys of all rows."""
    first = surveys[0]
    if len(surveys) < n_files:
        raise DataError(
            f"All files must be tables if one is, as {first.source}; convert the others."
        )
    for other in surveys[1:]:
        if {*other.features} != {*first.features} or other.target != first.target:
            odd = sorted({*other.features} ^ {*first.features})
            raise DataError(
                f"All files must have the same columns, but {other.source} differs from "
                f"{first.source} in {shortened(', '.join(odd), LONGEST_LIST)}; name those to use "
                "with --features."
            )
    joined = {name: ColumnSurvey({}, set()) for name in first.columns}
    for survey in surveys:
        for name, column in survey.columns.items():
            joined[name].merge(column)
    assert first.target is not None
    declared = {*categorical}
    kinds, categories = {}, {}
    for name in first.features:
        kinds[name] = _kind(first, name, joined[name], name in declared)
        if kinds[name] == WORD:
            categories[name] = tuple(sorted(joined[name].words))
    target = _kind(first, first.target, joined[first.target], first.target in declared)
    return Columns(kinds, categories, first.target, NUMBER if target == NUMBER else WORD)


def _kind(survey: Survey, name: str, column: ColumnSurvey, is_declared: bool) -> str:
    kinds = {*column.found}
    if NUMBER in kinds and len(kinds) > 1 and not is_declared:
        place, text = min(column.found[kind] for kind in kinds - {NUMBER})
        raise DataError(
            f"{survey.source}, {survey.unit} {place}, column {name!r}: a column must hold numbers "
            f"only or words only, but here is {shortened(text, 30)!r} and elsewhere a number; "
            f"correct it, or declare names with --categorical {name}."
        )
    if is_declared or WORD in kinds:
        if len(column.words) > MOST_CATEGORIES:
            raise too_many(survey.source, name)
        return WORD
    return TRUTH if kinds == {TRUTH} else NUMBER


def too_many(source: object, name: str) -> DataError:
    """The error about a column that seems to identify rows."""
    return DataError(
        f"{source}, column {name!r}: a column of words may have at most {MOST_CATEGORIES:,} "
        "different ones, but has more; leave it out with --features, or group its values."
    )
