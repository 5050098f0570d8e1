"""
A graph
=======

Nodes exchange vectors along the edges of a graph. The eigengap says how fast information spreads:
the larger it is, the fewer exchanges are needed.
"""

import matplotlib.pyplot as plt

import adfs

graphs = [adfs.Topology.grid(4, 4), adfs.Topology.ring(16), adfs.Topology.hypercube(4)]
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for graph, ax in zip(graphs, axes, strict=True):
    graph.plot(ax)

# %%
# A ring of 16 nodes has a small eigengap and a large diameter. A hypercube has the opposite, at the
# price of twice as many edges.

for graph in graphs:
    print(f"{graph.name:12} diameter {graph.diameter}, eigengap {graph.spectrum.gamma:.3f}")
