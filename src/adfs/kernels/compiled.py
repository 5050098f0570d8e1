"""`njit` for kernels that are compiled once per machine.

Numba keeps compiled functions in a folder, but processes that start together all compile. Here one
of them compiles, and the others wait and load. Three more differences to Numba's cache:

- It is stale when any source file beside the function has changed, not only the function's own:
  kernels call, and inline, those of other files.
- What was compiled ahead is read also where it cannot be written, as in a container image.
- A folder that cannot be written, or a full disk, is no error; the kernels are not kept then.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import time
from collections import Counter
from pathlib import Path

import numba
from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

from adfs.kernels import compile_notice

try:
    from numba.core.caching import InTreeCacheLocator
except ImportError:  # Numba 0.61
    from numba.core.caching import _InTreeCacheLocator as InTreeCacheLocator

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None

FILE = "compiling.lock"
PAUSE = 0.05


class CompileLock:
    """Locks on cache folders, held by this process until `release`.

    The system frees them when the process dies. Their holder may be stopped, though (SIGSTOP), so
    no process waits forever. Callers hold Numba's own lock, which makes them one thread at a time.
    """

    longest_wait = 120.0  # seconds in which nothing new appears, before a process compiles anyway

    def __init__(self):
        self._held = {}  # folder: descriptor of its lock file
        self._given_up = set()  # folders that cannot be locked, or whose lock never became free

    @property
    def is_held(self):
        return bool(self._held)

    def wait(self, folder):
        """Wait for the lock of ``folder``, or until the folder changes.

        Returns whether the caller should read the folder again. If not, it should compile: it
        has the lock already, or there is none to be had.
        """
        if fcntl is None or folder in self._held or folder in self._given_up:
            return False
        try:
            descriptor = os.open(os.path.join(folder, FILE), os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            self._given_up.add(folder)
            return False
        try:
            self._take(folder, descriptor)
        except OSError:  # a file system without locks, or the holder hangs
            self._given_up.add(folder)
        finally:
            if folder not in self._held:
                os.close(descriptor)
        return True

    def _take(self, folder, descriptor):
        """Take the lock, unless the folder changes before."""
        changed, began = os.stat(folder).st_mtime_ns, time.monotonic()
        while os.stat(folder).st_mtime_ns == changed:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._held[folder] = descriptor
                return
            except BlockingIOError:
                if time.monotonic() - began > self.longest_wait:
                    raise
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
        while self._held:
            _, descriptor = self._held.popitem()
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # also where a child has inherited it
            os.close(descriptor)


lock = CompileLock()
counts = Counter()  # of this process: kernels "compiled", "loaded" and "not kept"


def njit(*, cache=False, **options):
    """`numba.njit`; with ``cache=True``, one process per machine compiles."""

    def decorate(function):
        kernel = numba.njit(**options)(function)
        if cache and not config.DISABLE_JIT:
            kernel._cache = KernelCache(function)
            kernel.compile = functools.partial(_compile, kernel.compile)
        return kernel

    return decorate


def _compile(compile_or_load, signature):
    """Numba's `Dispatcher.compile`; the outermost of nested calls releases all locks."""
    with global_compiler_lock:
        held_before = lock.is_held
        try:
            return compile_or_load(signature)
        finally:
            if not held_before:
                lock.release()


class ReadOnlyLocator(InTreeCacheLocator):
    """The last resort: no folder can be written, but the one beside the source may be read."""

    def ensure_cache_path(self):
        pass


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = (*CompileResultCacheImpl._locator_classes, ReadOnlyLocator)


class KernelCache(FunctionCache):
    """Numba's cache of one function, shared by processes that start together."""

    _impl_class = _KernelCacheImpl

    def __init__(self, function):
        super().__init__(function)
        self._is_kept = not isinstance(self._impl.locator, ReadOnlyLocator)
        source = function.__code__.co_filename
        stamp = _stamp(os.path.dirname(source)) or self._impl.locator.get_source_stamp()
        self._files = [
            DataFirst(folder, self._impl.filename_base, stamp)
            for folder in (self.cache_path, *_folders_ahead(source, self.cache_path))
        ]
        self._cache_file = self._files[0]

    def load_overload(self, sig, target_context):
        """What is kept for the signature; None if this process is to compile it."""
        found = super().load_overload(sig, target_context)
        while found is None and self._is_kept and lock.wait(self.cache_path):
            found = super().load_overload(sig, target_context)
        if found is None:
            began = compile_notice.began
            compile_notice.tell(self._is_kept, lambda: lock.is_first_since(self.cache_path, began))
        else:
            counts["loaded"] += 1
        return found

    def _load_overload(self, sig, target_context):
        if not self._enabled:
            return None
        key = self._index_key(sig, target_context.codegen())
        for file in self._files:
            data = file.load(key)
            if data is not None:
                return self._impl.rebuild(target_context, data)
        return None

    def save_overload(self, sig, data):
        counts["compiled"] += 1
        try:
            if self._is_kept:
                super().save_overload(sig, data)
        except OSError:
            self._is_kept = False
        counts["not kept"] += not self._is_kept


class DataFirst(IndexDataCacheFile):
    """Writes a kernel before its entry in the index.

    In Numba's order another process, or the next one after a crash, finds the new entry while the
    file still holds what was compiled from an older source.

    The stamp of the sources is part of the version, which Numba compares before it unpickles the
    rest: an index of older sources may name types that have moved since, and could not be loaded.
    """

    def __init__(self, cache_path, filename_base, source_stamp):
        super().__init__(cache_path, filename_base, source_stamp)
        self._version = f"{self._version} {source_stamp!r}"

    def save(self, key, data):
        index = self._load_index()
        names = set(index.values())
        free = (name for k in range(1, len(names) + 2) if (name := self._data_name(k)) not in names)
        name = index.get(key) or next(free)
        self._save_data(name, data)
        self._save_index({**index, key: name})


@functools.cache
def _stamp(folder):
    """Digest of the sources in the folder and in this one; None where they cannot be read."""
    digest = hashlib.sha256()
    try:
        for each in sorted({Path(folder), Path(__file__).parent}):
            for source in sorted(each.glob("*.py")):
                digest.update(source.name.encode() + source.read_bytes())
    except OSError:
        return None
    return digest.digest()


@functools.cache
def _folders_ahead(source, chosen):
    """Readable folders that Numba finds not writable; an administrator may have compiled there."""
    folders = [os.path.join(os.path.dirname(source), "__pycache__")]
    if config.CACHE_DIR:
        subfolder = InTreeCacheLocator.get_suitable_cache_subpath(source)
        folders.insert(0, os.path.join(config.CACHE_DIR, subfolder))
    preferred = itertools.takewhile(lambda folder: folder != chosen, folders)
    return [folder for folder in preferred if os.access(folder, os.R_OK | os.X_OK)]
