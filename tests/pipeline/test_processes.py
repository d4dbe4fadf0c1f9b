"""Several processes of one machine, each in a folder of its own, are one capture of one host."""

from pathlib import Path

import pytest

from builders_xspace import Space
from marin_profile.capture.sources import find_captures, resolve
from marin_profile.pipeline import summarize

MS = 1000
START_NS = 10**18
STAMP = "2026_01_01_00_00_00"


def worker(
    rank: int,
    *,
    host: str = "vm-0",
    window: bool = True,
    started_ms: int = 0,
    steps: int = 6,
    device_clock_shift: int | None = None,
    early: int = 0,
) -> Space:
    """A stage of a pipeline: busy 40 of each 100 ms, rank 1 50 ms after rank 0. Both call their
    chip TPU:0. `started_ms`: when this process began to profile; `early`: how much its chip's
    clock lags behind, which its launches show."""
    space = Space(host)
    tpu = space.tpu(0, device_clock_shift=device_clock_shift)
    if window:
        first = START_NS + started_ms * 1_000_000
        space.environment(first, first + 600 * 1_000_000)
    calls = space.host()
    for step in range(steps):
        at = (100 * step + 50 * rank - started_ms) * MS
        tpu.module(f"jit_stage(5{rank})", at, 40 * MS, run_id=step)
        tpu.op(f"fusion.{rank}", at, 40 * MS, category="loop fusion")
        if early:
            calls.call("Execute", at + early * MS, 5, run_id=step, device_ordinal=0)
    return space


def put(root: Path, spaces: dict[str, Space], host: str = "vm-0") -> Path:
    for folder, space in spaces.items():
        space.write(root / folder.format(stamp=STAMP) / f"{host}.xplane.pb")
    return root


@pytest.mark.parametrize(
    "folder",
    [
        "pprank_{}/plugins/profile/{{stamp}}",
        "rank{}/plugins/profile/{{stamp}}",
        "process_{}/plugins/profile/{{stamp}}",
        "proc-{}/plugins/profile/{{stamp}}",
        "tp_rank_{}/plugins/profile/{{stamp}}",
        "Worker{}/plugins/profile/{{stamp}}",
        "plugins/profile/rank_{}/{{stamp}}",
        "plugins/profile/{{stamp}}/rank_{}",
        "rank_{}",
    ],
)
def test_workers_of_one_machine(tmp_path, folder):
    put(tmp_path, {folder.format(rank): worker(rank) for rank in range(2)})
    [capture] = find_captures(str(tmp_path))
    assert {host.machine for host in capture.hosts} == {"vm-0"}
    summary = summarize(tmp_path)
    assert (summary.run_metadata.num_hosts, summary.run_metadata.num_devices) == (1, 2)
    assert [host.machine for host in summary.hosts] == ["vm-0", "vm-0"]
    # Rank 0 begins at 0, rank 1 ends at 90 ms.
    assert summary.step_time.critical_path.median == 90 * MS
    assert summary.step_time.steady_state_steps.median == 40 * MS
    assert summary.step_time.period.median == 100 * MS
    names = [host.host for host in summary.hosts]
    assert len(set(names)) == 2
    assert all(name.startswith("vm-0 (") for name in names)
    ledgers = {(row.host, row.device) for row in summary.device_ledger}
    assert ledgers == {(name, "/device:TPU:0") for name in names}


def test_lone_steps_of_one_clock_meet(tmp_path):
    summary = summarize(put(tmp_path, {f"rank_{rank}": worker(rank, steps=1) for rank in range(2)}))
    (only,) = summary.step_time.steps
    assert (only.duration, only.critical_path) == (40 * MS, 90 * MS)


def test_processes_that_began_at_different_times(tmp_path):
    """Each file counts from its own start; the clock of the machine joins them."""
    spaces = {"rank_0": worker(0), "rank_1": worker(1, started_ms=-30)}
    summary = summarize(put(tmp_path, spaces))
    assert summary.step_time.critical_path.median == 90 * MS


