"""Real traces, against the json module and known totals."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from builders_json import names
from marin_profile.base.errors import BrokenInputError
from marin_profile.events.timeline import Timeline
from marin_profile.readers.trace_json import read_trace_json

pytestmark = pytest.mark.usefixtures("loops")

V6E = "tpu_v6e_4dev/plugins/profile/2025_03_11_00_00_00"


def load(path: Path) -> Timeline:
    with path.open("rb") as stream:
        return read_trace_json(stream, path=str(path))


def test_every_real_trace_is_read_as_the_json_module_reads_it(traces: Path) -> None:
    paths = sorted(traces.glob("*/plugins/profile/*/*.json.gz"))
    assert paths
    for path in paths:
        raw = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
        complete = [one for one in raw if one.get("ph") == "X"]
        timeline = load(path)
        assert not timeline.dropped
        assert not timeline.notes
        assert timeline.num_events == len(complete)
        assert Counter(names(timeline)) == Counter(one["name"] for one in complete)
        ps = [round(one["dur"] * 10**6) for one in complete]
        assert timeline.duration.sum() == sum(one for one in ps if one != 1)
        origin = min(one["ts"] for one in complete)
        assert timeline.start.sum() == sum(
            round((one["ts"]) * 10**6) - round(origin * 10**6) for one in complete
        )
        for key in ("run_id", "device_duration_ps", "device_ordinal", "correlation_id"):
            column = getattr(timeline, key.removesuffix("_ps"))
            assert column.values.sum() == sum(
                int(one["args"][key]) for one in complete if key in one.get("args", {})
            )


def test_v6e_ops(traces: Path) -> None:
    timeline = load(traces / V6E / "host0.trace.json.gz")
    assert timeline.num_events == 25_217
    ops = {
        timeline.planes[line.plane].name: line.count
        for line in timeline.lines
        if line.name == "XLA Ops"
    }
    assert ops == {f"/device:TPU:{at}": 1504 - (at > 0) for at in range(4)}
    copies = [at for at, op in enumerate(timeline.ops) if op.name == "copy-done.4"]
    rows = np.flatnonzero(np.isin(timeline.op, copies))
    has, duration = timeline.device_duration.find(rows)
    assert len(rows) == 400
    assert has.all()
    assert duration.sum() == 77_773_215_731_250


def test_both_json_files_of_a_capture_are_alike(traces: Path) -> None:
    first = load(traces / V6E / "host0.trace.json.gz")
    second = load(traces / V6E / "perfetto_trace.json.gz")
    assert first.ops == second.ops
    assert first.lines == second.lines
    assert (first.start == second.start).all()
    assert (first.duration == second.duration).all()


def test_collectives_of_the_cpu_capture(traces: Path) -> None:
    (path,) = (traces / "cpu_8dev").glob("plugins/profile/*/cpu8.trace.json.gz")
    timeline = load(path)
    ops = [at for at, op in enumerate(timeline.ops) if op.hlo_op == "psum_invariant.7"]
    total = timeline.duration[np.isin(timeline.op, ops)].sum()
    assert round(total / 10**5) == 13_340_728


def test_foreign_and_derived_files_are_refused_by_name(traces: Path) -> None:
    foreign = sorted((traces / "foreign_pytorch").glob("*.json.gz"))
    derived = sorted((traces / "bad").rglob("*.json"))
    assert foreign
    assert derived
    for path in foreign:
        with pytest.raises(BrokenInputError, match=r"PyTorch \(Kineto\) profile, not a JAX"):
            load(path)
    for path in derived:
        what = "overview_page" if "overview_page" in path.name else "another program"
        with pytest.raises(BrokenInputError, match=what):
            load(path)
    with pytest.raises(BrokenInputError, match="not JSON"):
        load(traces / "bad" / "utf8_damaged.xplane.pb")
