"""The typed wrappers round numba: compiled loops, cached on disk, and one instruction that it lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A loop that Python calls: compiled at its first call, cached, run without the GIL."""
    return cast("Callable[_P, _R]", numba.njit(cache=True, nogil=True)(function))


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A step that only compiled loops call; LLVM is told to put it in place."""
    return cast("Callable[_P, _R]", numba.njit(nogil=True, forceinline=True)(function))


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(view.data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        insert: Any = cgutils.get_or_insert_function
        function = insert(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(3), number(1)])  # read, keep, data
        return context.get_dummy_value()

    return types.void(array, index), generate


# prefetch(array, index): ask for a cache line ahead of its use. It never faults, so an index past the end of a
# one-dimensional array is harmless. Rows of a batch are random places in memory: this hides their latency.
prefetch = cast("Callable[[Any, Any], None]", intrinsic(_prefetch))
