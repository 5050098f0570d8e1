"""Tables as plain text."""

from collections.abc import Collection, Sequence


def aligned(
    headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> str:
    """Columns two spaces apart; those numbered in ``right`` are aligned to the right.

    Examples
    --------
    >>> print(aligned(["name", "n"], [["adfs", "9"], ["msda", "100"]], right=[1]), end="")
    name    n
    adfs    9
    msda  100
    """
    lines = [headers, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headers))]
    text = ""
    for line in lines:
        cells = (
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        text += "  ".join(cells).rstrip() + "\n"
    return text
