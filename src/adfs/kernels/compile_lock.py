"""A lock among the processes of this machine, so that one of them compiles and the others wait."""

import contextlib
import os
import time

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None

FILE = "compiling.lock"
PAUSE = 0.05
LONGEST_WAIT = 120.0  # seconds in which nothing new appears, before a process compiles anyway


class CompileLock:
    """Locks on cache folders, held by this process until `release`.

    The system frees them when the process dies. Their holder may be stopped, though (SIGSTOP), so
    nobody waits for ever. Callers hold Numba's own lock, which makes them one thread at a time.
    """

    def __init__(self, longest_wait=LONGEST_WAIT):
        self.longest_wait = longest_wait
        self._held = {}  # folder: descriptor of its lock file
        self._given_up = set()  # folders that cannot be locked, or whose lock never became free

    @property
    def is_held(self):
        """Whether this process holds any lock."""
        return bool(self._held)

    def wait(self, folder):
        """Wait for the lock of ``folder``, or until the folder changes.

        Returns whether the caller should look into the folder again. If not, it should compile: it
        has the lock already, or there is none to be had.
        """
        if folder in self._held or folder in self._given_up:
            return False
        descriptor = _open(folder)
        if descriptor is None:
            self._given_up.add(folder)
            return False
        kept = False
        try:
            kept = self._wait_for(descriptor, folder)
        finally:
            if not kept:
                os.close(descriptor)
        if kept:
            self._held[folder] = descriptor
        return True

    def _wait_for(self, descriptor, folder):
        """Whether the lock was taken; False when the folder changed, or it took too long."""
        changed, began = _change_time(folder), time.monotonic()
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if _change_time(folder) != changed:
                    return False
                if time.monotonic() - began > self.longest_wait:
                    self._given_up.add(folder)
                    return False
            except OSError:  # a file system without locks
                self._given_up.add(folder)
                return False
            time.sleep(PAUSE)

    def is_first_since(self, folder, moment):
        """Whether no holder of this lock has called this since ``moment`` (seconds since 1970)."""
        descriptor = self._held.get(folder)
        if descriptor is None:
            return True
        with contextlib.suppress(OSError):
            found = os.fstat(descriptor)
            if found.st_size > 0 and found.st_mtime > moment:
                return False
            os.pwrite(descriptor, b"\n", 0)
        return True

    def release(self):
        """Free all locks of this process."""
        while self._held:
            _, descriptor = self._held.popitem()
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # also where a child has inherited it
            os.close(descriptor)


def _open(folder):
    """Descriptor of the lock file; None where it cannot be had."""
    if fcntl is None:
        return None
    try:
        return os.open(os.path.join(folder, FILE), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None


def _change_time(folder):
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return None
