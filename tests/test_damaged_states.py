"""A damaged state is refused in one sentence, with nothing changed, or what was restored still works."""

import contextlib
import copy
import re
from itertools import islice

import numpy as np
import pytest
from stateful_parts import ASKED, KNOWN, N_ANCHORS, N_ITEMS, PARTS, same

from naysay.errors import NaysayError

SENTENCE = re.compile(r"^\w+\.restore: `\w+` must be [^\n]+[.?]$")
# A state may be that of a part that has learnt nothing, or learnt vectors of a size that is not one of its settings.
HARMLESS = re.compile(r"Call (fit|update)\(|of dimension \d")


@np.errstate(invalid="ignore")  # NaN as a byte
def damaged(value):
    """{what was done: the value of a key with that damage}; arrays and numbers alike."""
    array = np.asarray(value)
    bad = {
        "none": None,
        "text": np.array(["x"]),
        "objects": np.array([None, {}]),
        "a dictionary": {"a": 1},
        "complex": array.astype(complex),
        "text of the shape": array.astype(str),
        "fractions": array + 0.5 if array.dtype.kind != "b" else array.astype(float) + 0.5,
        "one more axis": array[None],
        "flat": array.ravel(),
        "nothing": array.ravel()[:0],
        "one number": np.asarray(array.ravel()[0] if array.size else 0),
    }
    for axis in range(array.ndim):
        if array.shape[axis]:
            bad[f"shorter along {axis}"] = np.delete(array, -1, axis)
            bad[f"longer along {axis}"] = np.concatenate([array, np.take(array, [0], axis)], axis)
        bad[f"empty along {axis}"] = np.take(array, [], axis)
    return bad


def damages(state):
    """(what was done, the damaged state), one damage at a time, and some together."""
    yield from (("None", None), ("a number", 3), ("a list", [1]), ("text", "state"), ("pairs", list(state.items())))
    yield "one more key", {**state, "odd": 1}
    yield "another kind of key", {**state, 7: 1}
    for key, value in state.items():
        yield f"no {key}", {name: state[name] for name in state if name != key}
        for what, bad in damaged(value).items():
            yield f"{key}: {what}", {**state, key: bad}
    rng = np.random.default_rng(0)
    for trial in range(20):  # several keys at once, and sizes that fit each other but not the part
        several = {}
        for key, value in state.items():
            choices = list(damaged(value).values())
            several[key] = choices[rng.integers(len(choices))] if rng.random() < 0.4 else value
        yield f"mix {trial}", several
    for axis in (0, 1):
        for what in ("shorter", "longer", "empty"):
            changed = {key: damaged(value).get(f"{what} along {axis}", value) for key, value in state.items()}
            yield f"all {what} along {axis}", changed


def check_answer(name, answer):
    """Nothing forbidden: ids in range and unknown, suspicion from 0 to 1, everything finite."""
    answer = np.asarray(answer)
    assert np.isfinite(answer).all()
    if answer.dtype.kind == "i" and answer.ndim == 2:
        assert answer.min() >= -1
        assert answer.max() < N_ITEMS
        assert not KNOWN.contains(np.arange(N_ANCHORS), answer).any()
    elif name.split()[0].strip(",") in ("Bank", "Online"):
        assert answer.shape in ((), (N_ANCHORS, 20, 4))
    elif name == "Generated":
        assert answer.shape == (N_ANCHORS, 4, 4)
    else:
        assert answer.shape == ASKED.shape
        assert ((answer >= 0) & (answer <= 1)).all()


def complaint(name, taught, bad):
    """What is wrong with how a part takes a state, or None."""
    _, teach, answer = PARTS[name]
    part, before = copy.deepcopy(taught), taught.state()
    try:
        part.restore(bad)
    except NaysayError as error:
        same(before, part.state())  # refused: nothing has changed
        return None if SENTENCE.match(str(error)) else f"not one sentence: {error}"
    except Exception as error:
        return f"restore raised {type(error).__name__}: {error}"
    with np.errstate(all="ignore"):  # numbers near the largest may overflow on their way to a finite answer
        try:
            part.restore(part.state())
            check_answer(name, answer(part))
            with contextlib.suppress(NaysayError):
                teach(part)
        except NaysayError as error:
            return None if HARMLESS.search(str(error)) else f"accepted, then {error}"
        except Exception as error:
            return f"accepted, then {type(error).__name__}: {error}"
    return None


EVERY = {"Combined": 4}  # its parts are tried one by one, so every fourth damage of all together is enough


@pytest.mark.parametrize("name", PARTS)
def test_a_damaged_state_is_refused_or_harmless(name):
    make, teach, _ = PARTS[name]
    taught = make()
    teach(taught)
    some = islice(damages(taught.state()), None, None, EVERY.get(name, 1))
    found = {what: complaint(name, taught, bad) for what, bad in some}
    complaints = [f"{what}: {wrong}" for what, wrong in found.items() if wrong]
    assert not complaints, "\n".join(complaints)
