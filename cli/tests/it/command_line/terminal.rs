//! The session as a person meets it: the program runs on a pseudo-terminal, keys are sent to it, and what it draws is
//! read.
//!
//! `setsid --ctty` gives the program the terminal as its own, so that Ctrl-C reaches it as a signal while a statement
//! runs. Nothing is timed: a test waits until what it wants is on the screen, and gives up after [`PATIENCE`].

use crate::command_line::program::{PROGRAM, Place};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The time for which a test waits for something that never comes.
const PATIENCE: Duration = Duration::from_secs(120);
/// A number of recalls that takes longer than a key.
const LONG: usize = 2_000;
const PROMPT: &str = "holotype> ";
/// The editor sends these when it begins to read a line and when it has read it: it turns marks around pasted text on
/// and off.
const READING: &str = "\u{1b}[?2004h";
const READ: &str = "\u{1b}[?2004l";

/// The bytes that keys send.
mod key {
    pub(super) const ENTER: &str = "\r";
    pub(super) const UP: &str = "\u{1b}[A";
    pub(super) const CTRL_C: &str = "\u{3}";
    pub(super) const CTRL_D: &str = "\u{4}";
    pub(super) const CTRL_R: &str = "\u{12}";
}

/// A session and its terminal of 24 lines of 100 columns.
struct Terminal {
    screen: File,
    drawn: Receiver<Vec<u8>>,
    /// The output that no test has expected yet.
    seen: String,
    child: Child,
}

impl Terminal {
    /// Starts a session on `memory.holo` of a place and waits until it reads keys.
    fn open(place: &Place, variables: &[(&str, &str)]) -> Terminal {
        let mut terminal = Terminal::start(place, variables);
        terminal.ready();
        terminal
    }

    fn start(place: &Place, variables: &[(&str, &str)]) -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = || pty.slave.try_clone().unwrap();
        let mut command = Command::new("setsid");
        command.args(["--ctty", PROGRAM, "repl", "memory.holo"]).current_dir(place.path(""));
        command.env("TERM", "xterm").env("HOME", place.path("")).env("XDG_STATE_HOME", place.path("state"));
        for unset in ["COLUMNS", "LINES", "NO_COLOR", "PAGER", "LESS"] {
            command.env_remove(unset);
        }
        command.envs(variables.iter().copied()).stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("setsid is there");
        drop((command, pty.slave));
        let screen = File::from(pty.master);
        let (send, drawn) = channel();
        let mut reading = screen.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of the other side is an error here.
            while let Ok(len @ 1..) = reading.read(&mut buffer) {
                if send.send(buffer[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { screen, drawn, seen: String::new(), child }
    }

    fn press(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and presses Enter.
    fn enter(&mut self, line: &str) {
        self.press(line);
        self.press(key::ENTER);
    }

    /// Waits until `text` is drawn, escapes and all; returns what was drawn before it and keeps what comes after.
    #[track_caller]
    fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                let behind = self.seen.split_off(at + text.len());
                let before = std::mem::replace(&mut self.seen, behind);
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.drawn.recv_timeout(left) {
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(error) => panic!("{text:?} is not drawn ({error}), but {:?}", self.seen),
            }
        }
    }

    /// Waits until the editor reads a line: keys that come before are not its own. It draws its prompt again at each
    /// key, but asks only once a line for pasted text to be marked.
    #[track_caller]
    fn ready(&mut self) -> String {
        let before = self.expect(READING);
        self.expect(PROMPT);
        before
    }

    /// Enters a line and returns what is drawn until the next is read, without colours.
    #[track_caller]
    fn answer(&mut self, line: &str) -> String {
        self.enter(line);
        self.expect(READ);
        plain(&self.ready())
    }

    /// Presses Ctrl-C in a line.
    #[track_caller]
    fn give_up_line(&mut self) {
        self.press(key::CTRL_C);
        self.expect(READ);
        self.ready();
    }

    /// Waits until the program reads no keys: a statement runs, and Ctrl-C is a signal.
    fn wait_until_it_runs(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !tcgetattr(&self.screen).unwrap().local_flags.contains(LocalFlags::ISIG) {
            assert!(Instant::now() < deadline, "the statement never runs");
            std::thread::yield_now();
        }
    }

    /// Ends the session with Ctrl-D; nothing was wrong in it.
    #[track_caller]
    fn leave(mut self) {
        self.press(key::CTRL_D);
        assert_eq!(self.end(), 0);
    }

    /// Waits for the end of the program and returns its status.
    #[track_caller]
    fn end(mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.drawn.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the session does not end"),
            }
        }
        self.child.wait().unwrap().code().expect("it ended by itself")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already, unless a test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text without what is not shown: escapes and carriage returns.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain += &rest[..at];
        let end = rest[at + 2..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |end| at + 2 + end + 1);
        rest = &rest[end..];
    }
    (plain + rest).replace('\r', "")
}

#[test]
fn a_session_answers_and_ends() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[]);
    assert!(terminal.answer("count traces").contains("count\n─────\n    3\n"));
    assert!(terminal.answer("recal 'x'").contains("did you mean `recall`?"));
    assert!(terminal.answer(".nonsense").contains("there is no command .nonsense"));
    assert!(terminal.answer(".help").contains(".format table|json|jsonl|markdown"));
    assert!(terminal.answer(".help lineage").contains("dependents of 't1'"));
    let untimed = terminal.answer("count traces");
    terminal.answer(".timing on");
    let timed = terminal.answer("count traces");
    assert!(!untimed.contains(" ms\n") && timed.contains(" ms\n"), "{untimed} {timed}");
    terminal.answer(".timing off");
    terminal.answer(".format jsonl");
    let answer = terminal.answer("count recalls");
    assert!(answer.contains("{\"") && answer.contains("\"count\":1"), "{answer:?}");
    terminal.enter(".quit");
    assert_eq!(terminal.end(), 0, "a person has seen the mistakes");
    let terminal = Terminal::open(&place, &[]);
    terminal.leave();
}

