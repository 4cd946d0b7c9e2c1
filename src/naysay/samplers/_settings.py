"""What samplers are made of: their parts, checked, and settings that may change with the step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, final

from naysay.arrays import is_torch, module_of
from naysay.checks import check_kind, check_number, check_one_of, check_whole, is_number, raise_invalid, shown
from naysay.pools._slots import ON_SHORT
from naysay.text import described
from naysay.types import Array, MadeOf, Pool, Sampler

Embed = Callable[[Array], Array]  # embed(ids (...)) -> (..., d) or (..., layers, d), in the array type of the ids


class FromPool(MadeOf):
    """What samplers of one pool share. The first of `_made_of` is the part that the ids come from."""

    _made_of: ClassVar[tuple[str, ...]] = ("pool", "score")

    @property
    def distinct(self) -> bool | None:
        """Whether a row has each id once: as that part draws, which a choice keeps; None if it does not say."""
        return getattr(getattr(self, self._made_of[0]), "distinct", None)

    def __repr__(self) -> str:
        return described(self)


class FromSampler(FromPool):
    """What samplers that change the vectors of another sampler's negatives share."""

    _made_of: ClassVar[tuple[str, ...]] = ("base",)


class Independent:
    """What samplers share whose slots are drawn one by one, so that a row may have an id twice."""

    distinct = False

    def __repr__(self) -> str:
        return described(self)


# ---- parts ----------------------------------------------------------------------------------------------


def check_pool(pool: object, parameter: str = "pool") -> None:
    """Raise if `pool` has no draw, or is a pool's class instead of a pool."""
    rule = "a pool, with a method draw(query, n, *, rng)"
    if isinstance(pool, type):
        raise_invalid(parameter, rule, f"the class {pool.__name__}", "Make one first, and pass that.")
    check_kind(parameter, pool, Pool, rule)


def check_base(parameter: str, sampler: object) -> None:
    """Raise if `sampler` has no sample, or is a sampler's class."""
    if isinstance(sampler, type) or not isinstance(sampler, Sampler):
        raise_invalid(parameter, "a sampler, with a method sample(query, k, *, rng)", type(sampler).__name__)


def check_on_short(on_short: object) -> None:
    """Raise unless it says what to do with a row that has too few candidates."""
    check_one_of("on_short", on_short, ON_SHORT)


def check_function(parameter: str, function: object, form: str, *, optional: bool = False) -> None:
    """Raise if it cannot be called, such as "embed(ids)"; with `optional` it may be None."""
    if not callable(function) and not (optional and function is None):
        raise_invalid(parameter, f"a function {form}", type(function).__name__)


def check_returned(parameter: str, values: Any, like: Array, shape: tuple[int, ...], *, boolean: bool = False) -> None:
    """Raise unless a user's function returned finite numbers, or booleans, in the array type of `like`."""
    kind = f"{'a tensor' if is_torch(like) else 'a NumPy array'} of {'bool' if boolean else 'numbers'}"
    returned = f"{getattr(values, 'dtype', type(values).__name__)} of shape {tuple(getattr(values, 'shape', ()))}"
    is_boolean = str(getattr(values, "dtype", "")).endswith("bool")
    if is_torch(values) != is_torch(like) or tuple(getattr(values, "shape", ())) != shape or is_boolean != boolean:
        raise_invalid(parameter, f"a function that returns {kind} of shape {shape}", returned)
    if not boolean and not bool(module_of(values).isfinite(values).all()):
        raise_invalid(parameter, "a function that returns finite numbers", "infinity or NaN")


# ---- settings that may change with the step -------------------------------------------------------------


@final
class Schedule:
    """A setting as a function of the step: one value, checked once, or the user's function, checked at each step."""

    def __init__(self, given: Any, check: Callable[[Any], Any], *, optional: bool = False) -> None:
        self.changes = callable(given)
        self._given, self._check, self._optional = given, check, optional
        self._value = None if self.changes else self._checked(given)

    def __call__(self, step: int) -> Any:
        return self._checked(self._given(step)) if self.changes else self._value

    def _checked(self, value: Any) -> Any:
        return None if value is None and self._optional else self._check(value)


def whole(parameter: str, given: Any, *, optional: bool = False) -> Schedule:
    """A whole number of at least 1; with `optional` also None."""
    return Schedule(given, partial(check_whole, parameter, least=1), optional=optional)


def number(parameter: str, given: Any, *, optional: bool = False, **bounds: Any) -> Schedule:
    """A number within the bounds of `check_number`; with `optional` also None."""
    return Schedule(given, partial(check_number, parameter, **bounds), optional=optional)


def interval(parameter: str, given: Any, *, least: int = 0) -> Schedule:
    """An interval (low, high) within [least, 1], from which a mixing share is drawn; both may be equal."""
    return Schedule(given, partial(check_interval, parameter, relation="<=", least=least))


def check_interval(
    parameter: str, pair: Any, relation: str, advice: str = "", *, least: int = 0
) -> tuple[float, float]:
    """Return (low, high) as floats, or raise if they are not two numbers in [least, 1] with low < or <= high."""
    if isinstance(pair, tuple | list) and len(pair) == 2 and all(map(is_number, pair)):
        low, high = map(float, pair)
        if least <= low <= high <= 1 and (relation == "<=" or low < high):
            return low, high
    raise_invalid(parameter, f"a pair (low, high) with {least} <= low {relation} high <= 1", shown(pair), advice)
