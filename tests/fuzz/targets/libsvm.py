"""LIBSVM text, plain and compressed, read by the commands that take DATA."""

from fuzz.case import PACK, Case, of_bytes, to_bytes
from fuzz.mutations import mutated_bytes, mutated_text, pick, some
from fuzz.targets import files

COMMANDS = (
    ["train", "DATA", "--max-iter", "50", "--nodes", "2", "--quiet"],
    ["train", "DATA", "--max-iter", "50", "--nodes", "1", "--loss", "squared", "--json"],
    ["train", "DATA", "--max-iter", "20", "--nodes", "2", "--n-features", "3", "--out", "new.npz"],
    ["train", "data.txt", "--max-iter", "9", "--quiet", "--test", "DATA"],
    ["predict", "model.npz", "DATA"],
    ["predict", "model.npz", "DATA", "--json", "--out", "labels.txt"],
    ["schedule", "sample", "DATA", "--events", "9", "--nodes", "2"],
    ["compare", "DATA", "--nodes", "2", "--algorithms", "adfs", "--max-iter", "20", "--quiet"],
)
LARGE = ("1:1 ", "1", " ", "\n", "#", "1 1:1\n", "1 1:1\n-1 2:1\n", "9", "1 1:1 2:2 ", "\0", "e")


def draw(generator):
    """A text, changed and perhaps packed, the packed bytes perhaps changed too."""
    content, name = _text(generator), "in.txt"
    if generator.random() < 0.005:
        content, name = _bomb(generator), "in"
    elif generator.random() < 0.4:
        packing = pick(generator, list(PACK))
        name = f"in.{packing}" if generator.random() < 0.8 else pick(generator, ("in", "in.gz"))
        content = {"pack": packing, "content": content}
        if generator.random() < 0.5:
            content = of_bytes(some(generator, mutated_bytes, to_bytes(content)))
    arguments = [name if word == "DATA" else word for word in pick(generator, COMMANDS)]
    given = {"data.txt": files.TEXT, "model.npz": files.good()["model.npz"]}
    return Case("libsvm", arguments, {**given, name: content})


def _bomb(generator):
    """A line that is longer than the memory there is, from a file of a few kilobytes."""
    part = {"repeat": pick(generator, ("1", " ", "#", "1:1 ")), "times": 1 << 22}
    return {"repeat": {"pack": pick(generator, ("gz", "bz2")), "content": part}, "times": 1000}


def _text(generator):
    how = generator.random()
    if how < 0.07:  # a line, or a file, that is long
        part = pick(generator, LARGE)
        times = int(10 ** generator.uniform(3, 6.5))
        return {"repeat": part, "times": times // len(part)}
    if how < 0.12:
        return of_bytes(some(generator, mutated_bytes, files.TEXT.encode()))
    return some(generator, mutated_text, files.TEXT)
