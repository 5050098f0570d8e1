"""The process that started this one (mpiexec, srun): its environment, and how to end its job.

MPICH's hydra and Slurm's PMI set ``PMI_*``, Open MPI ``OMPI_COMM_WORLD_*``, and srun without any
PMI only ``SLURM_*``.
"""

import contextlib
import os
import socket
import sys
import time

RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
# The job's own SLURM_NTASKS is set in a batch script too, where one process was asked for.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
SET_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
PAUSE = 0.2  # seconds; without a pause one message in ten was lost


def rank_by_environment() -> int | None:
    """The number that the launcher gave this process; None without a launcher."""
    return _first_number(RANKS)


def size_by_environment() -> int | None:
    """How many processes the launcher started; None where it does not set it."""
    return _first_number(SIZES)


def _first_number(names: tuple[str, ...]) -> int | None:
    found = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in found if text.isdigit()), None)


def end_job(code: int) -> None:
    """Ask the launcher to end the job with this exit code, where it supports the first PMI.

    Our own exit code is not enough: on several hosts hydra continues to wait for the others, and
    on one it kills them, takes the exit code from there and prints a banner on stdout. Open MPI has
    no such request, and ends the job when one process ends.
    """
    descriptor = os.environ.get("PMI_FD", "")
    if descriptor.isdigit():
        with contextlib.suppress(OSError):  # the launcher may have ended, and the job with it
            os.write(int(descriptor), f"cmd=abort exitcode={code}\n".encode())
            time.sleep(PAUSE)  # it kills us meanwhile


def signal_at_end_of_parent(number: int) -> None:
    """Request a signal for when our parent ends, where the system supports that (Linux)."""
    import ctypes

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0)


_names: dict[str, socket.socket] = {}  # that this process has taken; free when it ends


def print_failure(text: str, job: int) -> None:
    """Print the failure message of a job on stderr, once per host, and give it time to arrive.

    When one process of a job dies, hydra kills the supervisors of all others, and the rank of each
    of them would print a message. A name among Linux's abstract sockets can be taken by one process
    only. On other systems all processes print. ``job`` is the process that started all of them.
    """
    if not _is_first(f"\0adfs-{os.getuid()}-{job}"):
        time.sleep(2 * PAUSE)  # the caller ends the job next, which would cut off the message
        return
    sys.stderr.flush()
    with contextlib.suppress(OSError):  # stderr may be closed; the exit code remains
        os.write(2, f"adfs: {text}\n".encode())  # in one piece: lines of ranks do not mix
        time.sleep(PAUSE)  # a launcher that ends a job drops output that it has not read yet


def _is_first(name: str) -> bool:
    if name in _names or not sys.platform.startswith("linux"):
        return True
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        taken.bind(name)
    except OSError:
        taken.close()
        return False
    _names[name] = taken
    return True