#[test]
fn lines_are_completed_from_the_grammar_and_the_database() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[]);
    // One candidate is put in, of several both are shown.
    terminal.press("cou\t tra\t");
    let answer = terminal.answer("");
    assert!(answer.contains("    3\n"), "{answer:?}");
    terminal.press("rec\t\t");
    terminal.expect("recall  record");
    terminal.give_up_line();
    terminal.press("count traces where epi\t= 'tr\tand tool = 'search_flights'");
    assert!(terminal.answer("").contains("    2\n"));
    terminal.press(".f\t jsonl");
    terminal.answer("");
    terminal.press("find facts where key = 'r\t return key");
    assert!(terminal.answer("").contains("{\"key\":\"r1\"}"));
    terminal.leave();
}

#[test]
fn a_statement_goes_on_until_it_is_whole() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[]);
    terminal.enter("count traces where");
    terminal.press("tool = 'search_flights'");
    terminal.enter(" and");
    assert!(terminal.answer("status = failed").contains("    1\n"));
    // An empty line gives up, `;` says that this is all.
    terminal.enter("count traces where");
    assert!(terminal.answer("").contains("the script ends too early"));
    assert!(terminal.answer("count traces where;").contains("the statement ends too early"));
    terminal.leave();
}

#[test]
fn what_was_entered_is_remembered_beyond_the_session() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[]);
    terminal.answer("count recalls");
    terminal.answer("count traces");
    assert!(terminal.answer(key::UP).contains("    3\n"), "the one before");
    terminal.enter(".quit");
    assert_eq!(terminal.end(), 0);
    assert!(place.path("state/holotype/history").exists());
    let mut terminal = Terminal::open(&place, &[]);
    // The newest is .quit.
    terminal.press(key::UP);
    terminal.press(key::UP);
    assert!(terminal.answer("").contains("    3\n"));
    terminal.press(key::CTRL_R);
    terminal.press("recalls");
    assert!(terminal.answer("").contains("    1\n"));
    terminal.leave();
}

#[test]
fn statements_are_coloured_where_colours_are_wanted() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[]);
    terminal.press("count traces where tool = 'pay'");
    terminal.expect("\u{1b}[1mcount\u{1b}[0m");
    terminal.expect("\u{1b}[32m'pay'\u{1b}[0m");
    terminal.give_up_line();
    terminal.leave();
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        // On a terminal that can do nothing, lines are read as they come.
        let mut terminal = Terminal::start(&place, &[variable]);
        terminal.expect(PROMPT);
        terminal.enter("count traces where tool = 'pay'");
        let drawn = terminal.expect("    0") + &terminal.expect(PROMPT);
        for colour in ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[32m"] {
            assert!(!drawn.contains(colour), "{variable:?}: {drawn:?}");
        }
        terminal.leave();
    }
}

#[test]
fn what_is_longer_than_the_screen_goes_through_the_pager() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[("PAGER", "sed s/^/paged:/")]);
    assert!(!terminal.answer("count traces").contains("paged:"));
    let long = "show settings; show settings; show settings";
    let answer = terminal.answer(long);
    assert!(answer.matches("paged:").count() >= 24, "{answer}");
    terminal.leave();
    // Without a pager the answer is shown as it is.
    let mut terminal = Terminal::open(&place, &[("PAGER", "no-such-pager-anywhere")]);
    assert_eq!(terminal.answer(long), answer.replace("paged:", ""));
    terminal.leave();
}

#[test]
fn what_is_forgotten_is_asked_about_first() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[]);
    for (answer, told) in [("no", "nothing was forgotten"), ("", "nothing was forgotten"), ("yes", "forgot")] {
        terminal.enter("forget 't3' because 'asked to'");
        terminal.expect(READ);
        terminal.expect(READING);
        terminal.expect("(yes/no) ");
        assert!(terminal.answer(answer).contains(told));
    }
    terminal.leave();
    let run = place.run(&["query", "memory.holo", "find traces where redacted return key", "--format", "jsonl"]).ok();
    assert!(run.stdout.contains("\"key\":\"t3\""), "{run:#?}");
}

#[test]
fn ctrl_c_ends_a_line_or_a_statement_and_never_the_session() {
    let place = Place::with_trip();
    let mut terminal = Terminal::open(&place, &[]);
    terminal.press("find tra");
    terminal.give_up_line();
    assert!(terminal.answer("count recalls").contains("    1\n"), "nothing is left of the line");
    // Statements that take a while, pasted in one go.
    terminal.press("\u{1b}[200~");
    terminal.press(&"recall 'UA123';".repeat(LONG));
    terminal.press("\u{1b}[201~");
    terminal.press(key::ENTER);
    terminal.wait_until_it_runs();
    terminal.press(key::CTRL_C);
    terminal.expect("cancelled");
    terminal.ready();
    assert!(terminal.answer("count traces").contains("    3\n"));
    terminal.leave();
}
