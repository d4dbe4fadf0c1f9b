"""Each check of a capture: its state, its numbers, and what to do."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders_capture import context, leave_capture
from builders_summary import build_summary, no_steps, step_time
from builders_xspace import Space, hlo_proto, summarize_spaces
from marin_profile import summarize
from marin_profile.capture.context import CompileSeconds, Judgement
from marin_profile.facts.health import BAD, OK, UNKNOWN, WARN, Check, health
from marin_profile.schema import (
    Collective,
    Coverage,
    Host,
    HostActivity,
    HostCause,
    ProfileSummary,
    TraceOverview,
    parse_summary,
)


def check(summary: ProfileSummary, name: str) -> Check:
    (found,) = [one for one in health(summary) if one.check == name]
    return found


def tpu_space(steps: int = 6, *, scope: str | None = "jit(f)/mlp/add") -> Space:
    """Steps of 95 us, 100 us apart, with an op of 60 us each."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(steps):
        at = 100 * step
        tpu.step(step, at, 95)
        named: dict[str, Any] = {} if scope is None else {"scope": scope}
        tpu.op("fusion.1", at, 60, category="loop fusion", **named)
    return space.environment(1_700_000_000 * 10**9, 1_700_000_000 * 10**9 + 700_000)


def gpu_space(steps: int = 5) -> Space:
    space = Space()
    gpu, host = space.gpu(0), space.host()
    for step in range(steps):
        host.marker(step, 100 * step, 90)
        gpu.kernel("gemm", 100 * step, 50)
    return space


# --- captures from files -----------------------------------------------------------------------


def test_a_sound_capture(tmp_path: Path) -> None:
    found = summarize_spaces(tmp_path, tpu_space())
    # Nothing but the device's plane: no host tells what it did.
    assert {one.check for one in health(found) if one.state not in (OK, UNKNOWN)} == {"host events"}
    assert check(found, "steps").seen == "6 found, 0 cut, 5 kept; the periods of 4 are known"
    assert check(found, "devices").seen == "1 device, none is empty"
    assert check(found, "whole").state == check(found, "events").state == OK


def test_a_capture_with_its_context(tmp_path: Path) -> None:
    leave_capture(tmp_path)
    found = summarize(tmp_path)
    states = {one.check: one.state for one in health(found)}
    assert BAD not in states.values()
    assert states["hosts"] == states["distortion"] == states["compilation"] == OK
    assert check(found, "hosts").seen == "1 host's file, and no process is missing"
    assert check(found, "distortion").seen == (
        "median profiled step: 1.02 times the median of 9 other steps"
    )
    # The capture's ops have no scope.
    assert check(found, "scopes").state == WARN
    assert "jax.named_scope" in check(found, "scopes").do


def test_what_training_tells_beside_the_capture(tmp_path: Path) -> None:
    told = replace(
        context(count=3),
        judgement=Judgement(False, 1.5, 9, 0.0001, "slower"),
        compiles=[CompileSeconds(2, 1, 0.5, 0)],
    )
    leave_capture(tmp_path, note=told)
    found = summarize(tmp_path)
    hosts = check(found, "hosts")
    assert (hosts.state, hosts.seen) == (BAD, "of 3 processes these left no profile: 1, 2")
    distortion = check(found, "distortion")
    assert distortion.state == WARN
    assert "1.50 times" in distortion.seen
    assert "python_tracer_level=0" in distortion.do
    compilation = check(found, "compilation")
    assert compilation.state == WARN
    assert compilation.seen == "JAX compiled for 500.00 ms in the profiled steps"
    assert "ProfilerConfig.start_step" in compilation.do


