"""Records a vLLM engine core.

Written for vllm 0.33.0 (V1 engine), whose plugins (entry point group "vllm.general_plugins") run
in the engine core's process while EngineCore is made. What is replaced, on the one EngineCore
object and its executor and scheduler:

    Executor.execute_model(self, scheduler_output: SchedulerOutput, non_block=False)
    Scheduler.update_from_output(self, scheduler_output, model_runner_output: ModelRunnerOutput)
    Scheduler.finish_requests(self, request_ids, finished_status)
    EngineCore.shutdown(self)

What is read: SchedulerOutput, NewRequestData, CachedRequestData and ModelRunnerOutput, which are
host objects made for the way between processes. Block numbers are the engine's own, those of KV
cache group 0.

Not known at this place, and therefore not in the trace: the order of rows in the worker's batch
(rows stand in the scheduler's order), the bucket (cudagraph_capture_sizes are in the header, steps
say 0) and logits (outputs hold sampled tokens only).

With asynchronous scheduling a step is written when the tokens of the step before it are back, that
is before its own result. Speculative decoding, prompt embeddings and pooling models end the hook:
a trace cannot say them yet.
"""

from __future__ import annotations

import functools
import multiprocessing.util
import time
from collections.abc import Sequence
from typing import Any

from ..recorder import Recorder
from ..words import Event, Options, Phase, Reason
from . import settings
from .guard import Guard, logger
from .schedule import Chunk, Launch, Running, ScheduleWriter, TokenSource, Unsupported

_GROUP = 0  # of the KV cache groups, the one whose blocks are recorded


class GivenTokens(TokenSource):
    """A sequence kept here: what the scheduler gave, then what came back."""

    def __init__(self, given: Sequence[int]) -> None:
        self.tokens = list(given)

    def known(self) -> int:
        return len(self.tokens)

    def slice(self, begin: int, end: int) -> Sequence[int]:
        return self.tokens[begin:end]

    def one(self, position: int) -> int:
        return self.tokens[position] if position < len(self.tokens) else -1

    def append(self, token: int) -> None:
        self.tokens.append(token)


