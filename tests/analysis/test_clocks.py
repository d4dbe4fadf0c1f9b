"""Host and device clocks: conflicts of launches and completions with the work of devices."""

from builders_xspace import US, Space, summary_of
from marin_profile.analysis.clocks import ClockCheck, host_clock
from marin_profile.reports.report import render_markdown

MS = 1000


def check_of(space: Space) -> ClockCheck:
    return host_clock(space.devices())


def tpu_run(ahead: int, *, launches: bool = True, completions: bool = False) -> Space:
    """Five executions of 80 ms, 100 ms apart; each begins `ahead` ms before its launch."""
    space = Space()
    host, tpu = space.host(), space.tpu(0)
    for run in range(5):
        launch = (200 + 100 * run) * MS
        begin = launch - ahead * MS
        if launches:
            host.call("Execute", launch, MS, run_id=70 + run, device_ordinal=0)
        if completions:
            host.call("CompleteCallbacks", launch + 85 * MS, 1, run_id=70 + run, device_ordinal=0)
        tpu.module("jit_f(1)", begin, 80 * MS, run_id=70 + run)
        tpu.op("fusion.1", begin, 80 * MS, category="convolution fusion")
    return space


def test_work_before_its_launch_bounds_the_offset_from_below():
    check = check_of(tpu_run(119))
    assert (check.agrees, check.conflicts, check.compared) == (False, 5, 5)
    assert check.bound_ps == check.at_least == check.offset == 119 * MS * US
    assert check.at_most is None
    assert check.example == ("work of /device:TPU:0 began 119.000 ms before its launch (Execute)")


def test_work_after_its_launch_is_no_conflict():
    check = check_of(tpu_run(-1))
    assert (check.agrees, check.conflicts, check.bound_ps) == (True, 0, 0)
    assert (check.at_least, check.offset, check.example) == (-1 * MS * US, None, "")


def test_both_sides_give_an_interval():
    # Work ends 119 - 80 + 85 = 124 ms before the host is told of it.
    check = check_of(tpu_run(119, completions=True))
    assert (check.at_least, check.at_most) == (119 * MS * US, 124 * MS * US)
    assert check.offset == 119 * MS * US
    assert (check.conflicts, check.compared) == (5, 10)


def test_an_end_after_its_completion_is_a_conflict():
    # The device is 30 ms late: work ends 25 ms after the host was told.
    check = check_of(tpu_run(-30, completions=True))
    assert (check.conflicts, check.compared) == (5, 10)
    assert (check.at_least, check.at_most) == (-30 * MS * US, -25 * MS * US)
    assert (check.bound_ps, check.offset) == (25 * MS * US, -25 * MS * US)
    assert check.example == (
        "work of /device:TPU:0 ended 25.000 ms after the host saw it end (CompleteCallbacks)"
    )


def test_no_constant_mends_clocks_that_conflict_both_ways():
    space = tpu_run(0)
    # A second device whose work began 5 ms before its launch, and another that ended 7 ms late.
    host = space.planes[0]
    for ordinal, run, begin, length in ((1, 8, 0, 1), (2, 9, 10, 17)):
        host.call("Execute", 5 * MS, MS, run_id=run, device_ordinal=ordinal)
        host.call("CompleteCallbacks", 20 * MS, 1, run_id=run, device_ordinal=ordinal)
        tpu = space.tpu(ordinal)
        tpu.module("jit_f(1)", begin * MS, length * MS, run_id=run)
        tpu.op("fusion.1", begin * MS, length * MS)
    check = check_of(space)
    assert (check.at_least, check.at_most) == (5 * MS * US, -7 * MS * US)
    assert (check.conflicts, check.bound_ps, check.offset) == (2, 7 * MS * US, None)
    assert "| changes by up to 7.00 ms |" in render_markdown(summary_of(space.analyse()))


def test_one_tick_is_no_conflict():
    space = Space()
    space.host().call("Execute", 0.001, 1, run_id=1, device_ordinal=0)
    space.tpu(0).module("jit_f(1)", 0, 5, run_id=1).op("fusion", 0, 5)
    assert check_of(space).agrees


def test_a_wait_for_work_launched_before_the_capture_is_no_launch():
    """Execution 69 was launched before the capture; what is left on the host is its wait."""
    space = tpu_run(-1)
    host, tpu = space.planes
    tpu.module("jit_f(1)", 0, 80 * MS, run_id=69).op("fusion.1", 0, 80 * MS)
    for run, end in ((69, 80), (70, 281), (71, 381)):
        host.call("Wait for it", end * MS, MS, run_id=run, device_ordinal=0)
    assert (check_of(space).compared, check_of(space).conflicts) == (5, 0)


