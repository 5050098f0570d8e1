"""Programs whose ranks do not end together: whoever would wait for ever is told."""

import pytest

HEAD = """\
import sys
import numpy as np
import adfs
{extra}
from adfs.mpi.launcher import rank_by_environment
rank = rank_by_environment()
rng = np.random.default_rng(rank)
X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
def fit(**options):
    return adfs.LogisticRegression(engine="mpi", **options).fit(X, y)
fit()
{body}
"""
ENDED = "adfs: rank 1 has ended while rank 0 fits and waits for it: the job ends; make the same"
RAISED = "adfs: rank 1 ended with ValueError while others may wait for it: the job ends."


def run(hydra, tmp_path, body, extra=""):
    path = tmp_path / "program.py"
    path.write_text(HEAD.format(body=body, extra=extra))
    return hydra.run(2, path)


@pytest.mark.parametrize(
    ("body", "extra", "sentence"),
    [
        ("if rank == 0: fit()", "", ENDED),
        ("sys.exit(3) if rank == 1 else fit()", "", ENDED),
        # Where the program does not import MPI itself: test_fit.py.
        ("if rank == 1: raise ValueError('own')\nfit()", "from mpi4py import MPI", RAISED),
    ],
)
def test_a_rank_that_ends_alone_ends_the_job_with_a_sentence(
    hydra, tmp_path, body, extra, sentence
):
    done = run(hydra, tmp_path, body, extra)
    assert done.returncode == 1
    assert sentence in done.stderr, done.stderr


def test_ranks_that_end_together_after_an_error_they_agreed_on_leave_with_it(hydra, tmp_path):
    done = run(hydra, tmp_path, "fit(C=-1.0)")
    assert done.returncode == 1
    assert done.stderr.count("ParameterError: C=-1 ") >= 1
    assert "waits for it" not in done.stderr
