"""Where a run of APCG stands, and a view of its points that computes only what is asked for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.coordinate.vectors import Vector
from adfs.kernels import apcg as kernel

Matrix = NDArray[np.float64]


class LazyPoint:
    """The point ``y_t``: ``y[j]`` costs O(1), ``np.asarray(y)`` gives all coordinates."""

    def __init__(self, state: "State") -> None:
        self._state = state

    def __len__(self) -> int:
        return self._state.size

    def __getitem__(self, j: Any) -> Any:
        state = self._state
        return state.anchor[j] + state.clock[kernel.SCALE] * state.offset[j]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self[:], dtype=dtype)


class State:
    """Two numbers a coordinate, the clock, and for least squares the two images under K."""

    def __init__(self, rule: kernel.Rule, clock: Vector, start: Vector) -> None:
        self.rule, self.clock, self.size = rule, clock, len(start)
        self.pairs: Matrix = np.zeros((1, 2 * len(start)))
        self.anchor, self.offset = self.pairs[0, ::2], self.pairs[0, 1::2]
        self.anchor[:] = start
        self.images: Matrix = np.zeros((1, 0))
        self.y = LazyPoint(self)

    def x(self) -> Vector:
        """``x_t``, all coordinates."""
        return np.asarray(self.anchor + self.clock[kernel.SCALE] * self.offset)

    def v(self) -> Vector:
        """``v_t``, all coordinates."""
        behind = self.rule.lean * self.clock[kernel.SCALE]
        return np.asarray(self.anchor - behind * self.offset)

    def tick(self) -> None:
        """Begin an iteration."""
        kernel.tick(self.rule, self.clock)
        scale = self.clock[kernel.SCALE]
        if scale < kernel.TINY_SCALE:
            kernel.multiply_out(self.pairs, scale)
            kernel.multiply_out(self.images, scale)
            self.clock[kernel.SCALE] = 1.0
