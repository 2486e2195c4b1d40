//! `.sys`

use super::{
    Command, CommandError, Context, Entered, Signature,
    settings::{USUAL, one},
    shared::groups,
};
use crate::{
    filter::SystemModules,
    grammar::{Arguments, ParseError},
    settings::{Change, modules},
};

#[derive(Debug, Default)]
pub(crate) struct SysArgs {
    /// What becomes of the modules that count as those of the system.
    system: Change<SystemModules>,
}

pub(crate) struct Sys;

impl Command for Sys {
    type Args = SysArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".sys"],
        group: groups::PRINTING,
        usage: "[FILTER]",
        arguments: Arguments::Word(|| {
            vec![(USUAL, "the kernel, ntdll, KernelBase, kernel32, wow64")]
        }),
        summary: "show or set which modules are those of the system",
        details: "FILTER is a list of file names joined by semicolons, with * and ?. The innermost frame \
                  of .dump Stack is the first one outside of these modules, and a terminal shows their \
                  frames dim and all others bold. usual goes back to what the \
                  configuration file says, or the kernel, ntdll, KernelBase, kernel32 and wow64. Without \
                  an argument it prints the setting.",
        examples: &[
            ".sys ntoskrnl.exe;ntdll.dll;kernel*.dll;win32*;user32.dll",
            ".sys usual",
            ".sys",
        ],
    };

    fn parse(entered: &Entered<'_>) -> Result<SysArgs, ParseError> {
        let system = one(entered, "one list of modules, joined by semicolons", modules)?;
        Ok(SysArgs { system })
    }

    fn run(args: SysArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let settings = &mut context.session.settings;
        args.system.apply(&mut settings.session.system_modules);
        let modules = settings.system_modules();
        context.messages.note(format_args!("modules of the system: {}", modules.text()));
        Ok(())
    }
}
