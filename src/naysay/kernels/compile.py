"""The typed wrappers around numba: compiled loops, cached on disk, and the instructions that it lacks."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

_P = ParamSpec("_P")
_R = TypeVar("_R")


# numba calls a cached loop fresh while the file of that loop is unchanged. Ours are made of steps from several files:
# a loop that still had an older filter of csr.py inside would return known positives. So all files are its source.
_SOURCE = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))).digest()


_SAID: list[bool] = []  # not empty once the message was printed


def compiled(function: Callable[_P, _R], *, reorder: bool = False) -> Callable[_P, _R]:
    """A loop that Python calls: compiled at its first call, cached where that can be, run without the GIL.

    With `reorder` sums may be taken in the order that suits the processor: for training, where it is of no account.
    """
    freedom = {"reassoc", "contract"} if reorder else False
    try:
        loop: Any = numba.njit(cache=True, nogil=True, fastmath=freedom)(function)
    except RuntimeError:  # no folder that may be written, as in a sealed container
        return _saying_without_cache(numba.njit(nogil=True, fastmath=freedom)(function))
    index: Any = getattr(getattr(loop, "_cache", None), "_cache_file", None)
    if hasattr(index, "_source_stamp"):  # numba's own; without it only an edit of a kernel could go unseen
        index._source_stamp = (index._source_stamp, _SOURCE)
    cache: Any = getattr(loop, "_cache", None)
    if all(hasattr(cache, name) for name in ("_load_overload", "_guard_against_spurious_io_errors")):  # numba's own
        cache.load_overload = _saying(cache)
    return cast("Callable[_P, _R]", loop)


def _saying(cache: Any) -> Callable[..., Any]:
    """The look-up of numba's cache, with a message the first time that a loop is not in it and must be compiled.

    A loop that is in the cache is machine code. It needs none of the functions that numba loads to compile one, so
    those are loaded only if it is not there: they take longer than all our loops.
    """
    look_up_and_load = cache.load_overload

    def look_up(signature: Any, context: Any) -> Any:
        rtsys.initialize(context)  # numba's memory manager: machine code calls it
        with cache._guard_against_spurious_io_errors():
            found = cache._load_overload(signature, context)
        if found is not None:
            return found
        if "numba.np.arraymath" not in sys.modules:
            _load_array_functions()
        _say_once("once for this installation")
        return look_up_and_load(signature, context)

    return look_up


def _saying_without_cache(loop: Any) -> Callable[..., Any]:
    """A loop that is compiled in each process, with the same message before its first call."""

    def call(*arguments: Any) -> Any:
        if not loop.signatures:
            _say_once("in each process, unless NUMBA_CACHE_DIR is a folder that can be written")
        return loop(*arguments)

    return call


def _say_once(when: str) -> None:
    """Print on a terminal that loops are compiled, the first time. A progress bar stands before the terminal."""
    terminal = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    if _SAID or terminal is None or not terminal.isatty():
        return
    _SAID.append(True)
    sys.stderr.write(f"naysay: compiling loops at their first use, {when}: about 10 to 20 s.\n")


def _load_array_functions() -> None:
    """Load numba's functions of arrays without scipy.linalg: that is slow to load, and no loop of ours needs it.

    numba only asks here whether there is a BLAS. SciPy has one, and loops that multiply matrices load it themselves.
    """
    linalg: Any = import_module("numba.np.linalg")
    own = getattr(linalg, "ensure_blas", None)  # numba's own; without it, only time is lost
    if own is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        functions: Any = import_module("numba.np.arraymath")
        functions.ensure_blas = own
    finally:
        linalg.ensure_blas = own


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A step that only compiled loops call; LLVM inlines it."""
    return cast("Callable[_P, _R]", numba.njit(nogil=True, forceinline=True)(function))


