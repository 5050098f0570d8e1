"""Whatever a .npz file contains: samples, a schedule, a model, or one sentence."""

import io
import json
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

from adfs.data.files import load_data, load_share
from adfs.errors import AdfsError, DataError
from adfs.model import Model
from adfs.schedule.schedule import Schedule
from support.archives import archive, encrypted, header, npy, with_method, with_sizes
from support.peers import arrays, on_ranks
from support.selection import soak_except

X, Y = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 5.0]]), np.array([1.0, 0.0, 1.0])
DENSE = {"X": X, "y": Y}
CSR = {"X_data": np.array([1.0, 2.0, 3.0]), "X_indices": np.array([0, 1, 0]),
       "X_indptr": np.array([0, 1, 2, 3]), "X_shape": np.array([3, 2]), "y": Y}  # fmt: skip
SCHEDULE = {"edges": np.array([[0, 1]], np.int32), "n_nodes": np.array(2),
            "which": np.array([0, 1, 2], np.int32),
            "sample": np.array([-1, 0, 4], np.int32)}  # fmt: skip
META = {"format": 1, "loss": "logistic", "classes": [0, 1], "intercept": False, "n_features": 2}
MODEL = {"coef": np.ones(2), "thetas": np.ones((1, 2)), "meta": np.array(json.dumps(META))}


def by_ranks(path):
    """The shards as two ranks load them, or the error that both raise."""
    outcomes, _ = on_ranks(2, lambda peers: load_share(peers, str(path), [0, 1], "squared"))
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return b"".join(part.tobytes() for data in outcomes for s in data.shards for part in arrays(s))


def samples(path):
    return b"".join(part.tobytes() for part in arrays(load_data(path)))


def schedule(path):
    loaded = Schedule.load(path)
    return loaded.events().which.tobytes() + loaded.edges.tobytes() + bytes([loaded.n_nodes])


def model(path):
    loaded = Model.load(path)
    return loaded.coef.tobytes() + loaded.thetas.tobytes() + json.dumps(loaded.meta).encode()


READERS = {"dense": (DENSE, samples), "csr": (CSR, samples), "dense by ranks": (DENSE, by_ranks),
           "csr by ranks": (CSR, by_ranks), "schedule": (SCHEDULE, schedule),
           "model": (MODEL, model)}  # fmt: skip


