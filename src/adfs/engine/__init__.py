"""One loop for one process and for ranks: limits, evaluations, trace, progress, checkpoints."""
