"""The SGLang hook against a stand-in of the scheduler that it is written for."""

from __future__ import annotations

import logging
import os
from typing import Any
from unittest import mock

from redecode_record import Recorder
from redecode_record.hooks import settings, sglang

from . import sglang_stand_in as engine
from .reading import TraceTest


class SglangTest(TraceTest):
    def setUp(self) -> None:
        super().setUp()
        self.scheduler = engine.Scheduler()
        options = sglang.known_options(self.scheduler)
        self.recorder = Recorder(self.path, options)
        self.guard = sglang.attach(self.scheduler, self.recorder)
        self.addCleanup(self.guard.end, "cleanup")

    def req(self, rid: str, prompt: int, **sampling: Any) -> engine.Req:
        tokens = [(17 * i + len(rid)) % engine.VOCAB for i in range(prompt)]
        return engine.Req(rid, tokens, engine.SamplingParams(**sampling))

    def check(self, *, outputs: list[Any] | None = None) -> dict[str, list[Any]]:
        """Ends the recording; the trace must hold what the scheduler fed."""
        self.guard.end("test over")
        records = self.read()
        names = self.names(records)
        steps = [
            (
                [(names[r["request"]], r["position"], r["token"]) for r in step["rows"]],
                step["bucket"],
            )
            for step in records["step"]
        ]
        self.assertEqual(steps, [(rows, bucket) for rows, _, bucket in self.scheduler.fed])
        given = [
            [(names[row["request"]], row["token"]) for row in output["rows"]]
            for output in records["output"]
        ]
        fed = outputs if outputs is not None else [s for _, s, _ in self.scheduler.fed if s]
        self.assertEqual(given, fed)
        for step, rows in zip(records["step"], steps, strict=True):
            at_end = {(r[0], r[1]) for r in rows[0]}
            self.assertEqual(len(at_end), len(step["rows"]))
        return records

    def test_prefill_decode_and_end(self) -> None:
        a, b = self.req("a", 6, max_new_tokens=3), self.req("b", 3, max_new_tokens=2)
        self.scheduler.run(engine.extend([a, b], [0, 0], [6, 3]))
        self.scheduler.run(engine.decode([a, b], [7, 4]))
        self.assertTrue(b.finished())
        self.scheduler.run(engine.decode([a], [8]))
        c = self.req("c", 5)
        self.scheduler.run(engine.extend([c], [0], [5]))
        records = self.check()
        steps = records["step"]
        self.assertEqual([s["phase"] for s in steps], ["prefill", "decode", "decode", "prefill"])
        self.assertEqual([len(s["departures"]) for s in steps], [0, 0, 1, 1])
        wants = [r["wants_output"] for r in steps[0]["rows"]]
        self.assertEqual(wants, [False] * 5 + [True] + [False] * 2 + [True])
        self.assertEqual(steps[0]["arrivals"][0]["prompt_tokens"], 6)
        # c gets the pages that b gave back.
        pages = [[c["page"] for c in s["page_changes"]] for s in steps]
        self.assertEqual(pages, [[1, 2, 3], [], [], [1, 2]])

    def test_chunked_prefill_mixed_with_decode_and_a_cached_prefix(self) -> None:
        a, b = self.req("a", 4), self.req("b", 14)
        self.scheduler.run(engine.extend([a], [0], [4]))
        self.scheduler.run(engine.extend([b], [8], [3]))
        mixed = engine.extend([b, a], [11, 4], [3, 1], engine.ForwardMode.MIXED)
        self.scheduler.run(mixed)
        records = self.check()
        self.assertEqual([s["phase"] for s in records["step"]], ["prefill", "prefill", "mixed"])
        arrival = records["step"][1]["arrivals"][0]
        self.assertEqual((arrival["prompt_tokens"], arrival["cached_tokens"]), (14, 8))
        shared = [c["shared"] for c in records["step"][1]["page_changes"]]
        self.assertEqual(shared, [True, True, False])
        self.assertEqual([len(o["rows"]) for o in records["output"]], [1, 2])

    def test_one_step_ahead(self) -> None:
        a, b = self.req("a", 3, max_new_tokens=3), self.req("b", 2, max_new_tokens=4)
        self.scheduler.run(engine.extend([a, b], [0, 0], [3, 2]), ahead=True)
        self.scheduler.run(engine.decode([a, b], [4, 3]), ahead=True)
        self.assertEqual(self.recorder.stats().steps_seen, 2)
        self.scheduler.run(engine.decode([a, b], [5, 4]), ahead=True)
        # a is at its end, but the step after it is under way with it already.
        self.scheduler.run(engine.decode([a, b], [6, 5]), ahead=True)
        self.assertTrue(a.finished())
        self.scheduler.drain()
        self.scheduler.run(engine.extend([self.req("c", 1)], [0], [1]))
        sampled = [s for _, s, _ in self.scheduler.fed]
        sampled[3] = [s for s in sampled[3] if s[0] != "a"]
        records = self.check(outputs=sampled)
        self.assertEqual([len(s["departures"]) for s in records["step"]], [0, 0, 0, 0, 2])

    def test_a_retracted_request_departs_and_is_resumed(self) -> None:
        a = self.req("a", 5, max_new_tokens=9)
        self.scheduler.run(engine.extend([a], [0], [5]))
        self.scheduler.run(engine.decode([a], [6]))
        a.kv.req_pool_idx = 9
        self.scheduler.run(engine.extend([a], [4], [3]))
        records = self.check()
        step = records["step"][2]
        self.assertEqual(step["departures"], [{"request": 0, "reason": "preempted"}])
        arrival = step["arrivals"][0]
        self.assertTrue(arrival["resumed"])
        self.assertEqual((arrival["prompt_tokens"], arrival["cached_tokens"]), (7, 4))

    def test_sampling_and_sessions(self) -> None:
        greedy = self.req("a", 2, top_k=1)
        drawn = self.req("b", 2, temperature=0.5, top_k=40, top_p=0.75, min_p=0.25, sampling_seed=7)
        greedy.session_id = drawn.session_id = "s"
        self.scheduler.run(engine.extend([greedy, drawn], [0, 0], [2, 2]))
        first, second = self.check()["step"][0]["arrivals"]
        self.assertEqual((first["sampling"]["temperature"], first["sampling"]["top_k"]), (0, 0))
        self.assertEqual(
            second["sampling"],
            {"temperature": 0.5, "top_k": 40, "top_p": 0.75, "min_p": 0.25, "seed": "7"},
        )
        self.assertEqual([(a["session"], a["round"]) for a in (first, second)], [(0, 0), (0, 1)])

    def test_prebuilt_and_idle_batches_are_no_steps(self) -> None:
        a = self.req("a", 4)
        prebuilt = engine.ScheduleBatch([a], engine.ForwardMode.PREBUILT)
        self.scheduler.run(prebuilt)
        self.scheduler.run(engine.ScheduleBatch([], engine.ForwardMode.IDLE))
        a.kv.req_pool_idx = 1
        a.output_ids.append(11)
        self.scheduler.given["a"] = [*a.origin_input_ids, 11]
        self.scheduler.run(engine.decode([a], [5]))
        records = self.check()
        self.assertEqual(records["event"][0]["kind"], "kv_handed_over")
        self.assertEqual(records["step"][0]["arrivals"][0]["cached_tokens"], 4)

    def test_tokens_outside_the_vocabulary_are_stated(self) -> None:
        a = engine.Req("a", [1, engine.VOCAB, 2**40], engine.SamplingParams())
        self.scheduler.run(engine.extend([a], [0], [3]))
        self.guard.end("test over")
        records = self.read()
        self.assertEqual([r["token"] for r in records["step"][0]["rows"]], [1, 0, 0])
        notes = [e["text"] for e in records["event"] if e["kind"] == "note"]
        self.assertIn("step 0: 2 input tokens", notes[0])

    def test_a_failure_ends_the_hook_and_never_the_engine(self) -> None:
        a = self.req("a", 3, max_new_tokens=9)
        self.scheduler.run(engine.extend([a], [0], [3]))
        spec = engine.decode([a], [4])
        spec.spec_algorithm = engine.SpeculativeAlgorithm.EAGLE
        with self.assertLogs("redecode_record", logging.WARNING) as logs:
            self.scheduler.run(spec)
            self.scheduler.run(engine.decode([a], [5]))
        self.assertEqual(len(logs.output), 1)
        self.assertIn("speculative decoding", logs.output[0])
        self.assertEqual((self.guard.failures, self.guard.active), (1, False))
        self.assertEqual(len(a.output_ids), 3)
        self.assertTrue(self.recorder.closed)
        self.assertNotIn("run_batch", vars(self.scheduler))
        records = self.read()
        self.assertEqual(len(records["step"]), 1)
        self.assertIn("speculative decoding", records["event"][-1]["text"])

    def test_any_broken_attribute_is_survived(self) -> None:
        for name in ("reqs", "forward_mode", "prefix_lens", "extend_lens", "spec_algorithm"):
            with self.subTest(name), self.assertLogs("redecode_record", logging.WARNING) as logs:
                scheduler = engine.Scheduler()
                scheduler.run_batch = lambda batch, pp_proxy_tensors=None: "answer"  # type: ignore
                guard = sglang.attach(scheduler, Recorder(self.folder / f"{name}.rdt"))
                broken = _Without(engine.extend([self.req("a", 3)], [0], [3]), name)
                self.assertEqual(scheduler.run_batch(broken), "answer")
                self.assertEqual(len(logs.output), 1)
                self.assertFalse(guard.active)

    def test_an_error_of_the_engine_passes_and_its_step_is_there(self) -> None:
        a = self.req("a", 3)
        bad = engine.extend([a], [0], [3])
        with (
            mock.patch.object(self.scheduler, "given", None),
            self.assertRaises(AttributeError),
        ):
            self.scheduler.run_batch(bad)
        self.guard.end("crash")
        self.assertEqual(len(self.read()["step"]), 1)


