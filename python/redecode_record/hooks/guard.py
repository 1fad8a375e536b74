"""Guard: recording must never harm serving. What a hook raises is counted and told once; after too
many failures the hook switches itself off, and the engine goes on as if it had never been there."""

from __future__ import annotations

import logging
import os
from typing import Any, Callable, Optional

from ..recorder import Recorder

log = logging.getLogger("redecode_record")
MOST_FAILURES = 8


class Guard:
    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self.off = False

    def run(self, work: Callable[..., Any], *arguments: Any) -> None:
        if self.off:
            return
        try:
            work(*arguments)
        except Exception as error:  # the engine must go on
            self.failures += 1
            if self.failures == 1:
                log.warning("%s: recording failed: %s: %s", self.name, type(error).__name__, error)
            if self.failures == MOST_FAILURES:
                self.off = True
                log.warning("%s: recording is off after %d failures", self.name, self.failures)


def recorder_from_environment(**options: Any) -> Optional[Recorder]:
    """REDECODE_RECORD names the trace; without it nothing is recorded. '%p' stands for the process
    id, for engines with a process a rank."""
    path = os.environ.get("REDECODE_RECORD")
    if not path:
        return None
    sampling = os.environ.get("REDECODE_RECORD_SAMPLING")
    if sampling:
        options["sampling"] = sampling
    kept = ("CUDA_", "SGLANG_", "VLLM_", "PYTORCH_", "NCCL_")
    options["environment"] = sorted(
        f"{k}={v}"
        for k, v in os.environ.items()
        if k.startswith(kept) and not any(s in k for s in ("KEY", "TOKEN", "SECRET", "PASSWORD"))
    )
    return Recorder(path.replace("%p", str(os.getpid())), **options)
