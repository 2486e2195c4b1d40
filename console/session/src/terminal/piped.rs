//! Sends an answer to another program: `.why | grep heap`.

use std::io::{self, ErrorKind, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::cancel::waiting_for;

/// Output to a program. [`Write::flush`] ends an answer, and returns once the program has ended.
pub struct PipedOutput {
    program: Child,
    status: Option<ExitStatus>,
}

impl PipedOutput {
    /// Starts a command line in the system's shell. Its output goes to the same place as this program's.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn start(command_line: &str) -> io::Result<PipedOutput> {
        let program = shell(command_line).stdin(Stdio::piped()).spawn()?;
        Ok(PipedOutput { program, status: None })
    }

    /// Closes the program's input, and waits for its end.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn finish(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        drop(self.program.stdin.take());
        let status = waiting_for(&mut self.program, Child::wait)?;
        self.status = Some(status);
        Ok(status)
    }
}

/// Creates a shell that runs a command line.
#[cfg(not(windows))]
fn shell(command_line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command_line]);
    shell
}

#[cfg(windows)]
fn shell(command_line: &str) -> Command {
    use std::os::windows::process::CommandExt;
    let mut shell = Command::new("cmd");
    // cmd has its own quoting.
    shell.raw_arg("/D /S /C \"").raw_arg(command_line).raw_arg("\"");
    shell
}

impl Write for PipedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = |program: &mut Child| program.stdin.as_mut().map(|input| input.write(bytes));
        let written = waiting_for(&mut self.program, write);
        written.unwrap_or_else(|| Err(ErrorKind::BrokenPipe.into()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.finish().map(drop)
    }
}

impl Drop for PipedOutput {
    /// Leaves no program behind that waits for more input.
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_the_answer_and_says_how_it_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sorted");
        let mut sort =
            PipedOutput::start(&format!("sort > '{}'", file.display())).expect("a shell");
        sort.write_all(b"b\na\n").expect("written");
        sort.flush().expect("ended");
        assert_eq!(std::fs::read(&file).expect("a file"), b"a\nb\n");
        assert!(sort.finish().expect("ended before").success());
        assert_eq!(sort.write(b"c").expect_err("ended").kind(), ErrorKind::BrokenPipe);
        let mut failing = PipedOutput::start("cat > /dev/null; exit 3").expect("a shell");
        failing.write_all(b"a").expect("written");
        assert_eq!(failing.finish().expect("ended").code(), Some(3));
    }

    #[test]
    fn a_program_that_ends_early_breaks_the_pipe_and_did_not_fail() {
        let mut head = PipedOutput::start("head -n 1 > /dev/null").expect("a shell");
        let written = (0..1_000_000).try_for_each(|line| writeln!(head, "{line}"));
        assert_eq!(written.expect_err("ended").kind(), ErrorKind::BrokenPipe);
        assert!(head.finish().expect("ended").success());
    }
}
