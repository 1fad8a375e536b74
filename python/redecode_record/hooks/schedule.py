"""Schedule: what engines say of a step, as the recorder wants it: rows, arrivals, pages, ends.

A row is a token that a request runs; its slot is page * page_size + position % page_size. Where the
engine keeps its pages on the GPU, Schedule hands out pages of its own numbering: the batches are
those of the engine, the places are not.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Optional

from ..recorder import End, Phase, Recorder


@dataclass
class Running:
    number: int
    tokens: list[int]  # prompt and output as far as they are known here
    prompt_tokens: int
    pages: list[int] = field(default_factory=list)


@dataclass
class Part:
    """What one request runs in a step."""

    request: str
    first: int  # position of the first token
    count: int


class Schedule:
    def __init__(self, recorder: Recorder, page_size: int, own_pages: bool = False) -> None:
        self.recorder = recorder
        self.page_size = page_size
        self.own_pages = own_pages
        self.running: dict[str, Running] = {}
        self.parked: dict[str, Running] = {}  # preempted
        self._free_pages: list[int] = []
        self._next_page = 1  # page 0 is the dummy page
        self._rows: list[int] = []

    def arrive(
        self,
        request: str,
        tokens: Sequence[int],
        *,
        cached_tokens: int = 0,
        max_tokens: int = 0,
        resumed: bool = False,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        seed: Optional[int] = None,
    ) -> None:
        number = self.recorder.request_id(request)
        self.running[request] = Running(number, list(tokens), len(tokens))
        self.recorder.arrive(
            number,
            prompt_tokens=len(tokens),
            cached_tokens=cached_tokens,
            max_tokens=max_tokens,
            resumed=resumed,
            temperature=temperature,
            top_p=top_p,
            top_k=max(0, top_k),
            min_p=min_p,
            seed=0 if seed is None else seed,
        )

    def add_pages(self, request: str, pages: Sequence[int]) -> None:
        running = self.running[request]
        for page in pages:
            self.recorder.page(running.number, len(running.pages), page)
            running.pages.append(page)

    def depart(self, request: str, end: End = End.FINISHED) -> None:
        running = self.running.pop(request, None)
        if running is None:
            self.parked.pop(request, None)
            return
        self.recorder.depart(running.number, end)
        if end == End.PREEMPTED:
            self.parked[request] = running
        if self.own_pages:
            for page in running.pages:
                heapq.heappush(self._free_pages, page)

    def resume(self, request: str, cached_tokens: int) -> bool:
        """Back after a preemption, with the tokens it had."""
        parked = self.parked.pop(request, None)
        if parked is None:
            return False
        self.arrive(request, parked.tokens, cached_tokens=cached_tokens, resumed=True)
        return True

    def _own_page(self) -> int:
        if self._free_pages:
            return heapq.heappop(self._free_pages)
        self._next_page += 1
        return self._next_page - 1

    def _cover(self, part: Part) -> None:
        pages = self.running[part.request].pages
        while len(pages) * self.page_size < part.first + part.count:
            self.add_pages(part.request, [self._own_page()])

    def step(self, parts: Sequence[Part], bucket: int = 0) -> list[str]:
        """Records the step; returns the requests that sample at its end, in row order."""
        request: list[int] = []
        position: list[int] = []
        token: list[int] = []
        slot: list[int] = []
        wants: list[int] = []
        samples: list[str] = []
        decode = prefill = False
        for part in parts:
            if self.own_pages:
                self._cover(part)
            running = self.running[part.request]
            last = part.first + part.count
            decode = decode or part.first >= running.prompt_tokens
            # Several tokens at once, as of a draft, are no plain decode step either.
            prefill = prefill or part.first < running.prompt_tokens or part.count > 1
            for at in range(part.first, last):
                request.append(running.number)
                position.append(at)
                token.append(running.tokens[at] if at < len(running.tokens) else 0)
                slot.append(self._slot(running, at))
                wants.append(1 if at == last - 1 and last >= len(running.tokens) else 0)
            if last >= len(running.tokens):
                samples.append(part.request)
        phase = Phase.MIXED if decode and prefill else Phase.DECODE if decode else Phase.PREFILL
        self.recorder.step(
            request=request,
            position=position,
            token=token,
            slot=slot,
            wants_output=wants,
            phase=phase,
            bucket=bucket,
        )
        self._rows = [i for i, w in enumerate(wants) if w]
        return samples

    def outputs(self, samples: Sequence[str], tokens: Sequence[Sequence[int]]) -> None:
        """Sampled tokens of the last step; of several (speculation) the first is recorded as its
        output and all are appended."""
        rows: list[int] = []
        first: list[int] = []
        for row, request, sampled in zip(self._rows, samples, tokens):
            if not sampled:
                continue
            rows.append(row)
            first.append(int(sampled[0]))
            running = self.running.get(request)
            if running is not None:
                running.tokens.extend(int(t) for t in sampled)
        if first:
            self.recorder.outputs(token=first, row=rows)

    def _slot(self, running: Running, position: int) -> int:
        index = position // self.page_size
        if index >= len(running.pages):
            return 0
        return running.pages[index] * self.page_size + position % self.page_size
