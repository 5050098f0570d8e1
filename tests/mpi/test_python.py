"""`adfs.Problem(..., engine="mpi")`, `from_files` and `adfs.solve` in a program under mpiexec."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

import adfs
from support.python_runs import (
    KINKS,
    METHODS,
    bits_of,
    files_of,
    path_bits,
    shards,
    solve,
    start_again,
    topology,
    write_files,
)
from support.selection import soak_except

SCRIPT = Path(__file__).with_name("python_script.py")
SIZES = soak_except((2,), (2, 3))
PROBLEMS = ("from_shards", "nodes_dealt_in_turn", "nodes_by_default", "from_one_file_per_node")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture(scope="module")
def launched(mpiexec, folder, tmp_path_factory):
    """What each rank of a launch found, by case, rank 0 first."""

    @cache
    def launch(size):
        path = tmp_path_factory.mktemp("ranks") / "found.json"
        run = mpiexec.run(size, SCRIPT, path, folder)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        return json.loads(path.read_text())

    return launch


@cache
def in_one_process(name):
    return bits_of(solve(adfs.Problem(shards(), sigma=0.1, topology=topology()), name))


def require_bits(found, expected):
    """Those of one process on every rank; the nodes' models on rank 0."""
    status, numbers, theta, thetas, trace = expected
    for rank, bits in enumerate(found):
        assert bits == [status, numbers, theta, thetas if rank == 0 else [], trace]


def found_by_all(launched, size, case):
    kinds, found = zip(*launched(size)[case], strict=True)
    assert kinds == ("fine",) * size, found
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", PROBLEMS)
def test_solve_on_ranks_has_the_bits_of_one_process(launched, case, size):
    found = found_by_all(launched, size, case)
    for name in METHODS:
        require_bits([each[name] for each in found], in_one_process(name))


@pytest.mark.parametrize("size", SIZES)
def test_one_file_is_dealt_as_in_one_process(launched, folder, size):
    found = found_by_all(launched, size, "from_one_file")
    problem = adfs.Problem.from_files(
        files_of(folder)["whole"], sigma=0.1, topology=topology(), seed=3
    )
    for name in METHODS:
        require_bits([each[name] for each in found], bits_of(solve(problem, name)))


def test_rank_0_tells_how_far_it_is_and_the_bits_stay(launched):
    first, *others = found_by_all(launched, 2, "watched")
    assert not any(each.pop("lines") for each in others)
    lines = first.pop("lines")
    line = r"\d+ s: [\d,]+( of [\d,]+)? events.*, gap (.+) \(tol 1e-07\)(, about .* left)?"
    assert not [each for each in lines if not re.fullmatch(line, each)]
    evaluations = sum(len(json.loads(first[name][-1])["iteration"]) for name in METHODS)
    gaps = {re.fullmatch(line, each)[2] for each in lines}
    assert len(lines) > len(gaps) > evaluations  # some gaps are for display only
    for name in METHODS:
        require_bits([each[name] for each in (first, *others)], in_one_process(name))


def test_no_message_of_a_stopped_run_reaches_the_next(launched):
    found = found_by_all(launched, 2, "stopped_early_and_again")
    problem = adfs.Problem(shards(), sigma=0.1, topology=topology())
    for k in range(3):
        result = adfs.solve(problem, "adfs", tol=1e-300, max_iter=517 + 100 * k)
        require_bits([each[f"adfs {k}"] for each in found], bits_of(result))


@pytest.mark.parametrize("loss", KINKS)
def test_a_start_from_a_result_has_the_bits_of_one_process(launched, loss):
    found = found_by_all(launched, 2, "started_from_results")
    problem = adfs.Problem(shards(), loss, sigma=0.1, topology=topology())
    require_bits([each[loss] for each in found], bits_of(start_again(problem)))


@pytest.mark.parametrize("loss", KINKS)
def test_a_path_has_the_bits_of_one_process_on_every_rank(launched, loss):
    problem = adfs.Problem(shards(), loss, sigma=0.1, topology=topology())
    for found in found_by_all(launched, 2, "paths"):
        assert found[loss] == path_bits(problem)


SENTENCES = {
    "duals_on_rank_0_only": "warm_start.duals is given on rank 0 and None on rank 1",
    "nan_on_rank_1": "NaN",
    "other_width_on_rank_1": "rank 0 have 5 features but those of another rank have 3",
    "a_node_twice": "^Node 0 of rank 1 is twice; every node of the graph is on one rank",
    "a_node_on_no_rank": "^Node [23] of grid:2x3 is on no rank; give its shard to one",
    "fewer_shards_than_nodes_on_rank_1": "^Rank 1 gives [12] shards for nodes=.*; give one shard",
    "another_graph_on_rank_1": r"topology is grid:2x3 .*on rank 0 and ring:6 .*on rank 1",
    "another_sigma_on_rank_1": "sigma is 0.1 on rank 0 and 0.2 on rank 1",
    "another_seed_on_rank_1": "seed is 0 on rank 0 and 7 on rank 1; give all",
    "another_algorithm_on_rank_1": "algorithm is '?adfs'? on rank 0 and '?newton'? on rank 1",
    "a_method_for_one_machine": "^Algorithm 'point-saga' is for one machine",
    "delays_by_chance": "constant delays; use engine='local'",
    "a_comparison": "`adfs compare DATA --engine mpi`",
    "a_faulty_file": "faulty-5.svm, line 21: a value must be a finite number",
    "another_seed_of_the_deal_on_rank_1": "seed is 0 on rank 0 and 7 on rank 1; give all",
    "more_ranks_than_nodes": "There are [23] ranks for 1 nodes, but every rank needs a node",
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", SENTENCES)
def test_what_is_wrong_on_one_rank_is_the_same_error_on_all(launched, case, size):
    met = launched(size)[case]
    assert all(each == met[0] for each in met)
    kind, sentence = met[0]
    assert kind in {"DataError", "GraphError", "ParameterError"}
    assert re.search(SENTENCES[case], sentence)
