//! Commands of a session: lines that are no statements.

/// The command of the session that a line is: one after a dot, or `help`, `exit` or `quit` by itself, which begin no
/// statement.
pub(super) fn command_of(source: &str) -> Option<&str> {
    let source = source.trim();
    if let Some(command) = source.strip_prefix('.') {
        return Some(command);
    }
    let command = source.trim_end_matches(';').trim_end();
    let mut words = command.split_whitespace();
    let is_command = match words.next()?.to_ascii_lowercase().as_str() {
        "exit" | "quit" => words.next().is_none(),
        "help" => words.count() < 2,
        _ => false,
    };
    is_command.then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_exit_and_quit_need_no_dot() {
        for (line, command) in [
            (".timing on", Some("timing on")),
            ("help", Some("help")),
            ("Help find;", Some("Help find")),
            (" quit ; ", Some("quit")),
            ("exit", Some("exit")),
            ("exit now", None),
            ("help me please", None),
            ("timing on", None),
            ("count traces", None),
            ("", None),
        ] {
            assert_eq!(command_of(line), command, "{line}");
        }
    }
}
