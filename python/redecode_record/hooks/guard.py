"""Guard: keeps a hook's failures away from the engine, and attaches to and leaves its objects."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("redecode_record")


class Guard:
    """Runs a hook's code; the first failure ends the hook.

    Attributes:
        failures: failed calls; more than one only when they ran at the same time.
        active: False once the hook has ended.
    """

    def __init__(self, engine: str, close: Callable[[str], None]) -> None:
        self._engine = engine
        self._close = close
        self._replaced: list[tuple[Any, str]] = []
        self.failures = 0
        self.active = True

    def replace(self, owner: Any, name: str, method: Callable[..., Any]) -> None:
        """Gives the object `owner` its own `name`, until the hook ends."""
        setattr(owner, name, method)
        self._replaced.append((owner, name))

    def run(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """What `act` returns; None when it failed or the hook has ended."""
        if not self.active:
            return None
        try:
            return act(*arguments)
        except Exception as error:
            self.failures += 1
            self.end(f"{type(error).__name__}: {error}", failed=True)
            return None

    def end(self, why: str, *, failed: bool = False) -> None:
        """Leaves the engine's objects as they were and closes the trace, once."""
        if not self.active:
            return
        self.active = False
        for owner, name in reversed(self._replaced):
            vars(owner).pop(name, None)
        self._replaced.clear()
        if failed:
            logger.warning(
                "redecode_record: recording of %s stopped, the engine goes on: %s",
                self._engine,
                why,
                exc_info=True,
            )
        try:
            self._close(why)
        except Exception:
            logger.warning("redecode_record: the trace is not complete", exc_info=True)
