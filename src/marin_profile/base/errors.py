"""What can go wrong, one class per exit code; a message is one sentence: what, where, what next."""

from __future__ import annotations


class ProfileError(Exception):
    """Base of every error that a user can cause or meet. `exit_code` is the process's exit code."""

    exit_code = 1


class UsageError(ProfileError):
    """The request makes no sense: a bad flag, an unknown question."""

    exit_code = 2


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
