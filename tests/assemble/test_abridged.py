"""Of more devices than tables hold those that stand out keep their rows, and sums stay what they
are."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from builders_pod import DEVICES, host_name, write_pod
from marin_profile.assemble import abridged
from marin_profile.capture.sources import resolve
from marin_profile.comparison import compare
from marin_profile.facts.device_time import device_times, headline_time, left_out_of
from marin_profile.facts.waits import communication_wait
from marin_profile.pipeline import summarize_capture
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown
from marin_profile.schema import REMAINDER, ProfileSummary, parse_summary, straggler_names
from marin_profile.verdict.inputs import capture_series

HOSTS, LATE = 6, (4, 1)
ROWS = 5


@pytest.fixture(scope="module")
def pod(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("pod")
    write_pod(root, HOSTS, steps=6, late=LATE)
    return root


def summarised(pod: Path) -> ProfileSummary:
    """As it is read from its file, rounded."""
    made = summarize_capture(resolve(profile_dir=str(pod))[0])
    return parse_summary(made.to_json().encode(), path="made")


@pytest.fixture(scope="module")
def whole(pod) -> ProfileSummary:
    return summarised(pod)


@pytest.fixture(scope="module")
def short(pod) -> ProfileSummary:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(abridged, "MOST_DEVICES", ROWS)
        patch.setattr(abridged, "MOST_HOSTS", 2)
        patch.setattr(abridged, "OF_EACH_END", 1)
        return summarised(pod)


def test_a_capture_of_few_devices_is_whole(whole):
    assert (whole.abridged, whole.device_quantiles) == ([], [])
    assert len(whole.device_ledger) == 2 * HOSTS * DEVICES
    assert {row.devices for row in (*whole.device_ledger, *whole.stragglers)} == {1}


def test_what_is_left_out_is_said(short, whole):
    assert {one.list_name: (one.rows, one.rows_left_out) for one in short.abridged} == {
        "device_ledger": (ROWS, HOSTS * DEVICES - ROWS),
        "stragglers": (ROWS, HOSTS * DEVICES - ROWS),
        "host_activity": (2, HOSTS - 2),
    }
    assert left_out_of(short, "device_ledger") == HOSTS * DEVICES - ROWS
    [note, *_] = set(short.trace_overview.quality_warnings) - set(
        whole.trace_overview.quality_warnings
    ) & {one for one in short.trace_overview.quality_warnings if "device_ledger" in one}
    assert note.startswith("device_ledger holds 5 of 24 rows: ")
    assert short.trace_overview.doubts == whole.trace_overview.doubts


def test_those_that_stand_out_have_rows(short, whole):
    late = (host_name(LATE[0]), f"/device:TPU:{LATE[1]}")
    assert late in {(row.host, row.device) for row in short.device_ledger}
    named = {(row.host, row.device): row for row in short.device_ledger if row.window == "steady"}
    for row in whole.device_ledger:
        if row.window == "steady" and (row.host, row.device) in named:
            assert named[row.host, row.device] == row
    assert straggler_names(short.stragglers, short.straggler_hosts) == [" ".join(late)]
    rows = [row for row in short.stragglers if row.device != REMAINDER]
    assert [row for row in whole.stragglers if row in rows] == rows


def test_sums_are_those_of_all_devices(short, whole):
    for window in ("steady", "capture"):
        [one], [other] = device_times(short, window), device_times(whole, window)
        assert one.devices == HOSTS * DEVICES
        assert one == other
    waits, of_all = communication_wait(short), communication_wait(whole)
    assert waits is not None
    assert waits == of_all
    assert short.step_account == whole.step_account
    assert short.time_breakdown == whole.time_breakdown


def test_quantiles_are_of_all_devices(short, whole):
    [found] = [
        row
        for row in short.device_quantiles
        if (row.kind, row.window, row.term) == ("tpu", "steady", "compute")
    ]
    times = [row.compute_duration for row in whole.device_ledger if row.window == "steady"]
    assert (found.devices, found.min, found.max) == (HOSTS * DEVICES, min(times), max(times))
    assert found.median == pytest.approx(median(times))
    assert found.min <= found.p10 <= found.median <= found.p90 <= found.max


def test_views_count_all_devices(short, whole):
    told = answer(short, "device ledger")
    assert [row["record"] for row in told["results"]] == ["total"] + ["device"] * ROWS
    assert told["results"][0]["devices"] == HOSTS * DEVICES
    assert told["note"].startswith("19 devices have no row of their own")
    rows = answer(short, "which device is slow?")["results"]
    assert REMAINDER not in {row.get("device") for row in rows}
    text = render_markdown(short)
    assert f"{HOSTS * DEVICES} devices, the most idle first" in text
    assert "19 devices left out." in text
    assert answer(short, "how many launches are there?")["results"][0].get("launches") is None
    assert headline_time(short).devices == HOSTS * DEVICES
    short_series, series = capture_series(short, "period"), capture_series(whole, "period")
    assert list(short_series.idle) == pytest.approx(list(series.idle))


def test_devices_are_not_compared_one_by_one(short, whole):
    found = compare(whole, short)
    assert found.devices == []
    said = [one.sentence for one in found.comparability.caveats if one.about == "devices"]
    assert said == [
        "Devices are not compared one by one: 19 of the after capture have no row of their own."
    ]
