"""`adfs train --resume` says where it begins; `--timeline` is checked before any work."""

import json


def test_a_resumed_run_says_where_it_begins(adfs, dense):
    command = ("train", dense[0], "--checkpoint", "kept", "--checkpoint-every", "500", "--resume")
    first = adfs(*command, "--tol", "1e-4", "--json")
    assert first.err.strip() == "kept has no checkpoint yet: starts at 0"
    assert json.loads(first.out)["resumed"] is None
    second = adfs(*command, "--tol", "1e-8", "--json")
    position = json.loads(second.out)["resumed"]
    assert position > 0
    assert position % 500 == 0
    assert second.err.strip() == f"went on from position {position}, kept in kept"


def test_the_summary_of_a_resumed_run_says_so_and_others_do_not(adfs, dense):
    command = ("train", dense[0], "--checkpoint", "kept", "--checkpoint-every", "500")
    first = adfs(*command, "--tol", "1e-4")
    assert (first.err, "resumed" in first.out) == ("", False)
    second = adfs(*command, "--tol", "1e-8", "--resume")
    assert "resumed     went on from position " in second.out


def test_a_timeline_of_ranks_is_refused_before_the_data_is_read(adfs):
    outcome = adfs("train", "no-such-file", "--timeline", "t.json")
    assert outcome.code == 2
    assert "--timeline shows what ranks did, so it needs --engine mpi" in outcome.err
