"""Reports in a browser: they render, log nothing, request nothing, and run no foreign script."""

import json
import time
from typing import NamedTuple

import pytest

import adfs
from adfs.study.report import compare_page
from support.commands import here
from support.reports import EVIL, make_problem

# A path that contains markup; its slash is the one between folder and file.
FOLDER, FILE = "<script>alert(3)<", "script><img src=x onerror=alert(4)>.csv"
COLUMN, WORD = "<script>alert(6)</script>", "<img src=x onerror=alert(7)>"
DRAWN = """\
const chart = document.querySelector("#chart canvas");
const canvas = Object.assign(document.createElement("canvas"), // a copy: reading leaves no trace
  { width: chart.width, height: chart.height });
canvas.getContext("2d").drawImage(chart, 0, 0);
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let drawn = 0;
for (let k = 3; k < data.length; k += 4) drawn += data[k] > 0;
return drawn;
"""
PICTURE = 'return document.querySelector("#chart canvas").toDataURL();'
SHOWN = "return getComputedStyle(document.querySelector(arguments[0])).display !== 'none';"
INSERT = """\
const script = document.createElement("script");
script.textContent = "window.foreign = 1";
document.body.append(script);
document.body.insertAdjacentHTML("beforeend", "<i onclick='window.foreign = 2'>x</i>");
document.body.lastChild.click();
return window.foreign === undefined;
"""
# Boxes of the labels at curves, of the plot without its axes, and of the whole chart.
BOXES = """\
const box = (r) => [r.left, r.top, r.right, r.bottom];
const all = (selector) => [...document.querySelectorAll(selector)]
  .map((each) => box(each.getBoundingClientRect()));
return [all(".label-at-curve"), all("#chart .u-over")[0], all("#chart canvas")[0]];
"""
CUES = """\
return [...document.querySelectorAll(".scroll")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => getComputedStyle(each).backgroundImage.split("linear-gradient").length - 1);
"""
FETCH = """\
const done = arguments[arguments.length - 1];
fetch("http://127.0.0.1:9/").then(() => done("answered"), (error) => done("refused"));
"""


class Files(NamedTuple):
    """Where the pages are."""

    train: str
    compare: str


def table():
    """A CSV file with markup in the names of columns and categories, and in labels."""
    X, y = adfs.generators.two_gaussians(120, 3, seed=3)
    rows = [
        f"{a},{b},{WORD if c > 0 else 'other'},{WORD if label > 0 else 'no'}\n"
        for (a, b, c), label in zip(X, y, strict=True)
    ]
    return f"{COLUMN},b,city,y\n" + "".join(rows)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A run on a file with an evil name, and a comparison with evil labels."""
    home = tmp_path_factory.mktemp("pages")
    (home / FOLDER).mkdir()
    (home / FOLDER / FILE).write_text(table())
    outcome = here("train", home / FOLDER / FILE, "--nodes", "6", "--graph", "ring",
                   "--schedule", "shared", "--tol", "1e-6", "--evaluate-every", "500",
                   "--report", home / "train.html", "--target", "y",
                   "--test", home / FOLDER / FILE,
                   "--out", home / '"onload="alert(5)".npz')  # fmt: skip
    assert outcome.code == 0, outcome.err
    problem = make_problem(4)
    comparison = adfs.compare(
        problem, ["adfs", "newton", "dsba:theory", "lbfgs"], tol=1e-4, seeds=2
    )
    for record in comparison.records[:2]:
        object.__setattr__(record, "label", EVIL)
    text = compare_page(problem, comparison, data=EVIL, command=EVIL)
    (home / "compare.html").write_text(text, encoding="utf-8")
    return Files((home / "train.html").as_uri(), (home / "compare.html").as_uri())


def media(driver, **features):
    """Emulate a device: ``media``, and features such as prefers_color_scheme."""
    kind = features.pop("media", "")
    wanted = [{"name": key.replace("_", "-"), "value": value} for key, value in features.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": wanted})


@pytest.fixture
def browse(driver):
    """Open a page as in a new browser; at the end its console must be empty."""
    promised = {"silent": True}

    def load(address, silent=True):
        promised["silent"] = silent
        driver.get("about:blank")
        driver.get_log("performance"), driver.get_log("browser")
        driver.get(address)
        return driver

    media(driver)
    yield load
    said = [entry["message"] for entry in driver.get_log("browser")]
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert not (promised["silent"] and said), said


def requests(driver):
    """Addresses that the page requested."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
        and each["params"]["request"]["url"] != "about:blank"
    ]


