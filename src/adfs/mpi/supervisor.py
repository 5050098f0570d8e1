"""The process that mpiexec starts: small, without MPI, it reports how its rank ended.

An MPI library that loses a rank ends the job at once without a useful message, and a killed rank
cannot print one. So the rank itself is a child of this process (`Supervisor`), which remains when
the child dies. A socket joins them: through it the child (`SupervisorLink`) reports its facts; in
the other direction nothing is written, and its end shows the child that the supervisor died.

The child inherits all file descriptors, because the launcher's PMI uses one of them, and runs in a
session of its own, so that a terminal's Ctrl-C arrives once, through the supervisor.

Imports neither MPI nor arithmetic: this process lives as long as the rank and should cost nothing.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from adfs.errors import AdfsError
from adfs.mpi import launcher

LINK = "ADFS_SUPERVISED"  # "socket,launcher": the child's end of the socket, and a process
FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
POLL = 0.25  # seconds between two checks of the child's state
MOST_NAMED = 8
FAILED = 1


@dataclass(frozen=True)
class RankFacts:
    """What a rank has reported of itself; all of it may be missing when it dies early.

    Examples
    --------
    >>> facts = RankFacts(rank=1, nodes=[2, 3], peers={0: [0, 1]})
    >>> print(failure_message(facts, "was killed by SIGKILL"))
    rank 1 (nodes 2-3) was killed by SIGKILL, and rank 0 (nodes 0-1) waits for it: the job \
ends; run it again, with --checkpoint DIR to be able to continue.
    """

    rank: int | None = None
    nodes: Sequence[int] = ()
    # Nodes of other ranks that wait for its messages, by rank; JSON turns ranks into texts.
    peers: Mapping[Any, Sequence[int]] = field(default_factory=dict)
    timeout: float = 60.0  # seconds that it may be stopped
    resumable: bool = False  # whether there are checkpoints to continue from
    finished: bool = False  # whether a normal end follows, with any exit code


def failure_message(facts: RankFacts, what: str) -> str:
    """Which rank failed and how, which ranks wait for it, and the way out."""
    again = "run it again, with --checkpoint DIR to be able to continue."
    way_out = "continue with --resume." if facts.resumable else again
    peers = sorted((int(rank), nodes) for rank, nodes in facts.peers.items())
    names = [f"rank {rank} ({_node_names(nodes)})" for rank, nodes in peers[:MOST_NAMED]]
    if len(peers) > MOST_NAMED:
        names.append(f"{len(peers) - MOST_NAMED} more ranks")
    waits = "waits" if len(peers) == 1 else "wait"
    waiting = f", and {', '.join(names)} {waits} for it" if names else ""
    return f"{rank_name(facts)} {what}{waiting}: the job ends; {way_out}"


def rank_name(facts: RankFacts) -> str:
    """``rank 1 (nodes 2-3)``, as far as it is known."""
    rank = launcher.rank_by_environment() if facts.rank is None else facts.rank
    name = "the process" if rank is None else f"rank {rank}"
    return f"{name} ({_node_names(facts.nodes)})" if facts.nodes else name


def _node_names(nodes: Sequence[int]) -> str:
    """``node 4``, ``nodes 0-3, 7``: consecutive numbers are written as a range."""
    ranges: list[list[int]] = []
    for node in sorted(nodes):
        if ranges and node == ranges[-1][1] + 1:
            ranges[-1][1] = node
        else:
            ranges.append([node, node])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MOST_NAMED]]
    more = ", ..." if len(ranges) > MOST_NAMED else ""
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(texts)}{more}"


def is_supervised() -> bool:
    """Whether this process is a supervisor's child that has not opened its link yet."""
    return LINK in os.environ


def supervise(argv: Sequence[str]) -> int:
    """Run ``adfs`` with these arguments as a supervised child; returns the exit code.

    It is the child's own when it has reported its normal end. When it was killed, stopped for
    longer than its timeout, or ended without that report, there is a message (`failure_message`)
    and the code is 1; a signal that was meant for the job gives 128 + its number, as in a shell.
    """
    return Supervisor([sys.executable, "-m", "adfs", *argv], held=("SIGINT", "SIGTERM")).run()


