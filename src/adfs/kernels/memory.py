"""Memory as the processor likes it: whole cache lines, asked for before they are needed."""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

CACHE_LINE = 64


def aligned_zeros(n_rows: int, n_columns: int) -> np.ndarray:
    """Zeros whose first element starts a cache line, so that a row of eight never straddles two."""
    buffer = np.zeros(n_rows * n_columns + CACHE_LINE // 8)
    start = (-buffer.ctypes.data // 8) % (CACHE_LINE // 8)
    return buffer[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


if config.DISABLE_JIT:

    def prefetch(address):
        """Nothing to do without a compiler."""

else:

    @intrinsic
    def prefetch(typingctx, address):
        """Ask for the cache line at ``address`` (an integer); never faults, changes no value."""

        def codegen(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
            i32 = ir.IntType(32)
            name = "llvm.prefetch.p0"
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            # For writing (1), high locality (3), data cache (1).
            builder.call(function, [pointer, i32(1), i32(3), i32(1)])
            return context.get_dummy_value()

        return types.void(types.uintp), codegen
