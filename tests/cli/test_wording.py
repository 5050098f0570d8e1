"""On the command line errors name flags; in Python the same errors name arguments."""

import numpy as np
import pytest

import adfs as package
from adfs.cli.commands import as_flags, parse

GOOD = "1 1:1 2:2\n-1 1:2 2:1\n1 1:3 2:4\n-1 1:4 2:3\n"

ERRORS = {
    "train --tol 0": "--tol 0 must be a finite number > 0",
    "train --time-limit -1": "--time-limit -1 must be",
    "train --tau nan": "--tau nan must be >= 0",
    "train --nodes 5": "--nodes 5 must not exceed 4",
    "train --partition draw": "--partition draw needs --m, the number of rows",
    "train --m 3": "--m 3 is for --partition draw only",
    "train --partition draw --m 9": "--m 9 must be a whole number from 1 to 4",
    "train --n-features 1": "index 2 is above --n-features 1",
    "train --algorithm sgd": "--algorithm sgd is not known",
    "train --algorithm adfs --parameters theory": "--parameters theory is not a rule",
    "train --loss hinge --parameters exact": "--parameters exact is not a rule",
    "compare --clock-limit 0": "--clock-limit 0 must be",
    "compare --delay-shape 2": "--delay-law lognormal or --delay-law pareto",
    "compare --delay-law pareto --delay-shape 0": "--delay-shape 0.0 does not fit",
    "compare --algorithms adfs:x": "adfs:x: --algorithms x is not a rule",
    "compare --speed 0": "--speed 0 must be > 0",
    "schedule sample --p-comm 2": "--p-comm 2 must be inside (0, 1)",
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors_name_the_flags_of_the_command(adfs, home, line):
    (home / "good.txt").write_text(GOOD)
    words = line.split()
    place = 2 if words[0] == "schedule" else 1
    outcome = adfs(*words[:place], "good.txt", *words[place:])
    assert outcome.code == 2
    assert ERRORS[line] in outcome.err
    assert "=" not in outcome.err.replace(">=", "")


def test_errors_name_the_arguments_in_python():
    X, y = np.eye(4), [1.0, -1.0, 1.0, -1.0]
    with pytest.raises(package.AdfsError, match="how='draw' needs m="):
        package.partition(X, y, 2, how="draw")
    with pytest.raises(package.AdfsError, match=r"time_limit=0 must be .*; leave it out"):
        package.solve(package.Problem(package.partition(X, y, 2)), time_limit=0)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("max_iter=3 and tol=1e-3.", "--max-iter 3 and --tol 1e-3."),
        ("how='even' needs m=.", "--partition even needs --m."),
        ("algorithm='a b' is not known", "--algorithm 'a b' is not known"),
        ("n_samples=4, rho=0.5", "n_samples=4, rho=0.5"),
        ("line 3: not 'tol=5'", "line 3: not 'tol=5'"),
        ("tol=1.txt must be a file, and tol=2", "tol=1.txt must be a file, and --tol 2"),
        ("in a/tol=1 and --tol=1", "in a/tol=1 and --tol=1"),
    ],
)
def test_only_arguments_become_flags(message, shown):
    assert as_flags(message, parse(["train", "tol=1.txt"])) == shown
