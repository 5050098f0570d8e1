"""Ctrl-C and SIGTERM as a flag the loop looks at, so that what exists is kept."""

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """While active, the listed signals set ``received`` instead of ending the process.

    A second signal of the same kind acts as usual: whoever insists is heard. Outside the main
    thread Python allows no handlers; then nothing changes.
    """

    def __init__(self, signals: tuple[signal.Signals, ...] = (signal.SIGINT,)) -> None:
        self.received: int | None = None
        self._signals = signals
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                self._previous[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore(signal.Signals(number))

    def _restore(self, number: signal.Signals) -> None:
        previous = self._previous.pop(number, None)
        if previous is not None:
            signal.signal(number, previous)  # type: ignore[arg-type]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in list(self._previous):
            self._restore(number)