class _Without:
    def __init__(self, batch: Any, name: str) -> None:
        self._batch, self._name = batch, name

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            raise AttributeError(name)
        return getattr(self._batch, name)


class PluginTest(TraceTest):
    def follow(self, environment: dict[str, str], parallel: Any) -> engine.Scheduler:
        class Scheduler(engine.Scheduler):
            pass

        with mock.patch.dict(os.environ, environment):
            sglang.follow(Scheduler, lambda: parallel)
            sglang.follow(Scheduler, lambda: parallel)
            return Scheduler()

    def test_the_environment_says_where(self) -> None:
        first = engine.Named(attn_tp_rank=0, pp_rank=0, tp_rank=2)
        environment = {
            settings.PATH_VARIABLE: str(self.folder / "{engine}-{rank}.rdt"),
            settings.OPTIONS_VARIABLE: "sampling=all; policy=block; overwrite=1",
            "SGLANG_OPT_USE_TOPK_V2": "1",
            "SGLANG_API_KEY": "secret-value",
        }
        scheduler = self.follow(environment, first)
        a = engine.Req("a", [1, 2], engine.SamplingParams())
        scheduler.run(engine.extend([a], [0], [2]))
        path = self.folder / "sglang-2.rdt"
        guards = [f.__closure__ for f in (vars(scheduler)["run_batch"],)]
        guard = next(c.cell_contents for c in guards[0] if hasattr(c.cell_contents, "end"))
        guard.end("over")
        self.assertEqual(len(self.read(path)["step"]), 1)
        info = str(self.redecode("trace", "info", str(path)))
        self.assertIn("SGLANG_OPT_USE_TOPK_V2=1", info)
        self.assertNotIn(b"secret-value", path.read_bytes())
        self.assertNotIn("secret-value", info)

    def test_other_ranks_and_no_wish_record_nothing(self) -> None:
        path = {settings.PATH_VARIABLE: str(self.path)}
        other = engine.Named(attn_tp_rank=1, pp_rank=0, tp_rank=1)
        first = engine.Named(attn_tp_rank=0, pp_rank=0, tp_rank=0)
        for environment, parallel in ((path, other), ({settings.PATH_VARIABLE: ""}, first)):
            scheduler = self.follow(environment, parallel)
            self.assertNotIn("run_batch", vars(scheduler))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_wrong_option_is_said_once_and_nothing_is_recorded(self) -> None:
        first = engine.Named(attn_tp_rank=0, pp_rank=0, tp_rank=0)
        environment = {
            settings.PATH_VARIABLE: str(self.path),
            settings.OPTIONS_VARIABLE: "colour=red",
        }
        with self.assertLogs("redecode_record", logging.WARNING) as logs:
            scheduler = self.follow(environment, first)
        self.assertIn("colour", logs.output[0])
        self.assertNotIn("run_batch", vars(scheduler))
