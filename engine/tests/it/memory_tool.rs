//! The file-like memory tool: the published texts, paths that lead nowhere else, and the history below.

use holotype::memory_tool::MemoryTool;
use holotype::query::Params;
use holotype::{Holotype, Options, Support};
use serde_json::{Value, json};

fn tool() -> (tempfile::TempDir, Holotype, MemoryTool) {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("m.holo"), Options::default()).unwrap();
    let tool = MemoryTool::new(database.clone(), "session");
    (dir, database, tool)
}

#[track_caller]
fn done(tool: &MemoryTool, input: Value) -> String {
    let answer = tool.call(&input).unwrap();
    assert!(!answer.is_error, "{input}: {}", answer.text);
    answer.text
}

#[track_caller]
fn refused(tool: &MemoryTool, input: Value) -> String {
    let answer = tool.call(&input).unwrap();
    assert!(answer.is_error, "{input}: {}", answer.text);
    answer.text
}

fn create(tool: &MemoryTool, path: &str, text: &str) -> String {
    done(tool, json!({"command": "create", "path": path, "file_text": text}))
}

fn view(tool: &MemoryTool, path: &str) -> String {
    done(tool, json!({"command": "view", "path": path}))
}

#[test]
fn each_command_answers_with_the_published_text() {
    let (_dir, _, tool) = tool();
    let opening =
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:";
    assert_eq!(view(&tool, "/memories"), format!("{opening}\n0B\t/memories"));
    let path = "/memories/notes.txt";
    assert_eq!(create(&tool, path, "Hello World\nThis is line two\n"), format!("File created successfully at: {path}"));
    let again = json!({"command": "create", "path": path, "file_text": "x"});
    assert_eq!(refused(&tool, again), format!("Error: File {path} already exists"));
    let opened = format!("Here's the content of {path} with line numbers:");
    assert_eq!(view(&tool, path), format!("{opened}\n     1\tHello World\n     2\tThis is line two"));
    let part = json!({"command": "view", "path": path, "view_range": [2, -1]});
    assert_eq!(done(&tool, part), format!("{opened}\n     2\tThis is line two"));
    for range in [json!([0, 1]), json!([3, 4]), json!([2, 1]), json!([1]), json!("1-2"), json!([1.5, 2])] {
        refused(&tool, json!({"command": "view", "path": path, "view_range": range}));
    }
    let missing = json!({"command": "view", "path": "/memories/none"});
    assert_eq!(refused(&tool, missing), "The path /memories/none does not exist. Please provide a valid path.");

    let replace = |path: &str, old: &str, new: &str| {
        let command = "str_replace";
        json!({"command": command, "path": path, "old_str": old, "new_str": new})
    };
    let edited = done(&tool, replace(path, "line two", "line 2"));
    assert!(edited.starts_with("The memory file has been edited.") && edited.ends_with("     2\tThis is line 2"));
    let said = refused(&tool, replace(path, "nowhere", "x"));
    assert_eq!(said, format!("No replacement was performed, old_str `nowhere` did not appear verbatim in {path}."));
    let twice = refused(&tool, replace(path, "is", "x"));
    assert_eq!(
        twice,
        "No replacement was performed. Multiple occurrences of old_str `is` in lines: 2, 2. Please ensure it is unique"
    );
    let said = refused(&tool, replace("/memories/none", "a", "b"));
    assert_eq!(said, "Error: The path /memories/none does not exist. Please provide a valid path.");

    let insert = |path: &str, line: i64, text: &str| {
        let command = "insert";
        json!({"command": command, "path": path, "insert_line": line, "insert_text": text})
    };
    assert_eq!(done(&tool, insert(path, 1, "between\n")), format!("The file {path} has been edited."));
    done(&tool, insert(path, 0, "first"));
    done(&tool, insert(path, 4, "last"));
    let all = ["first", "Hello World", "between", "This is line 2", "last"];
    let lines: Vec<String> = all.iter().enumerate().map(|(at, line)| format!("{:>6}\t{line}", at + 1)).collect();
    assert_eq!(view(&tool, path), format!("{opened}\n{}", lines.join("\n")));
    for line in [-1, 6] {
        let said = refused(&tool, insert(path, line, "x"));
        let expected = format!(
            "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 5]"
        );
        assert_eq!(said, expected);
    }
    assert_eq!(refused(&tool, insert("/memories/none", 0, "x")), "Error: The path /memories/none does not exist");
}

