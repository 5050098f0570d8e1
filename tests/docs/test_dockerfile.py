"""The steps of the Dockerfile, in a new environment instead of an image."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import ROOT

IMAGE = "/opt/"  # where the image has what is copied and compiled


def steps():
    """Words and the rest of each line of the Dockerfile; comments are left out."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line and line[0] != "#"]


def test_what_is_copied_exists_and_is_sent_to_the_build():
    sent = (ROOT / ".dockerignore").read_text().split()
    copied = [word for name, rest in steps() if name == "COPY" for word in rest.split()[:-1]]
    assert copied
    assert all((ROOT / name).exists() and f"!{name}" in sent for name in copied)


def test_system_packages_are_installed_in_a_step_of_their_own():
    runs = [rest for name, rest in steps() if name == "RUN"]
    assert [rest for rest in runs if "apt-get" in rest] == runs[:1]


@pytest.mark.soak  # minutes; .ci/bare-install installs without extras
def test_the_image_trains_on_ranks_without_compiling(tmp_path):
    image = tmp_path / "opt"
    environment = {
        "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8",
        "PATH": f"{tmp_path}/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
    }  # fmt: skip
    (tmp_path / "home").mkdir()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    for name, rest in steps():
        place = rest.replace(IMAGE, f"{image}/")
        if name == "ENV":
            environment |= [place.split("=", 1)]
        elif name == "COPY":
            *sources, folder = place.split()
            copy(sources, Path(folder))
        elif name == "RUN" and "apt-get" not in rest:
            run(tmp_path, environment, "sh", "-c", place)
    compiled = set(image.rglob("*"))
    train = "adfs train breast-cancer --nodes 4 --engine mpi --json"
    done = run(tmp_path, environment, "mpiexec", "-n", "2", *shlex.split(train))
    assert '"status": "converged"' in done.stdout
    assert "compil" not in done.stderr
    assert set(image.rglob("*")) == compiled


def copy(sources, folder):
    for name in sources:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder)


def run(folder, environment, *words):
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
