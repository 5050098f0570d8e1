"""Two dots and two axpys on one row, in vector instructions with a fixed order of sums.

A centre's ``s`` and ``delta`` lie interleaved (``s_0, delta_0, s_1, delta_1, ...``), so that a
sparse row finds both in the same cache line, and one vector operation serves both.

The compiler may not reorder floating-point sums, so it leaves plain dot products scalar; letting it
reorder would tie the bits to where a call happens to be inlined. Here the order is written down.
Without a compiler (``NUMBA_DISABLE_JIT=1``) NumPy does the same sums in its own order.
"""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

DOUBLE = ir.DoubleType()
INT = ir.IntType(64)
LANE = ir.IntType(32)
FEATURES = 4  # features in a chunk of a dense row: eight lanes, s and delta alternating
TURNS = 4  # partial sums over the non-zeros of a sparse row


def _doubles(lanes):
    return ir.VectorType(DOUBLE, lanes)


class _Array:
    """Loads and stores at positions of a contiguous array, counted from ``start`` elements on."""

    def __init__(self, context, builder, array_type, value, start=None):
        array = context.make_array(array_type)(context, builder, value)
        self.builder, self.dtype = builder, array_type.dtype
        self.shape = cgutils.unpack_tuple(builder, array.shape, array_type.ndim)
        self.kind = context.get_data_type(array_type.dtype)
        self.bytes = array_type.dtype.bitwidth // 8
        self.base = builder.ptrtoint(array.data, INT)
        if start is not None:
            row = builder.mul(start, self.shape[-1]) if array_type.ndim == 2 else start
            self.base = builder.add(self.base, builder.mul(row, INT(self.bytes)))

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


def _shuffle(builder, vector, lanes):
    mask = ir.Constant(ir.VectorType(LANE, len(lanes)), list(lanes))
    return builder.shuffle_vector(vector, vector, mask)


def _pair(builder, first, second):
    pair = builder.insert_element(ir.Constant(_doubles(2), ir.Undefined), first, LANE(0))
    return builder.insert_element(pair, second, LANE(1))


def _loop(builder, start, stop, step):
    return cgutils.for_range_slice(builder, start, stop, INT(step), intp=INT)


