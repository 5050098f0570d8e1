"""`njit` for kernels that are compiled once per machine.

Numba keeps compiled functions in a folder, but processes that start together all compile. Here one
of them compiles, and the others wait and load. Three more differences to Numba's cache:

- It is stale when any source file beside the function has changed, not only the function's own:
  kernels call, and inline, those of other files.
- What was compiled ahead is read also where it cannot be written, as in a container image.
- A folder that cannot be written, or a full disk, is no error; the kernels are not kept then.
"""

import functools
import hashlib
import itertools
import os
from collections import Counter
from pathlib import Path

import numba
from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

from adfs.kernels import compile_notice
from adfs.kernels.compile_lock import CompileLock

try:
    from numba.core.caching import InTreeCacheLocator
except ImportError:  # Numba 0.61
    from numba.core.caching import _InTreeCacheLocator as InTreeCacheLocator

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
    """Numba's `Dispatcher.compile`, after which this process holds no lock, unless it did before.

    A kernel compiles those that it calls, so calls are nested.
    """
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
        """Nothing is written."""


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
        """Keep what was compiled, where that is possible."""
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
    """

    def save(self, key, data):
        """Add or replace one kernel."""
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
    """Readable folders that Numba prefers to the chosen one, but finds not to be writable.

    An administrator may have compiled there.
    """
    folders = [os.path.join(os.path.dirname(source), "__pycache__")]
    if config.CACHE_DIR:
        subfolder = InTreeCacheLocator.get_suitable_cache_subpath(source)
        folders.insert(0, os.path.join(config.CACHE_DIR, subfolder))
    preferred = itertools.takewhile(lambda folder: folder != chosen, folders)
    return [folder for folder in preferred if os.access(folder, os.R_OK | os.X_OK)]
