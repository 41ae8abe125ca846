"""What the papers learn from: credit of memory writes (HiMPO), information density (PlugMem D), training data.

>>> step = {"memory": "", "think": "look", "call": "search", "observation": "The gate is 12."}
>>> kept = {**step, "memory": "gate 12", "observation": "Nothing."}
>>> lost = {**kept, "memory": "Nothing."}
>>> runs = [Run("g", "a", "Which gate?", "12", 1.0, [step, kept]),
...         Run("g", "b", "Which gate?", "12", 0.0, [step, lost])]
>>> [write["advantage"] > 0 for run in credit_runs(runs) for write in run if write["step"] == 1]
[True, False]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from . import _native
from .roles import Model

if TYPE_CHECKING:
    from ._database import Database

__all__ = ["Run", "credit", "credit_runs", "deconfound", "density", "export", "intervene", "score"]

Policy = Union[Model, Callable[[str, str], Sequence[float]]]


@dataclass(frozen=True)
class Run:
    """A run of an agent that writes a memory of its own: each step is a dict of ``memory``, ``think``, ``call`` and
    ``observation``."""

    group: str
    """The prompt whose rollouts are compared with each other."""
    rollout: str
    question: str
    outcome: str
    """The right answer, whose likelihood is measured."""
    reward: float
    steps: Sequence[Mapping[str, str]]

    def _parts(self) -> tuple[Any, ...]:
        steps = [tuple(step.get(name, "") for name in _STEP) for step in self.steps]
        return (self.group, self.rollout, self.question, self.outcome, self.reward, steps)


_STEP = ("memory", "think", "call", "observation")


def score(runs: Iterable[Run], policy: Policy | None = None) -> list[list[dict[str, float | None]]]:
    """``s_prev``, ``s_now`` and ``log_h`` of every write of each run (eqs. 5, 7, 9).

    :param policy: a model, or a function of a prompt and a continuation that gives a log-probability for each token of
        the continuation; by default words are counted. An empty memory has no ``log_h``.
    """
    found = _native.score([run._parts() for run in runs], _policy(policy))
    return [[dict(zip(("s_prev", "s_now", "log_h"), scores)) for scores in run] for run in found]


def credit(lines: Iterable[Mapping[str, Any]], **options: Any) -> tuple[float, list[dict[str, float]]]:
    """The credit of memory writes (eqs. 3 to 17): ``beta``, and for each line what it earned.

    A line has ``group``, ``rollout``, ``reward`` and, for a write, ``step``, ``s_prev``, ``s_now`` and ``log_h``.
    Options are those of Table 5: ``lambda_``, ``tau_rho``, ``smoothing``, ``success``, ``gate`` and so on.
    """
    given = []
    for line in lines:
        write = None
        if line.get("step") is not None:
            write = (line["step"], line["s_prev"], line["s_now"], line.get("log_h"))
        given.append((line["group"], str(line["rollout"]), line.get("reward"), write))
    return _native.credit(given, options)


def credit_runs(runs: Iterable[Run], policy: Policy | None = None, **options: Any) -> list[list[dict[str, Any]]]:
    """The credit of each write of each run: :func:`score` and :func:`credit` in one."""
    listed = list(runs)
    lines: list[dict[str, Any]] = []
    for run, scores in zip(listed, score(listed, policy)):
        lines.append({"group": run.group, "rollout": run.rollout, "reward": run.reward})
        for step, of in enumerate(scores):
            lines.append({"group": run.group, "rollout": run.rollout, "step": step, **of})
    _, credits = credit(lines, **options)
    found: list[list[dict[str, Any]]] = []
    for line, earned in zip(lines, credits):
        if "step" in line:
            found[-1].append({"step": line["step"], **earned})
        else:
            found.append([])
    return found


def deconfound(
    runs: Iterable[Run], policy: Policy | None = None, **options: Any
) -> dict[str, tuple[float | None, int]]:
    """The measures of Table 4, each with the number of interventions that it rests on."""
    return _native.deconfound([run._parts() for run in runs], _policy(policy), options)


def intervene(run: Run, fault: str, step: int) -> Run | None:
    """The run with a planted fault (Appendix D): ``tool``, ``memory``, ``memory_for_good``, ``think``, ``call`` or
    ``observation``; ``None`` where there is nothing to plant it in."""
    steps = _native.intervene(run._parts(), fault, step)
    if steps is None:
        return None
    return Run(run.group, run.rollout, run.question, run.outcome, run.reward, [dict(zip(_STEP, it)) for it in steps])


def density(
    cases: Iterable[tuple[float, float, int]], *, confident: float = 0.8, epsilon: float | None = None
) -> dict[str, Any]:
    """Bits of decision a token of memory (PlugMem D), of cases ``(without memory, with memory, tokens)``.

    >>> found = density([(0.25, 1.0, 20), (0.5, 0.5, 80)])
    >>> round(found["density"], 4)
    0.0198
    """
    return _native.density(list(cases), confident, epsilon)


def export(db: Database, kind: str) -> list[dict[str, Any]]:
    """Training data: ``triplets`` (HELM A.16), ``controller`` (HELM eq. 2), ``router`` (TierMem D) or ``rollouts``
    (HiMPO)."""
    return [json.loads(line) for line in _native.training(db._native, kind).splitlines()]


def _policy(policy: Policy | None) -> Any:
    return policy._native if isinstance(policy, Model) else policy
