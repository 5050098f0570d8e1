"""Fixtures: a folder with a data file for commands, and a browser."""

import pytest

from support.reports import find_browser, write_data


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The current folder, with a file of data and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADFS_DATA", raising=False)
    monkeypatch.setattr("adfs.engine.progress.SECONDS_BETWEEN_LINES", 1e9)
    write_data(tmp_path / "data.svm")
    return tmp_path


@pytest.fixture(scope="session")
def programs():
    """The browser and its driver; without them the test is skipped, or fails in CI."""
    return find_browser()


@pytest.fixture(scope="session")
def driver(programs):
    """One browser for all tests, its console and its requests on record."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    browser, driver = programs
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-first-run", "--disable-background-networking",
                     "--window-size=1200,900"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.set_capability("unhandledPromptBehavior", "ignore")  # a dialog has to be seen
    found = webdriver.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()
