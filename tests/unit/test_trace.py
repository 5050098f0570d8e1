"""The trace: the contract's columns, every digit kept, written whole or not at all."""

import csv
import json
import os

import numpy as np
import pytest

from adfs.engine.trace import COLUMNS, Trace
from adfs.storage import write_whole

CONTRACT = [
    "iteration", "idealized_time", "wall_time", "n_prox", "n_grad", "n_comm", "bytes",
    "objective", "suboptimality", "duality_gap", "consensus_error",
]  # fmt: skip


def make_trace():
    trace = Trace()
    trace.append(iteration=0, objective=1 / 3, suboptimality=None, duality_gap=0.1, n_comm=0)
    trace.append(iteration=2000, objective=2 / 7, duality_gap=1e-300, n_comm=12, wall_time=0.5)
    return trace


def read_back(path):
    with open(path, newline="") as stream:
        return list(csv.reader(stream))


def test_columns_are_those_of_the_contract_in_its_order():
    assert list(COLUMNS) == CONTRACT
    assert list(Trace().to_dict()) == CONTRACT


def test_rows_come_back_with_none_where_nothing_is_known():
    trace = make_trace()
    assert len(trace) == 2
    assert trace["iteration"] == [0, 2000]
    assert trace["suboptimality"] == [None, None]
    assert trace.last() == dict.fromkeys(COLUMNS) | {
        "iteration": 2000,
        "objective": 2 / 7,
        "duality_gap": 1e-300,
        "n_comm": 12,
        "wall_time": 0.5,
    }


def test_an_unknown_column_is_refused():
    with pytest.raises(KeyError, match="A trace has no column 'gap'"):
        Trace().append(gap=1.0)


def test_what_is_given_out_is_a_copy():
    trace = make_trace()
    trace.to_dict()["iteration"].append(5)
    trace["iteration"].clear()
    assert trace["iteration"] == [0, 2000]


def test_csv_keeps_every_digit_and_leaves_unknown_cells_empty(tmp_path):
    trace = make_trace()
    trace.to_csv(tmp_path / "trace.csv")
    header, first, second = read_back(tmp_path / "trace.csv")
    assert header == CONTRACT
    column = CONTRACT.index
    assert float(first[column("objective")]) == 1 / 3
    assert float(second[column("duality_gap")]) == 1e-300
    assert second[column("iteration")] == "2000"
    assert first[column("suboptimality")] == first[column("wall_time")] == ""


def test_numbers_of_numpy_are_stored_as_plain_numbers(tmp_path):
    trace = Trace()
    trace.append(
        iteration=np.int64(3), objective=np.float64(0.1), duality_gap=np.float32(0.5), n_prox=7
    )
    json.dumps(trace.to_dict())
    trace.to_csv(tmp_path / "trace.csv")
    row = dict(zip(*read_back(tmp_path / "trace.csv"), strict=True))
    assert (row["iteration"], row["objective"], row["duality_gap"]) == ("3", "0.1", "0.5")


def test_an_empty_trace_is_a_header(tmp_path):
    Trace().to_csv(tmp_path / "trace.csv")
    assert read_back(tmp_path / "trace.csv") == [CONTRACT]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "trace.csv"
    write_whole(path, b"old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_does_not_exist_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="No such file or directory"):
        make_trace().to_csv(tmp_path / "nowhere" / "trace.csv")
