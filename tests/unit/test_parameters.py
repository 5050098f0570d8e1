"""Parameters: the paper's formulas, Theorem 1's limits, and what cannot be built."""

import dataclasses
import math

import numpy as np
import pytest

import adfs
from adfs.errors import ParameterError
from oracles import augmented, theory
from support.problems import (
    EDGE_MU2,
    RULES,
    homogeneous_shards,
    literal,
    make_case,
    make_shards,
    run,
)

GRAPHS = ("path:2", "grid:3x3", "star:5", "ring:6", "complete:5")


def choose(graph="grid:2x2", how="exact", seed=0, **overrides):
    return adfs.Parameters.choose(make_case(graph, seed=seed).problem, how, **overrides)


def l_ij_of(case):
    flat = augmented.smoothness(case.shards, case.problem.loss.name)
    return np.split(flat, case.problem.offsets[1:-1])


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_paper_is_a_transcription_of_section_5(graph, loss):
    case = make_case(graph, loss, seed=2)
    chosen = adfs.Parameters.choose(case.problem, "paper")
    sigma, l_ij = case.problem.sigma, l_ij_of(case)
    edges = [(int(k), int(l)) for k, l in chosen.edges]
    mu2 = np.full(len(edges), EDGE_MU2)
    lambda_min = theory.lambda_min_plus(theory.laplacian(len(sigma), edges, mu2))
    kappa_s = theory.kappa_s(l_ij, sigma)
    p_comm = theory.p_comm_theorem_3(
        theory.s_comp(l_ij, sigma), theory.gamma_tilde(len(sigma), edges, mu2), kappa_s
    )
    oracle = literal(case, chosen)
    np.testing.assert_allclose(chosen.alpha, theory.alpha(l_ij, sigma, lambda_min), rtol=1e-12)
    np.testing.assert_allclose(
        oracle.mu2_virtual, theory.mu2_virtual(l_ij, sigma, lambda_min), rtol=1e-12
    )
    bound = theory.sigma_a_lower_bound(lambda_min, sigma, kappa_s)
    assert chosen.sigma_A == pytest.approx(bound, rel=1e-12)
    assert chosen.p_comm == pytest.approx(p_comm, rel=1e-12)
    np.testing.assert_allclose(
        oracle.p, theory.probabilities(l_ij, sigma, len(edges), p_comm), rtol=1e-12
    )