#[test]
fn a_file_is_renamed_and_deleted_with_the_published_text() {
    let (_dir, _, tool) = tool();
    let path = "/memories/notes.txt";
    create(&tool, path, "Hello World");
    let rename = |from: &str, to: &str| json!({"command": "rename", "old_path": from, "new_path": to});
    let said = done(&tool, rename(path, "/memories/a/final.txt"));
    assert_eq!(said, format!("Successfully renamed {path} to /memories/a/final.txt"));
    create(&tool, path, "again");
    let said = refused(&tool, rename(path, "/memories/a/final.txt"));
    assert_eq!(said, "Error: The destination /memories/a/final.txt already exists");
    assert_eq!(
        refused(&tool, rename("/memories/none", "/memories/b")),
        "Error: The path /memories/none does not exist"
    );

    let delete = |path: &str| json!({"command": "delete", "path": path});
    assert_eq!(done(&tool, delete(path)), format!("Successfully deleted {path}"));
    assert_eq!(refused(&tool, delete(path)), format!("Error: The path {path} does not exist"));
    create(&tool, path, "a third time");
    refused(&tool, delete("/memories"));
}

#[test]
fn directories_are_listed_renamed_and_deleted() {
    let (_dir, _, tool) = tool();
    create(&tool, "/memories/a/b/c/deep.md", &"x".repeat(1536));
    create(&tool, "/memories/a/one.md", "1");
    create(&tool, "/memories/.hidden/x", "h");
    create(&tool, "/memories/node_modules/x", "n");
    create(&tool, "/memories/ab.md", "");
    let listed = view(&tool, "/memories");
    let rows: Vec<&str> = listed.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            "1.5K\t/memories",
            "1.5K\t/memories/a",
            "1.5K\t/memories/a/b",
            "1B\t/memories/a/one.md",
            "0B\t/memories/ab.md"
        ]
    );
    // A file is no directory, and the reverse.
    for path in ["/memories/a", "/memories/a/one.md/below"] {
        refused(&tool, json!({"command": "create", "path": path, "file_text": "x"}));
    }
    refused(&tool, json!({"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "x"}));
    refused(&tool, json!({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/a/b/x"}));
    done(&tool, json!({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/z"}));
    assert!(view(&tool, "/memories/z/b/c/deep.md").contains("xxx"));
    assert!(view(&tool, "/memories/ab.md").ends_with("numbers:\n"));
    done(&tool, json!({"command": "delete", "path": "/memories/z/"}));
    refused(&tool, json!({"command": "view", "path": "/memories/z"}));
}

#[test]
fn a_file_rests_on_the_calls_that_made_it_and_its_past_is_readable() {
    let (_dir, database, tool) = tool();
    let path = "/memories/plan.md";
    create(&tool, path, "buy a kettle");
    let before = database.snapshot().commit();
    done(&tool, json!({"command": "str_replace", "path": path, "old_str": "kettle", "new_str": "teapot"}));
    let snapshot = database.snapshot();
    let item = snapshot.get(path).unwrap().unwrap();
    assert_eq!(item.content.text(), "buy a teapot");
    assert_eq!(item.attributes.support, Support::Supported);
    let past = snapshot.as_of(before).unwrap();
    assert_eq!(past.get(path).unwrap().unwrap().content.text(), "buy a kettle");
    done(&tool, json!({"command": "delete", "path": path}));
    assert!(database.snapshot().get(path).unwrap().is_none_or(|item| !item.attributes.active));
    assert_eq!(database.snapshot().as_of(before).unwrap().get(path).unwrap().unwrap().id.0, 1);
    let calls = database.query("count calls where tool = 'memory' and status = success", &Params::new()).unwrap();
    assert!(format!("{calls:?}").contains('3'), "{calls:?}");
    let found =
        database.query("find facts where text contains 'teapot' and active = false return text", &Params::new());
    assert!(format!("{found:?}").contains("buy a teapot"), "{found:?}");
    assert_eq!(database.verify(&mut |_, _| {}).unwrap().faults.len(), 0);
}

#[test]
fn wrong_inputs_are_refused_and_change_nothing() {
    let (_dir, database, tool) = tool();
    create(&tool, "/memories/a", "x");
    let before = database.snapshot().commit();
    for input in [
        json!(null),
        json!({}),
        json!({"command": 7}),
        json!({"command": "format", "path": "/memories/a"}),
        json!({"command": "view"}),
        json!({"command": "view", "path": ["/memories"]}),
        json!({"command": "create", "path": "/memories/b"}),
        json!({"command": "create", "path": "/etc/b", "file_text": "x"}),
        json!({"command": "create", "path": "/memories/../b", "file_text": "x"}),
        json!({"command": "insert", "path": "/memories/a", "insert_line": "1", "insert_text": "x"}),
        json!({"command": "str_replace", "path": "/memories/a", "old_str": "", "new_str": "y"}),
        json!({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/%2e%2e/a"}),
        json!({"command": "rename", "old_path": "/memories", "new_path": "/memories/b"}),
        json!({"command": "delete", "path": "/memories/.."}),
    ] {
        assert!(!refused(&tool, input).is_empty());
    }
    assert_eq!(database.snapshot().commit(), before);
}
