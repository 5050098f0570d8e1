"""`adfs.Costs`: names, numbers, stored measurements, and what each method's clock makes of them."""

import json

import numpy as np
import pytest

import adfs
from adfs import calibration
from adfs.algorithms.tron import PRODUCTS
from adfs.costs import HESSIAN, NAMES, PAPER, Price, agreed_costs, stored_place
from adfs.errors import ParameterError
from support.peers import on_ranks, succeed
from support.problems import make_case, stored_as
from support.ranks import Case, ThreadNetwork, make_shards_of, random_mapping, share_of

GIVEN = adfs.Costs(0.5, 0.75, 0.25, 2.0, 3.0, 50.0, 40.0, 1e-7)
SIZES, TAU = [3, 9, 5], 2.0
MEASURED = adfs.Costs(
    gradient=Price((0.3, 0.01, 0.0, 0.02), (0.4, 0.02, 0.0, 0.03)),
    factorisation=Price((200.0, 0.0, 0.001, 0.02), (200.0, 0.0, 0.001, 0.03)),
    seconds=Price((5e-8, 1e-9, 0.0, 0.0), (6e-8, 3e-9, 0.0, 0.0)),
    name="measured",
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder of its own, and a measurement that is counted instead of made."""
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "new"))
    calls = []
    monkeypatch.setattr(calibration, "measure", lambda: calls.append(0) or MEASURED)
    return calls


def test_paper_charges_a_gradient_as_a_proximal_step():
    problem = make_case("path:3", "logistic", sizes=SIZES).problem
    found = PAPER.of(problem)
    ones = (found.gradient, found.sampled_gradient, found.product, found.dual_gradient)
    assert np.array_equal(ones, np.ones((4, 3)))
    assert np.array_equal(found.factorisation, np.zeros(3))
    assert np.isnan(found.seconds).all()
    assert adfs.Costs() == PAPER == adfs.Costs.read("paper")


def test_other_steps_cost_as_much_as_the_given_gradient():
    costs = adfs.Costs(gradient=0.35)
    assert costs.product == costs.sampled_gradient == costs.dual_gradient == 0.35
    assert costs.hessian == HESSIAN


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_prices_follow_the_size_of_each_nodes_rows(kind):
    rows = np.ones((4, 6))
    rows[:2, 2:] = 0.0  # two non-zeros in the rows of the first node
    shards = [(rows[:2], np.array([1.0, -1.0])), (rows[2:], np.array([1.0, -1.0]))]
    problem = stored_as(make_case("path:2", shards=shards, sigma=1.0), kind)
    found = MEASURED.of(problem)
    sizes = np.array([2.0, 6.0] if kind == "csr" else [6.0, 6.0])
    a, b, _, e = MEASURED.gradient.sparse if kind == "csr" else MEASURED.gradient.dense
    np.testing.assert_allclose(found.gradient, (a + b * sizes) / (1 + e * sizes))
    np.testing.assert_allclose(found.factorisation, (200 + 0.001 * 6**3) / (1 + e * sizes))
    a, b, *_ = MEASURED.seconds.sparse if kind == "csr" else MEASURED.seconds.dense
    np.testing.assert_allclose(found.seconds, a + b * sizes)


@pytest.mark.parametrize("costs", [PAPER, GIVEN, MEASURED], ids=["paper", "given", "measured"])
def test_costs_survive_json(costs):
    again = adfs.Costs.read(json.loads(json.dumps(costs.to_dict())))
    assert (again, again.name) == (costs, costs.name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gradient": -1}, r"gradient=-1 must be a finite number >= 0; a proximal step is 1"),
        ({"product": np.nan}, r"product=nan must be a finite number"),
        ({"seconds": "fast"}, r"seconds='fast' must be a finite number"),
        ({"hessian": None}, r"hessian=None must be a finite number"),
        ({"hessian": ((1, 2, 3), (1, 2, 3, 4))}, r"hessian must be a number, or \(a, b, c, e\)"),
        ({"gradient": Price((0, 0, 0, 0), (0, 0, 0, -1))}, r"gradient=-1 must be"),
    ],
)
def test_numbers_that_are_no_costs_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        adfs.Costs(**given)


def test_unknown_names_are_refused():
    with pytest.raises(ParameterError, match=r"costs='cheap' is unknown; choose .*measured"):
        adfs.Costs.read("cheap")
    with pytest.raises(ParameterError, match=r"no entry 'prox'; take some of gradient"):
        adfs.Costs.read({"prox": 1.0})


def test_a_measurement_is_made_once_and_stored(cache):
    assert adfs.Costs.stored() is None
    assert adfs.Costs.read("measured") == adfs.Costs.measured() == adfs.Costs.stored() == MEASURED
    assert len(cache) == 1
    adfs.Costs.measured(again=True)
    assert len(cache) == 2


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"costs": 3}', b"\xff"])
def test_a_damaged_file_is_measured_again(cache, content):
    adfs.Costs.measured()
    stored_place().write_bytes(content)
    assert adfs.Costs.measured() == MEASURED
    assert len(cache) == 2


def test_another_processor_has_its_own_file(cache, monkeypatch):
    adfs.Costs.measured()
    monkeypatch.setattr("adfs.costs.processor", lambda: "another")
    assert adfs.Costs.stored() is None


def test_a_folder_that_cannot_be_written_is_no_error(cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "file" / "new"))
    assert adfs.Costs.measured() == MEASURED


def test_rank_0_measures_and_all_have_its_costs(cache):
    found, _ = on_ranks(3, lambda peers: agreed_costs(peers, "measured"))
    assert found == [MEASURED] * 3
    assert len(cache) == 1


def test_ranks_with_different_costs_are_refused():
    def work(peers):
        return agreed_costs(peers, "paper" if peers.rank == 0 else GIVEN)

    found, _ = on_ranks(2, work)
    assert all("costs is paper on rank 0" in str(each) for each in found)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_ranks_charge_what_one_process_charges(layout):
    shards, problem = make_shards_of(Case("logistic", layout, "shared", 4))
    mapping = random_mapping(4, 2, 0)

    def work(peers):
        share = share_of(ThreadNetwork(peers, problem.topology, mapping), shards, problem)
        return [clock_time(share, name) for name in ("newton", "lbfgs", "msda", "katyusha")]

    alone = [clock_time(problem, name) for name in ("newton", "lbfgs", "msda", "katyusha")]
    assert succeed(2, work) == [alone, alone]


def clock_time(problem, name):
    method = adfs.prepare(problem, name, costs=MEASURED)
    method.clock.advance(method.source.draw(0, 20))
    return method.clock.time


def test_dual_gradients_without_hessians_have_a_price_of_their_own():
    problem = make_case("path:2", "logistic", n_features=501, sizes=[5, 8]).problem
    method = adfs.prepare(problem, "ssda", tau=TAU, delays=adfs.Delays(tau=TAU), costs=GIVEN)
    method.clock.advance(method.source.draw(0, 1))
    assert method.clock.time == pytest.approx(50.0 * 8 + TAU)


def literal_times():
    """Idealized time of 6 rounds on a path of three nodes (D = 2), written out for `GIVEN`."""
    most, d = max(SIZES), 4
    mixed = 0.5 + PRODUCTS * (0.25 - 0.5)
    return {
        "lbfgs": 6 * (most * 0.5 + 2 * TAU),
        "tron": 6 * (most * mixed + 2 * TAU),
        "newton": 6 * (most * (0.5 + 2.0) + 40.0 + (2 + d + 3) * TAU),
        "dsba": 6 * (1.0 + TAU),
    }


@pytest.mark.parametrize(("name", "expected"), literal_times().items())
def test_a_round_takes_the_literal_sum(name, expected):
    problem = make_case("path:3", "logistic", n_features=4, sizes=SIZES).problem
    delays = adfs.Delays(tau=TAU)
    method = adfs.prepare(problem, name, tau=TAU, delays=delays, costs=GIVEN)
    method.clock.advance(method.source.draw(0, 6))
    assert method.clock.time == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ["katyusha", "l-katyusha", "msda", "ssda", "esdacd"])
def test_batches_and_dual_gradients_take_the_literal_sum(name):
    problem = make_case("path:2", "logistic", n_features=4, sizes=[5, 8]).problem
    live = problem.conditioning.live_counts
    delays = adfs.Delays(tau=TAU)
    method = adfs.prepare(
        problem, name, tau=TAU, delays=delays, clock="rendezvous", rule="theory", costs=GIVEN
    )
    events = method.source.draw(0, 9)
    method.clock.advance(events)
    kinds, chosen = np.bincount(events.which, minlength=2), method.parameters
    if name == "esdacd":
        expected = 9 * (3.0 * live.max() + TAU)
    elif name in ("msda", "ssda"):
        expected = 9 * (3.0 * live.max() + chosen.rounds * TAU)
    else:
        inner, snapshot = chosen.batch * 0.75 + TAU, live.max() * 0.5 + TAU
        if name == "l-katyusha":
            snapshot += inner
        expected = kinds[0] * inner + kinds[1] * snapshot
    assert method.clock.time == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ["katyusha", "l-katyusha"])
def test_cheap_drawn_gradients_make_larger_tuned_batches(name):
    problem = make_case("grid:2x2", "logistic", sizes=[200] * 4).problem
    batches = [
        adfs.prepare(problem, name, costs=costs).parameters.batch
        for costs in (adfs.Costs(), adfs.Costs(sampled_gradient=0.05))
    ]
    assert batches[1] > batches[0]


def test_a_result_and_its_model_say_the_costs():
    problem = make_case("path:3", "logistic", sizes=SIZES).problem
    result = adfs.solve(problem, "lbfgs", costs=GIVEN)
    assert result.costs == GIVEN
    assert adfs.Costs.read(adfs.Model.from_result(result, problem).meta["costs"]) == GIVEN
    assert adfs.solve(problem, "lbfgs").costs == PAPER


def test_a_plan_is_made_with_the_costs():
    problem = make_case("grid:2x2", "logistic", sizes=[50] * 4).problem
    usual, cheap = (
        {each.algorithm: each.idealized_time for each in plan.predictions}
        for plan in (
            adfs.plan(problem, tau=0.0, costs=costs, pilot=False)
            for costs in (PAPER, adfs.Costs(gradient=0.5, hessian=PAPER.of_dense(5).hessian[0]))
        )
    )
    assert cheap["adfs"] == usual["adfs"]
    assert cheap["lbfgs"] == pytest.approx(0.5 * usual["lbfgs"])
    assert cheap["newton"] < usual["newton"]


def test_names_on_the_command_line_are_those_of_costs():
    from adfs.cli.options import COST_NAMES

    assert COST_NAMES == NAMES


def test_fitted_prices_give_back_times_that_follow_them():
    """Times made from known coefficients, at the sizes that are measured."""
    sizes = np.array([4.0, 28.0, 120.0, 500.0])
    pairs = sizes * (sizes + 1.0) / 2.0
    prox = 5e-8 * (1.0 + 0.01 * sizes)
    steps = [
        2e-8 + 4e-10 * sizes, 3e-8 + 4e-10 * sizes, 1e-8 + 3e-10 * sizes,
        1e-9 + 2e-9 * sizes + 3e-11 * pairs,
    ]  # fmt: skip
    found = calibration.prices(
        [calibration.StepTimes(*row) for row in np.column_stack([sizes, pairs, prox, *steps])]
    )
    np.testing.assert_allclose(found["seconds"], (5e-8, 5e-10, 0, 0), rtol=1e-6)
    np.testing.assert_allclose(found["gradient"], (0.4, 0.008, 0, 0.01), rtol=1e-6)
    np.testing.assert_allclose(found["hessian"], (0.02, 0.04, 0.0006, 0.01), rtol=1e-6)


def test_a_measurement_has_every_price(monkeypatch):
    """On tiny problems: the numbers mean nothing, but all steps run on both kinds of rows."""
    shapes = [calibration.StepShape(50, *size) for size in ((3,), (6,), (6, 2), (9, 3))]
    monkeypatch.setattr(calibration, "SHAPES", tuple(shapes))
    monkeypatch.setattr(calibration, "TURNS", 1)
    monkeypatch.setattr(calibration, "MATRICES", (3, 6))
    costs = calibration.measure()
    assert costs.name == "measured"
    for each in costs.of_dense(5):
        assert np.isfinite(each).all()
        assert (each > 0.0).all()
