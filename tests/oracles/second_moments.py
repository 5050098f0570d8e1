"""Exact second moments of a method whose events are affine maps of its state.

With a squared loss every event e takes the state s to A_e s + b_e, and all events have one fixed
point. In differences to it E[s s^T] evolves by M -> sum_e p_e A_e M A_e^T: no seeds, no sampling
error. The spectral radius of this map is the factor by which every mean square falls in the end.
"""

import itertools
import math

import numpy as np
from scipy.linalg import expm

NEGLIGIBLE = 1e-7  # part of a unit vector outside a subspace that is rounding


def linear_part(step, fixed):
    """A of the affine map `step`, from the images of unit vectors; `fixed` must stay where it is.

    A second look at a random point makes sure that the map is affine.
    """
    size = 1.0 + np.max(np.abs(fixed))
    np.testing.assert_allclose(step(fixed), fixed, rtol=0, atol=1e-8 * size)
    a = np.column_stack([step(fixed + unit) - fixed for unit in np.eye(len(fixed))])
    point = np.random.default_rng(0).standard_normal(len(fixed))
    np.testing.assert_allclose(step(fixed + point) - fixed, a @ point, rtol=0, atol=1e-7 * size)
    return a


def form_of(energy, fixed):
    """Q with energy(fixed + s) = s^T Q s, by polarisation; the energy of `fixed` is 0."""
    units = np.eye(len(fixed))
    alone = np.array([energy(fixed + unit) for unit in units])
    q = np.diag(alone)
    for i, j in zip(*np.triu_indices(len(fixed), 1), strict=True):
        q[i, j] = q[j, i] = (energy(fixed + units[i] + units[j]) - alone[i] - alone[j]) / 2
    return q


def reachable(maps, start):
    """Orthonormal basis of the smallest subspace that holds `start` and that no map leaves."""
    basis = (start / np.linalg.norm(start))[:, None]
    while True:
        images = np.hstack([a @ basis for a in maps])
        outside = images - basis @ (basis.T @ images)
        outside -= basis @ (basis.T @ outside)
        left, sizes, _ = np.linalg.svd(outside, full_matrices=False)
        new = left[:, sizes > NEGLIGIBLE * np.linalg.norm(images, 2)]
        if not new.shape[1]:
            return basis
        basis = np.linalg.qr(np.hstack([basis, new]))[0]


def symmetric_matrix(change, size):
    """Matrix of a linear map of symmetric matrices, in the coordinates i <= j."""
    above = np.triu_indices(size)
    columns = []
    for i, j in zip(*above, strict=True):
        unit = np.zeros((size, size))
        unit[i, j] = unit[j, i] = 1.0
        columns.append(change(unit)[above])
    return np.array(columns).T


class Moments:
    """E[s s^T] of a method, from one start; s is the difference to the fixed point.

    `stages` are what happens one after the other in an iteration, over and over: each a list of
    (p_e, A_e).
    """

    def __init__(self, stages, start):
        self.basis = reachable([a for stage in stages for _, a in stage], start)
        self.stages = [[(p, self.within(a)) for p, a in stage] for stage in stages]
        assert all(abs(sum(p for p, _ in stage) - 1) < 1e-9 for stage in stages)
        self.start = self.basis.T @ start

    def within(self, matrix):
        """A map or a form on the reachable subspace."""
        return self.basis.T @ matrix @ self.basis

    def after(self, moment):
        """One iteration."""
        for stage in self.stages:
            moment = sum(p * a @ moment @ a.T for p, a in stage)
        return moment

    def rate(self):
        """-log of the spectral radius: mean squares fall like exp(-rate t) in the end."""
        values = np.linalg.eigvals(symmetric_matrix(self.after, len(self.start)))
        return -math.log(np.max(np.abs(values)))

    def means(self, form, n_iterations):
        """E[s_t^T Q s_t] for t = 0, ..., n_iterations."""
        cycle = itertools.cycle(self.stages)
        means = changing_means(
            cycle, self.start, self.within(form), n_iterations * len(self.stages)
        )
        return means[:: len(self.stages)]

    def deviations(self, form, n_iterations):
        """Standard deviations of s_t^T Q s_t."""
        stages = [[(p, lift(a)) for p, a in stage] for stage in self.stages]
        lifted = lift_start(self.start), lift_form(self.within(form))
        n_stages = len(stages)
        squares = changing_means(itertools.cycle(stages), *lifted, n_iterations * n_stages)
        return root(squares[::n_stages] - self.means(form, n_iterations) ** 2)


class ContinuousMoments(Moments):
    """The same where events are rung by Poisson clocks of rates p_e, and s' = F s in between."""

    def __init__(self, events, flow, start):
        super().__init__([[*events, (0.0, flow)]], start)
        (*self.events, (_, self.flow)) = self.stages[0]

    def speed(self, moment):
        """Derivative of the second moment."""
        jumps = sum(p * (a @ moment @ a.T - moment) for p, a in self.events)
        return self.flow @ moment + moment @ self.flow.T + jumps

    def rate(self):
        """Mean squares fall like exp(-rate t)."""
        values = np.linalg.eigvals(symmetric_matrix(self.speed, len(self.start)))
        return -np.max(values.real)

    def mean(self, form, time):
        """E[s^T Q s] at a time."""
        return self._mean(self.speed, self.start, self.within(form), time)

    def deviation(self, form, time):
        """Standard deviation of s^T Q s at a time."""
        size, form = len(self.start), self.within(form)
        flow = symmetric_matrix(lambda m: self.flow @ m + m @ self.flow.T, size)
        events = [(p, lift(a)) for p, a in self.events]

        def speed(moment):
            jumps = sum(p * (a @ moment @ a.T - moment) for p, a in events)
            return flow @ moment + moment @ flow.T + jumps

        square = self._mean(speed, lift_start(self.start), lift_form(form), time)
        return root(square - self._mean(self.speed, self.start, form, time) ** 2)

    @staticmethod
    def _mean(speed, start, form, time):
        through = expm(time * symmetric_matrix(speed, len(start)))
        return doubled(form) @ through @ lift_start(start)


def root(variance):
    """Standard deviation; a variance of 0 may be rounded below it."""
    return np.sqrt(np.maximum(variance, 0.0))


def lift(a):
    """What s -> A s does to s s^T, in the coordinates i <= j."""
    return symmetric_matrix(lambda moment: a @ moment @ a.T, len(a))


def lift_start(start):
    """s s^T in these coordinates."""
    return np.outer(start, start)[np.triu_indices(len(start))]


def doubled(form):
    """w with s^T Q s = w . (s s^T) in these coordinates."""
    above = np.triu_indices(len(form))
    return np.where(above[0] == above[1], 1.0, 2.0) * form[above]


def lift_form(form):
    """The square of s^T Q s as a form of s s^T."""
    return np.outer(doubled(form), doubled(form))


def changing_means(stages, start, form, n_iterations):
    """E[s_t^T Q s_t], t = 0, ..., n_iterations, where iteration t has the events stages[t]."""
    moment, found = np.outer(start, start), [start @ form @ start]
    for _, stage in zip(range(n_iterations), stages, strict=False):
        moment = sum(p * a @ moment @ a.T for p, a in stage)
        found.append(np.sum(form * moment))
    return np.array(found)


def changing_deviations(stages, start, form, n_iterations):
    """Standard deviations of the same."""
    lifted = [[(p, lift(a)) for p, a in stage] for stage in stages]
    squares = changing_means(lifted, lift_start(start), lift_form(form), n_iterations)
    return root(squares - changing_means(stages, start, form, n_iterations) ** 2)
