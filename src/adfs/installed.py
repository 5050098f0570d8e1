"""Plug-ins: installed packages that add algorithms and losses, and files given by ``--plugin``.

A package names a module under the entry point ``adfs.algorithms`` or ``adfs.losses``; importing the
module registers what it has.
"""

import functools
import importlib.util
import sys
import traceback
import warnings
from pathlib import Path

from adfs.errors import ParameterError, PluginWarning

GROUPS = ("adfs.algorithms", "adfs.losses")


@functools.cache
def load_installed(group: str) -> None:
    """Import what installed packages name in a group; one that fails is left out and named."""
    from importlib.metadata import entry_points  # loads the package email

    for point in entry_points(group=group):
        try:
            point.load()
        except Exception as error:
            warnings.warn(
                f"The plug-in {point.value} cannot be loaded and is left out: {_words(error)}; "
                f"update it, or uninstall its package.",
                PluginWarning,
                stacklevel=2,
            )


def load_file(path: str) -> None:
    """Import a Python file under its own name, once; what it registers is there afterwards."""
    if not path.endswith(".py") or "\0" in path:
        raise ParameterError(f"--plugin {path!r} must be a Python file, whose name ends in .py.")
    place = Path(path).resolve()
    name = f"adfs_plugin_{place.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(place):
        return
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None or not place.is_file():
        raise ParameterError(f"--plugin {path!r} is not there; check the path.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if frame.filename == str(place)]  # fmt: skip
        if isinstance(error, SyntaxError):
            lines = [error.lineno]
        where = f", line {lines[-1]}" if lines else ""
        raise ParameterError(
            f"--plugin {path}{where} cannot be loaded: {_words(error)}; correct it."
        ) from None


def _words(error: BaseException) -> str:
    message = " ".join(str(error).split()).rstrip(".")
    return message if isinstance(error, ParameterError) else f"{type(error).__name__}: {message}"
