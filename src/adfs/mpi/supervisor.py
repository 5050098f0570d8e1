"""The process that mpiexec starts: small, without MPI, it reports how its rank ended.

An MPI library that loses a rank ends the job at once without a useful message, and a killed rank
cannot print one. So the rank itself is a child of this process (`Supervisor`), which remains when
the child dies. Two pipes join them: through one the child (`SupervisorLink`) reports its facts and
its normal end; nothing is written to the other, whose end shows the child that the supervisor died.

The child inherits all file descriptors, because the launcher's PMI uses one of them, and runs in a
session of its own, so that a terminal's Ctrl-C arrives once, through the supervisor.

Imports neither MPI nor arithmetic: this process lives as long as the rank and should cost nothing.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from adfs.errors import AdfsError
from adfs.mpi.failure_message import RankFacts, failure_message, how_it_ended
from adfs.mpi.launcher import FailurePrinter, end_job, rank_by_environment

LINK = "ADFS_SUPERVISED"  # "read,write,launcher": the child's ends of the pipes, and a process
FINISHED = "finished"
FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
POLL = 0.25  # seconds between two checks of the child's state
FAILED = 1


def is_supervised() -> bool:
    """Whether this process is a supervisor's child that has not opened its link yet."""
    return LINK in os.environ


def supervise(argv: Sequence[str]) -> int:
    """Run ``adfs`` with these arguments as a supervised child; returns the exit code.

    The child's own code is returned when it has reported its normal end. When it was killed,
    stopped for longer than its timeout, or ended without that report, one message on stderr names
    the rank, its nodes, the ranks that wait for it and the way out, and the code is 1; a signal
    that was meant for the job (`FORWARDED`) gives 128 + its number, as in a shell.
    """
    return Supervisor([sys.executable, "-m", "adfs", *argv], held=("SIGINT", "SIGTERM")).run()


