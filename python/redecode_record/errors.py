"""What this package raises."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """What a call of the C library returned, or why there is no library to call."""

    FAILED = 4
    INVALID = -1
    WRONG_ORDER = -2
    TOO_BIG = -3
    NOT_OPENED = -100
    NO_LIBRARY = -101


class RecordError(Exception):
    """A call that did nothing, or a trace that is not complete.

    Attributes:
        code: what happened, for programs.
        message: what, where and what to do, for people.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{message} ({code.name})")
        self.code = code
        self.message = message
