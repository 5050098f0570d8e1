"""Importing this module registers every algorithm."""

from adfs.algorithms import adfs

__all__ = ["adfs"]
