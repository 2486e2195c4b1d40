//! `.sys`

use super::{
    Command, CommandError, Context, Entered, Signature,
    settings::{USUAL, one},
    shared::groups,
};
use crate::{
    filter::SystemModules,
    grammar::{Arguments, ParseError},
    settings::Change,
    values::ValueError,
};

#[derive(Debug, Default)]
pub(crate) struct SysArgs {
    /// The modules that count as those of the system from now on; `None` changes nothing.
    system: Option<SystemModules>,
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
                  frames dim and all others bold. usual goes back to the kernel, ntdll, KernelBase, \
                  kernel32 and wow64. Without an argument it prints the setting.",
        examples: &[
            ".sys ntoskrnl.exe;ntdll.dll;kernel*.dll;win32*;user32.dll",
            ".sys usual",
            ".sys",
        ],
    };

    fn parse(entered: &Entered<'_>) -> Result<SysArgs, ParseError> {
        let modules = |text: &str| {
            SystemModules::new(text)
                .map_err(|error| ValueError::Filter { reason: error.to_string() })
        };
        let system = match one(entered, "one list of modules, joined by semicolons", modules)? {
            Change::None => None,
            Change::Usual => Some(SystemModules::default()),
            Change::To(modules) => Some(modules),
        };
        Ok(SysArgs { system })
    }

    fn run(args: SysArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let modules = &mut context.session.system_modules;
        if let Some(system) = args.system {
            *modules = system;
        }
        context.messages.note(format_args!("modules of the system: {}", modules.text()));
        Ok(())
    }
}
