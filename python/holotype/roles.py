"""Models in the roles of the memory systems: behind a server, or functions of yours.

Where a call takes a ``model``, it takes a :class:`holotype.Model`, :class:`Roles`, or one function of a role's name and
its inputs. A role that nothing fills has its built-in, which needs no model. ``docs/models.md`` names the replies of
each role; a reply of another form counts as a failure of the role, which has a safe default.

>>> def router(inputs):
...     return "S" if "450" in inputs["summaries"][0] else "R"
>>> roles = Roles(router=router, reasoner=lambda inputs: "It is " + inputs["information"][0]["text"])
>>> sorted(roles.given)
['reasoner-episodic', 'reasoner-procedural', 'reasoner-semantic', 'router']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Union

from . import _native

__all__ = ["Fills", "Model", "Roles"]

Role = Callable[[Any], Any]


class Model:
    """A model behind an OpenAI-compatible server, such as vLLM, llama.cpp or a hosted one.

    :param url: the address up to ``/v1``; ``https`` needs a build with the feature ``tls``.
    :param model: its name there.
    :param key: sent as the bearer's token; no message shows it.
    :param timeout: seconds of one try, 60 by default.
    :param parameters: other members of a request, such as ``{"temperature": 0.2}``; ``None`` leaves one out.
    """

    def __init__(
        self,
        url: str,
        model: str = "default",
        *,
        key: str | None = None,
        timeout: float | None = None,
        tries: int | None = None,
        reply_tokens: int | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        options = {
            "key": key,
            "timeout": timeout,
            "tries": tries,
            "reply_tokens": reply_tokens,
            "parameters": None if parameters is None else dict(parameters),
        }
        self._native = _native.Model(url, model, options)

    @property
    def usage(self) -> dict[str, tuple[int, int, int]]:
        """Calls, tokens in and tokens out so far, by role."""
        return self._native.usage()

    def log_probs(self, prompt: str, continuation: str) -> list[float]:
        """The log-probability of each token of a continuation behind a prompt, as HiMPO's scores need them."""
        return self._native.log_probs(prompt, continuation)


class Roles:
    """A function for each role. Each gets the inputs, a dict, and returns the reply, or its short form:

    =================  ===========================================================================
    ``router``         ``"S"`` or ``"R"``: do the summaries suffice?
    ``planner``        the next search, or ``None`` for enough
    ``integrator``     pairs of a fact and the quote that says it
    ``reranker``       the indices of the texts, best first
    ``memory_manager`` ``"ADD"``, ``"SKIP"``, or ``("UPDATE", index, text)``
    ``finding_filter`` ``True``, or the reason of a refusal
    ``summariser``     the summary
    ``standardiser``   a dict of ``state``, ``subgoal`` and ``reward``
    ``extractor``      dicts of ``statement``, ``quote`` and ``concepts``
    ``procedures``     a dict of ``procedure``, ``intent`` and ``return_score``, or the procedure, or ``None``
    ``intent_merger``  one intent out of ``earlier`` and ``later``
    ``mode_chooser``   ``"episodic"``, ``"semantic"`` or ``"procedural"``
    ``reasoner``       the guidance, with keys of rows in square brackets
    ``generator``      a ``<memory>`` block; its input is the prompt, a ``str``
    ``controller``     the operations of the step: ``["READ", "WRITE"]``
    ``page_facts``     dicts of ``fact``, ``quote`` and ``tag``
    ``answerer``       a dict of ``answer`` and ``keys``
    ``judge``          ``True`` or ``False``: is the answer right?
    =================  ===========================================================================
    """

    def __init__(
        self,
        *,
        router: Role | None = None,
        planner: Role | None = None,
        integrator: Role | None = None,
        reranker: Role | None = None,
        memory_manager: Role | None = None,
        finding_filter: Role | None = None,
        summariser: Role | None = None,
        standardiser: Role | None = None,
        extractor: Role | None = None,
        procedures: Role | None = None,
        intent_merger: Role | None = None,
        mode_chooser: Role | None = None,
        reasoner: Role | None = None,
        generator: Role | None = None,
        controller: Role | None = None,
        page_facts: Role | None = None,
        answerer: Role | None = None,
        judge: Role | None = None,
    ) -> None:
        named = {
            "router": router,
            "planner": planner,
            "integrator": integrator,
            "reranker": reranker,
            "memory-manager": memory_manager,
            "finding-filter": finding_filter,
            "summariser": summariser,
            "standardiser": standardiser,
            "extractor": extractor,
            "procedure-writer": procedures,
            "intent-merger": intent_merger,
            "mode-chooser": mode_chooser,
            "reasoner-episodic": reasoner,
            "reasoner-semantic": reasoner,
            "reasoner-procedural": reasoner,
            "generator": generator,
            "controller": controller,
            "page-facts": page_facts,
            "answerer": answerer,
            "judge": judge,
        }
        self._functions = {name: function for name, function in named.items() if function is not None}

    @property
    def given(self) -> frozenset[str]:
        """The names of the roles that are filled."""
        return frozenset(self._functions)

    def __call__(self, role: str, inputs: Any) -> Any:
        reply = self._functions[role](inputs)
        return _FULL.get(role, _same)(reply)


