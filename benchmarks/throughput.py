"""Events per second in one process, beside the authors' published code (2019) on its own sizes."""

from event_cost import measure

import adfs
from adfs.data.generators import two_gaussians

# Events per second of the authors' code, measured elsewhere on other hardware, not by this project.
AUTHORS = {300: 5_969.0, 10_000: 1_051.0}
GOALS = {300: 500.0, 10_000: 2_000.0}


def main():
    """One row a size; returns the rows."""
    rows = []
    for m, theirs in AUTHORS.items():
        X, y = two_gaussians(4 * m, 30, seed=0)
        problem = adfs.Problem(adfs.partition(X, y, 4), topology=adfs.Topology.grid(2, 2))
        cost = measure(problem)
        ours = 1e9 / (cost["draw"] + cost["move"] + cost["clock"])
        row = {"n": 4, "m": m, "d": 30, "events_per_second": ours, "ratio": ours / theirs,
               "goal": GOALS[m]}  # fmt: skip
        rows.append(row)
        print(f"n=4 m={m} d=30: {ours:,.0f} events/s, {ours / theirs:,.0f} times the authors' "
              f"{theirs:,.0f} (goal {GOALS[m]:,.0f})")  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
