"""`--plugin FILE`, and packages that add algorithms and losses by entry points."""

import json
import os
import subprocess
import sys

import pytest

from adfs.algorithms.base import BY_NAME, REGISTRY
from support.limits import HANG
from support.pages import DOCS, blocks

HALF = """
from dataclasses import dataclass
from adfs.plugins import PerNode, RoundMethod, Uses, register

@dataclass
class State:
    theta: PerNode

@register("halving", by_name=True)
class Halving(RoundMethod[State]):
    '''Gradient descent with half the usual step.'''

    uses = Uses(gradients=1, sums=1)
    rho = 1e-3

    def start(self, theta):
        return State(theta)

    def round(self, state, t, kind):
        total = float(self.nodes.smoothness.sum())
        state.theta = state.theta - 0.5 * self.nodes.sum(self.nodes.gradients(state.theta)) / total
"""


@pytest.fixture
def plugin(home):
    """Writes plug.py; what it registers is forgotten afterwards."""
    before, names = dict(REGISTRY), set(BY_NAME)

    def write(text, name="plug.py"):
        (home / name).write_text(text)
        return name

    yield write
    REGISTRY.clear()
    REGISTRY.update(before)
    BY_NAME.intersection_update(names)
    for name in [each for each in sys.modules if each.startswith("adfs_plugin_")]:
        del sys.modules[name]


def test_a_method_in_a_file_is_trained_and_compared(adfs, dense, plugin):
    plugin(HALF)
    trained = adfs("train", dense[0], "--plugin", "plug.py", "--algorithm", "halving",
                   "--tol", "1e-3", "--json")  # fmt: skip
    assert trained.code == 0
    record = json.loads(trained.out)
    assert record["status"] == "converged"
    assert record["parameters"]["text"].startswith("Gradient descent with half the usual step")
    compared = adfs("compare", dense[0], "--plugin=plug.py", "--algorithms", "adfs,halving",
                    "--tol", "1e-1")  # fmt: skip
    assert compared.code == 0
    assert "halving" in compared.out
    assert "halving" not in adfs("compare", dense[0], "--tol", "1e-1").out  # only where named


def test_a_file_of_settings_names_a_plugin(adfs, dense, plugin, home):
    plugin(HALF)
    (home / "run.toml").write_text(
        f'data = "{dense[0]}"\nplugin = "plug.py"\nalgorithm = "halving"\ntol = 1e-3\n'
    )
    assert adfs("train", "--config", "run.toml").code == 0
    saved = adfs("train", "--config", "run.toml", "--save-config", "again.toml")
    assert saved.code == 0
    assert 'plugin = "plug.py"' in (home / "again.toml").read_text()


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        (None, "gone.py", "--plugin 'gone.py' is not there; check the path."),
        ("", "plug.txt", "--plugin 'plug.txt' must be a Python file, whose name ends in .py."),
        ("x = 1\ny = (\n", "plug.py", "--plugin plug.py, line 2 cannot be loaded: SyntaxError"),
        ("\n1 / 0\n", "plug.py", "line 2 cannot be loaded: ZeroDivisionError: division by zero"),
        ("raise SystemExit(0)\n", "plug.py", "line 1 cannot be loaded: SystemExit"),
        ("import nowhere_at_all\n", "plug.py", "No module named 'nowhere_at_all'; correct it."),
        (
            "import adfs\nadfs.register('best')(print)\n", "plug.py",
            "line 2 cannot be loaded: 'best' is no name for an algorithm",
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded_is_a_sentence(adfs, dense, plugin, text, name, sentence):
    if text is not None:
        plugin(text, name)
    outcome = adfs("train", dense[0], "--plugin", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err
    assert len(outcome.err.splitlines()) == 1


def run_in(folder, site, *words):
    """A command where the packages of ``site`` are installed, too."""
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=HANG,
        env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip


def install(folder, site):
    """What pip makes of a package, beside this environment instead of in it."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--no-build-isolation", "--no-index", "--target", site, folder],
        capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_package_of_the_page_adds_a_method_and_a_loss(home):
    page = DOCS / "how-to" / "add-an-algorithm.md"
    texts = [block.text for block in blocks(page) if block.language == "bash"]
    writes = [text for text in texts if text.startswith(("cat > nesterov.py", "mkdir -p my-meth"))]
    assert len(writes) == 2
    subprocess.run(["bash", "-euc", "\n".join(writes)], cwd=home, check=True)
    for file in ("nesterov.py", "log_cosh.py"):
        assert len((home / "my-methods" / file).read_text().splitlines()) <= 80
    install(home / "my-methods", home / "site")
    (used,) = [text for text in texts if text.startswith("pip install ./my-methods")]
    commands = [line for line in used.splitlines() if line.startswith("adfs ")]
    assert len(commands) == 2
    for command in commands:
        done = run_in(home, home / "site", "-m", *command.split())
        assert (done.returncode, "nesterov" in done.stdout) == (0, True), done.stderr
    checks = "import adfs; adfs.check_loss('log-cosh'); adfs.check_algorithm('nesterov')"
    done = run_in(home, home / "site", "-c", checks)
    assert done.returncode == 0, done.stderr


def test_a_package_that_is_broken_is_left_out_with_a_warning(home):
    site = home / "site"
    (site / "broken-1.0.dist-info").mkdir(parents=True)
    (site / "broken.py").write_text("raise RuntimeError('made for an older adfs')\n")
    (site / "broken-1.0.dist-info" / "METADATA").write_text("Name: broken\nVersion: 1.0\n")
    (site / "broken-1.0.dist-info" / "entry_points.txt").write_text(
        "[adfs.algorithms]\nbroken = broken\n"
    )
    done = run_in(home, site, "-m", "adfs", "train", "breast-cancer", "--nodes", "2",
                  "--standardize", "--tol", "1e-2", "--quiet")  # fmt: skip
    assert done.returncode == 0
    assert "The plug-in broken cannot be loaded and is left out: RuntimeError: made" in done.stderr
