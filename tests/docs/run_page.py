"""Run the blocks of one page in order: ``python run_page.py PAGE`` in the folder to run them in.

Python blocks share one namespace, with warnings as errors; blocks with ``>>>`` are doctests. Shell
blocks run in the same folder with the commands of this environment first on the PATH; in a
``console`` block lines after ``$`` are commands and the others what they print (``...`` stands for
anything).
"""

import doctest
import os
import subprocess
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.pages import PYTHON, SHELL, blocks

SLOW = "reading "  # a note that comes only where reading takes long, as on a busy machine
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def main(page):
    """Run a page; an exception, or a failure's text, ends it."""
    warnings.simplefilter("error")
    sys.path.insert(0, "")  # modules that a page writes into its folder
    names = {"__name__": "__main__"}
    for block in blocks(page):
        if block.not_run is None and block.language in PYTHON:
            run_python(block, names)
        elif block.not_run is None and block.language in SHELL:
            run_shell(block)


def run_python(block, names):
    """Execute, with the page's own line numbers in tracebacks."""
    if ">>> " in block.text:
        return run_doctest(block, names)
    code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
    exec(code, names)


def run_doctest(block, names):
    parser = doctest.DocTestParser()
    example = parser.get_doctest(block.text, names, block.place, str(block.page), block.line - 1)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(example, clear_globs=False)
    if runner.failures:
        sys.exit(f"{block.place}: an example does not print what it says")
    names.update(example.globs)


def run_shell(block):
    if block.language == "bash":
        shell(block, block.text)
        return
    for command, printed in dialogue(block):
        got = shell(block, command)
        if printed and not doctest.OutputChecker().check_output(printed, got, FLAGS):
            sys.exit(f"{block.place}: $ {command}\nsays\n{printed}\nbut prints\n{got}")


def dialogue(block):
    """Pairs of a command and what the page says that it prints."""
    found = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif found and found[-1][0].endswith("\\\n") and not found[-1][1]:
            found[-1][0] += line
        elif found:
            found[-1][1] += line
        else:
            sys.exit(f"{block.place}: a console block starts with a line after '$ '")
    return found


def shell(block, text):
    """Run a text by bash that stops at the first failure; what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{block.place}: exit code {done.returncode} of\n{text}\n{done.stdout}")
    return "".join(line for line in done.stdout.splitlines(True) if not line.startswith(SLOW))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
