"""The named numbers of the ABI, the options of a recorder and its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum


class Phase(IntEnum):
    """What the rows of a step are."""

    PREFILL = 0
    DECODE = 1
    MIXED = 2


class Reason(IntEnum):
    """Why a request departs. After PREEMPTED it may arrive again, resumed."""

    FINISHED = 0
    PREEMPTED = 1
    CANCELLED = 2
    ABORTED = 3


class Event(IntEnum):
    """What happened beside the steps, and what the numbers a and b and the text mean."""

    REGISTERED = 0  # text: the engine's own id
    QUEUED = 1
    KV_HANDED_OVER = 2  # a: first page, b: pages
    BLOCKS_ALLOCATED = 3  # a: first block, b: blocks
    BLOCKS_FREED = 4  # a: first block, b: blocks
    BLOCKS_COPIED = 5  # a: from, b: to
    BLOCKS_SHARED = 6  # a: block, b: its users now
    ENVIRONMENT = 7  # text: NAME=value
    NOTE = 8


class Policy(IntEnum):
    """What happens when the ring is full."""

    DROP = 0  # never waits; the loss is counted and becomes a gap
    BLOCK = 1  # waits up to block_timeout_us, 0: for ever
    KEEP_LAST = 2  # keeps the newest ring_bytes, written only by a trigger


class Layout(IntEnum):
    """How steps lie in the file."""

    ROWS = 0
    COLUMNS = 1


@dataclass(frozen=True)
class Options:
    """How and what a Recorder records; 0 and None mean the library's default.

    Sizes end in their unit. `sampling` is "all", "1/16" (of requests), "requests:ID,ID",
    "sessions:N,N" or "steps:A..B"; `trigger`, for KEEP_LAST, "token:N", "nonfinite",
    "step_over_ms:N" or "signal:N", joined by commas. Everything from `writer` on is said in the
    header of the trace. page_size 0 leaves slots unchecked.
    """

    ring_dir: str | None = None
    ring_bytes: int = 0
    policy: Policy = Policy.DROP
    block_timeout_us: int = 0
    overwrite: bool = False
    layout: Layout = Layout.COLUMNS
    zstd_level: int = 0
    chunk_steps: int = 0
    flush_ms: int = 0
    sync_ms: int = 0
    rotate_bytes: int = 0
    rotate_s: int = 0
    keep_files: int = 0
    sampling: str | None = None
    trigger: str | None = None
    writer: str | None = None
    model_family: str | None = None
    model_spec: str | None = None
    weights_sha256: str | None = None
    tokenizer_sha256: str | None = None
    config_sha256: str | None = None
    vocab: int = 0
    layers: int = 0
    page_size: int = 0
    page_count: int = 0
    max_batch_rows: int = 0
    max_seq_len: int = 0
    buckets: Sequence[int] = ()
    workload: str | None = None
    environment: Sequence[str] = ()


@dataclass(frozen=True)
class Stats:
    """Counts of a recorder since it was opened; what the fields mean stands in the C header.

    first_dropped_step is None when no step was dropped.
    """

    lanes: int
    steps_seen: int
    steps_written: int
    steps_dropped: int
    steps_skipped: int
    records_dropped: int
    bytes_dropped: int
    gaps: int
    outputs_written: int
    events_written: int
    ring_bytes: int
    ring_used_bytes: int
    ring_peak_bytes: int
    file_bytes: int
    files: int
    chunks: int
    chunk_write_us_last: int
    chunk_write_us_max: int
    first_dropped_step: int | None
    triggers: int
    failed: bool

    @property
    def lost_nothing(self) -> bool:
        """True when every record given is in the trace or will be."""
        return self.records_dropped == 0 and not self.failed


STAT_NAMES = tuple(field.name for field in fields(Stats))
