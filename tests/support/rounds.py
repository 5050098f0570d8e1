"""Runs of methods in rounds beside their oracles, and the numbers that their theorems speak of."""

import numpy as np
import scipy.linalg

import adfs
from oracles import losses, mixing
from support.problems import make_case


def weights_of(problem, kind="metropolis"):
    """The mixing matrix, from the oracle."""
    edges = [(int(k), int(l)) for k, l in problem.topology.edges]
    return getattr(mixing, kind.replace("-", "_"))(problem.n_nodes, edges)


def gradients_of(case):
    """``grads(X)``: the gradient of each node at its row of X, sample by sample."""
    sigma, loss = case.problem.sigma, case.problem.loss.name

    def grads(X):
        out = np.array([s * x for s, x in zip(sigma, X, strict=True)])
        for i, (rows, labels, weights) in enumerate(case.shards):
            for x, y, w in zip(rows, labels, weights, strict=True):
                out[i] += losses.derivative(loss, x @ X[i], y, w) * x
        return out

    return grads


def estimates_of(case, method, batch=1):
    """``grads(t, X)``: estimates from the rows that the method draws in round t."""
    sigma, loss, law = case.problem.sigma, case.problem.loss.name, mixed_law(case)
    sampler = method.algorithm.nodes.sampler()
    rows, labels, weights = (np.concatenate(part) for part in zip(*case.shards, strict=True))

    def grads(t, X):
        out = np.array([s * x for s, x in zip(sigma, X, strict=True)])
        for i, places in enumerate(sampler.draw(t, batch)):
            for j in places:
                slope = losses.derivative(loss, rows[j] @ X[i], labels[j], weights[j])
                out[i] += slope / (law[j] * len(places)) * rows[j]
        return out

    return grads


def mixed_law(case):
    """Half uniform, half by smoothness: chances of all rows."""
    bound = losses.curvature_bound(case.problem.loss.name)
    parts = [bound * w * np.sum(rows**2, axis=1) for rows, _, w in case.shards]
    return np.concatenate([0.5 / len(part) + 0.5 * part / part.sum() for part in parts])


def iterates(problem, name, rounds, theta=None, seed=0, rule="tuned", every=1):
    """The method, and its models X_0, X_1 ... as an array."""
    method = adfs.prepare(problem, name, rule=rule, seed=seed)
    state, found = method.algorithm.init(theta), []
    for t in range(0, rounds, every):
        found.append(method.algorithm.output(state))
        state = method.algorithm.step(state, method.source.draw(t, t + every))
    return method, np.array([*found, method.algorithm.output(state)])


def distances(problem, points):
    """``|X_t - X*|`` of all nodes together."""
    return np.linalg.norm(points - problem.optimum().theta, axis=(1, 2))


def decreasing_steps(method, rounds):
    """``a_0, a_1 ...`` of methods whose steps decrease."""
    mean, first = method.algorithm.problem.sigma.mean(), method.algorithm.step_size
    return 2.0 / (mean * (np.arange(rounds) + 2.0 / (mean * first)))


def slope(times, values):
    """Of the straight line through logarithms."""
    return np.polyfit(np.log(times), np.log(values), 1)[0]


def quadratics(graph, kappa, n_features=12, seed=0):
    """Squared loss; every node has the Hessian diag(1 / kappa ... 1), and targets of its own."""
    topology = adfs.Topology.parse(graph)
    curvatures = np.geomspace(1.0 / kappa, 1.0, n_features)
    rows = np.diag(np.sqrt(curvatures - curvatures[0]))[1:]
    random = np.random.default_rng(seed)
    shards = [(rows, random.standard_normal(len(rows))) for _ in range(topology.n_nodes)]
    return adfs.Problem(shards, "squared", np.full(topology.n_nodes, 1.0 / kappa), topology)


