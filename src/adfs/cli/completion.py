"""`adfs completion`: a script with which the Tab key completes commands, flags, names and files."""

import argparse
from typing import Any

from adfs.cli import output
from adfs.cli.arguments import Option, Parser
from adfs.cli.commands import ADFS
from adfs.cli.options import ALGORITHMS, DATASETS, FOLDER, SHELLS
from adfs.errors import ParameterError

# In a list with commas, the part up to the last comma stays before each name.
PREAMBLE = {
    "bash": f"""\
_adfs_names() {{
  local done=""
  [[ "$1" == *,* ]] && done="${{1%,*}},"
  compgen -P "$done" -W "{" ".join(ALGORITHMS)}" -- "${{1##*,}}"
}}
_adfs_data_files() {{
  compgen -f -- "$1"
  compgen -W "{" ".join(DATASETS)}" -- "$1"
}}
""",
    "zsh": f"""\
_adfs_names() {{
  _values -s , algorithm {" ".join(ALGORITHMS)}
}}
_adfs_data_files() {{
  _alternative 'names:data set:({" ".join(DATASETS)})' 'files:file:_files'
}}
""",
}


def run(args: argparse.Namespace) -> int:
    output.emit(script(args.shell))
    return 0


def script(shell: str) -> str:
    try:
        import shtab
    except ImportError:
        raise ParameterError(
            "completion needs shtab, which is not installed; run pip install shtab."
        ) from None

    def add_completion(option: Option, action: Any) -> None:
        if option.metavar == "DATA":
            action.complete = dict.fromkeys(SHELLS, "_adfs_data_files")
        elif option.flag == "--algorithms":
            action.complete = dict.fromkeys(SHELLS, "_adfs_names")
        elif option.kind.role:
            action.complete = shtab.DIRECTORY if option.kind == FOLDER else shtab.FILE
        elif option.kind.suggestions:
            action.choices = option.kind.suggestions

    parser = Parser(ADFS, "adfs", hook=add_completion)
    preamble: Any = {shell: PREAMBLE[shell]}
    return str(shtab.complete(parser, shell=shell, preamble=preamble)) + "\n"
