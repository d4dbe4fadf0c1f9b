"""What some tests need of the machine."""

import importlib.metadata

import pytest


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


needs_levanter = pytest.mark.skipif(
    not _is_installed("marin-levanter"),
    reason="marin-levanter is not installed (extra: levanter)",
)
