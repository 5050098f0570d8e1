"""Help: every command says what it is for, its defaults, and examples that work."""

import gzip
import re
import shlex
import subprocess
import sys

import pytest

from adfs.checks import nearest
from adfs.cli.arguments import Command, Parser
from adfs.cli.commands import ADFS, parse
from adfs.cli.options import SETTINGS, read_groups
from adfs.data.generators import sparse_text
from support.cli import write_libsvm
from support.commands import leaves
from support.limits import HANG

LEAVES = dict(leaves(ADFS))
SCHEDULE = next(verb for verb in ADFS.verbs if verb.name == "schedule")
COMMANDS = {"adfs": ADFS, "adfs schedule": SCHEDULE, **LEAVES}
PARSERS = {name: Parser(command, name) for name, command in COMMANDS.items()}
HEAVY = "adfs reproduce"  # its examples take minutes, except one


def examples_of(parser):
    """Command lines below ``examples:``, without what a shell does around them."""
    _, _, text = parser.format_help().partition("\nexamples:\n")
    block = text.split("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


EXAMPLES = sorted({line for parser in PARSERS.values() for line in examples_of(parser)})


def words_of(line):
    """Arguments of ``adfs`` in an example."""
    words = shlex.split(line)
    words = words[words.index("adfs") + 1 :]
    return words[: words.index(">")] if ">" in words else words


@pytest.fixture
def surroundings(home, adfs):
    """Small files under the names that examples use."""
    X, y = sparse_text(30, 30, words_per_row=6, seed=1)
    for name in ("test.txt", "part-0.txt", "part-1.txt", "part-2.txt"):
        write_libsvm(home / name, X, y)
    (home / "train.txt.gz").write_bytes(gzip.compress((home / "test.txt").read_bytes()))
    (home / "run.toml").write_text('data = "breast-cancer"\nC = 1.0\n')
    (home / "comparison.toml").write_text('data = "test.txt"\nalgorithms = ["adfs", "msda"]\n')
    assert adfs("train", "breast-cancer", "--out", "model.npz").code == 0
    assert adfs("schedule", "sample", "--graph", "ring", "--nodes", "8", "--out", "s.npz").code == 0


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_understood_and_end_well(adfs, surroundings, line):
    words = words_of(line)
    if line.startswith(("mpiexec", "ADFS_DATA=")) or (
        line.startswith(HEAVY) and "json" not in line
    ):
        assert parse(words).command  # for more ranks, another folder, or too long for here
        return
    if words[0] == "compare":
        words += ["--tol", "1e-3"]  # the accuracy is not what an example shows, but takes long
    outcome = adfs(*words)
    assert (outcome.code, outcome.err.count("adfs:")) == (0, 0), outcome.err


@pytest.mark.parametrize("name", PARSERS)
def test_a_command_has_a_purpose_and_two_to_four_examples(name):
    parser = PARSERS[name]
    purpose = parser.description.split("\n\n")[0]
    assert purpose.endswith(".")
    assert len(purpose.split()) >= 12
    assert 2 <= len(examples_of(parser)) <= 4
    assert all("adfs" in shlex.split(line) for line in examples_of(parser))


@pytest.mark.parametrize("name", LEAVES)
def test_help_shows_every_default_and_explains_every_argument(name):
    text = "".join(PARSERS[name].format_help().split())
    for option in LEAVES[name].options:
        default = option.kind.default
        assert option.help, option
        assert "".join(option.help.split()) in text
        if default is not None:
            shown = re.search(r"\(default ([^\s,)]+)\)$", option.help)
            assert shown, option
            assert type(default)(shown[1]) == default


def test_help_of_limits_says_their_units(adfs):
    text = " ".join(adfs("train", "--help").out.split())
    for flag in ("--max-iter N most events,", "--evaluate-every N events,"):
        assert f"{flag} or units of time under --schedule poisson" in text


def test_options_stand_in_groups_below_a_usage_of_one_line(adfs):
    text = adfs("train", "--help").out
    assert text.startswith("usage: adfs train [OPTION ...] DATA\n\n")
    titles = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [
        "positional arguments:", "options:", "the problem:", "the network:", "the time model:",
        "the run:", "files and output:", "settings:", "plug-ins:", "examples:",
    ]  # fmt: skip


def test_help_fits_a_narrow_terminal_but_for_its_examples(adfs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = adfs("train", "--help").out.split("examples:")[0]
    assert max(map(len, text.splitlines())) <= 40


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["trian"], "adfs: argument COMMAND: invalid choice: 'trian'"),
        (["schedule", "tims"], "`adfs schedule --help` (nearest: times)."),
        (["train", "x", "--max-itr", "9"], "see `adfs train --help` (nearest: --max-iter)."),
        (["train", "x", "--max-itr=9"], "see `adfs train --help` (nearest: --max-iter)."),
        (["train", "x", "--loss", "logitic"], "see `adfs train --help` (nearest: logistic)."),
        (["compare", "x", "--algorithm", "a"], "`adfs compare --help` (nearest: --algorithms)."),
        (["train", "x", "--frobnicate"], "unrecognized arguments: --frobnicate; see `adfs"),
        (["completion", "fish"], "(choose from"),
    ],
)  # fmt: skip
def test_a_mistyped_word_is_refused_with_the_nearest_one(adfs, words, hint):
    outcome = adfs(*words)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert hint in outcome.err


def test_hidden_flags_are_never_suggested_and_positions_are_no_flags():
    command = Command("p", "", "", "", read_groups(f"  --intercept  x{SETTINGS}"))
    assert Parser(command, "p").parse_args(["--no-intercept"]).intercept is False
    assert "--no-intercept" not in command.flags
    assert nearest("--itercept", command.flags) == "--intercept"
    assert nearest("c", ["C", "sigma"]) == "C"
    assert nearest("zzz", ["C", "sigma"]) is None


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["completion", "bash"], ["compare", "--help"], ["trian"]]
)
def test_words_about_the_command_line_import_no_arithmetic(words):
    code = (
        f"import sys, adfs.cli.main as cli; cli.main({words!r}); heavy = "
        "{'numpy', 'numba', 'scipy', 'sklearn', 'rich', 'matplotlib', 'mpi4py'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG
    )
    assert done.stdout.splitlines()[-1] == "[]"
