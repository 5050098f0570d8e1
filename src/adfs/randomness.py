"""Every random number comes from one seed and the name of a stream; nothing is global."""

import zlib

import numpy as np
from numpy.typing import NDArray

from adfs.checks import whole


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
    """Keys of so many nodes or edges, or of the ones listed, each from its own number alone."""
    numbers = range(which) if isinstance(which, int) else which.tolist()
    return np.array([stream_key(seed, f"{stream}/{number}") for number in numbers], dtype=np.uint64)
