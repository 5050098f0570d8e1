"""Small problems of every unpleasant kind: where a run says converged, it must be so."""

import io
import itertools
import json

import numpy as np

from fuzz import oracle
from fuzz.case import Case
from fuzz.contract import Fault
from fuzz.mutations import pick
from fuzz.samples import (
    BINARY,
    LOSSES,
    columns_of,
    draw_graph,
    draw_shards,
    draw_sigma,
    samples_of,
    text_of,
)

TOLERANCES = (1e-1, 1e-3, 1e-6, 1e-6, 1e-9, 1e-12)
TOL = 1e-6  # where a case made smaller has none
FAST = ("auto", "adfs", "ns-adfs", "point-saga")  # an iteration takes a microsecond
SLOW = ("msda", "ssda", "esdacd")  # an iteration solves a problem per node
RULES = ("paper", "balanced", "exact", "projector", "tuned", "theory")


def draw(generator):
    """A problem for `adfs.solve`, or for `adfs train`."""
    loss, n_nodes = pick(generator, LOSSES), int(generator.integers(1, 10))
    algorithm = _algorithm(generator, loss)
    options = {
        "algorithm": algorithm,
        "tol": pick(generator, TOLERANCES),
        "max_iter": _iterations(generator, algorithm),
        "seed": int(generator.integers(10)),
    }
    if algorithm in FAST and generator.random() < 0.1:
        del options["max_iter"]  # then it must end by itself
    if generator.random() < 0.15:
        options["parameters"] = pick(generator, RULES)
    if generator.random() < (0.2 if algorithm in ("auto", "adfs", "ns-adfs") else 0.01):
        options["schedule"] = "poisson"
    make = _command if generator.random() < 0.35 else _call
    return make(generator, loss, n_nodes, draw_graph(generator, n_nodes), options)


def _algorithm(generator, loss):
    from adfs import algorithms

    if generator.random() < 0.4:
        return "auto"
    smooth = [name for name in algorithms() if name != "ns-adfs"]
    fitting = ["ns-adfs"] if loss in ("hinge", "absolute") else smooth
    return pick(generator, fitting if generator.random() < 0.95 else algorithms())


def _iterations(generator, algorithm):
    most = 100_000 if algorithm in FAST else 500 if algorithm in SLOW else 2_000
    return int(pick(generator, (0, 10, most, most, most)))


def _call(generator, loss, n_nodes, graph, options):
    layout = str(generator.choice(["dense", "csr", "float32", "csr32"], p=[0.6, 0.3, 0.05, 0.05]))
    keywords = {
        "function": "solve", "shards": draw_shards(generator, loss, n_nodes), "layout": layout,
        "loss": loss, "sigma": draw_sigma(generator, n_nodes),
        "graph": graph,
    }  # fmt: skip
    return Case("training", call={**keywords, **options})


def _command(generator, loss, n_nodes, graph, options):
    shards = draw_shards(generator, loss, n_nodes, weighted=False)
    samples = list(itertools.chain.from_iterable(shards))
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    words += [f"--loss={loss}", f"--nodes={n_nodes}", f"--graph={graph}"]
    strength = pick(generator, ("C", "sigma"))
    words.append(f"--{strength}={draw_sigma(generator, 1)[0]!r}")
    if generator.random() < 0.3:
        words.append("--intercept")
    if loss in BINARY and generator.random() < 0.3:
        words.append("--class-weight=balanced")
    words.append(f"--partition={pick(generator, ('even', 'contiguous', 'sorted'))}")
    arguments = ["train", "data.txt", *words, "--json", "--out=model.npz", "--quiet"]
    return Case("training", arguments, {"data.txt": text_of(samples)})


def faults(case, outcome):
    """Claims that a better model refutes."""
    if outcome.code != 0:
        return []
    claim = json.loads(outcome.out)
    problem, theta, tol = (_of_call if case.call else _of_command)(case, outcome, claim)
    found = oracle.refutations(problem, theta, claim, tol)
    return [Fault(f"not converged: {_kind(sentence)}", sentence) for sentence in found]


def _kind(sentence):
    return " ".join(word for word in sentence.split() if not any(map(str.isdigit, word)))


def _of_call(case, outcome, claim):
    call = case.call
    X, y, weights = columns_of(list(itertools.chain.from_iterable(call["shards"])))
    if call["layout"] in ("float32", "csr32"):
        X = X.astype(np.float32)
    sigma = call["sigma"][: len(call["shards"])]
    problem = oracle.Sum.of(X, y, weights, call["loss"], sigma)
    return problem, claim["theta"], call.get("tol", TOL)


def _of_command(case, outcome, claim):
    given = dict(word.removeprefix("--").split("=") for word in case.arguments if "=" in word)
    X, y, weights = columns_of(samples_of(case.files["data.txt"]))
    if "--intercept" in case.arguments:
        X = np.column_stack([X, np.ones(len(X))])
    if "class-weight" in given:
        weights = np.array([len(y) / (2 * np.sum(y == label)) for label in y])
    n_nodes = int(given["nodes"])
    sigma = float(given["sigma"]) * n_nodes if "sigma" in given else 1 / float(given["C"])
    problem = oracle.Sum.of(X, y, weights, given["loss"], [sigma])
    with np.load(io.BytesIO(outcome.after["here/model.npz"])) as model:
        return problem, model["coef"], float(given.get("tol", TOL))
