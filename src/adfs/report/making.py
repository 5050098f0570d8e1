"""How a page came about: the command, the versions, the machine."""

from collections.abc import Iterable

from adfs.bench.identity import describe_machine
from adfs.report.markup import Markup, join, tag
from adfs.report.page import definitions, paragraph


def making(command: str, facts: Iterable[tuple[str, str]]) -> Markup:
    """The command that makes this page again, and what its numbers depend on."""
    machine = describe_machine()
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    rows: list[tuple[object, object]] = [
        *facts,
        ("versions", versions),
        ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['platform']}"),
    ]
    shown = (
        tag("pre", tag("code", command), tabindex="0", aria_label="The command")
        if command
        else paragraph("Made from Python, not by a command.")
    )
    return join([shown, definitions(rows, "What the numbers depend on")])
