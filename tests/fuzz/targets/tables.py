"""CSV, TSV and Parquet files, read by the commands that take DATA."""

import functools
import io
import json

import numpy as np

from fuzz.case import PACK, Case, of_bytes, to_bytes
from fuzz.mutations import mutated_bytes, mutated_text, pick, some
from fuzz.targets import files

TEXT = (
    "age,city,member,buys\n31.5,Oslo,true,yes\n22,Rome,false,no\n54,Oslo,false,yes\n"
    '18,"new york, NY",true,no\n47,Rome,true,yes\n'
)
COMMANDS = (
    ["train", "DATA", "--target", "buys", "--max-iter", "50", "--nodes", "2", "--quiet"],
    ["train", "DATA", "--target", "city", "--standardize", "--max-iter", "20", "--json"],
    ["train", "DATA", "--target", "age", "--loss", "squared", "--max-iter", "20", "--nodes", "1"],
    ["train", "DATA", "--target", "buys", "--features", "age,city", "--categorical", "age",
     "--max-iter", "9", "--out", "new.npz"],
    ["train", "data.csv", "--target", "buys", "--max-iter", "9", "--quiet", "--test", "DATA"],
    ["predict", "table.npz", "DATA"],
    ["predict", "table.npz", "DATA", "--json", "--out", "labels.csv"],
    ["compare", "DATA", "--target", "buys", "--algorithms", "adfs", "--max-iter", "20", "--quiet"],
)  # fmt: skip
LARGE = ("1,", "1", "a,b,c,d\n", "1,Oslo,true,yes\n", '"', "é", ",", "\n", '"\n')


def draw(generator):
    """A table, changed and perhaps packed, the packed bytes perhaps changed too."""
    if generator.random() < 0.3:
        name, content = "in.parquet", of_bytes(some(generator, mutated_bytes, parquet()))
    else:
        name = pick(generator, ("in.csv", "in.csv", "in.tsv"))
        content = _text(generator, "\t" if name == "in.tsv" else ",")
        if generator.random() < 0.2:
            packing = pick(generator, list(PACK))
            name, content = f"{name}.{packing}", {"pack": packing, "content": content}
            if generator.random() < 0.5:
                content = of_bytes(some(generator, mutated_bytes, to_bytes(content)))
    arguments = [name if word == "DATA" else word for word in pick(generator, COMMANDS)]
    given = {"data.csv": TEXT, "table.npz": files.npz(model())}
    return Case("tables", arguments, {**given, name: content})


def _text(generator, separator):
    text = TEXT.replace(",", separator) if generator.random() < 0.9 else TEXT
    how = generator.random()
    if how < 0.07:  # a line, or a file, that is long
        part = pick(generator, LARGE)
        times = int(10 ** generator.uniform(3, 6.5))
        return {"repeat": part, "times": times // len(part)}
    if how < 0.2:
        return of_bytes(some(generator, mutated_bytes, text.encode()))
    return some(generator, mutated_text, text)


@functools.cache
def parquet():
    """The table as the bytes of a Parquet file."""
    import pyarrow.csv
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(io.BytesIO(TEXT.encode())), buffer, 3)
    return buffer.getvalue()


def model():
    """Arrays of the file of a model that was trained on such a table."""
    columns = {
        "target": "buys",
        "target_kind": "word",
        "kinds": {"age": "number", "city": "word", "member": "truth"},
        "categories": {"city": ["Oslo", "Rome", "new york, NY"]},
    }
    meta = json.loads(files.META) | {"classes": ["no", "yes"], "n_features": 5, "columns": columns}
    coef = np.array([0.1, 0.5, -0.5, 0.25, 1.0])
    return {"coef": coef, "thetas": np.array([coef, coef]), "meta": np.array(json.dumps(meta))}
