"""The documentation's site: examples of its guides, and, of one that is built, links, names, and what a browser shows.

``make test-docs`` builds it and runs all of this; without ``--site FOLDER`` only what needs no site is run.
"""

from __future__ import annotations

import doctest
import json
import re
import shlex
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlparse

import pytest

import anydml
import pydirectml
from anydml import FeatureLevel, bench
from anydml.bench.report import as_json
from anydml.cli import pages
from anydml.functions import ALIASES, FUNCTIONS
from anydml.operators import OPERATORS, spec

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs" / "site" / "guides").glob("*.md"))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NEEDS = {"pytorch": ("torch",), "onnxruntime": ("onnx", "onnxruntime")}
"""What a guide's examples cannot do without."""

PHONE, DESKTOP = (360, 740), (1200, 900)


# The guides


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_guides(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anydml_: Any) -> None:
    """Sessions of Python, and commands with what they print."""
    for name in NEEDS.get(path.stem, ()):
        pytest.importorskip(name)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert result.failed == 0
    checker = doctest.OutputChecker()
    commands = re.findall(r"^\$ anydml (.*)\n((?:(?!\$ |```).*\n)*)", path.read_text(), re.MULTILINE)
    for line, expected in commands:
        _, printed, told = anydml_(*shlex.split(line))
        assert checker.check_output(expected, printed + told, FLAGS), f"{line}\n{printed}{told}"
    assert result.attempted + len(commands) > 0 or path.stem == "index"


def test_what_the_site_tells_of_onnx_and_webnn_is_of_operators_that_there_are() -> None:
    record = json.loads((ROOT / "tools" / "reference" / "lowered.json").read_text())
    lowering = pytest.importorskip("anydml.frontends.onnx.lowering", reason="onnx is not installed")
    assert set(record["onnx"]) <= set(lowering.LOWERINGS)
    named = {each for ways in record.values() for way in ways.values() for kind in way.values() for each in kind}
    assert named <= set(OPERATORS)
    assert record["onnx"]["Conv"]["alone"] == ["CONVOLUTION"]


def test_operators_of_onnx_become_what_is_recorded() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from anydml.onnx import InferenceSession

    record = json.loads((ROOT / "tools" / "reference" / "lowered.json").read_text())["onnx"]
    for op in ("Abs", "Relu", "Sigmoid", "Sqrt", "Softmax", "Erf", "Tanh", "Not"):
        kind = "bool" if op == "Not" else "float"
        session = InferenceSession(
            onnx.parser.parse_model(
                f'<ir_version: 9, opset_import: ["": 18]> g ({kind}[2, 3] x) => ({kind}[2, 3] y) {{ y = {op}(x) }}'
            )
        )
        (report,) = session.reports()
        assert {*report.operators} <= {*record[op]["alone"]}, op


# What was measured


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return import_module("reference.results")


def test_recorded_results_are_read(results: Any) -> None:
    """Of a page every row, of a chart every line."""
    found = {run.path.name: run for run in results.runs(ROOT / "docs")}
    page = (ROOT / "docs" / "gpu.txt").read_text()
    assert len(found["gpu.txt"].rows) == len(
        re.findall(r"^  (?:u?int|float)\d+ .* (?:ok|MISS|BEATEN) ", page, re.MULTILINE)
    )
    assert found["gpu.txt"].on_gpu
    chart = found["bench.svg"]
    assert not chart.on_gpu
    drawn = (ROOT / "docs" / "bench.svg").read_text()
    assert len(chart.rows) == drawn.count('<g id="ytick_')
    for row in chart.rows:
        assert row.limit is None or row.limit == pytest.approx(round(row.limit, 2), abs=1e-3)
        for who, ratio in {"anydml": row.ratio, **row.peers}.items():
            low, high = row.spans[who]
            assert low <= ratio * 1.001
            assert ratio <= high * 1.001