@pytest.fixture(params=READERS)
def reader(request, tmp_path):
    """The content of a good file, and what is read from a content."""
    content, read = READERS[request.param]
    path = tmp_path / "file.npz"

    def answer(changed):
        path.write_bytes(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile warns of double names
            return read(path)

    return content, answer


def require_data_or_a_sentence(answer, content, good):
    sentence = None
    try:
        assert answer(content) == good
    except AdfsError as error:
        sentence = str(error)
    assert sentence is None or ("file.npz" in sentence and len(sentence) < 300)


def refused(answer, content):
    """The one sentence about a content."""
    with pytest.raises(AdfsError) as caught:
        answer(content)
    sentence = str(caught.value)
    assert "file.npz" in sentence
    assert len(sentence) < 300
    assert "\n" not in sentence
    return sentence


@pytest.mark.slow
@pytest.mark.parametrize("step", soak_except((5,), (5, 1)))
@pytest.mark.parametrize(
    ("method", "flip"), [("stored", lambda place: 0xFF), ("deflate", lambda place: 1 << place % 8)]
)
def test_every_flipped_byte_is_refused_or_changes_nothing(reader, method, flip, step):
    content, answer = reader
    whole = archive(method, **content)
    good = answer(whole)
    for place in range(0, len(whole), step):
        damaged = bytearray(whole)
        damaged[place] ^= flip(place)
        require_data_or_a_sentence(answer, bytes(damaged), good)


@pytest.mark.parametrize("method", ["bzip2", "lzma"])
def test_compressions_that_numpy_does_not_write_are_read_or_refused(reader, method):
    content, answer = reader
    good = answer(archive(**content))
    require_data_or_a_sentence(answer, archive(method, **content), good)


@pytest.mark.slow
def test_a_file_cut_anywhere_is_refused(reader):
    content, answer = reader
    whole = archive("deflate", **content)
    for length in range(len(whole)):
        refused(answer, whole[:length])


@pytest.mark.parametrize("number", [1, 6, 9, 93, 95, 98, 99])
def test_other_compressions_are_refused(reader, number):
    content, answer = reader
    assert "compress" in refused(answer, with_method(archive("deflate", **content), number))


def test_an_encrypted_archive_is_refused(reader):
    content, answer = reader
    assert "encrypted" in refused(answer, encrypted(archive(**content)))


SHAPES = ["(10**15,)", "(10**15, 2)", "(2**62, 4)", "(2**63, 1)", "(2**64,)", "(10**40, 10**40)",
          "(-3, -2)", "(-1,)", "(2, -1)", "(0, 2**70)", "(2**32, 2**32)", "()", "(3.0, 2)",
          "(True, 3)", "'wide'", "None", "(" * 300, "(3, 2" + ", 1" * 200 + ")"]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_header_that_promises_something_else_is_refused(reader, shape):
    content, answer = reader
    shape = shape.replace("10**15", str(10**15)).replace("10**40", str(10**40))
    for power in (32, 62, 63, 64, 70):
        shape = shape.replace(f"2**{power}", str(2**power))
    for name, array in content.items():
        numbers = np.asarray(array).tobytes()
        lie = header(shape, np.asarray(array).dtype.str) + numbers
        if shape in ("()", "(True, 3)") and np.asarray(array).ndim == 0:
            continue  # it is what it promises
        tracemalloc.start()
        refused(answer, archive(**content | {name: lie}))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 24


def test_sizes_beyond_the_file_are_refused(reader):
    content, answer = reader
    refused(answer, with_sizes(archive("deflate", **content), 0xFFFFFFF0))


@pytest.mark.parametrize("descr", ["|O", "<c16", "<M8[s]", "|S4", "|V8", "<U2", "|S0", "|V0", "x",
                                   [("a", "<f8"), ("b", "<f8")], ("<f8", (3,)), None, 7, "<f8" * 99,
                                   [(str(k), "<f8") for k in range(300)]])  # fmt: skip
def test_types_that_are_not_real_numbers_are_refused(reader, descr):
    content, answer = reader
    for name in content:
        if name == "meta":
            continue
        refused(answer, archive(**content | {name: header("(6,)", descr) + bytes(6 * 16)}))
        refused(answer, archive(**content | {name: header("(0,)", descr)}))


@pytest.mark.parametrize("change", ["big-endian", "by columns", "unsigned", "small", "long double"])
def test_other_forms_of_the_same_samples_are_read(tmp_path, change):
    kinds = {"unsigned": ("u8", "f8"), "small": ("i1", "f2"), "long double": ("i8", "g")}
    for content in (DENSE, CSR):
        with_same = {}
        for name, array in content.items():
            integer, real = kinds.get(change, (array.dtype.str[1:], array.dtype.str[1:]))
            kind = integer if array.dtype.kind == "i" else real
            kind = np.dtype(kind).newbyteorder(">" if change == "big-endian" else "=")
            with_same[name] = np.asarray(array, kind, order="F" if change == "by columns" else "C")
        (tmp_path / "other.npz").write_bytes(archive(**with_same))
        (tmp_path / "file.npz").write_bytes(archive(**content))
        assert samples(tmp_path / "other.npz") == samples(tmp_path / "file.npz")
        assert by_ranks(tmp_path / "other.npz") == by_ranks(tmp_path / "file.npz")


@pytest.mark.parametrize("load", [samples, by_ranks])
@pytest.mark.parametrize("changes", [
    {"X_shape": [3, 1]}, {"X_shape": [2, 2]}, {"X_shape": [4, 2]}, {"X_shape": [3, 0]},
    {"X_shape": [0, 2]}, {"X_shape": [-3, 2]}, {"X_shape": [3, -2]}, {"X_shape": [3, 2, 1]},
    {"X_shape": np.array([3, 2**63], np.uint64)}, {"X_shape": np.array([2**64 - 1, 2], np.uint64)},
    {"X_shape": [3, 2**40], "X_indices": [0, 1, 2**41]}, {"X_shape": [[3, 2]]}, {"X_shape": []},
    {"X_indices": [0, 1, 2]}, {"X_indices": [0, -1, 0]}, {"X_indices": [0, 10**8, 0]},
    {"X_indices": [0, 2**32 + 1, 0]}, {"X_indices": np.array([0, 2**64 - 1, 0], np.uint64)},
    {"X_indices": [0, 1]}, {"X_indices": [[0, 1, 0]]}, {"X_indices": []},
    {"X_indptr": [0, 2, 1, 3]}, {"X_indptr": [0, 1, 2, 4]}, {"X_indptr": [1, 1, 2, 3]},
    {"X_indptr": [-1, 1, 2, 3]}, {"X_indptr": np.array([0, 2**64 - 1, 2, 3], np.uint64)},
    {"X_indptr": [0, 1, 2]}, {"X_indptr": []}, {"X_indptr": [[0, 1, 2, 3]]}, {"X_indptr": 3},
    {"X_data": [1.0, 2.0]}, {"X_data": [[1.0, 2.0, 3.0]]}, {"X_data": 1.0}, {"y": 1.0},
    {"y": [[1.0, 0.0, 1.0]]}, {"y": [1.0, 0.0]},
])  # fmt: skip
def test_csr_parts_that_disagree_are_refused(tmp_path, changes, load):
    (tmp_path / "file.npz").write_bytes(archive(**CSR | changes))
    with pytest.raises(DataError, match=r"file.npz.*; .*") as caught:
        load(tmp_path / "file.npz")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("load", [samples, by_ranks])
def test_of_two_arrays_of_one_name_every_engine_takes_the_same(tmp_path, load):
    path = tmp_path / "file.npz"
    path.write_bytes(archive(**DENSE))
    good = load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "w") as zipped:
            for name, array in (("X", 9 * X), ("y", Y), ("X", X)):
                zipped.writestr(f"{name}.npy", npy(array))
    assert load(path) == good


