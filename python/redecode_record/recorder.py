"""Recorder: a trace being written, over the C ABI of libredecode_record."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from array import array
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from . import _abi
from .columns import FloatBlock, IntColumn, block, column, flags, iterated
from .errors import Code, RecordError
from .words import STAT_NAMES, Event, Layout, Options, Phase, Policy, Reason, Stats

_ERROR_TEXT = {
    -1: "an argument has no meaning",
    -2: "wrong order of calls, or steps from a second thread",
    -3: "larger than a quarter of the ring: raise ring_bytes",
}
_MESSAGE_BYTES = 1024
_NAME_CHARACTERS = 1000  # of an engine's id; the library takes 4096 bytes of text
_UINT32_MAX = 2**32 - 1


def _text(name: str, value: str | None) -> bytes | None:
    if value is None:
        return None
    if "\0" in value:
        raise RecordError(Code.INVALID, f"{name} holds a zero byte")
    return value.encode()


def _number(name: str, value: int, most: int = _UINT32_MAX) -> int:
    if not 0 <= value <= most:
        raise RecordError(Code.INVALID, f"{name} {value} is not in 0..{most}")
    return value


def _to_c(library: ctypes.CDLL, path: str, options: Options) -> tuple[_abi.Options, list[object]]:
    c = _abi.Options()
    library.rr_options_init(ctypes.byref(c), ctypes.sizeof(c))
    c.path = os.fsencode(path)
    held: list[object] = []
    for name, kind, *_ in _abi.Options._fields_:
        value = getattr(options, name, None)
        if kind is ctypes.c_char_p and name != "path":
            setattr(c, name, _text(name, value))
        elif kind in (ctypes.c_uint32, ctypes.c_uint64) and value is not None:
            setattr(c, name, _number(name, value, 2 ** (8 * ctypes.sizeof(kind)) - 1))
    c.policy, c.layout = int(Policy(options.policy)), int(Layout(options.layout))
    c.overwrite, c.zstd_level = int(options.overwrite), options.zstd_level
    if options.buckets:
        buckets = (ctypes.c_uint32 * len(options.buckets))(*options.buckets)
        c.buckets, c.bucket_count = buckets, len(buckets)
        held.append(buckets)
    if options.environment:
        lines = (ctypes.c_char_p * len(options.environment))(
            *(_text("environment", line) for line in options.environment)
        )
        c.environment, c.environment_count = lines, len(lines)
        held.append(lines)
    return c, held


class StepInParts:
    """A step whose rows come in several calls; made by Recorder.begin_step, used with `with`.

    The rows are copied as they come and recorded together at the end of the `with`; when it is
    left by an exception the step is not recorded and takes no index.
    """

    def __init__(
        self, recorder: Recorder, phase: Phase, bucket: int, index: int | None, time_ns: int
    ) -> None:
        self._recorder = recorder
        self._phase, self._bucket, self._index, self._time_ns = phase, bucket, index, time_ns
        self._columns = {name: array("q") for name in ("request", "position", "token", "slot")}
        self._wants = bytearray()
        self.recorded = False
        """After the `with`: False when the step was dropped for want of room."""

    def rows(
        self,
        *,
        request: IntColumn,
        position: IntColumn,
        token: IntColumn,
        slot: IntColumn,
        wants_output: Sequence[bool] | bytes | None = None,
    ) -> None:
        """The next rows, columns of one length; wants_output None: all do."""
        named = {"request": request, "position": position, "token": token, "slot": slot}
        copies = {name: array("q", iterated(values)) for name, values in named.items()}
        count = len(copies["request"])
        for name, copy in copies.items():
            if len(copy) != count:
                raise RecordError(
                    Code.INVALID, f"column {name} has {len(copy)} values, column request {count}"
                )
        given = bytes([1]) * count if wants_output is None else wants_output
        self._wants += flags("wants_output", given, count)
        for name, copy in copies.items():
            self._columns[name].extend(copy)

    def __enter__(self) -> StepInParts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.recorded = self._recorder.step(
                self._phase,
                request=self._columns["request"],
                position=self._columns["position"],
                token=self._columns["token"],
                slot=self._columns["slot"],
                wants_output=bytes(self._wants),
                bucket=self._bucket,
                index=self._index,
                time_ns=self._time_ns,
            )


def _rows(
    request: IntColumn, position: IntColumn, token: IntColumn, slot: IntColumn
) -> tuple[tuple[_abi.Column, ...], int, list[object]]:
    named = (("request", request), ("position", position), ("token", token), ("slot", slot))
    made = [column(name, values) for name, values in named]
    count = made[0][1]
    for (name, _), (_, length, _) in zip(named, made, strict=True):
        if length != count:
            raise RecordError(
                Code.INVALID, f"column {name} has {length} values, column request {count}"
            )
    return tuple(c for c, _, _ in made), count, [held for _, _, held in made]


class Recorder:
    """Records the schedule of a decode engine into a trace.

        with Recorder("fleet.rdt", page_size=64) as recorder:
            request = recorder.register_request("cmpl-17")
            recorder.arrive(request, prompt_tokens=4)
            recorder.page(request, 0, 1)
            recorder.step(Phase.PREFILL, request=[request] * 4, position=range(4),
                          token=prompt, slot=range(64, 68), wants_output=[0, 0, 0, 1])
            recorder.outputs(row=[3], token=[sampled])

    What arrives, departs or gets a page is said before the step in which it takes effect. Each
    thread gets a ring of its own on its first call; steps come from one thread. Calls return
    whether the record found room: with the default policy nothing ever waits, and what did not
    find room is counted and becomes a gap in the trace.

    Args:
        path: the trace, or the folder of a set when rotate_bytes or rotate_s is given.
        options: see Options; single ones may be given by keyword.
        library: the shared library, when it is not found by itself.

    Raises:
        RecordError: NOT_OPENED with the library's message, NO_LIBRARY.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Options | None = None,
        *,
        library: str | None = None,
        **single: Any,
    ) -> None:
        if options is not None and single:
            raise RecordError(Code.INVALID, "give options as one value or by keyword, not both")
        self._handle: int | None = None
        try:
            chosen = options or Options(**single)
        except TypeError as error:
            raise RecordError(Code.INVALID, str(error)) from error
        self._library = _abi.load(library)
        self._local = threading.local()
        self._numbers = itertools.count()
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        c, held = _to_c(self._library, os.fspath(path), chosen)
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        self._handle = self._library.rr_open(ctypes.byref(c), message, _MESSAGE_BYTES)
        del held
        if not self._handle:
            self._handle = None
            raise RecordError(Code.NOT_OPENED, message.value.decode(errors="replace"))
        self.path = os.fspath(path)

    # --- requests -------------------------------------------------------------------------------

    def register_request(self, engine_id: str) -> int:
        """The number of the engine's own id; a new id is also recorded as an event.

        The same id keeps its number until it departs for good (not PREEMPTED); after that it is a
        new request. Registering one id from two threads at once gives it two numbers.
        """
        known = self._ids.get(engine_id)
        if known is not None:
            return known
        number = self.new_request(engine_id)
        self._ids[engine_id] = number
        self._names[number] = engine_id
        return number

    def new_request(self, engine_id: str) -> int:
        """A new number for this id, whatever had it before: for callers that keep their own map."""
        number = next(self._numbers)
        self.event(Event.REGISTERED, request=number, text=engine_id[:_NAME_CHARACTERS])
        return number

    def arrive(
        self,
        request: int,
        *,
        prompt_tokens: int,
        cached_tokens: int = 0,
        max_tokens: int = 0,
        session: int = 0,
        round: int = 0,
        resumed: bool = False,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int = 0,
    ) -> bool:
        """The request runs from the next step on; rows of cached_tokens never appear."""
        a = _abi.Arrival()
        self._library.rr_arrival_init(ctypes.byref(a), ctypes.sizeof(a))
        a.request, a.session, a.round = request, session, round
        a.prompt_tokens, a.cached_tokens = prompt_tokens, cached_tokens
        a.max_tokens, a.resumed = max_tokens, int(resumed)
        a.temperature, a.top_k, a.top_p, a.min_p = temperature, top_k, top_p, min_p
        a.seed = seed & 0xFFFF_FFFF_FFFF_FFFF
        return self._said(self._library.rr_arrive(self._lane(), ctypes.byref(a)), "arrive")

    def depart(self, request: int, reason: Reason = Reason.FINISHED) -> bool:
        """The request runs no more from the next step on."""
        said = self._said(self._library.rr_depart(self._lane(), request, int(reason)), "depart")
        if reason != Reason.PREEMPTED:
            name = self._names.pop(request, None)
            if name is not None:
                self._ids.pop(name, None)
        return said

    def page(self, request: int, index: int, page: int, *, shared: bool = False) -> bool:
        """Entry `index` of the page table is `page`, not 0; shared: it is filled already."""
        code = self._library.rr_page(self._lane(), request, index, page, int(shared))
        return self._said(code, f"page {page} of request {request}")

    def event(
        self, kind: Event, *, request: int | None = None, a: int = 0, b: int = 0, text: str = ""
    ) -> bool:
        """Something beside the steps; what a, b and text mean stands with Event."""
        number = _abi.NO_REQUEST if request is None else request
        code = self._library.rr_event(
            self._lane(), int(kind), number, a, b, _text("text", text) or None
        )
        return self._said(code, f"event {kind.name}")

    def environment(self, name: str, value: str) -> bool:
        """A setting of the engine changed while it runs."""
        return self.event(Event.ENVIRONMENT, text=f"{name}={value}")

    # --- steps ----------------------------------------------------------------------------------

    def step(
        self,
        phase: Phase,
        *,
        request: IntColumn,
        position: IntColumn,
        token: IntColumn,
        slot: IntColumn,
        wants_output: Sequence[bool] | bytes | None = None,
        bucket: int = 0,
        index: int | None = None,
        time_ns: int = 0,
    ) -> bool:
        """One engine iteration in one call.

        Args:
            request, position, token, slot: a value a row; rows of one request stand together.
            wants_output: which rows sample a token; None: all.
            bucket: rows after padding, 0: none.
            index: None: one more than the step before; a jump becomes a gap.
            time_ns: CLOCK_MONOTONIC (time.monotonic_ns()); 0: now; words NO_TIME for none.
        """
        columns, count, held = _rows(request, position, token, slot)
        info = _abi.StepInfo()
        self._library.rr_step_info_init(ctypes.byref(info), ctypes.sizeof(info))
        info.phase, info.rows, info.bucket = int(phase), count, bucket
        info.index = _abi.NEXT_STEP if index is None else index
        info.time_ns = time_ns
        info.request, info.position, info.token, info.slot = columns
        wants = None if wants_output is None else flags("wants_output", wants_output, count)
        if wants is not None:
            info.wants_output = wants
        code = self._library.rr_step(self._lane(), ctypes.byref(info))
        del held
        return self._said(code, "step")

    def begin_step(
        self, phase: Phase, *, bucket: int = 0, index: int | None = None, time_ns: int = 0
    ) -> StepInParts:
        """A step whose rows come in parts: `with recorder.begin_step(phase) as step:`."""
        return StepInParts(self, phase, bucket, index, time_ns)

    def outputs(
        self,
        *,
        token: IntColumn,
        row: IntColumn | None = None,
        step: int | None = None,
        request: IntColumn | None = None,
        position: IntColumn | None = None,
        digest: IntColumn | None = None,
        log_sum_exp: FloatBlock | None = None,
        top_tokens: FloatBlock | None = None,
        top_logits: FloatBlock | None = None,
        logits: FloatBlock | None = None,
        top_count: int = 0,
        vocab: int = 0,
    ) -> bool:
        """What a step gave, a value an output row.

        Args:
            token: sampled.
            row: which row of the step; None: 0, 1, 2 ...
            step: its index; None: this thread's newest.
            request, position: None: as the rows of that step say, if it is the newest.
            digest: 8 bytes of the logits of a row.
            log_sum_exp: one float a row.
            top_tokens, top_logits: top_count values a row, row by row.
            logits: vocab values a row, row by row.
        """
        info = _abi.OutputInfo()
        self._library.rr_output_info_init(ctypes.byref(info), ctypes.sizeof(info))
        info.token, count, held = column("token", token)
        kept: list[object] = [held]
        info.rows, info.top_count, info.vocab = count, top_count, vocab
        if step is not None:
            info.step = step
        named = (("row", row), ("request", request), ("position", position), ("digest", digest))
        for name, values in named:
            if values is None:
                continue
            made, length, held = column(name, values)
            if length != count:
                raise RecordError(
                    Code.INVALID, f"column {name} has {length} values, column token {count}"
                )
            setattr(info, name, made)
            kept.append(held)
        blocks = (
            ("log_sum_exp", log_sum_exp, 1, "f"),
            ("top_tokens", top_tokens, top_count, "i"),
            ("top_logits", top_logits, top_count, "f"),
            ("logits", logits, vocab, "f"),
        )
        for name, given, width, typecode in blocks:
            if given is None:
                continue
            address, held = block(name, given, count * width, typecode)
            setattr(info, name, address)
            kept.append(held)
        code = self._library.rr_outputs(self._lane(), ctypes.byref(info))
        del kept
        return self._said(code, "outputs")

    # --- the whole ------------------------------------------------------------------------------

    def trigger(self) -> None:
        """KEEP_LAST: write out what the rings hold; recording goes on."""
        self._said(self._library.rr_trigger(self._open()), "trigger")

    def flush(self, timeout_ms: int = 10_000, *, sync: bool = False) -> bool:
        """Waits until all recorded before is in the file, with sync on the disk; False: timeout."""
        return self._said(self._library.rr_flush(self._open(), timeout_ms, int(sync)), "flush")

    def stats(self) -> Stats:
        """Counts up to now; may be called from any thread."""
        info = _abi.StatsInfo()
        self._library.rr_stats_read(self._open(), ctypes.byref(info), ctypes.sizeof(info))
        return _stats(info)

    def release_lane(self) -> None:
        """Gives this thread's ring to the next thread that records; before a thread ends."""
        lane = getattr(self._local, "lane", None)
        if lane is not None and self._handle is not None:
            self._library.rr_lane_close(self._handle, lane)
            self._local.lane = None

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> Stats:
        """Ends the trace and says what became of it; no thread may record any more.

        Raises:
            RecordError: FAILED when the trace is not complete; the recorder is closed all the same.
        """
        handle, why = self._open(), self._failure()
        self._handle = None
        info = _abi.StatsInfo()
        code = self._library.rr_close(handle, ctypes.byref(info), ctypes.sizeof(info))
        if code != _abi.OK:
            raise RecordError(Code.FAILED, f"{self.path} is not complete: {why or 'see stats'}")
        return _stats(info)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is None:
            return
        try:
            self.close()
        except RecordError:
            if kind is None:
                raise

    # --- inside ---------------------------------------------------------------------------------

    def _open(self) -> int:
        if self._handle is None:
            raise RecordError(Code.WRONG_ORDER, "the recorder is closed")
        return self._handle

    def _lane(self) -> int:
        handle = self._open()
        lane: int | None = getattr(self._local, "lane", None)
        if lane is None:
            lane = self._library.rr_lane_open(handle)
            if not lane:
                raise RecordError(
                    Code.FAILED,
                    "no ring for this thread: memory, files or the 256 lanes of a recorder ran out",
                )
            self._local.lane = lane
        return lane

    def _failure(self) -> str:
        text: bytes = self._library.rr_error_text(self._open())
        return text.decode(errors="replace")

    def _said(self, code: int, what: str) -> bool:
        if code == _abi.OK:
            return True
        if code in (_abi.DROPPED, _abi.TIMEOUT):
            return False
        if code == _abi.FAILED:
            raise RecordError(Code.FAILED, f"{what}: {self._failure() or 'cannot be written'}")
        raise RecordError(Code(code), f"{what}: {_ERROR_TEXT.get(code, 'refused')}")


def _stats(info: _abi.StatsInfo) -> Stats:
    values: dict[str, Any] = {name: getattr(info, name) for name in STAT_NAMES}
    values["failed"] = bool(info.failed)
    if info.first_dropped_step == 2**64 - 1:
        values["first_dropped_step"] = None
    return Stats(**values)
