"""What the process that started us (mpiexec, srun) tells before MPI is loaded, and is told.

Launchers speak through the environment: MPICH's hydra and Slurm's PMI set ``PMI_*``, Open MPI
``OMPI_COMM_WORLD_*``, and srun without any PMI only ``SLURM_*``.
"""

import os
import socket
import sys
import time

RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
# The job's own SLURM_NTASKS is set in a batch script too, where one process is what was asked for.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
PAUSE = 0.2  # seconds; without a pause one sentence in ten was lost


def rank_by_environment() -> int | None:
    """The number that the launcher gave this process; None without a launcher."""
    return _first_number(RANKS)


def size_by_environment() -> int | None:
    """How many processes the launcher started; None where it does not say."""
    return _first_number(SIZES)


def _first_number(names: tuple[str, ...]) -> int | None:
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def end_job(code: int) -> None:
    """Ask the launcher to end the job with this exit code, where it speaks the first PMI.

    Our own exit code is not enough: on several hosts hydra waits on for the others, and on one it
    kills them, takes the exit code from there and puts a banner on stdout. Open MPI has no such
    line, and ends the job when one process does.
    """
    line = os.environ.get("PMI_FD", "")
    if not line.isdigit():
        return
    try:
        os.write(int(line), f"cmd=abort exitcode={code}\n".encode())
    except OSError:
        return  # the launcher is gone: the job has ended
    time.sleep(PAUSE)  # it kills us meanwhile


def say(text: str) -> None:
    """One line on stderr in one piece: lines of several ranks do not run into each other."""
    sys.stderr.flush()
    try:
        os.write(2, f"adfs: {text}\n".encode())
    except OSError:
        return  # nobody listens any more, and the exit code still speaks
    time.sleep(PAUSE)  # a launcher that ends a job drops what it has not carried away yet


class Turn:
    """Of the processes of a job on one host, the first that has to speak may.

    When one process of a job dies, hydra kills the supervisors of all others, whose ranks cannot
    tell this from an accident and would each say a sentence of their own. A name among Linux's
    abstract sockets can be taken by one process only, and is free again when that process ends.
    Elsewhere everybody speaks.

    Parameters
    ----------
    job : int
        What the processes of a job have in common: the process that started them.
    """

    def __init__(self, job: int) -> None:
        self._name = f"\0adfs-{os.getuid()}-{job}"
        self._held: socket.socket | None = None

    def say(self, text: str) -> None:
        """Say it, unless another process is speaking; then let it finish.

        Whoever comes back from here ends the job, and would cut the other's sentence off.
        """
        if self._take():
            say(text)
        else:
            time.sleep(2 * PAUSE)

    def _take(self) -> bool:
        if self._held is not None or not sys.platform.startswith("linux"):
            return True
        name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            name.bind(self._name)
        except OSError:
            name.close()
            return False
        self._held = name
        return True
