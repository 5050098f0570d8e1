"""`adfs info`: versions, cores, extras and caches; with --mpi, timed messages; --costs, steps."""

import argparse
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import adfs
from adfs.cli import output
from adfs.costs import Costs, stored_place
from adfs.data.datasets import available, cache_folder
from adfs.errors import DataError
from adfs.kernels import compile_notice
from adfs.kernels.event_loop import run_events
from adfs.study.numbers import count

COLUMNS = {  # of what was measured for one number of features
    "features": "{n_features}",
    "proximal step": "{prox_ns:.0f} ns",
    "exchange": "{exchange_us:.2f} us",
    "slowest pair": "{slowest_us:.2f} us ({slowest_pair[0]}, {slowest_pair[1]})",
    "tau": "{tau:.3g}",
}
COSTS = {  # of one step, for rows of one size
    "rows": "{kind}, {size} features",
    "proximal step": "{seconds:.0f} ns",
    "gradient": "{gradient:.3g}",
    "drawn at random": "{sampled_gradient:.3g}",
    "Hessian product": "{product:.3g}",
    "Hessian": "{hessian:.3g}",
    "dual gradient": "{dual_gradient:.3g}",
    "the same, iterative": "{iterative_dual_gradient:.3g}",
    "factorisation": "{factorisation:,.0f}",
}
ROW_SIZES = (("dense", 28), ("dense", 120), ("dense", 1000), ("sparse", 10), ("sparse", 100))
NEEDED = ("numpy", "scipy", "numba", "networkx", "scikit-learn", "rich")
EXTRAS = {"mpi4py": "mpi", "mpich": "mpi", "matplotlib": "plots"}


def run(args: argparse.Namespace) -> int:
    if args.mpi:
        return _run_mpi(args)
    if args.compile:
        return _run_compile(args)
    if args.costs:
        return _run_costs(args)
    record = _record()
    return output.show(args, record, output.facts(_lines(record)))


def _run_mpi(args: argparse.Namespace) -> int:
    from adfs.mpi.communicator import Communicator
    from adfs.mpi.measure import measure

    with Communicator.open() as world:
        found = measure(world)
    return 0 if world.rank else output.show(args, {**_record(), "mpi": found}, _mpi_text(found))


def _mpi_text(found: dict[str, Any]) -> str:
    """What was measured where, the table, the fitted line, and how to use them."""
    how = "MPI's C functions" if found["compiled"] else "mpi4py, message by message"
    bandwidth, row = found["bandwidth_gb_s"], found["sizes"][0]
    crowded = "There are more ranks than cores on a host: times include waiting for a core.\n"
    rows = [[cell.format(**each) for cell in COLUMNS.values()] for each in found["sizes"]]
    table = output.table(list(COLUMNS), rows, right=range(5))
    return (
        f"{found['ranks']} ranks on {count(found['hosts'], 'host')}, {found['library']}, {how}\n"
        f"{crowded if found['oversubscribed'] else ''}\n{table}\n"
        f"exchange = {found['latency_us']:.3g} us + 8 (features + 1) bytes / "
        f"{'any bandwidth' if bandwidth is None else f'{bandwidth:.3g} GB/s'}, "
        f"off by at most {100 * found['fit_error']:.0f} %\n"
        "tau is an exchange in proximal steps of dense rows: take the line nearest to your number\n"
        f"of features, here --tau {row['tau']:.3g} for {row['n_features']} features. On rows with "
        "few non-zeros a step\ntakes less time, so tau is larger in the same proportion.\n"
    )


def _run_costs(args: argparse.Namespace) -> int:
    found, place = Costs.measured(again=True), stored_place()
    rows = []
    for kind, size in ROW_SIZES:
        costs = found.at(kind == "sparse", size)
        values = {name: float(each[0]) for name, each in costs._asdict().items()}
        values["seconds"] *= 1e9
        rows.append([cell.format(kind=kind, size=size, **values) for cell in COSTS.values()])
    where = f"stored in {place}" if place.is_file() else f"not stored: {place} cannot be written"
    text = (
        "in proximal steps, of one sample on one core; of a factorisation, for as many features\n\n"
        f"{output.table(list(COSTS), rows, right=range(1, len(COSTS)))}\n"
        f"{where}; --costs measured charges this\n"
    )
    return output.show(args, {**_record(), "costs": found.to_dict()}, text)


def _run_compile(args: argparse.Namespace) -> int:
    from adfs.compilation import compile_all

    compile_notice.enabled = False  # it would announce less time than this takes
    done = compile_all()
    text = (
        f"compiled {done.n_compiled} kernels in {done.seconds:.1f} s, found {done.n_loaded} "
        f"compiled before; all are in {done.folder}\n"
    )
    return output.show(args, done._asdict(), text)


def _record() -> dict[str, Any]:
    usable = getattr(os, "sched_getaffinity", None)  # the cores that this process may use
    stats = getattr(run_events, "stats", None)  # absent where NUMBA_DISABLE_JIT is set
    cache = None if stats is None else stats.cache_path
    sizes = [file.stat().st_size for file in Path(cache).glob("*.nbc")] if cache else []
    fault, found = None, list[str]()
    try:
        found = [dataset.name for dataset, path in available() if path is not None]
    except DataError as error:
        fault = str(error)
    folder, costs = os.environ.get("ADFS_DATA") or None, Costs.stored()
    return {
        "adfs": adfs.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(usable(0)) if usable else os.cpu_count() or 1,
        "versions": {name: _version(name) for name in NEEDED},
        "extras": {name: _version(name) for name in EXTRAS},
        "algorithms": adfs.algorithms(),  # type: ignore[operator]
        "numba_cache": {"path": cache, "n_compiled": len(sizes), "bytes": sum(sizes)},
        "data": {"ADFS_DATA": folder, "cache": str(cache_folder()), "found": found, "fault": fault},
        "costs": None if costs is None else costs.to_dict(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _lines(record: dict[str, Any]) -> list[tuple[str, str]]:
    data, cache = record["data"], record["numba_cache"]
    kept = f"{cache['n_compiled']} compiled functions, {cache['bytes'] / 1e6:.1f} MB"
    compiled = (
        f"{cache['path']} ({kept if cache['n_compiled'] else 'empty: the first run compiles'})"
    )
    if cache["path"] is None:
        compiled = "none: NUMBA_DISABLE_JIT is set, kernels run uncompiled"
    install = "not installed; pip install '.[{}]' in the folder of adfs's source"
    return [
        ("adfs", record["adfs"]),
        ("python", f"{record['python']} on {record['platform']}"),
        ("cores", str(record["cores"])),
        *((name, version or "not installed") for name, version in record["versions"].items()),
        *((name, version or install.format(EXTRAS[name]))
          for name, version in record["extras"].items()),
        ("algorithms", ", ".join(record["algorithms"])),
        ("numba cache", compiled),
        ("ADFS_DATA", data["fault"] or data["ADFS_DATA"] or "not set"),
        ("downloads", data["cache"]),
        ("on disk", ", ".join(data["found"]) or "none of the known data sets"),
        ("costs", "not measured yet; adfs info --costs" if record["costs"] is None
         else f"measured, in {stored_place()}"),
    ]  # fmt: skip