def test_results_as_json_are_read(results: Any, tmp_path: Path) -> None:
    row = bench.Row(
        "ELEMENT_WISE", "floats", "SIN, 4 rows", "float32", 1 << 20, 2, 1.5, peers={"numpy": 3.0, "torch": 2.0}
    )
    row.seconds, row.ratio = 0.002, 1.75
    header = {"processor": "A", "threads": 2, "system": "B", "python": "3", "anydml": "0", "device": "cpu", "peers": {}}
    (tmp_path / "bench.json").write_text(as_json(bench.Result(header, [row])))
    (run,) = results.runs(tmp_path)
    (read,) = run.rows
    assert read.operators == ["ELEMENT_WISE_SIN"]
    assert (read.size, read.time, read.ratio, read.limit) == ("1 MiB, 2 threads", "2.00 ms", 1.75, 1.5)
    assert (read.best_peer, read.verdict) == (("torch", 2.0), "MISS")
    assert results.rows_of("ELEMENT_WISE_SIN", [run]) == [(run, [read])]
    assert results.rows_of("ELEMENT_WISE_COS", [run]) == []


# The site that was built


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Path:
    given = request.config.getoption("--site")
    if given is None:
        pytest.skip("no site is given by --site: make test-docs builds one")
    folder = Path(given).resolve()
    assert (folder / "index.html").exists(), folder
    return folder


@dataclass
class Page(HTMLParser):
    """What a page links to, what it loads, and what in it can be linked to."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("img", "script", "iframe", "source", "video") and "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "author", "copyright", "license"):
            self.loads.append(given["href"])


@cache
def parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def html_pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_links_lead_somewhere(site: Path) -> None:
    """To pages, to places in them, and to files, all within the site; others' addresses are not looked at."""
    broken = []
    for path in html_pages(site):
        for link in parsed(path).links + parsed(path).loads:
            if urlparse(link).scheme or link in ("#", ""):
                continue
            file, _, anchor = link.partition("#")
            file = unquote(file.partition("?")[0])
            target = (path.parent / file).resolve() if file else path
            is_place = target.is_file() and (
                not anchor or target.suffix != ".html" or unquote(anchor) in parsed(target).ids
            )
            if not is_place:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    foreign = [
        f"{path.relative_to(site)}: {each}"
        for path in html_pages(site)
        for each in parsed(path).loads
        if urlparse(each).netloc
    ]
    for path in site.rglob("*.css"):
        text = path.read_text(errors="replace")
        foreign += re.findall(r"""url\(["']?(?:https?:)?//[^)]*|@import\s+["'](?:https?:)?//[^;]*""", text)
    assert foreign == []


def test_every_operator_has_its_page(site: Path) -> None:
    index = (site / "operators" / "index.html").read_text()
    for name in OPERATORS:
        found = spec(name)
        text = (site / "operators" / f"{name.lower()}.html").read_text()
        ids = parsed(site / "operators" / f"{name.lower()}.html").ids
        _, sections = pages.docstring(found.desc)
        assert {label.lower() for label in sections["Constraints"]} <= ids, name
        assert f"anydml.{found.desc.__name__}" in ids, name
        levels = {f"level-{level.number.replace('.', '-')}" for level, _ in found.support.levels}
        assert levels <= ids, name
        assert '<figure class="picture"><svg' in text, name
        assert {"as-a-function", "as-a-desc", "constraints", "engines", "measured", "onnx-and-webnn"} <= ids, name
        assert f'href="{name.lower()}.html"' in index, name


def test_every_public_name_has_an_entry(site: Path) -> None:
    sphinx = pytest.importorskip("sphinx.util.inventory")
    with (site / "objects.inv").open("rb") as file:
        inventory = sphinx.InventoryFile.load(file, "", urljoin)
    names = {name for kind in inventory.values() for name in kind}
    import anydml.onnx

    wanted = {f"anydml.{name}" for name in (*anydml.__all__, *FUNCTIONS, *ALIASES)}
    wanted |= {f"anydml.onnx.{name}" for name in anydml.onnx.__all__}
    own = [
        name for name, value in vars(pydirectml).items() if getattr(value, "__module__", "").startswith("pydirectml")
    ]
    wanted |= {f"pydirectml.{name}" for name in own if not name.startswith("_")}
    for kind in (anydml.Device, anydml.Graph, anydml.CompiledOperator, anydml.PackedArray, anydml.BindingTable):
        wanted |= {
            f"anydml.{kind.__name__}.{each}" for each in vars(kind) if callable(getattr(kind, each)) and each[0] != "_"
        }
    assert sorted(wanted - names) == []


