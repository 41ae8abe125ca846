//! The things of generated runs: many kinds, with attributes that change.

use crate::random::Random;

/// The values that an attribute takes.
#[derive(Clone, Copy)]
pub(super) enum Values {
    Money(usize, usize),
    /// A letter with a number: a gate, a shelf, a seat.
    Place,
    Time,
    Date,
    Count(usize),
    Percent,
    /// A number with a unit.
    Measure(usize, &'static str),
    Person,
    Address,
    Secret,
    /// One of some words.
    Word(&'static [&'static str]),
    /// Two numbers with a unit: `5-7 days`.
    Range(&'static str),
}

/// A kind of thing: what it is called, the tool that knows it, how it is named, and its attributes.
pub(super) struct Domain {
    pub(super) kind: &'static str,
    pub(super) tool: &'static str,
    pub(super) names: Names,
    pub(super) attributes: &'static [(&'static str, Values)],
}

/// The names of things of a kind.
#[derive(Clone, Copy)]
pub(super) enum Names {
    /// A prefix and a number: `UA123`.
    Code(&'static [&'static str]),
    /// A proper name and a number: `Lisbon Garden 42`.
    Numbered(&'static [&'static str]),
    /// A proper name.
    Proper(&'static [&'static str]),
}

const STATES: &[&str] = &["running", "queued", "paused", "completed", "failed", "stalled"];
const SKIES: &[&str] = &["clear", "overcast", "rainy", "foggy", "stormy", "snowy"];
const LEVELS: &[&str] = &["low", "normal", "high", "critical", "urgent"];
const TOWNS: &[&str] = &["Lisbon", "Osaka", "Quito", "Leipzig", "Tromso", "Accra", "Hobart", "Cusco", "Malmo", "Izmir"];
const FIRST: &[&str] = &["Maria", "Tomas", "Aisha", "Jonas", "Priya", "Wei", "Elena", "Kofi", "Ingrid", "Mateo"];
const LAST: &[&str] = &["Lopez", "Novak", "Khan", "Berg", "Sharma", "Chen", "Rossi", "Mensah", "Larsen", "Silva"];
const STREETS: &[&str] = &["Harbour Street", "Mill Lane", "Station Road", "Castle Hill", "Orchard Avenue"];