def test_device_clocks_of_two_processes_are_not_compared(tmp_path):
    spaces = {
        "rank_0": worker(0, device_clock_shift=7 * MS),
        "rank_1": worker(1, device_clock_shift=-3 * MS),
    }
    summary = summarize(put(tmp_path, spaces))
    assert summary.step_time.critical_path.median == 90 * MS


@pytest.mark.parametrize(
    ("form", "hosts", "file"),
    [
        ("node_{}", ("vm-0", "vm-0"), "vm-0"),
        ("rank_{}", ("vm-0", "vm-1"), "worker"),
        ("rank_{}", ("localhost", "localhost"), "localhost"),
    ],
    ids=["folders name machines", "hostnames differ", "a name that all machines have"],
)
def test_clocks_of_different_machines_are_not_compared(tmp_path, form, hosts, file):
    spaces = {form.format(rank): worker(rank, host=hosts[rank]) for rank in range(2)}
    summary = summarize(put(tmp_path, spaces, host=file))
    assert summary.run_metadata.num_hosts == 2
    assert summary.step_time.critical_path.median == 40 * MS


def test_two_ranks_each_on_two_nodes(tmp_path):
    # The nodes' files differ in when they began: equal files would be one.
    spaces = {f"node_{n}/rank_{r}": worker(r, started_ms=-n) for n in range(2) for r in range(2)}
    summary = summarize(put(tmp_path, spaces))
    assert [host.host for host in summary.hosts] == [
        f"vm-0 (node_{n}/rank_{r})" for n in range(2) for r in range(2)
    ]
    assert summary.run_metadata.num_hosts == 2
    assert summary.step_time.critical_path.median == 90 * MS


@pytest.mark.parametrize(
    "second",
    [worker(1, early=5), worker(1, window=False)],
    ids=["a clock conflict", "no times"],
)
def test_without_a_known_clock_the_path_is_one_processes(tmp_path, second):
    folder = "rank_{}/plugins/profile/{{stamp}}"
    put(tmp_path, {folder.format(0): worker(0), folder.format(1): second})
    summary = summarize(tmp_path)
    assert summary.run_metadata.num_hosts == 1
    assert summary.step_time.critical_path.median == 40 * MS
    assert any("The processes of vm-0" in text for text in summary.trace_overview.quality_warnings)


def test_captures_a_step_apart_are_not_joined_to_one_path(tmp_path):
    """Rank 1 began to profile 200 ms later: its first step is rank 0's third."""
    late = Space("vm-0").environment(START_NS + 200 * 10**6, START_NS + 900 * 10**6)
    tpu = late.tpu(0)
    for step in range(6):
        at = (100 * step + 50) * MS
        tpu.module("jit_stage(51)", at, 40 * MS, run_id=step).op("fusion.1", at, 40 * MS)
    summary = summarize(put(tmp_path, {"rank_0": worker(0), "rank_1": late}))
    assert summary.step_time.critical_path.median == 40 * MS
    assert any("The processes of vm-0" in text for text in summary.trace_overview.quality_warnings)


def test_three_ranks_with_one_missing(tmp_path):
    summary = summarize(put(tmp_path, {f"rank_{r}": worker(r) for r in (0, 2)}))
    assert (summary.run_metadata.num_hosts, summary.run_metadata.num_devices) == (1, 2)
    # Rank 2 begins its first step at 100 ms, with rank 0's second: which steps meet is not known.
    assert summary.step_time.critical_path.median == 40 * MS


def test_one_process_named_alone(tmp_path):
    put(tmp_path, {f"rank_{r}/plugins/profile/{{stamp}}": worker(r) for r in range(2)})
    capture, _ = resolve(profile_dir=str(tmp_path / "rank_1"))
    assert [host.host for host in capture.hosts] == ["vm-0"]
