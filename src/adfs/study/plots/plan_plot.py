"""A plan as a picture: predicted times against the number of nodes, and against tau."""

from collections.abc import Sequence
from typing import Any

from adfs.plan.planning import Plan, PlanPoint
from adfs.study.plots.style import GREY, line_styles, new_axes, tidy

LIMIT = 100.0  # methods slower than so many times the fastest are left out


def draw_plan(plan: Plan, axes: Any = None) -> Any:
    """Draw time against nodes on the left, against tau on the right; the matplotlib axes."""
    axes = new_axes(11.0, 4.4, columns=2) if axes is None else axes
    fastest = plan.best.idealized_time
    names = [each.algorithm for each in plan.predictions if each.idealized_time <= LIMIT * fastest]
    times = {each.algorithm: each.idealized_time for each in plan.predictions}
    here = [PlanPoint(plan.graph, plan.sizes.n, plan.sizes.tau, times)]
    over_nodes, over_tau = plan.over_nodes or here, plan.over_tau or here
    _draw(axes[0], over_nodes, [point.n for point in over_nodes], names)
    _draw(axes[1], over_tau, [point.tau for point in over_tau], names)
    axes[0].axvline(plan.sizes.n, color=GREY, linewidth=1.0, zorder=0)
    axes[1].axvline(plan.sizes.tau, color=GREY, linewidth=1.0, zorder=0)
    axes[0].set(xlabel="nodes, with the same rows in total", ylabel="predicted idealized time")
    axes[1].set(xlabel="tau")
    for ax, points in zip(axes, (over_nodes, over_tau), strict=True):
        ax.set(xscale="log" if len(points) > 1 else "linear", yscale="log")
        tidy(ax, grid="y")
    axes[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def _draw(ax: Any, points: Sequence[PlanPoint], xs: Sequence[float], names: Sequence[str]) -> None:
    for name, style in zip(names, line_styles(names), strict=True):
        times = [point.times.get(name, float("nan")) for point in points]
        ax.plot(xs, times, markersize=4, **style.options())
