"""Quick versions of the figures and of the stragglers: everything runs, and the words follow."""

import pytest

from adfs.algorithms.base import BY_NAME
from adfs.study.paper import CATALOGUE
from adfs.study.paper.stragglers import CONSTANT
from adfs.study.paper.study_context import StudyContext
from support.selection import soak_except

pytestmark = pytest.mark.slow
FIGURES = [name for name in CATALOGUE if name.startswith("figure")]


@pytest.mark.parametrize("name", soak_except(("figure-3a", "figure-4a"), FIGURES))
def test_every_contender_of_a_figure_runs_and_is_judged(name):
    report = CATALOGUE[name].load()(StudyContext(name, quick=True, jobs=2, quiet=True))
    table, added = report.tables
    labels = [row[0] for row in table.rows]
    assert {"adfs", "newton", "lbfgs", "msda"} <= set(labels)
    assert ({"esdacd", "dsba", "point-saga"} if "3" in name else {"katyusha"}) <= set(labels)
    assert {row[0] for row in added.rows} == {"adfs", *BY_NAME}
    for row in (*table.rows, *added.rows):
        assert "diverged" not in row
        known = [cell for cell in row[1:5] if isinstance(cell, float)]
        assert known == sorted(known)
        assert all(cell == "> 5x" for cell in row[1:5] if isinstance(cell, str))
    assert {claim.holds for claim in report.claims} <= {"yes", "no", "partly"}
    assert not {"nan", "inf"} & set(str(report).split())
    assert any("Of the added methods" in remark for remark in report.remarks)
    assert any("newton over an all-reduce" in remark for remark in report.remarks)


def test_stragglers_tells_all_methods_in_all_worlds():
    report = CATALOGUE["stragglers"].load()(StudyContext(quick=True, jobs=2, quiet=True))
    (table,) = report.tables
    assert {row[0] for row in table.rows} >= {"adfs", "esdacd", "msda", "katyusha", "newton"}
    worlds = table.headers[1:5]
    assert worlds == (CONSTANT, "exponential", "Pareto 1.5", "one slow node")
    slowdown = {row[0]: row[5] for row in table.rows}
    # A machine alone averages its own delays; whoever waits for the slowest of nine does not.
    assert slowdown["point-saga"] < 1.2
    assert slowdown["katyusha"] > 1.3
    assert len(report.remarks) == 4
    factors = [cell for row in table.rows for cell in row[5:] if cell is not None]
    assert all(factor > 0.5 for factor in factors)
