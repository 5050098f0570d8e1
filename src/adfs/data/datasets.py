"""The data sets known by name: where their files are, else how they are downloaded and checked.

A name is searched in the folder ``ADFS_DATA``, then in the cache (``ADFS_CACHE``, else
``XDG_CACHE_HOME/adfs``, else ``~/.cache/adfs``), else downloaded into the cache, or made there from
what scikit-learn ships.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from adfs.agreement import Alone
from adfs.data.libsvm import LibsvmReader, read_libsvm
from adfs.data.matrices import Samples
from adfs.data.reader import Selection
from adfs.errors import DataError, shortened
from adfs.storage import write_whole

Progress: TypeAlias = Callable[[int, "int | None"], None]

LOADERS = {"breast-cancer": "load_breast_cancer", "diabetes": "load_diabetes"}
LIBSVM_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
SUFFIXES = ("", ".xz", ".bz2", ".gz")
CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Dataset:
    """A data set and its properties before it is read.

    ``stems`` are its possible file names, best first and without the suffix of a compression;
    ``url`` is None for a set that only exists on disk.

    Examples
    --------
    >>> DATASETS["a9a"].n_features
    123
    """

    name: str
    stems: tuple[str, ...]
    url: str | None
    n_samples: int
    n_features: int
    task: str
    description: str

    @property
    def bundled(self) -> bool:
        """Whether scikit-learn ships it: it is never downloaded."""
        return self.name in LOADERS

    @property
    def files(self) -> tuple[str, ...]:
        """The file names that are searched for, in this order."""
        return tuple(stem + suffix for stem in self.stems for suffix in SUFFIXES)


def _libsvm(name: str, path: str, n: int, d: int, about: str, *also: str) -> Dataset:
    """A set of the LIBSVM collection, whose ``path`` begins with its task."""
    task, file = path.split("/")
    stem = file.removesuffix(".bz2").removesuffix(".xz")
    return Dataset(name, (stem, *also), LIBSVM_URL + path, n, d, task, about)


def _bundled(name: str, n: int, d: int, task: str, about: str) -> Dataset:
    """A set that scikit-learn ships."""
    return Dataset(name, (name,), None, n, d, task, f"{about}; ships with scikit-learn")


_ALL = (
    _libsvm(
        "covtype",
        "binary/covtype.libsvm.binary.scale.bz2",
        581_012,
        54,
        "forest cover; in the paper",
    ),
    _libsvm("higgs", "binary/HIGGS.xz", 11_000_000, 28, "collisions; in the paper", "HIGGS.57594"),
    _libsvm("a9a", "binary/a9a", 32_561, 123, "census income, categories as 0 and 1"),
    _libsvm("a9a.t", "binary/a9a.t", 16_281, 123, "test part of a9a"),
    _libsvm("mushrooms", "binary/mushrooms", 8_124, 112, "edible or not; separable"),
    _libsvm("rcv1", "binary/rcv1_train.binary.bz2", 20_242, 47_236, "news wire, tf-idf text"),
    _libsvm("news20", "binary/news20.binary.bz2", 19_996, 1_355_191, "newsgroups, very wide text"),
    _libsvm("real-sim", "binary/real-sim.bz2", 72_309, 20_958, "newsgroups, tf-idf text"),
    _libsvm("abalone", "regression/abalone_scale", 4_177, 8, "age of shellfish, scaled"),
    Dataset(
        "reuters-money-fx", ("reuters-money-fx",), None, 7_770, 8_315, "binary", "news, tf-idf text"
    ),
    _bundled("breast-cancer", 569, 30, "binary", "tumours"),
    _bundled("diabetes", 442, 10, "regression", "its progress in a year"),
)
DATASETS: Mapping[str, Dataset] = MappingProxyType({dataset.name: dataset for dataset in _ALL})


def load(
    name: str,
    n_features: int | None = None,
    base_url: str | None = None,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> Samples:
    """Samples of a named set, with all the columns the set has (see `locate` for the rest)."""
    width = _dataset(name).n_features if n_features is None else n_features
    return read_libsvm(locate(name, base_url, timeout, progress), width)


def locate(
    name: str,
    base_url: str | None = None,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> Path:
    """The file of a named set, downloaded where it is not on disk.

    Parameters
    ----------
    name : str
        A key of ``DATASETS``.
    base_url : str, optional
        Folder to download from, instead of the one in the registry.
    timeout : float
        Seconds without an answer after which a download fails.
    progress : callable, optional
        Called with (bytes done, bytes in total or None) as a download goes on.
    """
    dataset = _dataset(name)
    path = _find(dataset)
    if path is None and dataset.bundled:
        return _unpack(dataset)
    if path is None:
        return _download(dataset, base_url, timeout, progress)
    if path.parent == cache_folder():
        _verify(path.name, _digest(path), dataset)
    return path


def available() -> list[tuple[Dataset, Path | None]]:
    """Every known set, with its file where one is on disk."""
    return [(dataset, _find(dataset)) for dataset in DATASETS.values()]


def forget(name: str) -> list[Path]:
    """Remove the files of a named set from the cache, and their checksums; the files removed.

    A file in the folder ``ADFS_DATA`` stays.
    """
    dataset, stored = _dataset(name), _stored_checksums()
    paths = [path for file in dataset.files if (path := cache_folder() / file).is_file()]
    entries = stored.items() if isinstance(stored, dict) else ()
    kept = {file: sha for file, sha in entries if isinstance(sha, str)}
    kept = {file: sha for file, sha in kept.items() if file not in dataset.files}
    if not paths and kept == stored:
        raise DataError(
            f"{name} must have a file in {cache_folder()} to be forgotten, but has none there; "
            "`adfs datasets` prints where it is."
        )
    try:
        for path in paths:
            path.unlink()
        _write_checksums(kept)
    except OSError as error:
        raise DataError(f"{name} cannot be removed: {error}; check the folder's rights.") from error
    return paths


def cache_folder() -> Path:
    """The folder that keeps downloads; it need not exist yet."""
    if own := os.environ.get("ADFS_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser() / "adfs"


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise DataError(f"{name!r} must be a known data set; take one of {', '.join(DATASETS)}.")
    return DATASETS[name]


def _find(dataset: Dataset) -> Path | None:
    """The first file of the set on disk, if any."""
    folders = [cache_folder()]
    if own := os.environ.get("ADFS_DATA"):
        folders.insert(0, Path(own).expanduser())
        if not folders[0].is_dir():
            raise DataError(f"ADFS_DATA={own} must be a folder; correct or unset it.")
    paths = (folder / file for folder in folders for file in dataset.files)
    return next((path for path in paths if path.is_file()), None)


def _download(
    dataset: Dataset, base_url: str | None, timeout: float, progress: Progress | None
) -> Path:
    """Fetch into the cache by way of a temporary file: all of it arrives, or nothing."""
    import http.client

    if dataset.url is None:
        raise DataError(
            f"{dataset.name} must be on disk, since no site offers it; put {dataset.files[0]} "
            "into the folder named by ADFS_DATA."
        )
    name = dataset.url.rpartition("/")[2]
    url = f"{base_url.rstrip('/')}/{name}" if base_url else dataset.url
    target = cache_folder() / name
    try:
        with _arriving(target) as part:
            digest = _fetch(url, part, timeout, progress)
            _verify(name, digest, dataset)
            _check_content(url, part, dataset)
            _write_checksums(_checksums(dataset) | {name: digest})
    except (OSError, http.client.HTTPException) as error:
        raise DataError(
            f"{url} must be downloaded to {target.parent}, but: {error}; try again, or put the "
            "file into the folder named by ADFS_DATA."
        ) from error
    return target


def _unpack(dataset: Dataset) -> Path:
    """Write a set of ``LOADERS`` into the cache as a LIBSVM file; two classes become -1 and 1."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(datasets, LOADERS[dataset.name])(return_X_y=True)
    if len(np.unique(y)) == 2:
        y = np.where(y == y.max(), 1, -1)
    X = StandardScaler().fit_transform(X)
    target = cache_folder() / dataset.name
    try:
        with _arriving(target) as part:
            datasets.dump_svmlight_file(X, y, str(part), zero_based=False)
            _write_checksums(_checksums(dataset) | {dataset.name: _digest(part)})
    except OSError as error:
        raise DataError(
            f"{dataset.name} must be written to {target.parent}, but: {error}; name another "
            "folder by ADFS_CACHE."
        ) from error
    return target


