"""What an execution of an op costs: floating-point operations and bytes accessed.

Contract
* Each of the two is known (0 is a figure too) or unknown (None). XLA writes 0/0, or flops without
  bytes, for what it cannot see into (Pallas, FFI, library calls): that is unknown, unless a custom
  call carries an estimate of both.
* What XLA's profile states comes first. Where it states nothing (GPU, CPU) the costs follow from
  the HLO proto by the rules of XLA's own cost analysis: a dot 2 x result elements x contracted
  elements; a convolution 2 x the pairs of output and kernel elements that meet an input element x
  input features per group; a reduction the flops of its computation for each element that it takes
  in; one flop for each element of other elementwise results. Functions such as tanh count none.
* Bytes are those of the operands and the result, each read or written once; of operands that are
  only sliced, and of buffers that are updated in place, those of the slice.
* Products by cuBLAS and convolutions by cuDNN follow from their dimension numbers; what a library
  does beside them (a bias, an activation) counts none. Other custom calls are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd, prod

from marin_profile.base.caches import cached
from marin_profile.events.classify import BOOKKEEPING, is_bookkeeping, opcode_of
from marin_profile.events.shapes import Array, array_bytes, arrays_in
from marin_profile.events.timeline import HloComputation, HloInstruction, Op, WindowDimension

STATED, DERIVED = "profile", "hlo"

CUSTOM_CALL = "custom-call"
PRODUCTS = frozenset({"__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"})
RESULT = -1
FORWARD = (0, 1, RESULT)
# Custom call -> which of its operands (by number), or its result, are the forward convolution's
# input, kernel and output.
CONVOLUTIONS = {
    "__cudnn$convForward": FORWARD,
    "__cudnn$convBiasActivationForward": FORWARD,
    "__cudnn$convBackwardInput": (RESULT, 1, 0),
    "__cudnn$convBackwardFilter": (0, RESULT, 1),
}

# One flop for each element of the result.
ELEMENTWISE = frozenset(
    {"abs", "add", "and", "ceil", "clamp", "compare", "complex", "convert", "count-leading-zeros"}
    | {"divide", "floor", "imag", "is-finite", "maximum", "minimum", "multiply", "negate", "not"}
    | {"or", "popcnt", "real", "reduce-precision", "remainder", "round-nearest-afz"}
    | {"round-nearest-even", "select", "shift-left", "shift-right-arithmetic"}
    | {"shift-right-logical", "sign", "subtract", "xor"}
)
# No flops: data movement, and functions that XLA counts apart, as transcendentals.
WITHOUT_FLOPS = BOOKKEEPING | frozenset(
    {"add-dependency", "bitcast-convert", "broadcast", "concatenate", "copy", "dynamic-slice"}
    | {"dynamic-update-slice", "gather", "opt-barrier", "pad", "partition-id", "replica-id"}
    | {"reshape", "reverse", "rng", "rng-bit-generator", "slice", "transpose"}
    | {"atan2", "cbrt", "cosine", "erf", "exponential", "exponential-minus-one", "log"}
    | {"log-plus-one", "logistic", "power", "rsqrt", "sine", "sqrt", "tan", "tanh"}
)
SLICES = frozenset({"dynamic-slice", "gather", "slice"})
RENAMES = frozenset({"bitcast", "reshape"})

# Beyond these a proto is damaged: computations in computations, elements of a window, and counts
# that fit int64.
DEEPEST_NESTING = 6
LONGEST_WINDOW = 1 << 16
MOST = (1 << 63) - 1

Module = Mapping[str, HloInstruction]


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one execution; None: unknown. source: STATED, DERIVED, or None if both are unknown."""

    flops: int | None = None
    bytes_accessed: int | None = None
    source: str | None = None

    @property
    def are_known(self) -> bool:
        return self.flops is not None and self.bytes_accessed is not None


UNKNOWN_COSTS = Costs()
ZERO_COSTS = Costs(0, 0, DERIVED)


def costs_of(op: Op, instruction: HloInstruction | None, module: Module) -> Costs:
    """`instruction` is the op's own in `module`, if the file has the program's HLO proto."""
    stated = stated_costs(op, instruction.opcode if instruction else opcode_of(op.long_name))
    if instruction is None or stated.are_known:
        return stated
    derived = derived_costs(instruction, module)
    return derived if derived.are_known or stated == UNKNOWN_COSTS else stated


