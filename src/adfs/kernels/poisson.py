"""Poisson clocks with random access: any stretch of time can be drawn without what came before.

A clock's time is cut into cells of a power of two units. The number of events in a cell is Poisson
and, given the number, their places are independent and uniform: that is a Poisson process, exactly,
up to rounding a place down to a tick. Cell ``w`` takes its random numbers from its own range of the
clock's counter-based stream, so no generator state is kept and cuts change nothing.
"""

from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.memory import prefetch
from adfs.kernels.sampling import alias_draw, bits, uniform

TICK_BITS = 16
TICKS = 1 << TICK_BITS  # ticks a unit of time: fine enough for ties to be rare
CELL_BITS = 7  # a cell owns 128 random numbers: its count, its places, its samples
MOST = 63  # events in a cell; of mean below 8, more have a probability below 1e-33
FIRST_PLACE, FIRST_SAMPLE = 1, 64
AHEAD = 24  # draws between asking for a table's cell and reading it


class Clocks(NamedTuple):
    """Constants of some clocks, one entry a clock."""

    which: np.ndarray  # its edge, or n_edges + its node
    key: np.ndarray  # of its stream of random numbers
    bits: np.ndarray  # log2 of a cell's length in ticks
    mean: np.ndarray  # events in a cell
    empty: np.ndarray  # probability of no event in a cell, exp(-mean)
    first: np.ndarray  # its node's alias table starts here
    size: np.ndarray  # and has so many cells; 0 for an edge


@njit(cache=True, _nrt=False, nogil=True)
def clock_keys(base, numbers, out):
    """Different keys for different numbers: hashing a counter is one-to-one."""
    for k in range(numbers.size):
        out[k] = bits(base, numbers[k])


@njit(cache=True, _nrt=False, forceinline=True)
def poisson_count(u, mean, empty):
    """The Poisson number at the quantile ``u``, by inversion; ``empty = exp(-mean)``."""
    count = 0
    term = total = empty
    while u >= total and count < MOST:
        count += 1
        term *= mean / count
        total += term
    return count


@njit(cache=True, _nrt=False, nogil=True)
def draw_clocks(clocks, start, stop, ticks, clock, chance):
    """Events of all clocks with ``start <= tick < stop``, clock after clock; return how many.

    Writes when, which clock, and a uniform number for the sample. What does not fit into the arrays
    is counted only.
    """
    used = 0
    if stop <= start:
        return used
    for c in range(clocks.key.size):
        key, size = clocks.key[c], clocks.bits[c]
        width = np.float64(np.int64(1) << size)
        for cell in range(start >> size, ((stop - 1) >> size) + 1):
            counter = cell << CELL_BITS
            count = poisson_count(uniform(key, counter), clocks.mean[c], clocks.empty[c])
            for k in range(count):
                place = uniform(key, counter + FIRST_PLACE + k)
                tick = (cell << size) + np.int64(place * width)
                if start <= tick < stop:
                    if used < ticks.size:
                        ticks[used], clock[used] = tick, c
                        chance[used] = uniform(key, counter + FIRST_SAMPLE + k)
                    used += 1
    return used


@njit(cache=True, _nrt=False, nogil=True)
def draw_samples(clocks, tables, clock, chance, sample):
    """Each event's sample by its node's alias table; -1 at an edge."""
    tables_at = tables.ctypes.data
    for k in range(clock.size):
        if k + AHEAD < clock.size:
            c = clock[k + AHEAD]
            cell = clocks.first[c] + np.int64(chance[k + AHEAD] * clocks.size[c])
            prefetch(np.uintp(tables_at + 8 * cell))
        c = clock[k]
        size = clocks.size[c]
        sample[k] = alias_draw(tables, clocks.first[c], size, chance[k]) if size > 0 else -1


@njit(cache=True, _nrt=False, nogil=True)
def put_in_order(
    start, shift, clocks, ticks, clock, sample, slots, out_ticks, out_which, out_sample
):
    """Sort events by tick, then by ``which``, then as drawn; in linear time.

    ``slots`` holds zeros, one for each stretch of ``2^shift`` ticks from ``start`` on and two more:
    events go to the place of their stretch, in which there is about one, and are sorted there.
    """
    for k in range(ticks.size):
        slots[((ticks[k] - start) >> shift) + 2] += 1
    for slot in range(2, slots.size):
        slots[slot] += slots[slot - 1]
    for k in range(ticks.size):
        slot = ((ticks[k] - start) >> shift) + 1
        place = slots[slot]
        slots[slot] = place + 1
        out_ticks[place], out_sample[place] = ticks[k], sample[k]
        out_which[place] = clocks.which[clock[k]]
    for k in range(1, ticks.size):
        tick, which, drawn = out_ticks[k], out_which[k], out_sample[k]
        j = k
        while j > 0 and (
            tick < out_ticks[j - 1] or (tick == out_ticks[j - 1] and which < out_which[j - 1])
        ):
            out_ticks[j], out_which[j] = out_ticks[j - 1], out_which[j - 1]
            out_sample[j] = out_sample[j - 1]
            j -= 1
        out_ticks[j], out_which[j], out_sample[j] = tick, which, drawn
