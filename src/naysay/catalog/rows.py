"""What a row of the catalogue says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alias:
    """A name of the literature for a row: its paper, what it does with it, and an example in its own terms."""

    name: str
    paper: str
    note: str
    example: str


@dataclass(frozen=True, slots=True)
class Method:
    """A row: a composition that runs.

    kind      static, hard, mixed, adversarial, auxiliary or in-batch
    pool      global, local, mini-batch, hop or memory: the review's words for where candidates come from
    parts     the composition, as code
    formula   what is drawn, as a probability
    """

    name: str
    kind: str
    pool: str
    summary: str
    formula: str
    parts: str
    paper: str
    cost: str
    example: str
    also: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Everything this row answers to."""
        return (self.name, *self.also, *(alias.name for alias in self.aliases))


@dataclass(frozen=True, slots=True)
class Loss:
    """A row of the losses.

    over         "slots": loss(positive (B,), negatives (B, K), ...);  "vectors": loss(vectors (N, d), ...)
    without      promises of `check_loss` that it does not make
    needs_log_q  whether it cannot do without log_q
    """

    name: str
    summary: str
    formula: str
    paper: str
    cost: str
    example: str
    also: tuple[str, ...] = ()
    over: str = "slots"
    without: tuple[str, ...] = ()
    needs_log_q: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Everything this row answers to."""
        return (self.name, *self.also)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row of what finds false negatives.

    kind      threshold, clustering, mixture, agreement, opinion or identity
    parts     the composition, as code
    formula   its suspicion
    """

    name: str
    kind: str
    summary: str
    formula: str
    parts: str
    paper: str
    cost: str
    example: str
    also: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Everything this row answers to."""
        return (self.name, *self.also)
