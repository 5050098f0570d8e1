"""Kinds of values that arguments have, besides plain text and numbers."""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Whole:
    """A whole number not below ``least``."""

    least: int

    def __call__(self, text: str) -> int:
        """The number that a text holds."""
        try:
            value = int(text)
        except ValueError:
            value = self.least - 1
        if value < self.least:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number >= {self.least}")
        return value


def numbers(text: str) -> float | list[float]:
    """A number, or several with commas between them."""
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a number, or several such as 1,1,10"
        ) from None
    return values if "," in text else values[0]


def names(text: str) -> list[str]:
    """Names with commas between them."""
    return [word.strip() for word in text.split(",")]
