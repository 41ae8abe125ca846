//! Writes the seeds of every target, one folder a target, for a fuzzer to begin with: `seeds DIR`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let Some(dir) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds DIR");
        return ExitCode::from(2);
    };
    match write(&dir) {
        Ok(count) => {
            println!("{count} seeds in {}", dir.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("seeds: {}: {error}", dir.display());
            ExitCode::FAILURE
        }
    }
}

fn write(dir: &std::path::Path) -> io::Result<usize> {
    let mut count = 0;
    for target in holotype_fuzz::TARGETS {
        let folder = dir.join(target.name);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in target.all_seeds()? {
            fs::write(folder.join(name), bytes)?;
            count += 1;
        }
    }
    // The canary begins with nothing.
    fs::create_dir_all(dir.join("canary"))?;
    Ok(count)
}
