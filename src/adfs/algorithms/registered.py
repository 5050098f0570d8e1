"""Importing this module registers every algorithm."""

from adfs.algorithms import adfs, dsba, esdacd, katyusha, lbfgs, msda, newton, ns_adfs, point_saga  # noqa: F401
