"""Arithmetic in Numba: arrays and scalars only; nothing here imports another package."""
