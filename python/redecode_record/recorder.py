"""Recorder: a trace being written by libredecode_record.

    with Recorder("fleet.rdt", page_size=64, vocab=129280) as r:
        r.arrive(r.request_id("chat-7"), prompt_tokens=300, max_tokens=64)
        r.step(request=[0], position=[299], token=[17], slot=[363])
        r.outputs(token=[42])

Steps come from one thread. Nothing waits under the default policy: what does not fit is dropped,
counted, and named by a gap in the trace.
"""

from __future__ import annotations

import array
import ctypes as c
import enum
from collections.abc import Sequence
from typing import Any, Optional, Union, cast

from . import _abi

Columnar = Union[Sequence[int], Any]  # or anything with a buffer of 4 or 8 byte integers


class RecordError(Exception):
    """What the library refused: `code` as in redecode_record.h, 0 when the trace cannot be made."""

    def __init__(self, call: str, code: int, message: str = "") -> None:
        super().__init__(f"{call}: {message or _MEANINGS.get(code, f'code {code}')}")
        self.code = code


_MEANINGS = {
    4: "the file cannot be written any more",
    -1: "an argument has no meaning",
    -2: "wrong order of calls",
    -3: "larger than a quarter of the ring; counted as a loss",
}


class Policy(enum.IntEnum):
    DROP = 0
    BLOCK = 1
    KEEP_LAST = 2


class Phase(enum.IntEnum):
    PREFILL = 0
    DECODE = 1
    MIXED = 2


class End(enum.IntEnum):
    FINISHED = 0
    PREEMPTED = 1
    CANCELLED = 2
    ABORTED = 3


class Event(enum.IntEnum):
    REGISTERED = 0
    QUEUED = 1
    KV_HANDED_OVER = 2
    BLOCKS_ALLOCATED = 3
    BLOCKS_FREED = 4
    BLOCKS_COPIED = 5
    BLOCKS_SHARED = 6
    ENVIRONMENT = 7
    NOTE = 8


class _Columns:
    """Keeps what columns point at alive while the library copies it."""

    def __init__(self) -> None:
        self._alive: list[Any] = []

    def column(self, values: Optional[Columnar], rows: int, what: str) -> _abi.Column:
        if values is None:
            return _abi.Column(None, 0, 0)
        view = self._view(values)
        if len(view) < rows:
            raise ValueError(f"{what} has {len(view)} values for {rows} rows")
        address, stride = self._address(view)
        return _abi.Column(address, stride, view.itemsize)

    def bytes_of(self, values: Optional[Sequence[Any]], rows: int, what: str) -> Optional[int]:
        if values is None:
            return None
        if len(values) < rows:
            raise ValueError(f"{what} has {len(values)} values for {rows} rows")
        flags = (c.c_uint8 * rows)(*[1 if v else 0 for v in values[:rows]])
        self._alive.append(flags)
        return c.addressof(flags)

    def _view(self, values: Columnar) -> memoryview:
        try:
            view = memoryview(cast(Any, values))
        except TypeError:
            view = memoryview(array.array("q", [int(v) for v in values]))
        if (
            view.ndim != 1
            or view.itemsize not in (4, 8)
            or view.format.lstrip("@=<") not in "iIlLqQ"
        ):
            view = memoryview(array.array("q", [int(v) for v in values]))
        return view

    def _address(self, view: memoryview) -> tuple[Optional[int], int]:
        if len(view) == 0:
            return None, 0
        stride = view.strides[0] if view.strides else view.itemsize
        if view.readonly or stride != view.itemsize:
            # ctypes takes no address of read-only or strided memory; what it needs is a copy.
            copy = array.array("q", [int(v) for v in view]) if stride < 0 or view.readonly else None
            if copy is not None:
                return self._address_of_copy(copy, view)
            import numpy

            owner = numpy.asarray(view)
            self._alive.append(owner)
            return int(owner.__array_interface__["data"][0]), stride
        pinned = (c.c_char * (len(view) * view.itemsize)).from_buffer(view)
        self._alive.append(pinned)
        return c.addressof(pinned), stride

    def _address_of_copy(self, copy: Any, view: memoryview) -> tuple[int, int]:
        as_width = array.array("i" if view.itemsize == 4 else "q", copy)
        pinned = (c.c_char * (len(as_width) * as_width.itemsize)).from_buffer(as_width)
        self._alive.append(pinned)
        return c.addressof(pinned), as_width.itemsize