def measured_fall(problem, name, rule="tuned", floor=1e-11):
    """``1 - r^2`` from the last part of a run, and the method."""
    method = adfs.prepare(problem, name, rule=rule)
    rounds = int(np.ceil(22.0 / method.rho))
    _, points = iterates(problem, name, rounds, rule=rule)
    found = distances(problem, points)
    found = found[: 1 + np.flatnonzero(found > floor * found[0])[-1]]
    last = len(found) - 1
    first = last // 2
    return 1.0 - (found[last] / found[first]) ** (2.0 / (last - first)), method


class Energy:
    """The quadratic function that the circle criterion promises, by a Riccati equation.

    In a mode ``e_{t+2} = (2 - p) e_{t+1} - (1 - p + q) e_t + b (w_{t+1} - w_t)``, with the state
    ``(e_t, e_{t+1} - b w_t)``; for the mean ``e_{t+1} = (1 - a c) e_t + a h w_t``. With ``P = A' P
    A + C' C + A' P B (1 - B' P B)^-1 B' P A`` for the system over ``r``, ``s' P s`` falls by
    ``r^2`` but for ``|w|^2 - |e|^2``, whose sum over modes is not positive.
    """

    def __init__(self, case, step, fall, modes):
        self.problem, self.grads = case.problem, gradients_of(case)
        smooth = self.problem.sigma + self.problem.conditioning.batch_smoothness()
        largest, mu = smooth.max(), self.problem.sigma.min()
        self.c, self.h, r = (largest + mu) / 2, (largest - mu) / 2, np.sqrt(1.0 - fall)
        values, self.vectors = np.linalg.eigh(weights_of(self.problem))
        self.best = self.problem.optimum().theta
        self.parts = []
        for value in values[:-1]:
            p, q, b = modes(value, step * self.c, step * self.h)
            A = np.array([[0.0, 1.0], [-(1 - p + q), 2 - p]])
            B = b * np.array([[1.0], [1.0 - p]])
            P = scipy.linalg.solve_discrete_are(A / r, B / r, np.diag([1.0, 0.0]), -np.eye(1))
            assert np.linalg.eigvalsh(P)[0] > 0.0
            assert (B.T @ P @ B).item() < r**2
            self.parts.append((b, P))
        one, push = (1 - step * self.c) / r, step * self.h / r
        self.mean = scipy.linalg.solve_discrete_are(
            np.array([[one]]), np.array([[push]]), np.eye(1), -np.eye(1)
        ).item()
        assert self.mean > 0.0

    def values(self, points):
        """The function at rounds 0, 1 ... of a run."""
        errors = points - self.best
        optimal = self.grads(np.tile(self.best, (len(self.vectors), 1)))
        found = []
        for t in range(len(points) - 1):
            change = self.grads(points[t]) - optimal
            w = self.vectors.T @ ((self.c * errors[t] - change) / self.h)
            e, later = self.vectors.T @ errors[t], self.vectors.T @ errors[t + 1]
            total = self.mean * np.sum(e[-1] ** 2)
            for k, (b, P) in enumerate(self.parts):
                state = np.array([e[k], later[k] - b * w[k]])
                total += np.sum(state * (P @ state))
            found.append(total)
        return np.array(found)


def falls_each_round(name, graph, loss, modes, rounds=400, rule="tuned"):
    """That the function falls by the method's rate in each round, on unequal nodes."""
    case = make_case(graph, loss, seed=6, n_features=3)
    theta = np.random.default_rng(2).standard_normal(3)
    method, points = iterates(case.problem, name, rounds, theta, rule=rule)
    fall = 0.999 * method.rho  # a strict inequality, so that the equation has a solution
    values = Energy(case, method.algorithm.step_size, fall, modes).values(points)
    seen = values[values > 1e-16 * values[0]]  # the optimum is known to about 1e-10
    assert len(seen) > 10
    assert np.all(seen[1:] <= (1.0 - fall) * (1.0 + 1e-9) * seen[:-1])
