"""Arguments that make no sense: one line of at most 300 letters and exit code 2, no traceback.

Most are findings of a random test over all flags; the others stand for a kind of value.
"""

import pytest

GOOD = "1 1:1 2:2\n-1 1:2 2:1\n1 1:3 2:4\n-1 1:4 2:3\n"
TRAIN = ("train", "good.txt")
COMPARE = ("compare", "good.txt", "--algorithms", "adfs:exact")
SAMPLE = ("schedule", "sample", "good.txt")

LINES = {
    "a value that is two dashes": (*TRAIN, "--out=--"),
    "columns beyond any index": (*TRAIN, "--n-features", "1" * 400),
    "columns beyond memory": (*COMPARE, "--n-features", str(2**63 - 1)),
    "seeds beyond any list": (*COMPARE, "--seeds", str(2**63)),
    "digits beyond Python's limit": (*TRAIN, "--nodes", "9" * 5000),
    "a sigma that no quotient survives": (*TRAIN, "--sigma", "1e-320"),
    "a sigma too large": (*TRAIN, "--sigma", "1e308"),
    "a C too small": (*TRAIN, "--C", "5e-324"),
    "a C that is no number": (*TRAIN, "--C", "nan"),
    "a share that is almost nothing": (*SAMPLE, "--p-comm", "5e-324"),
    "an infinite tau": (*TRAIN, "--tau", "1e400"),
    "NUL in a path": (*TRAIN, "--out", "a\0b"),
    "NUL in DATA": ("train", "a\0b"),
    "a NUL that predicts": ("predict", "a\0b", "good.txt"),
    "a loop of folders": (*TRAIN, "--out", "loop/m.npz"),
    "a device": (*TRAIN, "--trace", "/dev/null"),
    "a folder": (*TRAIN, "--report", "folder"),
    "nothing": (*TRAIN, "--out", ""),
    "a space": (*TRAIN, "--tol", " "),
    "lines": (*TRAIN, "--graph", "a\nb"),
    "a very long choice": (*TRAIN, "--loss", "x" * 100_000),
    "a very long number": (*TRAIN, "--tol", "x" * 100_000),
    "a very long flag": (*TRAIN, "--" + "x" * 100_000),
    "a very long command": ("x" * 100_000,),
}


@pytest.mark.parametrize("case", LINES)
def test_nonsense_is_refused_in_one_line(adfs, home, case):
    (home / "good.txt").write_text(GOOD)
    (home / "folder").mkdir()
    (home / "loop").symlink_to("loop")
    outcome = adfs(*LINES[case])
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("adfs: ")
    assert outcome.err.endswith(".\n")
    assert outcome.err.count("\n") == 1
    assert len(outcome.err) <= 301