def test_examples_of_operators_print_what_their_pages_say(site: Path) -> None:
    sources = site.parent / "source" / "operators"
    runner = doctest.DocTestRunner(verbose=False)
    for path in sorted(sources.glob("*.md")):
        # Of a page each block is a session of its own; functions' begin with nothing imported.
        for i, block in enumerate(re.findall(r"```pycon\n(.*?)```", path.read_text(), re.DOTALL)):
            names = {"np": __import__("numpy"), **{each: getattr(anydml, each) for each in (*FUNCTIONS, *ALIASES)}}
            names |= {each: getattr(anydml, each) for each in anydml.__all__} | {"anydml": anydml}
            # Between the planes of an array there is a line of nothing, which ends what is expected elsewhere.
            whole = re.sub(r"\n(?=\n)", "\n<BLANKLINE>", block)
            test = doctest.DocTestParser().get_doctest(whole, names, f"{path.stem}-{i}", str(path), 0)
            assert runner.run(test).failed == 0, path


# In a browser


@dataclass(frozen=True)
class Browser:
    driver: Any
    address: str
    wait: Any

    def open(self, page: str, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> None:
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        # From nowhere, and until it is whole: that of before, whose script changes its address, is not taken for it.
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}/{page}")
        path = f"/{page.partition('?')[0]}"
        script = "return document.readyState === 'complete' && location.pathname === arguments[0]"
        self.wait(self.driver, 60).until(lambda driver: driver.execute_script(script, path))

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def complaints(self) -> list[str]:
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *given: Any) -> None:
        pass


@pytest.fixture(scope="module")
def browser(site: Path) -> Iterator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no chromium with its chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for each in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        wait = import_module("selenium.webdriver.support.ui").WebDriverWait
        yield Browser(opened, f"http://127.0.0.1:{server.server_port}", wait)
    finally:
        opened.quit()
        server.shutdown()


SHOWN = """
    const form = document.getElementById("filter");
    form.reset();
    for (const [name, value] of Object.entries(arguments[0])) form.elements[name].value = value;
    form.dispatchEvent(new Event("input", {bubbles: true}));
    return [...document.querySelectorAll("#every-operator tbody tr")]
        .filter((row) => row.offsetParent !== null).map((row) => row.dataset.name);
"""


def test_the_filter_finds(browser: Browser) -> None:
    browser.open("operators/index.html")

    def shown(**chosen: str) -> set[str]:
        return set(browser.run(SHOWN, chosen))

    assert shown() == set(OPERATORS)
    assert {"CONVOLUTION", "CONVOLUTION_INTEGER"} <= shown(words="convol") < set(OPERATORS)
    pooling = {name for name in OPERATORS if "POOLING" in name}
    assert {"MAX_POOLING", "MAX_POOLING2"} <= shown(words="max pooling") < pooling
    assert shown(family="recurrent") == {"RNN", "LSTM", "GRU"}
    assert shown(level="1.0") == {n for n in OPERATORS if spec(n).support.introduced == FeatureLevel.LEVEL_1_0}
    packed = {n for n in OPERATORS if any(e.bits == 4 for row in spec(n).tensors.values() for e in row.data_types)}
    assert shown(type="INT4") == packed
    assert shown(type="INT4", level="6.2") == set()
    assert shown(words="int4") >= packed
    assert shown(engine="native") == set(OPERATORS)
    assert "JOIN" in shown(engine="triton")
    assert shown(words="there is no such operator") == set()
    assert browser.run("return document.getElementById('nothing').offsetParent !== null")


