"""Every random number comes from one seed and the name of a stream; nothing is global."""

import zlib

import numpy as np
from numpy.typing import NDArray

from adfs.checks import whole

MASK, POOL = 0xFFFFFFFF, 4  # of NumPy's SeedSequence: 32-bit words, of which its pool has four


def stream_sequence(seed: int, stream: str) -> np.random.SeedSequence:
    """Seed of the stream called ``stream``; different names give independent streams."""
    whole_seed = whole("seed", seed, hint="pass for example seed=0")
    return np.random.SeedSequence([whole_seed, zlib.crc32(stream.encode())])


def generator(seed: int, stream: str) -> np.random.Generator:
    """NumPy generator of one stream, for work outside the hot loops."""
    return np.random.Generator(np.random.PCG64(stream_sequence(seed, stream)))


def stream_key(seed: int, stream: str) -> np.uint64:
    """Key of a counter-based stream: its draw number ``t`` is ``hash(key, t)``, in any order."""
    return np.uint64(stream_sequence(seed, stream).generate_state(1, np.uint64)[0])


def stream_keys(seed: int, stream: str, which: "int | NDArray[np.int64]") -> NDArray[np.uint64]:
    """Keys of so many nodes or edges, or of the ones listed, each from its own number alone.

    Number ``i`` has the `stream_key` of the stream ``stream/i``, for all of them at once.
    """
    numbers = range(which) if isinstance(which, int) else which.tolist()
    prefix = f"{stream}/"
    names = [zlib.crc32(f"{prefix}{number}".encode()) for number in numbers]
    whole_seed = whole("seed", seed, hint="pass for example seed=0")
    words = [whole_seed >> shift & MASK for shift in range(0, max(1, whole_seed.bit_length()), 32)]
    entropy = [np.full(len(names), word, np.uint32) for word in words]
    return _seed_states([*entropy, np.array(names, np.uint32)])


def _seed_states(entropy: list[NDArray[np.uint32]]) -> NDArray[np.uint64]:
    """What ``np.random.SeedSequence(entropy).generate_state(1, np.uint64)`` gives, entry by entry.

    The algorithm of O'Neill's ``seed_seq_fe128``, as NumPy documents and keeps it.
    """
    constant = 0x43B0D7E5

    def hashed(value: NDArray[np.uint32]) -> NDArray[np.uint32]:
        nonlocal constant
        value = value ^ np.uint32(constant)
        constant = constant * 0x931E8875 & MASK
        value = value * np.uint32(constant)
        return value ^ value >> np.uint32(16)

    def mixed(x: NDArray[np.uint32], y: NDArray[np.uint32]) -> NDArray[np.uint32]:
        value: NDArray[np.uint32] = np.uint32(0xCA01F9DD) * x - np.uint32(0x4973F715) * y
        return value ^ value >> np.uint32(16)

    missing = [np.zeros_like(entropy[0])] * (POOL - len(entropy))
    pool = [hashed(word) for word in (entropy + missing)[:POOL]]
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for word in entropy[POOL:]:
        pool = [mixed(each, hashed(word)) for each in pool]
    words, constant = [], 0x8B51F9DD
    for each in pool[:2]:
        word = each ^ np.uint32(constant)
        constant = constant * 0x58F38DED & MASK
        word = word * np.uint32(constant)
        words.append((word ^ word >> np.uint32(16)).astype(np.uint64))
    return words[0] | words[1] << np.uint64(32)
