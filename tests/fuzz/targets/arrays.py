"""`adfs.Problem` in Python, on arrays that are not what they should be."""

from fuzz.case import Case
from fuzz.mutations import hostile_number, pick
from fuzz.samples import GRAPHS, LOSSES

TYPES = ("float64", "float32", "float16", "longdouble", "int64", "uint8", "bool", "complex128",
         "S3", "U3", "object", ">f8", ">i4", "datetime64[s]")  # fmt: skip
INDEX_TYPES = ("int32", "int64", "int8", "uint64", "float64")
WHOLE = (-1, 0, 1, 2, 3, 4, 7, 100, 2**20, 2**31 - 1, -(2**31), 2**40)
ODD = (None, 0, 1.5, "x", [], [[]], [[[1.0]]], [1.0, 2.0], [[1.0], [2.0, 3.0]], [["a", "b"]],
       [[1.0, None]], {"zeros": [0, 2]}, {"zeros": [2, 0]}, {"zeros": [3, 2, 2]}, {"zeros": [3]},
       {"zeros": [1000, 100000]})  # fmt: skip


def draw(generator):
    """Two good shards, and something wrong with one of their arrays or with a keyword."""
    shards = [_shard(generator), _shard(generator)]
    keywords = {"loss": str(pick(generator, LOSSES)), "sigma": 0.5}
    for _ in range(int(generator.integers(1, 3))):
        how = generator.random()
        if how < 0.35:
            _break_csr(generator, pick(generator, shards))
        elif how < 0.9:
            _break_array(generator, pick(generator, shards))
        else:
            _break_keyword(generator, keywords)
    if generator.random() < 0.1:
        shards = _break_list(generator, shards)
    return Case("arrays", call={"function": "arrays", "shards": shards, **keywords})


def _shard(generator):
    X = generator.standard_normal((3, 2)).round(3).tolist()
    return [{"array": X}, {"array": [1.0, -1.0, 1.0]}, {"array": [1.0, 2.0, 0.5]}]


def _break_csr(generator, shard):
    """Rows as a CSR matrix, with a few wrong numbers in its parts."""
    parts = [[1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], [0, 2, 3, 4]]
    for _ in range(int(generator.integers(0, 3))):
        which = int(generator.integers(3))
        value = hostile_number(generator) if which == 0 else pick(generator, WHOLE)
        parts[which][int(generator.integers(len(parts[which])))] = value
        if generator.random() < 0.2:
            parts[which] = parts[which][:-1] or parts[which]
    types = ["float64", "int64", "int64"]
    if generator.random() < 0.3:
        types = [pick(generator, TYPES[:7]), *[pick(generator, INDEX_TYPES)] * 2]
    shape = [3, int(pick(generator, (1, 2, 2, 2, 3, 2**31, 2**40)))]
    described = [{"array": part, "dtype": kind} for part, kind in zip(parts, types, strict=True)]
    shard[0] = {"csr": described, "shape": shape}


def _break_array(generator, shard):
    which = int(generator.integers(len(shard)))
    part = shard[which]
    if generator.random() < 0.4 or not (isinstance(part, dict) and "array" in part):
        shard[which] = pick(generator, ODD)
    elif generator.random() < 0.5:
        shard[which] = {**part, "dtype": pick(generator, TYPES)}
    else:
        place = int(generator.integers(3))
        row = part["array"][place] if which == 0 else part["array"]
        row[int(generator.integers(len(row)))] = hostile_number(generator)


def _break_list(generator, shards):
    return pick(generator, ([], shards[:1], [*shards, shards[0]], [[], shards[0]],
                            [shards[0][:1], shards[1]], [shards[0][:2], shards[1]],
                            [shards[0] * 2, shards[1]]))  # fmt: skip


def _break_keyword(generator, keywords):
    name = pick(generator, ("loss", "sigma"))
    if name == "loss":
        keywords["loss"] = pick(generator, ("", "Logistic", *GRAPHS, 3, None))
    else:
        keywords["sigma"] = pick(generator, (
            0, -1, None, "x", [], [1.0], [0.5, 0.25], [1.0, -1.0], [[1.0, 1.0]], [1.0, None],
            hostile_number(generator), {"array": [1, 2], "dtype": pick(generator, TYPES)},
        ))  # fmt: skip
