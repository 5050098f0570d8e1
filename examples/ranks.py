"""
MPI ranks
=========

The same run on the MPI ranks of several machines, here two processes on one machine. The model has
the same bits as in one process, and the picture shows what each rank did.
"""

import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import adfs

mpiexec = Path(sys.executable).with_name("mpiexec")
train = [sys.executable, "-m", "adfs", "train", "breast-cancer", "--nodes", "4", "--quiet"]
ranks = ["--engine", "mpi", "--out", "ranks.npz", "--timeline", "ranks.png"]
subprocess.run([str(mpiexec), "-n", "2", *train, *ranks], check=True)
subprocess.run([*train, "--out", "one.npz"], check=True)

ax = plt.subplots(figsize=(9, 4), layout="constrained")[1]
ax.imshow(plt.imread("ranks.png"))
ax.axis("off")

# %%
# Both models are files that `adfs.Model` reads.

first, second = adfs.Model.load("ranks.npz"), adfs.Model.load("one.npz")
print(first)
print("same bits:", (first.coef == second.coef).all())
largest = sorted(first.coefficients().items(), key=lambda pair: -abs(pair[1]))[:5]
for name, value in largest:
    print(f"{name:10} {value:+.3f}")

# %%
# These files are not needed any more.

for name in ("ranks.npz", "one.npz", "ranks.png"):
    Path(name).unlink()
