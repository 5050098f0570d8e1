"""Trainings whose numbers are pinned in ``tests/pins/pins.json``, and how they are compared.

Only the command line and the public names of `adfs` are used, so that the same file runs before and
after the engine changes. Everything that decides a number is said on the command line.
"""

import csv
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

import adfs
from support.commands import here
from support.rounding import digest_of, surroundings

PINS = Path(__file__).parents[1] / "pins" / "pins.json"
N_SAMPLES = 64
N_FEATURES = {"dense": 7, "csr": 24}
KEPT_ONE_IN = {"dense": 1, "csr": 4}
READINGS = 4  # readings of a run, besides the one at its start
STOPPED = 3  # exit code of a run that ends before its tolerance
TOL = 1e-14  # never reached
ELSEWHERE = 1e-10  # relative, under other versions or another rounding
SUMS = 1e-13  # relative, for sums over nodes: their order is nobody's promise


class Case(NamedTuple):
    """One training; its name in the file is `str`."""

    algorithm: str
    loss: str
    layout: str
    schedule: str
    n_nodes: int
    graph: str
    parameters: str
    sigma: float
    tau: float
    clock: str
    seed: int
    partition: str
    max_iter: int

    def __str__(self):
        return f"{self.loss}-{self.layout}-{self.schedule}-{self.n_nodes}"

    @property
    def file(self):
        """Name of its samples."""
        return f"{'values' if self.loss == 'squared' else 'classes'}-{self.layout}.txt"

    @property
    def command(self):
        """Its command line, but for the engine and the files that are written."""
        words = {
            "loss": self.loss, "sigma": self.sigma, "n-features": N_FEATURES[self.layout],
            "nodes": self.n_nodes, "graph": self.graph, "partition": self.partition,
            "tau": self.tau, "clock": self.clock, "algorithm": self.algorithm,
            "parameters": self.parameters, "schedule": self.schedule, "tol": TOL,
            "max-iter": self.max_iter, "evaluate-every": self.max_iter // READINGS,
            "seed": self.seed,
        }  # fmt: skip
        flags = [word for name, value in words.items() for word in (f"--{name}", str(value))]
        return ["train", self.file, *flags]


# The eight combinations of algorithm, layout and schedule, and three more.
CASES = (
    Case("adfs", "logistic", "dense", "shared", 4, "grid:2x2", "exact", 1.0, 2.0,
         "nonblocking", 1, "even", 4_000),
    Case("adfs", "logistic", "dense", "poisson", 4, "star", "paper", 0.5, 5.0,
         "rendezvous", 2, "even", 4_000),
    Case("adfs", "logistic", "csr", "shared", 4, "ring", "balanced", 0.25, 0.3,
         "rendezvous", 3, "contiguous", 4_000),
    Case("adfs", "logistic", "csr", "poisson", 4, "complete", "tuned", 1.0, 1.5,
         "nonblocking", 4, "sorted", 4_000),
    Case("ns-adfs", "hinge", "csr", "poisson", 4, "grid:2x2", "paper", 1.0, 2.0,
         "nonblocking", 5, "even", 4_000),
    Case("ns-adfs", "hinge", "csr", "shared", 4, "path", "tuned", 0.5, 5.0,
         "rendezvous", 6, "contiguous", 4_000),
    Case("ns-adfs", "hinge", "dense", "poisson", 4, "ring", "tuned", 2.0, 0.3,
         "rendezvous", 7, "even", 4_000),
    Case("ns-adfs", "hinge", "dense", "shared", 4, "star", "paper", 1.0, 1.5,
         "nonblocking", 8, "sorted", 4_000),
    Case("adfs", "squared", "dense", "shared", 4, "ring", "projector", 1.0, 3.0,
         "nonblocking", 9, "even", 2_000),
    Case("adfs", "squared", "csr", "poisson", 4, "grid:2x2", "exact", 0.5, 1.0,
         "rendezvous", 10, "even", 2_000),
    Case("adfs", "logistic", "dense", "shared", 9, "grid:3x3", "exact", 0.5, 4.0,
         "nonblocking", 11, "even", 8_000),
)  # fmt: skip


def draw_integers(seed):
    """Whole numbers from -4 to 4: a linear congruential generator, the same on every machine."""
    state = seed
    while True:
        state = (1_103_515_245 * state + 12_345) % 2**31
        yield (state >> 16) % 9 - 4


def make_samples(case):
    """Rows of integers and their labels, or values, from a planted model and noise."""
    d, integers = N_FEATURES[case.layout], draw_integers(len(case.layout))
    planted = [next(integers) for _ in range(d)]
    rows, labels = [], []
    for _ in range(N_SAMPLES):
        keep = [next(integers) % KEPT_ONE_IN[case.layout] == 0 for _ in range(d)]
        row = [next(integers) * kept for kept in keep]
        score = sum(a * b for a, b in zip(row, planted, strict=True)) + 3 * next(integers)
        rows.append(row)
        labels.append(score if case.loss == "squared" else (1 if score > 0 else -1))
    return np.array(rows, dtype=float), np.array(labels, dtype=float)


