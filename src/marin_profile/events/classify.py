"""What an op is: its kind, whether it starts or ends an async operation, its family.

Contract
* A kind comes from structured facts first (HLO category, opcode), then from patterns of kernel
  symbols, then from the whole name: never from a part of an op's name. A family is a pattern in the
  name or scope. Every rule is a row of a table in this module.
* Pure functions of text; no numpy, so that views may import this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from marin_profile.base.caches import cached
from marin_profile.events.shapes import end_of_shape, memory_space, tuple_parts

COMPUTE = "compute"
GRAPH = "graph"  # the base of a GPU graph's one event
UNKNOWN = "unknown"

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "broadcast",
    "send-recv",
    "other-collective",
)
# Kinds under the names that communication_ops has in v1 of the schema.
V1_COLLECTIVES = {"ragged-all-to-all": "all-to-all", "broadcast": "other-collective"}

HOST_TO_DEVICE = "host_to_device"
DEVICE_TO_HOST = "device_to_host"
DEVICE_TO_DEVICE = "device_to_device"
ON_CHIP = "on_chip"
SPARSECORE = "sparsecore"  # a wait for a sparse core
UNKNOWN_TRANSFER = "unknown_transfer"
TRANSFERS = (
    HOST_TO_DEVICE,
    DEVICE_TO_HOST,
    DEVICE_TO_DEVICE,
    ON_CHIP,
    "infeed",
    "outfeed",
    SPARSECORE,
    UNKNOWN_TRANSFER,
)

GROUP_COMPUTE, GROUP_COMMUNICATION, GROUP_TRANSFER, GROUP_UNKNOWN = range(4)


@cached
def kind_group(kind: str) -> int:
    """The ledger term that a kind belongs to."""
    if kind == COMPUTE:
        return GROUP_COMPUTE
    if kind in COLLECTIVES:
        return GROUP_COMMUNICATION
    return GROUP_TRANSFER if kind in TRANSFERS else GROUP_UNKNOWN


# HLO opcodes (without -start, -done, -update) that move data between devices.
COLLECTIVE_OPCODES = {
    "all-reduce": "all-reduce",
    "all-gather": "all-gather",
    "reduce-scatter": "reduce-scatter",
    "all-reduce-scatter": "reduce-scatter",
    "all-to-all": "all-to-all",
    "ragged-all-to-all": "ragged-all-to-all",
    "collective-permute": "collective-permute",
    "collective-broadcast": "broadcast",
    "send": "send-recv",
    "recv": "send-recv",
    "partition-id-all-reduce": "all-reduce",
}
# Names that JAX gives to the ops of its collective primitives.
COLLECTIVE_PRIMITIVES = {
    "psum": "all-reduce",
    "psum-invariant": "all-reduce",
    "psum2": "all-reduce",
    "pmean": "all-reduce",
    "pmax": "all-reduce",
    "pmin": "all-reduce",
    "psum-scatter": "reduce-scatter",
    "reduce-scatter": "reduce-scatter",
    "all-gather-invariant": "all-gather",
    "pbroadcast": "broadcast",
    "ppermute": "collective-permute",
}
# A send or recv whose partner is the host.
HOST_TRANSFERS = {"send": DEVICE_TO_HOST, "recv": HOST_TO_DEVICE}
INFEED_OPCODES = {"infeed": "infeed", "outfeed": "outfeed"}
# Opcodes whose start/done pairs are DMA, not communication.
DMA_OPCODES = frozenset({"copy", "slice", "dynamic-slice", "dynamic-update-slice"})
CONTAINER_OPCODES = frozenset({"while", "conditional", "call"})
# Ops that mark a place rather than do work: a gap that ends at one belongs to the op behind it.
BOOKKEEPING = frozenset(
    {"iota", "constant", "bitcast", "get-tuple-element", "parameter", "tuple", "after-all"}
    | {"copy-start", "copy-done"}
)

KERNEL_COLLECTIVES = (
    ("reducescatter", "reduce-scatter"),
    ("raggedalltoall", "ragged-all-to-all"),
    ("allreduce", "all-reduce"),
    ("allgather", "all-gather"),
    ("alltoall", "all-to-all"),
    ("sendrecv", "send-recv"),
    ("send", "send-recv"),
    ("recv", "send-recv"),
    ("broadcast", "broadcast"),
    ("reduce", "other-collective"),
)
NCCL_PREFIX = re.compile(
    r"^(?:void )?(?:nccl\w*?Kernel|rccl(?:Dev)?Kernel|rccl)_?(?P<rest>.*)", re.DOTALL
)
# XLA's own one-shot collectives (also mangled: the name's length stands before it), and NVSHMEM's.
XLA_COLLECTIVE = re.compile(r"(?:^|[^A-Za-z])(?P<rest>AllReduce|RaggedAllToAll)KernelImpl")
NVSHMEM = re.compile(r"^(?:void )?nvshmem", re.IGNORECASE)
# One event for all kernels of a graph: what it holds is not known.
GRAPH_EVENT = re.compile(r"^(?:CudaGraphExec|command_buffer)(?![A-Za-z])")
KERNEL_TRANSFERS = (
    (re.compile(r"^(?:MemcpyH2D|CopyHostToDevice)\b"), HOST_TO_DEVICE),
    (re.compile(r"^(?:MemcpyD2H|CopyDeviceToHost)\b"), DEVICE_TO_HOST),
    (re.compile(r"^(?:MemcpyD2D|MemcpyP2P|CopyDeviceToDevice|CopyPeerToPeer)\b"), DEVICE_TO_DEVICE),
    (re.compile(r"^(?:Memset|__amd_rocclr_fillBuffer)"), DEVICE_TO_DEVICE),
    (re.compile(r"^(?:Memcpy|__amd_rocclr_copy|Copy\w+To\w+\b)"), UNKNOWN_TRANSFER),
)
MEMCPY_DETAIL = re.compile(r"kind:(\w+)")
MEMCPY_SIZE = re.compile(r"(?:^|\s)(?:size|num_bytes):(\d{1,18})\b")
# A stream that runs kernels too is no memcpy stream.
MEMCPY_STREAM = re.compile(r"\(Memcpy(\w*)\)")
MEMCPY_KINDS = {
    "h2d": HOST_TO_DEVICE,
    "hosttodevice": HOST_TO_DEVICE,
    "d2h": DEVICE_TO_HOST,
    "devicetohost": DEVICE_TO_HOST,
    "d2d": DEVICE_TO_DEVICE,
    "devicetodevice": DEVICE_TO_DEVICE,
    "p2p": DEVICE_TO_DEVICE,
}
SYNC_ENTRY = re.compile(
    r"^(?:Stream|Event|Context|Device) (?:Sync|Synchronize|Wait)\b", re.IGNORECASE
)


def _token(pattern: str) -> re.Pattern[str]:
    """`pattern` as a whole token of a name or path."""
    return re.compile(rf"(?:^|[/_.]){pattern}(?:$|[/_.\-\d])", re.IGNORECASE)


FAMILIES = (
    ("attention_splash", re.compile(r"splash_(?:mha|attention)", re.IGNORECASE)),
    ("attention_flash", re.compile(r"flash_?attention|fused_att(?:n|ention)|fmha", re.IGNORECASE)),
    ("attention", _token(r"(?:\w*attention\w*|attn|rpa|mha|sdpa)")),
    ("loss_xent", re.compile(r"cross_entropy|xent", re.IGNORECASE)),
    ("optimizer", _token(r"(?:optimizer|optim|adamw?|adafactor|apply_updates)")),
    ("embedding", _token(r"embed(?:ding|dings|der)?s?")),
    ("normalization", _token(r"(?:\w*norm|ln_\w+|rsqrt)")),
)
MATMUL = re.compile(
    r"(?:^|[/_.\-])(?:dot|dot_general|gemm\w*|matmul|convolution|conv|cijk\w*|cublas\w*|cutlass\w*)(?:$|[/_.\-\d(<])",
    re.IGNORECASE,
)

_SUFFIX = re.compile(r"\.\d+$")
_TRAILING = frozenset({"start", "done", "update", "clone", "remat", "sunk"})
_OPCODE_AFTER_SHAPE = re.compile(r"\s*([a-z][a-z0-9\-]*)\(")
_THREAD = re.compile(r'\basync_execution_thread="([^"]*)"')


@dataclass(frozen=True, slots=True)
class OpClass:
    """`role` is "start", "done" or ""; `base` is the opcode or stem without it, "" for compute that
    only its name tells."""

    kind: str
    role: str
    base: str
    is_container: bool


@cached
def canonical_name(name: str) -> str:
    """A name without "%" and numeric suffix: what survives renumbering."""
    return _SUFFIX.sub("", name.strip().lstrip("%"))


@cached
def opcode_of(long_name: str) -> str:
    """The opcode in an HLO text ("%psum.7 = bf16[8]{0} all-reduce(...)"); "" if there is none."""
    _, separator, text = long_name.partition(" = ")
    if not separator:
        return ""
    match = _OPCODE_AFTER_SHAPE.match(text, end_of_shape(text))
    return match.group(1) if match else ""


def _split_role(opcode: str) -> tuple[str, str]:
    """("all-gather", "start") for "all-gather-start"."""
    for role in ("start", "done", "update"):
        if opcode.endswith("-" + role):
            return opcode[: -len(role) - 1], role
    return opcode, ""


@cached
def _stem(name: str) -> str:
    """A name's whole tokens without numbering and state: "psum_invariant.7" -> "psum-invariant"."""
    tokens = re.split(r"[.\-_]", canonical_name(name).lower())
    while len(tokens) > 1 and (tokens[-1].isdecimal() or tokens[-1] in _TRAILING):
        tokens.pop()
    return "-".join(tokens)


