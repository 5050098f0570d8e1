"""Theorem 3: the time to accuracy of the paper's own parameters in the homogeneous setting."""

import math

import numpy as np
import pytest

import adfs
from adfs.algorithms.adfs import Adfs
from oracles import augmented, theory
from support.problems import EDGE_MU2, homogeneous_shards, literal, make_case

SIGMA = 0.4
GRAPHS = ("grid:3x3", "ring:8", "complete:6", "star:5")


class Constants:
    """The paper's constants of a homogeneous problem, all from the oracles."""

    def __init__(self, graph, n_samples, norm):
        topology = adfs.Topology.parse(graph)
        self.n = topology.n_nodes
        self.m = n_samples
        self.case = make_case(
            graph, sigma=SIGMA, shards=homogeneous_shards(self.n, n_samples, norm=norm)
        )
        self.edges = [(int(k), int(l)) for k, l in topology.edges]
        flat = augmented.smoothness(self.case.shards, "logistic")
        l_ij, sigma = flat.reshape(self.n, n_samples), [SIGMA] * self.n
        self.kappas = theory.kappa(l_ij, sigma)
        self.s_comp = theory.s_comp(l_ij, sigma)
        self.gamma_tilde = theory.gamma_tilde(
            self.n, self.edges, np.full(len(self.edges), EDGE_MU2)
        )

    @property
    def kappa_s(self):
        return max(self.kappas)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("n_samples", "norm"), [(5, 1.0), (5, 5.0), (60, 2.0)])
def test_p_comm_is_the_theorems_and_rho_is_above_the_papers_bound(graph, n_samples, norm):
    constants = Constants(graph, n_samples, norm)
    chosen = adfs.Parameters.choose(constants.case.problem, "paper")
    p_comm = theory.p_comm_theorem_3(constants.s_comp, constants.gamma_tilde, constants.kappa_s)
    assert chosen.p_comm == pytest.approx(p_comm, rel=1e-12)
    bound = theory.rho_lower_bound(
        constants.n, p_comm, constants.gamma_tilde, constants.kappas, constants.s_comp
    )
    assert chosen.rho >= bound * (1.0 - 1e-12)
    for how in ("exact", "projector"):
        better = adfs.Parameters.choose(constants.case.problem, how)
        if how == "exact":
            assert better.rho >= chosen.rho
        assert better.p_comm <= 0.5


@pytest.mark.parametrize("clock", ["nonblocking", "rendezvous"])
@pytest.mark.parametrize("tau", [1.5, 5.0])
@pytest.mark.parametrize("graph", GRAPHS)
def test_k_epsilon_iterations_take_the_theorems_time_with_c_below_24(graph, tau, clock):
    constants = Constants(graph, 20, 2.0)
    chosen = adfs.Parameters.choose(constants.case.problem, "paper", tau=tau, clock=clock)
    decades = math.log(1e8)
    n_events = math.ceil(decades / chosen.rho)
    taken = adfs.Schedule.sample(chosen, n_events, seed=2).times(tau=tau, clock=clock).max()
    promised = decades * theory.theorem_3_time(
        constants.m, constants.kappa_s, constants.gamma_tilde, tau
    )
    assert 0.1 < taken / promised < 4.0  # the theorem says 24


@pytest.mark.parametrize("graph", ["grid:3x3", "star:5"])
def test_k_epsilon_iterations_reach_c0_epsilon(graph):
    constants = Constants(graph, 8, 2.0)
    case = constants.case
    chosen = adfs.Parameters.choose(case.problem, "paper")
    oracle = literal(case, chosen)
    theta = augmented.minimiser(case.shards, case.problem.sigma, "logistic")
    scale = theory.c_0(*oracle[:6], oracle.sigma_a, theta)
    for epsilon in (1e-2, 1e-5):
        n_events = math.ceil(math.log(1.0 / epsilon) / chosen.rho)
        errors = []
        for seed in range(20):
            algorithm = Adfs(case.problem, chosen)
            schedule = adfs.Schedule.sample(chosen, n_events, seed=seed)
            state = algorithm.step(algorithm.init(), schedule.events())
            errors.append(np.sum((algorithm.nodes(state)[1] / SIGMA - theta) ** 2))
        assert np.mean(errors) <= scale * epsilon
