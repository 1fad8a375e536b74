"""The vLLM hook against a stand-in of the engine core that it is written for."""

from __future__ import annotations

import logging
import os
from typing import Any
from unittest import mock

from redecode_record import Recorder
from redecode_record.hooks import settings, vllm

from . import vllm_stand_in as stand_in
from .reading import TraceTest
from .vllm_stand_in import new, output


class VllmTest(TraceTest):
    def setUp(self) -> None:
        super().setUp()
        self.engine = stand_in.EngineCore()
        self.recorder = Recorder(self.path, vllm.known_options(self.engine))
        self.guard = vllm.attach(self.engine, self.recorder)
        self.addCleanup(self.engine.shutdown)

    def check(self) -> dict[str, list[Any]]:
        """Ends the recording; the trace must hold what the engine fed."""
        self.engine.shutdown()
        self.assertEqual(self.guard.failures, 0)
        records = self.read()
        names = self.names(records)
        steps = [
            [(names[r["request"]], r["position"], r["token"]) for r in step["rows"]]
            for step in records["step"]
        ]
        self.assertEqual(steps, [rows for rows, _ in self.engine.fed])
        given = {
            output["step"]: [(names[row["request"]], row["token"]) for row in output["rows"]]
            for output in records["output"]
        }
        fed = {i: sampled for i, (_, sampled) in enumerate(self.engine.fed) if sampled}
        self.assertEqual(given, fed)
        return records

    def test_prefill_decode_and_end(self) -> None:
        step = self.engine.step
        step(output({"a": 6, "b": 3}, [new("a", 6, [5, 9]), new("b", 3, [2], seed=7)]))
        step(output({"a": 1, "b": 1}, cached={"a": (None, 6), "b": (None, 3)}))
        step(output({"a": 1, "b": 1}, cached={"a": (None, 7), "b": ([3], 4)}))
        step(output({"b": 1}, cached={"b": (None, 5)}, finished_req_ids={"a"}))
        steps = self.check()["step"]
        self.assertEqual([s["phase"] for s in steps], ["prefill"] + ["decode"] * 3)
        self.assertEqual([r["slot"] for r in steps[0]["rows"]], [20, 21, 22, 23, 36, 37, 8, 9, 10])
        self.assertEqual([r["slot"] for r in steps[2]["rows"]], [39, 12])
        self.assertEqual(steps[3]["departures"], [{"request": 0, "reason": "finished"}])
        self.assertEqual(steps[0]["arrivals"][1]["sampling"]["seed"], "7")

    def test_one_step_ahead(self) -> None:
        step = self.engine.step
        step(output({"a": 2}, [new("a", 2, [5])]), ahead=True)
        step(output({"a": 1, "b": 3}, [new("b", 3, [6])], {"a": (None, 2)}), ahead=True)
        step(output({"a": 1, "b": 1}, cached={"a": (None, 3), "b": (None, 3)}), ahead=True)
        self.assertEqual(self.recorder.stats().steps_seen, 3)
        step(output({"b": 1}, cached={"b": ([7], 4)}, finished_req_ids={"a"}), ahead=True)
        self.engine.drain()
        steps = self.check()["step"]
        self.assertEqual([s["phase"] for s in steps], ["prefill", "mixed", "decode", "decode"])

    def test_chunked_prefill_and_a_cached_prefix(self) -> None:
        step = self.engine.step
        step(output({"a": 4}, [new("a", 14, [1, 2, 3], computed=8)]))
        step(output({"a": 2}, cached={"a": ([4], 12)}))
        steps = self.check()["step"]
        self.assertEqual(
            [(c["page"], c["shared"]) for s in steps for c in s["page_changes"]],
            [(1, True), (2, True), (3, False), (4, False)],
        )
        self.assertEqual([r["wants_output"] for r in steps[0]["rows"]], [False] * 4)
        self.assertEqual([r["wants_output"] for r in steps[1]["rows"]], [False, True])

    def test_a_preempted_request_is_resumed(self) -> None:
        step = self.engine.step
        for runner, name in ((1, "a"), (2, "b")):
            step(output({name: 5}, [new(name, 5, [1, 2])]))
            tokens = list(self.engine.sequences[name])
            if runner == 1:
                back = output({name: 6}, cached={name: ([7, 8], 0)}, preempted_req_ids={name})
                back.scheduled_cached_reqs.resumed_req_ids = {name}
                back.scheduled_cached_reqs.all_token_ids = {name: tokens}
            else:
                again = new(name, 5, [7, 8])
                again.prefill_token_ids = tokens
                back = output({name: 6}, [again], preempted_req_ids={name})
            step(back)
            self.engine.scheduler.finish_requests([name], stand_in.RequestStatus.FINISHED_ABORTED)
        step(output({}))
        step(output({"c": 1}, [new("c", 1, [3])]))
        steps = self.check()["step"]
        for at in (1, 3):
            departed = [d["reason"] for d in steps[at]["departures"]]
            self.assertEqual(departed[-1], "preempted")
            arrival = steps[at]["arrivals"][0]
            self.assertEqual((arrival["resumed"], arrival["prompt_tokens"]), (True, 6))
            self.assertEqual(steps[at]["rows"][0]["slot"], 28)
        self.assertEqual(steps[4]["departures"], [{"request": 1, "reason": "cancelled"}])

    def test_copies_and_hand_overs_are_events(self) -> None:
        self.engine.transfer = stand_in.KVConnectorOutput(finished_recving={"late"})
        copies = [stand_in.KVCacheBlockCopy(4, 5)]
        self.engine.step(output({"a": 2}, [new("a", 2, [5])], kv_cache_block_copies=copies))
        events = [(e["kind"], e["a"], e["b"], e["text"]) for e in self.check()["event"]]
        self.assertIn(("blocks_copied", 4, 5, ""), events)
        self.assertIn(("kv_handed_over", 0, 0, "late"), events)

    def test_what_a_trace_cannot_say_ends_the_hook_and_never_the_engine(self) -> None:
        self.engine.step(output({"a": 2}, [new("a", 2, [5])]))
        spec = output({"a": 1}, cached={"a": (None, 2)}, scheduled_spec_decode_tokens={"a": [1, 2]})
        with self.assertLogs("redecode_record", logging.WARNING) as logs:
            self.engine.step(spec)
            self.engine.step(output({"a": 1}, cached={"a": (None, 3)}))
        self.assertEqual(len(logs.output), 1)
        self.assertEqual((self.guard.failures, self.guard.active), (1, False))
        self.assertEqual(self.engine.scheduler.updates, 3)
        self.assertNotIn("execute_model", vars(self.engine.model_executor))
        records = self.read()
        self.assertEqual(len(records["step"]), 1)
        self.assertIn("speculative decoding", records["event"][-1]["text"])

    def test_any_broken_output_is_survived(self) -> None:
        for name in vars(output({})):
            if name == "total_num_scheduled_tokens":
                continue
            with self.subTest(name), self.assertLogs("redecode_record", logging.WARNING):
                engine = stand_in.EngineCore()
                self.addCleanup(engine.shutdown)
                engine.model_executor.execute_model = lambda *a, **k: "answer"  # type: ignore
                guard = vllm.attach(engine, Recorder(self.folder / f"{name}.rdt"))
                broken = output({"a": 2}, [new("a", 2, [5])])
                delattr(broken, name)
                with mock.patch.object(stand_in.SchedulerOutput, name, _Broken(), create=True):
                    self.assertEqual(engine.model_executor.execute_model(broken), "answer")
                self.assertFalse(guard.active)


