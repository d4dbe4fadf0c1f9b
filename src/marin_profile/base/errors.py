"""What can go wrong, one class per exit code; a message is one sentence: what, where, what next."""

from __future__ import annotations


class ProfileError(Exception):
    """Base of every error that a user can cause or meet. `exit_code` is the process's exit code."""

    exit_code = 1


class UsageError(ProfileError):
    """The request makes no sense: a bad flag, an unknown question."""

    exit_code = 2


class MissingPackageError(UsageError):
    """A package that is asked for is not installed."""


class UnknownNameError(UsageError, AttributeError):
    """An attribute that does not exist; Python's protocols take it for what it is."""


class NotFoundError(ProfileError):
    """What was named does not exist."""

    exit_code = 3


class BrokenInputError(ProfileError):
    """The input is damaged, or is no JAX profile."""

    exit_code = 4


class CannotAnswerError(ProfileError):
    """The input is sound but does not hold what was asked for."""

    exit_code = 5


class RemoteError(ProfileError):
    """A remote service failed."""

    exit_code = 6


class InternalError(ProfileError):
    """The tool's own figures contradict each other: none is given. `invariant` names what does not
    hold. (7 is the exit code of a likely failure, see the verdict.)"""

    exit_code = 8

    def __init__(self, invariant: str, found: str) -> None:
        super().__init__(
            f"internal error: {invariant} does not hold: {found}. This is a defect; please report "
            "this line, and keep the profile."
        )
        self.invariant = invariant