def test_the_filter_as_one_types_and_by_its_address(browser: Browser) -> None:
    from selenium.webdriver.common.by import By

    browser.open("operators/index.html")
    browser.driver.find_element(By.CSS_SELECTOR, "#filter [name=words]").send_keys("gather")
    visible = "return [...document.querySelectorAll('#every-operator tbody tr')].filter((r) => r.offsetParent).length"
    few = browser.run(visible)
    assert 0 < few < 20
    assert browser.driver.current_url.endswith("?words=gather")
    browser.open("operators/index.html?words=gather&type=INT8")
    assert 0 < browser.run(visible) <= few
    browser.driver.find_element(By.CSS_SELECTOR, "#filter button[type=reset]").click()
    browser.driver.find_element(By.CSS_SELECTOR, "#filter [name=words]").send_keys(" ")
    assert browser.run(visible) == len(OPERATORS)


OVERFLOWING = """
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.body.querySelectorAll("*")].filter((each) => each.getBoundingClientRect().right > width + 1)
        .map((each) => each.outerHTML.slice(0, 120));
"""


def test_nothing_overflows_and_nothing_complains(browser: Browser, site: Path) -> None:
    """Pages on a phone, of operators the longest of each family; and what they load comes from the site."""
    others = [path for path in html_pages(site) if path.parent.name != "operators"]
    families: dict[str, list[Path]] = {}
    for name, op in OPERATORS.items():
        families.setdefault(op.family, []).append(site / "operators" / f"{name.lower()}.html")
    longest = [max(paths, key=lambda path: path.stat().st_size) for paths in families.values()]
    wrong = []
    for path in [*others, site / "operators" / "index.html", *longest]:
        page = path.relative_to(site).as_posix()
        browser.open(page, PHONE)
        wrong += [f"{page} overflows: {each}" for each in browser.run(OVERFLOWING)[:1]]
        loaded = browser.run("return performance.getEntriesByType('resource').map((each) => each.name)")
        wrong += [f"{page} loads {each}" for each in loaded if not each.startswith((browser.address, "data:"))]
        wrong += [f"{page}: {each}" for each in browser.complaints()]
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index", "operators/join", "guides/numpy", "benchmarks"])
def test_schemes(browser: Browser, page: str, scheme: str) -> None:
    """Text and what is behind it are as far apart as they have to be to be read; so are those of pictures."""
    browser.open(f"{page}.html", scheme=scheme)
    assert browser.run("return document.documentElement.dataset.theme") == scheme
    colours = browser.run(
        """
        const shade = (value) => value.match(/[\\d.]+/g).slice(0, 3).reduce((sum, each) => sum + Number(each), 0) / 765;
        const style = (each) => getComputedStyle(each);
        const found = [[shade(style(document.body).color), shade(style(document.body).backgroundColor)]];
        const picture = document.querySelector("figure.picture svg");
        if (picture) found.push([shade(style(picture.querySelector("text")).fill),
                                 shade(style(picture.querySelector("rect")).fill)]);
        const chart = document.querySelector("figure.chart text");
        if (chart) found.push([shade(style(chart).fill), shade(style(document.body).backgroundColor)]);
        return found;
        """
    )
    for text, ground in colours:
        assert (text > ground) is (scheme == "dark")
        assert abs(text - ground) > 0.5


def test_charts_tell_what_one_points_at(browser: Browser) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    browser.open("benchmarks.html")
    chart = browser.driver.find_element(By.CSS_SELECTOR, "figure.chart")
    point = chart.find_element(By.CSS_SELECTOR, ".point.ours circle")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", point)
    ActionChains(browser.driver).move_to_element(point).perform()
    told = chart.find_element(By.CSS_SELECTOR, ".chart-value").text
    assert re.search(r"times as long as a copy|the limit is", told)
    titles = [each.get_attribute("textContent") for each in chart.find_elements(By.CSS_SELECTOR, ".point title")]
    assert told in titles
    # Names stand left of the axis, whole.
    cut = "[...document.querySelectorAll('figure.chart text.case')].filter((each) => each.getBBox().x < 0)"
    assert browser.run(f"return {cut}.map((each) => each.textContent)") == []
