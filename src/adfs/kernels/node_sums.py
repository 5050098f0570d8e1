"""Sums over all nodes, and neighbours' rows, inside compiled code, wherever the nodes are.

A process has the rows of its own nodes. A sum over all nodes is added along a fixed binary tree
over node numbers: the node with number ``i`` is a leaf, and a block of ``2^k`` leaves is the sum of
its two halves. So its bits do not depend on how nodes are spread over processes. Rows are added
while they are made, on a stack: node after node pushes its row, and two blocks that are siblings
become one.

Where nodes are in other processes, ``Links.call`` is the address of a function of `adfs.network`
that moves the numbers; where all nodes are here it is 0, and nothing is called.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from adfs.kernels.compiled import njit

SUM, NEIGHBOURS = 0, 1  # what the function at ``Links.call`` is asked for


class Links(NamedTuple):
    """Links of the nodes here; rows are of these nodes, then of their neighbours elsewhere."""

    call: int  # address of the function that moves numbers between processes; 0 for none
    merges: np.ndarray  # (own,), additions on the stack after each node's row
    edges: np.ndarray  # (e, 2), edges with an end here, in the order of the graph's edges
    starts: np.ndarray  # (own + 1,)
    neighbours: np.ndarray  # of own node i: neighbours[starts[i]:starts[i + 1]]


@intrinsic
def call_address(typing_context, address, kind, data, n_rows, n_columns):
    """Call the C function at an address: ``int32 (int64, uintp, int64, int64)``."""
    signature = types.int32(types.uintp, types.int64, types.uintp, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        function = ir.FunctionType(ir.IntType(32), [word, word, word, word])
        pointer = builder.inttoptr(arguments[0], function.as_pointer())
        return builder.call(pointer, arguments[1:])

    return signature, generate


@njit(cache=True, _nrt=False, nogil=True)
def ask(links, kind, rows, n_rows):
    """Let the network work on the first ``n_rows`` of ``rows``, in place."""
    if links.call != 0:
        call_address(
            np.uintp(links.call), np.int64(kind), np.uintp(rows.ctypes.data), np.int64(n_rows),
            np.int64(rows.shape[1]),
        )  # fmt: skip


@njit(cache=True, _nrt=False, forceinline=True)
def open_row(stack, depth):
    """Make the next row of the stack zero."""
    for k in range(stack.shape[1]):
        stack[depth, k] = 0.0


@njit(cache=True, _nrt=False, forceinline=True)
def close_row(stack, depth, merges):
    """Add what is complete, once a node's row is on top of the stack; the new depth."""
    depth += 1
    for _ in range(merges):
        depth -= 1
        for k in range(stack.shape[1]):
            stack[depth - 1, k] += stack[depth, k]
    return depth


@njit(cache=True, _nrt=False, nogil=True)
def push_rows(stack, depth, rows, merges):
    """Put rows on the stack one after another, and add what is complete; the new depth."""
    for row in range(rows.shape[0]):
        for k in range(stack.shape[1]):
            stack[depth, k] = rows[row, k]
        depth = close_row(stack, depth, merges[row])
    return depth


@njit(cache=True, _nrt=False, nogil=True)
def pair_up(n_nodes, merges, blocks):
    """Additions after each block of ``blocks``; those that remain replace the first ones.

    A left block is full, so its size is a power of two.
    """
    depth = 0
    for k in range(merges.size):
        first, last = blocks[k]
        while depth > 0:
            left, middle = blocks[depth - 1]
            size = middle - left
            right = first == middle and last == min(middle + size, n_nodes)
            if left % (2 * size) != 0 or not right:
                break
            first = left
            depth -= 1
            merges[k] += 1
        blocks[depth] = first, last
        depth += 1
    return depth


@njit(cache=True, _nrt=False, forceinline=True)
def finish_sum(links, stack, depth):
    """The sum over all nodes, in the first row of the stack."""
    ask(links, SUM, stack, depth)


@njit(cache=True, _nrt=False, forceinline=True)
def fetch_neighbours(links, rows):
    """Copy the rows of neighbours that are elsewhere behind the rows of this process's nodes."""
    ask(links, NEIGHBOURS, rows, rows.shape[0])
