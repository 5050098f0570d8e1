"""Graphs as text: ``family:sizes,option=value``, as typed after ``--graph``."""

from collections.abc import Callable
from math import isqrt, prod
from typing import NamedTuple, NoReturn

from adfs.errors import GraphError
from adfs.graphs.edges import whole


class Family(NamedTuple):
    """How one family is written: an example, and what its sizes and options are."""

    example: str
    n_sizes: int
    options: dict[str, Callable[[str], float]]
    required: str = ""


FAMILIES = {
    "single": Family("single", 0, {}),
    "grid": Family("grid:10x10", 2, {}),
    "torus": Family("torus:10x10", 2, {}),
    "ring": Family("ring:8", 1, {}),
    "path": Family("path:8", 1, {}),
    "star": Family("star:8", 1, {}),
    "complete": Family("complete:8", 1, {}),
    "hypercube": Family("hypercube:3", 1, {}),
    "random_regular": Family("random_regular:100,k=4,seed=0", 1, {"k": int, "seed": int}, "k"),
    "erdos_renyi": Family("erdos_renyi:100,p=0.1,seed=0", 1, {"p": float, "seed": int}, "p"),
}


def read(text: str, n_nodes: int | None = None) -> tuple[str, tuple[int, ...], dict[str, float]]:
    """A constructor of `Topology`, its sizes and options; missing sizes come from ``n_nodes``.

    Examples
    --------
    >>> read("grid:3x4")
    ('grid', (3, 4), {})
    >>> read("erdos_renyi:p=0.5", n_nodes=6)
    ('erdos_renyi', (6,), {'p': 0.5})
    """
    family, _, rest = text.strip().partition(":")
    if family not in FAMILIES:
        raise GraphError(f"Graph {text!r} is not known; write one of {', '.join(FAMILIES)}.")
    rule = FAMILIES[family]
    fields = [field.strip() for field in rest.split(",")] if rest else []
    sizes = _sizes(text, rule, fields.pop(0)) if fields and "=" not in fields[0] else ()
    options = _options(text, rule, fields)
    if n_nodes is not None:
        n_nodes = whole("n_nodes", n_nodes, 1)
        sizes = sizes or _sizes_from_number(text, family, n_nodes)
        number = 1 << min(sizes[0], 128) if family == "hypercube" else prod(sizes)
        if number != n_nodes:
            raise GraphError(
                f"Graph {text!r} has {number} nodes, but {n_nodes} were asked for; "
                "change one of the two numbers or leave the size out of the graph."
            )
    elif len(sizes) != rule.n_sizes:
        raise GraphError(
            f"Graph {text!r} does not say its size; write for example {rule.example!r} "
            "or give the number of nodes."
        )
    return family, sizes, options


def require_regular(n: int, k: int) -> None:
    """Refuse a degree that no graph of ``n`` nodes has at every node."""
    if k >= n or n * k % 2:
        raise GraphError(
            f"In a regular graph the degree is less than n and n * degree is even, but n={n} "
            f"and k={k}; change k or n by one."
        )


def _refuse(text: str, rule: Family, why: str) -> NoReturn:
    raise GraphError(f"Graph {text!r} cannot be read: {why}. Write for example {rule.example!r}.")


def _sizes(text: str, rule: Family, field: str) -> tuple[int, ...]:
    words = field.split("x")
    if len(words) != rule.n_sizes or not all(word.isdecimal() for word in words):
        wanted = ("no size", "one whole number", "two whole numbers joined by 'x'")[rule.n_sizes]
        _refuse(text, rule, f"it takes {wanted}, not {field!r}")
    return tuple(int(word) for word in words)


def _options(text: str, rule: Family, fields: list[str]) -> dict[str, float]:
    options: dict[str, float] = {}
    for field in fields:
        name, _, value = (part.strip() for part in field.partition("="))
        if name not in rule.options or name in options:
            allowed = ", ".join(rule.options) or "none"
            _refuse(text, rule, f"{field!r} is not one of its options ({allowed}), each once")
        try:
            options[name] = rule.options[name](value)
        except ValueError:
            _refuse(text, rule, f"{value!r} is not a value of {name}")
    if rule.required and rule.required not in options:
        _refuse(text, rule, f"it needs {rule.required}=")
    return options


def _sizes_from_number(text: str, family: str, n_nodes: int) -> tuple[int, ...]:
    if family == "single":
        return ()
    if family in ("grid", "torus"):
        # As square as possible.
        a = next(a for a in range(isqrt(n_nodes), 0, -1) if n_nodes % a == 0)
        return a, n_nodes // a
    if family != "hypercube":
        return (n_nodes,)
    if n_nodes & (n_nodes - 1):
        raise GraphError(
            f"A hypercube has a power of two of nodes, but graph {text!r} was asked for "
            f"{n_nodes}; take {2 ** (n_nodes.bit_length() - 1)} or {2 ** n_nodes.bit_length()}."
        )
    return (n_nodes.bit_length() - 1,)
