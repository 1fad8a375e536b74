"""ScheduleWriter: steps of an engine, written as soon as their input tokens are known on the host.

An engine that schedules ahead launches step n + 1 before the tokens of step n are back, so the
host does not know yet what step n + 1 reads. Such a step waits here until they are; it is written
before its own result at the latest.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..recorder import Recorder
from ..words import Event, Phase, Reason


class Unsupported(Exception):
    """The engine does something that a trace cannot say yet; ends the hook."""


class TokenSource:
    """The sequence of a request so far: its prompt, then what was sampled."""

    def known(self) -> int:
        """How many tokens the host knows."""
        raise NotImplementedError

    def slice(self, begin: int, end: int) -> Sequence[int]:
        """Tokens begin..end, end not included, all of them known."""
        raise NotImplementedError

    def one(self, position: int) -> int:
        """The token there; -1 when it is not known."""
        raise NotImplementedError

    def append(self, token: int) -> None:
        """What was sampled; nothing to do where the engine appends it itself."""


@dataclass(eq=False, slots=True)
class Running:
    """A request between its arrival and its departure; made anew when it is resumed."""

    name: str  # the engine's own id
    number: int
    tokens: TokenSource
    given: int = 0  # tokens it arrived with; those behind them were sampled
    next_position: int = 0
    pages: list[int] = field(default_factory=list)
    place: int = -1  # where the engine keeps it, for those that number places
    sampling: Any = None  # the engine's own, for those that say it only once


@dataclass(eq=False, slots=True)
class Chunk:
    """Consecutive tokens of one request in a step; `samples`: the last one gives a token."""

    running: Running
    begin: int
    count: int
    samples: bool


@dataclass
class Launch:
    """A step as it was launched."""

    phase: Phase
    time_ns: int
    chunks: list[Chunk]
    bucket: int = 0
    index: int = -1
    departures: list[tuple[int, Reason]] = field(default_factory=list)
    arrivals: list[dict[str, Any]] = field(default_factory=list)
    pages: list[tuple[int, int, int, bool]] = field(default_factory=list)


class ScheduleWriter:
    """Writes launches in order, and outputs behind them.

    Args:
        page_size: tokens a page; slots are page * page_size + position % page_size.
        vocab: tokens outside it are counted as unknown and written as 0; 0: any.

    Attributes:
        unknown_tokens: input tokens that the host never knew, written as 0. Each step that holds
            some is followed by a note in the trace.
    """

    def __init__(self, recorder: Recorder, page_size: int, vocab: int) -> None:
        self.recorder = recorder
        self.page_size = page_size
        self.unknown_tokens = 0
        self._top_token = vocab - 1 if vocab else 2**31 - 1
        self._waiting: deque[Launch] = deque()
        self._next_index = 0

    def launch(self, step: Launch) -> int:
        """Takes a launched step; its index."""
        step.index = self._next_index
        self._next_index += 1
        self._waiting.append(step)
        self.write_known()
        return step.index

    def write_known(self) -> None:
        """Writes the steps at the head whose tokens are all known."""
        while self._waiting:
            for chunk in self._waiting[0].chunks:
                if chunk.running.tokens.known() < chunk.begin + chunk.count:
                    return
            self._write(self._waiting.popleft())

    def write_until(self, index: int) -> None:
        """Writes steps up to `index`, tokens known or not."""
        while self._waiting and self._waiting[0].index <= index:
            self._write(self._waiting.popleft())

    def outputs(self, index: int, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """Sampled tokens of a step: (row of the step, request, position, token)."""
        self.write_until(index)
        if rows:
            row, request, position, token = zip(*rows, strict=True)
            self.recorder.outputs(
                step=index, row=row, request=request, position=position, token=token
            )

    def finish(self) -> None:
        """Writes what still waits."""
        self.write_until(self._next_index)

    def _tokens(self, chunk: Chunk) -> tuple[Sequence[int], int]:
        source, end = chunk.running.tokens, chunk.begin + chunk.count
        known = max(chunk.begin, min(end, source.known()))
        tokens = source.slice(chunk.begin, known)
        unknown = end - known
        if tokens and not 0 <= min(tokens) <= max(tokens) <= self._top_token:
            unknown += sum(not 0 <= token <= self._top_token for token in tokens)
            tokens = [token if 0 <= token <= self._top_token else 0 for token in tokens]
        return tokens, unknown

    def _write(self, step: Launch) -> None:
        say = self.recorder
        for number, reason in step.departures:
            say.depart(number, reason)
        for arrival in step.arrivals:
            say.arrive(**arrival)
        for number, entry, page, shared in step.pages:
            say.page(number, entry, page, shared=shared)
        columns, wants, unknown = self._columns(step)
        request, position, token, slot = columns
        say.step(
            step.phase,
            request=request,
            position=position,
            token=token,
            slot=slot,
            wants_output=None if 0 not in wants else bytes(wants),
            bucket=step.bucket,
            index=step.index,
            time_ns=step.time_ns,
        )
        if unknown:
            self.unknown_tokens += unknown
            say.event(
                Event.NOTE,
                text=f"step {step.index}: {unknown} input tokens were never known to the host "
                "or are outside the vocabulary, written as 0",
            )

    def _columns(self, step: Launch) -> tuple[list[array[int]], bytearray, int]:
        """Request, position, token and slot of all rows; which of them sample; unknown tokens."""
        request, position, token, slot = array("I"), array("I"), array("i"), array("I")
        wants, unknown, size, top_token = bytearray(), 0, self.page_size, self._top_token
        for chunk in step.chunks:
            running, begin = chunk.running, chunk.begin
            if chunk.count == 1:
                value = running.tokens.one(begin)
                if not 0 <= value <= top_token:
                    value, unknown = 0, unknown + 1
                request.append(running.number)
                position.append(begin)
                token.append(value)
                slot.append(running.pages[begin // size] * size + begin % size)
                wants.append(chunk.samples)
                continue
            request.extend([running.number] * chunk.count)
            position.extend(range(begin, begin + chunk.count))
            tokens, missing = self._tokens(chunk)
            token.extend(tokens)
            token.extend([0] * (chunk.count - len(tokens)))
            unknown += missing
            self._slots(chunk, slot)
            wants += bytes(chunk.count - 1) + bytes([chunk.samples])
        return [request, position, token, slot], wants, unknown

    def _slots(self, chunk: Chunk, slot: array[int]) -> None:
        size, at, end = self.page_size, chunk.begin, chunk.begin + chunk.count
        while at < end:
            until = min(end, (at // size + 1) * size)
            first = chunk.running.pages[at // size] * size + at % size
            slot.extend(range(first, first + until - at))
            at = until
