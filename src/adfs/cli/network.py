"""`adfs info --mpi`: the table of what messages and proximal steps take."""

from collections.abc import Callable
from typing import Any

from adfs.cli import layout, output

HEADERS = ("features", "proximal step", "exchange", "slowest pair", "tau")


def run(as_json: bool, surroundings: Callable[[], dict[str, Any]]) -> int:
    """Measure on all ranks; rank 0 prints."""
    from adfs.distributed.measure import measure
    from adfs.launch.world import World

    with World.open() as world:
        found = measure(world)
    if world.rank > 0:
        return 0
    if as_json:
        output.emit_json({**surroundings(), "mpi": found})
    else:
        output.emit(text(found))
    return 0


def text(found: dict[str, Any]) -> str:
    """The table, the fit, and how to use them."""
    rows = [_cells(row) for row in found["sizes"]]
    return (
        _heading(found) + "\n" + layout.table(HEADERS, rows, right=range(len(HEADERS))) + "\n"
        f"exchange = {found['latency_us']:.3g} us + 8 (features + 1) bytes / "
        f"{_bandwidth(found['bandwidth_gb_s'])}, off by at most {100 * found['fit_error']:.0f} %\n"
        + _advice(found["sizes"][0])
    )  # fmt: skip


def _heading(found: dict[str, Any]) -> str:
    how = "MPI's C functions" if found["compiled"] else "mpi4py, message by message"
    line = (
        f"{found['ranks']} ranks on {_count(found['hosts'], 'host')}, {found['library']}, {how}\n"
    )
    if found["oversubscribed"]:
        line += "There are more ranks than cores on a host: times hold waiting for a core too.\n"
    return line


def _advice(row: dict[str, Any]) -> str:
    """How the numbers are used, with one of them."""
    return (
        "tau is an exchange in proximal steps of dense rows: take the line next to your number of\n"
        f"features and train with it, here --tau {row['tau']:.3g} for {row['n_features']} features."
        " On rows with few non-zeros\na step takes less, so tau is larger in the same proportion.\n"
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


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
