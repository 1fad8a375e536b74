"""What the SGLang hook touches of sglang 0.5.23, with its names and signatures and no GPU.

A Scheduler that runs requests to their end, one step after the other or one step ahead, and keeps
its own account of what each step read and gave. A "GPU" tensor here raises when it is looked at.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field, replace
from enum import IntEnum, auto
from typing import Any

VOCAB = 1000
PAGE_SIZE = 4


class GpuTensor:
    """Any look at it would wait for the device."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the hook looked at .{name} of a GPU tensor")

    def __len__(self) -> int:
        raise AssertionError("the hook asked a GPU tensor for its length")


class CpuTensor:
    def __init__(self, values: list[int]) -> None:
        self.values = values

    def tolist(self) -> list[int]:
        return list(self.values)


class ForwardMode(IntEnum):
    EXTEND = auto()
    DECODE = auto()
    MIXED = auto()
    IDLE = auto()
    TARGET_VERIFY = auto()
    DRAFT_EXTEND_V2 = auto()
    PREBUILT = auto()
    SPLIT_PREFILL = auto()
    DLLM_EXTEND = auto()

    def is_decode(self) -> bool:
        return self == ForwardMode.DECODE

    def is_idle(self) -> bool:
        return self == ForwardMode.IDLE

    def is_prebuilt(self) -> bool:
        return self == ForwardMode.PREBUILT


class SpeculativeAlgorithm(IntEnum):
    NONE = auto()
    EAGLE = auto()

    def is_none(self) -> bool:
        return self == SpeculativeAlgorithm.NONE


@dataclass
class SamplingParams:
    max_new_tokens: int | None = 4
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 1 << 30
    min_p: float = 0.0
    sampling_seed: int | None = None


class FINISH_LENGTH:
    pass


class FINISH_ABORT:
    pass


@dataclass
class ReqKvInfo:
    req_pool_idx: int | None = None


class Req:
    def __init__(
        self,
        rid: str,
        origin_input_ids: list[int],
        sampling_params: SamplingParams,
        session_id: str | None = None,
    ) -> None:
        self.rid = rid
        self.origin_input_ids = array("q", origin_input_ids)
        self.output_ids = array("q")
        self.sampling_params = sampling_params
        self.session_id = session_id
        self.kv = ReqKvInfo()
        self.finished_reason: Any = None

    def finished(self) -> bool:
        return self.finished_reason is not None


@dataclass
class ScheduleBatch:
    reqs: list[Req]
    forward_mode: ForwardMode
    prefix_lens: list[int] | None = None
    extend_lens: list[int] | None = None
    seq_lens_cpu: CpuTensor | None = None
    forward_iter: int | None = None
    global_num_tokens: list[int] | None = None
    beam_tail: Any = None
    spec_algorithm: SpeculativeAlgorithm = SpeculativeAlgorithm.NONE
    input_ids: Any = field(default_factory=GpuTensor)
    req_pool_indices: Any = field(default_factory=GpuTensor)
    seq_lens: Any = field(default_factory=GpuTensor)
    out_cache_loc: Any = field(default_factory=GpuTensor)

    def copy(self) -> ScheduleBatch:
        return replace(self, reqs=self.reqs[:])


@dataclass
class GenerationBatchResult:
    next_token_ids: Any
    can_run_cuda_graph: bool = False


@dataclass
class ModelConfig:
    vocab_size: int = VOCAB
    num_hidden_layers: int = 2


class Named:
    def __init__(self, **named: Any) -> None:
        self.__dict__.update(named)


class Scheduler:
    def __init__(self, server_args: Any = None, port_args: Any = None) -> None:
        self.server_args = server_args or Named(served_model_name="stand-in")
        self.model_config = ModelConfig()
        self.page_size = PAGE_SIZE
        runner = Named(capture_bs=[1, 2, 4])
        self.tp_worker = Named(model_runner=Named(decode_cuda_graph_runner=runner))
        self.forward_ct = 0
        self.fed: list[Any] = []  # a step each: [(rid, position, token)], [(rid, sampled)], bucket
        self.results: deque[tuple[ScheduleBatch, GenerationBatchResult]] = deque()
        self.given: dict[str, list[int]] = {}

    # The two methods that are replaced.

    def run_batch(self, batch: ScheduleBatch, pp_proxy_tensors: Any = None) -> Any:
        self.forward_ct += 1
        batch.forward_iter = self.forward_ct
        if batch.forward_mode in (ForwardMode.PREBUILT, ForwardMode.IDLE):
            return GenerationBatchResult(next_token_ids=None)
        begins, counts = spans(batch)
        rows, sampled = [], []
        for req, begin, count in zip(batch.reqs, begins, counts, strict=True):
            sequence = self.given.setdefault(req.rid, list(req.origin_input_ids))
            rows += [(req.rid, at, sequence[at]) for at in range(begin, begin + count)]
            if begin + count == len(sequence):
                sequence.append((sequence[-1] * 31 + 7 * begin) % VOCAB)
                sampled.append((req.rid, sequence[-1]))
        graph = batch.forward_mode.is_decode() and len(batch.reqs) <= 4
        bucket = next(b for b in (1, 2, 4) if b >= len(batch.reqs)) if graph else 0
        self.fed.append((rows, sampled, bucket))
        result = GenerationBatchResult(GpuTensor(), can_run_cuda_graph=graph)
        vars(result)["_sampled"] = dict(sampled)
        batch.input_ids = None
        return result

    def process_batch_result(self, batch: ScheduleBatch, result: Any) -> None:
        for req in batch.reqs:
            token = vars(result).get("_sampled", {}).get(req.rid)
            if token is None or req.finished():
                continue
            req.output_ids.append(token)
            if len(req.output_ids) >= (req.sampling_params.max_new_tokens or 0):
                req.finished_reason = FINISH_LENGTH()

    # The loops around them.

    def run(self, batch: ScheduleBatch, ahead: bool = False) -> None:
        """One turn of the loop: with `ahead` the result of the batch before is taken after."""
        self.results.append((batch.copy() if not ahead else batch, self.run_batch(batch)))
        last = self.results[-1][0]
        last.forward_iter = batch.forward_iter
        while len(self.results) > (1 if ahead else 0):
            self.process_batch_result(*self.results.popleft())

    def drain(self) -> None:
        while self.results:
            self.process_batch_result(*self.results.popleft())


def spans(batch: ScheduleBatch) -> tuple[list[int], list[int]]:
    if batch.forward_mode.is_decode():
        assert batch.seq_lens_cpu is not None
        begins = [length - 1 for length in batch.seq_lens_cpu.tolist()]
        return begins, [1] * len(begins)
    return list(batch.prefix_lens or ()), list(batch.extend_lens or ())


def extend(
    reqs: list[Req],
    prefix_lens: list[int],
    extend_lens: list[int],
    mode: ForwardMode = ForwardMode.EXTEND,
) -> ScheduleBatch:
    for place, req in enumerate(reqs):
        if req.kv.req_pool_idx is None:
            req.kv.req_pool_idx = place + 1
    return ScheduleBatch(reqs[:], mode, prefix_lens=prefix_lens, extend_lens=extend_lens)


def decode(reqs: list[Req], lengths: list[int]) -> ScheduleBatch:
    return ScheduleBatch(reqs[:], ForwardMode.DECODE, seq_lens_cpu=CpuTensor(lengths))
