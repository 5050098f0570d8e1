"""Commands with ``--engine mpi`` on ranks that are threads of this process.

Everything is as under mpiexec but for processes and MPI: enough for what is refused, which needs
no message between nodes. That processes end with the same line and exit code is shown once per
command in ``tests/mpi``.
"""

import contextlib
import io
import warnings

import pytest

from adfs.cli.main import main
from adfs.mpi.communicator import Communicator
from support.commands import Outcome
from support.peers import on_ranks
from support.ranks import ThreadNetwork


def on_thread_ranks(size, *arguments):
    """Exit code of all ranks, and what they have printed together."""
    words = [*map(str, arguments), "--engine", "mpi"]
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(),
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
    ):  # fmt: skip
        worlds = []
        patch.setattr("adfs.cli.commands.is_supervised", lambda: True)
        patch.setattr("adfs.mpi.problem_loading.MpiNetwork", ThreadNetwork)
        patch.setattr(Communicator, "open", lambda link: contextlib.nullcontext(worlds.pop()))

        def work(peers):
            worlds.append(peers)  # taken before another rank has its turn
            return main(words)

        codes, _ = on_ranks(size, work)
    (code,) = set(codes)
    return Outcome(code, out.getvalue(), err.getvalue())