class Recorder:
    """One trace and one lane. Options are the fields of rr_options by name; text may be str."""

    def __init__(self, path: str, **options: Any) -> None:
        self._handle: Optional[int] = None
        self._library = _abi.load()
        o = _abi.Options()
        self._library.rr_options_init(c.byref(o), c.sizeof(o))
        kept: list[Any] = []
        o.path = path.encode()
        for name, value in options.items():
            self._set(o, name, value, kept)
        message = c.create_string_buffer(1024)
        self._handle = self._library.rr_open(c.byref(o), message, len(message))
        if not self._handle:
            raise RecordError("open", 0, message.value.decode(errors="replace"))
        self._lane: Optional[int] = self._library.rr_lane_open(self._handle)
        if not self._lane:
            self.close()
            raise RecordError("open", 0, "no memory for a ring")

    @staticmethod
    def _set(o: _abi.Options, name: str, value: Any, kept: list[Any]) -> None:
        fields = {field[0] for field in _abi.Options._fields_}
        if name not in fields or name in ("size", "abi_version", "path"):
            raise TypeError(f"there is no option {name!r}")
        if name == "buckets":
            numbers = (c.c_uint32 * len(value))(*value)
            kept.append(numbers)
            o.buckets = c.cast(numbers, c.POINTER(c.c_uint32))
            o.bucket_count = len(value)
        elif name == "environment":
            texts = (c.c_char_p * len(value))(*[v.encode() for v in value])
            kept.append(texts)
            o.environment = c.cast(texts, c.POINTER(c.c_char_p))
            o.environment_count = len(value)
        else:
            setattr(o, name, value.encode() if isinstance(value, str) else value)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request_id(self, engine_id: str) -> int:
        """The number of the engine's own id, the same until the request departs."""
        return int(self._library.rr_request_id(self._open(), engine_id.encode()))

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
        top_p: float = 1.0,
        min_p: float = 0.0,
        top_k: int = 0,
        seed: int = 0,
    ) -> bool:
        """True when it was taken, False when it was dropped and counted; so for all that follow."""
        a = _abi.Arrival()
        self._library.rr_arrival_init(c.byref(a), c.sizeof(a))
        a.request, a.session, a.round = request, session, round
        a.prompt_tokens, a.cached_tokens, a.max_tokens = prompt_tokens, cached_tokens, max_tokens
        a.resumed = 1 if resumed else 0
        a.temperature, a.top_p, a.min_p, a.top_k = temperature, top_p, min_p, top_k
        a.seed = seed & (2**64 - 1)
        return self._taken("arrive", self._library.rr_arrive(self._lane_of(), c.byref(a)))

    def depart(self, request: int, end: End = End.FINISHED) -> bool:
        return self._taken("depart", self._library.rr_depart(self._lane_of(), request, int(end)))

    def page(self, request: int, index: int, page: int, shared: bool = False) -> bool:
        code = self._library.rr_page(self._lane_of(), request, index, page, 1 if shared else 0)
        return self._taken("page", code)

    def event(
        self, kind: Event, request: int = _abi.NO_REQUEST, a: int = 0, b: int = 0, text: str = ""
    ) -> bool:
        code = self._library.rr_event(self._lane_of(), int(kind), request, a, b, text.encode())
        return self._taken("event", code)

    def step(
        self,
        *,
        request: Columnar,
        position: Columnar,
        token: Columnar,
        slot: Columnar,
        wants_output: Optional[Sequence[Any]] = None,
        phase: Phase = Phase.DECODE,
        bucket: int = 0,
        index: int = _abi.NEXT_STEP,
        time_ns: int = _abi.TAKE_CLOCK,
    ) -> bool:
        """Rows as columns: sequences of int, or contiguous buffers of 4 or 8 byte integers (NumPy
        arrays, array.array, CPU tensors by .numpy()), which are read in place."""
        columns = _Columns()
        info = _abi.StepInfo()
        self._library.rr_step_info_init(c.byref(info), c.sizeof(info))
        rows = len(request)
        info.phase, info.bucket, info.rows = int(phase), bucket, rows
        info.index, info.time_ns = index, time_ns
        info.request = columns.column(request, rows, "request")
        info.position = columns.column(position, rows, "position")
        info.token = columns.column(token, rows, "token")
        info.slot = columns.column(slot, rows, "slot")
        info.wants_output = columns.bytes_of(wants_output, rows, "wants_output")
        return self._taken("step", self._library.rr_step(self._lane_of(), c.byref(info)))

    def outputs(
        self,
        *,
        token: Columnar,
        row: Optional[Columnar] = None,
        request: Optional[Columnar] = None,
        position: Optional[Columnar] = None,
        digest: Optional[Columnar] = None,
        step: int = _abi.LAST_STEP,
    ) -> bool:
        columns = _Columns()
        info = _abi.OutputInfo()
        self._library.rr_output_info_init(c.byref(info), c.sizeof(info))
        rows = len(token)
        info.rows, info.step = rows, step
        info.token = columns.column(token, rows, "token")
        info.row = columns.column(row, rows, "row")
        info.request = columns.column(request, rows, "request")
        info.position = columns.column(position, rows, "position")
        info.digest = columns.column(digest, rows, "digest")
        return self._taken("outputs", self._library.rr_outputs(self._lane_of(), c.byref(info)))

    def trigger(self) -> None:
        """Policy KEEP_LAST: writes out what the ring holds."""
        self._library.rr_trigger(self._open())

    def flush(self, timeout_ms: int = 10_000, sync: bool = False) -> None:
        self._taken("flush", self._library.rr_flush(self._open(), timeout_ms, 1 if sync else 0))

    def stats(self) -> dict[str, int]:
        s = _abi.Stats()
        self._library.rr_stats_read(self._open(), c.byref(s), c.sizeof(s))
        return self._as_dict(s)

    def close(self) -> dict[str, int]:
        """Ends the trace and returns its final numbers. RecordError when it is not complete. A
        second call does nothing."""
        if self._handle is None:
            return {}
        handle, self._handle, self._lane = self._handle, None, None
        text = self._library.rr_error_text(handle).decode(errors="replace")
        s = _abi.Stats()
        code = self._library.rr_close(handle, c.byref(s), c.sizeof(s))
        if code != 0:
            raise RecordError("close", code, text)
        return self._as_dict(s)

    @staticmethod
    def _as_dict(s: _abi.Stats) -> dict[str, int]:
        names = [field[0] for field in _abi.Stats._fields_]
        return {name: int(getattr(s, name)) for name in names if name not in ("size", "reserved")}

    def _open(self) -> int:
        if self._handle is None:
            raise RecordError("recorder", -2, "it is closed")
        return self._handle

    def _lane_of(self) -> int:
        self._open()
        assert self._lane is not None
        return self._lane

    def _taken(self, call: str, code: int) -> bool:
        if code == 4:
            text = self._library.rr_error_text(self._open()).decode(errors="replace")
            raise RecordError(call, code, text)
        if code < 0 and code != -3:
            raise RecordError(call, code)
        return bool(code == 0)
