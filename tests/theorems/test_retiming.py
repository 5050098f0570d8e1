"""``tau`` changes nothing but the clock: one run, timed again, equals separate runs."""

import numpy as np
import pytest

import adfs
from support.problems import gaussian_problem

TAUS = (0.1, 1.0, 5.0, 50.0, 500.0)


@pytest.mark.parametrize("clock", ["nonblocking", "rendezvous"])
@pytest.mark.parametrize("graph", ["grid:3x3", "star:5"])
def test_one_run_with_exact_parameters_timed_again_equals_separate_runs(graph, clock):
    n_samples = 30 * adfs.Topology.parse(graph).n_nodes
    problem = gaussian_problem(graph, sigma=1.0, samples=(n_samples, 4), seed=3)
    one = adfs.solve(problem, tol=1e-8, tau=5.0, clock=clock, parameters="exact")
    schedule = adfs.Schedule.sample(one.parameters, one.iterations, seed=0)
    times = []
    for tau in TAUS:
        other = adfs.solve(problem, tol=1e-8, tau=tau, clock=clock, parameters="exact")
        np.testing.assert_array_equal(other.thetas, one.thetas)
        assert other.iterations == one.iterations
        assert other.trace["duality_gap"] == one.trace["duality_gap"]
        assert schedule.times(tau=tau, clock=clock).max() == other.idealized_time
        times.append(other.idealized_time)
    assert (np.diff(times) > 0).all()
