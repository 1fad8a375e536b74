"""Hooks against stand-ins with the signatures that they are written for."""

from __future__ import annotations

import os
import tempfile
import unittest
from concurrent.futures import Future
from types import SimpleNamespace as Thing

from redecode_record import Recorder
from redecode_record.hooks import sglang, vllm
from tests.test_recorder import dump, of_kind


def sampling(**more: object) -> Thing:
    return Thing(
        **{
            "temperature": 0.0,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "seed": None,
            "max_tokens": 4,
            "max_new_tokens": 4,
            **more,
        }
    )


class HookTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "t.rdt")
        self.recorder = Recorder(self.path, page_size=4, vocab=100, page_count=16)

    def steps(self) -> list[dict]:
        self.recorder.close()
        self.records = dump(self.path)
        return of_kind(self.records, "step")


def new(request: str, tokens: list[int], blocks: list[int], computed: int = 0) -> Thing:
    return Thing(
        req_id=request,
        prompt_token_ids=tokens,
        sampling_params=sampling(),
        block_ids=(blocks,),
        num_computed_tokens=computed,
    )


def scheduled(
    news: list[Thing],
    cached: list[tuple],
    counts: dict[str, int],
    finished: tuple = (),
    preempted: tuple = (),
) -> Thing:
    return Thing(
        scheduled_new_reqs=news,
        scheduled_cached_reqs=Thing(
            req_ids=[c[0] for c in cached],
            new_block_ids=[c[1] for c in cached],
            num_computed_tokens=[c[2] for c in cached],
            resumed_req_ids=set(),
        ),
        num_scheduled_tokens=counts,
        finished_req_ids=set(finished),
        preempted_req_ids=set(preempted),
    )


class VllmTest(HookTest):
    def executor(self, answers: list, as_future: bool = False) -> object:
        class Executor:
            def execute_model(self, scheduler_output: object, non_block: bool = False) -> object:
                answer = answers.pop(0)
                if not as_future:
                    return answer
                future: Future = Future()
                future.set_result(answer)
                return future

        self.hook = vllm.VllmHook(self.recorder, 4)
        vllm.attach(Executor, self.hook)
        return Executor()

    def test_prefill_decode_pages_and_ends(self) -> None:
        for as_future in (False, True):
            with self.subTest(as_future=as_future):
                self.setUp()
                engine = self.executor(
                    [
                        Thing(req_ids=["a", "b"], sampled_token_ids=[[10], [20]]),
                        Thing(req_ids=["a", "b"], sampled_token_ids=[[11], [21]]),
                        Thing(req_ids=["b"], sampled_token_ids=[[22]]),
                    ],
                    as_future,
                )
                engine.execute_model(
                    scheduled(
                        [new("a", [1, 2, 3], [5]), new("b", [4, 5, 6, 7, 8], [6, 7])],
                        [],
                        {"a": 3, "b": 5},
                    )
                )
                engine.execute_model(
                    scheduled([], [("a", ([],), 3), ("b", None, 5)], {"a": 1, "b": 1})
                )
                engine.execute_model(scheduled([], [("b", ([],), 6)], {"b": 1}, finished=("a",)))
                steps = self.steps()
                self.assertEqual(self.hook.guard.failures, 0)
                self.assertEqual([len(s["rows"]) for s in steps], [8, 2, 1])
                self.assertEqual([r["token"] for r in steps[1]["rows"]], [10, 20])
                self.assertEqual(
                    [r["slot"] for r in steps[0]["rows"]], [20, 21, 22, 24, 25, 26, 27, 28]
                )
                self.assertEqual([r["position"] for r in steps[1]["rows"]], [3, 5])
                self.assertEqual(len(steps[0]["arrivals"]), 2)
                self.assertEqual(len(steps[2]["departures"]), 1)
                outputs = of_kind(self.records, "output")
                self.assertEqual(
                    [[r["token"] for r in o["rows"]] for o in outputs], [[10, 20], [11, 21], [22]]
                )

    def test_chunked_prefill_samples_at_its_end_only(self) -> None:
        engine = self.executor(
            [
                Thing(req_ids=["a"], sampled_token_ids=[[]]),
                Thing(req_ids=["a"], sampled_token_ids=[[9]]),
            ]
        )
        engine.execute_model(scheduled([new("a", [1, 2, 3, 4, 5, 6], [1])], [], {"a": 4}))
        engine.execute_model(scheduled([], [("a", ([2],), 4)], {"a": 2}))
        steps = self.steps()
        self.assertEqual([r["token"] for r in steps[1]["rows"]], [5, 6])
        self.assertEqual(len(of_kind(self.records, "output")), 1)

    def test_a_preempted_request_comes_back_with_its_tokens(self) -> None:
        engine = self.executor(
            [
                Thing(req_ids=["a"], sampled_token_ids=[[7]]),
                Thing(req_ids=[], sampled_token_ids=[]),
                Thing(req_ids=["a"], sampled_token_ids=[[8]]),
            ]
        )
        engine.execute_model(scheduled([new("a", [1, 2, 3], [1])], [], {"a": 3}))
        engine.execute_model(scheduled([], [], {}, preempted=("a",)))
        back = scheduled([], [("a", ([3],), 0)], {"a": 4})
        back.scheduled_cached_reqs.resumed_req_ids = {"a"}
        engine.execute_model(back)
        steps = self.steps()
        self.assertEqual([r["token"] for r in steps[-1]["rows"]], [1, 2, 3, 7])
        self.assertEqual([r["slot"] for r in steps[-1]["rows"]], [12, 13, 14, 15])
        self.assertTrue(steps[-1]["arrivals"][0]["resumed"])
        self.assertEqual(self.hook.guard.failures, 0)

    def test_a_broken_hook_never_reaches_the_engine(self) -> None:
        engine = self.executor(["whatever"] * 20)
        for _ in range(20):
            self.assertEqual(engine.execute_model(Thing()), "whatever")
        self.assertTrue(self.hook.guard.off)
        self.recorder.close()

    def test_without_the_variable_nothing_is_attached(self) -> None:
        os.environ.pop("REDECODE_RECORD", None)
        self.assertIsNone(vllm.register())
        self.assertIsNone(sglang.register())
        self.recorder.close()


