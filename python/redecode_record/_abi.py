"""The C ABI of libredecode_record (recorder/abi/redecode_record.h) as ctypes sees it."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from ctypes import (
    POINTER,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any, ClassVar

from .errors import Code, RecordError

ABI_VERSION = 1
LIBRARY_VARIABLE = "REDECODE_RECORD_LIBRARY"
LIBRARY_FILE = "libredecode_record.so"

OK, DROPPED, TIMEOUT, FAILED = 0, 1, 3, 4
NEXT_STEP = LAST_STEP = NO_TIME = 2**64 - 1
NO_REQUEST = 2**32 - 1


class Options(ctypes.Structure):
    _fields_: ClassVar = [
        ("size", c_uint32),
        ("abi_version", c_uint32),
        ("path", c_char_p),
        ("ring_dir", c_char_p),
        ("ring_bytes", c_uint64),
        ("policy", c_int32),
        ("block_timeout_us", c_uint32),
        ("overwrite", c_int32),
        ("layout", c_int32),
        ("zstd_level", c_int32),
        ("chunk_steps", c_uint32),
        ("flush_ms", c_uint32),
        ("sync_ms", c_uint32),
        ("rotate_bytes", c_uint64),
        ("rotate_s", c_uint32),
        ("keep_files", c_uint32),
        ("sampling", c_char_p),
        ("trigger", c_char_p),
        ("writer", c_char_p),
        ("model_family", c_char_p),
        ("model_spec", c_char_p),
        ("weights_sha256", c_char_p),
        ("tokenizer_sha256", c_char_p),
        ("config_sha256", c_char_p),
        ("vocab", c_uint32),
        ("layers", c_uint32),
        ("page_size", c_uint32),
        ("page_count", c_uint32),
        ("max_batch_rows", c_uint32),
        ("max_seq_len", c_uint32),
        ("buckets", POINTER(c_uint32)),
        ("bucket_count", c_uint32),
        ("reserved0", c_uint32),
        ("workload", c_char_p),
        ("environment", POINTER(c_char_p)),
        ("environment_count", c_uint32),
        ("reserved1", c_uint32),
    ]


class Column(ctypes.Structure):
    _fields_: ClassVar = [("data", c_void_p), ("stride", c_int32), ("width", c_int32)]


class Arrival(ctypes.Structure):
    _fields_: ClassVar = [
        ("size", c_uint32),
        ("request", c_uint32),
        ("session", c_uint32),
        ("round", c_uint32),
        ("prompt_tokens", c_uint32),
        ("cached_tokens", c_uint32),
        ("max_tokens", c_uint32),
        ("resumed", c_int32),
        ("temperature", c_float),
        ("top_p", c_float),
        ("min_p", c_float),
        ("top_k", c_int32),
        ("seed", c_uint64),
    ]


class StepInfo(ctypes.Structure):
    _fields_: ClassVar = [
        ("size", c_uint32),
        ("phase", c_int32),
        ("bucket", c_uint32),
        ("rows", c_uint32),
        ("index", c_uint64),
        ("time_ns", c_uint64),
        ("request", Column),
        ("position", Column),
        ("token", Column),
        ("slot", Column),
        ("wants_output", c_char_p),
    ]


class OutputInfo(ctypes.Structure):
    _fields_: ClassVar = [
        ("size", c_uint32),
        ("rows", c_uint32),
        ("step", c_uint64),
        ("row", Column),
        ("request", Column),
        ("position", Column),
        ("token", Column),
        ("digest", Column),
        ("log_sum_exp", c_void_p),
        ("top_count", c_uint32),
        ("vocab", c_uint32),
        ("top_tokens", c_void_p),
        ("top_logits", c_void_p),
        ("logits", c_void_p),
    ]


class StatsInfo(ctypes.Structure):
    _fields_: ClassVar = [
        ("size", c_uint32),
        ("lanes", c_uint32),
        ("steps_seen", c_uint64),
        ("steps_written", c_uint64),
        ("steps_dropped", c_uint64),
        ("steps_skipped", c_uint64),
        ("records_dropped", c_uint64),
        ("bytes_dropped", c_uint64),
        ("gaps", c_uint64),
        ("outputs_written", c_uint64),
        ("events_written", c_uint64),
        ("ring_bytes", c_uint64),
        ("ring_used_bytes", c_uint64),
        ("ring_peak_bytes", c_uint64),
        ("file_bytes", c_uint64),
        ("files", c_uint64),
        ("chunks", c_uint64),
        ("chunk_write_us_last", c_uint64),
        ("chunk_write_us_max", c_uint64),
        ("first_dropped_step", c_uint64),
        ("triggers", c_uint64),
        ("failed", c_int32),
        ("reserved", c_int32),
    ]


_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "rr_abi_version": (c_uint32, []),
    "rr_version": (c_char_p, []),
    "rr_options_init": (None, [POINTER(Options), c_size_t]),
    "rr_arrival_init": (None, [POINTER(Arrival), c_size_t]),
    "rr_step_info_init": (None, [POINTER(StepInfo), c_size_t]),
    "rr_output_info_init": (None, [POINTER(OutputInfo), c_size_t]),
    "rr_open": (c_void_p, [POINTER(Options), c_char_p, c_size_t]),
    "rr_lane_open": (c_void_p, [c_void_p]),
    "rr_lane_close": (None, [c_void_p, c_void_p]),
    "rr_depart": (c_int, [c_void_p, c_uint32, c_int]),
    "rr_arrive": (c_int, [c_void_p, POINTER(Arrival)]),
    "rr_page": (c_int, [c_void_p, c_uint32, c_uint32, c_uint32, c_int]),
    "rr_event": (c_int, [c_void_p, c_int, c_uint32, c_uint32, c_uint32, c_char_p]),
    "rr_step": (c_int, [c_void_p, POINTER(StepInfo)]),
    "rr_outputs": (c_int, [c_void_p, POINTER(OutputInfo)]),
    "rr_trigger": (c_int, [c_void_p]),
    "rr_flush": (c_int, [c_void_p, c_uint32, c_int]),
    "rr_stats_read": (None, [c_void_p, POINTER(StatsInfo), c_size_t]),
    "rr_error_text": (c_char_p, [c_void_p]),
    "rr_close": (c_int, [c_void_p, POINTER(StatsInfo), c_size_t]),
}


def library_path() -> str:
    """The shared library to load: $REDECODE_RECORD_LIBRARY, else the wheel's, else the system's."""
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return named
    beside = Path(__file__).with_name(LIBRARY_FILE)
    if beside.exists():
        return str(beside)
    found = ctypes.util.find_library("redecode_record")
    if found:
        return found
    raise RecordError(
        Code.NO_LIBRARY,
        f"{LIBRARY_FILE} is not beside the package and not installed: install the wheel "
        f"(pip install ./python) or set {LIBRARY_VARIABLE} to a built one",
    )


def load(path: str | None = None) -> ctypes.CDLL:
    """The library with its prototypes; cheap when it is loaded already.

    Raises:
        RecordError: NO_LIBRARY when it is missing, lacks a name or speaks another ABI.
    """
    chosen = path or library_path()
    try:
        library = ctypes.CDLL(chosen)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise RecordError(Code.NO_LIBRARY, f"{chosen} cannot be used: {error}") from error
    spoken = library.rr_abi_version()
    if spoken != ABI_VERSION:
        raise RecordError(
            Code.NO_LIBRARY,
            f"{chosen} has ABI version {spoken}, this package speaks {ABI_VERSION}: "
            "install both from one checkout",
        )
    return library
