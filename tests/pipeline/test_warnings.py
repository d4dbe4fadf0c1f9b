"""Which warnings stand first: what changes the reading of the numbers, with what would help."""

import pytest

from builders_xspace import Space, hlo_proto, summary_of

HINT = (
    "set enable_hlo_proto of jax.profiler.ProfileOptions to True (in Levanter: "
    "--trainer.profiler.profile_options.enable_hlo_proto true)."
)


def first_warning(*spaces: Space) -> str:
    parts = []
    for index, space in enumerate(spaces):
        from marin_profile.analysis.host import analyse_host

        host = f"host-{index}" if len(spaces) > 1 else ""
        parts.append(analyse_host(space.timeline(), host, warmup_steps=1))
    return next(iter(summary_of(*parts).trace_overview.quality_warnings), "")


def cpu() -> Space:
    space = Space()
    space.host().cpu_op("psum_invariant.7", 0, 5)
    return space


def gpu() -> Space:
    space = Space()
    space.gpu(0).kernel("gemm", 0, 5)
    return space


@pytest.mark.parametrize("make", [cpu, gpu])
def test_a_capture_without_hlo_protos_says_how_to_get_them(make):
    warning = first_warning(make())
    assert warning.startswith("The xplane.pb holds no HLO protos: ")
    assert warning.endswith(HINT)
    assert "holds no HLO protos" not in first_warning(make().hlo(1, hlo_proto()))


def test_of_several_hosts_those_without_are_named():
    warning = first_warning(cpu().hlo(1, hlo_proto()), cpu())
    assert warning.startswith("The xplane.pb of host-1 holds no HLO protos: ")


def test_tpu_ops_tell_their_opcode_and_scope_themselves():
    space = Space()
    space.tpu(0).op("fusion.1", 0, 5, category="loop fusion", scope="jit(f)/add")
    assert "HLO protos" not in first_warning(space)
