"""`adfs`: listens to signals first, then imports the commands and runs one.

Imports next to nothing itself: until `Leaving` listens, a signal ends Python in its own way.
"""

from adfs.cli.early_signals import Interrupted, Leaving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command line and return its exit code."""
    leaving = Leaving()
    try:
        with leaving:
            from adfs.cli import commands

            return commands.run(argv, leaving)
    except Interrupted as stop:
        return _stopped(stop)
    except Exception:
        # An import that a signal cuts short may fail with an error of its own.
        if leaving.number is None:
            raise
        return _stopped(Interrupted(leaving.number))


def _stopped(stop: Interrupted) -> int:
    from adfs.cli import output

    return output.refuse(stop, 128 + stop.number)
