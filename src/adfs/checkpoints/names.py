"""What a checkpoint's file is called: the position, and who of how many wrote it."""

import re
from typing import NamedTuple

WIDTH = 12  # digits of a position, so that a listing of the folder is in order
_PATTERN = re.compile(rf"checkpoint-([0-9]{{{WIDTH},}})-([0-9]+)-of-([0-9]+)\.adfs")


class Name(NamedTuple):
    """The name of one file.

    Examples
    --------
    >>> str(Name(position=1500, rank=0, size=2))
    'checkpoint-000000001500-0-of-2.adfs'
    >>> Name.parse("checkpoint-000000001500-0-of-2.adfs")
    Name(position=1500, rank=0, size=2)
    >>> Name.parse("checkpoint-of-a-novel.txt") is None
    True
    """

    position: int
    rank: int
    size: int

    def __str__(self) -> str:
        return f"checkpoint-{self.position:0{WIDTH}}-{self.rank}-of-{self.size}.adfs"

    @classmethod
    def parse(cls, text: str) -> "Name | None":
        """The parts of a name as we write it; None for any other, such as one with more zeros."""
        match = _PATTERN.fullmatch(text)
        if match is None or len(text) > 100:
            return None
        name = cls(int(match[1]), int(match[2]), int(match[3]))
        return name if str(name) == text and name.rank < name.size else None
