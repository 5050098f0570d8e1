"""Plain values as strict JSON, every float to the bit.

JSON writes a finite float by its shortest exact decimal digits (``-0.0`` and denormals included),
so only infinities and NaN need a form of their own: ``{"$float": hex digits of its 8 bytes}``.
"""

import json
import math
import struct
from typing import Any

import numpy as np

TAG = "$float"


def dumps(value: Any) -> bytes:
    """JSON text of None, bool, int, float, str, and lists, tuples and dicts of them.

    A tuple becomes a list, a NumPy scalar the Python number of the same value.

    Examples
    --------
    >>> dumps({"gap": float("inf"), "counts": (1, 2)})
    b'{"gap":{"$float":"7ff0000000000000"},"counts":[1,2]}'
    """
    return json.dumps(_encode(value), allow_nan=False, separators=(",", ":")).encode()


def loads(text: bytes) -> Any:
    """The value of `dumps`; ValueError for anything that it cannot have written."""
    return json.loads(text, parse_constant=_refuse, object_hook=_decode)


def _encode(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {TAG: struct.pack(">d", value).hex()}
    if isinstance(value, list | tuple):
        return [_encode(entry) for entry in value]
    if isinstance(value, dict):
        return {_key(key): _encode(entry) for key, entry in value.items()}
    raise TypeError(
        f"a checkpoint's header holds plain values, not {type(value).__name__}; pass arrays as "
        "arrays, and other objects as their numbers and names."
    )


def _key(key: Any) -> str:
    if not isinstance(key, str) or key == TAG:
        raise TypeError(
            f"the name {key!r} in a checkpoint's header must be text other than {TAG!r}; rename it."
        )
    return key


def _decode(found: dict[str, Any]) -> Any:
    if TAG not in found:
        return found
    if len(found) != 1 or not isinstance(found[TAG], str) or len(found[TAG]) != 16:
        raise ValueError(f"{found!r} is no float")
    return struct.unpack(">d", bytes.fromhex(found[TAG]))[0]


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not strict JSON")
