"""Samples on their way to a problem: read, generated, cut into shards, summed."""
