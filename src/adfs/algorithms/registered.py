"""Importing this module registers every algorithm, those of installed plug-ins too."""

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
from adfs.installed import load_installed

load_installed("adfs.algorithms")
