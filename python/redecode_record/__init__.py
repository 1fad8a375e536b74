"""redecode_record: records what a decode engine schedules, from Python.

A thin layer over the C ABI of libredecode_record; see Recorder for a first use. The hooks for
SGLang and vLLM lie in redecode_record.hooks and are not imported from here.
"""

from ._abi import NO_TIME
from .errors import Code, RecordError
from .recorder import Recorder, StepInParts
from .words import Event, Layout, Options, Phase, Policy, Reason, Stats

__version__ = "0.1.0"
__all__ = [
    "NO_TIME",
    "Code",
    "Event",
    "Layout",
    "Options",
    "Phase",
    "Policy",
    "Reason",
    "RecordError",
    "Recorder",
    "Stats",
    "StepInParts",
]