def _load_ahead(builder: Any, pointer: Any) -> None:
    """Load the cache line of a pointer ahead of its use."""
    place, number = builder.bitcast(pointer, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    insert: Any = cgutils.get_or_insert_function
    function = insert(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [place, number(0), number(3), number(1)])  # read, keep, data


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        _load_ahead(builder, builder.gep(view.data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, index), generate


# prefetch(array, index): load a cache line ahead of its use. It never faults, so an index past the end of a
# one-dimensional array is harmless. Rows of a batch are random places in memory: this hides their latency.
prefetch = cast("Callable[[Any, Any], None]", intrinsic(_prefetch))


def _lowest_bit(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, flag = ir.IntType(32), ir.IntType(1)
        insert: Any = cgutils.get_or_insert_function
        function = insert(builder.module, ir.FunctionType(number, [number, flag]), "llvm.cttz.i32")
        return builder.call(function, [arguments[0], flag(1)])

    return types.uint32(types.uint32), generate


# lowest_bit(bits): the position of the lowest set bit of 32; at least one is set. What a vector of comparisons found
# is then walked from hit to hit instead of from column to column.
lowest_bit = cast("Callable[[Any], Any]", intrinsic(_lowest_bit))


EIGHT = 8


def _of_eight(term: Callable[[Any, Any, Any], Any]) -> Any:
    def typed(typing_context: Any, query: Any, rows: Any, places: Any, sums: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            views = [context.make_array(kind)(context, builder, each)
                     for kind, each in zip(signature.args, arguments, strict=True)]  # fmt: skip
            values, table, listed, out = (view.data for view in views)
            number, wide = ir.IntType(64), ir.VectorType(ir.DoubleType(), EIGHT)
            line = ir.VectorType(context.get_value_type(rows.dtype), EIGHT)

            def vector(pointer: Any, kind: Any, size: int) -> Any:
                found = builder.load(builder.bitcast(pointer, kind.as_pointer()))
                found.align = size
                return found

            def mask(places: list[int]) -> Any:
                return ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), places)

            width = builder.extract_value(views[0].shape, 0)
            starts = [builder.gep(table, [builder.mul(builder.load(builder.gep(listed, [number(i)])), width)])
                      for i in range(2 * EIGHT)]  # fmt: skip
            halves = [mask([i for low in range(first, first + EIGHT // 2) for i in (low, low + EIGHT)])
                      for first in (0, EIGHT // 2)]  # fmt: skip
            reserve: Any = cgutils.alloca_once
            total = reserve(builder, wide)
            builder.store(ir.Constant(wide, [0.0] * EIGHT), total)
            with cgutils.for_range(builder, builder.sdiv(width, number(EIGHT))) as loop:
                at = builder.mul(loop.index, number(EIGHT))
                lines = [vector(builder.gep(start, [at]), line, rows.dtype.bitwidth // 8) for start in starts[:EIGHT]]
                # A cache line is two steps long: each step loads those of every second row.
                odd = builder.trunc(loop.index, ir.IntType(1))
                for one, other in zip(starts[EIGHT::2], starts[EIGHT + 1 :: 2], strict=True):
                    _load_ahead(builder, builder.gep(builder.select(odd, one, other), [at]))
                for _ in range(3):  # rows become columns: each step puts two lines together like a zip
                    lines = [builder.shuffle_vector(lines[i], lines[i + EIGHT // 2], half)
                             for i in range(EIGHT // 2) for half in halves]  # fmt: skip
                own, found = vector(builder.gep(values, [at]), wide, 8), builder.load(total)
                for i, column in enumerate(lines):
                    one = builder.shuffle_vector(own, own, mask([i] * EIGHT))
                    each = column if rows.dtype == types.float64 else builder.fpext(column, wide)
                    found = builder.fadd(found, term(builder, one, each))
                builder.store(found, total)
            builder.store(builder.load(total), builder.bitcast(out, wide.as_pointer())).align = 8
            return context.get_dummy_value()

        contiguous = all(part.layout == "C" for part in (query, rows, places, sums))
        kinds = query.dtype, places.dtype, sums.dtype
        if not contiguous or kinds != (types.float64, types.int64, types.float64):
            return None
        return types.void(query, rows, places, sums), generate

    return intrinsic(typed)


def _product(builder: Any, one: Any, other: Any) -> Any:
    return builder.fmul(one, other)


def _square(builder: Any, one: Any, other: Any) -> Any:
    gap = builder.fsub(one, other)
    return builder.fmul(gap, gap)


# eight_products(query (d,), rows (n, d), places (16,), sums (8,)): the dot product of the query with rows[places[i]]
# for the first eight i, and eight_squares the squared distances; without the last d % 8 coordinates. Each sum is in
# the order of the coordinates, each step rounded to float64; the eight rows are the lanes of one vector. The other
# eight rows, which are next, are loaded meanwhile: they are random places in memory.
eight_products = cast("Callable[[Any, Any, Any, Any], None]", _of_eight(_product))
eight_squares = cast("Callable[[Any, Any, Any, Any], None]", _of_eight(_square))
