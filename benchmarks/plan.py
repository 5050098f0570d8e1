"""Plans beside runs: the regret of `algorithm="best"`, and predicted over measured idealized times.

Every setting of `plan_settings.py` is planned, all methods run to the same gap (those that take
more than four times the fastest are cut), and `best` runs with its pilots. Regret is the idealized
time of `best`, pilots included, over that of the fastest method.
"""

import argparse
import json
import math
import time
from collections import Counter
from pathlib import Path

import numpy as np
from common import print_head, print_row, provenance, write_record
from plan_settings import HELD_OUT, KNOWN

import adfs

TOL = 1e-6
FEW = ("msda", "ssda")  # of their iterations some end within ten, so each of them is looked at
CUT = 4.0  # times the fastest, at which a run is given up
SIMPLE = "newton if d <= 2,000, else lbfgs"


def time_to(result, tol=TOL):
    """Idealized time of the first evaluation at which the relative gap was at most ``tol``."""
    if result.status != "converged":
        return math.inf
    trace = result.trace
    gaps = np.array(trace["duality_gap"]) / np.abs(trace["objective"])
    return float(trace["idealized_time"][int(np.argmax(gaps <= tol))])


def measure(setting, problem, delays, predictions, known):
    """Time of every method, the likely fastest first; inf for what was cut."""
    fastest, found = min([math.inf, *known.values()]), dict(known)
    for each in predictions:
        if each.algorithm in known:
            continue
        limit = CUT * min(fastest, 20.0 * predictions[0].idealized_time)
        result = adfs.solve(
            problem, each.algorithm, TOL, tau=setting.tau, delays=delays, clock_limit=limit,
            evaluate_every=1 if each.algorithm in FEW else "curve", progress=False,
            schedule=schedule_of(each.algorithm),
        )  # fmt: skip
        found[each.algorithm] = time_to(result)
        fastest = min(fastest, found[each.algorithm])
    return found


def schedule_of(name):
    """ADFS at its best."""
    return "stratified" if name in ("adfs", "ns-adfs") else "shared"


def run(setting, known):
    """One row: what was predicted, what was measured (or known already), what `best` took."""
    started = time.process_time()
    problem = setting.problem()
    delays = setting.delays(problem.n_nodes)
    plan = adfs.plan(problem, setting.tau, TOL, delays=delays)
    measured = measure(setting, problem, delays, plan.predictions, known)
    best = adfs.solve(
        problem, "best", TOL, tau=setting.tau, delays=delays, evaluate_every="curve",
        progress=False,
    )  # fmt: skip
    spent = best.choice.idealized_time - best.idealized_time + time_to(best)
    return {
        "setting": setting.name, "d": problem.n_features, "n": problem.n_nodes,
        "predicted": {each.algorithm: each.idealized_time for each in plan.predictions},
        "basis": {each.algorithm: each.basis for each in plan.predictions},
        "measured": measured, "tried": best.choice.tried, "pilot": best.choice.pilot_time,
        "best": spent, "seconds": time.process_time() - started,
    }  # fmt: skip


def regrets(row):
    """Of `best` and of the simple rule; cut at four."""
    fastest = min(row["measured"].values())
    simple = row["measured"]["newton" if row["d"] <= 2000 else "lbfgs"]
    return row["best"] / fastest, min(simple / fastest, CUT)


def show(row):
    fastest = min(row["measured"], key=row["measured"].get)
    regret, simple = regrets(row)
    tried = " then ".join(name for name, _ in row["tried"])
    print_row(
        row["setting"], fastest, f"{row['measured'][fastest]:,.0f}", tried,
        f"{100 * row['pilot'] / row['measured'][fastest]:.1f} %", f"{regret:.2f}", f"{simple:.2f}",
    )  # fmt: skip


def summary(rows):
    """Regret over all rows, and how good predictions were."""
    ours, simple = np.array([regrets(row) for row in rows]).T
    print()
    print_head("rule", "median", "nine of ten", "worst", "mean log")
    for name, values in (("best", ours), (SIMPLE, simple)):
        nine = np.quantile(values, 0.9, method="inverted_cdf")
        print_row(
            name, f"{np.median(values):.2f}", f"{nine:.2f}", f"{values.max():.2f}",
            f"{np.log(values).mean():.3f}",
        )  # fmt: skip
    fastest = Counter(min(row["measured"], key=row["measured"].get) for row in rows)
    print("\nfastest:", ", ".join(f"{name} {count}" for name, count in fastest.most_common()))
    print()
    print_head("predicted over measured", "settings", "least", "median", "most", "within 1.5")
    for name in sorted({name for row in rows for name in row["measured"]}):
        ratios = np.array([
            row["predicted"][name] / row["measured"][name] for row in rows
            if math.isfinite(row["measured"].get(name, math.inf))
        ])  # fmt: skip
        if len(ratios):
            near = np.mean(np.abs(np.log(ratios)) <= math.log(1.5))
            print_row(
                name, f"{len(ratios)}", f"{ratios.min():.2f}", f"{np.median(ratios):.2f}",
                f"{ratios.max():.2f}", f"{100 * near:.0f} %",
            )  # fmt: skip


def main(settings, path=None, again=None):
    """Run what is not in the file yet; print a row per setting and the summary.

    ``again`` names methods that have changed since: they, the plan and `best` run again.
    """
    kept = json.loads(Path(path).read_text())["rows"] if path and Path(path).exists() else []
    rows = {row["setting"]: row for row in kept}
    print_head("setting", "fastest", "its time", "best took", "pilots", "regret", "simple rule")
    for setting in settings:
        known = rows[setting.name]["measured"] if setting.name in rows else {}
        if not known or again is not None:
            known = {name: time for name, time in known.items() if name not in (again or ())}
            rows[setting.name] = run(setting, known)
            if path is not None:
                record = {"provenance": provenance(), "rows": list(rows.values())}
                write_record(path, record)
        show(rows[setting.name])
    summary([rows[setting.name] for setting in settings])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", choices=("known", "held-out", "all"), default="all")
    parser.add_argument("--keep", help="JSON file that keeps what was run")
    parser.add_argument("--again", help="methods that changed, such as newton,tron; '' for none")
    args = parser.parse_args()
    groups = {"known": KNOWN, "held-out": HELD_OUT, "all": KNOWN + HELD_OUT}
    again = None if args.again is None else args.again.split(",")
    main(groups[args.settings], args.keep, again)
