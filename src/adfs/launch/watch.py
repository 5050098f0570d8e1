"""The rank's side of its supervisor: who I am, goodbye, and are you still there?"""

import json
import os
import threading
from types import TracebackType
from typing import Any

from adfs.errors import AdfsError
from adfs.launch.casualty import Facts, sentence
from adfs.launch.launcher import Turn, end_job
from adfs.launch.supervisor import TIES

GONE = "has lost its supervisor (the process that mpiexec started)"


class Watch:
    """Tells the supervisor of this process, if it has one, who it is and that it ended well.

    Leaving the context says goodbye, unless an error nobody foresaw is on its way: the supervisor
    then names the rank whose traceback it is. While it is open, and until the process ends, a
    thread waits for the supervisor's death; then it says the sentence in its place and ends the
    process, so that no rank is left behind without a launcher.

    Without a supervisor (a single process, a test) nothing is told and nobody waits.

    Examples
    --------
    >>> with Watch() as watch:
    ...     watch.tell(rank=0, size=1, nodes=[0, 1], peers={}, timeout=60.0, resumable=False)
    >>> watch.supervised
    False
    """

    def __init__(self) -> None:
        ties = os.environ.pop(TIES, None)  # what we start ourselves is not supervised
        self.supervised = ties is not None
        self.facts = Facts()
        self._done = False
        self._turn = Turn(os.getppid())
        if ties is not None:
            hear, self._tell, launcher = (int(number) for number in ties.split(","))
            self._turn = Turn(launcher)
            for end in (hear, self._tell):
                os.set_inheritable(end, False)
            threading.Thread(target=self._guard, args=(hear,), daemon=True).start()

    def tell(self, **news: Any) -> None:
        """Replace some of the facts (see `Facts`): rank, size, nodes, peers, timeout, resumable."""
        self.facts = self.facts.told(news)
        self._send({name: getattr(self.facts, name) for name in news})

    def bye(self) -> None:
        """What follows is a normal end, whatever its exit code: no sentence is needed."""
        if not self._done:
            self._done = True
            self._send("bye")

    def say(self, text: str) -> None:
        """A last sentence on stderr; where another rank of this host has spoken, nothing."""
        self.bye()
        self._turn.say(text)

    def _send(self, words: Any) -> None:
        line = json.dumps(words).encode() + b"\n"
        try:
            while self.supervised and line:
                line = line[os.write(self._tell, line) :]
        except BrokenPipeError:
            pass  # the supervisor is gone, and the thread that waits for this is about to act

    def _guard(self, hear: int) -> None:
        """Wait for the end of a pipe into which nobody writes: then the supervisor is dead."""
        os.read(hear, 1)
        if not self._done:
            self._turn.say(sentence(self.facts, GONE))
            end_job(1)
        os._exit(1)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or issubclass(kind, AdfsError | OSError) or not issubclass(kind, Exception):
            self.bye()