Fills = Union[Model, Roles, Callable[[str, Any], Any]]


def native(model: Fills | None) -> Any:
    """What the native module takes for a model."""
    return model._native if isinstance(model, Model) else model


def _same(reply: Any) -> Any:
    return reply


def _action(reply: Any) -> Any:
    return {"action": reply} if isinstance(reply, str) and reply in ("S", "R") else reply


def _plan(reply: Any) -> Any:
    if reply is None:
        return {"decision": "DONE"}
    return {"decision": "SEARCH", "summaries": reply, "pages": reply} if isinstance(reply, str) else reply


def _findings(reply: Any) -> Any:
    if isinstance(reply, Mapping):
        return reply
    return {"findings": [{"fact": fact, "quote": quote} for fact, quote in reply]}


def _decision(reply: Any) -> Any:
    if isinstance(reply, tuple):
        decision, index, text = reply
        return {"decision": decision, "index": index, "text": text}
    return {"decision": reply} if reply in ("ADD", "SKIP") else reply


def _kept(reply: Any) -> Any:
    if isinstance(reply, bool):
        return {"keep": reply}
    return {"keep": False, "reason": reply} if isinstance(reply, str) else reply


def _procedure(reply: Any) -> Any:
    return {"procedure": reply} if reply is None or isinstance(reply, str) else reply


def _mode(reply: Any) -> Any:
    known = isinstance(reply, str) and reply in ("episodic", "semantic", "procedural")
    return f"### Memory Type\n{reply}_memory" if known else reply


def _under(heading: str) -> Callable[[Any], Any]:
    def full(reply: Any) -> Any:
        return f"### {heading}\n{'null' if reply is None else reply}"

    return full


def _listed(name: str) -> Callable[[Any], Any]:
    def full(reply: Any) -> Any:
        return reply if isinstance(reply, Mapping) else {name: list(reply)}

    return full


def _text(name: str) -> Callable[[Any], Any]:
    def full(reply: Any) -> Any:
        return {name: reply} if isinstance(reply, str) else reply

    return full


# What the short form of a reply stands for.
_FULL: dict[str, Callable[[Any], Any]] = {
    "router": _action,
    "planner": _plan,
    "integrator": _findings,
    "reranker": _listed("ranking"),
    "memory-manager": _decision,
    "finding-filter": _kept,
    "summariser": _text("summary"),
    "extractor": _listed("facts"),
    "procedure-writer": _procedure,
    "intent-merger": _text("intent"),
    "mode-chooser": _mode,
    "reasoner-semantic": _under("Information"),
    "reasoner-procedural": _under("Final Information"),
    "controller": _listed("operations"),
    "page-facts": _listed("facts"),
    "judge": lambda reply: {"correct": reply} if isinstance(reply, bool) else reply,
}