/// All kinds of things.
pub(super) const DOMAINS: &[Domain] = &[
    Domain {
        kind: "flight",
        tool: "search_flights",
        names: Names::Code(&["UA", "LH", "AF", "TK", "DL"]),
        attributes: &[("price", Values::Money(80, 999)), ("gate", Values::Place), ("departure time", Values::Time)],
    },
    Domain {
        kind: "hotel",
        tool: "hotel_api",
        names: Names::Numbered(&["Lisbon Garden", "Osaka Central", "Quito Harbour", "Leipzig Park"]),
        attributes: &[("nightly rate", Values::Money(60, 420)), ("rooms left", Values::Count(40))],
    },
    Domain {
        kind: "warehouse item",
        tool: "inventory_lookup",
        names: Names::Code(&["SKU-", "WH-", "PRT-"]),
        attributes: &[("units in stock", Values::Count(900)), ("shelf", Values::Place)],
    },
    Domain {
        kind: "batch",
        tool: "run_script",
        names: Names::Numbered(&["ledger batch", "survey batch", "audit batch"]),
        attributes: &[("state", Values::Word(STATES)), ("records processed", Values::Count(90_000))],
    },
    Domain {
        kind: "city",
        tool: "weather",
        names: Names::Proper(TOWNS),
        attributes: &[
            ("temperature", Values::Measure(38, "°C")),
            ("sky", Values::Word(SKIES)),
            ("humidity", Values::Percent),
        ],
    },
    Domain {
        kind: "account",
        tool: "vault_read",
        names: Names::Code(&["ACC-", "svc-"]),
        attributes: &[("password", Values::Secret), ("owner", Values::Person)],
    },
    Domain {
        kind: "meeting",
        tool: "calendar",
        names: Names::Proper(&["Budget Review", "Design Sync", "Board Call", "Sprint Planning", "Town Hall"]),
        attributes: &[("room", Values::Place), ("start time", Values::Time), ("organiser", Values::Person)],
    },
    Domain {
        kind: "server",
        tool: "host_info",
        names: Names::Code(&["db-", "web-", "cache-"]),
        attributes: &[("cpu load", Values::Percent), ("memory usage", Values::Measure(256, "GB"))],
    },
    Domain {
        kind: "parcel",
        tool: "track_parcel",
        names: Names::Code(&["PX", "RR", "CP"]),
        attributes: &[("location", Values::Word(TOWNS)), ("delivery date", Values::Date)],
    },
    Domain {
        kind: "invoice",
        tool: "billing",
        names: Names::Code(&["INV-", "BILL-"]),
        attributes: &[("amount due", Values::Money(100, 9_000)), ("due date", Values::Date)],
    },
    Domain {
        kind: "train",
        tool: "rail_board",
        names: Names::Code(&["ICE", "TGV", "RE"]),
        attributes: &[("platform", Values::Count(24)), ("delay", Values::Measure(55, "minutes"))],
    },
    Domain {
        kind: "restaurant",
        tool: "places",
        names: Names::Proper(&["Casa Verde", "Blue Heron", "Old Mill", "Nonna Rosa", "Golden Wok"]),
        attributes: &[
            ("address", Values::Address),
            ("opening time", Values::Time),
            ("rating", Values::Measure(5, "stars")),
        ],
    },
    Domain {
        kind: "ticket",
        tool: "tracker",
        names: Names::Code(&["OPS-", "BUG-", "REQ-"]),
        attributes: &[("assignee", Values::Person), ("priority", Values::Word(LEVELS))],
    },
    Domain {
        kind: "project",
        tool: "planner",
        names: Names::Proper(&["Falcon", "Nightjar", "Redwood", "Cobalt", "Meridian"]),
        attributes: &[("deadline", Values::Date), ("budget", Values::Money(5_000, 90_000)), ("lead", Values::Person)],
    },
    Domain {
        kind: "share",
        tool: "quotes",
        names: Names::Proper(&["Northwind", "Contoso", "Initech", "Globex", "Umbrella"]),
        attributes: &[("share price", Values::Money(3, 700)), ("shipping time", Values::Range("days"))],
    },
];

impl Names {
    /// The `nth` name; names of one kind differ.
    pub(super) fn nth(self, nth: usize, random: &mut Random) -> String {
        match self {
            Names::Code(prefixes) => {
                format!("{}{}", prefixes[nth % prefixes.len()], 100 + nth * 800 + random.below(800))
            }
            Names::Numbered(names) => format!("{} {}", names[nth % names.len()], 10 + nth * 90 + random.below(90)),
            Names::Proper(names) => names[nth % names.len()].to_owned(),
        }
    }
}

impl Values {
    /// A value as a person would write it.
    pub(super) fn draw(self, random: &mut Random) -> String {
        let one = |list: &[&str], random: &mut Random| list[random.below(list.len())].to_owned();
        match self {
            Values::Money(low, high) => format!("${}", low + random.below(high - low)),
            Values::Place => format!("{}{}", ["A", "B", "C", "D", "K"][random.below(5)], 1 + random.below(60)),
            Values::Time => format!("{:02}:{:02}", random.below(24), random.below(60)),
            Values::Date => format!("2026-{:02}-{:02}", 1 + random.below(12), 1 + random.below(28)),
            Values::Count(most) => (1 + random.below(most)).to_string(),
            Values::Percent => format!("{}%", 1 + random.below(99)),
            Values::Measure(most, unit) => format!("{} {unit}", 1 + random.below(most)),
            Values::Person => format!("{} {}", one(FIRST, random), one(LAST, random)),
            Values::Address => format!("{} {}", 1 + random.below(200), one(STREETS, random)),
            Values::Secret => {
                let letter = |random: &mut Random| char::from(b'a' + random.below(26) as u8);
                let word: String = (0..6).map(|_| letter(random)).collect();
                format!("{word}-{}", 100 + random.below(900))
            }
            Values::Word(words) => one(words, random),
            Values::Range(unit) => {
                let low = 1 + random.below(20);
                format!("{low}-{} {unit}", low + 1 + random.below(9))
            }
        }
    }
}
