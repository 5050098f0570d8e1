"""`adfs info`: versions, cores, extras and caches; with --mpi, timed messages."""

import argparse
import os
import platform
from pathlib import Path
from typing import Any

import adfs
from adfs.cli import options, output
from adfs.cli.arguments import Command
from adfs.errors import DataError

HEADERS = ("features", "proximal step", "exchange", "slowest pair", "tau")


def _run_mpi(as_json: bool) -> int:
    """Measure on all ranks; rank 0 prints."""
    from adfs.mpi.communicator import Communicator
    from adfs.mpi.measure import measure

    with Communicator.open() as world:
        found = measure(world)
    if world.rank > 0:
        return 0
    if as_json:
        output.emit_json({**_record(), "mpi": found})
    else:
        output.emit(_mpi_text(found))
    return 0


def _mpi_text(found: dict[str, Any]) -> str:
    """The table, the fitted line, and how to use them."""
    rows = [_cells(row) for row in found["sizes"]]
    return (
        _heading(found) + "\n" + output.table(HEADERS, rows, right=range(len(HEADERS))) + "\n"
        f"exchange = {found['latency_us']:.3g} us + 8 (features + 1) bytes / "
        f"{_bandwidth(found['bandwidth_gb_s'])}, off by at most {100 * found['fit_error']:.0f} %\n"
        + _advice(found["sizes"][0])
    )  # fmt: skip


def _heading(found: dict[str, Any]) -> str:
    from adfs.study.numbers import count

    how = "MPI's C functions" if found["compiled"] else "mpi4py, message by message"
    line = f"{found['ranks']} ranks on {count(found['hosts'], 'host')}, {found['library']}, {how}\n"
    if found["oversubscribed"]:
        line += "There are more ranks than cores on a host: times include waiting for a core.\n"
    return line


def _advice(row: dict[str, Any]) -> str:
    """How the numbers are used, with one of them."""
    return (
        "tau is an exchange in proximal steps of dense rows: take the line nearest to your number\n"
        f"of features, here --tau {row['tau']:.3g} for {row['n_features']} features. On rows with "
        "few non-zeros a step\ntakes less time, so tau is larger in the same proportion.\n"
    )


def _cells(row: dict[str, Any]) -> list[str]:
    first, second = row["slowest_pair"]
    return [
        f"{row['n_features']}",
        f"{row['prox_ns']:.0f} ns",
        f"{row['exchange_us']:.2f} us",
        f"{row['slowest_us']:.2f} us ({first}, {second})",
        f"{row['tau']:.3g}",
    ]


def _bandwidth(gigabytes: float | None) -> str:
    return "any bandwidth" if gigabytes is None else f"{gigabytes:.3g} GB/s"


def _run_compile(as_json: bool) -> int:
    """Compile what is missing and print how much that was."""
    from adfs.compilation import compile_all
    from adfs.kernels import compile_notice

    compile_notice.enabled = False  # it would announce less time than this takes
    done = compile_all()
    if as_json:
        output.emit_json(done._asdict())
    else:
        output.emit(
            f"compiled {done.n_compiled} kernels in {done.seconds:.1f} s, found {done.n_loaded} "
            f"compiled before; all are in {done.folder}\n"
        )
    return 0


NEEDED = ("numpy", "scipy", "numba", "networkx", "scikit-learn", "rich")
EXTRAS = {"mpi4py": "mpi", "mpich": "mpi", "matplotlib": "plots"}


def run(args: argparse.Namespace) -> int:
    """Print what is known about this installation."""
    if args.mpi:
        return _run_mpi(args.json)
    if args.compile:
        return _run_compile(args.json)
    record = _record()
    if args.json:
        output.emit_json(record)
    else:
        output.emit(output.facts(_lines(record)))
    return 0


def _record() -> dict[str, Any]:
    return {
        "adfs": adfs.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": _cores(),
        "versions": {name: _version(name) for name in NEEDED},
        "extras": {name: _version(name) for name in EXTRAS},
        "algorithms": adfs.algorithms(),  # type: ignore[operator]
        "numba_cache": _numba_cache(),
        "data": _data(),
    }


def _cores() -> int:
    """Cores this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numba_cache() -> dict[str, Any]:
    """Where compiled kernels are kept, and how many there are."""
    from adfs.kernels.event_loop import run_events

    stats = getattr(run_events, "stats", None)  # absent where NUMBA_DISABLE_JIT is set
    path = None if stats is None else stats.cache_path
    files = list(Path(path).glob("*.nbc")) if path else []
    return {"path": path, "n_compiled": len(files), "bytes": sum(f.stat().st_size for f in files)}


def _data() -> dict[str, Any]:
    from adfs.data.datasets import available, cache_folder

    folder, fault = os.environ.get("ADFS_DATA") or None, None
    try:
        found = [dataset.name for dataset, path in available() if path is not None]
    except DataError as error:
        found, fault = [], str(error)
    return {"ADFS_DATA": folder, "cache": str(cache_folder()), "found": found, "fault": fault}


def _lines(record: dict[str, Any]) -> list[tuple[str, str]]:
    data, cache = record["data"], record["numba_cache"]
    return [
        ("adfs", record["adfs"]),
        ("python", f"{record['python']} on {record['platform']}"),
        ("cores", str(record["cores"])),
        *((name, version or "not installed") for name, version in record["versions"].items()),
        *((name, version or f"not installed; {_install(EXTRAS[name])}")
          for name, version in record["extras"].items()),
        ("algorithms", ", ".join(record["algorithms"])),
        ("numba cache", _cache_line(cache)),
        ("ADFS_DATA", data["fault"] or data["ADFS_DATA"] or "not set"),
        ("downloads", data["cache"]),
        ("on disk", ", ".join(data["found"]) or "none of the known data sets"),
    ]  # fmt: skip


def _install(extra: str) -> str:
    return f"pip install '.[{extra}]' in the folder of adfs's source"


def _cache_line(cache: dict[str, Any]) -> str:
    if cache["path"] is None:
        return "none: NUMBA_DISABLE_JIT is set, kernels run uncompiled"
    if not cache["n_compiled"]:
        return f"{cache['path']} (empty: the first run compiles)"
    size = cache["bytes"] / 1e6
    return f"{cache['path']} ({cache['n_compiled']} compiled functions, {size:.1f} MB)"


COMMAND = Command(
    "info",
    "show versions, cores, caches and extras",
    "Show what a bug report should contain: versions, cores, extras, the registered algorithms, "
    "where compiled kernels and data sets are kept. With --mpi, measure what a message and a "
    "proximal step take here, and which --tau follows. With --compile, compile all kernels now, as "
    "for a container image.",
    "examples:\n  adfs info\n  adfs info --json\n  mpiexec -n 2 adfs info --mpi",
    run,
    groups=options.INFO,
)