def choose(driver, identifier, value):
    from selenium.webdriver.support.select import Select

    Select(driver.find_element("id", identifier)).select_by_value(value)


def until(driver, condition):
    """Wait for what the browser does with its next frame; the value of the condition."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(driver, 10, poll_frequency=0.05).until(lambda _: condition())


def options(driver, identifier):
    found = driver.find_elements("css selector", f"#{identifier} option")
    return [each.get_attribute("value") for each in found]


@pytest.mark.parametrize(("name", "n_nodes"), [("train", 6), ("compare", 4)])
def test_a_page_renders_and_asks_for_nothing_but_itself(browse, files, name, n_nodes):
    address = getattr(files, name)
    driver = browse(address)
    time.sleep(0.3)  # for requests that come later
    assert driver.execute_script(DRAWN) > 3_000
    assert len(driver.find_elements("css selector", "svg.graph circle")) == n_nodes
    assert driver.find_element("css selector", "svg.timeline").size["width"] > 500
    assert not driver.execute_script(SHOWN, "#chart-still")
    assert requests(driver) == [address]


def test_every_axis_draws_another_chart(browse, files):
    driver = browse(files.train)
    seen = {}
    for x in options(driver, "axis-x"):
        choose(driver, "axis-x", x)
        seen[x] = driver.execute_script(PICTURE)
        assert driver.execute_script(DRAWN) > 3_000
        assert driver.find_element("id", "chart").get_attribute("data-x") == x
    choose(driver, "axis-x", "iteration")
    for y in options(driver, "axis-y"):
        choose(driver, "axis-y", y)
        seen[y] = driver.execute_script(PICTURE)
        assert driver.execute_script(DRAWN) > 3_000
    assert {"iteration", "idealized_time", "wall_time", "n_prox", "n_comm", "bytes"} <= set(seen)
    assert {"relative_gap", "duality_gap", "consensus_error", "objective"} <= set(seen)
    different = {x: picture for x, picture in seen.items() if x != "relative_gap"}
    assert len(set(different.values())) == len(different)
    assert seen["relative_gap"] == seen["iteration"], "the chart as it was at first"


def in_view(driver, selector):
    """An element in the middle of the window, wherever earlier clicks had scrolled to."""
    element = driver.find_element("css selector", selector)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    return element


def test_scales_and_zoom_change_the_chart_and_see_all_restores_it(browse, files):
    from selenium.webdriver import ActionChains

    driver = browse(files.train)
    first = driver.execute_script(PICTURE)
    for box in ("log-x", "log-y"):
        driver.find_element("id", box).click()
        assert until(driver, lambda: driver.execute_script(PICTURE) != first)
        driver.find_element("id", box).click()
        assert until(driver, lambda: driver.execute_script(PICTURE) == first)
    over = in_view(driver, "#chart .u-over")
    mouse = ActionChains(driver).move_to_element_with_offset(over, -100, -50)
    mouse.click_and_hold().move_by_offset(150, 100).release().perform()
    assert until(driver, lambda: driver.execute_script(PICTURE) != first)
    driver.find_element("id", "zoom-out").click()
    assert until(driver, lambda: driver.execute_script(PICTURE) == first)


def test_the_pointer_reads_values_and_names_hide_curves(browse, files):
    from selenium.webdriver import ActionChains

    driver = browse(files.train)
    over = in_view(driver, "#chart .u-over")
    ActionChains(driver).move_to_element(over).perform()
    outputs = driver.find_elements("css selector", ".readout output")
    assert until(driver, lambda: all(each.text for each in outputs))
    values = [each.text for each in outputs]
    assert all(0.0 < float(value) < 1.0 for value in values), values
    place = driver.find_element("css selector", ".readout .place").text
    assert place.startswith("iterations: ")
    before = driver.execute_script(DRAWN)
    driver.find_element("css selector", ".readout button").click()
    assert until(driver, lambda: driver.execute_script(DRAWN) < before)


@pytest.mark.parametrize("name", ["train", "compare"])
def test_names_and_labels_stay_text(browse, files, name):
    from selenium.common.exceptions import NoAlertPresentException

    driver = browse(getattr(files, name))
    assert driver.find_elements("css selector", "img, iframe, object, [onerror], [onload]") == []
    assert len(driver.find_elements("tag name", "script")) == 2
    with pytest.raises(NoAlertPresentException):
        driver.switch_to.alert.text  # noqa: B018  (asking is the test)
    heading = driver.find_element("tag name", "h1").text
    if name == "train":
        assert heading.endswith(f"{FOLDER}/{FILE}")
        shown = driver.find_element("id", "model").text
        assert COLUMN in shown
        assert f"city={WORD}" in shown
        assert WORD in driver.find_element("css selector", ".confusion").text
        assert '"onload="alert(5)".npz' in driver.find_element("css selector", "#making pre").text
        return
    legend = driver.find_element("css selector", ".readout button").text
    assert heading == legend == EVIL.strip()


def test_foreign_scripts_and_connections_are_refused(browse, files):
    driver = browse(files.train, silent=False)
    assert driver.execute_script(INSERT), "the policy let a script run"
    assert driver.execute_async_script(FETCH) == "refused"
    assert requests(driver) == [files.train]


def resize(driver, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.refresh()


@pytest.mark.parametrize("name", ["train", "compare"])
def test_nothing_is_wider_than_a_narrow_screen(browse, files, name):
    driver = browse(getattr(files, name))
    resize(driver, 390)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
    assert driver.execute_script(DRAWN) > 1_000
    cues = driver.execute_script(CUES)
    assert set(cues) == {4}, "a table that scrolls has shades at its edges"


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["train", "compare"])
def test_labels_at_curves_cover_no_ticks_and_not_each_other(browse, files, name, width):
    driver = browse(getattr(files, name))
    resize(driver, width)
    found = driver.execute_script(BOXES)
    assert len(found[0]) == {"train": 3, "compare": 5}[name], "curves and tol"
    check_boxes(*found)
    choose(driver, "axis-x", "iteration")
    choose(driver, "axis-y", "objective")  # where all curves end at the same height
    check_boxes(*driver.execute_script(BOXES))


def check_boxes(labels, plot, chart):
    for k, (left, top, right, bottom) in enumerate(labels):
        assert left >= plot[0]
        assert bottom <= plot[3] + 1, "on the ticks below"
        assert right <= chart[2] + 1
        assert top >= chart[1]
        for other in labels[:k]:
            beside = right <= other[0] or other[2] <= left
            assert beside or bottom <= other[1] + 1.5 or other[3] <= top + 1.5


def test_two_columns_on_a_wide_screen_and_one_on_a_phone(browse, files):
    driver = browse(files.train)
    for width, columns in ((1400, 2), (390, 1)):
        resize(driver, width)
        first, second = (driver.find_element("id", each).rect for each in ("convergence", "model"))
        assert (first["y"] == second["y"]) == (columns == 2)
        assert second["x"] >= (first["x"] + first["width"] if columns == 2 else 0)


def test_a_dark_page_is_dark_and_its_chart_too(browse, files):
    driver = browse(files.train)
    light = driver.execute_script(PICTURE)
    media(driver, prefers_color_scheme="dark")
    background = "return getComputedStyle(document.body).backgroundColor;"
    assert driver.execute_script(background) == "rgb(20, 23, 28)"
    assert until(driver, lambda: driver.execute_script(PICTURE) != light)


def test_paper_gets_the_still_picture(browse, files):
    driver = browse(files.train)
    media(driver, media="print")
    assert driver.execute_script(SHOWN, "#chart-still")
    assert not driver.execute_script(SHOWN, "#chart")


def test_without_scripts_tables_and_pictures_are_there(browse, files):
    driver = browse(files.train)
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.refresh()
        assert driver.find_element("css selector", "#chart-still svg.chart").size["width"] > 500
        assert driver.find_element("css selector", "#parameters table").size["height"] > 100
        assert driver.find_elements("css selector", "#chart canvas") == []
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
