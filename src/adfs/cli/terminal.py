"""What the place we write to can show: colours, a line that changes, so many columns.

Colours follow the conventions of NO_COLOR and FORCE_COLOR, the first being the stronger.
"""

import os
import shutil
from typing import Any

USUAL = 80  # columns
STYLES = {"bold": "1", "good": "32", "warning": "33", "bad": "1;31"}


def is_terminal(stream: Any) -> bool:
    """Whether a person looks at the stream; one that is closed or missing is no terminal."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def is_live(stream: Any) -> bool:
    """Whether a line on the stream can be drawn again."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_colour(stream: Any) -> bool:
    """Whether to colour what goes to the stream."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_live(stream)


def paint(text: str, style: str, stream: Any) -> str:
    """The text in a style of `STYLES`, or as it is where colours are not wanted."""
    return f"\033[{STYLES[style]}m{text}\033[0m" if has_colour(stream) else text


def columns(stream: Any) -> int | None:
    """Columns of a terminal; None for files and pipes, whose lines are as long as they are."""
    return width() if is_terminal(stream) else None


def width() -> int:
    """How wide the terminal is; where it does not know (Python 3.10 then says 0), as usual."""
    return shutil.get_terminal_size().columns or USUAL
