"""`make demo` runs a program of the gallery."""

import subprocess
import sys

import adfs
from support.limits import HANG
from support.pages import ROOT


def test_the_demo_converges_and_writes_a_model_a_trace_and_a_picture(tmp_path):
    program = ROOT / "examples" / "demo.py"
    done = subprocess.run(
        [sys.executable, program, tmp_path],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    )
    assert "converged" in done.stdout
    assert "accuracy on the training data 98" in done.stdout
    model = adfs.Model.load(tmp_path / "model.npz")
    assert model.meta["duality_gap"] <= 1e-8 * model.meta["objective"]
    assert (tmp_path / "trace.csv").read_text().startswith("iteration,")
    assert (tmp_path / "convergence.png").read_bytes()[:4] == b"\x89PNG"
