"""Small problems for generalized APCG, and the way from them to the oracle."""

import functools

import numpy as np
import scipy.sparse as sp

from adfs.apcg.apcg_parameters import CoordinateSampler
from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import LeastSquares, Quadratic, SmoothFunction
from adfs.apcg.solver import apcg
from oracles import apcg as oracle

N = 7
STRENGTHS = np.array([0.0, 0.3, 0.05, 0.2, 0.0, 0.6, 0.1])
SKEWED = np.array([0.01, 0.02, 0.05, 0.07, 0.1, 0.25, 0.5])
PENALTIES = {
    "zero": Penalty(),
    "l1": Penalty(l1=STRENGTHS),
    "l2": Penalty(l2=0.4),
    "box": Penalty(low=-0.2, high=np.linspace(0.0, 0.5, N)),
    "all": Penalty(l1=0.1, l2=STRENGTHS, low=-0.1, high=0.3),
}


@functools.cache
def quadratic(kind, seed=0):
    """(H, b, K, c): H = K'K and b = K'c; "regular", "singular" (R < 1), "split" or "narrow".

    In "split" the first three coordinates share a kernel and the other four have R = 1.
    """
    generator = np.random.default_rng(seed)
    K = generator.standard_normal((9, N)) * np.linspace(0.5, 2.0, N)
    if kind == "singular":
        K = K[:5]
    if kind == "split":
        K[:, :3] = 0.0
        K[:4, 3:] = 0.0
        K[0, :3], K[1, :3] = (1.0, -1.0, 0.0), (0.0, 1.0, -1.0)
    if kind == "narrow":
        K = np.vstack([K[:3], 0.05 * K[3:]])
    c = generator.standard_normal(len(K))
    return K.T @ K, K.T @ c, K, c


def as_function(kind, storage):
    H, b, K, c = quadratic(kind)
    return {
        "dense": lambda: Quadratic(H, b),
        "sparse": lambda: Quadratic(sp.csr_array(H), b),
        "columns": lambda: LeastSquares(K, c),
        "sparse columns": lambda: LeastSquares(sp.csc_array(K), c),
        "called": lambda: SmoothFunction(lambda i, y: H[i] @ np.asarray(y) - b[i], np.diag(H)),
    }[storage]()


def literal_prox(penalty):
    """prox_i as in Algorithm 2, by what each named penalty's optimality condition says."""
    l1, l2 = np.broadcast_to(penalty.l1, N), np.broadcast_to(penalty.l2, N)
    low, high = np.broadcast_to(penalty.low, N), np.broadcast_to(penalty.high, N)

    def prox(i, eta, z):
        # 0 = (x - z) / eta + l1 s + l2 x, s in [-1, 1] and s = sign(x) where x is not zero.
        sign = np.clip(z / (eta * l1[i]), -1, 1) if l1[i] > 0 else 0.0
        return np.median([low[i], (z - eta * l1[i] * sign) / (1 + eta * l2[i]), high[i]], axis=-1)

    return lambda i, eta, z: np.array([prox(i, eta, float(z[0]))])


def literal_gradient(H, b):
    return lambda i, y: H[i] @ y - b[i]


def iterates(f, psi, n_iterations, **options):
    """All x_t and v_t, and the parameters that were used."""
    seen = []
    result = apcg(
        f, psi, tol=0.0, max_iter=n_iterations, check_every=1, restart=False,
        callback=seen.append, **options,
    )  # fmt: skip
    x = np.array([reading.x_t for reading in seen])
    return x, np.array([reading.v_t for reading in seen]), result.parameters


def literal_iterates(H, b, prox, chosen, n_iterations, b_0=1.0, sequences=False):
    """The oracle's x_t and v_t for the same samples."""
    sequence = CoordinateSampler(chosen.p, 0).draw(0, n_iterations)
    arguments = literal_gradient(H, b), prox, (N, 1), chosen.R, chosen.p
    if chosen.form == "convex":
        start = oracle.convex_start(chosen.S, chosen.R, chosen.p, b_0)
        steps = oracle.generalized(*arguments, chosen.S, 0.0, *start, sequence)
    elif sequences:
        start = oracle.strongly_convex_start(chosen.sigma_A)
        steps = oracle.generalized(*arguments, chosen.S, chosen.sigma_A, *start, sequence)
    else:
        steps = oracle.strongly_convex(*arguments, chosen.rho, chosen.sigma_A, sequence)
    return (np.array(each)[:, :, 0] for each in zip(*steps, strict=True))


def column(b):
    return b[:, None]


def assert_same(actual, literal):
    """To 1e-12, relative to the largest number that occurs, where that is above 1."""
    size = max(1.0, np.abs(literal).max())
    np.testing.assert_allclose(actual, literal, rtol=0, atol=1e-12 * size)


def only_on(penalty, where):
    """The penalty on some coordinates only."""
    each = [np.broadcast_to(a, N) for a in (penalty.l1, penalty.l2, penalty.low, penalty.high)]
    free = (0.0, 0.0, -np.inf, np.inf)
    return Penalty(*(np.where(where, a, none) for a, none in zip(each, free, strict=True)))
