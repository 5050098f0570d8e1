"""What each rank did when, as a picture or for chrome://tracing."""
from typing import Any


def save_ranks(ranks: Any, path: str) -> None:
    raise NotImplementedError