class Supervisor:
    """One child process, from its start to the message about its end.

    Parameters
    ----------
    command : sequence of str
        What to run; it should open a `SupervisorLink` soon.
    held : sequence of str
        Signals that are blocked in the child until it unblocks them (`signal.pthread_sigmask`),
        when it has handlers: while Python starts, they would cause a traceback.

    Examples
    --------
    >>> Supervisor([sys.executable, "-c", "pass"]).run()
    0
    """

    def __init__(self, command: Sequence[str], held: Sequence[str] = ()) -> None:
        self.command = list(command)
        self._held = [getattr(signal, name) for name in held]
        self.facts = RankFacts()
        self.finished = False  # the child has reported its normal end
        self._process: subprocess.Popen[bytes] | None = None
        self._forwarded: list[int] = []
        self._pending: list[int] = []
        self._stopped: float | None = None  # seconds in the stopped state; None: it runs
        self._unread = b""
        self._launcher = os.getppid()

    def run(self) -> int:
        """Start the child, wait, and return the exit code."""
        previous = self._handle_signals()
        try:
            reports, alive = self._start()
            try:
                return self._wait(reports)
            finally:
                os.close(reports)
                os.close(alive)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _start(self) -> tuple[int, int]:
        """Start the child; returns our ends of the pipes."""
        reports, write = os.pipe()
        read, alive = os.pipe()
        for end in (write, read):
            os.set_inheritable(end, True)
        environment = {**os.environ, LINK: f"{read},{write},{self._launcher}"}
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._held)  # the child inherits it
        try:
            self._process = subprocess.Popen(
                self.command, close_fds=False, start_new_session=True, env=environment
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(write)
            os.close(read)
        self._send_pending()
        return reports, alive

    def _handle_signals(self) -> dict[int, Any]:
        """Forward signals from now on; ignored ones (nohup) stay ignored."""
        previous: dict[int, Any] = {}
        for name in FORWARDED:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, self._forward)
        return previous

    def _forward(self, number: int, frame: FrameType | None) -> None:
        """Forward each kind of signal once: launchers repeat them, and a second one kills."""
        if number not in self._forwarded:
            self._forwarded.append(number)
            self._pending.append(number)
            self._send_pending()

    def _send_pending(self) -> None:
        """Send pending signals; one may come before the child has started, or after its end."""
        while self._pending and self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, self._pending.pop(0))

    def _wait(self, reports: int) -> int:
        """Read and poll, until the child has ended or has to be killed."""
        is_open, last = True, time.monotonic()
        while True:
            is_open = is_open and self._read(reports)
            if not is_open:
                time.sleep(POLL / 10)  # the pipe ends a moment before the process does
            code = self._poll()
            if code is not None:
                while is_open and select.select([reports], [], [], 0)[0]:
                    is_open = self._read(reports)
                return self._exit_code(code)
            now = time.monotonic()
            reason = self._reason_to_kill(now - last)
            last = now
            if reason is not None:
                return self._kill(reason)

    def _read(self, reports: int) -> bool:
        """Read what the child reports, for `POLL` seconds; False once it has closed its end."""
        if not select.select([reports], [], [], POLL)[0]:
            return True
        piece = os.read(reports, 1 << 16)
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for report in map(json.loads, lines):
            if report == FINISHED:
                self.finished = True
            else:
                self.facts = self.facts.updated(report)
        return bool(piece)

    def _poll(self) -> int | None:
        """The child's return code once it is dead; records whether it is stopped.

        Stops are reported by ``waitpid`` itself, which every POSIX system has, unlike ``/proc``.
        """
        assert self._process is not None
        options = os.WNOHANG | os.WUNTRACED | os.WCONTINUED
        while True:
            pid, status = os.waitpid(self._process.pid, options)
            if pid == 0:
                return None
            if os.WIFSTOPPED(status):
                self._stopped = 0.0
            elif os.WIFCONTINUED(status):
                self._stopped = None
            else:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return self._process.returncode

    def _reason_to_kill(self, elapsed: float) -> str | None:
        """Why the child should not be waited for any longer, if there is a reason.

        A poll counts for no more than the usual pause: where the whole job was suspended, this
        process was stopped as well, and that is not the child's fault.
        """
        if rank_by_environment() is not None and os.getppid() != self._launcher:
            return "stopped: mpiexec has ended"
        if self._stopped is None:
            return None
        self._stopped += min(elapsed, 2 * POLL)
        if self._stopped < self.facts.timeout:
            return None
        return f"was stopped (SIGSTOP) for more than {self.facts.timeout:g} s"

    def _kill(self, reason: str) -> int:
        """Kill the child and all processes that it has started."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):  # it may end by itself at this moment
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return self._fail(reason)

    def _exit_code(self, code: int) -> int:
        """The exit code for a child that ended with ``code``, after a message where one is due."""
        number = -code if code < 0 else code - 128
        if number in self._forwarded:
            return 128 + number  # as requested; launchers that clean up send SIGTERM too
        if code >= 0 and (self.finished or code == 0):
            return code
        return self._fail(how_it_ended(code))

    def _fail(self, what: str) -> int:
        """Print what happened, and end the job."""
        FailurePrinter(self._launcher).print(failure_message(self.facts, what))
        end_job(FAILED)
        return FAILED


class SupervisorLink:
    """The child's end: reports its facts and its normal end to its supervisor, if it has one.

    Leaving the context reports a normal end, unless an unexpected error is raised: the supervisor
    then names the rank that the traceback belongs to. A thread waits for the end of the supervisor;
    then it prints the message in its place and ends this process, so that no rank runs on without a
    launcher.

    Without a supervisor (a single process, a test) nothing is reported.

    Examples
    --------
    >>> with SupervisorLink() as link:
    ...     link.report(rank=0, size=1, nodes=[0, 1], peers={}, timeout=60.0, resumable=False)
    >>> link.supervised
    False
    """

    def __init__(self) -> None:
        found = os.environ.pop(LINK, None)  # our own children are not supervised
        self.supervised = found is not None
        self.facts = RankFacts()
        self._finished = False
        self._printer = FailurePrinter(os.getppid())
        if found is not None:
            read, self._pipe, launcher = (int(number) for number in found.split(","))
            self._printer = FailurePrinter(launcher)
            for end in (read, self._pipe):
                os.set_inheritable(end, False)
            threading.Thread(target=self._wait_for_end, args=(read,), daemon=True).start()

    def report(self, **changes: Any) -> None:
        """Replace some of the `RankFacts`: rank, size, nodes, peers, timeout, resumable."""
        self.facts = self.facts.updated(changes)
        self._send(changes)

    def finish(self) -> None:
        """Report that what follows is a normal end, with any exit code: no message is needed."""
        if not self._finished:
            self._finished = True
            self._send(FINISHED)

    def print_failure(self, text: str) -> None:
        """A last message on stderr, unless another rank of this host has printed one."""
        self.finish()
        self._printer.print(text)

    def _send(self, report: Any) -> None:
        line = json.dumps(report).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the thread that waits for this acts soon
            while self.supervised and line:
                line = line[os.write(self._pipe, line) :]

    def _wait_for_end(self, read: int) -> None:
        """Wait for the end of a pipe into which nothing is written: the supervisor has ended."""
        os.read(read, 1)
        what = "stopped: its supervisor (the process that mpiexec started) has ended"
        self._printer.print(failure_message(self.facts, what))
        if not self._finished:
            end_job(FAILED)
        os._exit(FAILED)

    def __enter__(self) -> "SupervisorLink":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if kind is None or issubclass(kind, AdfsError | OSError) or not issubclass(kind, Exception):
            self.finish()
