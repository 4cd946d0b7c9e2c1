"""Whether debiased and hard negatives of the batch are better than plain ones.

python -m benchmarks.claims.images_in_batch DATA [--parts 1 2] [--seeds 5] [--arms NAME ...] [--out FILE]

DATA is a folder with the four files of Fashion-MNIST. Pictures, encoder and training are those of `images_detection`,
with 10 classes (1 part) and 100 (2 parts).

    plain       every other picture of the batch is a negative
    debiased    its loss corrected for a share of false negatives, `prior` (DCL)
    hard        debiased, and hard negatives count more, by `beta` (HCL)

**Choices**: on a seed of its own (1000), by the accuracy of the probe on validation pictures: the temperature of each
arm, and the prior with that of debiased; hard takes the prior of debiased, and its beta is chosen with its temperature.
Every finished run is a line of FILE with the ending .jsonl; a second call with the same settings continues.

Yang et al. Does Negative Sampling Matter? A Review: Fig. 7, which is from Robinson et al., Contrastive Learning with
Hard Negative Samples, ICLR 2021.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.claims.detection_summary import draw, summary
from benchmarks.claims.images_detection import Arm, Settings, run
from benchmarks.claims.picture_worlds import World, kept_or_run, parser, world
from benchmarks.harness import RESULTS, write
from benchmarks.training.images import Kept, processor_minutes

TUNING_SEED = 1000
TEMPERATURES, PRIORS, BETAS = (0.1, 0.2, 0.5), (0.01, 0.1), (0.5, 1.0)
NAMES = ("plain", "debiased", "hard")
Found = dict[str, Any]


class Runs:
    """The runs of one number of parts."""

    def __init__(self, seen: World, settings: Settings, path: Path) -> None:
        """Finished runs are lines of the file `path`."""
        self.seen, self.settings, self.path = seen, settings, path

    def of(self, arm: Arm, temperature: float, seed: int) -> Found:
        """A run of the file, or a new one."""
        settings = replace(self.settings, temperature=temperature)
        name = f"prior {arm.prior:g}, beta {arm.beta:g}"
        return kept_or_run(Kept(self.path, asdict(settings)), name, seed, partial(run, arm, seed, self.seen, settings))

    def tune(self, arms: list[Arm]) -> tuple[Arm, float, Found]:
        """The arm and temperature that are best by validation, and all that was tried."""
        grid = [(arm, temperature) for arm in arms for temperature in TEMPERATURES]
        found = [self.of(*one, TUNING_SEED)["validation"] for one in grid]
        tried = [
            {"prior": arm.prior, "beta": arm.beta, "temperature": temperature, "validation": value}
            for (arm, temperature), value in zip(grid, found, strict=True)
        ]
        best = found.index(max(found))
        return *grid[best], {**tried[best], "tried": tried}


def study(runs: Runs, names: tuple[str, ...], seeds: int) -> Found:
    """Choose the settings of the arms, then run them; the summary of one number of parts."""
    chosen = {"plain": runs.tune([Arm(None)])}
    chosen["debiased"] = runs.tune([Arm(None, prior=prior) for prior in PRIORS])
    prior = chosen["debiased"][0].prior
    chosen["hard"] = runs.tune([Arm(None, prior=prior, beta=beta) for beta in BETAS])
    rows = {(name, seed): runs.of(*chosen[name][:2], seed) for seed in range(seeds) for name in names}
    return {"tuning": {name: tuned for name, (_, _, tuned) in chosen.items()}, **summary(rows, list(NAMES))}


def main() -> None:
    """Run what is missing, and write results/claims_in_batch.json."""
    args = parser(__doc__ or "", NAMES, Settings, seeds=5).parse_args()
    torch.set_num_threads(1)
    target = args.out or RESULTS / "claims_in_batch.json"
    worlds = {}
    for parts in args.parts:
        settings = Settings.of(parts, vars(args))
        seen = world(args.data, parts, args.train, args.validation)
        runs = Runs(seen, settings, target.with_suffix(".jsonl"))
        worlds[str(parts)] = study(runs, tuple(args.arms or NAMES), args.seeds)
    shared = {name: value for name, value in asdict(settings).items() if name not in ("parts", "temperature", "every")}
    result = {"settings": {**shared, "temperatures": TEMPERATURES, "priors": PRIORS, "betas": BETAS}, "worlds": worlds}
    result["processor_minutes"] = processor_minutes(target.with_suffix(".jsonl"))
    draw(result, write("claims_in_batch", result, args.out).with_suffix(".svg"))


if __name__ == "__main__":
    main()
