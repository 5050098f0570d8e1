"""`adfs info`: versions, the machine, and what is installed besides; with --mpi, its network."""

import argparse
import os
import platform
from pathlib import Path
from typing import Any

import adfs
from adfs.cli import compile_ahead, layout, network, options, output
from adfs.cli.parser import add_command
from adfs.errors import DataError

NEEDED = ("numpy", "scipy", "numba", "networkx", "scikit-learn", "rich")
EXTRAS = {"mpi4py": "mpi", "mpich": "mpi", "matplotlib": "plots"}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands, "info", run, help="show versions, cores, caches and extras",
        description="Show what a bug report should hold: versions, cores, extras, the registered "
        "algorithms, where compiled kernels and data sets are kept. With --mpi, measure what a "
        "message and a proximal step take here, and which --tau follows. With --compile, compile "
        "all kernels now, as for a container image.",
        epilog="examples:\n  adfs info\n  adfs info --json\n  mpiexec -n 2 adfs info --mpi",
    )  # fmt: skip
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--mpi",
        action="store_true",
        help="measure what a proximal step and an exchange between ranks take; start it by mpiexec",
    )
    group.add_argument(
        "--compile",
        action="store_true",
        help="compile every kernel that an ordinary run uses and does not find compiled; takes a "
        "minute or two on one core",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print what is known of the surroundings."""
    if args.mpi:
        return network.run(args.json, _record)
    if args.compile:
        return compile_ahead.run(args.json)
    record = _record()
    if args.json:
        output.emit_json(record)
    else:
        output.emit(layout.facts(_lines(record)))
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
    from adfs.kernels.blocks import run_events

    stats = getattr(run_events, "stats", None)  # absent where NUMBA_DISABLE_JIT is set
    path = None if stats is None else stats.cache_path
    files = list(Path(path).glob("*.nbc")) if path else []
    return {"path": path, "n_compiled": len(files), "bytes": sum(f.stat().st_size for f in files)}


def _data() -> dict[str, Any]:
    from adfs.problems.datasets import available, cache_folder

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
        *((name, version or f"not installed; pip install 'adfs[{EXTRAS[name]}]'")
          for name, version in record["extras"].items()),
        ("algorithms", ", ".join(record["algorithms"])),
        ("numba cache", _cache_line(cache)),
        ("ADFS_DATA", data["fault"] or data["ADFS_DATA"] or "not set"),
        ("downloads", data["cache"]),
        ("on disk", ", ".join(data["found"]) or "none of the known data sets"),
    ]  # fmt: skip


def _cache_line(cache: dict[str, Any]) -> str:
    if cache["path"] is None:
        return "none: NUMBA_DISABLE_JIT is set, kernels run uncompiled"
    if not cache["n_compiled"]:
        return f"{cache['path']} (empty: the first run compiles)"
    size = cache["bytes"] / 1e6
    return f"{cache['path']} ({cache['n_compiled']} compiled functions, {size:.1f} MB)"
