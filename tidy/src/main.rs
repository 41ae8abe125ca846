//! `holotype-tidy` prints figures about the tree; `holotype-tidy lower` lowers the baseline to what is left.

use holotype_tidy::{baseline, figures, rules, source};
use std::error::Error;
use std::fs;

fn main() -> Result<(), Box<dyn Error>> {
    let root = source::root();
    let sources = source::load(&root)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            for (name, value) in figures::measure(&root, &sources)? {
                println!("{value:>8}  {name}");
            }
            for (from, to) in figures::upward(&sources) {
                println!("          up: {from} -> {to}");
            }
            Ok(())
        }
        ["lower"] => {
            let path = root.join("tidy/baseline.txt");
            let found = baseline::count(&rules::check(&root, &sources));
            let old = baseline::parse(&fs::read_to_string(&path)?)?;
            fs::write(path, baseline::format(&baseline::lower(&old, &found)?))?;
            Ok(())
        }
        _ => Err("expected no argument, or `lower`".into()),
    }
}
