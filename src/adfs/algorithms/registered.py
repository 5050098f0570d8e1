"""Importing this module registers every algorithm."""

from adfs.algorithms import (  # noqa: F401
    adfs,
    dsba,
    esdacd,
    katyusha,
    lbfgs,
    msda,
    newton,
    ns_adfs,
    point_saga,
    tron,
)
