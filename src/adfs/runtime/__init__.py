"""Turning an algorithm: the one loop, when it stops, what it records, how it is interrupted."""
