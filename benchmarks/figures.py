"""`make figures`: pictures of the paper that need no other method beside ADFS; so far Figure 2."""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from adfs.schedule.schedule import Schedule
from adfs.schedule.timeline import intervals
from adfs.study.plots.timeline_plot import draw_timeline

NAMES = "ABCD"
EDGES = [(0, 2), (1, 3), (0, 1), (2, 3)]
EVENTS = [(0, 2), (1, 3), (0, 1), 3, (2, 3)]  # (A,C), (B,D), (A,B), (D), (C,D)


def figure_2(folder, tau=2.5):
    """The toy schedule under both clocks; says when each node is done."""
    schedule = Schedule.from_events(4, EDGES, EVENTS)
    figure, axes = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
    for axis, kind in zip(axes, ("rendezvous", "nonblocking"), strict=True):
        start = Schedule.from_events(4, EDGES, []).clock(tau, kind)
        draw_timeline(intervals(schedule.events(), start), 4, ax=axis, names=NAMES)
        axis.set_title(f"{kind} clock", loc="right")
        done = dict(zip(NAMES, schedule.times(tau, kind).tolist(), strict=True))
        print(f"Figure 2, {kind}, tau = {tau}: nodes are done at {done}")
    path = folder / "figure-2.png"
    figure.savefig(path, dpi=150)
    print(f"picture: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="figures-out", type=Path)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    figure_2(out)
