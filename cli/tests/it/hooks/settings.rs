//! `init` and `doctor`: settings are merged, and put back to the byte.

use crate::command_line::program::Place;
use crate::hooks::{hook, project};

const CLAUDE: &str = "{\n  // my model\n  \"model\": \"x\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": \
                      [{\"type\": \"command\", \"command\": \"say done\"}]}\n    ]\n  }\n}\n";
const CODEX: &str = "# mine\nmodel = 'x'   # why\n\n[mcp_servers.other]\ncommand = \"o\"\n";

fn text(place: &Place, name: &str) -> String {
    String::from_utf8(place.read(name)).unwrap()
}

#[test]
fn init_merges_once_and_undo_restores_the_bytes() {
    let place = Place::new();
    for folder in [".claude", ".codex"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    place.write(".claude/settings.json", CLAUDE);
    place.write(".codex/config.toml", CODEX);
    let files = [
        ("claude-code", &[".claude/settings.json", ".mcp.json"][..]),
        ("codex", &[".codex/hooks.json", ".codex/config.toml"]),
        ("gemini", &[".gemini/settings.json"]),
        ("cursor", &[".cursor/hooks.json", ".cursor/mcp.json"]),
    ];
    for (harness, files) in files {
        let dry = place.run(&["init", "--for", harness, "--dry-run"]).ok();
        assert!(dry.stdout.contains(&format!("hook --for {harness}")), "{dry:#?}");
        place.run(&["init", "--for", harness]).ok();
        let first: Vec<String> = files.iter().map(|file| text(&place, file)).collect();
        assert!(first[0].contains(&format!("hook --for {harness}")), "{}", first[0]);
        let again = place.run(&["init", "--for", harness]).ok();
        assert!(again.stdout.contains("nothing to change"), "{again:#?}");
        assert_eq!(files.iter().map(|file| text(&place, file)).collect::<Vec<_>>(), first);
    }
    let claude = text(&place, ".claude/settings.json");
    assert!(claude.contains("// my model") && claude.contains("say done"), "{claude}");
    let codex = text(&place, ".codex/config.toml");
    assert!(codex.starts_with(CODEX) && codex.contains("[mcp_servers.holotype]"), "{codex}");
    assert!(text(&place, ".gemini/settings.json").contains("\"timeout\": 10000"), "milliseconds");
    for (harness, _) in files {
        place.run(&["init", "--for", harness, "--undo"]).ok();
    }
    assert_eq!(text(&place, ".claude/settings.json"), CLAUDE);
    assert_eq!(text(&place, ".codex/config.toml"), CODEX);
    for gone in [".mcp.json", ".codex/hooks.json", ".gemini/settings.json", ".cursor/hooks.json", ".cursor/mcp.json"] {
        assert!(!place.path(gone).exists(), "{gone}");
    }
}

#[test]
fn what_was_changed_since_is_left_alone() {
    let place = Place::new();
    place.run(&["init", "--for", "cursor", "--mcp"]).ok();
    place.write(".cursor/mcp.json", "{\"mcpServers\": {}, \"mine\": 1}");
    let undone = place.run(&["init", "--for", "cursor", "--undo"]);
    assert_eq!(undone.status, 1, "{undone:#?}");
    assert_eq!(text(&place, ".cursor/mcp.json"), "{\"mcpServers\": {}, \"mine\": 1}");
    let wrong = place.run(&["init", "--for", "nobody"]);
    assert_eq!(wrong.status, 2, "{wrong:#?}");
    place.write(".cursor/mcp.json", "{ wrong");
    let refused = place.run(&["init", "--for", "cursor"]);
    assert_eq!(refused.status, 2, "{refused:#?}");
    assert!(!place.path(".cursor/hooks.json").exists(), "nothing is written before all could be read");
}

#[test]
fn doctor_tells_what_is_there_on_one_screen() {
    let place = project();
    let empty = place.run(&["doctor"]).ok();
    assert!(empty.stdout.contains("none yet") && empty.stdout.contains("none configured"), "{empty:#?}");
    place.run(&["init", "--for", "claude-code", "--hooks"]).ok();
    hook(&place, "generic", r#"{"session":"s","event":"prompt","prompt":"hello"}"#);
    let found = place.run(&["doctor"]).ok().stdout;
    for part in
        ["1 item", "claude-code: 9 hooks in", "generic prompt", "1 written", "writers", "clock", "space", "model"]
    {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(found.lines().count() <= 40, "{found}");
}
