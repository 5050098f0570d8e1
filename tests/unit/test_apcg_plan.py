"""What `form="auto"` does: Corollary 1, where its rho is small after a trial of Corollary 2."""

import math

import numpy as np
import pytest

from adfs.apcg import solver
from adfs.apcg.apcg_parameters import choose
from adfs.apcg.penalties import Penalty, penalty_of
from adfs.apcg.smooth import LeastSquares, Quadratic
from adfs.apcg.solver import ApcgPlan, apcg


def twins(gap, n=10, seed=0):
    """Pairs of columns that differ by ``gap``: a bad direction each, which l1 may not need."""
    generator = np.random.default_rng(seed)
    K = generator.standard_normal((3 * n, n))
    c = K[:, :3] @ [1.0, -2.0, 3.0] + 0.1 * generator.standard_normal(3 * n)
    return np.hstack([K, K + gap * generator.standard_normal(K.shape)]), c


def rho_of(f, psi):
    return choose(f, psi.on(f.size).active, form="strongly-convex").rho


def test_a_solution_that_needs_no_bad_direction_is_found_ten_times_sooner():
    f, psi = LeastSquares(*twins(1e-3)), Penalty(l1=5.0)
    by_itself = apcg(f, psi)
    slow = apcg(f, psi, form="strongly-convex", check_every=2000)
    assert by_itself.status == slow.status == "converged"
    assert by_itself.parameters.form == "convex"
    assert by_itself.iterations < 0.1 * slow.iterations
    assert by_itself.objective == pytest.approx(slow.objective, rel=1e-9)
    # The certificate is about the point: strong convexity proves it, whatever method found it.
    assert by_itself.objective - slow.objective <= by_itself.gap < 1e-5


def test_a_solution_that_needs_them_costs_a_trial_more():
    K, _ = twins(1e-2)
    f, psi = LeastSquares(K, K @ np.linspace(-1.0, 1.0, 20)), Penalty()
    both = apcg(f, psi, tol=1e-10)
    alone = apcg(f, psi, tol=1e-10, form="strongly-convex")
    assert both.parameters.form == alone.parameters.form == "strongly-convex"
    trial = math.ceil(2 / rho_of(f, psi))
    assert trial < both.iterations <= 1.2 * alone.iterations + trial


def test_the_trial_ends_at_two_over_rho_whatever_the_looks_and_blocks_are(monkeypatch):
    f, psi = LeastSquares(*twins(1e-2)), Penalty(l1=1.0)
    trial = math.ceil(2 / rho_of(f, psi))
    ends = []
    for block, check_every in ((1 << 16, None), (7, 13), (1000, trial)):
        monkeypatch.setattr(solver, "BLOCK", block)
        seen = []
        result = apcg(f, psi, tol=0.0, max_iter=trial + 50, check_every=check_every,
                      callback=seen.append)  # fmt: skip
        assert result.parameters.form == "strongly-convex"
        ends.append(seen[-1].x_t.tobytes() + seen[-1].v_t.tobytes())
    assert len(set(ends)) == 1
    assert apcg(f, psi, tol=0.0, max_iter=trial).parameters.form == "convex"


@pytest.mark.parametrize(
    "given", [{"form": "strongly-convex"}, {"restart": False}, {"rho": 1e-6}, {"S": 1e9}], ids=str
)
def test_with_a_form_or_a_rate_there_is_no_trial(given):
    f = LeastSquares(*twins(1e-4))
    assert apcg(f, tol=0.0, max_iter=0).parameters.form == "convex"
    assert apcg(f, tol=0.0, max_iter=0, **given).parameters.form == "strongly-convex"


def test_a_trial_needs_time_for_eight_stretches():
    """rho = sqrt(sigma_A) / 4 and p_R = 1 / 4 here: 2 / rho >= 8 * 8 * 4 if sigma_A <= 1 / 1024."""
    f, active = Quadratic(np.eye(4)), np.zeros(4, bool)
    for sigma_A, expected in ((1.01 / 1024, False), (0.99 / 1024, True)):
        plan = ApcgPlan.with_trial(choose(f, active, sigma_A=sigma_A), own_sampling=True)
        assert (plan.trial is not None) is expected
        assert plan.trial_length == (math.ceil(8 / math.sqrt(sigma_A)) if expected else 0)


def test_a_trial_keeps_a_given_sampling_and_has_its_own_otherwise():
    f, active = Quadratic(np.diag([1.0, 1e-6, 1e-6])), np.zeros(3, bool)
    p = np.array([0.5, 0.3, 0.2])
    given = ApcgPlan.with_trial(choose(f, active, p), own_sampling=False)
    assert given.trial.p.tolist() == p.tolist()
    own = ApcgPlan.with_trial(choose(f, active), own_sampling=True)
    assert own.parameters.p[1] < 0.001 < 0.1 < own.trial.p[1]


def test_hardly_any_strong_convexity_is_none():
    f, active = Quadratic(np.eye(4)), np.zeros(4, bool)
    assert choose(f, active, sigma_A=1e-15).form == "convex"
    assert choose(f, active, sigma_A=1e-13).form == "strongly-convex"


def test_rare_coordinates_of_our_own_sampling_can_be_drawn():
    f, active = Quadratic(np.diag([1e18, 1.0, 1.0])), np.zeros(3, bool)
    chosen = choose(f, active, R=np.ones(3), sigma_A=1.0, form="strongly-convex")
    assert chosen.p[1:] == pytest.approx(2.0 * 2.0**-24 / 3, rel=1e-6)
    assert chosen.rho == pytest.approx(1 / (1e9 + 2.0), rel=1e-6)


WORDS = {
    "zero": ("zero", Penalty()),
    "l1": (("l1", 0.5), Penalty(l1=0.5)),
    "l2": (("l2", [0.0, 1.0, 2.0]), Penalty(l2=[0.0, 1.0, 2.0])),
    "box": (("box", -0.1, [0.2, 0.3, 0.4]), Penalty(low=-0.1, high=[0.2, 0.3, 0.4])),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_penalty_in_words_is_the_penalty(name):
    words, penalty = WORDS[name]
    H = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    f = Quadratic(H, [1.0, 0.0, -1.0])
    assert repr(penalty_of(words)) == repr(penalty)
    assert apcg(f, words).x.tobytes() == apcg(f, penalty).x.tobytes()
