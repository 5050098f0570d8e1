"""`adfs completion`: what a real shell completes."""

import shutil
import subprocess
import sys

import pytest

import adfs as package
from adfs.algorithms import NAMES
from adfs.algorithms.base import usual_names
from adfs.cli import completion, options
from adfs.cli.commands import parse
from adfs.data.datasets import DATASETS
from adfs.graphs import graph_names
from support.limits import HANG

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
complete -p adfs > /dev/null || exit 1
_shtab_adfs
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def tab(adfs, home):
    """What bash offers when Tab is pressed behind the last of the words."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = adfs("completion", "bash")
    assert (script.code, script.err) == (0, "")
    (home / ".adfs.bash").write_text(script.out)

    def press(*words):
        done = subprocess.run(
            ["bash", "--norc", "-c", ASK, "bash", ".adfs.bash", "adfs", *words],
            capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return set(done.stdout.split())

    return press


def test_names_written_out_are_those_of_the_registries():
    package.algorithms()  # fills the registry
    assert list(NAMES) == usual_names()
    assert set(options.GRAPHS) == set(graph_names.FAMILIES)
    assert set(options.DATASETS) == set(DATASETS)


def test_verbs_are_completed(tab):
    assert tab("") == {"train", "predict", "path", "plan", "split", "compare", "reproduce",
                       "schedule", "datasets", "info", "completion"}  # fmt: skip
    assert tab("pre") == {"predict"}
    assert tab("schedule", "") == {"sample", "show", "times", "timeline"}
    assert tab("completion", "") == {"bash", "zsh"}


def test_flags_are_completed_and_hidden_ones_are_not(tab):
    assert tab("train", "--max") == {"--max-iter"}
    assert tab("train", "data.txt", "--sigma", "1", "--con") == {"--config"}
    assert tab("schedule", "timeline", "--chr") == {"--chrome"}
    assert tab("train", "--no-i") == set()


def test_names_that_a_flag_takes_are_completed(tab):
    assert tab("train", "--loss", "") == set(options.LOSSES)
    assert tab("train", "data.txt", "--loss", "sq") == {"squared", "squared_hinge"}
    assert tab("train", "--algorithm", "") == {"auto", "best", *NAMES}
    assert tab("train", "--algorithm", "n") == {"newton", "ns-adfs"}
    assert tab("compare", "--delay-law", "") == set(options.LAWS)
    assert tab("schedule", "sample", "--graph", "r") == {"ring", "random_regular"}
    assert tab("reproduce", "figure-4") == {"figure-4a", "figure-4b", "figure-4c"}


def test_a_list_of_algorithms_is_completed_behind_its_commas(tab):
    assert tab("compare", "--algorithms", "m") == {"msda"}
    assert tab("compare", "--algorithms", "adfs,l") == {"adfs,l-katyusha", "adfs,lbfgs"}


def test_files_folders_and_names_of_data_are_completed(tab, home):
    (home / "a-file.txt").write_text("")
    (home / "a-folder").mkdir()
    assert tab("train", "a") == {"a-file.txt", "a-folder", "a9a", "a9a.t", "abalone"}
    assert tab("train", "--out", "a") == {"a-file.txt", "a-folder"}
    assert tab("train", "--checkpoint", "a") == {"a-folder"}
    assert tab("predict", "a-file.txt", "a9") == {"a9a", "a9a.t"}


def test_zsh_gets_a_function_for_every_verb(adfs):
    text = adfs("completion", "zsh").out
    assert text.startswith("#compdef adfs\n")
    for name in ("train", "compare", "schedule_timeline"):
        assert f"_shtab_adfs_{name}_options=(" in text
    assert ":(" + " ".join(options.LOSSES) + ")" in text
    assert "--no-intercept" not in text


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_script(adfs, home):
    (home / "_adfs").write_text(adfs("completion", "zsh").out)
    done = subprocess.run(["zsh", "-n", "_adfs"], capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_shtab_it_says_what_to_install(adfs, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    outcome = adfs("completion", "bash")
    assert outcome.code == 2
    assert outcome.err == (
        "adfs: completion needs shtab, which is not installed; run pip install shtab.\n"
    )


def test_making_a_script_leaves_other_parsers_as_they_are():
    completion.script("bash")
    assert parse(["train", "any-name", "--graph", "grid:2x2"]).graph == "grid:2x2"