def classify_op(
    name: str,
    *,
    hlo_op: str = "",
    category: str = "",
    opcode: str = "",
    wrapped_opcode: str = "",
    thread: str = "",
    long_name: str = "",
    shape: str = "",
    memcpy_details: str = "",
    line_name: str = "",
    is_kernel: bool = False,
) -> OpClass:
    """The kind of a device op.

    category: XLA's hlo_category. opcode, wrapped_opcode, thread (on which an async operation runs;
    "" for the op's own): from the HLO proto. long_name: HLO text. is_kernel: `name` is a GPU kernel
    symbol, and hlo_op the HLO op that launched it.
    """
    code = opcode or opcode_of(long_name)
    if is_kernel:
        if GRAPH_EVENT.match(name):
            return OpClass(UNKNOWN, "", GRAPH, True)
        found = _hlo_kind_of_kernel(hlo_op, code, wrapped_opcode)
        found = found or _kernel_kind(name, memcpy_details, line_name) or COMPUTE
        return OpClass(found, "", found, False)
    stem = _stem(name)
    named = not category and not code
    facts = (_lower(canonical_name(name)),) if named else (category, code)
    role = next((role for fact in reversed(facts) if (role := _split_role(fact)[1])), "")
    bases = [_split_role(fact)[0] for fact in facts]
    bases = [
        wrapped_opcode or stem if base == "async" else stem if named else base for base in bases
    ]
    for base in bases:
        if base in CONTAINER_OPCODES:
            return OpClass(COMPUTE, "", base, True)
        to_host = HOST_TRANSFERS.get(base.removeprefix("host "))
        if to_host and (base.startswith("host ") or "is_host_transfer=true" in long_name):
            return OpClass(to_host, role, base, False)
        kind = _collective_kind(base, named=named) or INFEED_OPCODES.get(base)
        if kind:
            return OpClass(kind, role, base, False)
    elsewhere = _elsewhere(thread or _thread_of(long_name)) if role else ""
    if elsewhere:
        return OpClass(elsewhere, role, bases[0], False)
    for base in bases if role else ():
        if base in DMA_OPCODES:
            return OpClass(transfer_direction(long_name, shape, base, role), role, base, False)
        if base == "async":
            return OpClass(UNKNOWN, role, base, False)
    return _compute(role, "" if named else facts[-1])


