"""What the vLLM hook touches of vllm 0.33.0, with its names and signatures and no GPU.

An EngineCore whose step is the real one's: schedule, execute_model(non_block=True), sample_tokens,
update_from_output; `ahead` schedules the next step before the result of this one, as asynchronous
scheduling does. Results come from a thread of the executor. The engine keeps its own account of
what each step read and gave.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import Any, NamedTuple

VOCAB = 1000
BLOCK_SIZE = 4


class RequestStatus(IntEnum):
    FINISHED_STOPPED = auto()
    FINISHED_ABORTED = auto()


@dataclass
class SamplingParams:
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    max_tokens: int | None = 16


@dataclass
class NewRequestData:
    req_id: str
    prompt_token_ids: list[int] | None
    sampling_params: SamplingParams | None
    block_ids: tuple[list[int], ...]
    num_computed_tokens: int
    prefill_token_ids: list[int] | None = None


@dataclass
class CachedRequestData:
    req_ids: list[str] = field(default_factory=list)
    resumed_req_ids: set[str] = field(default_factory=set)
    new_token_ids: list[list[int]] = field(default_factory=list)
    all_token_ids: dict[str, list[int]] = field(default_factory=dict)
    new_block_ids: list[tuple[list[int], ...] | None] = field(default_factory=list)
    num_computed_tokens: list[int] = field(default_factory=list)
    num_output_tokens: list[int] = field(default_factory=list)


class KVCacheBlockCopy(NamedTuple):
    src_block_id: int
    dst_block_id: int


@dataclass
class SchedulerOutput:
    scheduled_new_reqs: list[NewRequestData]
    scheduled_cached_reqs: CachedRequestData
    num_scheduled_tokens: dict[str, int]
    total_num_scheduled_tokens: int
    scheduled_spec_decode_tokens: dict[str, list[int]] = field(default_factory=dict)
    finished_req_ids: set[str] = field(default_factory=set)
    preempted_req_ids: set[str] | None = None
    kv_cache_block_copies: list[KVCacheBlockCopy] | None = None


@dataclass
class KVConnectorOutput:
    finished_sending: set[str] | None = None
    finished_recving: set[str] | None = None


@dataclass
class ModelRunnerOutput:
    req_ids: list[str]
    req_id_to_index: dict[str, int]
    sampled_token_ids: list[list[int]] = field(default_factory=list)
    kv_connector_output: KVConnectorOutput | None = None


class Named:
    def __init__(self, **named: Any) -> None:
        self.__dict__.update(named)


class Executor:
    """execute_model answers None in the future; sample_tokens gives what was sampled."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1)
        self._launched: deque[ModelRunnerOutput] = deque()
        self.next: ModelRunnerOutput | None = None

    def execute_model(self, scheduler_output: SchedulerOutput, non_block: bool = False) -> Any:
        assert self.next is not None
        self._launched.append(self.next)
        return self._threads.submit(lambda: None) if non_block else None

    def sample_tokens(self, grammar_output: Any, non_block: bool = False) -> Any:
        output = self._launched.popleft()
        future: Future[ModelRunnerOutput] = self._threads.submit(lambda: output)
        return future if non_block else future.result()

    def shutdown(self) -> None:
        self._threads.shutdown()


class Scheduler:
    def __init__(self) -> None:
        group = Named(kv_cache_spec=Named(block_size=BLOCK_SIZE))
        self.kv_cache_config = Named(kv_cache_groups=[group], num_blocks=64)
        self.finished: set[str] = set()
        self.updates = 0

    def update_from_output(
        self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput
    ) -> dict[int, Any]:
        self.updates += 1
        return {}

    def finish_requests(self, request_ids: Any, finished_status: RequestStatus) -> list[Any]:
        names = [request_ids] if isinstance(request_ids, str) else list(request_ids)
        self.finished |= set(names)
        return []


class EngineCore:
    def __init__(self) -> None:
        self.vllm_config = Named(
            model_config=Named(get_vocab_size=lambda: VOCAB, served_model_name="stand-in"),
            compilation_config=Named(cudagraph_capture_sizes=[1, 2, 4]),
            parallel_config=Named(data_parallel_index=3),
        )
        self.model_executor = Executor()
        self.scheduler = Scheduler()
        self.sequences: dict[str, list[int]] = {}
        self.computed: dict[str, int] = {}
        self.fed: list[Any] = []  # a step each: [(id, position, token)], [(id, sampled)]
        self.requests = 0
        self._queue: deque[Any] = deque()
        self.transfer: KVConnectorOutput | None = None

    def add_request(self, request: Any, request_wave: int = 0) -> None:
        self.requests += 1

    def shutdown(self) -> None:
        self.model_executor.shutdown()

    def step(self, output: SchedulerOutput, ahead: bool = False) -> None:
        """Launches `output`; takes the result of it, or with `ahead` of the one before it."""
        output.finished_req_ids |= self.scheduler.finished
        self.scheduler.finished = set()
        self.model_executor.next = self._forward(output)
        self.model_executor.execute_model(output, non_block=True)
        future = self.model_executor.sample_tokens(None, non_block=True)
        self._queue.append((output, future))
        self.drain(1 if ahead else 0)

    def drain(self, left: int = 0) -> None:
        while len(self._queue) > left:
            output, future = self._queue.popleft()
            self.scheduler.update_from_output(output, future.result())

    def _forward(self, output: SchedulerOutput) -> ModelRunnerOutput:
        for new in output.scheduled_new_reqs:
            self.sequences.setdefault(new.req_id, list(new.prompt_token_ids or ()))
            self.computed[new.req_id] = new.num_computed_tokens
        cached = output.scheduled_cached_reqs
        for name, computed in zip(cached.req_ids, cached.num_computed_tokens, strict=True):
            self.computed[name] = computed
        rows, sampled = [], []
        for name, count in output.num_scheduled_tokens.items():
            sequence, begin = self.sequences[name], self.computed[name]
            rows += [(name, at, sequence[at]) for at in range(begin, begin + count)]
            if begin + count == len(sequence):
                sequence.append((sequence[-1] * 31 + 7 * begin) % VOCAB)
                sampled.append((name, sequence[-1]))
        if rows:
            self.fed.append((rows, sampled))
        names = list(output.num_scheduled_tokens)
        given = dict(sampled)
        return ModelRunnerOutput(
            names,
            {name: place for place, name in enumerate(names)},
            [[given[name]] if name in given else [] for name in names],
            self.transfer,
        )


def new(
    name: str, prompt: int, blocks: list[int], computed: int = 0, **sampling: Any
) -> NewRequestData:
    tokens = [(17 * i + len(name)) % VOCAB for i in range(prompt)]
    return NewRequestData(name, tokens, SamplingParams(**sampling), (blocks,), computed)


def output(
    counts: dict[str, int],
    news: list[NewRequestData] | None = None,
    cached: dict[str, tuple[list[int] | None, int]] | None = None,
    **more: Any,
) -> SchedulerOutput:
    """cached: new blocks and computed tokens by request."""
    data = CachedRequestData(
        req_ids=list(cached or ()),
        new_block_ids=[None if b is None else (b,) for b, _ in (cached or {}).values()],
        num_computed_tokens=[computed for _, computed in (cached or {}).values()],
    )
    return SchedulerOutput(news or [], data, counts, sum(counts.values()), **more)
