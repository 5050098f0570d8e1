"""Real execution: nodes on the ranks of an MPI job, and what happens when one of them fails."""
