"""A loss of one's own behind one integer: the address of a table of its compiled functions.

Kernels call the functions through the table, so they are compiled once for all losses and stay in
Numba's cache; only the scalar functions of the loss are compiled by the process that uses it.
Without a compiler the integer is a number of `TABLES`, and the functions are those of Python.

What has no closed form here is the root of an increasing function

    g(s) = e s + k l'(s) - t,    e + k l''(s) >= 0 for every l'' from 0 to l''max.
"""

import functools
import math
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from adfs.kernels.compiled import njit

PLUGIN = 7  # this code and all above are losses of one's own

# Entries of a table, eight bytes each: four addresses and two numbers.
VALUE, DERIVATIVE, CURVATURE, CONJUGATE, LARGEST, HAS_CONJUGATE = range(6)

MAX_STEPS = 400
NOISE = 4.0 * np.finfo(np.float64).eps  # of the largest term of g: what its rounding amounts to
FAR = 1e6  # where the range of l' is taken to end, in units of what label and dual suggest
ENOUGH = 1e-6  # of its largest term: a Fenchel gap that large has ten digits


class Functions(NamedTuple):
    """A table as it is written: ``l``, ``l'`` and ``l''`` of (s, b), ``l*`` of (c, b), numbers."""

    value: Any
    derivative: Any
    curvature: Any
    conjugate: Any  # anything where it is to be solved for
    largest: float  # l''max
    has_conjugate: bool


TABLES: dict[int, Any] = {}  # by their codes; they stay, because any problem may hold a code


@functools.cache
def _compiled(function):
    """A C function of two doubles, kept for ever; nan where the function raises an error."""
    plain = numba.njit(error_model="numpy")(function)

    def guarded(a, b):
        try:
            return float(plain(a, b))
        except Exception:
            return math.nan

    signature = types.float64(types.float64, types.float64)
    return numba.cfunc(signature, error_model="numpy")(guarded)


def make_code(functions: Functions) -> int:
    """The code of a loss; compiles its functions."""
    if config.DISABLE_JIT:
        code = PLUGIN + len(TABLES)
        TABLES[code] = functions
        return code
    table = np.zeros(len(functions))
    table[:LARGEST].view(np.int64)[:] = [_compiled(each).address for each in functions[:LARGEST]]
    table[LARGEST:] = functions[LARGEST:]
    code = int(table.ctypes.data)
    TABLES[code] = table
    return code


if config.DISABLE_JIT:

    def call(code, which, a, b):
        """One of the functions of a loss at ``(a, b)``, nan where Python raises an error."""
        try:
            return float(TABLES[code][which](float(a), float(b)))
        except (ArithmeticError, ValueError):  # such as exp(1000)
            return math.nan

    def entry(code, which):
        """A number in the table."""
        return float(TABLES[code][which])

else:

    def _slot(builder, code, which, kind):
        """Pointer to an entry of the table at address ``code``."""
        offset = builder.mul(which, ir.IntType(64)(8))
        return builder.inttoptr(builder.add(code, offset), kind.as_pointer())

    @intrinsic
    def call(typingctx, code, which, a, b):
        """One of the functions of a loss at ``(a, b)``."""
        real = ir.DoubleType()
        kind = ir.FunctionType(real, [real, real]).as_pointer()

        def codegen(context, builder, signature, args):
            function = builder.load(_slot(builder, *args[:2], kind))
            return builder.call(function, args[2:], attrs=("nounwind",))

        real_, whole = types.float64, types.int64
        return real_(whole, whole, real_, real_), codegen

    @intrinsic
    def entry(typingctx, code, which):
        """A number in the table."""

        def codegen(context, builder, signature, args):
            return builder.load(_slot(builder, *args, ir.DoubleType()))

        return types.float64(types.int64, types.int64), codegen


@njit(cache=True, _nrt=False)
def bend(code, s, b):
    """``l''(s)``, kept between its bounds 0 and ``l''max``."""
    return min(entry(code, LARGEST), max(0.0, call(code, CURVATURE, s, b)))


