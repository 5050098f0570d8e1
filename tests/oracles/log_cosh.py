"""The loss log cosh(s - b), which the package does not have, in 50 digits.

Its conjugate is ``b c + ((1 + c) log(1 + c) + (1 - c) log(1 - c)) / 2`` on [-1, 1]. The proximal
steps minimise objectives that hold values only through their derivatives in ``c`` or ``s``, by
bisection; nothing is shared with the package.
"""

from decimal import Decimal, localcontext

DIGITS = 50


def _bisect(slope, low, high):
    """Where an increasing function of a Decimal crosses zero."""
    for _ in range(170):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return (low + high) / 2


def value(s, b):
    """The loss, without loss of digits far out."""
    with localcontext() as context:
        context.prec = DIGITS
        r = abs(Decimal(s) - Decimal(b))
        return float(r + ((1 + (-2 * r).exp()) / 2).ln())


def conjugate(c, b):
    """Its conjugate inside (-1, 1)."""
    with localcontext() as context:
        context.prec = DIGITS
        c, b = Decimal(c), Decimal(b)
        return float(b * c + ((1 + c) * (1 + c).ln() + (1 - c) * (1 - c).ln()) / 2)


def prox_tilde_star(b, w, q, eta, z):
    """The ``c`` of least ``q (c - z)^2 / (2 eta) + w l*(c / w) - q c^2 / (2 w q)``."""
    with localcontext() as context:
        context.prec = DIGITS
        b, w, q, eta, z = map(Decimal, (b, w, q, eta, z))

        def slope(c):
            inverse = ((1 + c / w) / (1 - c / w)).ln() / 2  # of tanh
            return q * (c - z) / eta + b + inverse - c / w

        tiny = Decimal(10) ** -45
        return float(_bisect(slope, -w * (1 - tiny), w * (1 - tiny)))


def prox(b, k, target):
    """``l'(s)`` at the ``s`` of least ``(s - target)^2 / 2 + k l(s)``."""
    with localcontext() as context:
        context.prec = DIGITS
        b, k, target = map(Decimal, (b, k, target))

        def tanh(x):
            e = (-2 * abs(x)).exp()
            return (1 - e) / (1 + e) * (1 if x >= 0 else -1)

        s = _bisect(lambda s: s - target + k * tanh(s - b), target - k, target + k)
        return float(tanh(s - b))
