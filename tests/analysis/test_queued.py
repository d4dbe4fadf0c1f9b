"""Work that is launched and has not begun, worked out by hand."""

from __future__ import annotations

from builders_xspace import Host, Space
from marin_profile.analysis.host_thread import main_thread
from marin_profile.analysis.queued import queued

US = 1_000_000  # picoseconds


def spans(space: Space) -> list[tuple[float, float]]:
    """In microseconds."""
    devices = space.devices()
    thread = main_thread(devices)
    assert thread is not None
    found = queued(devices, thread)
    pairs = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    return [(start / US, end / US) for start, end in pairs]


def launch(host: Host, name: str, *times: float) -> None:
    """Calls of 10 us."""
    for at in times:
        host.call(f"PjitFunction({name})", at, 10)


def run(host: Host, module: str, *times: float, first: int = 0, ordinal: int = 0) -> None:
    """Executions of 50 us."""
    for number, at in enumerate(times):
        run_id = first + number
        host.cpu_op("fusion", at, 50, run_id=run_id, module=module, ordinal=ordinal)


def test_from_the_end_of_the_call_to_the_first_op():
    space = Space()
    host = space.host()
    launch(host, "step", 0, 200)
    run(host, "jit_step", 30, 205)  # the second begins within its call
    assert spans(space) == [(10, 30)]


def test_of_several_launched_together_each_until_it_begins():
    space = Space()
    host = space.host()
    launch(host, "<lambda>", 0, 20, 40)
    run(host, "jit__lambda", 100, 160, 220)
    assert spans(space) == [(10, 220)]


def test_calls_without_executions_make_nothing_longer():
    """Of five calls a step one runs here: it counts as the last."""
    space = Space()
    host = space.host()
    for step in range(3):
        launch(host, "f", *(1_000 * step + 10 * call for call in range(5)))
        run(host, "jit_f", 1_000 * step + 70, first=step)
    assert spans(space) == [(50, 70), (1_050, 1_070), (2_050, 2_070)]


def test_executions_of_calls_before_the_capture_have_none():
    space = Space()
    host = space.host()
    run(host, "jit_step", 0, 60, 190)
    launch(host, "step", 150)
    assert spans(space) == [(160, 190)]


def test_another_function_and_one_that_another_thread_calls_too_tell_nothing():
    space = Space()
    host = space.host()
    launch(host, "step", 0, 500)
    launch(host, "both", 100)
    host.call("PjitFunction(both)", 110, 10, line="other")
    run(host, "jit_both", 200, 260)
    run(host, "jit_elsewhere", 400, first=7)
    run(host, "jit_step", 20, 510, first=9)
    assert spans(space) == [(10, 20)]


def test_any_device_of_the_host_may_wait():
    space = Space()
    host = space.host()
    launch(host, "step", 0)
    run(host, "jit_step", 20)
    run(host, "jit_step", 60, ordinal=1)
    assert spans(space) == [(10, 60)]


def test_tpu_executions_meet_their_launches_by_run_id():
    """Also where they begin in another order than they were called in. Times count from 20."""
    space = Space()
    host = space.host()
    tpu = space.tpu(0)
    for run_id, begin in ((1, 120), (2, 60)):
        at = 20 * run_id
        host.call("PjitFunction(f)", at, 10).call("Execute", at + 2, 5, run_id=run_id)
        tpu.module("jit_f(7)", begin, 30, run_id=run_id).op("fusion", begin, 30)
    assert spans(space) == [(10, 100)]