@cached
def _compute(role: str, base: str) -> OpClass:
    """One object for all alike: there may be a million ops."""
    return OpClass(COMPUTE, role, base, False)


def _lower(text: str) -> str:
    """The same object where that is lower case already, as most of a million names are."""
    lower = text.lower()
    return text if lower == text else lower


def _thread_of(long_name: str) -> str:
    found = _THREAD.search(long_name)
    return found.group(1) if found else ""


def _elsewhere(thread: str) -> str:
    """The kind of an asynchronous operation that another processor runs; "" for the device's own
    thread. Its `*-done` waits for that processor."""
    if thread in ("", "main"):
        return ""
    return SPARSECORE if thread == SPARSECORE else UNKNOWN


def _hlo_kind_of_kernel(hlo_op: str, code: str, wrapped_opcode: str) -> str:
    """What its HLO op says of a kernel: a collective or a feed, or "". The opcode says it, else the
    op's own name."""
    base = _split_role(code)[0]
    if base == "async":
        base = wrapped_opcode or _stem(hlo_op)
    base = base or (_stem(hlo_op) if hlo_op else "")
    return _collective_kind(base, named=not code) or INFEED_OPCODES.get(base, "")


def _collective_kind(base: str, *, named: bool) -> str:
    """ "all-reduce fusion" and the like are communication; "loop fusion" is not. JAX's primitive
    names count only where the name is all there is."""
    head, _, tail = base.partition(" ")
    if tail == "fusion":
        return COLLECTIVE_OPCODES.get(head, "")
    return COLLECTIVE_OPCODES.get(base) or (COLLECTIVE_PRIMITIVES.get(base, "") if named else "")


