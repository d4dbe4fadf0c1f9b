"""An op of a CPU whose name and HLO op differ is said, whichever of the two is damaged."""

from __future__ import annotations

import pytest

from builders_xspace import Space
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.op_names import no_text, two_names


def said(*odd: tuple[str, str], module: str = "jit_f") -> tuple[str, ...]:
    """Of a CPU that runs two ops three times, and then ops by their names and HLO ops."""
    space = Space()
    host = space.host()
    for step in range(3):
        host.cpu_op("dot.1", 100 * step, 40, run_id=step)
        host.cpu_op("psum.7", 100 * step + 50, 40, run_id=step)
    for at, (name, hlo_op) in enumerate(odd):
        stats = {"hlo_op": hlo_op, "hlo_module": module, "device_ordinal": 0, "run_id": 9}
        host.event("tf_XLAPjRtCpuClient/0", name, 400 + 50 * at, 40, **stats)
    return two_names(find_devices(space.timeline(), ""))


def test_ops_of_one_name_are_sound():
    assert said() == said(("add.3", "add.3")) == ()


@pytest.mark.parametrize(("name", "hlo_op"), [("psum.7", "ppum.7"), ("psvm.7", "psum.7")])
def test_one_of_two_names_is_damaged(name, hlo_op):
    assert said((name, hlo_op)) == (
        f"1 event of CPU devices tells another HLO op than by name ({name!r} tells {hlo_op!r}): "
        "one of the two may be damaged, and with it the op's kind.",
    )
    assert said((name, hlo_op), (name, hlo_op))[0].startswith("2 events of CPU devices tell ")


def test_names_that_no_other_event_agrees_on_are_a_way_to_write_them():
    assert said(("wrapped_add", "add.3"), ("call", "dot.1.clone")) == ()


def test_an_op_of_another_program_may_have_any_name():
    assert said(("psum.7", "ppum.7"), module="jit_g") == ()


def test_kernels_of_a_gpu_have_names_of_their_own():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("fusion.1", 0, 5, hlo_op="fusion.1").kernel("fusion.1", 9, 5, hlo_op="fusion.2")
    assert two_names(find_devices(space.timeline(), "")) == ()


@pytest.mark.parametrize("stat", ["name", "long_name", "category", "tf_op"])
def test_bytes_that_are_no_text_are_said(stat):
    def told(text: str) -> tuple[str, ...]:
        space = Space()
        texts = {"name": "copy.1", "long_name": "", "category": "", "tf_op": ""} | {stat: text}
        space.tpu(0).op(texts.pop("name"), 0, 5, **texts).op("dot.2", 5, 5)
        return no_text(find_devices(space.timeline(), ""))

    assert told("größe.1") == ()
    (doubt,) = told("f32\ufffd5")
    assert doubt.startswith("The names or HLO texts of 1 op hold bytes that are no text (one is ")
