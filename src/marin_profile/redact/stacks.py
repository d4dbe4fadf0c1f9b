"""Source stacks: the stats that hold them, and their mask."""

from __future__ import annotations

STACK_STATS = ("source_stack",)

_MASKED = bytes(ord("x") if byte > 127 or chr(byte).isalnum() else byte for byte in range(256))


def masked_stack(stack: bytes) -> bytes:
    """Letters, digits and what lies beyond ASCII become "x"; lines and punctuation stay."""
    return stack.translate(_MASKED)