def _times_pairs(builder, x, pairs, position, lanes):
    """``x_k * (s_k, delta_k)`` for ``lanes / 2`` features; ``x`` is doubled to meet the pairs."""
    if lanes == 2:
        doubled = _pair(builder, x, x)
    else:
        doubled = _shuffle(builder, x, [k // 2 for k in range(lanes)])
    return builder.fmul(doubled, pairs.load(builder.mul(position, INT(2)), lanes))


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
    x = _Array(context, builder, signature.args[0], args[0], args[1])
    pairs = _Array(context, builder, signature.args[2], args[2], args[3])
    length = x.shape[-1]
    wide, single = _cell(builder, 2 * FEATURES), _cell(builder, 2)
    full = builder.and_(length, INT(-FEATURES))
    with _loop(builder, INT(0), full, FEATURES) as (k, _):
        product = _times_pairs(builder, x.load(k, FEATURES), pairs, k, 2 * FEATURES)
        _accumulate(builder, wide, product)
    with _loop(builder, full, length, 1) as (k, _):
        _accumulate(builder, single, _times_pairs(builder, x.load(k), pairs, k, 2))
    total = builder.load(wide)
    for lanes in (2 * FEATURES, FEATURES):
        half = lanes // 2
        low, high = range(half), range(half, lanes)
        total = builder.fadd(_shuffle(builder, total, low), _shuffle(builder, total, high))
    return _two_results(context, builder, signature, builder.fadd(total, builder.load(single)))


def _dense_axpys(context, builder, signature, args):
    x = _Array(context, builder, signature.args[0], args[0], args[1])
    pairs = _Array(context, builder, signature.args[4], args[4], args[5])
    factors = _pair(builder, args[2], args[3])
    length = x.shape[-1]

    def move(k, features):
        lanes = 2 * features
        wide = _shuffle(builder, factors, [lane % 2 for lane in range(lanes)])
        chunk = x.load(k, features)
        if features == 1:
            chunk = _pair(builder, chunk, chunk)
        else:
            chunk = _shuffle(builder, chunk, [lane // 2 for lane in range(lanes)])
        position = builder.mul(k, INT(2))
        value = builder.fadd(pairs.load(position, lanes), builder.fmul(wide, chunk))
        pairs.store(position, lanes, value)

    full = builder.and_(length, INT(-FEATURES))
    with _loop(builder, INT(0), full, FEATURES) as (k, _):
        move(k, FEATURES)
    with _loop(builder, full, length, 1) as (k, _):
        move(k, 1)
    return context.get_dummy_value()


def _csr_dots(context, builder, signature, args):
    """Partial sums take turns, one non-zero each, and are joined by a fixed tree.

    One loop without a remainder: the length of a sparse row is not known, and each loop more would
    cost a mispredicted branch.
    """
    values, indices = (_Array(context, builder, signature.args[k], args[k]) for k in (0, 1))
    pairs = _Array(context, builder, signature.args[4], args[4], args[5])
    cells = [_cell(builder, 2) for _ in range(TURNS)]
    with _loop(builder, args[2], args[3], 1) as (k, _):
        product = _times_pairs(builder, values.load(k), pairs, indices.load(k), 2)
        sums = [builder.load(cell) for cell in cells]
        turned = [*sums[1:], builder.fadd(sums[0], product)]
        for cell, value in zip(cells, turned, strict=True):
            builder.store(value, cell)
    sums = [builder.load(cell) for cell in cells]
    total = builder.fadd(builder.fadd(sums[0], sums[1]), builder.fadd(sums[2], sums[3]))
    return _two_results(context, builder, signature, total)


def _csr_axpys(context, builder, signature, args):
    values, indices = (_Array(context, builder, signature.args[k], args[k]) for k in (0, 1))
    pairs = _Array(context, builder, signature.args[6], args[6], args[7])
    factors = _pair(builder, args[4], args[5])
    with _loop(builder, args[2], args[3], 1) as (k, _):
        x = values.load(k)
        position = builder.mul(indices.load(k), INT(2))
        push = builder.fmul(factors, _pair(builder, x, x))
        pairs.store(position, 2, builder.fadd(pairs.load(position, 2), push))
    return context.get_dummy_value()


if config.DISABLE_JIT:

    def dense_two_dots(values, row, pairs, node):
        """``(x . s, x . delta)`` for row ``x`` and the pairs of ``node``."""
        x = values[row].astype(np.float64)
        return x @ pairs[node, ::2], x @ pairs[node, 1::2]

    def dense_two_axpys(values, row, alpha, beta, pairs, node):
        """``s += alpha x`` and ``delta += beta x``."""
        x = values[row].astype(np.float64)
        pairs[node, ::2] += alpha * x
        pairs[node, 1::2] += beta * x

    def csr_two_dots(values, indices, first, last, pairs, node):
        """``(x . s, x . delta)`` for the sparse row at ``first`` to ``last``."""
        x, j = values[first:last].astype(np.float64), 2 * indices[first:last].astype(np.int64)
        return x @ pairs[node, j], x @ pairs[node, j + 1]

    def csr_two_axpys(values, indices, first, last, alpha, beta, pairs, node):
        """``s += alpha x`` and ``delta += beta x`` at the row's non-zeros."""
        x, j = values[first:last].astype(np.float64), 2 * indices[first:last].astype(np.int64)
        pairs[node, j] += alpha * x
        pairs[node, j + 1] += beta * x

else:
    _TWO = types.UniTuple(types.float64, 2)
    _I, _D = types.int64, types.float64

    @intrinsic
    def dense_two_dots(typingctx, values, row, pairs, node):
        """``(x . s, x . delta)`` for row ``x`` and the pairs of ``node``."""
        return _TWO(values, _I, pairs, _I), _dense_dots

    @intrinsic
    def dense_two_axpys(typingctx, values, row, alpha, beta, pairs, node):
        """``s += alpha x`` and ``delta += beta x``."""
        return types.void(values, _I, _D, _D, pairs, _I), _dense_axpys

    @intrinsic
    def csr_two_dots(typingctx, values, indices, first, last, pairs, node):
        """``(x . s, x . delta)`` for the sparse row at ``first`` to ``last``."""
        return _TWO(values, indices, _I, _I, pairs, _I), _csr_dots

    @intrinsic
    def csr_two_axpys(typingctx, values, indices, first, last, alpha, beta, pairs, node):
        """``s += alpha x`` and ``delta += beta x`` at the row's non-zeros."""
        return types.void(values, indices, _I, _I, _D, _D, pairs, _I), _csr_axpys
