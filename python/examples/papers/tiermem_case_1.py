"""TierMem, case 1, entity loss: the summary dropped the titles; the raw page has them, and what it says is learned."""

import holotype
from holotype.knowledge import learn, routed
from holotype.roles import Roles

QUESTION = "Which books has Tim read?"
PAGE = ("I finished Little Women on Monday.", "It was lovely, and I cried at the end.", "Now I read Dune.")


def router(asked: dict) -> str:
    """A scripted model: it is content with what names a title."""
    return "S" if any("Little Women" in text for text in asked["summaries"]) else "R"


def integrator(asked: dict) -> list:
    """Another one: it draws a fact with its quote from the page that names a title."""
    said = [("Tim has read Little Women.", "I finished Little Women on Monday.")]
    return said if any("Little Women" in page for page in asked["pages"]) else []


model = Roles(router=router, integrator=integrator)
with holotype.open_or_create("books.holo", space="hashing-v1-256") as db:
    with db.begin() as tx:
        for said in PAGE:
            tx.record(said, episode="chat", speaker="Tim")
        tx.query("close episode 'chat'")
        tx.query("remember summary 'Tim has read some books lately.' from page 'chat/p1'")
    for time in ("first", "again"):
        answer = routed(db, QUESTION, model=model)
        router_said = answer.escalation["router"]
        facts = [fact["text"] for fact in answer.escalation["facts"]]
        print(time, router_said["action"], router_said["tokens"], "tokens | facts:", facts)
        print("   learned:", [learned.op for learned in learn(db, answer, model=None)])
        print("   rows:", [row.text for row in answer][:2])
