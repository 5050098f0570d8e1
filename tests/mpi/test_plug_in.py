"""The example of docs/how-to/add-an-algorithm.md runs on ranks as the page says."""

from support.pages import DOCS, blocks

PAGE = DOCS / "how-to" / "add-an-algorithm.md"


def of_section(first, last):
    """The blocks between two headings of the page."""
    lines = [line.split(".")[0] for line in PAGE.read_text().splitlines()]
    start, stop = lines.index(f"## {first}"), lines.index(f"## {last}")
    return [block for block in blocks(PAGE) if start < block.line <= stop]


def test_the_example_of_the_page_has_the_bits_of_one_process_on_ranks(mpiexec, tmp_path):
    classes = [block.text for block in of_section(2, 5) if "adfs.solve" not in block.text]
    (tmp_path / "nesterov.py").write_text("\n".join(classes))
    (program,) = (block.text for block in of_section(5, 6) if "import nesterov" in block.text)
    (tmp_path / "program.py").write_text(program)
    printed = []
    for size in (1, 3):
        run = mpiexec.run(size, tmp_path / "program.py")
        assert (run.returncode, run.stderr) == (0, "")
        printed.append(run.stdout)
    assert printed[0].startswith("Result(converged")
    assert len(set(printed)) == 1
