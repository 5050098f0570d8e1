"""Every method on two tiny problems beside earlier times: time to a squared distance of 1e-8.

A 3x3 grid, d = 5, tau = 5, m = 20 and m = 200 standard normal rows per node, sigma = 1: condition
numbers close to the earlier ones. Not a ranking; it tells whether a method is of the size expected.
`python benchmarks/orientation.py`
"""

import numpy as np

import adfs
from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import MethodSetting, get_algorithm

GOAL = 1e-8
SEEDS = 3
# name:rule and clock, with the earlier times for m = 20 and m = 200 where there are any
CASES = {
    ("point-saga", "theory", "nonblocking"): (2400, 19740),
    ("ssda", "theory", "nonblocking"): (1500, 22550),
    ("msda", "theory", "nonblocking"): (870, 12600),
    ("msda", "tuned", "nonblocking"): (None, None),
    ("esdacd", "theory", "rendezvous"): (3475, 58015),
    ("esdacd", "tuned", "rendezvous"): (None, None),
    ("dsba", "theory", "nonblocking"): (50400, 300600),
    ("dsba", "paper", "nonblocking"): (8400, 50160),
    ("dsba", "tuned", "nonblocking"): (None, None),
    ("katyusha", "theory", "nonblocking"): (1840, 5890),
    ("katyusha", "tuned", "nonblocking"): (None, None),
    ("l-katyusha", "theory", "nonblocking"): (2200, 8399),
    ("l-katyusha", "tuned", "nonblocking"): (None, None),
    ("adfs", "exact", "rendezvous"): (2662, 11050),
    ("adfs", "exact", "nonblocking"): (2042, 9003),
    ("adfs", "tuned", "nonblocking"): (None, None),
    ("newton", "theory", "nonblocking"): (None, None),
    ("lbfgs", "theory", "nonblocking"): (None, None),
}


def problem_of(m, seed):
    """Standard normal rows, labels from a model and noise."""
    random = np.random.default_rng([seed, m])
    X = random.standard_normal((9 * m, 5))
    y = np.sign(X @ random.standard_normal(5) + random.standard_normal(9 * m))
    shards = adfs.partition(X, y, 9, how="contiguous")
    return adfs.Problem(shards, sigma=1.0, topology=adfs.Topology.grid(3, 3))


def time_to_goal(problem, name, rule, clock, seed):
    """Idealized time until the mean squared distance to the optimum is a 1e-8th of its start."""
    setting = MethodSetting(rule=rule, tau=5.0, clock=clock, delays=adfs.Delays(tau=5.0), seed=seed)
    method = get_algorithm(name)(problem, setting)
    best = problem.optimum().theta
    state, t, step = method.algorithm.init(), 0, max(1, round(0.02 / method.rho))
    while True:
        events = method.source.draw(t, t + min(step, max(1, t // 50)))
        state = method.algorithm.step(state, events)
        method.clock.advance(events)
        t = events.stop
        error = np.mean(np.sum((method.algorithm.output(state) - best) ** 2, axis=1))
        if error < GOAL * (best @ best):
            return method.clock.time


def main():
    problems = {m: [problem_of(m, seed) for seed in range(SEEDS)] for m in (20, 200)}
    for m, each in problems.items():
        numbers = [(p.conditioning.kappa_s, p.conditioning.kappa_b()) for p in each]
        print(f"m = {m}: kappa_s, kappa_b =", *(f"{s:.0f}, {b:.0f};" for s, b in numbers))
    print("| method | clock | m = 20 | earlier | m = 200 | earlier |\n|---|---|---|---|---|---|")
    for (name, rule, clock), given in CASES.items():
        cells = []
        for m, spec in zip(problems, given, strict=True):
            times = [time_to_goal(p, name, rule, clock, k) for k, p in enumerate(problems[m])]
            cells += [f"{np.median(times):,.0f}", "" if spec is None else f"{spec:,}"]
        print(f"| {name}, {rule} | {clock} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
