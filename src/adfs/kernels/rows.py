"""One interface to a sample's features, dense or CSR; the compiler picks by type, no twin kernels.

Sums have a fixed order (partial sums, then a fixed tree), so the same row gives the same bits in
every engine. Matrices come with a row number instead of a view of the row: making a view counts
references, which costs more than a short row's arithmetic.

A centre's ``s`` and ``delta`` lie interleaved (``s_0, delta_0, s_1, delta_1, ...``), so that a
sparse row finds both in the same cache line, and one vector operation serves both: `two_dots` and
`two_axpys`. The compiler may not reorder floating-point sums, so it leaves plain dot products
scalar; letting it reorder would tie the bits to where a call happens to be inlined. Here the order
is written down in vector instructions. Without a compiler (``NUMBA_DISABLE_JIT=1``) the same sums
have another order.
"""

import inspect
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from adfs.kernels.compiled import njit
from adfs.kernels.memory import CACHE_LINE, prefetch

DOUBLE = ir.DoubleType()
INT = ir.IntType(64)
LANE = ir.IntType(32)
FEATURES = 4  # features in a chunk of a dense row: eight lanes, s and delta alternating
TURNS = 4  # partial sums over the non-zeros of a sparse row


class DenseRows(NamedTuple):
    """Features as an (N, d) array, C-contiguous."""

    values: np.ndarray


class CsrRows(NamedTuple):
    """Features in compressed sparse rows."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


def by_type(kind, first, second):
    """``first`` if its first argument is a ``kind``, else ``second``: the compiler chooses."""
    plain = [getattr(function, "py_func", function) for function in (first, second)]

    def function(chosen, *args):
        return (first if isinstance(chosen, kind) else second)(chosen, *args)

    def choose(chosen, *args):
        return plain[0] if chosen.instance_class is kind else plain[1]

    function.__doc__ = first.__doc__
    function.__signature__ = choose.__signature__ = inspect.signature(plain[0])
    overload(function, jit_options={"_nrt": False, "forceinline": True})(choose)
    return function


def _dense_span(rows, row):
    """Where the row's stored entries begin and end."""
    return 0, rows.values.shape[1]


def _csr_span(rows, row):
    return rows.indptr[row], rows.indptr[row + 1]


def _dense_entry(rows, row, k):
    """The number at position ``k`` of the span."""
    return np.float64(rows.values[row, k])


def _csr_entry(rows, row, k):
    return np.float64(rows.values[k])


def _dense_column(rows, k):
    """The feature at position ``k`` of the span."""
    return k


def _csr_column(rows, k):
    return rows.indices[k]


def _dense_prefetch(rows, row):
    """Ask for the row's memory before it is needed."""
    values = rows.values
    width = values.shape[1] * values.itemsize
    address = values.ctypes.data + row * width
    for byte in range(0, min(width, 1024), CACHE_LINE):
        prefetch(np.uintp(address + byte))
    prefetch(np.uintp(address + width - 1))


def _csr_prefetch(rows, row):
    # The first lines only: the processor follows a stream by itself once it has begun, and a loop
    # over a row's own length would cost a mispredicted branch.
    first = rows.indptr[row]
    values = rows.values.ctypes.data + first * rows.values.itemsize
    indices = rows.indices.ctypes.data + first * rows.indices.itemsize
    for line in range(3):
        prefetch(np.uintp(values + line * CACHE_LINE))
    for line in range(2):
        prefetch(np.uintp(indices + line * CACHE_LINE))


span = by_type(DenseRows, _dense_span, _csr_span)
entry = by_type(DenseRows, _dense_entry, _csr_entry)
column = by_type(DenseRows, _dense_column, _csr_column)
prefetch_row = by_type(DenseRows, _dense_prefetch, _csr_prefetch)


@njit(cache=True, _nrt=False, forceinline=True)
def prefetch_sample(rows, row, lines):
    """Ask for a sample's row, and for its line: the 64 bytes of its state."""
    prefetch(np.uintp(lines.ctypes.data + row * CACHE_LINE))
    prefetch_row(rows, row)


@njit(cache=True, _nrt=False, forceinline=True)
def prefetch_pairs(pairs, node):
    """Ask for a row of pairs, or for its first lines: the processor follows from there."""
    width = 8 * pairs.shape[1]
    start = pairs.ctypes.data + node * width
    for place in range(0, min(width, 4 * CACHE_LINE), CACHE_LINE):
        prefetch(np.uintp(start + place))


@njit(cache=True, _nrt=False, forceinline=True)
def dot(rows, row, a):
    """``x . a`` for the row ``x``."""
    first, last = span(rows, row)
    a0 = a1 = a2 = a3 = 0.0
    full = last - (last - first) % 4
    for k in range(first, full, 4):
        a0 += entry(rows, row, k) * a[column(rows, k)]
        a1 += entry(rows, row, k + 1) * a[column(rows, k + 1)]
        a2 += entry(rows, row, k + 2) * a[column(rows, k + 2)]
        a3 += entry(rows, row, k + 3) * a[column(rows, k + 3)]
    for k in range(full, last):
        a0 += entry(rows, row, k) * a[column(rows, k)]
    return (a0 + a1) + (a2 + a3)


