"""
A comparison
============

Several methods on one problem, against the same certified optimum and under the same time model.
Bands are quartiles over three seeds.
"""

import adfs

X, y = adfs.generators.higgs_like(900)
grid = adfs.Topology.grid(3, 3)
problem = adfs.Problem(adfs.partition(X, y, 9), sigma=1.0, topology=grid)
names = ["adfs", "msda", "dsba", "katyusha", "newton"]
comparison = adfs.compare(problem, names, tol=1e-6, tau=5.0, seeds=3)
comparison.plot()

# %%
# The table has the median time until each accuracy is reached, in units of one proximal step.

print(comparison)
