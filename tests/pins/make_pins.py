"""Makes ``pins.json`` again from this checkout: ``python tests/pins/make_pins.py``.

To be run only where numbers are meant to change; say in the commit which and why. One process makes
the pins, and `test_pins.py` holds ranks to them.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.pins import CASES, PINS, found_by_command, parameters_digest
from support.rounding import surroundings


def make():
    """The content of the file."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=PINS.parent, check=False
    ).stdout.strip()
    cases = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = found_by_command(case, folder)
        facts = {"command": " ".join(case.command), "parameters": parameters_digest(case)}
        cases[str(case)] = facts | found
    return {"commit": commit, "surroundings": surroundings(), "cases": cases}


def write(pins):
    """One line for each number or list of a case, so that a change can be read in a diff."""
    cases = ",\n".join(
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in case.items())
        + "\n }"
        for name, case in pins["cases"].items()
    )
    PINS.write_text(
        f'{{"commit": {json.dumps(pins["commit"])},\n'
        f'"surroundings": {json.dumps(pins["surroundings"], indent=1)},\n'
        f'"cases": {{\n{cases}\n}}}}\n'
    )


if __name__ == "__main__":
    write(make())
    print(f"{len(CASES)} cases written to {PINS}")