def test_a_cut_capture(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/profile/2026_01_02_03_04_05"
    folder.mkdir(parents=True)
    whole = tpu_space().encode()
    (folder / "h.xplane.pb").write_bytes(whole[: len(whole) - 40])
    found = check(summarize(tmp_path), "whole")
    assert found.state == BAD
    assert found.seen.startswith("cut or damaged; ")
    assert "jax.profiler.stop_trace" in found.do


def test_one_step_has_no_statistics(tmp_path: Path) -> None:
    found = check(summarize_spaces(tmp_path, tpu_space(1), warmup_steps=0), "steps")
    assert found.state == WARN
    assert found.seen.startswith("1 found, 0 cut, 1 kept; the periods of 0 are known (3 are")
    assert "ProfilerConfig.num_steps" in found.do


def test_without_steps(tmp_path: Path) -> None:
    space = Space()
    space.tpu(0).op("fusion.1", 0, 5, category="loop fusion")
    found = check(summarize_spaces(tmp_path, space), "steps")
    assert (found.state, found.seen) == (BAD, "none found")
    assert "jax.profiler.StepTraceAnnotation('train', step_num=step)" in found.do


def test_scopes_of_ops(tmp_path: Path) -> None:
    named = check(summarize_spaces(tmp_path / "a", tpu_space()), "scopes")
    assert (named.state, named.seen) == (OK, "scopes are known for 100.0 % of op time")
    bare = check(summarize_spaces(tmp_path / "b", tpu_space(scope=None)), "scopes")
    assert bare.state == WARN
    assert bare.seen == "scopes are known for 0.0 % of op time (50.0 % is the least wanted)"


def test_hlo_protos_of_a_gpu(tmp_path: Path) -> None:
    without = check(summarize_spaces(tmp_path / "a", gpu_space()), "HLO protos")
    assert without.state == BAD
    assert "enable_hlo_proto of jax.profiler.ProfileOptions to True" in without.do
    protos = gpu_space().hlo(1, hlo_proto())
    assert check(summarize_spaces(tmp_path / "b", protos), "HLO protos").state == OK


def test_devices_that_show_nothing(tmp_path: Path) -> None:
    space = tpu_space()
    space.tpu(1)
    found = check(summarize_spaces(tmp_path, space), "devices")
    assert found.state == WARN
    assert found.seen == "1 of 2 device planes are empty: /device:TPU:1"


def test_real_captures(traces: Path) -> None:
    cpu, tpu = summarize(traces / "cpu_8dev"), summarize(traces / "tpu_v6e_4dev")
    assert not [one for one in (*health(cpu), *health(tpu)) if one.state == BAD]
    assert "Python tracer was on" in check(cpu, "distortion").seen
    assert check(cpu, "scopes").state == OK
    assert check(cpu, "devices").seen == "8 devices, none is empty"
    assert check(tpu, "scopes").seen.startswith("scopes are known for 3.5 % of op time")
    assert check(tpu, "clocks").state == check(tpu, "host events").state == WARN
    assert check(tpu, "steps").seen == "100 found, 0 cut, 99 kept; the periods of 98 are known"


# --- summaries by hand -------------------------------------------------------------------------


def host(**facts: Any) -> Host:
    return Host(host="h", file="h.xplane.pb", sha256="0", devices=["/device:TPU:0"], **facts)


def test_clocks() -> None:
    agree = build_summary(hosts=[host(clock_conflicts=0)])
    assert check(agree, "clocks").state == OK
    assert check(build_summary(hosts=[host()]), "clocks").state == UNKNOWN
    worse = [host(clock_conflicts=2, clock_uncertainty=5.0), host(clock_conflicts=1)]
    found = check(build_summary(hosts=worse), "clocks")
    assert found.state == WARN
    assert found.seen == (
        "3 launches and completions contradict the devices' times, by up to 5.00 us"
    )


def test_events_left_out() -> None:
    dropped = Coverage(events_dropped={"outside_profile": 2, "repeated_plane": 1})
    found = check(build_summary(coverage=dropped), "events")
    assert (found.state, found.seen) == (
        WARN,
        "3 events left out (outside_profile: 2, repeated_plane: 1)",
    )


def test_members_of_collectives_and_hosts_of_the_run_that_are_not_there() -> None:
    partly = Collective(
        collective="all-reduce",
        group_size=8,
        members_seen=4,
        count=8,
        duration=1.0,
        exposed_duration=1.0,
        overlapped_duration=0.0,
    )
    found = check(build_summary(hosts=[host()], collectives=[partly]), "hosts")
    assert found.state == WARN
    assert found.seen == "1 host's file; of all-reduce over 8 devices 4 were captured"
    run = build_summary().run_metadata.model_copy(update={"num_hosts": 4})
    found = check(build_summary(hosts=[host()], collectives=[partly], run_metadata=run), "hosts")
    assert (found.state, found.seen) == (BAD, "1 host's file, of a run of 4 hosts")


def test_python_frames_without_steps_to_compare_with() -> None:
    cause = HostCause(cause="python_frame", idle_duration=1.0, share_of_window=0.1, count=1)
    found = check(
        build_summary(host_activity=[HostActivity(host="h", causes=[cause])]), "distortion"
    )
    assert found.state == WARN
    assert "by how much is not known" in found.seen
    assert check(build_summary(), "distortion").state == UNKNOWN


def test_a_host_without_an_account() -> None:
    found = check(
        build_summary(host_activity=[HostActivity(host="h", reason="no thread launched")]),
        "host events",
    )
    assert found.state == WARN
    assert "no thread launched" in found.seen
    assert "host_tracer_level" in found.do


def test_each_doubt_is_a_check() -> None:
    trace = build_summary().trace_overview.model_copy(update={"doubts": ["one <b>", "two"]})
    found = [one for one in health(build_summary(trace_overview=trace)) if one.check == "doubt"]
    assert [(one.state, one.seen) for one in found] == [(BAD, "one <b>"), (BAD, "two")]


def test_steps_that_are_all_left_out_or_not_tied_to_work() -> None:
    steps = [one.model_copy(update={"kept": False}) for one in step_time().steps]
    none = build_summary(step_time=step_time(steps=steps))
    assert check(none, "steps").state == BAD
    loose = check(build_summary(step_time=step_time(linked=False)), "steps")
    assert loose.state == WARN
    assert "not tied" in loose.seen
    assert check(build_summary(step_time=no_steps()), "steps").state == BAD
    old = check(build_summary(step_time=step_time(steps=[], period=None)), "steps")
    assert (old.state, old.seen) == (OK, "4 found, 0 cut, 4 kept")


def test_a_summary_of_an_older_tool_and_numbers_that_are_none_are_not_known() -> None:
    data = build_summary().model_dump(mode="json", by_alias=True)
    for name in ("coverage", "capture", "hosts", "host_activity", "memory", "device_ledger"):
        data.pop(name)
    found = {one.check: one.state for one in health(parse_summary(json.dumps(data)))}
    for name in ("events", "devices", "clocks", "compilation", "distortion", "host events"):
        assert found[name] == UNKNOWN
    assert found["hosts"] == UNKNOWN
    for name in ("HLO protos", "HLO ops", "scopes", "versions"):
        assert found[name] == UNKNOWN
    odd = Coverage().model_copy(update={"scope_attributed_share": math.nan})
    assert check(build_summary(coverage=odd), "scopes").state == UNKNOWN


@pytest.mark.parametrize("share", [0.49, 0.5])
def test_the_threshold_is_that_of_the_advice(share: float) -> None:
    coverage = Coverage(scope_attributed_share=share, hlo_attributed_share=share)
    found = build_summary(coverage=coverage)
    assert check(found, "scopes").state == (OK if share >= 0.5 else WARN)
    assert check(found, "HLO ops").state == WARN
    assert "--xla_gpu_enable_command_buffer=" in check(found, "HLO ops").do


def test_what_is_bad_or_to_be_changed_says_what_to_do() -> None:
    trace = TraceOverview(
        num_events_total=1,
        num_complete_events=1,
        num_processes=1,
        num_threads=1,
        duration_basis="x",
        suspected_truncation=True,
    )
    for summary in (
        build_summary(trace_overview=trace, step_time=no_steps(), source_format="trace_json"),
        build_summary(),
    ):
        for one in health(summary):
            assert one.seen
            assert one.do or one.state in (OK, UNKNOWN)
