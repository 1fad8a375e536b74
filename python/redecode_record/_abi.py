"""The C ABI of libredecode_record (recorder/abi/redecode_record.h) in ctypes, field by field."""

from __future__ import annotations

import ctypes as c
import os
import pathlib
from typing import Any

ABI_VERSION = 1
NEXT_STEP = LAST_STEP = NO_TIME = 2**64 - 1
TAKE_CLOCK = 0
NO_REQUEST = 2**32 - 1


class Options(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("abi_version", c.c_uint32),
        ("path", c.c_char_p),
        ("ring_dir", c.c_char_p),
        ("ring_bytes", c.c_uint64),
        ("policy", c.c_int32),
        ("block_timeout_us", c.c_uint32),
        ("overwrite", c.c_int32),
        ("layout", c.c_int32),
        ("zstd_level", c.c_int32),
        ("chunk_steps", c.c_uint32),
        ("flush_ms", c.c_uint32),
        ("sync_ms", c.c_uint32),
        ("rotate_bytes", c.c_uint64),
        ("rotate_s", c.c_uint32),
        ("keep_files", c.c_uint32),
        ("sampling", c.c_char_p),
        ("trigger", c.c_char_p),
        ("writer", c.c_char_p),
        ("model_family", c.c_char_p),
        ("model_spec", c.c_char_p),
        ("weights_sha256", c.c_char_p),
        ("tokenizer_sha256", c.c_char_p),
        ("config_sha256", c.c_char_p),
        ("vocab", c.c_uint32),
        ("layers", c.c_uint32),
        ("page_size", c.c_uint32),
        ("page_count", c.c_uint32),
        ("max_batch_rows", c.c_uint32),
        ("max_seq_len", c.c_uint32),
        ("buckets", c.POINTER(c.c_uint32)),
        ("bucket_count", c.c_uint32),
        ("reserved0", c.c_uint32),
        ("workload", c.c_char_p),
        ("environment", c.POINTER(c.c_char_p)),
        ("environment_count", c.c_uint32),
        ("reserved1", c.c_uint32),
    ]


class Column(c.Structure):
    _fields_ = [("data", c.c_void_p), ("stride", c.c_int32), ("width", c.c_int32)]


class Arrival(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("request", c.c_uint32),
        ("session", c.c_uint32),
        ("round", c.c_uint32),
        ("prompt_tokens", c.c_uint32),
        ("cached_tokens", c.c_uint32),
        ("max_tokens", c.c_uint32),
        ("resumed", c.c_int32),
        ("temperature", c.c_float),
        ("top_p", c.c_float),
        ("min_p", c.c_float),
        ("top_k", c.c_int32),
        ("seed", c.c_uint64),
    ]


class StepInfo(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("phase", c.c_int32),
        ("bucket", c.c_uint32),
        ("rows", c.c_uint32),
        ("index", c.c_uint64),
        ("time_ns", c.c_uint64),
        ("request", Column),
        ("position", Column),
        ("token", Column),
        ("slot", Column),
        ("wants_output", c.c_void_p),
    ]


class OutputInfo(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("rows", c.c_uint32),
        ("step", c.c_uint64),
        ("row", Column),
        ("request", Column),
        ("position", Column),
        ("token", Column),
        ("digest", Column),
        ("log_sum_exp", c.c_void_p),
        ("top_count", c.c_uint32),
        ("vocab", c.c_uint32),
        ("top_tokens", c.c_void_p),
        ("top_logits", c.c_void_p),
        ("logits", c.c_void_p),
    ]


class Stats(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("lanes", c.c_uint32),
        ("steps_seen", c.c_uint64),
        ("steps_written", c.c_uint64),
        ("steps_dropped", c.c_uint64),
        ("steps_skipped", c.c_uint64),
        ("records_dropped", c.c_uint64),
        ("bytes_dropped", c.c_uint64),
        ("gaps", c.c_uint64),
        ("outputs_written", c.c_uint64),
        ("events_written", c.c_uint64),
        ("ring_bytes", c.c_uint64),
        ("ring_used_bytes", c.c_uint64),
        ("ring_peak_bytes", c.c_uint64),
        ("file_bytes", c.c_uint64),
        ("files", c.c_uint64),
        ("chunks", c.c_uint64),
        ("chunk_write_us_last", c.c_uint64),
        ("chunk_write_us_max", c.c_uint64),
        ("first_dropped_step", c.c_uint64),
        ("triggers", c.c_uint64),
        ("failed", c.c_int32),
        ("reserved", c.c_int32),
    ]


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "rr_abi_version": (c.c_uint32, []),
    "rr_version": (c.c_char_p, []),
    "rr_options_init": (None, [c.POINTER(Options), c.c_size_t]),
    "rr_arrival_init": (None, [c.POINTER(Arrival), c.c_size_t]),
    "rr_step_info_init": (None, [c.POINTER(StepInfo), c.c_size_t]),
    "rr_output_info_init": (None, [c.POINTER(OutputInfo), c.c_size_t]),
    "rr_open": (c.c_void_p, [c.POINTER(Options), c.c_char_p, c.c_size_t]),
    "rr_lane_open": (c.c_void_p, [c.c_void_p]),
    "rr_lane_close": (None, [c.c_void_p, c.c_void_p]),
    "rr_request_id": (c.c_uint32, [c.c_void_p, c.c_char_p]),
    "rr_depart": (c.c_int, [c.c_void_p, c.c_uint32, c.c_int]),
    "rr_arrive": (c.c_int, [c.c_void_p, c.POINTER(Arrival)]),
    "rr_page": (c.c_int, [c.c_void_p, c.c_uint32, c.c_uint32, c.c_uint32, c.c_int]),
    "rr_event": (
        c.c_int,
        [c.c_void_p, c.c_int, c.c_uint32, c.c_uint32, c.c_uint32, c.c_char_p],
    ),
    "rr_step": (c.c_int, [c.c_void_p, c.POINTER(StepInfo)]),
    "rr_outputs": (c.c_int, [c.c_void_p, c.POINTER(OutputInfo)]),
    "rr_trigger": (c.c_int, [c.c_void_p]),
    "rr_flush": (c.c_int, [c.c_void_p, c.c_uint32, c.c_int]),
    "rr_stats_read": (None, [c.c_void_p, c.POINTER(Stats), c.c_size_t]),
    "rr_error_text": (c.c_char_p, [c.c_void_p]),
    "rr_close": (c.c_int, [c.c_void_p, c.POINTER(Stats), c.c_size_t]),
}


def load() -> c.CDLL:
    """The library: REDECODE_RECORD_LIBRARY, else the one in this package. OSError when neither is
    there, RuntimeError when it speaks another version of the ABI."""
    packaged = pathlib.Path(__file__).with_name("libredecode_record.so")
    path = os.environ.get("REDECODE_RECORD_LIBRARY") or str(packaged)
    library = c.CDLL(path)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    version = library.rr_abi_version()
    if version != ABI_VERSION:
        raise RuntimeError(f"{path} has ABI version {version}, this package needs {ABI_VERSION}")
    return library
