"""Lemma 1: x_t is a convex combination of v_0, ..., v_t, and psi^ falls as the proof needs."""

import itertools

import numpy as np
import pytest

import adfs
from adfs.apcg.apcg_parameters import CoordinateSampler
from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import ApcgState, Quadratic
from oracles import convex_combinations
from support.apcg import PENALTIES, SKEWED, N, iterates, only_on, quadratic
from support.problems import RULES, make_case

FORMS = ("strongly-convex", "convex")
CASES = [("regular", "l1"), ("regular", "all"), ("split", "tail"), ("narrow", "box")]


def penalty(name):
    return only_on(PENALTIES["all"], np.arange(N) >= 3) if name == "tail" else PENALTIES[name]


def convex_weights(chosen, n_steps):
    """delta_t(l) of every coordinate: a list over coordinates of lists over t."""
    pairs = convex_combinations.strengths(
        chosen.form, chosen.p, chosen.R, chosen.S, chosen.sigma_A, n_steps
    )
    return pairs, [convex_combinations.deltas(pairs, p_i) for p_i in chosen.p]


@pytest.mark.parametrize("p", ["uniform", SKEWED], ids=["uniform", "skewed"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_x_is_a_convex_combination_of_all_v_where_psi_is_not_zero(kind, name, form, p):
    H, b, *_ = quadratic(kind)
    psi = penalty(name)
    x, v, chosen = iterates(Quadratic(H, b), psi, 80, form=form, p=p)
    _, deltas = convex_weights(chosen, 80)
    for i in np.flatnonzero(psi.on(N).active):
        for t in range(81):
            weights = np.array(deltas[i][t])
            assert weights.min() >= -1e-15
            assert weights.sum() == pytest.approx(1.0, abs=1e-12)
            assert x[t, i] == pytest.approx(weights @ v[: t + 1, i], abs=1e-12)


def test_beyond_alpha_equal_to_p_a_weight_is_negative():
    for p, step in itertools.product((0.01, 0.3), (1.0 - 1e-6, 1.0 + 1e-6)):
        for beta in (0.0, step * p):
            first = convex_combinations.deltas([(step * p, beta)], p)[1][0]
            assert (first >= 0.0) == (step <= 1.0)


@pytest.mark.parametrize("p", [None, SKEWED], ids=["best", "skewed"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_parameters_have_alpha_r_at_most_p(kind, name, p):
    H, b, *_ = quadratic(kind)
    for form in FORMS:
        _, _, chosen = iterates(Quadratic(H, b), penalty(name), 0, form=form, p=p)
        (alpha, beta), *later = convex_weights(chosen, 30)[0]
        assert beta in (0.0, pytest.approx(alpha))
        assert np.all(alpha * chosen.R <= chosen.p * (1.0 + 1e-12))
        assert all(after <= alpha * (1.0 + 1e-12) for after, _ in later)


@pytest.mark.parametrize("how", RULES)
@pytest.mark.parametrize("graph", ["single", "path:2", "star:5", "ring:6", "grid:3x3"])
def test_adfs_has_rho_r_at_most_p_on_every_edge(graph, how):
    largest = []
    for seed in range(3):
        chosen = adfs.Parameters.choose(make_case(graph, seed=seed).problem, how)
        largest += [*chosen.sample_pushes(), *chosen.edge_push]
    assert max(largest) <= 1.0 + 1e-12
    if graph == "single":  # rho / p_ij = 1 / sqrt(1 + L_ij / sigma_i), and some L_ij are small
        assert max(largest) > 0.99


def psi_each(psi, v):
    """psi_i(v_i) of every coordinate, for points within the box."""
    l1, l2 = np.broadcast_to(psi.l1, N), np.broadcast_to(psi.l2, N)
    return l1 * np.abs(v) + l2 * v**2 / 2


def psi_hat(psi, deltas, v):
    """sum_i sum_l delta_t^(i)(l) psi_i(v_l^(i)) for the points v_0, ..., v_t."""
    t, values = len(v) - 1, np.array([psi_each(psi, each) for each in v])
    return sum(np.array(deltas[i][t]) @ values[:, i] for i in range(N))


def next_points(f, psi, chosen, prefix):
    """v_{t+1} for every coordinate that may be drawn after the prefix."""
    found = []
    for i in range(N):
        state = ApcgState(chosen.rule(), chosen.clock(), np.zeros(N))
        f.run(np.array([*prefix, i], np.int32), psi.on(N).terms, state)
        found.append(state.v())
    return np.array(found)


def sides(f, psi, form, p, t):
    """(psi(x_t), psi^_t, E[psi^_{t+1}], alpha_t psi(v~) + (1 - alpha_t) psi^_t), all exact."""
    x, v, chosen = iterates(f, psi, t, form=form, p=p)
    pairs, deltas = convex_weights(chosen, t + 1)
    after = next_points(f, psi, chosen, CoordinateSampler(chosen.p, 0).draw(0, t))
    now = psi_hat(psi, deltas, v)
    mean = chosen.p @ [psi_hat(psi, deltas, [*v, one]) for one in after]
    alpha = pairs[t][0]
    minimisers = np.diag(after)  # v~^(i) is v^(i) where i was drawn
    return (
        psi_each(psi, x[-1]).sum(),
        now,
        mean,
        (alpha * psi_each(psi, minimisers).sum() + (1 - alpha) * now),
    )


@pytest.mark.parametrize("p", ["uniform", SKEWED], ids=["uniform", "skewed"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["l1", "l2", "all"])
def test_the_mean_of_psi_hat_falls_as_lemma_1_says(name, form, p):
    H, b, *_ = quadratic("regular")
    for t in (0, 1, 5, 20):
        value, now, mean, bound = sides(Quadratic(H, b), PENALTIES[name], form, p, t)
        assert value <= now + 1e-12
        assert mean <= bound + 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_lemma_1_is_an_equality_where_psi_is_linear(form):
    # Large b and no coupling: every v_l is positive, where |v| is linear.
    f, psi = Quadratic(np.diag(np.linspace(1.0, 3.0, N)), np.full(N, 5.0)), Penalty(l1=0.2)
    for t in (1, 4, 8):
        _, v, _ = iterates(f, psi, t, form=form, p=SKEWED)
        assert (v >= 0.0).all()
        value, now, mean, bound = sides(f, psi, form, SKEWED, t)
        assert value == pytest.approx(now, rel=1e-12)
        assert mean == pytest.approx(bound, rel=1e-12)