@pytest.mark.parametrize("how", RULES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_rho_is_the_largest_that_equation_6_allows_on_the_augmented_graph(graph, how):
    case = make_case(graph, seed=4)
    chosen = adfs.Parameters.choose(case.problem, how)
    oracle = literal(case, chosen)
    assert oracle.p.sum() == pytest.approx(1.0, rel=1e-12)
    limit = augmented.max_rho(oracle.incidence, oracle.sigma_matrix, oracle.p, chosen.sigma_A)
    assert chosen.rho == pytest.approx(limit, rel=1e-9)
    if how in ("paper", "exact"):
        exact = augmented.sigma_a(oracle.incidence, oracle.sigma_matrix)
    else:
        exact = augmented.projector_sigma_a(
            case.shards, oracle.edges, oracle.mu2_edge, oracle.mu2_virtual, oracle.sigma_matrix
        )
    assert chosen.sigma_A <= exact * (1.0 + 1e-12)


@pytest.mark.parametrize("how", RULES)
def test_limits_name_each_edge_and_each_sample(how):
    # Per edge: the terms of equation (6) one by one, grouped as the object groups them.
    case = make_case("star:5", seed=1)
    chosen = adfs.Parameters.choose(case.problem, how)
    oracle = literal(case, chosen)
    inverse = np.diag(augmented.inverse_diagonal(oracle.sigma_matrix))
    pairs = np.array(augmented.ends(case.shards, oracle.edges))
    mu2 = np.concatenate([oracle.mu2_edge, oracle.mu2_virtual])
    m = mu2 * (inverse[pairs[:, 0]] + inverse[pairs[:, 1]])
    limits = oracle.p * np.sqrt(chosen.sigma_A / (m * augmented.resistances(oracle.incidence)))
    n_edges = len(oracle.edges)
    np.testing.assert_allclose(chosen.edge_limits, limits[:n_edges], rtol=1e-9)
    owner = pairs[n_edges:, 0]
    np.testing.assert_allclose(chosen.node_limits[owner], limits[n_edges:], rtol=1e-9)


@pytest.mark.parametrize("how", RULES)
def test_step_sizes_are_those_of_algorithm_1_line_1(how):
    case = make_case("ring:6", "squared_hinge", seed=3)
    chosen = adfs.Parameters.choose(case.problem, how)
    oracle = literal(case, chosen)
    mu2 = np.concatenate([oracle.mu2_edge, oracle.mu2_virtual])
    eta = oracle.rho * mu2 / (oracle.sigma_a * oracle.p)
    push = oracle.rho * augmented.resistances(oracle.incidence) / oracle.p
    n_edges = len(oracle.edges)
    np.testing.assert_allclose(chosen.edge_eta, eta[:n_edges], rtol=1e-12)
    np.testing.assert_allclose(chosen.edge_push, push[:n_edges], rtol=1e-9)
    np.testing.assert_allclose(chosen.sample_pushes(), push[n_edges:], rtol=1e-9)
    owner = np.repeat(np.arange(6), np.diff(case.problem.offsets))
    weight_times_norm2 = case.problem.weights * case.problem.squared_norms
    np.testing.assert_allclose(
        chosen.eta_ratio[owner] * chosen.sample_pushes() * weight_times_norm2,
        eta[n_edges:],
        rtol=1e-9,
    )


def test_exact_equalises_edges_nodes_and_the_two_kinds():
    chosen = choose("grid:3x3", seed=6)
    assert chosen.p_comm < 0.5
    np.testing.assert_allclose(chosen.edge_limits, chosen.rho, rtol=1e-9)
    assert chosen.node_limits.min() == pytest.approx(chosen.rho, rel=1e-9)
    np.testing.assert_allclose(chosen.p_node, chosen.p_comp / 9, rtol=1e-12)
    capped = choose("ring:30", seed=6)
    assert capped.p_comm == pytest.approx(0.5)
    assert capped.rho == pytest.approx(capped.edge_limits.min())


@pytest.mark.parametrize("graph", GRAPHS)
def test_exact_is_at_least_as_fast_as_paper_when_all_nodes_are_alike(graph):
    n = adfs.Topology.parse(graph).n_nodes
    problem = make_case(graph, sigma=0.3, shards=homogeneous_shards(n, 12, norm=2.0)).problem
    assert adfs.Parameters.choose(problem, "exact").rho >= adfs.Parameters.choose(
        problem, "paper"
    ).rho * (1 + 1e-6)


@pytest.mark.parametrize("how", RULES)
def test_one_node_has_rho_one_over_s_comp(how):
    case = make_case("single", sizes=[7])
    chosen = adfs.Parameters.choose(case.problem, how)
    expected = 1.0 / theory.s_comp(l_ij_of(case), case.problem.sigma)
    assert chosen.rho == pytest.approx(expected, rel=1e-12)
    assert chosen.p_comm == 0.0
    assert chosen.p_node.tolist() == [1.0]
    assert literal(case, chosen).eta_over_smoothness.max() < 1.0
    assert "rho" in str(chosen)


def test_one_node_with_one_sample_keeps_rho_below_one():
    for norm in (3.0, 1e-3, 1e-9):
        shards = [(np.array([[norm, 0.0]]), np.array([0.4]), np.ones(1))]
        case = make_case("single", "squared", sigma=2.0, shards=shards)
        chosen = adfs.Parameters.choose(case.problem)
        assert chosen.rho == pytest.approx(1.0 / math.sqrt(1.0 + norm**2 / 2.0), rel=1e-8)
        assert chosen.rho < 1.0
        algorithm, state = run(case.problem, chosen, 4000)
        theta = 0.4 * norm / (norm**2 + 2.0)
        np.testing.assert_allclose(algorithm.output(state), [[theta, 0.0]], rtol=1e-9, atol=0)


@pytest.mark.parametrize("how", RULES)
def test_nodes_whose_rows_are_all_zero_only_communicate(how):
    shards = make_shards(5, "logistic")
    shards[2][0][:] = 0.0
    shards[4][0][1] = 0.0
    problem = make_case("star:5", shards=shards).problem
    chosen = adfs.Parameters.choose(problem, how)
    assert chosen.p_node[2] == 0.0
    assert (np.delete(chosen.p_node, 2) > 0.0).all()
    assert chosen.p_comm + chosen.p_comp == pytest.approx(1.0)
    assert np.isfinite(chosen.sample_pushes()).all()
    assert (chosen.sample_pushes()[~problem.live] == 0.0).all()
    algorithm, state = run(problem, chosen, int(50.0 / chosen.rho))
    np.testing.assert_allclose(
        algorithm.output(state), np.tile(problem.optimum().theta, (5, 1)), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("how", RULES)
def test_the_choice_is_deterministic(how):
    first, second = (choose("grid:3x3", how, tau=2.0) for _ in range(2))
    for field in dataclasses.fields(first):
        if field.name not in ("topology", "conditioning"):
            one, other = (np.asarray(getattr(each, field.name)) for each in (first, second))
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("how", RULES)
def test_overrides_are_obeyed_and_the_rest_follows(how):
    case = make_case("grid:3x3", seed=4)
    free = adfs.Parameters.choose(case.problem, how)
    slow = adfs.Parameters.choose(case.problem, how, rho=free.rho / 3.0)
    assert slow.rho == free.rho / 3.0
    assert slow.how == how
    assert slow.sigma_A == free.sigma_A
    talkative = adfs.Parameters.choose(case.problem, how, p_comm=0.7)
    assert talkative.p_comm == pytest.approx(0.7)
    for chosen in (talkative, adfs.Parameters.choose(case.problem, how, mu_scale=0.25)):
        oracle = literal(case, chosen)
        limit = augmented.max_rho(oracle.incidence, oracle.sigma_matrix, oracle.p, chosen.sigma_A)
        assert chosen.rho == pytest.approx(limit, rel=1e-9)


@pytest.mark.parametrize("how", ["paper", "exact", "projector"])
def test_mu_scale_multiplies_alpha_and_sigma_a_stays_valid(how):
    case = make_case("ring:6", seed=2)
    plain = adfs.Parameters.choose(case.problem, how)
    for scale in (0.1, 10.0):
        scaled = adfs.Parameters.choose(case.problem, how, mu_scale=scale)
        np.testing.assert_allclose(scaled.alpha, scale * plain.alpha, rtol=1e-12)
        oracle = literal(case, scaled)
        exact = augmented.projector_sigma_a(
            case.shards, oracle.edges, oracle.mu2_edge, oracle.mu2_virtual, oracle.sigma_matrix
        )
        assert scaled.sigma_A <= exact * (1.0 + 1e-12)


def test_a_rho_beyond_the_limit_names_what_binds():
    chosen = choose("ring:30")
    with pytest.raises(
        ParameterError, match=r"outside \(0, .*\], the range allowed by Theorem 1, equation \(6\)"
    ):
        chosen.replace(rho=1.001 * chosen.rho)
    assert chosen.binding.startswith("edge ")
    edge = int(np.argmin(chosen.edge_limits))
    k, l = chosen.edges[edge]
    with pytest.raises(ParameterError, match=f"edge {edge} between nodes {k} and {l} binds"):
        chosen.replace(rho=0.9)
    quiet = adfs.Parameters.choose(make_case("grid:2x2").problem, "exact", p_comm=0.9)
    node = int(np.argmin(quiet.node_limits))
    with pytest.raises(ParameterError, match=f"the samples of node {node} binds"):
        adfs.Parameters.choose(make_case("grid:2x2").problem, "exact", p_comm=0.9, rho=0.9)


@pytest.mark.parametrize("rho", [0.0, -0.1, math.nan, math.inf, 1.0])
def test_an_impossible_rho_is_refused(rho):
    with pytest.raises(ParameterError, match=r"rho=.* is outside \(0, "):
        choose(rho=rho)
    with pytest.raises(ParameterError, match=r"rho=.* is outside \(0, "):
        choose("single", rho=rho)


@pytest.mark.parametrize("how", RULES)
@pytest.mark.parametrize("p_comm", [0.0, 1.0, 1.5, -0.2, math.nan])
def test_an_impossible_p_comm_is_refused_by_every_rule(p_comm, how):
    with pytest.raises(ParameterError, match=r"p_comm=.* must be inside \(0, 1\)"):
        choose(how=how, p_comm=p_comm)


def test_one_node_has_nobody_to_talk_to():
    with pytest.raises(ParameterError, match=r"p_comm=0\.3 must be 0 or left out: one node"):
        choose("single", p_comm=0.3)
    assert choose("single", p_comm=0.0).p_comm == 0.0


@pytest.mark.parametrize("how", RULES)
@pytest.mark.parametrize("mu_scale", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_mu_scale_is_refused(mu_scale, how):
    with pytest.raises(ParameterError, match=r"mu_scale=.* must be finite and > 0"):
        choose(how=how, mu_scale=mu_scale)


def test_unknown_rules_clocks_and_fields_are_refused_with_the_choices():
    with pytest.raises(ParameterError, match=r"'best' is not a rule; .*balanced, exact, projector"):
        choose(how="best")
    with pytest.raises(ParameterError, match=r"'sundial' is unknown; .*nonblocking, rendezvous"):
        choose(clock="sundial")
    with pytest.raises(ParameterError, match=r"no parameter 'roh'; choose among .*rho"):
        choose().replace(roh=0.1)
    with pytest.raises(ParameterError, match=r"tau=-1 must be >= 0"):
        choose(tau=-1.0)


def test_probabilities_that_are_none_are_refused():
    chosen = choose()
    with pytest.raises(ParameterError, match=r"Probabilities sum to 1\.\d+, .* sum to 1"):
        chosen.replace(p_edge=2.0 * chosen.p_edge)
    negative = chosen.p_edge.copy()
    negative[:2] = -0.1, negative[:2].sum() + 0.1
    with pytest.raises(ParameterError, match=r"the least is -0\.1; they must be >= 0"):
        chosen.replace(p_edge=negative)
    silent = chosen.p_edge.copy()
    silent[:2] = 0.0, silent[:2].sum()
    with pytest.raises(ParameterError, match="Every edge, and every node with data, needs a pos"):
        chosen.replace(p_edge=silent)
    lazy = chosen.p_node.copy()
    lazy[:2] = 0.0, lazy[:2].sum()
    with pytest.raises(ParameterError, match="Every edge, and every node with data, needs a pos"):
        chosen.replace(p_node=lazy)
    with pytest.raises(ParameterError, match=r"p_edge and p_node have \(3, 4\) entries"):
        chosen.replace(p_edge=chosen.p_edge[1:])
    with pytest.raises(ParameterError, match="Probabilities sum to nan"):
        chosen.replace(p_edge=np.full(4, np.nan))


@pytest.mark.parametrize("bad", [-1.0, 0.0, math.nan, math.inf])
def test_an_impossible_alpha_is_refused(bad):
    chosen = choose()
    alpha = chosen.alpha.copy()
    alpha[2] = bad
    with pytest.raises(ParameterError, match=r"alpha=.* must be finite and > 0"):
        chosen.replace(alpha=alpha)


def test_numbers_of_the_wrong_count_are_refused():
    chosen = choose()
    with pytest.raises(ParameterError, match=r"alpha has shape \(\); give one number per node"):
        chosen.replace(alpha=0.1)
    with pytest.raises(ParameterError, match=r"masses has shape \(3,\); give one number per node"):
        chosen.replace(masses=chosen.masses[1:])


@pytest.mark.parametrize("how", RULES)
def test_a_sigma_a_above_the_spectrum_is_refused(how):
    # It would buy a rho that Theorem 1 does not allow.
    chosen = choose("grid:3x3", how)
    with pytest.raises(ParameterError, match=r"sigma_A=.* is outside \(0, .*least positive eigen"):
        chosen.replace(sigma_A=4.0 * chosen.sigma_A)
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(ParameterError, match=r"sigma_A=.* is outside \(0, "):
            chosen.replace(sigma_A=bad)
    lower = chosen.replace(sigma_A=chosen.sigma_A / 4.0)
    assert lower.rho == pytest.approx(chosen.rho / 2.0, rel=1e-12)


def test_masses_below_the_batch_smoothness_are_refused():
    chosen = choose("grid:3x3", "projector")
    assert (chosen.masses < chosen.conditioning.total_smoothness).any()
    with pytest.raises(ParameterError, match=r"masses=.* is below the smoothness of a node"):
        chosen.replace(masses=0.9 * chosen.masses)


def test_replace_recomputes_what_follows_and_forgets_predictions():
    tuned = choose("grid:3x3", "tuned")
    assert math.isfinite(tuned.time_per_efold)
    assert math.isfinite(tuned.gain)
    halved = tuned.replace(alpha=tuned.alpha / 2.0)
    assert halved.sigma_A < tuned.sigma_A
    assert halved.rho == halved.rho_limit
    assert math.isnan(halved.gain)
    slower = tuned.replace(rho=tuned.rho / 2.0)
    assert slower.sigma_A == tuned.sigma_A
    assert math.isnan(slower.time_per_efold)
    renamed = tuned.replace(how="mine")
    assert (renamed.rho, renamed.gain) == (tuned.rho, tuned.gain)
    heavier = tuned.replace(masses=tuned.conditioning.total_smoothness)
    assert heavier.sigma_A < tuned.sigma_A
    shifted = tuned.replace(
        p_edge=0.5 * tuned.p_edge,
        p_node=tuned.p_node * (1.0 - 0.5 * tuned.p_comm) / tuned.p_comp,
    )
    assert shifted.p_comm == pytest.approx(0.5 * tuned.p_comm)
    assert shifted.rho == shifted.rho_limit < tuned.rho


def test_parameters_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError, match="rho"):
        choose().rho = 0.5


def test_printing_says_what_they_are_and_what_binds():
    text = str(choose("grid:3x3", "tuned", tau=2.0))
    for word in ("tuned", "grid:3x3", "tau=2", "nonblocking", "rho", "p_comm", "sigma_A", "binds"):
        assert word in text
    assert "times as fast as the better of `paper` and `exact`" in text
    chosen = choose("ring:30", "exact", clock="rendezvous")
    text = str(chosen)
    assert f"{chosen.rho:.6g}" in text
    assert f"{chosen.p_comm:.6g}" in text
    assert chosen.binding in text
    assert "rendezvous" in text
    assert "gain" not in text  # nothing was simulated


def test_a_loss_that_is_not_smooth_has_no_parameters():
    problem = make_case("path:2", "hinge").problem
    with pytest.raises(ParameterError, match="'hinge' is not smooth"):
        adfs.Parameters.choose(problem, "exact")


@pytest.mark.parametrize("tau", [5.0, 50.0])
def test_balanced_spends_as_much_time_on_messages_as_on_samples(tau):
    """Appendix E: ``tau p_comm = p_comp``; all else as in Theorem 3."""
    problem = make_case("grid:3x3").problem
    chosen = adfs.Parameters.choose(problem, "balanced", tau=tau)
    assert tau * chosen.p_comm == pytest.approx(chosen.p_comp)
    paper = adfs.Parameters.choose(problem, "paper", tau=tau)
    assert chosen.sigma_A == paper.sigma_A
    np.testing.assert_array_equal(chosen.alpha, paper.alpha)


def test_balanced_without_a_time_of_messages_says_what_to_choose():
    problem = make_case("grid:3x3").problem
    with pytest.raises(ParameterError, match=r"balanced.*tau.*> 0.*[Cc]hoose.*tuned"):
        adfs.Parameters.choose(problem, "balanced", tau=0.0)
    assert adfs.Parameters.choose(problem, "balanced", tau=0.0, p_comm=0.5).p_comm == 0.5
