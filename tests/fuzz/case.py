"""One input: a command line with its files, or a call in Python; as JSON in a file."""

import base64
import bz2
import gzip
import json
import lzma
from dataclasses import asdict, dataclass, field
from pathlib import Path

PACK = {"gz": lambda text: gzip.compress(text, mtime=0), "bz2": bz2.compress, "xz": lzma.compress}


@dataclass(frozen=True)
class Case:
    """``arguments`` of a command, or else ``call``: keywords of a function of `fuzz.calls`.

    The content of a file is a text, ``{"base64": ...}``, ``{"repeat": content, "times": n}`` or
    ``{"pack": "gz", "content": content}``. ``process`` says where a stream of the command goes, as
    in ``{"stdout": "/dev/full"}``, which then is a process of its own. ``why`` says what a case of
    the corpus once found, and ``code``, if given, is the exit code that it must have.
    """

    target: str
    arguments: list = field(default_factory=list)
    files: dict = field(default_factory=dict)
    call: dict = field(default_factory=dict)
    process: dict = field(default_factory=dict)
    code: int | None = None
    why: str = ""

    @classmethod
    def load(cls, path):
        return cls(**json.loads(Path(path).read_text()))

    def save(self, path):
        empty = ("", None, [], {})
        kept = {name: value for name, value in asdict(self).items() if value not in empty}
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(kept[name])}" for name in kept)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(f"{{\n{lines}\n}}\n")

    def write_files(self, folder):
        for name, content in self.files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(to_bytes(content))


def to_bytes(content):
    """The bytes that a content describes."""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    if "base64" in content:
        return base64.b64decode(content["base64"])
    if "repeat" in content:
        return to_bytes(content["repeat"]) * content["times"]
    return PACK[content["pack"]](to_bytes(content["content"]))


def of_bytes(raw):
    """A content: a text where the bytes are one."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
