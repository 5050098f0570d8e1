"""Two ranks on two cores against one, the same nodes, the same bits; and against Dask-ML.

    python benchmarks/mpi_scaling.py [--data covtype] [--rounds 7]
    python benchmarks/mpi_scaling.py --method newton --method lbfgs --data covtype --rounds 7

The goal is 1.6 times the speed of one rank to the same relative gap. Ranks are bound to cores, BLAS
has one thread, runs on one and on two ranks take turns, and medians are told. ``wall_time`` is the
loop's, as in the trace (without set-up and evaluations); ``all`` is everything from rows in memory
to the model. Suboptimality is measured by `Problem.objective` for everybody. With ``--method`` the
table is of these methods instead of ADFS, without Dask-ML.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import on_ranks
from common import ONE_THREAD, has_mpi, print_head, print_row, write_record

import adfs
from adfs.data.npz import save_npz
from adfs.problem.certificate import relative

N_NODES = 4
TOTAL_SIGMA = 4.0  # 1 a node
TOL, TARGET = 1e-6, 1e-6
LADDER = (1e-4, 1e-5, 3e-6, 1e-6)  # relative gaps at which ADFS may end; the suboptimality decides
DATA = {"higgs": 7, "covtype": 3}  # rounds
KINDS = ("computing", "waiting", "scheduling", "reading")
GOAL = 1.6


def measured_tau(path, n_features):
    """An exchange of d + 1 numbers in proximal steps on these rows, and what both take."""
    told = json.loads(on_ranks.launch(2, "-m", "adfs", "info", "--mpi", "--json"))
    sizes = told["mpi"]["sizes"]
    exchange = np.interp(
        n_features, [row["n_features"] for row in sizes], [row["exchange_us"] for row in sizes]
    )
    (run,) = on_ranks.solve(1, path, N_NODES, TOTAL_SIGMA, [_run(5.0, "shared", 1e-3)])
    prox = 1e6 * run["ranks"][0]["computing"] / run["n_prox"]
    return {"tau": float(exchange / prox), "exchange_us": float(exchange), "prox_us": prox}


def _run(tau, schedule, tol=TOL):
    return {"algorithm": "adfs", "tau": tau, "schedule": schedule, "tol": tol}


def one_round(path, runs):
    """Results on one rank, on two, and of all rows at one node; in turns."""
    alone = [_run(5.0, "shared")]
    jobs = {"one": (1, N_NODES, runs), "two": (2, N_NODES, runs), "single": (1, 1, alone)}
    results = {
        name: on_ranks.solve(n_ranks, path, n_nodes, TOTAL_SIGMA, wanted)
        for name, (n_ranks, n_nodes, wanted) in jobs.items()
    }
    results["single"] *= len(runs)
    return results


def summarise(rounds, k, run):
    """A row of the table: medians over rounds of the ``k``-th run."""
    one, two, single = ([each[name][k] for each in rounds] for name in ("one", "two", "single"))
    return {
        **run, **paired(one, two), "p_comm": two[0]["p_comm"],
        "single": _median(single, "wall_time"), "all_single": _median(single, "seconds"),
    }  # fmt: skip


def paired(one, two):
    """Medians of one rank and of two, their ratio in each turn; the bits must be the same."""
    pairs = list(zip(one, two, strict=True))
    if any(a["theta"] != b["theta"] or a["iterations"] != b["iterations"] for a, b in pairs):
        raise AssertionError("one rank and two have different bits")
    ratios, all_ratios = (
        [a[name] / b[name] for a, b in pairs] for name in ("wall_time", "seconds")
    )
    return {
        "events": two[0]["iterations"],
        "one": _median(one, "wall_time"), "two": _median(two, "wall_time"),
        "ratio": float(np.median(ratios)), "least": min(ratios), "most": max(ratios),
        "all_one": _median(one, "seconds"), "all_two": _median(two, "seconds"),
        "all_ratio": float(np.median(all_ratios)), "shares": shares(two),
    }  # fmt: skip


def _median(results, name):
    return float(np.median([each[name] for each in results]))


def shares(results):
    """Where two ranks' time went: medians of each kind's share."""
    table = []
    for each in results:
        total = {kind: sum(rank[kind] for rank in each["ranks"]) for kind in KINDS}
        whole = sum(total.values())
        table.append([total[kind] / whole for kind in KINDS])
    return dict(zip(KINDS, np.median(table, axis=0).tolist(), strict=True))


def scaling(path, n_features, n_rounds):
    """The table of one data set; prints and returns its rows."""
    tau = measured_tau(path, n_features)
    print(f"measured: an exchange {tau['exchange_us']:.2f} us, a proximal step "
          f"{1e3 * tau['prox_us']:.0f} ns, so tau = {tau['tau']:.2g}")  # fmt: skip
    runs = [_run(t, s) for t in (tau["tau"], 5.0) for s in ("shared", "poisson")]
    rounds = [one_round(path, runs) for _ in range(n_rounds)]
    rows = [summarise(rounds, k, run) for k, run in enumerate(runs)]
    others = max(job[0]["others"] for each in rounds for job in each.values())
    print(f"{n_rounds} rounds; cores in use by others meanwhile: at most {others:.2f}")
    print_head("schedule", "tau", "p_comm", "events", "1 rank", "2 ranks", "ratio (range)",
               "1 node", "with set-up: 1, 2 ranks, 1 node", "waiting", "scheduling",
               "reading")  # fmt: skip
    for row in rows:
        part = {kind: f"{100 * share:.1f} %" for kind, share in row["shares"].items()}
        cells = [row["schedule"], f"{row['tau']:.2g}", f"{row['p_comm']:.2g}",
                 f"{row['events'] / 1e6:.2f} M", f"{row['one']:.3f} s", f"{row['two']:.3f} s",
                 f"**{row['ratio']:.2f}** ({row['least']:.2f} to {row['most']:.2f})",
                 f"{row['single']:.3f} s",
                 f"{row['all_one']:.2f}, {row['all_two']:.2f}, {row['all_single']:.2f} s",
                 part["waiting"], part["scheduling"], part["reading"]]  # fmt: skip
        print_row(*cells)
    return {"tau": tau, "others": others, "rows": rows}


def methods_scaling(path, names, n_rounds):
    """The same for other methods; prints and returns the rows."""
    runs = [{"algorithm": name, "tol": TOL} for name in names]
    turns = [
        [on_ranks.solve(size, path, N_NODES, TOTAL_SIGMA, runs) for size in (1, 2)]
        for _ in range(n_rounds)
    ]
    rows = [
        {"algorithm": name, **paired([a[k] for a, _ in turns], [b[k] for _, b in turns])}
        for k, name in enumerate(names)
    ]
    others = max(job[0]["others"] for turn in turns for job in turn)
    print(f"{n_rounds} turns; cores in use by others meanwhile: at most {others:.2f}")
    print_head("method", "rounds", "1 rank", "2 ranks", "ratio (range)",
               "with set-up: 1, 2 ranks, ratio", "waiting", "reading")  # fmt: skip
    for row in rows:
        cells = [row["algorithm"], f"{row['events']}", f"{row['one']:.3f} s", f"{row['two']:.3f} s",
                 f"**{row['ratio']:.2f}** ({row['least']:.2f} to {row['most']:.2f})",
                 f"{row['all_one']:.2f}, {row['all_two']:.2f} s, {row['all_ratio']:.2f}",
                 f"{100 * row['shares']['waiting']:.1f} %",
                 f"{100 * row['shares']['reading']:.1f} %"]  # fmt: skip
        print_row(*cells)
    return {"others": others, "rows": rows}


def time_to_target(path, problem, tau):
    """Seconds of two ranks to the target: the fastest end of the ladder that reached it."""
    runs = [_run(tau, schedule, tol) for tol in LADDER for schedule in ("shared", "poisson")] * 3
    goal = problem.optimum().objective
    found = on_ranks.solve(2, path, N_NODES, TOTAL_SIGMA, runs)
    reached = {}
    for run, result in zip(runs, found, strict=True):
        error = relative(problem.objective(np.array(result["theta"])) - goal, goal)
        if error <= TARGET:
            reached.setdefault((run["schedule"], run["tol"]), []).append(result["seconds"])
    schedule, tol = min(reached, key=lambda key: np.median(reached[key]))
    return {"seconds": float(np.median(reached[schedule, tol])), "schedule": schedule, "tol": tol}


def against_dask(path, problem, tau):
    """ADFS on two ranks beside Dask-ML on two workers; None where Dask-ML is not installed."""
    peer = Path(__file__).with_name("dask_peer.py")
    run = subprocess.run(
        [sys.executable, str(peer), path, str(TOTAL_SIGMA), str(TARGET)], capture_output=True,
        text=True, env=os.environ | ONE_THREAD, check=False,
    )  # fmt: skip
    if run.returncode:
        print(f"Dask-ML: not run ({(run.stderr.strip().splitlines() or ['no reason'])[-1]})")
        return None
    ours, theirs = time_to_target(path, problem, tau), json.loads(run.stdout)
    print(f"to a suboptimality of {TARGET:.0e}: ADFS {ours['seconds']:.2f} s "
          f"({ours['schedule']}, ended at gap {ours['tol']:.0e})")  # fmt: skip
    for solver, runs in theirs.items():
        last = runs[-1]
        words = f"{last['seconds']:.2f} s, {last['max_iter']} iterations"
        if last["error"] <= TARGET:
            print(
                f"  Dask-ML {solver}: {words}, {last['seconds'] / ours['seconds']:.1f} times ours"
            )
        else:
            least = min(each["error"] for each in runs)
            print(f"  Dask-ML {solver}: not reached, {least:.1e} in {words}")
    return {"adfs": ours, "dask": theirs}


def main(n_rounds=None, names=tuple(DATA), methods=(), limit=None):
    """Print the tables; returns them."""
    if not has_mpi():
        return None
    results = {}
    for name in names:
        X, y = adfs.datasets.load(name)
        X, y = X[:limit], np.where(y[:limit] == np.max(y), 1.0, -1.0)
        print(f"\n{name}: {X.shape[0]:,} x {X.shape[1]}, {N_NODES} nodes, relative gap "
              f"{TOL:.0e}, total sigma {TOTAL_SIGMA:g}")  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "rows.npz")
            save_npz(path, X, y)
            if methods:
                table = methods_scaling(path, methods, n_rounds or DATA[name])
            else:
                table = scaling(path, X.shape[1], n_rounds or DATA[name])
                problem = adfs.Problem([(X, y)], sigma=TOTAL_SIGMA)
                table["dask"] = against_dask(path, problem, table["tau"]["tau"])
        results[name] = table
        ratios = [row["ratio"] for row in table["rows"]]
        print(f"{name}: two ranks {min(ratios):.2f} to {max(ratios):.2f} times one (goal {GOAL})")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--data", choices=list(DATA), action="append")
    parser.add_argument("--method", action="append", help="instead of ADFS; may be repeated")
    parser.add_argument("--rows", type=int, help="only the first rows")
    parser.add_argument("--out", help="a JSON file for the tables")
    options = parser.parse_args()
    found = main(options.rounds, options.data or tuple(DATA), options.method or (), options.rows)
    if options.out:
        write_record(options.out, found)
