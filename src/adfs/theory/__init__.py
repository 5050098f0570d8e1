"""The numbers of Algorithm 1: what the theorems allow, and the best choice among it."""
