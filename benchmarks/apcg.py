"""Generalized APCG: restarts, the trial before Corollary 1, gossip, and the time to set up.

    python benchmarks/apcg.py

Numbers of `docs/algorithms/apcg.md`. All but the seconds are the same on every machine.
"""

import time

import numpy as np
import scipy.sparse as sp

import adfs
from adfs import LeastSquares, Penalty, Quadratic, apcg

PASSES = (50, 100, 170, 500, 2_000)


def lasso(rows=60, columns=200, share=0.1):
    """Gaussian columns, three of them in use, and a share of the strength that leaves none."""
    generator = np.random.default_rng(0)
    K = generator.standard_normal((rows, columns))
    c = K[:, :3].sum(axis=1) + 0.3 * generator.standard_normal(rows)
    return LeastSquares(K, c), Penalty(l1=share * np.abs(K.T @ c).max())


def restarts():
    """Error of a lasso without strong convexity after so many passes, with and without restarts."""
    f, psi = lasso()
    table = []
    print("lasso, 60 rows, 200 columns, 10% of the largest strength: error after so many passes")
    print(f"{'passes':>8}{'restarts':>12}{'none':>12}")
    for passes in PASSES:
        errors = [
            apcg(f, psi, tol=1e-16, max_iter=passes * f.size, restart=restart).error
            for restart in (True, False)
        ]
        print(f"{passes:>8}" + "".join(f"{error:>12.1e}" for error in errors), flush=True)
        table.append({"passes": passes, "restarts": errors[0], "none": errors[1]})
    return table


