"""What `adfs reproduce theorem-2` measures is the constant of Theorem 2, by the literal clock."""

import dataclasses

import numpy as np
import pytest

import adfs
from adfs.schedule.clock import CLOCKS
from adfs.study.paper import theorem_2
from adfs.study.paper.study_context import StudyContext
from adfs.study.paper.theorem_2 import STAGES
from oracles import clock as literal_clock
from oracles import theory


def chosen_for(graph, p_comm=None):
    problem = theorem_2.homogeneous(adfs.Topology.parse(graph), 20)
    return adfs.Parameters.choose(problem, "exact", p_comm=p_comm)


@pytest.mark.parametrize("graph", ["grid:3x3", "star:7", "ring:5"])
def test_all_nodes_of_the_homogeneous_problem_compute_equally_often(graph):
    chosen = chosen_for(graph)
    assert chosen.p_node == pytest.approx(chosen.p_comp / len(chosen.p_node), rel=1e-12)
    pairs = [(int(k), int(l)) for k, l in chosen.edges]
    oracle = theory.p_comm_max(len(chosen.p_node), pairs, chosen.p_edge)
    assert theorem_2.p_comm_max(chosen) == pytest.approx(oracle)


def test_the_constants_are_those_of_the_literal_clock():
    chosen, taus, first = chosen_for("grid:2x3"), (0.3, 4.0), 150
    found = theorem_2.constants(chosen, taus, first, seed=5)
    pairs = [(int(k), int(l)) for k, l in chosen.edges]
    which = adfs.Schedule.sample(chosen, first * STAGES[-1], seed=5).events().which.tolist()
    events = [("comm", *pairs[w]) if w < len(pairs) else ("local", w - len(pairs)) for w in which]
    for i, tau in enumerate(taus):
        bound = theory.theorem_2_right_hand_side(6, pairs, chosen.p_edge, tau)
        for j, clock in enumerate(CLOCKS):
            for stage, constant in zip(STAGES, found[i][j], strict=True):
                t = stage * first
                time = max(getattr(literal_clock, clock)(6, events[:t], tau))
                assert constant == pytest.approx(time / t / bound, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "p_comp", "p_comm_max", "tau", "kind"),
    [
        (100, 0.80, 0.40, 0.1, "proven"),  # p_comp = 2 p_comm^max
        (100, 0.79, 0.40, 0.1, "p_comp"),
        (4, 0.80, 0.40, 0.1, "p_comp"),  # 8 p_comm^max / n = 0.8: a node talks too often
        (100, 0.50, 0.50, 1.0, "outside"),  # both hypotheses are strict
        (100, 0.50, 0.50, 1.1, "tau"),
        (100, 0.10, 0.90, 0.1, "outside"),
    ],
)
def test_each_case_says_which_hypotheses_it_meets(n, p_comp, p_comm_max, tau, kind):
    assert theorem_2.hypothesis(n, p_comp, p_comm_max, tau) == kind


@pytest.fixture(scope="module")
def report():
    return theorem_2.reproduce(StudyContext(quick=True))


def rows_of(report, name):
    table = next(table for table in report.tables if table.name == name)
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows]


def test_the_bound_holds_wherever_the_theorem_speaks(report):
    rows = [row for row in rows_of(report, "cases") if row["hypothesis"] != "outside"]
    assert {row["hypothesis"] for row in rows} == {"proven", "p_comp", "tau"}
    assert max(row["C at 16 t"] for row in rows) < 24
    assert report.claims[0].holds == "yes"


def test_posting_messages_is_never_slower_than_waiting_for_each_other(report):
    times = {clock: [row["C at 16 t"] for row in rows_of(report, "cases") if row["clock"] == clock]
             for clock in CLOCKS}  # fmt: skip
    assert np.all(np.array(times["nonblocking"]) <= np.array(times["rendezvous"]))


def test_outside_the_hypotheses_no_constant_is_enough(report):
    assert max(row["C at 16 t"] for row in rows_of(report, "cases")) > 24
    assert report.claims[-1].holds == "yes"
    assert "blows" in report.claims[-1].paper


def test_the_verdict_follows_the_numbers():
    cases = theorem_2.measure("ring:4", 0.5, theorem_2.TAUS, 5, 10, 1)
    worse = [case._replace(constants=(1.0, 1.0, 30.0)) for case in cases]
    good, bad, mixed = (theorem_2.main_claims(each) for each in (cases, worse, cases + worse))
    assert [claims[0].holds for claims in (good, bad, mixed)] == ["yes", "no", "partly"]
    assert bad[2].holds == "no"  # from 1 to 30 is no limit


def test_a_report_of_nothing_claims_nothing():
    context = StudyContext(quick=True)
    context.interrupts.received = 2
    report = theorem_2.reproduce(context)
    assert report.interrupted
    assert {claim.holds for claim in report.claims} == {"not decided"}
    assert report.pictures == []
    assert dataclasses.asdict(report)["tables"][0]["rows"] == []
    assert "Not decided: nothing was measured" in str(report)
