"""`adfs info --mpi` measures a machine; its fit and its pairing are right."""

import contextlib
import json
import subprocess
import sys
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from adfs.agreement import Alone
from adfs.mpi.communicator import Communicator
from adfs.mpi.measure import SIZES, fit_line, partner
from support.commands import here
from support.selection import soak_except

MODULE = ("-m", "adfs", "info", "--mpi")


@pytest.fixture(scope="module")
def measured(mpiexec):
    """What so many ranks measure; each launch is made once."""

    @cache
    def measure(size):
        run = mpiexec.run(size, *MODULE, "--json")
        assert (run.returncode, run.stderr) == (0, "")
        (line,) = run.stdout.splitlines()  # only rank 0 prints
        return json.loads(line)

    return measure


@pytest.mark.parametrize("size", soak_except((2,), (2, 3)))
def test_info_measures_positive_times_and_their_ratio(measured, size):
    record = measured(size)
    found = record["mpi"]
    assert (found["ranks"], found["hosts"]) == (size, 1)
    assert record["extras"]["mpi4py"]
    assert [row["n_features"] for row in found["sizes"]] == list(SIZES)
    for row in found["sizes"]:
        assert 0 < row["prox_ns"] < 1e8
        assert 0 < row["exchange_us"] <= row["slowest_us"] < 1e6
        assert row["tau"] == pytest.approx(1e3 * row["exchange_us"] / row["prox_ns"])
        assert 0 <= row["slowest_pair"][0] < row["slowest_pair"][1] < size
    assert found["sizes"][-1]["prox_ns"] > 20 * found["sizes"][0]["prox_ns"]  # d is 3,571 times
    assert found["latency_us"] >= 0
    assert found["bandwidth_gb_s"] is None or found["bandwidth_gb_s"] > 0  # None: noise


def test_info_prints_a_table_once_and_says_how_to_use_tau(measured, monkeypatch):
    record = measured(2)["mpi"]
    monkeypatch.setattr(Communicator, "open", lambda: contextlib.nullcontext(Alone()))
    monkeypatch.setattr("adfs.mpi.measure.measure", lambda world: record)
    run = here("info", "--mpi")
    assert (run.code, run.err) == (0, "")
    assert run.out.count("proximal step  ") == 1
    assert run.out.startswith("2 ranks on 1 host, ")
    assert "exchange = " in run.out
    assert "here --tau " in run.out


def test_one_rank_is_told_how_to_start_two():
    run = subprocess.run([sys.executable, *MODULE], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert "and there is only one; start it as mpiexec -n 2 adfs info --mpi." in run.stderr


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 9])
def test_in_the_tournament_every_pair_meets_exactly_once(size):
    met = []
    for turn in range(size - 1 + size % 2):
        peers = [partner(rank, turn, size) for rank in range(size)]
        for rank, peer in enumerate(peers):
            assert peer != rank
            assert peer is None or peers[peer] == rank
        assert peers.count(None) == size % 2
        met += [(rank, peer) for rank, peer in enumerate(peers) if peer is not None and rank < peer]
    assert sorted(met) == list(combinations(range(size), 2))


def test_the_fit_finds_the_line_that_times_lie_on():
    amounts = np.array([232.0, 8008.0, 80008.0, 800008.0])
    latency, per_byte, error = fit_line(amounts, 2.0 + 1e-4 * amounts)
    assert (latency, per_byte) == pytest.approx((2.0, 1e-4), rel=1e-9)
    assert error < 1e-9


def test_the_fit_minimises_relative_errors_among_lines_that_do_not_go_below_zero():
    amounts, times = np.array([1.0, 10.0, 100.0]), np.array([0.5, 30.0, 200.0])
    latency, per_byte, error = fit_line(amounts, times)
    grid = [(a, b) for a in np.linspace(0, 2, 201) for b in np.linspace(0, 4, 401)]
    losses = [np.sum(((a + b * amounts) / times - 1) ** 2) for a, b in grid]
    best = grid[int(np.argmin(losses))]
    assert (latency, per_byte) == pytest.approx(best, abs=0.011)
    assert error == pytest.approx(np.abs((latency + per_byte * amounts) / times - 1).max())
