"""`adfs completion`: what makes the Tab key complete verbs, flags, choices and file names."""

import argparse
from typing import Any

from adfs.algorithms.names import NAMES
from adfs.cli import output
from adfs.cli.parser import Parser, add_command, leaves
from adfs.errors import ParameterError
from adfs.reproduce.catalogue import ALL, CATALOGUE

SHELLS = ("bash", "zsh")

# Written out, as the lists in `options` are; a test holds them equal to the registries.
GRAPHS = (
    "grid", "ring", "path", "star", "complete", "torus", "hypercube", "random_regular",
    "erdos_renyi", "single",
)  # fmt: skip
DATASETS = (
    "covtype", "higgs", "a9a", "a9a.t", "mushrooms", "rcv1", "news20", "real-sim", "abalone",
    "reuters-money-fx", "breast-cancer", "diabetes",
)  # fmt: skip

EXAMPLES = """\
examples:
  adfs completion bash > adfs.bash
  adfs completion zsh > _adfs

bash: add `source /path/to/adfs.bash` to ~/.bashrc, or once and for all

  mkdir -p ~/.local/share/bash-completion/completions
  adfs completion bash > ~/.local/share/bash-completion/completions/adfs

zsh: put _adfs into a folder of $fpath, and have `autoload -U compinit && compinit` in ~/.zshrc. A
new shell then completes; after an update of adfs, write the file again."""

# A list with commas: what was typed up to the last comma stays before each name.
PREAMBLE = {
    "bash": """\
_adfs_names() {
  local done=""
  [[ "$1" == *,* ]] && done="${1%,*},"
  compgen -P "$done" -W "NAMES" -- "${1##*,}"
}
_adfs_data_files() {
  compgen -f -- "$1"
  compgen -W "SETS" -- "$1"
}
""",
    "zsh": """\
_adfs_names() {
  _values -s , algorithm NAMES
}
_adfs_data_files() {
  _alternative 'names:data set:(SETS)' 'files:file:_files'
}
""",
}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands, "completion", run, help="print a script that completes commands in a shell",
        description="Print a script for bash or zsh that completes verbs, flags, the names that "
        "flags take (losses, algorithms, graphs and so on) and files.",
        epilog=EXAMPLES,
    )  # fmt: skip
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash or zsh")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from adfs.cli.main import build

    output.emit(script(build(), args.shell))
    return 0


def script(parser: Parser, shell: str) -> str:
    """The script for the whole tree of commands."""
    try:
        import shtab
    except ImportError:
        raise ParameterError(
            "completion needs shtab, which is not installed; run pip install shtab."
        ) from None
    for leaf in leaves(parser):
        for action in leaf._actions:
            _say_what_completes(action, shtab)
    text = PREAMBLE[shell].replace("NAMES", " ".join(NAMES))
    preamble: Any = {shell: text.replace("SETS", " ".join(DATASETS))}
    return str(shtab.complete(parser, shell=shell, preamble=preamble)) + "\n"


def _say_what_completes(action: Any, shtab: Any) -> None:
    """Names for names, files for files; the parsers themselves need not know."""
    if action.dest == "algorithms":
        action.complete = dict.fromkeys(SHELLS, "_adfs_names")
    elif action.dest == "algorithm":
        action.choices = ("auto", *NAMES)
    elif action.dest == "graph":
        action.choices = GRAPHS
    elif action.metavar == "NAME" and not action.option_strings:
        action.choices = (*CATALOGUE, ALL)
    elif action.metavar == "DIR":
        action.complete = shtab.DIRECTORY
    elif action.metavar == "DATA":
        action.complete = dict.fromkeys(SHELLS, "_adfs_data_files")
    elif action.metavar in ("FILE", "MODEL"):
        action.complete = shtab.FILE