class _Broken:
    def __get__(self, owner: Any, kind: Any) -> Any:
        raise AttributeError("another version")


class PluginTest(TraceTest):
    def test_an_engine_is_recorded_from_its_first_request(self) -> None:
        class EngineCore(stand_in.EngineCore):
            pass

        environment = {
            settings.PATH_VARIABLE: str(self.folder / "{engine}-{rank}.rdt"),
            "VLLM_BATCH_INVARIANT": "1",
            "VLLM_API_KEY": "secret-value",
        }
        with mock.patch.dict(os.environ, environment):
            vllm.follow(EngineCore)
            vllm.follow(EngineCore)
            engine = EngineCore()
            self.assertEqual(list(self.folder.iterdir()), [])
            engine.add_request(None)
            engine.add_request(None, request_wave=1)
        self.assertEqual(engine.requests, 2)
        engine.step(output({"a": 2}, [new("a", 2, [5])]))
        engine.shutdown()
        path = self.folder / "vllm-3.rdt"
        self.assertEqual(len(self.read(path)["step"]), 1)
        self.assertIn("VLLM_BATCH_INVARIANT=1", str(self.redecode("trace", "info", str(path))))
        self.assertNotIn(b"secret-value", path.read_bytes())

    def test_no_wish_no_recording(self) -> None:
        with mock.patch.dict(os.environ, {settings.PATH_VARIABLE: ""}):
            engine = stand_in.EngineCore()
            self.assertIsNone(vllm.attach_from_environment(engine))
            vllm.plugin()
        self.assertNotIn("execute_model", vars(engine.model_executor))
