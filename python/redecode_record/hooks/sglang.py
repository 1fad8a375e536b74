"""Records an SGLang scheduler.

Written for sglang 0.5.23, whose plugins (entry point group "sglang.srt.plugins") run in every
scheduler process before the Scheduler is made. What is replaced, on the one Scheduler object:

    Scheduler.run_batch(self, batch: ScheduleBatch, pp_proxy_tensors=None)
    Scheduler.process_batch_result(self, batch: ScheduleBatch, result)

What is read, all of it on the host: ScheduleBatch.reqs, forward_mode, forward_iter, seq_lens_cpu,
prefix_lens, extend_lens, global_num_tokens, spec_algorithm, beam_tail; Req.rid, origin_input_ids,
output_ids, kv.req_pool_idx, sampling_params, session_id, finished(), finished_reason;
GenerationBatchResult.can_run_cuda_graph.

Two things are not on the host and therefore not in the trace:
- Physical KV slots (out_cache_loc, req_to_token are GPU tensors). Slots are logical instead: each
  request has pages of its own, numbered as they are needed and used again after it departs. Which
  request shares a prefix with which is not in them; how much was found cached is.
- Logits. Outputs hold sampled tokens only.

With the overlap scheduler a step is written when the tokens of the step before it are back, that
is before its own result. Speculative decoding, beam search, diffusion and split prefill end the
hook: a trace cannot say them yet.
"""

from __future__ import annotations

import functools
import heapq
import multiprocessing.util
import time
from collections.abc import Sequence
from typing import Any

from ..recorder import Recorder
from ..words import Event, Options, Phase, Reason
from . import settings
from .guard import Guard, logger
from .schedule import Chunk, Launch, Running, ScheduleWriter, TokenSource, Unsupported

_TOP_K_ALL = 1 << 30  # what SGLang calls "all"
_SESSIONS_KEPT = 65536  # those not seen for longest begin anew
_PHASES = {"DECODE": Phase.DECODE, "EXTEND": Phase.PREFILL, "MIXED": Phase.MIXED}


class RequestTokens(TokenSource):
    """The sequence of a Req, read where SGLang keeps it."""

    def __init__(self, req: Any) -> None:
        self._req = req

    def known(self) -> int:
        return len(self._req.origin_input_ids) + len(self._req.output_ids)

    def slice(self, begin: int, end: int) -> Sequence[int]:
        prompt, sampled = self._req.origin_input_ids, self._req.output_ids
        border = len(prompt)
        tokens = list(prompt[begin : min(end, border)])
        tokens.extend(sampled[max(begin - border, 0) : max(end - border, 0)])
        return tokens

    def one(self, position: int) -> int:
        prompt, sampled = self._req.origin_input_ids, self._req.output_ids
        at = position - len(prompt)
        if at < 0:
            return int(prompt[position])
        return int(sampled[at]) if at < len(sampled) else -1


