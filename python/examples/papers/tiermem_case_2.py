"""TierMem, case 2, sufficiency: the summary answers, and the raw pages stay closed."""

import holotype
from holotype.knowledge import routed
from holotype.roles import Roles

QUESTION = "What important values does John want to teach his kids through adopting a rescue dog?"
SUMMARY = "John said that adopting a rescue dog teaches his kids responsibility and compassion."
model = Roles(router=lambda asked: "S" if any("responsibility" in text for text in asked["summaries"]) else "R")
with holotype.open_or_create("dog.holo") as db:
    with db.begin() as tx:
        said = "We looked at a rescue dog. " + "It was a long day at the shelter. " * 40
        tx.record(said, episode="chat", speaker="John")
        tx.query("close episode 'chat'")
        tx.query("remember summary $s from page 'chat/p1'", {"s": SUMMARY})
    for mode in ("auto", "always"):
        answer = routed(db, QUESTION, model=model, escalate=mode)
        router = answer.escalation["router"]
        print(mode, router["action"], router["tokens"], "tokens |", answer[0].text[:60])
