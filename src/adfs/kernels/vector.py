"""Two dots and two axpys on a dense row, in vector instructions with a fixed order of sums.

The compiler may not reorder floating-point sums, so it leaves a plain dot product scalar; and
letting it reorder would tie the bits to where a call happens to be inlined. Here the order is
written down: eight partial sums over chunks of eight, four over a chunk of four, then the rest one
by one, joined by a fixed tree. Without a compiler the same order is followed in NumPy.
"""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

DOUBLE = ir.DoubleType()
INT = ir.IntType(64)


class _Loader:
    """Vectors of consecutive numbers from one row of a C-contiguous matrix, widened to double."""

    def __init__(self, context, builder, array_type, value, row):
        array = context.make_array(array_type)(context, builder, value)
        self.builder = builder
        self.kind = DOUBLE if array_type.dtype == types.float64 else ir.FloatType()
        self.width = 8 if array_type.dtype == types.float64 else 4
        (_, self.length) = cgutils.unpack_tuple(builder, array.shape, 2)
        start = builder.mul(row, builder.mul(self.length, INT(self.width)))
        self.base = builder.add(builder.ptrtoint(array.data, INT), start)

    def _pointer(self, position, lanes):
        address = self.builder.add(self.base, self.builder.mul(position, INT(self.width)))
        kind = self.kind if lanes == 1 else ir.VectorType(self.kind, lanes)
        return self.builder.inttoptr(address, kind.as_pointer()), kind

    def load(self, position, lanes):
        """``lanes`` numbers from ``position`` on."""
        pointer, kind = self._pointer(position, lanes)
        value = self.builder.load(pointer, align=self.width, typ=kind)
        wide = DOUBLE if lanes == 1 else ir.VectorType(DOUBLE, lanes)
        return value if self.kind == DOUBLE else self.builder.fpext(value, wide)

    def store(self, position, lanes, value):
        """Write ``lanes`` numbers (matrices of doubles only)."""
        pointer, _ = self._pointer(position, lanes)
        self.builder.store(value, pointer, align=self.width)


def _chunks(builder, length, body):
    """Call ``body(position, lanes)`` over chunks of eight, at most one of four, then singles."""
    eights = builder.and_(length, INT(-8))
    with cgutils.for_range_slice(builder, INT(0), eights, INT(8), intp=INT) as (position, _):
        body(position, 8)
    has_four = builder.icmp_unsigned("!=", builder.and_(length, INT(4)), INT(0))
    with builder.if_then(has_four):
        body(eights, 4)
    fours = builder.and_(length, INT(-4))
    with cgutils.for_range_slice(builder, fours, length, INT(1), intp=INT) as (position, _):
        body(position, 1)


def _upper(builder, vector, lanes):
    half = ir.Constant(ir.VectorType(ir.IntType(32), lanes // 2), list(range(lanes // 2, lanes)))
    return builder.shuffle_vector(vector, vector, half)


def _lower(builder, vector, lanes):
    half = ir.Constant(ir.VectorType(ir.IntType(32), lanes // 2), list(range(lanes // 2)))
    return builder.shuffle_vector(vector, vector, half)


class _Sum:
    """Partial sums in eight, four and one lanes, kept in registers."""

    def __init__(self, builder):
        self.builder = builder
        self.cells = {}
        for lanes in (8, 4, 1):
            kind = DOUBLE if lanes == 1 else ir.VectorType(DOUBLE, lanes)
            self.cells[lanes] = cgutils.alloca_once_value(builder, ir.Constant(kind, None))
            builder.store(ir.Constant(kind, None), self.cells[lanes])

    def add(self, lanes, value):
        """Add a product to the partial sums of its width."""
        cell = self.cells[lanes]
        self.builder.store(self.builder.fadd(self.builder.load(cell), value), cell)

    def total(self):
        """Eight to four, plus the four, to two, to one, plus the rest."""
        builder = self.builder
        value = builder.load(self.cells[8])
        value = builder.fadd(_lower(builder, value, 8), _upper(builder, value, 8))
        value = builder.fadd(value, builder.load(self.cells[4]))
        value = builder.fadd(_lower(builder, value, 4), _upper(builder, value, 4))
        ends = [builder.extract_element(value, ir.IntType(32)(k)) for k in (0, 1)]
        return builder.fadd(builder.fadd(*ends), builder.load(self.cells[1]))


def _broadcast(builder, value, lanes):
    if lanes == 1:
        return value
    kind = ir.VectorType(DOUBLE, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
    return builder.shuffle_vector(one, one, zeros)


if config.DISABLE_JIT:

    def dense_two_dots(values, row, a, b, node):
        """``(x . a[node], x . b[node])``, summed in the order of the compiled version."""
        x = values[row].astype(np.float64)
        return _ordered_sum(x * a[node]), _ordered_sum(x * b[node])

    def dense_two_axpys(values, row, alpha, a, beta, b, node):
        """``a[node] += alpha x`` and ``b[node] += beta x``."""
        x = values[row].astype(np.float64)
        a[node] += alpha * x
        b[node] += beta * x

    def _ordered_sum(products):
        eights, fours = len(products) // 8 * 8, len(products) // 4 * 4
        lanes = products[:eights].reshape(-1, 8).sum(axis=0)
        four = lanes[:4] + lanes[4:]
        if fours > eights:
            four = four + products[eights:fours]
        two = four[:2] + four[2:]
        return two[0] + two[1] + products[fours:].sum()

else:

    @intrinsic
    def dense_two_dots(typingctx, values, row, a, b, node):
        """``(x . a[node], x . b[node])`` for row ``x`` of a float32 or float64 matrix."""

        def codegen(context, builder, signature, args):
            kinds = signature.args
            x = _Loader(context, builder, kinds[0], args[0], args[1])
            left = _Loader(context, builder, kinds[2], args[2], args[4])
            right = _Loader(context, builder, kinds[3], args[3], args[4])
            sums = _Sum(builder), _Sum(builder)

            def body(position, lanes):
                chunk = x.load(position, lanes)
                for total, side in zip(sums, (left, right), strict=True):
                    total.add(lanes, builder.fmul(chunk, side.load(position, lanes)))

            _chunks(builder, x.length, body)
            totals = [total.total() for total in sums]
            return context.make_tuple(builder, signature.return_type, totals)

        result = types.UniTuple(types.float64, 2)
        return result(values, types.int64, a, b, types.int64), codegen

    @intrinsic
    def dense_two_axpys(typingctx, values, row, alpha, a, beta, b, node):
        """``a[node] += alpha x`` and ``b[node] += beta x`` for row ``x``."""

        def codegen(context, builder, signature, args):
            kinds = signature.args
            x = _Loader(context, builder, kinds[0], args[0], args[1])
            left = _Loader(context, builder, kinds[3], args[3], args[6])
            right = _Loader(context, builder, kinds[5], args[5], args[6])

            def body(position, lanes):
                chunk = x.load(position, lanes)
                for factor, side in ((args[2], left), (args[4], right)):
                    push = builder.fmul(_broadcast(builder, factor, lanes), chunk)
                    value = builder.fadd(side.load(position, lanes), push)
                    side.store(position, lanes, value)

            _chunks(builder, x.length, body)
            return context.get_dummy_value()

        double = types.float64
        return types.void(values, types.int64, double, a, double, b, types.int64), codegen