class Mode:
    def __init__(self, extend: bool) -> None:
        self.extend = extend

    def is_extend(self) -> bool:
        return self.extend


class Req:
    def __init__(self, rid: str, tokens: list[int], most: int) -> None:
        self.rid, self.origin_input_ids, self.output_ids = rid, tokens, []
        self.sampling_params, self.prefix_indices, self.most = sampling(), [], most
        self.finished_reason = None

    def finished(self) -> bool:
        return len(self.output_ids) >= self.most


class SglangTest(HookTest):
    def test_prefill_decode_and_ends(self) -> None:
        class Scheduler:
            def process_batch_result(self, batch: Thing, result: Thing) -> str:
                for req, token in zip(batch.reqs, result.next_token_ids):
                    req.output_ids.append(token)
                return "done"

        hook = sglang.SglangHook(self.recorder, 4)
        sglang.attach(Scheduler, hook)
        a, b = Req("a", [1, 2, 3], 2), Req("b", [4, 5], 3)
        scheduler = Scheduler()
        prefill = Thing(
            reqs=[a, b], forward_mode=Mode(True), prefix_lens=[0, 0], extend_lens=[3, 2]
        )
        self.assertEqual(
            scheduler.process_batch_result(prefill, Thing(next_token_ids=[10, 20])), "done"
        )
        decode = Thing(reqs=[a, b], forward_mode=Mode(False), prefix_lens=None, extend_lens=None)
        scheduler.process_batch_result(decode, Thing(next_token_ids=[11, 21]))
        decode.reqs = [b]
        scheduler.process_batch_result(decode, Thing(next_token_ids=[22]))
        steps = self.steps()
        self.assertEqual(hook.guard.failures, 0)
        self.assertEqual(
            [[r["token"] for r in s["rows"]] for s in steps], [[1, 2, 3, 4, 5], [10, 20], [21]]
        )
        self.assertEqual(
            [[r["token"] for r in o["rows"]] for o in of_kind(self.records, "output")],
            [[10, 20], [11, 21], [22]],
        )

    def test_a_result_on_the_device_is_not_waited_for(self) -> None:
        class Tensor:
            device = Thing(type="cuda")

            def tolist(self) -> list[int]:
                raise AssertionError("it was waited for")

        class Scheduler:
            def process_batch_result(self, batch: Thing, result: Thing) -> None:
                pass

        hook = sglang.SglangHook(self.recorder, 4)
        sglang.attach(Scheduler, hook)
        batch = Thing(
            reqs=[Req("a", [1], 9)], forward_mode=Mode(True), prefix_lens=[0], extend_lens=[1]
        )
        Scheduler().process_batch_result(batch, Thing(next_token_ids=Tensor()))
        self.assertEqual(hook.guard.failures, 1)
        self.recorder.close()


if __name__ == "__main__":
    unittest.main()