def stated_costs(op: Op, opcode: str) -> Costs:
    """What the profile says, where it can be: only bookkeeping moves no bytes."""
    flops = op.model_flops if op.model_flops is not None else op.flops
    moved = op.bytes_accessed
    if flops is None and moved is None:
        return UNKNOWN_COSTS
    if CUSTOM_CALL in (op.category, opcode):
        return Costs(flops, moved, STATED) if flops and moved else UNKNOWN_COSTS
    if moved == 0 and not (opcode in BOOKKEEPING or is_bookkeeping(op.name)):
        return UNKNOWN_COSTS
    return Costs(flops, moved, STATED)


def derived_costs(instruction: HloInstruction, module: Module) -> Costs:
    flops, moved = (
        None if count is None or count > MOST else count
        for count in (_flops(instruction, module), _bytes_accessed(instruction, module))
    )
    if flops is None and moved is None:
        return UNKNOWN_COSTS
    return Costs(flops, moved, DERIVED)


# --- shapes ------------------------------------------------------------------------------------


def _first(instruction: HloInstruction | None) -> Array | None:
    arrays = arrays_in(instruction.shape) if instruction else ()
    return arrays[0] if arrays else None


def _size(instruction: HloInstruction | None) -> int | None:
    """Bytes of the result, all of a tuple's arrays."""
    if instruction is None or not instruction.shape:
        return None
    return _sum(array_bytes(instruction.shape))


def _operand(instruction: HloInstruction, index: int, module: Module) -> HloInstruction | None:
    if index >= len(instruction.operands):
        return None
    return module.get(instruction.operands[index])


# --- flops -------------------------------------------------------------------------------------


def _flops(instruction: HloInstruction, module: Module, depth: int = 0) -> int | None:
    opcode, result = instruction.opcode, _first(instruction)
    if opcode in WITHOUT_FLOPS:
        return 0
    if result is None or depth > DEEPEST_NESTING:
        return None
    if opcode in ELEMENTWISE:
        return result.elements
    if opcode == "dot" or instruction.custom_call_target in PRODUCTS:
        return _product_flops(instruction, result, module)
    if opcode == "convolution":
        return _convolution_flops(instruction, FORWARD, module)
    if instruction.custom_call_target in CONVOLUTIONS:
        return _convolution_flops(instruction, CONVOLUTIONS[instruction.custom_call_target], module)
    if opcode == "fusion":
        return _sum(_computation_flops(called, module, depth) for called in instruction.called)
    if opcode in ("reduce", "reduce-window", "scatter") and instruction.called:
        applied = _computation_flops(instruction.called[0], module, depth)
        times = _applications(instruction, result, module)
        return None if applied is None or times is None else applied * times
    return None


def _computation_flops(computation: HloComputation, module: Module, depth: int) -> int | None:
    return _sum(_flops(module[name], module, depth + 1) for name in computation.instructions)


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _product_flops(instruction: HloInstruction, result: Array, module: Module) -> int | None:
    left = _first(_operand(instruction, 0, module))
    contracting = instruction.contracting
    if left is None or contracting is None or not all(d < len(left.dims) for d in contracting):
        return None
    return 2 * result.elements * prod(left.dims[d] for d in contracting)


