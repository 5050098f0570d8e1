"""`adfs`: listens to signals first, then imports the commands and runs one.

SIGINT and SIGTERM leave at once while there is nothing to keep yet. Imports next to nothing itself:
until `Leaving` listens, a signal ends Python in its own way.
"""

import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """Raised where a signal strikes; half-written files are removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} before the end.")
        self.number = number


class Leaving:
    """While active, a signal raises `Interrupted`.

    Python drops an exception raised inside a callback from compiled code, which is where a signal
    may strike while kernels compile. So the signal is remembered, and `repeat` sends it again once
    the training loop, which knows what to keep, listens.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._previous: dict[signal.Signals, Any] = {}
        self._report = sys.unraisablehook

    def __enter__(self) -> "Leaving":
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._leave) for number in SIGNALS}
            sys.unraisablehook = self._hush
            if hasattr(signal, "pthread_sigmask"):  # a supervisor holds them back until now
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return self

    def _leave(self, number: int, frame: "Any") -> None:
        self.number = number
        raise Interrupted(number)

    def _hush(self, dropped: "Any") -> None:
        if not isinstance(dropped.exc_value, Interrupted):
            self._report(dropped)

    def repeat(self, progress: "Any" = None) -> None:
        """Send a signal that was dropped once more; a callback of `adfs.solve`."""
        if self.number is not None:
            number, self.number = self.number, None
            signal.raise_signal(number)

    def __exit__(self, *error: object) -> None:
        if self._previous:
            sys.unraisablehook = self._report
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command line and return its exit code."""
    leaving = Leaving()
    try:
        with leaving:
            from adfs.cli import commands

            return commands.run(argv, leaving)
    except Interrupted as error:
        stop = error
    except Exception:
        # An import that a signal cuts short may fail with an error of its own.
        if leaving.number is None:
            raise
        stop = Interrupted(leaving.number)
    from adfs.cli import output

    return output.refuse(stop, 128 + stop.number)
