"""Which versions and which rounding the numbers of this machine come from."""

import hashlib
import math
import platform
from importlib.metadata import version

import numba
import numpy as np

PACKAGES = ("numpy", "scipy", "numba", "llvmlite")


@numba.njit
def compiled_numbers(count):
    """Results of exp, log1p and sqrt as the compiler has them, and a sum in plain order."""
    numbers = np.empty(3 * count + 1)
    total = 0.0
    for k in range(count):
        x = (7 * k - 100) / 13.0
        numbers[3 * k] = math.exp(x)
        numbers[3 * k + 1] = math.log1p(math.exp(-abs(x)))
        numbers[3 * k + 2] = math.sqrt(abs(x) + 1.0)
        total += numbers[3 * k + 1] * numbers[3 * k + 2]
    numbers[-1] = total
    return numbers


def library_numbers():
    """Eigenvalues of a fixed symmetric matrix and a product with it, as NumPy's BLAS has them."""
    size = 9
    row, column = np.indices((size, size))
    matrix = ((row * column + row + column) % 7 - 3.0) / 3.0
    return np.concatenate([np.linalg.eigvalsh(matrix), (matrix @ matrix).ravel()])


def digest_of(array):
    """SHA-256 of shape and bits."""
    array = np.ascontiguousarray(array, dtype="<f8")
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()


def surroundings():
    """All that the last bits of a result may depend on."""
    return {
        "versions": {name: version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "compiled": not numba.config.DISABLE_JIT,
        "compiled kernel": digest_of(compiled_numbers(40)),
        "eigenvalues": digest_of(library_numbers()),
    }