def _applications(instruction: HloInstruction, result: Array, module: Module) -> int | None:
    """How often a reduction's computation runs: an operand's elements less the result's, the
    window's elements less one for each of the result's, or the updates' elements."""
    if instruction.opcode == "reduce-window":
        return result.elements * (prod(dimension.size for dimension in instruction.window) - 1)
    if instruction.opcode == "scatter":
        updates = _first(_operand(instruction, (len(instruction.operands) + 1) // 2, module))
        return None if updates is None else updates.elements
    reduced = _first(_operand(instruction, 0, module))
    return None if reduced is None else reduced.elements - result.elements


def _convolution_flops(
    instruction: HloInstruction, places: tuple[int, int, int], module: Module
) -> int | None:
    """`places`: see CONVOLUTIONS; window and dimensions are those of the forward convolution."""
    inputs, kernel, output = (
        _first(instruction if at == RESULT else _operand(instruction, at, module)) for at in places
    )
    dims, window = instruction.convolution, instruction.window
    if inputs is None or kernel is None or output is None or dims is None:
        return None
    if not (
        len(window) == len(dims.input_spatial) == len(dims.output_spatial)
        and all(d < len(inputs.dims) for d in dims.input_spatial)
        and all(d < len(output.dims) for d in dims.output_spatial)
        and dims.kernel_input_feature < len(kernel.dims)
        and all(dimension.size <= LONGEST_WINDOW for dimension in window)
    ):
        return None
    beside = prod(n for d, n in enumerate(output.dims) if d not in dims.output_spatial)
    pairs = prod(
        _meetings(inputs.dims[i], output.dims[o], dimension)
        for i, o, dimension in zip(dims.input_spatial, dims.output_spatial, window, strict=True)
    )
    return 2 * beside * pairs * kernel.dims[dims.kernel_input_feature]


@cached
def _meetings(inputs: int, outputs: int, window: WindowDimension) -> int:
    """In how many pairs of an output and a kernel position the window meets an input element, and
    neither padding nor the holes of a dilated input."""
    last = (inputs - 1) * window.base_dilation
    period = window.base_dilation // gcd(window.base_dilation, window.stride)
    met = 0
    for position in range(window.size):
        shift = position * window.window_dilation - window.padding_low
        # Output o meets shift + o x stride, which must lie in 0..last, and not in a hole.
        low = max(0, -(shift // window.stride))
        high = min(outputs - 1, (last - shift) // window.stride)
        first = next(
            (
                output
                for output in range(low, min(high + 1, low + period))
                if not (shift + output * window.stride) % window.base_dilation
            ),
            None,
        )
        if first is not None:
            met += (high - first) // period + 1
    return met


# --- bytes -------------------------------------------------------------------------------------


def _bytes_accessed(instruction: HloInstruction, module: Module) -> int | None:
    opcode, target = instruction.opcode, instruction.custom_call_target
    if opcode in BOOKKEEPING:
        return 0
    if opcode == "fusion":
        return _fusion_bytes(instruction, module)
    if opcode in SLICES:
        size = _size(instruction)
        return None if size is None else 2 * size
    if opcode == "dynamic-update-slice":
        size = _size(_operand(instruction, 1, module))
        return None if size is None else 2 * size
    if opcode == "scatter":
        half = (len(instruction.operands) + 1) // 2
        updates = _sum(_size(module.get(name)) for name in instruction.operands[half:])
        return None if updates is None else 3 * updates
    read = _sum(_size(module.get(name)) for name in dict.fromkeys(instruction.operands))
    if opcode == CUSTOM_CALL:
        if target not in PRODUCTS and target not in CONVOLUTIONS:
            return None
        result = _first(instruction)  # the rest of the tuple is the library's workspace
        written = None if result is None else result.bytes
    else:
        written = _size(instruction)
    return _sum((read, written))


def _fusion_bytes(fusion: HloInstruction, module: Module) -> int | None:
    if len(fusion.called) != 1:
        return None
    computation = fusion.called[0]
    users: dict[str, list[str]] = {}
    for name in computation.instructions:
        for operand in dict.fromkeys(module[name].operands):
            users.setdefault(operand, []).append(name)
    parameters = [name for name in computation.instructions if module[name].opcode == "parameter"]
    read = _sum(_bytes_read(name, users, module) for name in parameters)
    return _sum((read, _bytes_written(computation.root, module)))


def _bytes_read(
    name: str, users: Mapping[str, list[str]], module: Module, depth: int = 0
) -> int | None:
    """Of a value that a fusion takes in: the whole of it, unless all that uses it takes slices of
    it or updates it in place."""
    whole = _size(module[name])
    if whole is None or depth > DEEPEST_NESTING:
        return whole
    parts = 0
    for user in users.get(name, ()):
        instruction = module[user]
        is_base = name not in instruction.operands[1:]
        part: int | None = None
        if instruction.opcode in SLICES and is_base:
            part = _size(instruction)
        elif instruction.opcode in RENAMES:
            part = _bytes_read(user, users, module, depth + 1)
        elif instruction.opcode == "dynamic-update-slice" and is_base:
            part = 0
        if part is None:
            return whole
        parts += part
    return min(whole, parts)


def _bytes_written(name: str, module: Module, depth: int = 0) -> int | None:
    """Of a fusion's result: the whole of it, or the update where a buffer is updated in place."""
    instruction = module.get(name)
    if instruction is None:
        return None
    if instruction.opcode == "tuple" and depth <= DEEPEST_NESTING:
        return _sum(_bytes_written(part, module, depth + 1) for part in instruction.operands)
    if instruction.opcode == "dynamic-update-slice":
        return _size(_operand(instruction, 1, module))
    if instruction.opcode in RENAMES:
        source = _operand(instruction, 0, module)
        if source is not None and source.opcode == "dynamic-update-slice":
            return _size(_operand(source, 1, module))
    return _size(instruction)