@njit(cache=True, _nrt=False)
def root(code, b, e, k, t, s, reach):
    """``s`` with ``e s + k l'(s) = t``, ``l'(s)``, and whether it is one; else beyond ``reach``.

    Newton's steps from ``s``. A step that leaves the bracket, or does not halve the one before, is
    replaced by a bisection; while there is a bound on one side only, by a stride that grows.
    """
    low, high, slope, found = -math.inf, math.inf, 0.0, True
    previous, stride = 2.0 * reach, max(1.0, abs(s))
    for _ in range(MAX_STEPS):
        slope = call(code, DERIVATIVE, s, b)
        residual = e * s + k * slope - t
        if not abs(residual) > NOISE * max(abs(e * s), abs(k * slope), abs(t)):
            break
        if residual > 0.0:
            high = s
        else:
            low = s
        bounded = low > -math.inf and high < math.inf
        if not bounded and abs(s) > reach:
            found = False
            break
        rise = e + k * bend(code, s, b)
        step = -residual / rise if rise > 0.0 else math.inf
        if not (low < s + step < high and abs(step) <= 0.5 * previous):
            if bounded:
                step = 0.5 * (low + high) - s
            else:
                stride *= 2.0
                step = math.copysign(stride, -residual)
        if s + step == s:
            break
        previous = abs(step)
        s += step
    return s, slope, found


@njit(cache=True, _nrt=False)
def prox(code, b, w, q, eta, u, warm):
    """`adfs.kernels.prox.dual_prox` of a loss of one's own: ``(c, s)`` with ``c = w l'(s)``."""
    k = q * w - eta / entry(code, LARGEST)
    s, slope, _ = root(code, b, eta, k, u, warm, math.inf)
    return w * slope, s


@njit(cache=True, _nrt=False)
def slope_after(code, b, k, target, warm):
    """`adfs.kernels.prox.slope_after` of a loss of one's own."""
    s, slope, _ = root(code, b, 1.0, k, target, warm, math.inf)
    return slope, s


@njit(cache=True, _nrt=False)
def attaining(code, b, c, start):
    """``s`` with ``l'(s) = c``, ``l'(s)``, and whether it is one; else where the range ends."""
    reach = FAR * max(1.0, abs(b), abs(start), abs(c) / entry(code, LARGEST))
    return root(code, b, 0.0, 1.0, c, start, reach)


@njit(cache=True, _nrt=False)
def clip(code, b, c):
    """``c``, or the end of the range of ``l'`` that is nearest to it."""
    _, slope, found = attaining(code, b, c, b)
    return c if found else slope


@njit(cache=True, _nrt=False)
def conjugate(code, b, c):
    """``l*(c)``: what the loss says, else ``c s - l(s)`` where ``l'(s) = c``."""
    if entry(code, HAS_CONJUGATE) > 0.0:
        return call(code, CONJUGATE, c, b)
    s, _, found = attaining(code, b, c, b)
    return c * s - call(code, VALUE, s, b) if found else math.inf


@njit(cache=True, _nrt=False)
def fenchel_gap(code, s, b, c):
    """``l(s) + l*(c) - c s``, by the conjugate that the loss gives if that leaves digits.

    Otherwise it is ``l(s) - l(a) - c (s - a)`` where ``l'(a) = c``, with ``a`` sought from ``s``:
    near the solution all terms are as small as the loss.
    """
    loss = call(code, VALUE, s, b)
    if entry(code, HAS_CONJUGATE) > 0.0:
        given = call(code, CONJUGATE, c, b)
        gap = loss + given - c * s
        if math.inf > gap > ENOUGH * max(abs(loss), abs(given), abs(c * s)):
            return gap
    a, _, found = attaining(code, b, c, s)
    if not found:
        return math.inf
    return max(0.0, loss - call(code, VALUE, a, b) - c * (s - a))
