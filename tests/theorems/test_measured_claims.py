"""Table 1, the scaling claim and "ADFS ahead of MSDA and ESDACD", judged on small runs."""

import math

import numpy as np
import pytest

import adfs
from adfs.data.generators import higgs_like
from adfs.plan.sizes import Sizes
from adfs.study.paper import FIGURE_3, StudyCase, figures, scaling, table_1
from adfs.study.paper.claims import JUDGED
from adfs.study.paper.study_context import Pool, StudyContext
from adfs.study.paper.table_1 import FORMULAS
from oracles import table_1 as oracle

pytestmark = pytest.mark.slow
CONTEXT = StudyContext(quick=True, jobs=2, quiet=True)
CASES = (
    StudyCase("base", "grid:3x3", 120, 5.0, 1.0),
    StudyCase("large graph", "ring:16", 120, 5.0, 1.0),
    StudyCase("slow messages", "grid:3x3", 120, 30.0, 1.0),
    StudyCase("hard", "grid:3x3", 120, 5.0, 0.2),
)


@pytest.fixture(scope="module")
def pool():
    return Pool(*higgs_like(6000, seed=0), "generated rows that look like Higgs")


class Setting:
    """The problem of a setting, its rows as the oracles take them, and runs judged by them."""

    def __init__(self, pool, graph, m, sigma):
        topology = adfs.Topology.parse(graph)
        shards = adfs.partition(pool.X, pool.y, topology.n_nodes, how="draw", m=m)
        self.problem = adfs.Problem(shards, "logistic", sigma, topology)
        self.rows = [(X, y, np.ones(len(y))) for X, y, *_ in shards]
        self.sigma, self.ridge = sigma, sigma * len(shards)
        X, y, _ = (np.concatenate(parts) for parts in zip(*self.rows, strict=True))
        self.signed = y[:, None] * X

    def objective(self, thetas):
        """F at some models, one row each."""
        losses = np.logaddexp(0.0, -thetas @ self.signed.T).sum(axis=1)
        return losses + self.ridge / 2 * np.sum(thetas**2, axis=1)

    def least(self):
        """F* by Newton's method."""
        theta, identity = np.zeros(self.signed.shape[1]), np.eye(self.signed.shape[1])
        for _ in range(30):
            wrong = 1.0 / (1.0 + np.exp(self.signed @ theta))
            gradient = self.ridge * theta - wrong @ self.signed
            scaled = (wrong * (1.0 - wrong))[:, None] * self.signed
            theta -= np.linalg.solve(self.signed.T @ scaled + self.ridge * identity, gradient)
        assert np.linalg.norm(gradient) < 1e-9
        return self.objective(theta[None])[0]

    def constants(self, tau):
        edges = self.problem.topology.edges.tolist()
        return oracle.constants(self.rows, self.sigma, edges, tau)

    def curve(self, algorithm, tau, every, **options):
        """Idealized times and relative errors, (mean over nodes of F - F*) / F*, of a run."""
        least, found = self.least(), []

        def note(progress):
            error = np.mean(self.objective(progress.reading.thetas)) - least
            found.append((progress.idealized_time, max(error / least, 1e-16)))

        adfs.solve(self.problem, algorithm, tau=tau, evaluate_every=every, callback=note, **options)
        return np.array(found).T


def time_to(curve, accuracy):
    """When the error first is below an accuracy, its logarithm linear between evaluations."""
    times, errors = curve
    first = np.argmax(errors <= accuracy)
    around = slice(first - 1, first + 1)
    return np.interp(-np.log(accuracy), -np.log(errors[around]), times[around])


def time_per_factor_e(curve, last=1e-8):
    """Over the later half of the decades from the first error to the last."""
    first = curve[1][0]
    middle = np.sqrt(first * last)
    return (time_to(curve, last) - time_to(curve, middle)) / np.log(middle / last)


@pytest.fixture(scope="module")
def entries(pool):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_1, "METHODS", (*FORMULAS, "dsba"))
        return [entry for case in CASES for entry in table_1.measure(case, pool, 1, CONTEXT)]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_theorys_times_are_those_of_table_1_for_these_rows(pool, entries, case):
    expected = oracle.times(Setting(pool, case.graph, case.m, case.sigma).constants(case.tau))
    expected["dsba:paper"] = expected.pop("dsba")
    found = {e.method: e.theory for e in entries if e.case == case and e.method in FORMULAS}
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_measured_time_for_a_factor_e_is_the_slope_of_a_run(pool, entries):
    setting = Setting(pool, CASES[0].graph, CASES[0].m, CASES[0].sigma)
    found = {entry.method: entry.time.known for entry in entries if entry.case == CASES[0]}
    for method, every in (("adfs", 1000), ("msda", 1)):
        slope = time_per_factor_e(setting.curve(method, 5.0, every, tol=1e-9))
        assert found[method] == pytest.approx(slope, rel=0.07)


def test_times_are_as_in_table_1_up_to_one_constant_per_method(entries):
    # But for DSBA, which takes 1.1 to 4.8 times the time of its row.
    others = [entry for entry in entries if entry.method != "dsba:paper"]
    assert table_1.constant_claim(others).holds == "yes"
    ratios = {name: [e.ratio for e in entries if e.method == name] for name in FORMULAS}
    assert max(ratios["adfs"]) < 1.3 * min(ratios["adfs"])
    assert min(ratios["adfs"]) > 0.6
    assert max(ratios["adfs"]) < 1.0


