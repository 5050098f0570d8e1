"""What runs the pages: it sees every kind of failure, and shares names and files between blocks."""

import pytest

from support.pages import blocks, commands, run

WRONG = {
    "an assertion fails": "```python\nassert 1 + 1 == 3\n```\n",
    "a warning is given": "```python\nimport warnings\n\nwarnings.warn('old')\n```\n",
    "an example prints something else": "```pycon\n>>> 1 + 1\n3\n```\n",
    "a command fails between others": "```bash\ntrue\nfalse\ntrue\n```\n",
    "a pipe fails at its start": "```bash\nfalse | cat\n```\n",
    "a command prints something else": "```console\n$ echo two\nthree\n```\n",
    "output without a command": "```console\ntwo\n```\n",
    "a name of another page": "```python\nprint(adfs)\n```\n",
}
GOOD = """\
# A page

```python
number = 2
```

<!-- not run: there is no such command -->
```bash
no-such-command
```

```pycon
>>> number += 1
>>> number
3
```

- in a list

  ```bash
  echo made > file.txt
  ```

```text
not code
```

```python
assert number == 3
with open("file.txt") as file:
    assert file.read() == "made\\n"
```

```console
$ cat \\
  file.txt
made
$ echo one two three
one ... three
```
"""


def written(folder, text):
    page = folder / "page.md"
    page.write_text(text)
    return page


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_page_fails_where(text, tmp_path):
    with pytest.raises(AssertionError):
        run(written(tmp_path, text), tmp_path)


def test_a_good_page_runs_in_order_with_shared_names_and_files(tmp_path):
    run(written(tmp_path, GOOD), tmp_path)
    assert (tmp_path / "file.txt").exists()


def test_blocks_are_found_with_their_lines_and_excuses(tmp_path):
    page = written(tmp_path, GOOD)
    found = blocks(page)
    languages = ["python", "bash", "pycon", "bash", "text", "python", "console"]
    assert [block.language for block in found] == languages
    assert [block.not_run for block in found if block.not_run] == ["there is no such command"]
    assert found[3].text == "echo made > file.txt\n"
    lines = page.read_text().splitlines()
    assert all(lines[block.line - 1].strip() == block.text.splitlines()[0] for block in found)


def test_a_block_that_is_never_closed_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="never closed"):
        blocks(written(tmp_path, "# A page\n\n```python\nprint(1)\n"))


def test_commands_of_a_script_are_found_whoever_starts_them(tmp_path):
    text = (
        "```bash\n#SBATCH --nodes=4\nexec srun adfs train 'a-{node}.svm' \\\n    --resume  # on\n"
        "mpiexec -n 2 adfs info --mpi | head\nadfs train x && adfs predict m x > y\n```\n"
    )
    (block,) = blocks(written(tmp_path, text))
    assert commands(block) == [
        ["train", "a-{node}.svm", "--resume"],
        ["info", "--mpi"],
        ["train", "x"],
        ["predict", "m", "x"],
    ]
