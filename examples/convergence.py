"""
Convergence
===========

A run stops when the duality gap, a proven bound on the error, is below the tolerance. The dashed
line is the rate that Theorem 1 promises for ``adfs``, the algorithm of the paper.
"""

import adfs

X, y = adfs.generators.higgs_like(900)
grid = adfs.Topology.grid(3, 3)
problem = adfs.Problem(adfs.partition(X, y, 9), sigma=1.0, topology=grid)
result = adfs.solve(problem, "adfs", tol=1e-8, tau=5.0, evaluate_every="curve")
result.plot(tol=1e-8)

# %%
# The result holds the model, the certificate, the chosen parameters and the trace.

print(result)
print(result.parameters)