@njit(cache=True, _nrt=False, forceinline=True)
def axpy(rows, row, alpha, a):
    """``a += alpha x``, touching only the non-zeros."""
    first, last = span(rows, row)
    for k in range(first, last):
        a[column(rows, k)] += alpha * entry(rows, row, k)


@njit(cache=True, _nrt=False, forceinline=True)
def norm2(rows, row):
    """``|x|^2``, zero where all squares underflow."""
    total = 0.0
    first, last = span(rows, row)
    for k in range(first, last):
        total += entry(rows, row, k) ** 2
    return total


@njit(cache=True, _nrt=False, forceinline=True)
def max_norm(rows, row):
    """The largest ``|x_k|``."""
    largest = 0.0
    first, last = span(rows, row)
    for k in range(first, last):
        largest = max(largest, abs(entry(rows, row, k)))
    return largest


@njit(cache=True, _nrt=False, nogil=True)
def multiply_out(pairs, node, side, factor):
    """Multiply ``s`` (``side`` 0) or ``delta`` (1) of a node."""
    for k in range(side, pairs.shape[1], 2):
        pairs[node, k] *= factor


def _doubles(lanes):
    return ir.VectorType(DOUBLE, lanes)


class _Array:
    """Loads and stores at positions of a contiguous array, or of one row of a matrix."""

    def __init__(self, context, builder, array_type, value, row=None):
        array = context.make_array(array_type)(context, builder, value)
        self.builder, self.dtype = builder, array_type.dtype
        self.shape = cgutils.unpack_tuple(builder, array.shape, array_type.ndim)
        self.kind = context.get_data_type(array_type.dtype)
        self.bytes = array_type.dtype.bitwidth // 8
        self.base = builder.ptrtoint(array.data, INT)
        if row is not None:
            start = builder.mul(row, self.shape[-1])
            self.base = builder.add(self.base, builder.mul(start, INT(self.bytes)))

    def _pointer(self, position, lanes):
        address = self.builder.add(self.base, self.builder.mul(position, INT(self.bytes)))
        kind = self.kind if lanes == 1 else ir.VectorType(self.kind, lanes)
        return self.builder.inttoptr(address, kind.as_pointer()), kind

    def load(self, position, lanes=1):
        """Numbers from ``position`` on: doubles, or 64-bit integers."""
        pointer, kind = self._pointer(position, lanes)
        value = self.builder.load(pointer, align=self.bytes, typ=kind)
        if self.dtype == types.float32:
            return self.builder.fpext(value, DOUBLE if lanes == 1 else _doubles(lanes))
        if isinstance(self.dtype, types.Integer) and self.bytes < 8:
            return self.builder.sext(value, INT)
        return value

    def store(self, position, lanes, value):
        """Write doubles from ``position`` on."""
        pointer, _ = self._pointer(position, lanes)
        self.builder.store(value, pointer, align=self.bytes)


def _arrays(context, builder, rows_type, rows, row=None):
    """The arrays of the rows; the matrix of dense ones, at one row."""
    return [
        _Array(context, builder, kind, builder.extract_value(rows, k), row)
        for k, kind in enumerate(rows_type.types)
    ]


def _shuffle(builder, vector, lanes):
    mask = ir.Constant(ir.VectorType(LANE, len(lanes)), list(lanes))
    return builder.shuffle_vector(vector, vector, mask)


def _pair(builder, first, second):
    pair = builder.insert_element(ir.Constant(_doubles(2), ir.Undefined), first, LANE(0))
    return builder.insert_element(pair, second, LANE(1))


def _loop(builder, start, stop, step=1):
    return cgutils.for_range_slice(builder, start, stop, INT(step), intp=INT)


