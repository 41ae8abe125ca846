"""HiMPO, Table 4: how well credit finds the cause of a fault, measured with a policy by interventions on runs."""

import math
import re

from holotype.training import Run, credit_runs, deconfound

PLACES = {"1": ("Oslo", "1994"), "2": ("Rome", "1871"), "3": ("Lima", "1535")}


def policy(prompt: str, continuation: str) -> list[float]:
    """A scripted policy: a word is likely if the prompt holds it, the more often the likelier."""
    words = re.findall(r"\w+", prompt.lower())
    return [math.log(1 - 0.9 / (1 + words.count(word.strip(".").lower()))) for word in continuation.split()]


def run(group: str, name: str, kept: bool) -> Run:
    """Two facts are seen, and kept in memory or lost."""
    city, year = PLACES[group]
    seen = [f"She lives in {city}.", f"She was born in {year}.", "It rains."]
    memories = ["", city, f"{city} {year}"] if kept else ["", city, "It rains."]
    steps = [{"memory": memory, "think": "Look on.", "call": "search", "observation": observation}
             for memory, observation in zip(memories, seen)]
    return Run(group, name, "Where does she live, and when was she born?", f"{city} {year}", float(kept), steps)


runs = [run(group, name, kept) for group in PLACES for name, kept in (("a", True), ("b", False), ("c", True))]
for name, (value, of) in deconfound(runs, policy).items():
    print(f"{name:24} {'-' if value is None else format(value, '.3f'):>6} of {of}")
print("credit of the last write:", [round(writes[-1]["advantage"], 3) for writes in credit_runs(runs, policy)])
