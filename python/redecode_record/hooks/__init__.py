"""Hooks that record a serving engine without a change to its source.

sglang and vllm attach to one scheduler each, by replacing methods of that one object. They read
lists, numbers and CPU tensors that the scheduler has made already: no GPU tensor is touched, so
nothing waits for the device. They never raise into the engine: on the first failure a hook takes
itself out, says so once in the log and closes the trace.

With REDECODE_RECORD_PATH set, both attach by themselves where the package is installed; see
settings.
"""