def _doubled(builder, x, features):
    """``x_0, x_0, x_1, x_1, ...``, to meet the pairs."""
    if features == 1:
        return _pair(builder, x, x)
    return _shuffle(builder, x, [lane // 2 for lane in range(2 * features)])


def _times_pairs(builder, x, pairs, column, features):
    """``x_k * (s_k, delta_k)`` for some features from ``column`` on."""
    both = pairs.load(builder.mul(column, INT(2)), 2 * features)
    return builder.fmul(_doubled(builder, x, features), both)


def _add_to_pairs(builder, factors, x, pairs, column, features):
    """``(s_k, delta_k) += x_k * factors``."""
    lanes, position = 2 * features, builder.mul(column, INT(2))
    wide = _shuffle(builder, factors, [lane % 2 for lane in range(lanes)])
    move = builder.fmul(wide, _doubled(builder, x, features))
    pairs.store(position, lanes, builder.fadd(pairs.load(position, lanes), move))


def _cell(builder, lanes):
    zero = ir.Constant(_doubles(lanes), None)
    cell = cgutils.alloca_once(builder, _doubles(lanes))
    builder.store(zero, cell)
    return cell


def _accumulate(builder, cell, value):
    builder.store(builder.fadd(builder.load(cell), value), cell)


def _two_results(context, builder, signature, pair):
    ends = [builder.extract_element(pair, LANE(k)) for k in (0, 1)]
    return context.make_tuple(builder, signature.return_type, ends)


def _dense_dots(context, builder, signature, args):
    """Chunks of four features into eight lanes, the rest one by one, then a fixed tree."""
    (x,) = _arrays(context, builder, signature.args[0], args[0], args[1])
    pairs = _Array(context, builder, signature.args[2], args[2], args[3])
    length = x.shape[-1]
    wide, single = _cell(builder, 2 * FEATURES), _cell(builder, 2)
    full = builder.and_(length, INT(-FEATURES))
    with _loop(builder, INT(0), full, FEATURES) as (k, _):
        product = _times_pairs(builder, x.load(k, FEATURES), pairs, k, FEATURES)
        _accumulate(builder, wide, product)
    with _loop(builder, full, length) as (k, _):
        _accumulate(builder, single, _times_pairs(builder, x.load(k), pairs, k, 1))
    total = builder.load(wide)
    for lanes in (2 * FEATURES, FEATURES):
        half = lanes // 2
        low, high = range(half), range(half, lanes)
        total = builder.fadd(_shuffle(builder, total, low), _shuffle(builder, total, high))
    return _two_results(context, builder, signature, builder.fadd(total, builder.load(single)))


def _csr_dots(context, builder, signature, args):
    """Partial sums take turns, one non-zero each, and are joined by a fixed tree.

    One loop without a remainder: the length of a sparse row is not known, and each loop more would
    cost a mispredicted branch.
    """
    values, indices, indptr = _arrays(context, builder, signature.args[0], args[0])
    first, last = indptr.load(args[1]), indptr.load(builder.add(args[1], INT(1)))
    pairs = _Array(context, builder, signature.args[2], args[2], args[3])
    cells = [_cell(builder, 2) for _ in range(TURNS)]
    with _loop(builder, first, last) as (k, _):
        product = _times_pairs(builder, values.load(k), pairs, indices.load(k), 1)
        sums = [builder.load(cell) for cell in cells]
        turned = [*sums[1:], builder.fadd(sums[0], product)]
        for cell, value in zip(cells, turned, strict=True):
            builder.store(value, cell)
    sums = [builder.load(cell) for cell in cells]
    total = builder.fadd(builder.fadd(sums[0], sums[1]), builder.fadd(sums[2], sums[3]))
    return _two_results(context, builder, signature, total)


def _dense_axpys(context, builder, signature, args):
    (x,) = _arrays(context, builder, signature.args[0], args[0], args[1])
    pairs = _Array(context, builder, signature.args[4], args[4], args[5])
    factors, length = _pair(builder, args[2], args[3]), x.shape[-1]
    full = builder.and_(length, INT(-FEATURES))
    with _loop(builder, INT(0), full, FEATURES) as (k, _):
        _add_to_pairs(builder, factors, x.load(k, FEATURES), pairs, k, FEATURES)
    with _loop(builder, full, length) as (k, _):
        _add_to_pairs(builder, factors, x.load(k), pairs, k, 1)
    return context.get_dummy_value()


def _csr_axpys(context, builder, signature, args):
    values, indices, indptr = _arrays(context, builder, signature.args[0], args[0])
    first, last = indptr.load(args[1]), indptr.load(builder.add(args[1], INT(1)))
    pairs = _Array(context, builder, signature.args[4], args[4], args[5])
    factors = _pair(builder, args[2], args[3])
    with _loop(builder, first, last) as (k, _):
        _add_to_pairs(builder, factors, values.load(k), pairs, indices.load(k), 1)
    return context.get_dummy_value()


if config.DISABLE_JIT:

    def two_dots(rows, row, pairs, node):
        """``(x . s, x . delta)`` for row ``x`` and the pairs of ``node``."""
        return dot(rows, row, pairs[node, ::2]), dot(rows, row, pairs[node, 1::2])

    def two_axpys(rows, row, alpha, beta, pairs, node):
        """``s += alpha x`` and ``delta += beta x``, in place."""
        axpy(rows, row, alpha, pairs[node, ::2])
        axpy(rows, row, beta, pairs[node, 1::2])

else:

    @intrinsic
    def two_dots(typingctx, rows, row, pairs, node):
        """``(x . s, x . delta)`` for row ``x`` and the pairs of ``node``."""
        result = types.UniTuple(types.float64, 2)
        code = _dense_dots if rows.instance_class is DenseRows else _csr_dots
        return result(rows, types.int64, pairs, types.int64), code

    @intrinsic
    def two_axpys(typingctx, rows, row, alpha, beta, pairs, node):
        """``s += alpha x`` and ``delta += beta x``, in place."""
        number, index = types.float64, types.int64
        code = _dense_axpys if rows.instance_class is DenseRows else _csr_axpys
        return types.void(rows, index, number, number, pairs, index), code