class VllmHook:
    """What one engine core does, told to one recorder; attach makes it."""

    def __init__(self, recorder: Recorder, page_size: int, vocab: int) -> None:
        self.recorder = recorder
        self.writer = ScheduleWriter(recorder, page_size, vocab)
        self._page_size = page_size
        self._running: dict[str, Running] = {}
        self._preempted: dict[str, Running] = {}
        self._reasons: dict[str, Reason] = {}
        self._departing: list[tuple[int, Reason]] = []
        self._in_flight: dict[int, tuple[Any, Launch]] = {}

    def launched(self, output: Any) -> None:
        """Before execute_model: a SchedulerOutput on its way to the workers."""
        if output.scheduled_spec_decode_tokens:
            raise Unsupported("speculative decoding")
        self._gone(output)
        step = Launch(Phase.DECODE, time.monotonic_ns(), [])
        cached, running = output.scheduled_cached_reqs, self._running
        begins: dict[str, int] = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        for new in output.scheduled_new_reqs:
            begins[new.req_id] = new.num_computed_tokens
            self._new(step, new)
        for name, blocks in zip(cached.req_ids, cached.new_block_ids, strict=True):
            if name in cached.resumed_req_ids:
                given = cached.all_token_ids.get(name)
                self._resume(step, name, given, blocks, begins[name])
            elif blocks is not None:
                self._add_pages(step, running[name], blocks[_GROUP], begins[name])
        for copy in output.kv_cache_block_copies or ():
            self.recorder.event(Event.BLOCKS_COPIED, a=copy.src_block_id, b=copy.dst_block_id)
        if not output.num_scheduled_tokens:
            return
        decoding = 0
        for name, count in output.num_scheduled_tokens.items():
            begin, request = begins[name], running[name]
            step.chunks.append(Chunk(request, begin, count, begin + count >= request.given))
            decoding += count == 1 and begin >= request.given
        step.departures, self._departing = self._departing, []
        if decoding < len(step.chunks):
            step.phase = Phase.MIXED if decoding else Phase.PREFILL
        self._in_flight[id(output)] = (output, step)
        self.writer.launch(step)

    def returned(self, output: Any, model: Any) -> None:
        """Before update_from_output: what the workers sampled for that SchedulerOutput."""
        transfer = model.kv_connector_output
        for name in sorted((transfer and transfer.finished_recving) or ()):
            self._handed_over(name)
        _, step = self._in_flight.pop(id(output), (None, None))
        if step is None:
            return
        rows: list[tuple[int, int, int, int]] = []
        new: list[tuple[TokenSource, int]] = []
        places, sampled = model.req_id_to_index, model.sampled_token_ids
        end = 0
        for chunk in step.chunks:
            running = chunk.running
            end += chunk.count
            place = places.get(running.name)
            if place is None or not chunk.samples or not sampled:
                continue
            tokens = sampled[place]
            if len(tokens) > 1:
                raise Unsupported("several tokens a request and step")
            if len(tokens) == 1:
                token = int(tokens[0])
                rows.append((end - 1, running.number, chunk.begin + chunk.count - 1, token))
                new.append((running.tokens, token))
        self.writer.outputs(step.index, rows)
        for sequence, token in new:
            sequence.append(token)
        self.writer.write_known()

    def finishing(self, names: Any, status: Any) -> None:
        """Before finish_requests: why requests will be among the finished ones."""
        reason = Reason.CANCELLED if "ABORTED" in status.name else Reason.FINISHED
        if names is None:
            names = list(self._running) + list(self._preempted)
        for name in [names] if isinstance(names, str) else list(names):
            if name in self._running or name in self._preempted:
                self._reasons[name] = reason

    def close(self, why: str) -> None:
        """Writes what waits and ends the trace."""
        if self.recorder.closed:
            return
        try:
            self.writer.finish()
            self.recorder.event(Event.NOTE, text=f"vllm hook ended: {why}"[:1000])
        finally:
            self.recorder.close()

    def _gone(self, output: Any) -> None:
        for name in sorted(output.finished_req_ids):
            reason = self._reasons.pop(name, Reason.FINISHED)
            running = self._running.pop(name, None) or self._preempted.pop(name, None)
            if running is not None:
                self._departing.append((running.number, reason))
        for name in sorted(output.preempted_req_ids or ()):
            running = self._running.pop(name, None)
            if running is not None:
                self._preempted[name] = running
                self._departing.append((running.number, Reason.PREEMPTED))

    def _new(self, step: Launch, new: Any) -> None:
        name, begin = new.req_id, new.num_computed_tokens
        if name in self._running or name in self._preempted:
            given = new.prefill_token_ids or new.prompt_token_ids
            self._resume(step, name, given, new.block_ids, begin)
            return
        if new.prompt_token_ids is None or new.sampling_params is None:
            raise Unsupported("prompt embeddings or a pooling model")
        tokens = GivenTokens(new.prompt_token_ids)
        running = Running(name, self.recorder.new_request(name), tokens, tokens.known())
        running.sampling = new.sampling_params
        self._running[name] = running
        step.arrivals.append(_arrival(running, begin, resumed=False))
        self._add_pages(step, running, new.block_ids[_GROUP], begin)

    def _resume(
        self, step: Launch, name: str, tokens: Sequence[int] | None, blocks: Any, begin: int
    ) -> None:
        old = self._preempted.pop(name, None)
        if old is None:
            old = self._running.pop(name)
            self._departing.append((old.number, Reason.PREEMPTED))
        given = tokens if tokens is not None else old.tokens.slice(0, old.tokens.known())
        running = Running(name, old.number, GivenTokens(given), len(given))
        running.sampling = old.sampling
        self._running[name] = running
        step.arrivals.append(_arrival(running, begin, resumed=True))
        self._add_pages(step, running, blocks[_GROUP] if blocks else (), begin)

    def _add_pages(
        self, step: Launch, running: Running, blocks: Sequence[int], computed: int
    ) -> None:
        for page in blocks:
            entry = len(running.pages)
            running.pages.append(page)
            if page:  # 0: the null block of positions that slid out of the window
                shared = (entry + 1) * self._page_size <= computed
                step.pages.append((running.number, entry, page, shared))

    def _handed_over(self, name: str) -> None:
        running = self._running.get(name) or self._preempted.get(name)
        number = running.number if running is not None else None
        self.recorder.event(Event.KV_HANDED_OVER, request=number, text=name[:1000])


def _arrival(running: Running, begin: int, *, resumed: bool) -> dict[str, Any]:
    sampling = running.sampling
    return {
        "request": running.number,
        "session": running.number,
        "prompt_tokens": max(running.tokens.known(), begin),
        "cached_tokens": begin,
        "max_tokens": sampling.max_tokens or 0,
        "resumed": resumed,
        "temperature": sampling.temperature,
        "top_k": max(sampling.top_k, 0),
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "seed": sampling.seed or 0,
    }