def test_methods_far_apart_in_table_1_are_in_that_order(entries):
    claim = table_1.order_claim(entries)
    assert int(claim.measured.partition(" pairs")[0]) >= 15
    assert claim.holds == "yes", claim.measured


def test_adfs_is_ahead_of_msda_and_of_dsba_as_published_where_m_is_above_tau(entries):
    times = {(entry.method, entry.case.name): entry.time.known for entry in entries}
    for case in CASES:
        assert times["msda", case.name] > times["adfs", case.name]
        assert times["dsba:paper", case.name] > times["adfs", case.name]
    assert times["msda", "base"] > 1.7 * times["adfs", "base"]
    assert times["dsba:paper", "base"] > 2.5 * times["adfs", "base"]
    # Samples by importance bring DSBA nearer: no longer behind in every setting.
    assert times["dsba", "base"] > 1.2 * times["adfs", "base"]


LONG, SHORT = (
    scaling.GrowthPlan(600, (1, 4, 16), 1e-4, 1),
    scaling.GrowthPlan(30, (1, 4, 16, 64), 1e-4, 1),
)


class Study:
    """A plan's measured rows, critical sizes and verdicts."""

    def __init__(self, plan, pool):
        found = [
            time
            for network in plan.networks()
            for time in scaling.measure(*network, plan, pool, CONTEXT)
        ]
        rows = scaling.rows_of(found)
        self.rows = {(row.family, row.n): row for row in rows}
        self.critical = {row.family: row.critical for row in rows if row.n > 1}
        self.claims = [*scaling.growth_claims(rows), scaling.speed_up_claim(rows)]

    def over_one_node(self, family):
        return {n: row.ratio.known for (name, n), row in self.rows.items() if name == family}


@pytest.fixture(scope="module")
def long_sums(pool):
    return Study(LONG, pool)


@pytest.fixture(scope="module")
def short_sums(pool):
    return Study(SHORT, pool)


def test_n_machines_learn_n_m_samples_in_the_time_of_one(long_sums):
    same, limit, speed_up = long_sums.claims
    assert set(long_sums.critical.values()) == {math.inf}
    assert same.holds == limit.holds == speed_up.holds == "yes"
    for family in scaling.FAMILIES:
        assert max(long_sums.over_one_node(family).values()) < 2.0
        # 16 times as many samples, and not 16 times as long.
        assert long_sums.rows[family, 16].speed_up.known > 1.3


def test_beyond_the_critical_size_time_grows_with_the_graph(short_sums):
    assert all(1.0 < size < 8.0 for size in short_sums.critical.values())
    assert short_sums.claims[1].holds == "yes"
    grid, cube = (short_sums.over_one_node(family) for family in ("2D grid", "hypercube"))
    assert grid[64] > 6.0
    assert grid[64] > 1.5 * cube[64]  # gamma is eight times smaller


@pytest.mark.parametrize(("plan", "beyond"), [(LONG, False), (SHORT, True)])
def test_the_critical_size_is_where_the_networks_term_is_the_rest(pool, plan, beyond):
    setting = Setting(pool, "grid:4x4", plan.m, scaling.SIGMA)
    constants = setting.constants(scaling.TAU)
    assert (constants.network > constants.work) == beyond
    found = Sizes.of(setting.problem, scaling.TAU)
    assert found.network == pytest.approx(constants.network)
    assert found.work == pytest.approx(constants.work)


def test_the_measured_time_to_learn_is_that_of_a_run(pool, short_sums):
    setting = Setting(pool, "grid:4x4", SHORT.m, scaling.SIGMA)
    rho = adfs.Parameters.choose(setting.problem, tau=scaling.TAU).rho
    run = setting.curve("adfs", scaling.TAU, round(0.25 / rho), tol=1e-6)
    measured = short_sums.rows["2D grid", 16].time.known
    assert measured == pytest.approx(time_to(run, SHORT.tol), rel=1e-6)


@pytest.fixture(scope="module")
def panel(pool):
    contenders = ("adfs", "adfs:paper", "msda", "msda:theory", "esdacd")
    times, _ = figures.run_panel(FIGURE_3["figure-3b"], contenders, pool, CONTEXT)
    return times


def test_adfs_is_ahead_of_msda_and_esdacd_on_a_quick_figure_3(panel):
    for label, factor in (("msda", 1.5), ("msda:theory", 1.2), ("esdacd", 5.0)):
        multiple = figures.against_adfs(panel, label)
        assert multiple.at_least(factor), f"{label} takes {multiple} as long as ADFS"
    # "By a large margin" counts from twice on, which MSDA's takes more than these 16 nodes.
    assert figures.figure_3_claims(panel)["far ahead"].holds in ("partly", "yes")
    assert panel.later("esdacd", "msda")


def test_the_figures_times_are_those_of_runs(pool, panel):
    setting = Setting(pool, "grid:4x4", 150, 1.0)
    for method, every in (("adfs", 5000), ("msda", 2)):
        run = setting.curve(method, 5.0, every, tol=1e-7)
        assert panel.of(method).value == pytest.approx(time_to(run, JUDGED), rel=0.05)
