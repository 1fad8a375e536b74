"""Records what an LLM serving engine decodes, for redecode to replay and compare."""

from .recorder import End, Event, Phase, Policy, Recorder, RecordError

__all__ = ["End", "Event", "Phase", "Policy", "RecordError", "Recorder"]
__version__ = "0.1.0"