def block_size(scheduler: Any) -> int:
    """Tokens a block of the recorded KV cache group."""
    size: int = scheduler.kv_cache_config.kv_cache_groups[_GROUP].kv_cache_spec.block_size
    return size


def known_options(engine: Any) -> Options:
    """What an EngineCore says of itself, for the header of the trace."""
    model = engine.vllm_config.model_config
    sizes = engine.vllm_config.compilation_config.cudagraph_capture_sizes
    return Options(
        model_spec=settings.name_of(getattr(model, "served_model_name", None)),
        vocab=model.get_vocab_size(),
        page_size=block_size(engine.scheduler),
        page_count=engine.scheduler.kv_cache_config.num_blocks,
        buckets=tuple(sorted(sizes or ())),
        workload="vllm",
    )


def attach(engine: Any, recorder: Recorder) -> Guard:
    """Records what `engine` does from now on, until the guard ends; it then closes `recorder`.

    Raises:
        AttributeError: the object is not the EngineCore that this hook is written for.
    """
    executor, scheduler = engine.model_executor, engine.scheduler
    vocab = engine.vllm_config.model_config.get_vocab_size()
    hook = VllmHook(recorder, block_size(scheduler), vocab)
    guard = Guard("vllm", hook.close)
    execute, update = executor.execute_model, scheduler.update_from_output
    finish, shutdown = scheduler.finish_requests, engine.shutdown

    @functools.wraps(execute)
    def recorded_execute_model(scheduler_output: Any, *arguments: Any, **named: Any) -> Any:
        guard.run(hook.launched, scheduler_output)
        return execute(scheduler_output, *arguments, **named)

    @functools.wraps(update)
    def recorded_update_from_output(
        scheduler_output: Any, model_runner_output: Any, *arguments: Any, **named: Any
    ) -> Any:
        guard.run(hook.returned, scheduler_output, model_runner_output)
        return update(scheduler_output, model_runner_output, *arguments, **named)

    @functools.wraps(finish)
    def recorded_finish_requests(
        request_ids: Any, finished_status: Any, *arguments: Any, **named: Any
    ) -> Any:
        guard.run(hook.finishing, request_ids, finished_status)
        return finish(request_ids, finished_status, *arguments, **named)

    @functools.wraps(shutdown)
    def recorded_shutdown(*arguments: Any, **named: Any) -> Any:
        guard.end("the engine shuts down")
        return shutdown(*arguments, **named)

    guard.replace(executor, "execute_model", recorded_execute_model)
    guard.replace(scheduler, "update_from_output", recorded_update_from_output)
    guard.replace(scheduler, "finish_requests", recorded_finish_requests)
    guard.replace(engine, "shutdown", recorded_shutdown)
    return guard


def attach_from_environment(engine: Any) -> Guard | None:
    """attach, when the environment asks for it. Never raises."""
    try:
        if not settings.wanted():
            return None
        rank = engine.vllm_config.parallel_config.data_parallel_index
        recorder = settings.open_recorder("vllm", rank, known_options(engine))
        try:
            guard = attach(engine, recorder)
        except Exception:
            recorder.close()
            raise
        multiprocessing.util.Finalize(None, guard.end, ("the process ends",), exitpriority=10)
        return guard
    except Exception:
        logger.warning("redecode_record: vllm is not recorded", exc_info=True)
        return None


def plugin() -> None:
    """Entry point of "vllm.general_plugins": every EngineCore is recorded from its first request.

    vLLM runs it in its workers too, which get no requests; and inside EngineCore.__init__, which
    is too late to follow that method.
    """
    if not settings.wanted():
        return
    from vllm.v1.engine.core import EngineCore  # type: ignore[import-not-found]

    follow(EngineCore)


def follow(engine_class: Any) -> None:
    """Attaches to each object of the class on its first add_request; once a class."""
    add_request = engine_class.add_request
    if hasattr(add_request, "_redecode_record"):
        return

    @functools.wraps(add_request)
    def recorded_add_request(self: Any, *arguments: Any, **named: Any) -> Any:
        if "_redecode_record" not in vars(self):
            vars(self)["_redecode_record"] = attach_from_environment(self)
        return add_request(self, *arguments, **named)

    recorded_add_request._redecode_record = True  # type: ignore[attr-defined]
    engine_class.add_request = recorded_add_request
