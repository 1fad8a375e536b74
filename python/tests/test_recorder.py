"""Recorder: what is given is what is read back; errors carry a code and say what to do."""

from __future__ import annotations

import ctypes
import os
import threading
import unittest
from array import array
from typing import Any

from redecode_record import Code, Event, Options, Phase, Policy, Reason, Recorder, RecordError
from redecode_record._abi import load
from redecode_record.columns import column

from .reading import LIBRARY, NAMED, WHY, TraceTest


class Strided:
    """Every `by`-th value of an array, without a copy: what a numpy view offers."""

    def __init__(self, values: array[int], by: int) -> None:
        self._values, self._by = values, by

    @property
    def __array_interface__(self) -> dict[str, Any]:
        width = self._values.itemsize
        return {
            "data": (self._values.buffer_info()[0], False),
            "shape": (len(self._values) // self._by,),
            "strides": (width * self._by,),
            "typestr": f"<i{width}",
            "version": 3,
        }


class ColumnTest(unittest.TestCase):
    def test_arrays_are_not_copied(self) -> None:
        values = array("q", [1, 2, 3, 4])
        made, length, _ = column("token", Strided(values, 2))
        self.assertEqual((made.data, made.stride, length), (values.buffer_info()[0], 16, 2))
        held = array("i", [1, 2])
        made, length, _ = column("token", held)
        self.assertEqual((made.data, made.width, length), (held.buffer_info()[0], 4, 2))
        words = (ctypes.c_uint32 * 3)(1, 2, 3)
        self.assertEqual(column("token", words)[0].data, ctypes.addressof(words))

    def test_what_is_no_column_is_refused(self) -> None:
        wrong: list[Any] = [array("h", [1]), array("d", [1.0]), [1.5], ["a"], "12", object(), 7]
        for values in wrong:
            with self.subTest(values=values), self.assertRaises(RecordError) as caught:
                column("token", values)
            self.assertEqual(caught.exception.code, Code.INVALID)
            self.assertIn("token", caught.exception.message)


class RecorderTest(TraceTest):
    def test_everything_given_is_read_back(self) -> None:
        with Recorder(self.path, page_size=64, vocab=1000, layers=2, buckets=[1, 8]) as recorder:
            request = recorder.register_request("cmpl-1")
            self.assertEqual(recorder.register_request("cmpl-1"), request)
            recorder.arrive(
                request,
                prompt_tokens=4,
                cached_tokens=1,
                max_tokens=9,
                seed=-1,
                session=3,
                round=2,
                temperature=0.5,
                top_k=4,
                top_p=0.75,
                min_p=0.25,
            )
            recorder.page(request, 0, 7, shared=True)
            self.assertTrue(
                recorder.step(
                    Phase.PREFILL,
                    request=[request] * 3,
                    position=Strided(array("q", [1, 0, 2, 0, 3, 0]), 2),
                    token=array("i", [5, 6, 7]),
                    slot=range(449, 452),
                    wants_output=[False, False, True],
                )
            )
            self.assertTrue(
                recorder.outputs(
                    token=[8],
                    row=[2],
                    digest=[2**63 - 1],
                    log_sum_exp=[1.5],
                    top_tokens=[8, 9],
                    top_logits=[2.0, 1.0],
                    top_count=2,
                )
            )
            recorder.step(
                Phase.DECODE, request=[request], position=[4], token=[8], slot=[452], bucket=1
            )
            recorder.depart(request, Reason.CANCELLED)
            again = recorder.register_request("cmpl-1")
            recorder.arrive(again, prompt_tokens=1)
            recorder.page(again, 0, 7)
            recorder.step(Phase.PREFILL, request=[again], position=[0], token=[1], slot=[448])
            stats = recorder.close()
        self.assertEqual(
            (stats.steps_written, stats.outputs_written, stats.events_written), (3, 1, 2)
        )
        self.assertTrue(stats.lost_nothing)
        self.assertIsNone(stats.first_dropped_step)
        records = self.read()
        first, second, third = records["step"]
        self.assertEqual(first["phase"], "prefill")
        self.assertEqual(
            first["rows"],
            [
                {
                    "request": request,
                    "position": i + 1,
                    "token": 5 + i,
                    "slot": 449 + i,
                    "wants_output": i == 2,
                }
                for i in range(3)
            ],
        )
        self.assertEqual(
            first["arrivals"],
            [
                {
                    "request": request,
                    "session": 3,
                    "round": 2,
                    "prompt_tokens": 4,
                    "cached_tokens": 1,
                    "max_tokens": 9,
                    "resumed": False,
                    "sampling": {
                        "temperature": 0.5,
                        "top_k": 4,
                        "top_p": 0.75,
                        "min_p": 0.25,
                        "seed": str(2**64 - 1),
                    },
                }
            ],
        )
        self.assertEqual(
            first["page_changes"], [{"request": request, "index": 0, "page": 7, "shared": True}]
        )
        self.assertEqual((second["bucket"], second["rows"][0]["wants_output"]), (1, True))
        self.assertEqual(third["departures"], [{"request": request, "reason": "cancelled"}])
        self.assertNotEqual(again, request)
        (output,) = records["output"]
        (row,) = output["rows"]
        self.assertEqual(
            (row["row"], row["token"], row["position"], row["log_sum_exp"]), (2, 8, 3, 1.5)
        )
        self.assertEqual(row["logits_digest"], "7fffffffffffffff")
        self.assertEqual(len(row["top"]), 2)
        self.assertEqual(list(self.names(records).values()), ["cmpl-1", "cmpl-1"])

    def test_all_events(self) -> None:
        with Recorder(self.path) as recorder:
            for kind in Event:
                recorder.event(kind, request=3, a=1, b=2, text=f"<{kind.name}>")
            recorder.environment("SGLANG_OPT_X", "1")
        events = self.read()["event"]
        self.assertEqual(
            [e["text"] for e in events], [f"<{kind.name}>" for kind in Event] + ["SGLANG_OPT_X=1"]
        )
        self.assertEqual({(e["request"], e["a"], e["b"]) for e in events[:-1]}, {(3, 1, 2)})

    def test_a_step_in_parts(self) -> None:
        with Recorder(self.path) as recorder:
            recorder.arrive(0, prompt_tokens=3)
            with recorder.begin_step(Phase.PREFILL, index=4) as step:
                step.rows(
                    request=[0, 0],
                    position=[0, 1],
                    token=[5, 6],
                    slot=[1, 2],
                    wants_output=bytes(2),
                )
                step.rows(
                    request=[0],
                    position=[2],
                    token=[7],
                    slot=[3],
                )
            self.assertTrue(step.recorded)
            with self.assertRaises(ZeroDivisionError), recorder.begin_step(Phase.DECODE) as step:
                step.rows(request=[0], position=[3], token=[8], slot=[4])
                raise ZeroDivisionError
            self.assertFalse(step.recorded)
            recorder.step(Phase.DECODE, request=[0], position=[3], token=[9], slot=[4])
        steps = self.read()["step"]
        self.assertEqual([s["step"] for s in steps], [4, 5])
        self.assertEqual([r["token"] for r in steps[0]["rows"]], [5, 6, 7])
        self.assertEqual([r["wants_output"] for r in steps[0]["rows"]], [False, False, True])

    def test_losses_are_counted_and_stated(self) -> None:
        dropped = 0
        with Recorder(self.path, ring_bytes=1) as recorder:
            recorder.arrive(0, prompt_tokens=1)
            for i in range(400):
                column = array("i", range(64 * i, 64 * i + 64))
                dropped += not recorder.step(
                    Phase.PREFILL, request=[0] * 64, position=column, token=column, slot=column
                )
            large = array("i", range(60_000))
            with self.assertRaises(RecordError) as caught:
                recorder.step(Phase.PREFILL, request=large, position=large, token=large, slot=large)
            stats = recorder.close()
        self.assertEqual(caught.exception.code, Code.TOO_BIG)
        self.assertEqual(stats.steps_dropped, dropped + 1)
        self.assertFalse(stats.lost_nothing)
        lost = sum(gap["last"] - gap["first"] + 1 for gap in self.read()["gap"])
        self.assertEqual(lost, stats.steps_dropped)

    def test_keep_last_writes_when_triggered(self) -> None:
        with Recorder(self.path, policy=Policy.KEEP_LAST) as recorder:
            recorder.arrive(0, prompt_tokens=1)
            recorder.step(Phase.PREFILL, request=[0], position=[0], token=[5], slot=[1])
            recorder.trigger()
            while recorder.stats().steps_written == 0:
                recorder.flush(100)
        self.assertEqual(len(self.read()["step"]), 1)

    def test_each_thread_has_a_lane_and_steps_come_from_one(self) -> None:
        codes: list[Code] = []

        def other(recorder: Recorder) -> None:
            recorder.event(Event.NOTE, text="from a thread")
            try:
                recorder.step(Phase.DECODE, request=[0], position=[1], token=[5], slot=[1])
            except RecordError as error:
                codes.append(error.code)
            recorder.release_lane()

        with Recorder(self.path) as recorder:
            recorder.arrive(0, prompt_tokens=1)
            recorder.step(Phase.PREFILL, request=[0], position=[0], token=[5], slot=[1])
            thread = threading.Thread(target=other, args=(recorder,))
            thread.start()
            thread.join()
            self.assertEqual(recorder.stats().lanes, 2)
        self.assertEqual(codes, [Code.WRONG_ORDER])
        self.assertEqual([e["text"] for e in self.read()["event"]], ["from a thread"])


@unittest.skipUnless(NAMED, WHY)
class ErrorTest(TraceTest):
    def refused(self, code: Code, act: Any, *arguments: Any, **named: Any) -> str:
        with self.assertRaises(RecordError) as caught:
            act(*arguments, **named)
        self.assertEqual(caught.exception.code, code)
        return caught.exception.message

    def test_opening(self) -> None:
        self.refused(Code.NOT_OPENED, Recorder, self.folder / "no" / "such" / "folder.rdt")
        Recorder(self.path).close()
        self.assertIn("t.rdt", self.refused(Code.NOT_OPENED, Recorder, self.path))
        self.assertIn("colour", self.refused(Code.INVALID, Recorder, self.path, colour="red"))
        self.refused(Code.INVALID, Recorder, self.path, Options(), page_size=4)
        self.refused(Code.INVALID, Recorder, self.path, page_size=-1)
        self.refused(Code.INVALID, Recorder, self.path, writer="a\0b")
        self.refused(Code.NOT_OPENED, Recorder, self.path, overwrite=True, sampling="1/0")

    def test_calls(self) -> None:
        recorder = Recorder(self.path)
        rows = {"request": [0], "position": [0], "token": [0], "slot": [0]}
        self.assertIn(
            "token",
            self.refused(Code.INVALID, recorder.step, Phase.DECODE, **{**rows, "token": [1, 2]}),
        )
        self.refused(Code.INVALID, recorder.step, Phase.DECODE, **rows, wants_output=[1, 1])
        self.refused(Code.INVALID, recorder.arrive, 0, prompt_tokens=1, cached_tokens=2)
        self.refused(Code.INVALID, recorder.page, 0, 0, 0)
        self.refused(Code.WRONG_ORDER, recorder.outputs, token=[1])
        self.refused(Code.INVALID, recorder.outputs, token=[1], log_sum_exp=[1.0, 2.0])
        recorder.close()
        for act in (recorder.close, recorder.stats, recorder.trigger):
            self.refused(Code.WRONG_ORDER, act)
        self.refused(Code.WRONG_ORDER, recorder.depart, 0)

    def test_a_missing_library_says_what_to_do(self) -> None:
        self.assertIn("nowhere.so", self.refused(Code.NO_LIBRARY, load, "/nowhere.so"))
        self.refused(Code.NO_LIBRARY, load, ctypes.util.find_library("c"))
        self.assertTrue(os.path.exists(LIBRARY))


if __name__ == "__main__":
    unittest.main()
