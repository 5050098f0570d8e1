"""Helpers of the tests: problems, runs, oracles of files, processes."""
