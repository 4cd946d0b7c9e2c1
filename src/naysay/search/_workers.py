"""The threads of one search. Each multiplies on its own: a product's own threads would wait for the scan, spinning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, final

from naysay.arrays import need_torch
from naysay.checks import public


@final
@public
class Workers:
    """Some threads, from `with Workers(...)` on; torch multiplies with one thread inside each, if it is used."""

    def __init__(self, count: int, *, torch: bool) -> None:
        """Make the threads; torch's own number of threads comes back when they end."""
        self.count = count
        self.torch = need_torch() if torch else None
        self.before = self.torch.get_num_threads() if self.torch else 0
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="naysay-search", initializer=self._alone)

    def _alone(self) -> None:
        if self.torch:
            self.torch.set_num_threads(1)

    def each(self, function: Callable[[Any], Any], items: Iterable[Any]) -> None:
        """Call `function` on every item."""
        for _ in self.pool.map(function, items):
            pass

    def rows(self, loop: Callable[..., Any], rows: int, *arguments: Any) -> None:
        """Run `loop(start, stop, *arguments)` over all rows, in a few parts for each thread."""
        parts = min(4 * self.count if self.count > 1 else 1, max(1, rows // 64))
        edges = [rows * part // parts for part in range(parts + 1)]
        self.each(lambda part: loop(edges[part], edges[part + 1], *arguments), range(parts))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.shutdown()
        if self.torch:
            self.torch.set_num_threads(self.before)
