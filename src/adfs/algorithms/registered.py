"""Importing this module registers every algorithm."""

from adfs.algorithms import (
    adfs,
    dsba,
    esdacd,
    katyusha,
    l_katyusha,
    lbfgs,
    msda,
    newton,
    ns_adfs,
    point_saga,
)

__all__ = [
    "adfs",
    "dsba",
    "esdacd",
    "katyusha",
    "l_katyusha",
    "lbfgs",
    "msda",
    "newton",
    "ns_adfs",
    "point_saga",
]
