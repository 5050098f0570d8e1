"""Few of many rows that have all pairs of values; without pytest, for programs on ranks."""

import itertools


def cover(facts):
    """Keys of a dict of sets whose sets together hold all elements: few keys, chosen greedily.

    >>> cover({"a": {1, 2}, "b": {2}, "c": {2, 3}})
    ['a', 'c']
    """
    missing, chosen = set().union(*facts.values()), []
    while missing:
        chosen.append(max(facts, key=lambda key: len(facts[key] & missing)))
        missing -= facts[chosen[-1]]
    return chosen


def pairwise(rows):
    """Numbers of few rows that together have every pair of values that any row has."""
    columns = (enumerate(map(repr, row)) for row in rows)
    return cover({k: set(itertools.combinations(each, 2)) for k, each in enumerate(columns)})
