"""Row arithmetic: dense and CSR, compiled and not, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from adfs.data.shards import as_rows
from adfs.kernels import rows as kernel
from adfs.kernels.compiled import njit
from adfs.kernels.edge import decay_table, power

pytestmark = pytest.mark.uncompiled
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 28, 131]


@njit(cache=True)
def run_dot(rows, row, a):
    return kernel.dot(rows, row, a)


@njit(cache=True)
def run_axpy(rows, row, alpha, a):
    kernel.axpy(rows, row, alpha, a)


@njit(cache=True)
def run_norm2(rows, row):
    return kernel.norm2(rows, row)


@njit(cache=True)
def run_two_dots(rows, row, pairs, node):
    return kernel.two_dots(rows, row, pairs, node)


@njit(cache=True)
def run_two_axpys(rows, row, alpha, beta, pairs, node):
    kernel.two_axpys(rows, row, alpha, beta, pairs, node)


@njit(cache=True)
def run_prefetch(rows, row):
    kernel.prefetch_row(rows, row)


COMPILED = (run_dot, run_axpy, run_norm2)
INTERPRETED = [getattr(f, "py_func", f) for f in (kernel.dot, kernel.axpy, kernel.norm2)]


def matrix(width, dtype=np.float64):
    rng = np.random.default_rng(width)
    values = rng.normal(size=(6, width)) * (rng.random((6, width)) < 0.6)
    values[3] = 0.0  # an empty row in CSR
    values[4] = rng.normal(size=width)  # a full one
    return values.astype(dtype)


def stored(values, layout):
    rows = as_rows(values if layout == "dense" else sp.csr_matrix(values))
    return rows._replace(indices=rows.indices.astype(np.int64)) if "int64" in layout else rows


@pytest.mark.parametrize("functions", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("width", WIDTHS)
def test_dots_axpys_and_norms_are_those_of_numpy(width, layout, dtype, functions):
    dot, axpy, norm2 = functions
    values = matrix(width, dtype)
    rows, exact = stored(values, layout), values.astype(np.float64)
    a = np.random.default_rng(1).normal(size=width)
    for row, x in enumerate(exact):
        moved = a.copy()
        axpy(rows, row, 2.5, moved)
        assert dot(rows, row, a) == pytest.approx(x @ a, abs=1e-13)
        assert norm2(rows, row) == pytest.approx(x @ x, abs=1e-13)
        np.testing.assert_allclose(moved, a + 2.5 * x, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["dense", "csr", "csr int64"])
@pytest.mark.parametrize("width", WIDTHS)
def test_vector_instructions_compute_what_numpy_computes(width, layout, dtype):
    """On a node's interleaved pairs; the other nodes' are not touched."""
    values = matrix(width, dtype)
    rows, exact = stored(values, layout), values.astype(np.float64)
    pairs = np.random.default_rng(1).normal(size=(3, 2 * width))
    s, delta = pairs[1, ::2].copy(), pairs[1, 1::2].copy()
    for row, x in enumerate(exact):
        found = run_two_dots(rows, row, pairs, 1)
        assert found == pytest.approx((x @ s, x @ delta), abs=1e-13)
        moved = pairs.copy()
        run_two_axpys(rows, row, 0.3, -1.7, moved, 1)
        np.testing.assert_allclose(moved[1, ::2], s + 0.3 * x, atol=1e-14)
        np.testing.assert_allclose(moved[1, 1::2], delta - 1.7 * x, atol=1e-14)
        assert np.array_equal(moved[::2], pairs[::2])


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_row_gives_the_same_bits_wherever_it_stands(layout):
    """No sum depends on alignment or on a row's neighbours."""
    values = np.random.default_rng(2).normal(size=(1, 37))
    pairs = np.random.default_rng(3).normal(size=(1, 74))
    alone = run_two_dots(stored(values, layout), 0, pairs, 0)
    for before in range(1, 6):
        shifted = stored(np.vstack([np.ones((before, 37)), values]), layout)
        assert run_two_dots(shifted, before, pairs, 0) == alone


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_float32_rows_are_multiplied_in_double_precision(layout):
    values = np.full((1, 40), 1 / 3, np.float32)
    a = np.random.default_rng(0).normal(size=40)
    expected = values[0].astype(np.float64) @ a
    assert run_dot(stored(values, layout), 0, a) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_prefetching_changes_nothing_even_at_the_ends(layout):
    rows = stored(matrix(300), layout)
    before = [array.copy() for array in rows]
    for row in range(6):
        run_prefetch(rows, row)
    for old, new in zip(before, rows, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("functions", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_an_axpy_in_csr_touches_only_the_non_zeros(functions):
    values = matrix(50)
    untouched = np.full(50, np.nan)
    functions[1](stored(values, "csr"), 3, 1.0, untouched)
    assert np.isnan(untouched).all()
    counting = np.zeros(50)
    functions[1](stored(values, "csr"), 0, 1.0, counting)
    assert np.array_equal(counting != 0, values[0] != 0)


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.03, 0.6, 1 - 1e-9])
def test_idle_factors_are_powers_of_r(rho):
    """Against ``log1p`` in long double; the tables end at 2^22, beyond which exp serves."""
    decay = decay_table(rho)
    log_r = np.log1p(np.longdouble(-rho)) - np.log1p(np.longdouble(rho))
    for k in (0, 1, 2, 1023, 1024, 1025, 70_000, 2**22 - 1, 2**22, 2**22 + 1, 10**9):
        exact = float(np.exp(k * log_r))
        assert power(decay, k) == pytest.approx(exact, rel=1e-12 + 1e-15 * abs(float(k * log_r)))
    assert power(decay, 0) == 1.0


def test_a_row_is_multiplied_out_alone():
    pairs = np.ones((3, 6))
    kernel.multiply_out(pairs, 1, 1, 1e-3)
    np.testing.assert_array_equal(pairs[1], [1.0, 1e-3] * 3)
    assert (pairs[::2] == 1.0).all()
