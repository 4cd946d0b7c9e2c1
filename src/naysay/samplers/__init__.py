"""WHICH candidates become negatives. A family is a file, and its `__all__` is what this package exports."""

# ruff: noqa: F403

from naysay.samplers import (
    adaptive,
    bank,
    cached,
    composed,
    generated,
    judged,
    learned,
    mixing,
    scored,
    scores,
    static,
    transformed,
)
from naysay.samplers.adaptive import *
from naysay.samplers.bank import *
from naysay.samplers.cached import *
from naysay.samplers.composed import *
from naysay.samplers.generated import *
from naysay.samplers.judged import *
from naysay.samplers.learned import *
from naysay.samplers.mixing import *
from naysay.samplers.scored import *
from naysay.samplers.scores import *
from naysay.samplers.static import *
from naysay.samplers.transformed import *

__all__: list[str] = []
__all__ += adaptive.__all__
__all__ += bank.__all__
__all__ += cached.__all__
__all__ += composed.__all__
__all__ += generated.__all__
__all__ += judged.__all__
__all__ += learned.__all__
__all__ += mixing.__all__
__all__ += scored.__all__
__all__ += scores.__all__
__all__ += static.__all__
__all__ += transformed.__all__
