"""Pictures to files, without a display and only where matplotlib is installed."""

import importlib
import io
from typing import TYPE_CHECKING, Any

from adfs.cli import output
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MISSING = "pictures need matplotlib, which is not installed; run pip install 'adfs[plots]'."
KINDS = ("png", "pdf", "svg")


def have_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def picture_kind(flag: str, path: str) -> str:
    """Format that the name's suffix asks for."""
    if not have_matplotlib():
        raise ParameterError(f"{flag} {path}: {MISSING}")
    kind = path.rpartition(".")[2].lower()
    if kind not in KINDS:
        raise ParameterError(f"{flag} {path} must end in .{', .'.join(KINDS)}; rename it.")
    return kind


def new_axes(width: float, height: float) -> Any:
    """Axes on a figure of its own, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def save(figure: "Figure", path: str, kind: str) -> None:
    """Write the picture, whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150)
    output.write(path, buffer.getvalue())