class Supervisor:
    """One child process, from its start to the message about its end.

    ``command`` should open a `SupervisorLink` soon. Signals named in ``held`` are blocked in the
    child until it has handlers (`signal.pthread_sigmask`): while Python starts, they would cause a
    traceback.

    Examples
    --------
    >>> Supervisor([sys.executable, "-c", "pass"]).run()
    0
    """

    def __init__(self, command: Sequence[str], held: Sequence[str] = ()) -> None:
        self.command = list(command)
        self.facts = RankFacts()
        self._held = [getattr(signal, name) for name in held]
        self._process: Any = None
        self._forwarded: list[int] = []
        self._pending: list[int] = []
        self._stopped: float | None = None  # seconds in the stopped state; None: it runs
        self._unread = b""
        self._launcher = os.getppid()

    def run(self) -> int:
        numbers = [getattr(signal, name) for name in FORWARDED]
        heard = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]  # not with nohup
        previous = {number: signal.signal(number, self._forward) for number in heard}
        try:
            with self._start() as reports:
                return self._wait(reports)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _start(self) -> socket.socket:
        """Start the child; returns our end of the socket."""
        ours, theirs = socket.socketpair()
        theirs.set_inheritable(True)
        environment = {**os.environ, LINK: f"{theirs.fileno()},{self._launcher}"}
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._held)  # the child inherits it
        try:
            with theirs:
                self._process = subprocess.Popen(
                    self.command, close_fds=False, start_new_session=True, env=environment
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._send_pending()
        return ours

    def _forward(self, number: int, frame: FrameType | None) -> None:
        """Forward each kind of signal once: launchers repeat them, and a second one kills."""
        if number not in self._forwarded:
            self._forwarded.append(number)
            self._pending.append(number)
            self._send_pending()

    def _send_pending(self) -> None:
        """Send pending signals; one may come before the child has started, or after its end."""
        while self._pending and self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, IndexError):  # sent by the handler
                os.kill(self._process.pid, self._pending.pop(0))

    def _wait(self, reports: socket.socket) -> int:
        """Read and poll, until the child has ended or has to be killed."""
        reports.settimeout(POLL)
        last = time.monotonic()
        while (code := self._poll()) is None:
            if not self._read(reports):
                time.sleep(POLL / 10)  # the socket ends a moment before the process does
            now = time.monotonic()
            reason = self._reason_to_kill(now - last)
            if reason is not None:
                with contextlib.suppress(ProcessLookupError):  # it may end by itself just now
                    os.killpg(self._process.pid, signal.SIGKILL)  # with all that it has started
                self._process.wait()
                return self._fail(reason)
            last = now
        reports.settimeout(0.0)
        while self._read(reports):
            pass
        return self._exit_code(code)

    def _read(self, reports: socket.socket) -> bool:
        """Read what the child reports; False once there will be no more."""
        try:
            piece = reports.recv(1 << 16)
        except TimeoutError:
            return True
        except BlockingIOError:  # it has ended, but a process that it has started has not
            return False
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            self.facts = replace(self.facts, **json.loads(line))
        return bool(piece)

    def _poll(self) -> int | None:
        """The child's return code once it is dead; records stops, which ``waitpid`` reports."""
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
                self._process.returncode = code = os.waitstatus_to_exitcode(status)
                return code

    def _reason_to_kill(self, elapsed: float) -> str | None:
        """Why the child should not be waited for any longer, if there is a reason.

        A poll counts for no more than the usual pause: where the whole job was suspended, this
        process was stopped as well, and that is not the child's fault.
        """
        if launcher.rank_by_environment() is not None and os.getppid() != self._launcher:
            return "stopped: mpiexec has ended"
        if self._stopped is None:
            return None
        self._stopped += min(elapsed, 2 * POLL)
        if self._stopped < self.facts.timeout:
            return None
        return f"was stopped (SIGSTOP) for more than {self.facts.timeout:g} s"

    def _exit_code(self, code: int) -> int:
        """The exit code for a child that ended with ``code``, after a message where one is due."""
        number = -code if code < 0 else code - 128
        if number in self._forwarded:
            return 128 + number  # as requested; launchers that clean up send SIGTERM too
        if code >= 0 and (self.facts.finished or code == 0):
            return code
        if code > 0:
            return self._fail(f"ended with exit code {code} before its work was done")
        names = {each.value: each.name for each in signal.Signals}  # none of real-time signals
        return self._fail(f"was killed by {names.get(number, f'signal {number}')}")

    def _fail(self, what: str) -> int:
        launcher.print_failure(failure_message(self.facts, what), self._launcher)
        launcher.end_job(FAILED)
        return FAILED


class SupervisorLink:
    """The child's end: reports its facts and its normal end to its supervisor, if it has one.

    Leaving the context reports a normal end, unless an unexpected error is raised: the supervisor
    then names the rank that the traceback belongs to. A thread waits for the end of the supervisor;
    then it prints the message in its place and ends this process: no rank runs without a launcher.

    Examples
    --------
    >>> with SupervisorLink() as link:
    ...     link.report(rank=0, nodes=[0, 1], peers={}, timeout=60.0, resumable=False)
    >>> link.facts.finished
    True
    """

    def __init__(self) -> None:
        self.facts = RankFacts()
        self._launcher = os.getppid()
        self._socket: socket.socket | None = None
        found = os.environ.pop(LINK, None)  # our own children are not supervised
        if found is not None:
            descriptor, self._launcher = map(int, found.split(","))
            self._socket = socket.socket(fileno=descriptor)
            self._socket.set_inheritable(False)
            launcher.signal_at_end_of_parent(signal.SIGCONT)  # if stopped, we have to notice it too
            threading.Thread(target=self._wait_for_end, args=(self._socket,), daemon=True).start()

    def report(self, **changes: Any) -> None:
        """Replace some of the `RankFacts`."""
        self.facts = replace(self.facts, **changes)
        if self._socket is not None:
            with contextlib.suppress(ConnectionError):  # the thread that waits for this acts soon
                self._socket.sendall(json.dumps(changes).encode() + b"\n")

    def fail(self, text: str, code: int) -> None:
        """A last message on stderr, unless another rank of this host has one; ends the job."""
        self.report(finished=True)
        launcher.print_failure(text, self._launcher)
        launcher.end_job(code)

    def _wait_for_end(self, supervisor: socket.socket) -> None:
        with contextlib.suppress(ConnectionError):
            supervisor.recv(1)  # nothing is ever written, so this is the supervisor's end
        what = "stopped: its supervisor (the process that mpiexec started) has ended"
        launcher.print_failure(failure_message(self.facts, what), self._launcher)
        if not self.facts.finished:  # else the launcher's descriptor may be another file by now
            launcher.end_job(FAILED)
        os._exit(FAILED)

    def __enter__(self) -> "SupervisorLink":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if kind is None or issubclass(kind, AdfsError | OSError) or not issubclass(kind, Exception):
            self.report(finished=True)
