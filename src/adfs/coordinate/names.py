"""Penalties said in words: ``"zero"``, ``("l1", 0.5)``, ``("l2", 0.1)``, ``("box", 0, 1)``."""

from typing import Any, TypeAlias

from adfs.coordinate.penalties import Penalty, ProxPenalty
from adfs.errors import ParameterError

Words: TypeAlias = str | tuple[Any, ...]

NUMBERS = {"zero": (), "l1": ("l1",), "l2": ("l2",), "box": ("low", "high")}
WAYS = "'zero', ('l1', strength), ('l2', strength) or ('box', low, high)"


def penalty_of(psi: Penalty | ProxPenalty | Words | None) -> Penalty | ProxPenalty:
    """The penalty that is meant; numbers are one for all coordinates or one each.

    Examples
    --------
    >>> penalty_of(("box", 0.0, 1.0))
    Penalty(low=0.0, high=1.0)
    """
    if psi is None:
        return Penalty()
    if isinstance(psi, Penalty | ProxPenalty):
        return psi
    name, *given = psi if isinstance(psi, tuple) and psi else (psi,)
    wanted = NUMBERS.get(name) if isinstance(name, str) else None
    if wanted is None or len(given) != len(wanted):
        raise ParameterError(f"psi={psi!r} must be {WAYS}, a Penalty, a ProxPenalty or None.")
    return Penalty(**dict(zip(wanted, given, strict=True)))
