"""Makes a failing case smaller while it fails for the same cause."""

import time
from dataclasses import replace


def shrunk(case, fails, seconds):
    """The case with whatever it can do without removed; ``fails`` runs a case."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        smaller = next((each for each in _smaller(case)
                        if time.monotonic() < end and fails(each)), None)  # fmt: skip
        if smaller is None:
            break
        case = smaller
    return case


def _smaller(case):
    """Cases with one thing less, large things first."""
    for part in ("files", "arguments", "call"):
        for value in _less(getattr(case, part)):
            yield replace(case, **{part: value})


def _less(value):
    """The same kind of value with less in it."""
    if isinstance(value, dict):
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
        for name, inner in value.items():
            yield from ({**value, name: each} for each in _less(inner))
    elif isinstance(value, list | str):
        yield from _shorter(value)
        if isinstance(value, list):
            for place, inner in enumerate(value):
                yield from ([*value[:place], each, *value[place + 1 :]] for each in _less(inner))
    elif isinstance(value, float) and value not in (0.0, 1.0):
        yield from (0.0, 1.0, *({round(value, 2)} - {value}))


def _shorter(value):
    """A list or text without one of its parts: halves, then quarters, down to single entries."""
    size = len(value) // 2 or 1
    while value and size:
        yield from (value[:k] + value[k + size :] for k in range(0, len(value), size))
        size //= 2
