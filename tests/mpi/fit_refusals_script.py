"""Run by mpiexec: fits that are refused, interrupted or fine, in a program that uses MPI itself.

Rank 0 writes, for each case, what every rank has met: a sentence, or coefficients.
"""

import json
import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from mpi4py import MPI
from sklearn.model_selection import GridSearchCV

import adfs
from adfs.estimators import fitting
from adfs.mpi.communicator import open_world, session

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.fits import cancer, heavy, iris

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size
X_ALL, Y_ALL = cancer()
OWN = np.array_split(np.arange(len(Y_ALL)), SIZE)[RANK]
X, Y = X_ALL[OWN], Y_ALL[OWN]
TIGHT = {"tol": 1e-13, "engine": "mpi"}
CASES = {}


def case(work):
    """Note a function under its name."""
    CASES[work.__name__] = work
    return work


def logistic(**options):
    return adfs.LogisticRegression(**{"tol": 1e-3, "engine": "mpi"} | options)


def on(rank, special, usual):
    """Something else on one rank."""
    return special if rank == RANK else usual


@case
def nan_on_rank_1():
    logistic().fit(on(1, np.where(X > 1, np.nan, X), X), Y)


@case
def folds_of_scikit_learn():
    adfs.LogisticRegressionCV(Cs=[1.0], engine="mpi").fit(X, Y)


@case
def other_features_on_rank_2():
    logistic().fit(on(2, X[:, :4], X), Y)


@case
def other_names_of_features_on_rank_1():
    names = list("abcdef")
    logistic().fit(pd.DataFrame(X, columns=on(1, names[::-1], names)), Y)


@case
def no_rows_on_rank_1():
    logistic().fit(*on(1, (X[:0], Y[:0]), (X, Y)))


@case
def one_class_everywhere():
    logistic().fit(X, np.full(len(Y), "yes"))


@case
def weights_of_zero_everywhere():
    logistic().fit(X, Y, np.zeros(len(Y)))


@case
def a_negative_weight_on_rank_2():
    logistic().fit(X, Y, np.full(len(Y), on(2, -1.0, 1.0)))


@case
def other_C_on_rank_1():
    logistic(C=on(1, 2.0, 1.0)).fit(X, Y)


@case
def another_estimator_on_rank_2():
    on(2, adfs.LinearSVC(engine="mpi"), logistic()).fit(X, Y)


@case
def fewer_nodes_than_ranks():
    logistic(n_nodes=2).fit(X, Y)


@case
def more_nodes_than_rows_on_rank_0():
    logistic(n_nodes=9).fit(X[: on(0, 2, 9)], np.arange(on(0, 2, 9)) % 2)


@case
def one_group_on_two_ranks():
    logistic().fit(X, Y, groups=np.full(len(Y), ["Oslo", "Rome", "Oslo"][RANK]))


@case
def groups_on_rank_0_only():
    logistic().fit(X, Y, groups=on(0, np.zeros(len(Y)), None))


@case
def words_and_numbers():
    logistic().fit(X, on(0, Y.astype(str), Y))


@case
def point_saga():
    logistic(algorithm="point-saga").fit(X, Y)


@case
def other_columns_of_targets():
    adfs.Ridge(engine="mpi").fit(X, on(1, np.column_stack([Y, Y]), Y))


@case
def a_warm_start_from_other_models():
    model = adfs.LogisticRegression(tol=1e-3, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.arange(len(Y)) % 2)
    model.set_params(engine="mpi", warm_start=True).fit(X, np.arange(len(Y)) % 2)


@case
def no_such_engine():
    adfs.LogisticRegression(engine="cloud").fit(X, Y)


@case
def an_early_stop():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        logistic(max_iter=100, tol=1e-9).fit(X, Y)
    return [str(each.message) for each in seen]


@case
def ctrl_c_on_rank_1():
    printer, strokes = fitting.progress_printers, []

    def strike(progress):
        if RANK == 1 and not strokes:  # a second one would end the job
            strokes.append(os.kill(os.getpid(), signal.SIGINT))

    fitting.progress_printers = lambda *_: (strike,)
    model = logistic(C=1e4, tol=1e-15)  # long enough to receive it
    try:
        model.fit(X, Y)
    except KeyboardInterrupt:
        return [model.result_.status, model.n_iter_, model.coef_.tolist()]
    finally:
        fitting.progress_printers = printer


@case
def each_rank_by_itself():
    """A plain fit speaks to nobody: ranks may fit other things, other times."""
    return [adfs.Ridge(alpha=1.0 + RANK).fit(X, Y).coef_[0] for _ in range(1 + RANK)][:1]


@case
def words_one_class_a_rank():
    rows, names = iris()
    own = np.arange(len(names)) // 50 == RANK  # every rank has one class only
    model = adfs.LogisticRegression(class_weight="balanced", **TIGHT | {"tol": 1e-11})
    model.fit(rows[own], names[own], heavy(150)[own])
    return [model.classes_.tolist(), model.coef_.tolist(), model.intercept_.tolist()]


@case
def svc_on_more_nodes():
    model = adfs.LinearSVC(n_nodes=7, graph="ring", **TIGHT).fit(X, Y)
    predicted = model.predict(X_ALL).tolist()
    return [model.coef_.tolist(), model.intercept_.tolist(), predicted, model.history_]


@case
def ridge_csr_on_rank_0_and_float32_on_rank_1():
    rows = [sp.csr_array(X), X.astype(np.float32), X][RANK]
    model = adfs.Ridge(**TIGHT).fit(rows, Y.astype(float), heavy(len(Y_ALL))[OWN])
    return [model.coef_.tolist(), model.intercept_]


@case
def cross_validation():
    """Folds of local rows: the same number of fits on all ranks."""
    search = GridSearchCV(logistic(), {"C": [0.1, 1.0]}, cv=2, refit=False)
    search.fit(X, Y)
    return len(search.cv_results_["mean_test_score"])


class Counted:
    """A communicator that notes its duplicates."""

    def __init__(self, comm):
        self.comm, self.made = comm, []

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def Dup(self):
        self.made.append(self.comm.Dup())
        return self.made[-1]


@case
def communicators_are_given_back():
    world = open_world()
    counted = world.comm = Counted(world.comm)
    for algorithm in ("adfs", "newton", "msda"):
        logistic(algorithm=algorithm).fit(X, np.arange(len(Y)) % 3)
    world.comm = counted.comm
    return len(counted.made)


@case
def equal_numbers():
    return logistic(C=on(1, 1, 1.0)).fit(X, Y).result_.status


@case
def two_at_a_time():
    with session():
        try:
            logistic().fit(X, Y)
        except ValueError as error:
            return str(error)


@case
def seeds_of_rank_0():
    state = np.random.RandomState(RANK)
    return [logistic(random_state=each).fit(X, Y).result_.seed for each in (None, state, 7)]


def met(work):
    """What comes of it on this rank."""
    try:
        return ["fine", work()]
    except Exception as error:
        return [type(error).__name__, str(error)]


def main(path):
    """All cases, one after another: a refusal leaves the ranks able to go on."""
    found = {name: COMM.gather(met(work)) for name, work in CASES.items()}
    if RANK == 0:
        Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
