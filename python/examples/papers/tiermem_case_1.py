"""TierMem, case 1, entity loss: the summary lacks the title, so the router escalates; what is found is learned."""

import holotype
from holotype.knowledge import Epoch
from holotype.roles import Roles

QUESTION = "What book recommendations has Joanna given to Nate?"
SUMMARY = "Joanna recommended Nate to find a fantasy book series and approved the series that Nate showed her."
model = Roles(
    router=lambda asked: "S" if any("Little Women" in text for text in asked["summaries"]) else "R",
    planner=lambda asked: None if asked["facts"] else "Joanna book title",
    integrator=lambda asked: [("Joanna recommended Little Women to Nate.", 'You should read "Little Women"')]
    if any("Little Women" in page for page in asked["pages"])
    else [],
)
with holotype.open_or_create("books.holo") as db:
    with db.begin() as tx:
        tx.record('You should read "Little Women", Nate.', episode="chat", speaker="Joanna")
        tx.record("I like dragons. Is this series good?", episode="chat", speaker="Nate")
        tx.query("close episode 'chat'")
        tx.query("remember summary $s from page 'chat/p1'", {"s": SUMMARY})
    for number in (1, 2):
        with Epoch(db, model=model) as epoch:
            answer = epoch.ask(QUESTION)
        router = answer.escalation["router"]
        print(f"epoch {number}: {router['action']}, {router['tokens']} tokens,",
              [learned.op for learned in epoch.learned], "|", answer[0].text)
