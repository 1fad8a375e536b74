"""SGLang: records when the scheduler takes a batch's result, from the batch's CPU side.

Scheduler.process_batch_result(batch, result) is the first place where, with and without overlap
scheduling, the host knows the tokens of the step; everything read here is host memory:
ScheduleBatch.reqs [rid, origin_input_ids, output_ids, sampling_params, finished(), prefix_indices],
forward_mode, extend_lens, prefix_lens and GenerationBatchResult.next_token_ids. Slots live on the
GPU (out_cache_loc) and are not fetched: pages are numbered by the hook.

    import redecode_record.hooks.sglang as hook
    hook.register()          # before the scheduler starts; REDECODE_RECORD names the trace
"""

from __future__ import annotations

import functools
from typing import Any, Optional

from ..recorder import End, Recorder
from .guard import Guard, log, recorder_from_environment
from .schedule import Part, Schedule

PAGE_SIZE = 64


def _tokens(value: Any) -> list[int]:
    """A list, or a tensor that is on the host already; a device tensor is not waited for."""
    if value is None:
        return []
    device = getattr(value, "device", None)
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        raise TypeError("the result is still on the device")
    return [int(t) for t in (value.tolist() if hasattr(value, "tolist") else value)]


class SglangHook:
    def __init__(self, recorder: Recorder, page_size: int) -> None:
        self.guard = Guard("sglang hook")
        self.recorder = recorder
        self.schedule = Schedule(recorder, page_size, own_pages=True)

    def before_result(self, batch: Any, result: Any) -> None:
        self.guard.run(self._before_result, batch, result)

    def after_result(self, batch: Any) -> None:
        self.guard.run(self._after_result, batch)

    def _before_result(self, batch: Any, result: Any) -> None:
        extend = self._is_extend(batch)
        parts: list[Part] = []
        for i, req in enumerate(batch.reqs):
            known = list(req.origin_input_ids) + list(req.output_ids)
            if req.rid not in self.schedule.running:
                self._arrive(req, known, len(getattr(req, "prefix_indices", ()) or ()))
            running = self.schedule.running[req.rid]
            running.tokens = known
            if extend:
                first, count = int(batch.prefix_lens[i]), int(batch.extend_lens[i])
            else:
                first, count = len(known) - 1, 1
            parts.append(Part(req.rid, first, count))
        if not parts:
            return
        samples = self.schedule.step(parts)
        tokens = _tokens(getattr(result, "next_token_ids", None))
        by_request = {req.rid: tokens[i] for i, req in enumerate(batch.reqs) if i < len(tokens)}
        self.schedule.outputs(
            samples, [[by_request[s]] if s in by_request else [] for s in samples]
        )

    def _after_result(self, batch: Any) -> None:
        for req in batch.reqs:
            if req.finished():
                reason = type(getattr(req, "finished_reason", None)).__name__
                self.schedule.depart(req.rid, End.ABORTED if "ABORT" in reason else End.FINISHED)

    @staticmethod
    def _is_extend(batch: Any) -> bool:
        mode = batch.forward_mode
        return bool(mode.is_extend()) if hasattr(mode, "is_extend") else not mode.is_decode()

    def _arrive(self, req: Any, known: list[int], cached: int) -> None:
        sampling = req.sampling_params
        self.schedule.arrive(
            req.rid,
            known,
            cached_tokens=min(cached, len(known)),
            max_tokens=getattr(sampling, "max_new_tokens", 0) or 0,
            temperature=getattr(sampling, "temperature", 0.0) or 0.0,
            top_p=getattr(sampling, "top_p", 1.0),
            top_k=getattr(sampling, "top_k", 0)
            if (getattr(sampling, "top_k", 0) or 0) < 2**30
            else 0,
            min_p=getattr(sampling, "min_p", 0.0) or 0.0,
            seed=getattr(sampling, "sampling_seed", None),
        )


def attach(scheduler_class: Any, hook: SglangHook) -> None:
    process = scheduler_class.process_batch_result

    @functools.wraps(process)
    def process_batch_result(self: Any, batch: Any, result: Any, *args: Any, **kw: Any) -> Any:
        hook.before_result(batch, result)
        answer = process(self, batch, result, *args, **kw)
        hook.after_result(batch)
        return answer

    scheduler_class.process_batch_result = process_batch_result


def register() -> Optional[SglangHook]:
    try:
        recorder = recorder_from_environment(writer="sglang", page_size=PAGE_SIZE)
        if recorder is None:
            return None
        from sglang.srt.managers.scheduler import (  # type: ignore[import-not-found,unused-ignore]
            Scheduler,
        )

        hook = SglangHook(recorder, PAGE_SIZE)
        attach(Scheduler, hook)
        return hook
    except Exception as error:  # recording must not stop the server
        log.warning("sglang hook: not attached: %s: %s", type(error).__name__, error)
        return None
