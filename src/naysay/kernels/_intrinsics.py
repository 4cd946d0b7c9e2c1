"""Instructions that numba lacks, for `dots` and `bounds_scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _load_ahead(builder: Any, pointer: Any) -> None:
    """Load the cache line of a pointer ahead of its use."""
    place, number = builder.bitcast(pointer, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    insert: Any = cgutils.get_or_insert_function
    function = insert(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [place, number(0), number(3), number(1)])  # read, keep, data


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