@pytest.mark.parametrize("load", [samples, by_ranks])
def test_members_that_nobody_asked_for_are_not_unpacked(tmp_path, load):
    path = tmp_path / "file.npz"
    path.write_bytes(archive(**DENSE))
    good = load(path)
    others = {"readme": b"hello", "big": header(str((10**15,))), "o": npy(np.array([{}], object))}
    path.write_bytes(archive(**DENSE, **others))
    assert load(path) == good


@pytest.mark.parametrize("load", [samples, by_ranks, schedule, model])
def test_names_inside_an_archive_do_not_make_a_message_long(tmp_path, load):
    path = tmp_path / "file.npz"
    path.write_bytes(archive(**{"k" * 60_000: Y, **{f"array{k}": Y for k in range(200)}}))
    refused(lambda content: load(path), b"")


BAD_CLASSES = [[[1], [2, 3]], [{}, 1], [1, "1"], [float("nan"), 1.0], [None, None], [10**400, 0.5],
               [[0], [1]], ["x" * 10**6, 3]]  # fmt: skip


@pytest.mark.parametrize("classes", BAD_CLASSES, ids=range(len(BAD_CLASSES)))
def test_models_with_classes_that_are_no_labels_are_refused(tmp_path, classes):
    path = tmp_path / "file.npz"
    meta = np.array(json.dumps(META | {"classes": classes}))
    path.write_bytes(archive(**MODEL | {"meta": meta}))
    refused(lambda content: model(path), b"")


@pytest.mark.parametrize("changes", [
    {"n_nodes": np.array(-5)}, {"n_nodes": np.array(10**9)}, {"n_nodes": np.array(2.5)},
    {"n_nodes": np.array(np.inf)}, {"n_nodes": np.array(2**64 - 1, np.uint64)},
    {"n_nodes": np.array("2")}, {"edges": np.array(1, np.int32)}, {"which": np.array(1, np.int32)},
    {"edges": np.array([[0, 1, 1]], np.int32)},
])  # fmt: skip
def test_schedules_of_impossible_graphs_are_refused(tmp_path, changes):
    path = tmp_path / "file.npz"
    path.write_bytes(archive(**SCHEDULE | changes))
    refused(lambda content: schedule(path), b"")


def test_edges_by_columns_are_the_same_edges(tmp_path):
    whole = io.BytesIO()
    edges = np.asfortranarray([[0, 1], [1, 2], [0, 2]], dtype=np.int32)
    np.savez(whole, **SCHEDULE | {"edges": edges, "n_nodes": 3})
    (tmp_path / "file.npz").write_bytes(whole.getvalue())
    loaded = Schedule.load(tmp_path / "file.npz")
    assert loaded.edges.tolist() == edges.tolist()
    assert loaded.times().shape == (3,)
