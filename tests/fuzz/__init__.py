"""Seeded fuzzing of every reader, of the command line, and of what is called converged.

``make fuzz SECONDS=60``, or ``PYTHONPATH=tests python -m fuzz --seconds 60 --seed 1``. A case is an
input made by a target (`fuzz.targets`) from the seed and its number alone, so a case is the same on
every machine; only how many are reached differs. It runs in a forked child with limits on memory
and time (`fuzz.sandbox`), and is held to a contract (`fuzz.contract`). A failure is shrunk and
written to ``fuzz-out/`` as a JSON file, which ``python -m fuzz FILE`` runs again. What was ever
found stays as a small file in ``corpus/``, which ``make test`` runs.

Inputs are made by hand-written generators and mutators that draw from NumPy. Atheris, which is
guided by coverage, was considered: its inputs depend on all inputs before them, so a seed and a
number would not name a case; it ends at the first crash; it does not see into compiled kernels,
zlib and NumPy, where most of the risk is; and it is 35 MB. Hypothesis shrinks well but counts
examples, not seconds, and cannot go on after a child was killed for its memory.
"""
