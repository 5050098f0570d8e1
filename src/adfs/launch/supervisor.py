"""The process that mpiexec starts: small, without MPI, and there to tell how its rank ended.

An MPI library that loses a rank ends the job at once and says nothing useful; a rank that is killed
cannot speak. So the rank itself is a child of this process, which is left when the child dies. They
are joined by two pipes: through one the child tells who it is and says goodbye, the other has no
words and only tells the child, by its end, that the supervisor is gone (`adfs.launch.watch`).

The child inherits all file descriptors, because the launcher's PMI speaks through one of them, and
runs in a session of its own, so that a terminal's Ctrl-C comes once, through here.

Imports neither MPI nor arithmetic: this process lives as long as the rank and should cost nothing.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from adfs.launch.casualty import Facts, how_it_ended, sentence
from adfs.launch.launcher import Turn, end_job, rank_by_environment

TIES = "ADFS_SUPERVISED"  # "hear,tell,job": the child's ends of the two pipes, and the launcher
FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
LOOK_EVERY = 0.25  # seconds between two looks at the child's state
FAILED = 1


def is_supervised() -> bool:
    """Whether this process is a supervisor's child that has not opened its `Watch` yet."""
    return TIES in os.environ


def supervise(argv: Sequence[str]) -> int:
    """Run ``adfs`` with these arguments as a supervised child; returns the exit code to leave with.

    The child's own code is passed on when it said goodbye. When it was killed, stopped for longer
    than its timeout, or ended without a word, one sentence on stderr names the rank, its nodes, the
    peers that wait for it and the way out, and the code is 1; a signal that was meant for the job
    (`FORWARDED`) gives 128 + its number, as in a shell.
    """
    return Supervisor([sys.executable, "-m", "adfs", *argv]).run()


class Supervisor:
    """One child process, from its start to the sentence about its end.

    Parameters
    ----------
    command : sequence of str
        What to run; it should open a `Watch` soon.

    Examples
    --------
    >>> Supervisor([sys.executable, "-c", "pass"]).run()
    0
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self.facts = Facts()
        self.done = False  # the child said goodbye
        self._process: subprocess.Popen[bytes] | None = None
        self._forwarded: list[int] = []
        self._pending: list[int] = []
        self._stopped: float | None = None  # seconds seen in the stopped state; None: it runs
        self._unread = b""
        self._launcher = os.getppid()
        self._turn = Turn(self._launcher)

    def run(self) -> int:
        """Start the child, wait, and return the exit code."""
        previous = self._listen()
        try:
            news, alive = self._start()
            try:
                return self._wait(news)
            finally:
                os.close(news)
                os.close(alive)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _start(self) -> tuple[int, int]:
        """The child, and our ends of the pipes: where it tells, and what shows that we live."""
        news, tell = os.pipe()
        hear, alive = os.pipe()
        for end in (tell, hear):
            os.set_inheritable(end, True)
        environment = {**os.environ, TIES: f"{hear},{tell},{self._launcher}"}
        try:
            self._process = subprocess.Popen(
                self.command, close_fds=False, start_new_session=True, env=environment
            )
        finally:
            os.close(tell)
            os.close(hear)
        self._deliver()
        return news, alive

    def _listen(self) -> dict[int, Any]:
        """Forward signals from now on; what is ignored (nohup) stays ignored."""
        previous: dict[int, Any] = {}
        for name in FORWARDED:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, self._forward)
        return previous

    def _forward(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on, once of a kind: launchers repeat them, and a second one means die."""
        if number not in self._forwarded:
            self._forwarded.append(number)
            self._pending.append(number)
            self._deliver()

    def _deliver(self) -> None:
        """Send what is pending; a signal may come before there is a child, or when it is gone."""
        while self._pending and self._process is not None and self._process.returncode is None:
            try:
                os.kill(self._process.pid, self._pending.pop(0))
            except ProcessLookupError:
                return

    def _wait(self, news: int) -> int:
        """Read and look, until the child is gone or has to be given up."""
        listening, last = True, time.monotonic()
        while True:
            listening = listening and self._read(news)
            if not listening:
                time.sleep(LOOK_EVERY / 10)  # the pipe ends a moment before the process does
            code = self._look()
            if code is not None:
                self._drain(news, listening)
                return self._verdict(code)
            now = time.monotonic()
            reason = self._given_up(now - last)
            last = now
            if reason is not None:
                return self._give_up(reason)

    def _read(self, news: int, patience: float = LOOK_EVERY) -> bool:
        """Take what the child tells, or wait a little; False once it has closed its end."""
        if not select.select([news], [], [], patience)[0]:
            return True
        piece = os.read(news, 1 << 16)
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            self._hear(line)
        return bool(piece)

    def _drain(self, news: int, listening: bool) -> None:
        """Last words that were still in the pipe when the child was found dead."""
        while listening and select.select([news], [], [], 0)[0]:
            listening = self._read(news, 0)

    def _hear(self, line: bytes) -> None:
        words = json.loads(line)
        if words == "bye":
            self.done = True
        else:
            self.facts = self.facts.told(words)

    def _look(self) -> int | None:
        """The child's return code once it is dead; notes whether it is stopped meanwhile.

        Stops are reported by ``waitpid`` itself, which every POSIX system has, unlike ``/proc``.
        """
        assert self._process is not None
        while True:
            pid, status = os.waitpid(
                self._process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED
            )  # fmt: skip
            if pid == 0:
                return None
            if os.WIFSTOPPED(status):
                self._stopped = 0.0
            elif os.WIFCONTINUED(status):
                self._stopped = None
            else:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return self._process.returncode

    def _given_up(self, elapsed: float) -> str | None:
        """Why the child should not be waited for any longer, if there is a reason.

        A look counts for no more than the usual pause: where the whole job was suspended, this
        process slept as well, and that is no fault of the child.
        """
        if rank_by_environment() is not None and os.getppid() != self._launcher:
            return "was left by mpiexec"
        if self._stopped is None:
            return None
        self._stopped += min(elapsed, 2 * LOOK_EVERY)
        if self._stopped < self.facts.timeout:
            return None
        return f"was stopped (SIGSTOP) for more than {self.facts.timeout:g} s"

    def _give_up(self, reason: str) -> int:
        """Take the child and all it has started along."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):  # it may go by itself in this very moment
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return self._fail(reason)

    def _verdict(self, code: int) -> int:
        """The exit code for a child that ended with ``code``, after a sentence if it needs one."""
        if code < 0 and -code in self._forwarded:
            return 128 - code  # as was wished; launchers that clean up send SIGTERM too
        if code >= 0 and (self.done or code == 0):
            return code
        return self._fail(how_it_ended(code))

    def _fail(self, what: str) -> int:
        """Say what happened, and end the job."""
        self._turn.say(sentence(self.facts, what))
        end_job(FAILED)
        return FAILED
