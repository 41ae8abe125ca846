// The history of an agent that books trips, for tests and figures: as many items as wanted, as lines of `holotype import`.
//
// Of each ten items six are turns, two calls and two facts, each of which cites the price in a call. The last trip is
// the one of the journeys: a fare of 268 EUR, and a hotel that a call got wrong.
import { closeSync, openSync, writeSync } from "node:fs";

const CITIES = ["Oslo", "Turin", "Porto", "Ghent", "Split", "Malmo", "Graz", "Cork", "Vigo", "Bern"];
const TRIPS = 40;

const at = (nth) => new Date(Date.UTC(2026, 0, 5, 8) + nth * 20_000).toISOString().replace(".000Z", "Z");
const trace = (kind, key, episode, step, nth, text, more) =>
  ({ trace: { key, kind, episode, step, time: at(nth), fields: { text }, ...more } });
const fact = (key, text, call, said, quote) => {
  const start = Buffer.byteLength(said.slice(0, said.indexOf(quote)));
  return { recall: { key, kind: "fact", text, from: [{ key: call, start, end: start + Buffer.byteLength(quote) }] } };
};

// The lines of `count` items, the last 14 of which are those of the trip to Lisbon.
export function* history(count) {
  const bulk = count - 14;
  for (let nth = 0; nth < bulk; nth += 1) {
    const group = Math.floor(nth / 10), place = nth % 10, step = nth + 1;
    const city = CITIES[group % CITIES.length], episode = `trip-${Math.floor((nth * TRIPS) / bulk)}`;
    const price = 60 + ((group * 37) % 400), flight = `TJ${100 + (group % 900)}`;
    const fare = `Flight ${flight} to ${city}: cost ${price} EUR per adult, ${group % 9} seats left`;
    const room = `Hotel ${city} ${group % 50}: a double room costs ${price - 11} EUR a night`;
    const made = [
      () => trace("turn", `turn-${nth}`, episode, step, nth, `I need to be in ${city} before noon; find me a way, number ${group}.`, { source: "user", speaker: "Ann" }),
      () => trace("turn", `turn-${nth}`, episode, step, nth, `I will look for flights to ${city} first.`, { source: "assistant", speaker: "agent" }),
      () => trace("call", `call-${nth}`, episode, step, nth, fare, { source: "tool", tool: "search_flights", status: "success" }),
      () => fact(`fact-${nth}`, `${flight} to ${city} costs ${price} EUR`, `call-${nth - 1}`, fare, `cost ${price} EUR per adult`),
      () => trace("turn", `turn-${nth}`, episode, step, nth, `There is ${flight} to ${city} for ${price} EUR. Shall I hold it?`, { source: "assistant", speaker: "agent" }),
      () => trace("turn", `turn-${nth}`, episode, step, nth, `Hold it, and find a room near the station of ${city}.`, { source: "user", speaker: "Ann" }),
      () => trace("call", `call-${nth}`, episode, step, nth, room, { source: "tool", tool: "search_hotels", status: "success" }),
      () => fact(`fact-${nth}`, `a double room in ${city} costs ${price - 11} EUR`, `call-${nth - 1}`, room, `costs ${price - 11} EUR a night`),
      () => trace("turn", `turn-${nth}`, episode, step, nth, `A double room near the station costs ${price - 11} EUR a night.`, { source: "assistant", speaker: "agent" }),
      () => trace("turn", `turn-${nth}`, episode, step, nth, `Good. What else is open for ${city}?`, { source: "user", speaker: "Ann" }),
    ];
    yield made[place]();
  }
  const trip = "trip-lisbon";
  const fare = "Flight to Lisbon, TJ482 on Tue 10 March: cost 268 EUR per adult";
  const room = "Hotel Baixa: a double room costs 310 EUR a night (cached 2024)";
  let step = 0;
  const turn = (speaker, text) => { step += 1; return trace("turn", `lisbon-${step}`, trip, step, bulk + step, text, { source: speaker === "Ann" ? "user" : "assistant", speaker }); };
  const call = (key, tool, text) => { step += 1; return trace("call", key, trip, step, bulk + step, text, { source: "tool", tool, status: "success" }); };
  yield turn("Ann", "I want to fly to Lisbon on Tuesday and stay for three nights.");
  yield turn("agent", "I will look for flights first.");
  yield call("call-fare", "search_flights", fare);
  yield fact("belief-fare", "The flight to Lisbon, TJ482, costs 268 EUR", "call-fare", fare, "cost 268 EUR per adult");
  yield turn("agent", "TJ482 on Tuesday costs 268 EUR.");
  yield turn("Ann", "Fine. And a hotel in the centre?");
  yield call("call-hotel", "search_hotels", room);
  yield fact("belief-hotel", "A room at the Hotel Baixa costs 310 EUR a night", "call-hotel", room, "costs 310 EUR a night");
  yield { recall: { key: "belief-budget", kind: "fact", text: "Three nights in Lisbon with the flight cost 1198 EUR", from: [{ key: "belief-hotel" }, { key: "belief-fare" }] } };
  yield turn("agent", "Three nights at the Hotel Baixa come to 930 EUR.");
  yield turn("Ann", "That is more than I thought.");
  yield turn("agent", "With the flight it is 1198 EUR.");
  yield turn("Ann", "I will think about it.");
  yield turn("agent", "I will keep the offer open.");
}

// Writes the lines into a file.
export function writeHistory(file, count) {
  const out = openSync(file, "w");
  let lines = "";
  for (const one of history(count)) {
    lines += `${JSON.stringify(one)}\n`;
    if (lines.length > 1 << 20) { writeSync(out, lines); lines = ""; }
  }
  writeSync(out, lines);
  closeSync(out);
}
