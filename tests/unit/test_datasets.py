import bz2
import contextlib
import hashlib
import json
import os
import threading
from dataclasses import FrozenInstanceError
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from adfs.data.datasets import DATASETS, available, cache_folder, load, locate
from adfs.errors import DataError

DATA = os.environ.get("ADFS_DATA", "")
A9A = b"-1 3:1 11:1\n+1 2:1 123:1\n" * 50_000
LATE = "a9a.t"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty cache, no data folder, and no proxy between us and the local server."""
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADFS_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path


@pytest.fixture
def server():
    """A site on this machine: ``files`` by path, ``asked`` the requests, ``promise`` the length."""
    site = SimpleNamespace(files={"/a9a": A9A}, asked=[], promise=len, pause=None)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            site.asked.append(self.path)
            if site.pause:
                site.pause.wait(10)
            body = site.files.get(self.path)
            if body is None:
                return self.send_error(404)
            self.send_response(200)
            if site.promise:
                self.send_header("Content-Length", str(site.promise(body)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # the client may have given up
                self.wfile.write(body)
            return None

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{httpd.server_port}"
    yield site
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def cached():
    return sorted(path.name for path in cache_folder().iterdir())


def test_a_download_arrives_whole_and_is_not_asked_for_twice(server):
    path = locate("a9a", base_url=server.url)
    assert path == cache_folder() / "a9a"
    assert path.read_bytes() == A9A
    assert cached() == ["a9a", "checksums.json"]
    assert locate("a9a", base_url=server.url) == path
    assert server.asked == ["/a9a"]


def test_the_first_download_records_its_checksum(server):
    locate("a9a", base_url=server.url + "/")
    recorded = json.loads((cache_folder() / "checksums.json").read_text())
    assert recorded == {"a9a": hashlib.sha256(A9A).hexdigest()}


def test_progress_counts_up_to_the_total(server):
    steps = []
    locate("a9a", base_url=server.url, progress=lambda *step: steps.append(step))
    assert len(steps) > 2
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1] == (len(A9A), len(A9A))
    assert {total for _, total in steps} == {len(A9A)}


def test_an_answer_without_length_has_no_total(server):
    server.promise = None
    steps = []
    path = locate("a9a", base_url=server.url, progress=lambda *step: steps.append(step))
    assert path.read_bytes() == A9A
    assert steps[-1] == (len(A9A), None)


def test_a_truncated_answer_is_refused_and_leaves_nothing(server):
    server.promise = lambda body: len(body) + 1000
    with pytest.raises(DataError, match=rf"/a9a must .*{len(A9A)}"):
        locate("a9a", base_url=server.url)
    assert cached() == []
    server.promise = len
    assert locate("a9a", base_url=server.url).exists(), "the next attempt is free"


def test_a_corrupted_answer_differs_from_the_recorded_checksum(server):
    locate("a9a", base_url=server.url).unlink()
    server.files["/a9a"] = A9A.replace(b"+1", b"-1", 1)
    with pytest.raises(
        DataError, match=r"a9a must have the SHA-256 .*, but has .* --forget a9a` to fetch"
    ):
        locate("a9a", base_url=server.url)
    assert cached() == ["checksums.json"]


def test_a_file_damaged_in_the_cache_is_noticed(server):
    path = locate("a9a", base_url=server.url)
    path.write_bytes(A9A[:-20])
    with pytest.raises(DataError, match=r"a9a must have the SHA-256 .* --forget a9a`"):
        locate("a9a", base_url=server.url)


def test_a_missing_page_is_refused_and_leaves_nothing(server):
    with pytest.raises(DataError, match=r"a9a\.t must be downloaded .*HTTP Error 404.*ADFS_DATA"):
        locate(LATE, base_url=server.url)
    assert cached() == []


LATE_FAULT = A9A * 3 + b"oops\n"  # some megabytes after the beginning
PAGES = [b"<html>please log in</html>", b"\0\1\2", A9A[:1000] + b"oops\n", b"", b"\n# moved\n",
         LATE_FAULT, b"1 124:1\n"]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=range(len(PAGES)))
def test_an_answer_that_is_no_data_is_refused_and_not_recorded(server, page):
    server.files["/a9a"] = page
    with pytest.raises(DataError, match="/a9a must send LIBSVM data, but: the answer"):
        locate("a9a", base_url=server.url)
    assert cached() == []
    server.files["/a9a"] = A9A
    assert locate("a9a", base_url=server.url).read_bytes() == A9A, "a good answer is taken later"


@pytest.mark.parametrize("length", ["-1", "-50", "many", "\xb2", "1e3", "5, 5", "9" * 5000, ""])
def test_a_length_that_is_none_is_refused_and_leaves_nothing(server, length):
    server.promise = lambda body: length
    with pytest.raises(DataError, match="must say how many bytes it sends, but its Content-Length"):
        locate("a9a", base_url=server.url)
    assert cached() == []


def test_a_web_page_in_place_of_a_compressed_file_is_refused(server):
    server.files["/rcv1_train.binary.bz2"] = b"1 1:1\n"
    with pytest.raises(
        DataError, match="data, but: the answer must hold bz2 data, as its suffix says"
    ):
        locate("rcv1", base_url=server.url)
    assert cached() == []


def test_a_compressed_download_is_loaded(server):
    server.files["/rcv1_train.binary.bz2"] = bz2.compress(b"1 1:1\n-1 47236:0.5\n")
    X, y = load("rcv1", base_url=server.url)
    assert X.shape == (2, 47_236)
    assert y.tolist() == [1, -1]


def test_no_network_is_one_sentence():
    with pytest.raises(
        DataError, match=r"must be downloaded .* but: .*refused.*; try again, or put"
    ):
        locate("a9a", base_url="http://127.0.0.1:9")
    assert cached() == []


def test_a_site_that_does_not_answer_is_given_up(server):
    server.pause = threading.Event()
    with pytest.raises(DataError, match=r"must be downloaded .* but: .*timed out"):
        locate("a9a", base_url=server.url, timeout=0.2)
    server.pause.set()
    assert cached() == []


def test_an_interrupted_download_leaves_nothing(server):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        locate("a9a", base_url=server.url, progress=interrupt)
    assert cached() == []


def test_a_cache_that_cannot_be_made_is_one_sentence(home, server, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("ADFS_CACHE", str(home / "file"))
    with pytest.raises(DataError, match=r"a9a must be downloaded to .*file, but: .*File exists"):
        locate("a9a", base_url=server.url)


def test_a_broken_list_of_checksums_is_one_sentence(server):
    locate("a9a", base_url=server.url)
    (cache_folder() / "checksums.json").write_text("{")
    with pytest.raises(
        DataError, match=r"checksums.json must be a JSON object of checksums.* --forget a9a`"
    ):
        locate("a9a", base_url=server.url)


def test_the_data_folder_comes_first_and_asks_nobody(home, server, monkeypatch):
    locate("a9a", base_url=server.url)
    folder = home / "data"
    folder.mkdir()
    (folder / "a9a.bz2").write_bytes(bz2.compress(b"1 5:1\n"))
    monkeypatch.setenv("ADFS_DATA", str(folder))
    assert locate("a9a") == folder / "a9a.bz2"
    assert load("a9a").X.shape == (1, 123), "as wide as the set, not as its widest row"


def test_the_whole_of_higgs_is_preferred_to_a_part(home, monkeypatch):
    monkeypatch.setenv("ADFS_DATA", str(home))
    (home / "HIGGS.57594.xz").touch()
    assert locate("higgs").name == "HIGGS.57594.xz"
    (home / "HIGGS.xz").touch()
    assert locate("higgs").name == "HIGGS.xz"


def test_a_data_folder_that_is_none_is_refused(home, monkeypatch):
    monkeypatch.setenv("ADFS_DATA", str(home / "nowhere"))
    with pytest.raises(DataError, match=r"ADFS_DATA=.*nowhere must be a folder; correct or unset"):
        locate("a9a")
    monkeypatch.setenv("ADFS_DATA", "")
    assert all(path is None for _, path in available())


def test_a_set_without_a_site_asks_for_the_file():
    with pytest.raises(DataError, match=r"reuters-money-fx must be on disk.*ADFS_DATA"):
        locate("reuters-money-fx")


@pytest.mark.parametrize("name", ["breast-cancer", "diabetes"])
def test_what_scikit_learn_ships_is_made_in_the_cache_without_a_network(name, monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", None)  # any use of it would raise
    X, y = load(name)
    bunch = getattr(sklearn.datasets, "load_" + name.replace("-", "_"))()
    assert X.shape == bunch.data.shape == (DATASETS[name].n_samples, DATASETS[name].n_features)
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    for k in range(X.shape[1]):  # the same columns up to their scale
        assert np.corrcoef(dense[:, k], bunch.data[:, k])[0, 1] == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(dense.std(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(dense.mean(axis=0), 0.0, atol=1e-12)
    assert np.corrcoef(y, bunch.target)[0, 1] == pytest.approx(1.0, abs=1e-12)
    before = locate(name).stat().st_mtime_ns
    assert locate(name).stat().st_mtime_ns == before  # made once


def test_a_bundled_set_that_was_damaged_in_the_cache_is_told():
    locate("breast-cancer").write_text("1 1:2\n")
    with pytest.raises(DataError, match=r"breast-cancer must have the SHA-256 .* --forget"):
        locate("breast-cancer")


def test_a_cache_that_cannot_be_written_is_a_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match=r"diabetes must be written to .*cache.*ADFS_CACHE\."):
        load("diabetes")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        DataError, match=r"'a9b' must be a known data set; take one of covtype, hig"
    ):
        locate("a9b")


def test_available_tells_where_each_set_lies(server):
    path = locate("a9a", base_url=server.url)
    assert {dataset.name: where for dataset, where in available()} == {
        name: path if name == "a9a" else None for name in DATASETS
    }


def test_the_cache_follows_the_environment(monkeypatch):
    monkeypatch.delenv("ADFS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/tmp/xdg")
    assert cache_folder() == Path("/tmp/xdg/adfs")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "adfs"


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError, match="does not support item assignment"):
        DATASETS["mine"] = DATASETS["a9a"]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field"):
        DATASETS["a9a"].n_samples = 3


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=list(DATASETS))
def test_what_is_downloaded_is_what_is_looked_for(dataset):
    assert dataset.task in ("binary", "regression")
    if dataset.url:
        assert dataset.url.rpartition("/")[2] in dataset.files
        assert f"/{dataset.task}/" in dataset.url


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["a9a", "a9a.t", "mushrooms", "abalone", "reuters-money-fx"])
def test_real_sets_have_the_registered_shape(name, monkeypatch):
    if not DATA or not any(Path(DATA, file).exists() for file in DATASETS[name].files):
        pytest.skip(f"{name} is not in the folder ADFS_DATA={DATA!r}")
    monkeypatch.setenv("ADFS_DATA", DATA)
    X, y = load(name)
    assert X.shape == (DATASETS[name].n_samples, DATASETS[name].n_features)
    assert (len(np.unique(y)) == 2) == (DATASETS[name].task == "binary")
