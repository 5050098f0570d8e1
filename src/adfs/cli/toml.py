"""The little of TOML that settings need: a file read, a value written."""

import json
import re
import sys
from typing import Any

from adfs.errors import DataError

BARE = re.compile(r"[A-Za-z0-9_-]+")


def load(flag: str, path: str) -> dict[str, Any]:
    """The keys and values of a file; a fault names the file and the line."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # the same code, as a package
        import tomli as tomllib
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # Notepad's mark is no fault
            return tomllib.loads(file.read())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{flag} {path} must be TOML, but: {error}; correct the file.") from None


def key(name: str) -> str:
    """A key as TOML writes it."""
    return name if BARE.fullmatch(name) else json.dumps(name)


def shown(value: Any) -> str:
    """A value as TOML writes it; of a table or a time only what it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return "a table" if isinstance(value, dict) else str(value)


def _quoted(text: str) -> str:
    """A basic string: JSON's, but that TOML wants DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
