"""A summary masked: every text but what the format or the run's identity needs."""

from __future__ import annotations

import json

from builders_summary import build_summary
from marin_profile.redact import Redactor, redact_summary
from marin_profile.schema import ProfileSummary, RunMetadata, parse_summary

REDACTOR = Redactor(users=("alice",), hosts=("host0",))


def summary() -> ProfileSummary:
    made = build_summary()
    run = RunMetadata(
        run_path="alice/models/alice-7",
        run_id="alice-7",
        artifact_ref="alice/models/a:v0",
        artifact_name="a:v0",
        hardware_type="alice's TPU",
        mesh_or_topology="of alice",
        config_hash="0123456789abcdef",
    )
    hot = made.hot_ops[0].model_copy(update={"source_file": "/home/carol/m.py:3"})
    extra = {"source_stack": "/srv/m.py:12\n", "by alice": ["/home/carol", {"alice": 1}]}
    read = parse_summary(
        json.dumps({**json.loads(made.to_json()), "site_notes": "", "site_map": {}})
    )
    return read.model_copy(
        update={
            "run_metadata": run,
            "source_path": "plugins/profile/s/host0.xplane.pb",
            "hot_ops": [hot, *made.hot_ops[1:]],
            "site_map": extra,
            "site_notes": "alice was here",
        }
    )


def test_texts_and_keys_are_masked_and_the_runs_identity_stays():
    masked = redact_summary(summary(), REDACTOR)
    run = masked.run_metadata
    assert (run.run_path, run.run_id) == ("alice/models/alice-7", "alice-7")
    assert (run.artifact_ref, run.artifact_name) == ("alice/models/a:v0", "a:v0")
    assert (run.hardware_type, run.mesh_or_topology) == ("xxxxx's TPU", "of xxxxx")
    assert run.config_hash == "0123456789abcdef"
    assert masked.source_path == "plugins/profile/s/axxxx.xplane.pb"
    assert masked.hot_ops[0].source_file == "/home/xxxxx/m.py:3"
    assert (masked.model_extra or {})["site_map"] == {
        "source_stack": "/xxx/x.xx:xx\n",
        "by xxxxx": ["/home/xxxxx", {"xxxxx": 1}],
    }
    assert (masked.model_extra or {})["site_notes"] == "xxxxx was here"
    assert {row.host for row in masked.device_ledger} == {"axxxx"}


def test_numbers_and_the_rest_stay():
    """Every line of the JSON that differs is one that held a secret."""
    before, after = summary().to_json(), redact_summary(summary(), REDACTOR).to_json()
    for old, new in zip(before.splitlines(), after.splitlines(), strict=True):
        secrets = ("alice", "host0", "carol", "/srv/m.py")
        assert old == new or any(secret in old for secret in secrets)


def test_a_masked_summary_is_a_summary_and_masks_to_itself():
    masked = redact_summary(summary(), REDACTOR)
    assert parse_summary(masked.to_json()).to_json() == masked.to_json()
    assert redact_summary(masked, REDACTOR) == masked


def test_nothing_to_mask_changes_nothing():
    assert redact_summary(build_summary(), Redactor()) == build_summary()
