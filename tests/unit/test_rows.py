"""Row arithmetic: dense and CSR, compiled and not, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from adfs.kernels import rows as kernel
from adfs.kernels.edge import Centres, multiply_out
from adfs.kernels.lazy import decay_table, power
from adfs.problems.shards import as_rows

WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 28, 131]


@njit
def run_dot(rows, row, a):
    return kernel.dot(rows, row, a)


@njit
def run_axpy(rows, row, alpha, a):
    kernel.axpy(rows, row, alpha, a)


@njit
def run_norm2(rows, row):
    return kernel.norm2(rows, row)


@njit
def run_two_dots(rows, row, a, b, node):
    return kernel.two_dots(rows, row, a, b, node)


@njit
def run_two_axpys(rows, row, alpha, a, beta, b, node):
    kernel.two_axpys(rows, row, alpha, a, beta, b, node)


@njit
def run_prefetch(rows, row):
    kernel.prefetch_row(rows, row)


COMPILED = (run_dot, run_axpy, run_norm2, run_two_dots, run_two_axpys)
INTERPRETED = (kernel.dot, kernel.axpy, kernel.norm2, kernel.two_dots, kernel.two_axpys)


def matrix(width, dtype=np.float64):
    rng = np.random.default_rng(width)
    values = rng.normal(size=(6, width)) * (rng.random((6, width)) < 0.6)
    values[3] = 0.0  # an empty row in CSR
    values[4] = rng.normal(size=width)  # a full one
    return values.astype(dtype)


def stored(values, layout):
    return as_rows(sp.csr_matrix(values) if layout == "csr" else values)


@pytest.mark.parametrize("functions", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("width", WIDTHS)
def test_row_arithmetic_is_that_of_numpy(width, layout, dtype, functions):
    dot, axpy, norm2, two_dots, two_axpys = functions
    values = matrix(width, dtype)
    rows, exact = stored(values, layout), values.astype(np.float64)
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3, width))
    for row in range(len(values)):
        x = exact[row]
        assert dot(rows, row, a[1]) == pytest.approx(x @ a[1], abs=1e-13)
        assert norm2(rows, row) == pytest.approx(x @ x, abs=1e-13)
        assert two_dots(rows, row, a, b, 1) == pytest.approx((x @ a[1], x @ b[1]), abs=1e-13)
        one, two, single = a.copy(), b.copy(), a[2].copy()
        two_axpys(rows, row, 0.3, one, -1.7, two, 1)
        axpy(rows, row, 2.5, single)
        expected_one, expected_two = a.copy(), b.copy()
        expected_one[1] += 0.3 * x
        expected_two[1] -= 1.7 * x
        np.testing.assert_allclose(one, expected_one, atol=1e-14)
        np.testing.assert_allclose(two, expected_two, atol=1e-14)
        np.testing.assert_allclose(single, a[2] + 2.5 * x, atol=1e-14)


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
    centres = Centres(np.ones((3, 4)), np.ones((3, 4)), np.ones(3), np.zeros(3, np.int64))
    multiply_out(centres.delta, 1, 1e-3)
    np.testing.assert_array_equal(centres.delta[:, 0], [1.0, 1e-3, 1.0])
