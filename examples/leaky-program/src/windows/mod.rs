//! What the program does on Windows: rounds of leaks, each leak in its own function.

mod child;
mod gui;
mod kernel;
mod memory;
mod truth;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, thread};

use self::truth::Truth;

type RoundResult = Result<(), Box<dyn std::error::Error>>;

/// Time between two rounds. Each round leaks one event, so the leak rate is known.
const ROUND: Duration = Duration::from_millis(100);

pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "leaky-program: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> RoundResult {
    let words: Vec<String> = env::args().skip(1).collect();
    let (file, rest) = words.split_first().ok_or("name the file for the truth")?;
    let truth = Truth::append_to(&PathBuf::from(file))?;
    if rest.first().is_some_and(|word| word == child::SWITCH) {
        return child::run(&truth);
    }
    let seconds = rest.first().map_or(Ok(10.0), |seconds| seconds.parse::<f64>())?;
    if rest.get(1).is_some_and(|word| word == "--wait") {
        // The caller starts a heap recording for this process id.
        writeln!(io::stdout(), "ready {}", std::process::id())?;
        io::stdin().read_line(&mut String::new())?;
    }
    truth.started()?;
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let child = child::start(&truth, file)?;
    let mut round = 0;
    while Instant::now() < end {
        kernel::round(&truth, round)?;
        memory::round(&truth, round)?;
        gui::round(&truth, round)?;
        round += 1;
        thread::sleep(ROUND);
    }
    kernel::race(&truth)?;
    child::wait(child)?;
    truth.waits()?;
    writeln!(io::stdout(), "done")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    truth.exits()?;
    Ok(())
}