@contextmanager
def _arriving(target: Path) -> Iterator[Path]:
    """A temporary file beside ``target`` that replaces it if the block succeeds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{secrets.token_hex(4)}.part.{target.name}")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _fetch(url: str, part: Path, timeout: float, progress: Progress | None) -> str:
    """Stream ``url`` into ``part``; the SHA-256 of the content."""
    import urllib.request

    digest, done = hashlib.sha256(), 0
    with urllib.request.urlopen(url, timeout=timeout) as answer, part.open("wb") as file:
        length = answer.headers.get("Content-Length")
        if length is not None and not re.fullmatch(r"[0-9]{1,18}", length):
            raise DataError(
                f"{url} must say how many bytes it sends, but its Content-Length is "
                f"{shortened(repr(length), 40)}; try again, or put the file into the folder named "
                "by ADFS_DATA."
            )
        total = None if length is None else int(length)
        while chunk := answer.read(CHUNK_BYTES):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            if progress:
                progress(done, total)
    if total is not None and done != total:
        raise DataError(f"{url} must send {total} bytes, but sent {done}; try again.")
    return digest.hexdigest()


def _check_content(url: str, part: Path, dataset: Dataset) -> None:
    """Refuse an answer that is not LIBSVM data throughout, before its checksum is recorded."""
    try:
        for _ in LibsvmReader(Alone(), part, Selection(dataset.n_features)).read():
            pass
    except DataError as error:
        fault = str(error).replace(str(part), "the answer")
        raise DataError(f"{url} must send LIBSVM data, but: {fault}") from error


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _checksum_file() -> Path:
    return cache_folder() / "checksums.json"


def _stored_checksums() -> Any:
    """The content of the checksum file, whatever it is; None if it is not JSON."""
    path = _checksum_file()
    try:
        return json.loads(path.read_text()) if path.exists() else {}
    except (OSError, ValueError, RecursionError):
        return None


def _checksums(dataset: Dataset) -> dict[str, str]:
    """The recorded SHA-256 of each file in the cache."""
    found = _stored_checksums()
    if isinstance(found, dict) and all(isinstance(sha, str) for sha in found.values()):
        return found
    raise DataError(
        f"{_checksum_file()} must be a JSON object of checksums, but is not; run "
        f"`adfs datasets --forget {dataset.name}` to fetch it again."
    )


def _verify(file: str, digest: str, dataset: Dataset) -> None:
    """Compare with the recorded checksum, if there is one."""
    expected = _checksums(dataset).get(file, digest)
    if digest != expected:
        raise DataError(
            f"{file} must have the SHA-256 {expected[:12]}..., but has {digest[:12]}...; run "
            f"`adfs datasets --forget {dataset.name}` to fetch it again."
        )


def _write_checksums(checksums: dict[str, str]) -> None:
    """Replace all checksums in one atomic step."""
    _checksum_file().parent.mkdir(parents=True, exist_ok=True)
    write_whole(_checksum_file(), (json.dumps(checksums, indent=2, sort_keys=True) + "\n").encode())
