"""What the hooks record by themselves, from the environment.

REDECODE_RECORD_PATH: the trace. {engine}, {rank} and {pid} in it are filled in; without {rank} or
{pid} only one process of an engine can record there. Unset: the hooks do nothing.
REDECODE_RECORD_OPTIONS: options of the recorder as NAME=VALUE, joined by ";", for example
"sampling=1/16;rotate_bytes=1000000000;policy=keep_last". Names are those of words.Options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..errors import Code, RecordError
from ..recorder import Recorder
from ..words import Layout, Options, Policy

PATH_VARIABLE = "REDECODE_RECORD_PATH"
OPTIONS_VARIABLE = "REDECODE_RECORD_OPTIONS"

# Switches that change what a decode step does. Others, such as keys, never reach a trace.
_SWITCH_PREFIXES = ("SGLANG_OPT_", "NCCL_ALGO", "NCCL_PROTO")
_SWITCHES = frozenset(
    {
        "CUBLAS_WORKSPACE_CONFIG",
        "CUDA_LAUNCH_BLOCKING",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "SGLANG_DSV4_COMPRESS_STATE_DTYPE",
        "SGLANG_DSV4_FP4_EXPERTS",
        "SGLANG_ENABLE_CUDA_GRAPH_DEDUP",
        "SGLANG_ENABLE_GRAPH_POOL_BORROW",
        "SGLANG_ENABLE_GRAPH_POOL_PRECARVE",
        "SGLANG_FP8_PAGED_MQA_LOGITS_TORCH",
        "SGLANG_HACK_FLASHMLA_BACKEND",
        "SGLANG_PREP_IN_CUDA_GRAPH",
        "SGLANG_ROCM_USE_MULTI_STREAM",
        "SGLANG_TOPK_TRANSFORM_512_TORCH",
        "SGLANG_USE_BREAKABLE_CUDA_GRAPH",
        "VLLM_BATCH_INVARIANT",
        "VLLM_DISABLE_SHARED_EXPERTS_STREAM",
        "VLLM_MULTI_STREAM_GEMM_TOKEN_THRESHOLD",
        "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD",
        "VLLM_USE_BREAKABLE_CUDAGRAPH",
        "VLLM_USE_V2_MODEL_RUNNER",
    }
)


def switches(environment: Mapping[str, str]) -> list[str]:
    """The engine switches among the environment, as NAME=value, ascending."""
    return sorted(
        f"{name}={value}"
        for name, value in environment.items()
        if name in _SWITCHES or name.startswith(_SWITCH_PREFIXES)
    )


def _value(name: str, text: str, default: Any) -> Any:
    if isinstance(default, (Policy, Layout)):
        return type(default)[text.upper()]
    if isinstance(default, bool):
        return {"0": False, "1": True, "false": False, "true": True}[text.lower()]
    return int(text) if isinstance(default, int) else text


def with_text(options: Options, text: str) -> Options:
    """`options` changed by "NAME=VALUE;NAME=VALUE".

    Raises:
        RecordError: INVALID for names and values that are none.
    """
    defaults = {field.name: field.default for field in fields(Options)}
    changes: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, _, value = part.partition("=")
        if name not in defaults or isinstance(defaults[name], tuple):
            raise RecordError(Code.INVALID, f"{OPTIONS_VARIABLE}: there is no option {name!r}")
        try:
            changes[name] = _value(name, value, defaults[name])
        except (KeyError, ValueError) as error:
            raise RecordError(
                Code.INVALID, f"{OPTIONS_VARIABLE}: {name} cannot be {value!r}"
            ) from error
    return replace(options, **changes)


def name_of(served: object) -> str | None:
    """The name of a model as engines hold it: a text, a list of them or none."""
    first = served[0] if isinstance(served, (list, tuple)) and served else served
    return first if isinstance(first, str) else None


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """True when the environment asks for a recording."""
    return bool(environment.get(PATH_VARIABLE))


def open_recorder(
    engine: str, rank: int, options: Options, environment: Mapping[str, str] = os.environ
) -> Recorder:
    """The recorder that the environment asks for; `options` hold what the engine knows."""
    path = environment[PATH_VARIABLE]
    for key, value in (("engine", engine), ("rank", str(rank)), ("pid", str(os.getpid()))):
        path = path.replace("{" + key + "}", value)
    known = replace(options, environment=switches(environment))
    return Recorder(path, with_text(known, environment.get(OPTIONS_VARIABLE, "")))