def ill_conditioned(seed):
    """A least-squares problem whose columns differ in size by up to 1,000, and a penalty."""
    generator = np.random.default_rng(seed)
    n = int(generator.choice([8, 30]))
    K = generator.standard_normal((2 * n, n)) * 10.0 ** generator.uniform(-1.5, 1.5, n)
    K[:, : n // 3] = K[:, -(n // 3) :] + 0.05 * K[:, : n // 3]
    c = generator.standard_normal(2 * n)
    psi = (Penalty(), Penalty(l1=1.0), Penalty(low=-0.1), Penalty(l1=0.1, high=0.1))[seed % 4]
    return LeastSquares(K, c), psi


def forms(n_problems=60, tol=1e-8):
    """Iterations of `auto` beside those of Corollary 1 alone."""
    table = []
    for seed in range(n_problems):
        f, psi = ill_conditioned(seed)
        alone, auto = (apcg(f, psi, form=form, tol=tol) for form in ("strongly-convex", "auto"))
        trial = apcg(f, psi, tol=0.0, max_iter=0).parameters.form == "convex"
        table.append({
            "alone": alone.iterations, "auto": auto.iterations, "trial": trial,
            "ended": auto.parameters.form,
        })  # fmt: skip
    tried = [row for row in table if row["trial"]]
    ratios = np.array([row["auto"] / row["alone"] for row in tried])
    found = sum(row["ended"] == "convex" for row in tried)
    print(
        f"{n_problems} ill-conditioned problems to {tol:g}: a trial in {len(tried)}, of which "
        f"{found} ended there; iterations against Corollary 1 alone: typically "
        f"{np.exp(np.log(ratios).mean()):.2f} times, between {ratios.min():.3f} and "
        f"{ratios.max():.2f}; all together {sum(row['auto'] for row in tried):.3g} against "
        f"{sum(row['alone'] for row in tried):.3g}",
        flush=True,
    )
    return table


def ring(n):
    """A ring and its incidence matrix, a column e_k - e_l an edge."""
    topology = adfs.Topology.ring(n)
    ends = np.concatenate(topology.edges.T)
    edge = np.tile(np.arange(topology.n_edges), 2)
    signs = np.repeat([1.0, -1.0], topology.n_edges)
    return topology, sp.csc_array((signs, (ends, edge)), (n, topology.n_edges))


def accelerated(topology, incidence, values, seed, every, n_iterations):
    """Squared distances to consensus of ``c - A lambda_t``."""
    seen = []
    apcg(
        LeastSquares(incidence, values), R=topology.spectrum.resistances,
        sigma_A=topology.spectrum.lambda_min, form="strongly-convex", tol=0.0,
        max_iter=n_iterations, check_every=every, seed=seed,
        callback=lambda reading: seen.append(values - incidence @ reading.x_t),
    )  # fmt: skip
    return [np.sum((each - values.mean()) ** 2) for each in seen]


def randomized(topology, values, seed, every, n_iterations):
    """The same of randomized gossip: an edge drawn uniformly averages its two ends."""
    drawn = np.random.default_rng(seed).integers(topology.n_edges, size=n_iterations)
    errors, now = [np.sum((values - values.mean()) ** 2)], values.copy()
    for t, (k, l) in enumerate(topology.edges[drawn].tolist(), start=1):
        now[k] = now[l] = (now[k] + now[l]) / 2
        if t % every == 0:
            errors.append(np.sum((now - values.mean()) ** 2))
    return errors


def rate(runs, every):
    """Slope of the log error of a typical run, its first fifth left out."""
    typical = np.mean(np.log(runs), axis=0)
    first = len(typical) // 5
    return -np.polyfit(every * np.arange(first, len(typical)), typical[first:], 1)[0]


def gossip(n=30):
    """Rates at which the squared distance to consensus shrinks an iteration."""
    topology, incidence = ring(n)
    spectrum, values = topology.spectrum, np.random.default_rng(0).standard_normal(n)
    proven = (
        np.sqrt(spectrum.lambda_min / (2 * spectrum.resistances.max())) / topology.n_edges,
        spectrum.lambda_min / (2 * topology.n_edges),
    )
    measured = (
        rate([accelerated(topology, incidence, values, s, 100, 3000) for s in range(16)], 100),
        rate([randomized(topology, values, s, 500, 15000) for s in range(8)], 500),
    )
    print(f"gossip on a ring of {n}: rates     proven   measured")
    rows = zip(("accelerated", "randomized", "ratio"), (*proven, proven[0] / proven[1]),
               (*measured, measured[0] / measured[1]), strict=True)  # fmt: skip
    for name, known, found in rows:
        print(f"{name:>26}{known:>14.3g}{found:>11.3g}", flush=True)
    return {"proven": proven, "measured": measured}


def setting_up(sizes=(2_000, 4_000, 8_000, 16_000)):
    """Seconds until the parameters of a random sparse problem, and of a grid, are known."""
    table = []
    for n in sizes:
        K = sp.random_array(
            (2 * n, n), density=10 / n, random_state=np.random.default_rng(0), format="csr"
        )  # fmt: skip
        side = int(np.sqrt(n))
        line = sp.diags_array([-np.ones(side - 1)] * 2, offsets=[-1, 1]) + 2.1 * sp.eye_array(side)
        one = sp.eye_array(side)
        grid = Quadratic(sp.csr_array(sp.kron(line, one) + sp.kron(one, line)), np.ones(side**2))
        row = {"size": n}
        for name, f in (("random", LeastSquares(K, np.ones(2 * n))), ("grid", grid)):
            start = time.perf_counter()
            sigma_A = f.geometry().sigma_A
            row[name] = time.perf_counter() - start
            row[f"sigma_A of {name}"] = sigma_A
        print(
            f"setting up {n} coordinates: random {row['random']:.2f} s "
            f"(sigma_A = {row['sigma_A of random']:.3g}), grid {row['grid']:.2f} s "
            f"(sigma_A = {row['sigma_A of grid']:.3g})",
            flush=True,
        )
        table.append(row)
    return table


def main():
    """All tables; returns them."""
    return {
        "restarts": restarts(), "forms": forms(), "gossip": gossip(), "setting up": setting_up()
    }  # fmt: skip


if __name__ == "__main__":
    main()
