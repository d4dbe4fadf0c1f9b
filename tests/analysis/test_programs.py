"""Which registered module an op's own program id stands for."""

from builders_xspace import Space, computation, hlo_proto, instruction
from marin_profile.analysis.programs import registered_programs
from marin_profile.events.timeline import Op


def ops(*programs: tuple[str, int | None]) -> list[Op]:
    return [Op("a", module=module, program_id=program_id) for module, program_id in programs]


def test_an_id_that_is_registered_under_the_ops_module():
    names = {1: "jit_f", 2: "jit_f"}
    found = registered_programs(ops(("jit_f", 1), ("jit_f", 2), ("jit_f", None)), names)
    assert found == {("jit_f", 1): 1, ("jit_f", 2): 2}


def test_without_a_name_on_either_side_the_id_counts():
    found = registered_programs(ops(("", 1), ("jit_f", 2)), {1: "jit_f", 2: ""})
    assert found == {("", 1): 1, ("jit_f", 2): 2}


def test_the_id_of_another_process_stands_for_the_one_module_of_that_name():
    names = {56: "jit_step", 54: "jit_g", 60: "jit_h"}
    assert registered_programs(ops(("jit_step", 54)), names) == {("jit_step", 54): 56}
    assert registered_programs(ops(("jit_step", 99)), names) == {("jit_step", 99): 56}


def test_a_module_that_an_op_names_by_id_is_nobody_elses():
    names = {1: "jit_f", 2: "jit_f"}
    found = registered_programs(ops(("jit_f", 1), ("jit_f", 9)), names)
    assert found == {("jit_f", 1): 1, ("jit_f", 9): 2}


def test_two_of_one_name_cannot_be_told_apart():
    assert registered_programs(ops(("jit_f", 9)), {1: "jit_f", 2: "jit_f"}) == {}
    assert registered_programs(ops(("jit_f", 8), ("jit_f", 9)), {1: "jit_f"}) == {}
    assert registered_programs(ops(("jit_f", 8)), {8: "jit_g"}) == {}
    assert registered_programs(ops(("", 8)), {9: "jit_f"}) == {}


def test_ops_of_a_cached_program_have_their_own_scopes():
    """As on CPU with JAX's compilation cache: op ids 1, registered as 2, where 1 is another one."""
    space = Space()
    for program, module in ((1, "jit_g"), (2, "jit_f")):
        op = instruction("add.1", "add", id=1, op_name=f"jit({module})/{module}_scope/add")
        space.hlo(program, hlo_proto(computation(1, 1, op), name=module), module=module)
    space.host().cpu_op("add.1", 0, 5, module="jit_f", program_id=1, run_id=1)
    found = space.devices()
    assert [fact.scope_path for fact in found.facts if fact.hlo_op] == [
        "jit(jit_f)/jit_f_scope/add"
    ]