def write_samples(case, folder):
    """The samples as a LIBSVM file."""
    X, y = make_samples(case)
    lines = (
        " ".join([f"{label:g}", *(f"{j + 1}:{row[j]:g}" for j in np.flatnonzero(row))])
        for row, label in zip(X, y, strict=True)
    )
    (Path(folder) / case.file).write_text("\n".join(lines) + "\n")


def found_by_command(case, folder, launch=None):
    """What a training writes: in this process, or where ``launch`` runs the command.

    ``launch`` takes the words after ``adfs`` and returns the exit code and what came on stderr.
    """
    folder = Path(folder)
    write_samples(case, folder)
    out, trace = folder / "model.npz", folder / "trace.csv"
    words = [*case.command, "--out", out, "--trace", trace, "--quiet"]
    words[1] = folder / case.file
    code, err = (launch or _launch_here)(words)
    if code != STOPPED:
        raise AssertionError(f"exit code {code} instead of {STOPPED}: {err}")
    with np.load(out) as model, open(trace, newline="") as file:
        rows = list(csv.DictReader(file))
        return numbers_of(model["thetas"], model["coef"], rows)


def _launch_here(words):
    outcome = here(*words)
    return outcome.code, outcome.err


def make_problem(case):
    """The problem that its command trains on."""
    X, y = make_samples(case)
    X = csr_matrix(X) if case.layout == "csr" else X
    shards = adfs.partition(X, y, case.n_nodes, case.partition, case.seed)
    topology = adfs.Topology.parse(case.graph, n_nodes=case.n_nodes)
    return adfs.Problem(shards, case.loss, case.sigma, topology)


def parameters_digest(case):
    """Bits of its parameters: another machine may round eigenvalues of a graph differently."""
    method = adfs.prepare(
        make_problem(case), case.algorithm, rule=case.parameters, tau=case.tau, clock=case.clock,
        delays=adfs.Delays(tau=case.tau), seed=case.seed, schedule=case.schedule,
    )  # fmt: skip
    return digest_of(method.parameters.numbers())


def found_by_solve(case):
    """The same through `adfs.solve`."""
    result = adfs.solve(
        make_problem(case), case.algorithm, tol=TOL,
        max_iter=case.max_iter, tau=case.tau, clock=case.clock, parameters=case.parameters,
        seed=case.seed, schedule=case.schedule, evaluate_every=case.max_iter // READINGS,
        progress=False,
    )  # fmt: skip
    columns = result.trace.to_dict()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return numbers_of(result.thetas, result.theta, rows)


def numbers_of(thetas, coef, rows):
    """What is pinned of a run: JSON keeps every digit."""
    return {
        "digest": digest_of(thetas),
        "iteration": [int(row["iteration"]) for row in rows],
        "idealized_time": [float(row["idealized_time"]) for row in rows],
        "thetas": thetas.tolist(),
        "coef": coef.tolist(),
        "objective": [float(row["objective"]) for row in rows],
    }


def read_pins():
    """The whole file: ``surroundings``, and ``cases`` by name."""
    return json.loads(PINS.read_text())


def changed_surroundings(pins):
    """Names of versions and roundings that differ from those the pins were made with."""
    now, then = surroundings(), pins["surroundings"]
    names = [name for name in now["versions"] if now["versions"][name] != then["versions"][name]]
    return names + [name for name in now if name != "versions" and now[name] != then[name]]


def differences(found, pinned, elsewhere=()):
    """What a run has that its pin has not, in words; empty where there is nothing.

    Bits count unless ``elsewhere`` names what is not as it was when the pins were made; then
    numbers may differ by `ELSEWHERE`. Sums over nodes may always differ by `SUMS`.
    """
    exact = 0.0 if not elsewhere else ELSEWHERE
    limits = {"thetas": exact, "idealized_time": exact, "coef": max(exact, SUMS),
              "objective": max(exact, SUMS)}  # fmt: skip
    told = []
    if found["iteration"] != pinned["iteration"]:
        told.append(f"iteration: {found['iteration']} instead of {pinned['iteration']}")
    for name, limit in limits.items():
        told += _difference(name, np.array(found[name]), np.array(pinned[name]), limit)
    if not elsewhere and not told and found["digest"] != pinned["digest"]:
        told.append("digest of thetas: differs, though all entries are equal (signs of zeros?)")
    if told and elsewhere:
        told.append(f"(compared to {exact:g}: other {', '.join(elsewhere)})")
    return told


def _difference(name, found, pinned, limit):
    """One sentence about an array that is further off than ``limit``, relative to its largest."""
    if found.shape != pinned.shape:
        return [f"{name}: shape {found.shape} instead of {pinned.shape}"]
    off = np.abs(found - pinned)
    scale = max(np.abs(pinned).max(), np.finfo(float).tiny)
    if not (off > limit * scale).any() and np.isfinite(found).all():
        return []
    place = np.unravel_index(np.argmax(np.nan_to_num(off, nan=np.inf)), off.shape)
    return [
        f"{name}: {np.count_nonzero(found != pinned)} of {found.size} numbers differ, at most by "
        f"{off[place] / scale:.2g} relative (allowed {limit:g}), at {tuple(map(int, place))}: "
        f"{float(found[place])!r} instead of {float(pinned[place])!r}"
    ]