class LogicalPages:
    """Page numbers from 1 on, the lowest free one first."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 1

    def take(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, pages: Sequence[int]) -> None:
        for page in pages:
            heapq.heappush(self._free, page)


class SglangHook:
    """What one Scheduler does, told to one recorder; attach makes it."""

    def __init__(self, recorder: Recorder, page_size: int, vocab: int, buckets: Sequence[int]):
        self.recorder = recorder
        self.writer = ScheduleWriter(recorder, page_size, vocab)
        self._page_size = page_size
        self._buckets = sorted(buckets)
        self._running: dict[str, Running] = {}
        self._sessions: dict[str, tuple[int, int]] = {}
        self._pages = LogicalPages()
        self._departing: list[tuple[int, Reason]] = []
        self._in_flight: dict[int, Launch] = {}

    def scheduled(self, batch: Any) -> Launch | None:
        """Before run_batch: what it is about to launch."""
        mode = batch.forward_mode
        if mode.is_prebuilt():
            for req in batch.reqs:
                self.recorder.event(Event.KV_HANDED_OVER, text=req.rid[:1000])
            return None
        if mode.is_idle() or not batch.reqs:
            return None
        if batch.spec_algorithm is not None and not batch.spec_algorithm.is_none():
            raise Unsupported("speculative decoding")
        if batch.beam_tail is not None or mode.name not in _PHASES:
            raise Unsupported(f"a batch of mode {mode.name} or with beams")
        if mode.is_decode():
            begins = [length - 1 for length in batch.seq_lens_cpu.tolist()]
            counts = [1] * len(begins)
        else:
            begins, counts = list(batch.prefix_lens), list(batch.extend_lens)
        step = Launch(_PHASES[mode.name], time.monotonic_ns(), [])
        step.departures, self._departing = self._departing, []
        for req, begin, count in zip(batch.reqs, begins, counts, strict=True):
            if count:
                step.chunks.append(self._chunk(step, req, begin, count))
        return step

    def launched(self, step: Launch, batch: Any, result: Any) -> None:
        """After run_batch, the GPU still at work; result None: it raised."""
        if step.phase == Phase.DECODE and getattr(result, "can_run_cuda_graph", False):
            rows = max([len(step.chunks), *(batch.global_num_tokens or ())])
            step.bucket = next((size for size in self._buckets if size >= rows), 0)
        self.writer.launch(step)
        if result is not None:
            self._in_flight[batch.forward_iter] = step

    def lengths(self, batch: Any) -> list[int]:
        """Before process_batch_result: how many tokens each request has."""
        return [len(req.output_ids) for req in batch.reqs]

    def processed(self, batch: Any, lengths: list[int]) -> None:
        """After process_batch_result: the new tokens are in the requests."""
        step = self._in_flight.pop(batch.forward_iter, None)
        if step is not None:
            new = {
                req.rid: req.output_ids[length]
                for req, length in zip(batch.reqs, lengths, strict=True)
                if len(req.output_ids) > length
            }
            rows, end = [], 0
            for chunk in step.chunks:
                end += chunk.count
                name = chunk.running.name
                if chunk.samples and name in new:
                    last = chunk.begin + chunk.count - 1
                    rows.append((end - 1, chunk.running.number, last, new[name]))
            self.writer.outputs(step.index, rows)
            self.writer.write_known()
        for req in batch.reqs:
            if req.finished():
                self._depart(req)

    def close(self, why: str) -> None:
        """Writes what waits and ends the trace."""
        if self.recorder.closed:
            return
        try:
            self.writer.finish()
            self.recorder.event(Event.NOTE, text=f"sglang hook ended: {why}"[:1000])
        finally:
            self.recorder.close()

    def _chunk(self, step: Launch, req: Any, begin: int, count: int) -> Chunk:
        running = self._running.get(req.rid)
        place = req.kv.req_pool_idx
        if running is None:
            running = self._arrive(step, req, begin, None)
        elif running.next_position != begin or running.place != place:
            step.departures.append((running.number, Reason.PREEMPTED))
            self._pages.give_back(running.pages)
            running = self._arrive(step, req, begin, running.number)
        end = begin + count
        running.next_position, running.place = end, place
        while len(running.pages) * self._page_size < end:
            entry, page = len(running.pages), self._pages.take()
            running.pages.append(page)
            shared = (entry + 1) * self._page_size <= begin
            step.pages.append((running.number, entry, page, shared))
        samples = step.phase == Phase.DECODE or end >= running.tokens.known()
        return Chunk(running, begin, count, samples)

    def _arrive(self, step: Launch, req: Any, begin: int, number: int | None) -> Running:
        resumed = number is not None
        if number is None:
            number = self.recorder.new_request(req.rid)
        running = Running(req.rid, number, RequestTokens(req))
        self._running[req.rid] = running
        session, turn = self._session(req, number, resumed)
        sampling = req.sampling_params
        greedy = sampling.top_k == 1
        prompt = running.tokens.known() if resumed else len(req.origin_input_ids)
        step.arrivals.append(
            {
                "request": number,
                "session": session,
                "round": turn,
                "prompt_tokens": max(prompt, begin),
                "cached_tokens": begin,
                "max_tokens": sampling.max_new_tokens or 0,
                "resumed": resumed,
                "temperature": 0.0 if greedy else sampling.temperature,
                "top_k": 0 if greedy or sampling.top_k >= _TOP_K_ALL else max(sampling.top_k, 0),
                "top_p": sampling.top_p,
                "min_p": sampling.min_p,
                "seed": sampling.sampling_seed or 0,
            }
        )
        return running

    def _session(self, req: Any, number: int, resumed: bool) -> tuple[int, int]:
        """A session has the number of its first request."""
        name = req.session_id
        if name is None:
            return number, 0
        first, turn = self._sessions.get(name, (number, -1))
        turn += 0 if resumed else 1
        self._sessions.pop(name, None)
        self._sessions[name] = (first, turn)
        if len(self._sessions) > _SESSIONS_KEPT:
            del self._sessions[next(iter(self._sessions))]
        return first, turn

    def _depart(self, req: Any) -> None:
        running = self._running.pop(req.rid, None)
        if running is None:
            return
        aborted = type(req.finished_reason).__name__ == "FINISH_ABORT"
        reason = Reason.ABORTED if aborted else Reason.FINISHED
        self._departing.append((running.number, reason))
        self._pages.give_back(running.pages)


def known_options(scheduler: Any) -> Options:
    """What a Scheduler says of itself, for the header of the trace."""
    model = scheduler.model_config
    return Options(
        model_spec=settings.name_of(getattr(scheduler.server_args, "served_model_name", None)),
        vocab=model.vocab_size,
        layers=model.num_hidden_layers,
        page_size=scheduler.page_size,
        buckets=tuple(decode_buckets(scheduler)),
        workload="sglang, slots are logical",
    )


def decode_buckets(scheduler: Any) -> list[int]:
    """The batch sizes with a captured decode graph, ascending; none when it runs eager."""
    runner = getattr(scheduler.tp_worker.model_runner, "decode_cuda_graph_runner", None)
    return sorted(getattr(runner, "capture_bs", None) or [])


def attach(scheduler: Any, recorder: Recorder) -> Guard:
    """Records what `scheduler` does from now on, until the guard ends; it then closes `recorder`.

    Raises:
        AttributeError: the object is not the Scheduler that this hook is written for.
    """
    run_batch, process = scheduler.run_batch, scheduler.process_batch_result
    hook = SglangHook(
        recorder,
        scheduler.page_size,
        scheduler.model_config.vocab_size,
        decode_buckets(scheduler),
    )
    guard = Guard("sglang", hook.close)

    @functools.wraps(run_batch)
    def recorded_run_batch(batch: Any, *arguments: Any, **named: Any) -> Any:
        step = guard.run(hook.scheduled, batch)
        result = None
        try:
            result = run_batch(batch, *arguments, **named)
        finally:
            if step is not None:
                guard.run(hook.launched, step, batch, result)
        return result

    @functools.wraps(process)
    def recorded_process_batch_result(batch: Any, *arguments: Any, **named: Any) -> Any:
        lengths = guard.run(hook.lengths, batch)
        answer = process(batch, *arguments, **named)
        if lengths is not None:
            guard.run(hook.processed, batch, lengths)
        return answer

    guard.replace(scheduler, "run_batch", recorded_run_batch)
    guard.replace(scheduler, "process_batch_result", recorded_process_batch_result)
    return guard


def attach_from_environment(scheduler: Any, parallel: Any) -> Guard | None:
    """attach, when the environment asks for it and this is the first rank of its group.

    `parallel` is sglang.srt.runtime_context.get_parallel(). Never raises.
    """
    try:
        if not settings.wanted() or parallel.attn_tp_rank != 0 or parallel.pp_rank != 0:
            return None
        options = known_options(scheduler)
        recorder = settings.open_recorder("sglang", parallel.tp_rank, options)
        try:
            guard = attach(scheduler, recorder)
        except Exception:
            recorder.close()
            raise
        multiprocessing.util.Finalize(None, guard.end, ("the process ends",), exitpriority=10)
        return guard
    except Exception:
        logger.warning("redecode_record: sglang is not recorded", exc_info=True)
        return None


def plugin() -> None:
    """Entry point of "sglang.srt.plugins": every Scheduler made later is recorded."""
    if not settings.wanted():
        return
    from sglang.srt.managers.scheduler import Scheduler  # type: ignore[import-not-found]
    from sglang.srt.runtime_context import get_parallel  # type: ignore[import-not-found]

    follow(Scheduler, get_parallel)


def follow(scheduler_class: Any, get_parallel: Any) -> None:
    """Attaches to each object of the class as soon as it is made; once a class."""
    if hasattr(scheduler_class.__init__, "_redecode_record"):
        return
    init = scheduler_class.__init__

    @functools.wraps(init)
    def recorded_init(self: Any, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        attach_from_environment(self, get_parallel())

    recorded_init._redecode_record = True  # type: ignore[attr-defined]
    scheduler_class.__init__ = recorded_init