def _kernel_kind(name: str, memcpy_details: str, line_name: str) -> str:
    collective = NCCL_PREFIX.match(name) or XLA_COLLECTIVE.search(name)
    if collective:
        symbol = collective.group("rest").replace("_", "").lower()
        return next(
            (kind for word, kind in KERNEL_COLLECTIVES if symbol.startswith(word)),
            "other-collective",
        )
    if NVSHMEM.match(name):
        return "other-collective"
    stream = MEMCPY_STREAM.search(line_name)
    if memcpy_details or stream:
        detail = MEMCPY_DETAIL.search(memcpy_details)
        words = (detail.group(1) if detail else "", stream.group(1) if stream else "")
        known = next((MEMCPY_KINDS[w.lower()] for w in words if w.lower() in MEMCPY_KINDS), "")
        return known or _symbol_transfer(name) or UNKNOWN_TRANSFER
    return _symbol_transfer(name)


def _symbol_transfer(name: str) -> str:
    return next((kind for pattern, kind in KERNEL_TRANSFERS if pattern.match(name)), "")


def memcpy_bytes(memcpy_details: str) -> int | None:
    found = MEMCPY_SIZE.search(memcpy_details)
    return int(found.group(1)) if found else None


def is_sync_entry(name: str) -> bool:
    """A driver's wait on a stream or event: no device work."""
    return bool(SYNC_ENTRY.match(name))


@cached
def transfer_direction(long_name: str, shape: str, base: str, role: str) -> str:
    """Between which memories an async copy or slice moves data.

    Memory spaces in layouts: S(5) is the host's memory, S(1) on-chip, none the device's main
    memory. A copy-start gives (destination, source, context), an async slice ((source),
    destination, context); a done gives the destination and names the start's tuple as operand.
    """
    _, separator, text = long_name.partition(" = ")
    result = text[: end_of_shape(text)] if separator else shape
    if role == "done":
        opened = text.find("(", end_of_shape(text))
        if opened < 0:
            return UNKNOWN_TRANSFER
        operand = text[opened + 1 :]
        result = operand[: end_of_shape(operand)]
    parts = tuple_parts(result)
    if len(parts) < 2:
        return UNKNOWN_TRANSFER
    destination, source = (parts[0], parts[1]) if base == "copy" else (parts[1], parts[0])
    if base == "dynamic-update-slice":
        operands = tuple_parts(source)  # (buffer, update, indices...): the update moves
        source = operands[1] if len(operands) > 1 else source
    to_space, from_space = memory_space(destination), memory_space(source)
    if to_space == 5 or from_space == 5:
        if to_space == from_space:
            return UNKNOWN_TRANSFER
        return DEVICE_TO_HOST if to_space == 5 else HOST_TO_DEVICE
    return DEVICE_TO_DEVICE if to_space == from_space == 0 else ON_CHIP


def is_bookkeeping(name: str) -> bool:
    return canonical_name(name) in BOOKKEEPING


DATA_FORMATTING = "data formatting"
# Opcodes that change layout, order or padding, and compute nothing.
MOVES = frozenset({"copy", "transpose", "reshape", "pad"})


@cached
def only_moves(name: str, category: str) -> bool:
    """Whether a compute op changes layout, order or padding alone, by what is not its content: XLA
    names a fusion after its last ops, which tells nothing of the others."""
    return category == DATA_FORMATTING or _stem(name) in MOVES


@cached
def family(name: str, scope: str, kind: str, category: str) -> str:
    """The semantic family: what part of a model's work an op is."""
    group = kind_group(kind)
    if group == GROUP_COMMUNICATION:
        return "collective"
    if group == GROUP_TRANSFER:
        return "transfer"
    for title, pattern in FAMILIES[:2]:
        if pattern.search(name) or pattern.search(scope):
            return title
    leaf = scope.rpartition("/")[2]
    if (
        category == "convolution fusion"
        or MATMUL.search(leaf)
        or MATMUL.search(canonical_name(name))
    ):
        return "matmul"
    for title, pattern in FAMILIES[2:]:
        if pattern.search(name) or pattern.search(scope):
            return title
    stem = _stem(name)
    if category == DATA_FORMATTING or stem in ("copy", "transpose", "reshape", "bitcast", "pad"):
        return "copy"
    if "convert" in stem.split("-") and "fusion" not in stem.split("-"):
        return "convert"
    if "fusion" in stem.split("-") or "fusion" in category.split():
        return "fusion"
    return "other"
