"""
From data to a model file
=========================

`make demo` runs this program: scikit-learn's breast cancer data on a 3x3 grid of nodes, trained to
a proven relative accuracy of 1e-8. The model, the trace of the run and a picture go to a folder.
"""

import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer

import adfs

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-out")
folder.mkdir(parents=True, exist_ok=True)

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
grid = adfs.Topology.grid(3, 3)
problem = adfs.Problem(adfs.partition(X, y, 9), sigma=1.0 / 9, topology=grid)
problem.optimum()  # so that the trace has the distance to the optimum
result = adfs.solve(problem, "adfs", tol=1e-8, tau=5.0, evaluate_every=2_000)

# %%
# The model is a file that `adfs predict` reads too.

model = adfs.Model.from_result(result, problem, command="make demo")
model.save(folder / "model.npz")
result.trace.to_csv(folder / "trace.csv")
accuracy = (adfs.Model.load(folder / "model.npz").predict(X) == y).mean()
print(result)
print(f"accuracy on the training data {accuracy:.1%}")
gain = result.parameters.gain
print(f"predicted to be {gain:.2f} times as fast as the better of paper and exact")

# %%
# The gap is a proven bound on the distance to the optimum. The dashed line is Theorem 1's rate.

axes = result.plot(tol=1e-8)
axes.figure.savefig(folder / "convergence.png", dpi=150, bbox_inches="tight")
print(f"wrote model.npz, trace.csv and convergence.png to {folder}")
