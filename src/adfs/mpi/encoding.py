"""Values as bytes and back: JSON, and raw bits for arrays; nothing is pickled."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARRAY = "__array__"
LENGTH = 8  # bytes that hold the length of the JSON text


def pack(item: Any) -> NDArray[np.uint8]:
    """Bytes of a value: a length, a JSON text, and the arrays that the text refers to.

    Examples
    --------
    >>> unpack(pack({"node": 3, "theta": np.arange(2.0)}))
    {'node': 3, 'theta': array([0., 1.])}
    """
    arrays: list[bytes] = []

    def place(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray) or value.dtype.hasobject:
            raise TypeError(f"{type(value).__name__} is neither JSON nor an array of numbers")
        arrays.append(value.tobytes())
        return {ARRAY: [value.dtype.str, list(value.shape)]}

    text = json.dumps(item, default=place).encode()
    whole = b"".join([len(text).to_bytes(LENGTH, "little"), text, *arrays])
    return np.frombuffer(whole, np.uint8)


def unpack(packed: NDArray[np.uint8]) -> Any:
    """The value in its bytes; arrays are new and may be written, tuples have become lists."""
    whole = packed.tobytes()
    at = LENGTH + int.from_bytes(whole[:LENGTH], "little")
    text = whole[LENGTH:at]

    def fetch(value: dict[str, Any]) -> Any:
        nonlocal at
        if ARRAY not in value:
            return value
        kind, shape = value[ARRAY]
        array = np.empty(shape, kind)
        array.ravel().view(np.uint8)[:] = packed[at : at + array.nbytes]
        at += array.nbytes
        return array

    return json.loads(text, object_hook=fetch)
