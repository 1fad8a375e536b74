"""vLLM v1: records at the executor boundary, from SchedulerOutput and ModelRunnerOutput.

Both are CPU objects that the engine makes for its workers anyway, so nothing is copied from the GPU
and nothing waits. Written for vllm.v1.core.sched.output.SchedulerOutput with scheduled_new_reqs
[req_id, prompt_token_ids, sampling_params, block_ids, num_computed_tokens], scheduled_cached_reqs
[req_ids, resumed_req_ids or resumed_from_preemption, new_block_ids, num_computed_tokens],
num_scheduled_tokens, finished_req_ids, preempted_req_ids, and for vllm.v1.outputs.ModelRunnerOutput
with req_ids and sampled_token_ids. Fields that a version lacks are left out.

Installed as a plugin (entry point vllm.general_plugins); it records when REDECODE_RECORD names a
trace.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Optional

from ..recorder import End, Recorder
from .guard import Guard, log, recorder_from_environment
from .schedule import Part, Schedule


def _blocks(block_ids: Any) -> list[int]:
    """Of the first KV cache group: block_ids is a tuple of lists, one a group, or a list."""
    if block_ids is None:
        return []
    first = block_ids[0] if len(block_ids) > 0 else []
    return list(first) if isinstance(first, (list, tuple)) else [int(b) for b in block_ids]


class VllmHook:
    def __init__(self, recorder: Recorder, page_size: int) -> None:
        self.guard = Guard("vllm hook")
        self.recorder = recorder
        self.schedule = Schedule(recorder, page_size)
        self._samples: list[str] = []

    def before(self, output: Any) -> None:
        self.guard.run(self._before, output)

    def after(self, result: Any) -> None:
        self.guard.run(self._after, result)

    def _before(self, output: Any) -> None:
        for request in sorted(getattr(output, "finished_req_ids", None) or ()):
            self.schedule.depart(request)
        for request in sorted(getattr(output, "preempted_req_ids", None) or ()):
            self.schedule.depart(request, End.PREEMPTED)
        computed: dict[str, int] = {}
        for new in output.scheduled_new_reqs:
            self._arrive(new)
            computed[new.req_id] = new.num_computed_tokens
        self._continue(output.scheduled_cached_reqs, computed)
        parts = [
            Part(request, computed.get(request, 0), count)
            for request, count in output.num_scheduled_tokens.items()
            if request in self.schedule.running
        ]
        self._samples = self.schedule.step(parts) if parts else []

    def _arrive(self, new: Any) -> None:
        sampling = new.sampling_params
        self.schedule.arrive(
            new.req_id,
            new.prompt_token_ids or [],
            cached_tokens=new.num_computed_tokens,
            max_tokens=getattr(sampling, "max_tokens", None) or 0,
            temperature=getattr(sampling, "temperature", 0.0) or 0.0,
            top_p=getattr(sampling, "top_p", 1.0),
            top_k=getattr(sampling, "top_k", 0) or 0,
            min_p=getattr(sampling, "min_p", 0.0) or 0.0,
            seed=getattr(sampling, "seed", None),
        )
        self.schedule.add_pages(new.req_id, _blocks(new.block_ids))

    def _continue(self, cached: Any, computed: dict[str, int]) -> None:
        resumed: Iterable[str] = getattr(cached, "resumed_req_ids", None) or ()
        for i, request in enumerate(cached.req_ids):
            computed[request] = cached.num_computed_tokens[i]
            if request in resumed:
                self.schedule.resume(request, cached.num_computed_tokens[i])
            if request not in self.schedule.running:
                continue
            self.schedule.add_pages(request, _blocks(cached.new_block_ids[i]))

    def _after(self, result: Any) -> None:
        sampled = getattr(result, "sampled_token_ids", None)
        if sampled is None:
            return
        by_request = dict(zip(result.req_ids, sampled))
        tokens = [list(by_request.get(request, ())) for request in self._samples]
        self.schedule.outputs(self._samples, tokens)


def attach(executor_class: Any, hook: VllmHook) -> None:
    """Wraps execute_model, and sample_tokens where the version has it, of an executor class."""

    def take(result: Any) -> None:
        if hasattr(result, "add_done_callback"):
            result.add_done_callback(lambda future: hook.after(future.result()))
        elif result is not None:
            hook.after(result)

    execute = executor_class.execute_model

    @functools.wraps(execute)
    def execute_model(self: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        hook.before(scheduler_output)
        result = execute(self, scheduler_output, *args, **kwargs)
        hook.guard.run(take, result)
        return result

    executor_class.execute_model = execute_model
    sample = getattr(executor_class, "sample_tokens", None)
    if sample is None:
        return

    @functools.wraps(sample)
    def sample_tokens(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = sample(self, *args, **kwargs)
        hook.guard.run(take, result)
        return result

    executor_class.sample_tokens = sample_tokens


def register() -> Optional[VllmHook]:
    """Entry point of vllm.general_plugins."""
    try:
        import os

        page_size = int(os.environ.get("REDECODE_RECORD_PAGE_SIZE", "16"))
        recorder = recorder_from_environment(writer="vllm", page_size=page_size)
        if recorder is None:
            return None
        from vllm.v1.executor import abstract  # type: ignore[import-not-found,unused-ignore]

        hook = VllmHook(recorder, page_size)
        attach(abstract.Executor, hook)
        for subclass in abstract.Executor.__subclasses__():
            if "execute_model" in vars(subclass):
                attach(subclass, hook)
        return hook
    except Exception as error:  # a plugin must not stop the server
        log.warning("vllm hook: not attached: %s: %s", type(error).__name__, error)
        return None