def test_an_id_that_ran_twice_says_nothing():
    space = Space()
    space.host().call("Execute", 50, 1, run_id=1, device_ordinal=0)
    tpu = space.tpu(0)
    for begin in (0, 60):
        tpu.module("jit_f(1)", begin, 5, run_id=1).op("fusion", begin, 5)
    assert check_of(space).compared == 0


def test_launches_meet_their_own_device():
    """Run id 7 is another execution on each device."""
    space = Space()
    host = space.host()
    for ordinal, begin in ((0, 10), (1, 100)):
        host.call("Execute", begin - 5, 1, run_id=7, device_ordinal=ordinal)
        space.tpu(ordinal).module("jit_f(1)", begin, 5, run_id=7).op("fusion", begin, 5)
    assert (check_of(space).compared, check_of(space).conflicts) == (2, 0)


def test_launches_without_an_ordinal_count_where_devices_share_their_ids():
    def space(second_id: int) -> Space:
        space = Space()
        host = space.host()
        host.call("Execute", 50, 1, run_id=1)
        space.tpu(0).module("jit_f(1)", 0, 5, run_id=1).op("fusion", 0, 5)
        space.tpu(1).module("jit_f(1)", 60, 5, run_id=second_id).op("fusion", 60, 5)
        return space

    assert check_of(space(1)).conflicts == 1
    assert check_of(space(2)).compared == 0


def test_kernels_meet_their_launch_by_correlation_id():
    space = Space()
    gpu, host = space.gpu(0), space.host()
    for index in range(4):
        host.call("cuLaunchKernel", 100 * index, 5, correlation_id=index)
        gpu.kernel("gemm", 100 * index + (20 if index else -3), 50, correlation=index)
    check = check_of(space)
    assert (check.compared, check.conflicts) == (4, 1)
    assert check.bound_ps == check.offset == 3 * US


def test_cpu_devices_are_on_their_hosts_clock():
    space = Space()
    space.host().call("Execute", 50, 1, run_id=1).cpu_op("dot.1", 0, 5, run_id=1)
    assert check_of(space) == ClockCheck(0, 0, 0, None, None, "")


def test_the_order_in_the_file_does_not_matter():
    from marin_profile.analysis.devices import find_devices

    space = tpu_run(119, completions=True)
    expected = check_of(space)
    for seed in range(3):
        assert host_clock(find_devices(space.timeline(seed), "")) == expected


# --- what the summary says -----------------------------------------------------------------------


def test_a_conflict_is_in_the_summary():
    summary = summary_of(tpu_run(119, completions=True).analyse())
    (host,) = summary.hosts
    assert (host.clock_offset, host.clock_offset_limit) == (119_000.0, 124_000.0)
    assert (host.clock_uncertainty, host.clock_conflicts) == (119_000.0, 5)
    assert "| 119.00 ms to 124.00 ms |" in render_markdown(summary)
    assert summary.trace_overview.quality_warnings[0] == (
        "Clock conflict: work of /device:TPU:0 began 119.000 ms before its launch (Execute); 5 of "
        "10 launches and completions contradict the devices' times. Host and device times cannot "
        "be compared to better than 119.000 ms."
    )


def test_agreement_and_nothing_to_compare_are_told_apart():
    (agreeing,) = summary_of(tpu_run(-1).analyse()).hosts
    (silent,) = summary_of(tpu_run(-1, launches=False).analyse()).hosts
    assert (agreeing.clock_conflicts, silent.clock_conflicts) == (0, None)
    assert "| none seen |" in render_markdown(summary_of(tpu_run(-1).analyse()))
    for host in (agreeing, silent):
        assert host.clock_offset is host.clock_offset_limit is host.clock_uncertainty is None


def test_a_device_behind_has_a_negative_offset():
    (host,) = summary_of(tpu_run(-30, completions=True).analyse()).hosts
    assert (host.clock_offset, host.clock_offset_limit) == (-25_000.0, -30_000.0)
    assert host.clock_uncertainty == 25_000.0


def test_a_bound_is_called_one_in_the_report():
    assert "| at least 119.00 ms |" in render_markdown(summary_of(tpu_run(119).analyse()))
