"""HELM, case 1, the stale trap: a price of long ago is told as old, with the tool to call again."""

import holotype
from holotype.agent import MemoryLoop

with holotype.open_or_create("stale.holo") as db:
    loop = MemoryLoop(db, "trip")
    loop.step("UA123 price=$280", tool="search_flights", status="success", step=1)
    loop.step("The hotel is booked.", tool="book_hotel", status="success", step=300)
    memory = loop.step(request="price of UA123").memory
    print("remembered:", memory.text.split(" [[")[0], "| call again:", memory.refresh)
    if memory.refresh:
        loop.step("UA123 price=$450", tool=memory.refresh[0], status="success", step=301)
    memory = loop.step(request="price of UA123").memory
    price = int(memory.evidence[0].text.split("$")[1])
    print("now:", memory.evidence[0].text, "| book it:", price < 300, "| citations:", memory.verdict)
