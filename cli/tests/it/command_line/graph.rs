//! `holotype graph`: an item with its evidence and dependents, drawn.

use crate::command_line::program::Place;

/// A fact that rests on a good trace, a failed one and one that is gone, with a theme above it.
fn place() -> Place {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let script = "record call 'price=$450' in episode 'e' with key = 't1', tool = 's', step = 1, status = success;
        record call 'price=\"$470\" & <more>' in episode 'e' with key = 't2', tool = 's', step = 2, status = failed;
        record call 'price=$480' in episode 'e' with key = 't3', tool = 's', step = 3;
        remember fact 'It costs $450' from 't1', 't2', 't3' with key = 'r1';
        remember theme 'prices' ungrounded with key = 'th';
        link 'r1' parent 'th'; link 'r1' conflicts-with 't2'; mark 't3' inactive because 'old'";
    place.run(&["query", "memory.holo", script]).ok();
    place
}

#[test]
fn the_three_formats_show_the_same_items_by_colour_and_shape() {
    let place = place();
    let svg = place.run(&["graph", "memory.holo", "r1"]).ok().stdout;
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    for title in [
        "t1 (call, success)",
        "t2 (call, failed)",
        "t3 (call, inactive)",
        "r1 (fact, weakened)",
        "th (theme, weakened)",
    ] {
        assert!(svg.contains(&format!("<title>{title}</title>")), "{title}: {svg}");
    }
    assert!(svg.contains("&quot;$470&quot; &amp; &lt;more&gt;") && !svg.contains("<more>"));
    assert_eq!(svg.matches("class=\"line\"").count(), 4, "three citations and a parent");
    assert_eq!(svg.matches("class=\"line aside\"").count(), 1);
    assert_eq!(place.run(&["graph", "memory.holo", "r1", "--format", "svg"]).ok().stdout, svg);

    let dot = place.run(&["graph", "memory.holo", "r1", "--format", "dot"]).ok().stdout;
    assert!(dot.starts_with("digraph ") && dot.matches(" -> ").count() == 5, "{dot}");
    for shape in ["shape=octagon", "shape=hexagon", "filled,rounded", "filled,dashed"] {
        assert!(dot.contains(shape), "{shape}: {dot}");
    }
    let mermaid = place.run(&["graph", "memory.holo", "r1", "--format", "mermaid"]).ok().stdout;
    assert!(
        mermaid.starts_with("flowchart ") && mermaid.contains(":::failed") && mermaid.contains("-.->"),
        "{mermaid}"
    );
}

#[test]
fn depth_and_commit_bound_what_is_drawn() {
    let place = place();
    place.run(&["query", "memory.holo", "remember fact 'More' from 'r1' with key = 'r2'"]).ok();
    let count = |args: &[&str]| place.run(args).ok().stdout.matches("<title>").count();
    assert_eq!(count(&["graph", "memory.holo", "t1", "--depth", "0"]), 1);
    assert_eq!(count(&["graph", "memory.holo", "t1", "--depth", "1"]), 2);
    assert_eq!(count(&["graph", "memory.holo", "t1"]), 4, "r1, its theme and r2; other evidence of r1 is none of t1's");
    assert_eq!(count(&["graph", "memory.holo", "r1"]), 6);
    let all = place.run(&["head", "memory.holo", "--format", "json"]).json()["commit"].as_u64().unwrap();
    assert_eq!(count(&["graph", "memory.holo", "r1", "--as-of", &(all - 1).to_string()]), 5);
}

#[test]
fn two_hundred_items_are_drawn_and_the_rest_counted() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let traces = (0..230).map(|step| format!("record turn 'x' in episode 'e' with key = 't{step}', step = {step};"));
    let from: Vec<String> = (0..230).map(|step| format!("'t{step}'")).collect();
    let script = format!("{}remember fact 'all' from {} with key = 'r'", traces.collect::<String>(), from.join(", "));
    place.run_with(&["query", "memory.holo", "-"], &script).ok();
    let svg = place.run(&["graph", "memory.holo", "r"]).ok().stdout;
    assert_eq!(svg.matches("<title>").count(), 200);
    assert!(svg.contains("31 more items are not drawn"), "{svg}");
}

#[test]
fn a_tree_shows_what_an_item_rests_on_and_what_rests_on_it() {
    let place = place();
    let tree = place.run(&["graph", "memory.holo", "r1", "--format", "table"]).ok().stdout;
    let expected = "r1  fact  weakened  It costs $450\n\
        rests on\n\
        ├─ t1  call  success  price=$450\n\
        ├─ t2  call  failed  price=\"$470\" & <more>\n\
        └─ t3  call  inactive  price=$480\n\
        what rests on it\n\
        └─ th  theme  weakened  prices\n\
        beside it\n\
        └─ conflicts-with  t2  call  failed  price=\"$470\" & <more>  (see above)\n";
    assert_eq!(tree, expected);
    // An item that is reached twice is followed once.
    let script = "remember fact 'both' from 'r1', 't1' with key = 'r2'";
    place.run(&["query", "memory.holo", script]).ok();
    let tree = place.run(&["graph", "memory.holo", "r2", "--format", "table"]).ok().stdout;
    assert_eq!(tree.matches("(see above)").count(), 1, "{tree}");
    assert_eq!(tree.matches("It costs $450").count(), 1, "{tree}");
    let json = place.run(&["graph", "memory.holo", "r1", "--format", "json"]).json();
    assert_eq!(json["items"].as_array().map(Vec::len), Some(6), "{json}");
    let line = serde_json::json!({"from": "r1", "to": "t1", "edge": "cites"});
    assert!(json["lines"].as_array().unwrap().contains(&line), "{json}");
    assert_eq!(json["items"][0]["standing"], "weakened");
}

#[test]
fn formats_are_of_graphs_or_of_answers() {
    let place = place();
    for args in ["graph memory.holo r1 --format markdown", "query memory.holo audit --format svg"] {
        let args: Vec<&str> = args.split(' ').collect();
        let run = place.run(&args);
        assert_eq!(run.status, 2, "{run:#?}");
        assert!(run.stderr.contains("svg, dot"), "{run:#?}");
    }
    let run = place.run(&["graph", "memory.holo", "nothing"]);
    assert!(run.status == 2 && run.stderr.contains("'nothing'"), "{run:#?}");
}
