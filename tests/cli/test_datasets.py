"""`adfs datasets`: what it lists and forgets, and the way out of broken checksums."""

import json

import pytest

from adfs.data.datasets import cache_folder, locate

NONSENSE = ["5", "[1, 2]", '{"a9a": 5}', '{"a9a": null}', "{", "", '"text"', "[" * 100_000,
            '{"a9a": ["x"]}', "\0", "9" * 5000]  # fmt: skip


@pytest.fixture
def stored():
    """The cache with a file that was downloaded some time ago, and the sums of two."""
    cache_folder().mkdir()
    (cache_folder() / "a9a").write_text("1 1:1\n-1 2:1\n" * 4)
    sums = cache_folder() / "checksums.json"
    sums.write_text(json.dumps({"a9a": "0" * 64, "mushrooms": "1" * 64}))
    return sums


def refused(outcome, *words):
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


def test_what_is_forgotten_is_gone_with_its_checksum(adfs, stored):
    refused(adfs("train", "a9a"), "must have the SHA-256", "`adfs datasets --forget a9a`")
    outcome = adfs("datasets", "--forget", "a9a")
    assert outcome.code == 0
    assert str(cache_folder() / "a9a") in outcome.out
    assert not (cache_folder() / "a9a").exists()
    assert json.loads(stored.read_text()) == {"mushrooms": "1" * 64}


def test_a_checksum_without_a_file_is_forgotten_too(adfs, stored):
    assert adfs("datasets", "--forget", "mushrooms").code == 0
    assert json.loads(stored.read_text()) == {"a9a": "0" * 64}


@pytest.mark.parametrize("name", ["a9a", "rcv1", "diabetes"])
def test_nothing_to_forget_is_one_sentence(adfs, name):
    refused(adfs("datasets", "--forget", name), name, "has none there", "`adfs datasets`")


def test_a_name_that_is_no_set_cannot_be_forgotten(adfs):
    refused(adfs("datasets", "--forget", "../secret"), "must be a known data set")


def test_the_users_own_folder_is_not_touched(adfs, home, monkeypatch):
    (home / "own").mkdir()
    (home / "own" / "a9a").write_text("1 1:1\n")
    monkeypatch.setenv("ADFS_DATA", str(home / "own"))
    refused(adfs("datasets", "--forget", "a9a"), "has none there")
    assert (home / "own" / "a9a").exists()


@pytest.mark.parametrize("text", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_in_the_checksums_is_one_sentence_with_a_way_out(adfs, stored, text):
    stored.write_text(text)
    refused(adfs("train", "a9a"), "checksums.json must be", "`adfs datasets --forget a9a`")
    assert adfs("datasets", "--forget", "a9a", "--json").code == 0
    assert locate("diabetes").exists(), "the list can be used again"


def test_good_checksums_survive_beside_a_bad_one(adfs, stored):
    stored.write_text(json.dumps({"a9a": 5, "mushrooms": "1" * 64}))
    assert adfs("datasets", "--forget", "a9a").code == 0
    assert json.loads(stored.read_text()) == {"mushrooms": "1" * 64}


def test_what_was_forgotten_is_made_again(adfs):
    first = locate("breast-cancer").read_bytes()
    locate("breast-cancer").write_text("1 1:2\n")
    outcome = adfs("datasets", "--forget", "breast-cancer", "--json")
    assert json.loads(outcome.out)["removed"] == [str(cache_folder() / "breast-cancer")]
    assert locate("breast-cancer").read_bytes() == first


def test_sizes_beside_a_file_are_said_to_be_published(adfs, home, monkeypatch):
    (home / "HIGGS.57594").write_text("1 1:1\n")
    monkeypatch.setenv("ADFS_DATA", str(home))
    rows = {line.split()[0]: line for line in adfs("datasets").out.splitlines()[1:] if line}
    assert "11,000,000 published" in rows["higgs"]
    assert "published" not in rows["covtype"]
    assert json.loads(adfs("datasets", "--json").out)["datasets"][1]["sizes"] == "published"
