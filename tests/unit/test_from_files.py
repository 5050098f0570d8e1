"""`Problem.from_files` in one process is what `partition` and `Problem` make of the rows."""

import numpy as np
import pytest

import adfs
from adfs.cli import options
from adfs.data.generators import two_gaussians
from adfs.errors import AdfsError
from adfs.mpi import problem_loading as loading
from support.python_runs import N_NODES, files_of, shards, topology, write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    X, y = two_gaussians(40, 3, seed=1)
    np.savez(folder / "rows.npz", X=X, y=y)
    return files_of(folder) | {"npz": folder / "rows.npz", "missing": f"{folder}/none-{{node}}"}


def same(problem, other):
    assert repr(problem) == repr(other)
    for name in ("labels", "weights", "offsets", "sigma", "squared_norms"):
        np.testing.assert_array_equal(getattr(problem, name), getattr(other, name))
    np.testing.assert_array_equal(problem.rows.values, other.rows.values)


def test_one_file_per_node_is_the_problem_of_these_shards(files):
    sigma = np.arange(1.0, 1.0 + N_NODES)
    problem = adfs.Problem.from_files(files["pattern"], "squared_hinge", sigma, topology())
    same(problem, adfs.Problem(shards(), "squared_hinge", sigma, topology()))


@pytest.mark.parametrize(
    "deal", [{}, {"seed": 5}, {"how": "contiguous"}, {"how": "draw", "m": 6, "seed": 2}]
)
def test_one_file_is_dealt_as_partition_does(files, deal):
    X, y = two_gaussians(40, 3, seed=1)
    problem = adfs.Problem.from_files(files["npz"], n_nodes=5, **deal)
    same(problem, adfs.Problem(adfs.partition(X, y, 5, **deal)))


def test_the_number_of_nodes_is_that_of_files_or_graph_or_four(files):
    assert adfs.Problem.from_files(files["pattern"]).topology.name == "grid:2x3"
    ring = adfs.Topology.ring(7)
    assert adfs.Problem.from_files(files["whole"], topology=ring).n_nodes == 7
    assert adfs.Problem.from_files(files["whole"]).topology.name == "grid:2x2"
    assert adfs.Problem.from_files("breast-cancer", n_nodes=1).n_nodes == 1
    assert loading.DEFAULT_NODES == options.DEFAULT_NODES


def test_columns_beyond_those_of_the_files_are_zero(files):
    assert adfs.Problem.from_files(files["whole"], n_features=9).n_features == 9


REFUSED = {
    "files": ({"source": "pattern", "n_nodes": 3}, "n_nodes=3 must equal the number of files of"),
    "graph": ({"source": "pattern", "topology": adfs.Topology.ring(4)}, "but the number of files"),
    "nodes": ({"n_nodes": 3, "topology": adfs.Topology.ring(4)}, "4 nodes but n_nodes is 3"),
    "deal": ({"source": "pattern", "how": "contiguous"}, "has a file for each; leave them out"),
    "engine": ({"engine": "cloud"}, "engine='cloud' is unknown; choose one of local, mpi"),
    "sigma": ({"sigma": 0.0}, "sigma=0 must be a finite number > 0"),
    "loss": ({"loss": "cubic"}, "cubic"),
    "columns": ({"n_features": 2}, "n_features|columns|features"),
    "missing": ({"source": "missing"}, "none-0 is missing"),
    "faulty": ({"source": "faulty"}, "line 21: a value must be a finite number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_a_sentence(files, name):
    arguments, sentence = REFUSED[name]
    arguments = {"source": "whole"} | arguments
    with pytest.raises(AdfsError, match=sentence):
        adfs.Problem.from_files(files[arguments.pop("source")], **arguments)
