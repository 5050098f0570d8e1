"""Ctrl-C and SIGTERM set a flag that the loop checks, so that results are kept."""

import signal
import threading
from types import FrameType


class Interrupts:
    """While active, the listed signals set ``received`` instead of ending the process.

    A second signal of the same kind acts as usual. Outside the main thread Python allows no
    handlers; then nothing changes.
    """

    def __init__(self, signals: tuple[signal.Signals, ...] = (signal.SIGINT,)) -> None:
        self.received: int | None = None
        self._signals = signals
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore(signal.Signals(number))

    def _restore(self, number: signal.Signals) -> None:
        previous = self._previous.pop(number, None)
        if previous is not None:
            signal.signal(number, previous)  # type: ignore[arg-type]

    def __exit__(self, *error: object) -> None:
        for number in list(self._previous):
            self._restore(number)
