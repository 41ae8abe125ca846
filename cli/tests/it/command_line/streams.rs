//! Pipes that close, Ctrl-C, completions.

use crate::command_line::program::{Place, Run};
use std::io::Read as _;
use std::process::{Command, Stdio};

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::with_trip();
    let commands: [&[&str]; 4] = [
        &["export", "memory.holo"],
        &["query", "memory.holo", "find traces"],
        &["verify", "memory.holo"],
        &["completions", "zsh"],
    ];
    for args in commands {
        let mut command = place.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_130_and_what_was_committed_stands() {
    let place = Place::with_trip();
    let mut command = place.command(&["import", "memory.holo", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    use std::io::Write as _;
    // More than a pipe holds: once it is written, the program has begun to read.
    let line = |key: usize| {
        format!(
            "{{\"trace\":{{\"key\":\"k{key}\",\"episode\":\"e\",\"kind\":\"turn\",\"fields\":{{\"text\":\"{}\"}}}}}}\n{{\"commit\":{{}}}}\n",
            "x ".repeat(40_000)
        )
    };
    for key in 0..8 {
        input.write_all(line(key).as_bytes()).unwrap();
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    // The next lines are read, or refused because the program has ended.
    let _ = input.write_all(line(8).as_bytes());
    drop(input);
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.status, 130, "{run:#?}");
    assert!(run.stderr.contains("interrupted"), "{run:#?}");
    place.run(&["verify", "memory.holo"]).ok();
}

#[test]
fn every_shell_gets_its_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = place.run(&["completions", shell]).ok();
        for word in ["import", "completions", "skip-bad"] {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(place.run(&["completions", "cmd"]).status, 2);
}

#[test]
fn help_names_every_command_and_no_other() {
    let place = Place::new();
    let run = place.run(&["help"]).ok();
    let commands: Vec<&str> = run
        .stdout
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected = "demo try create import export structure query ask loop repl mcp \
        why show diff inspect verify check stats audit graph head prove check-proof \
        key checkpoint seal compact retain backup restore replicate follow fleet route salvage rebuild \
        embed embedder reembed credit rollouts hook init doctor judge lab fmt completions help";
    assert_eq!(commands.join(" "), expected);
    assert!(place.run(&["--version"]).ok().stdout.starts_with("holotype "));
}
