"""naysay: the negatives that contrastive and embedding models learn from.

Names load at their first use, so that `import naysay` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "Query": "types",
    "Negatives": "types",
    "Positives": "positives",
    "Triples": "triples",
    "Vocabulary": "vocabulary",
    "rng_for": "rng",
    "set_threads": "kernels.threads",
    "NaysayError": "errors",
    "NaysayWarning": "errors",
    "check_pool": "testing",
    "check_sampler": "testing",
    "check_detector": "testing",
    "check_loss": "testing",
    "planted_world": "testing",
    "mine": "mining",
    "audit": "audits",
    "compare": "lab.comparison",
}
_FOLDERS = (
    "pools",
    "samplers",
    "batches",
    "data",
    "quantity",
    "detectors",
    "losses",
    "difficulty",
    "distributed",
    "report",
    "search",
    "encode",
    "formats",
    "mining",
    "jobs",
    "audits",
    "testing",
    "catalog",
    "lab",
    "types",
)

__all__ = [*_HOMES, *_FOLDERS]


def __getattr__(name: str) -> Any:
    """Import a name from its module at its first use (PEP 562)."""
    if name in _HOMES:
        value = getattr(importlib.import_module(f"naysay.{_HOMES[name]}"), name)
    elif name in _FOLDERS:
        value = importlib.import_module(f"naysay.{name}")
    else:
        message = f"module 'naysay' has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return sorted([*__all__, "__version__"])


if TYPE_CHECKING:
    from naysay import (
        audits,
        batches,
        catalog,
        data,
        detectors,
        difficulty,
        distributed,
        encode,
        formats,
        jobs,
        lab,
        losses,
        mining,
        pools,
        quantity,
        report,
        samplers,
        search,
        testing,
        types,
    )
    from naysay.audits.audit import audit
    from naysay.errors import NaysayError, NaysayWarning
    from naysay.kernels.threads import set_threads
    from naysay.lab.comparison import compare
    from naysay.mining.mine import mine
    from naysay.positives import Positives
    from naysay.rng import rng_for
    from naysay.testing import check_detector, check_loss, check_pool, check_sampler, planted_world
    from naysay.triples import Triples
    from naysay.types import Negatives, Query
    from naysay.vocabulary import Vocabulary
