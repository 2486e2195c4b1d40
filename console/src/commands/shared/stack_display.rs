//! Options that say how stacks are printed, for every kind that prints some.

use crate::{
    grammar::{Opt, Take, Texts},
    query::StackTrims,
    settings::StackDisplayArgs,
};

/// Arguments of a query that prints stacks.
pub(crate) trait ShowsStacks {
    fn stacks(&mut self) -> &mut StackDisplayArgs;
}

pub(crate) const fn show_stack_option<A: ShowsStacks>() -> Opt<A> {
    Opt {
        names: &["-ss", "-ShowStack"],
        help: "print stacks with function names",
        details: "Kernel frames first, then user frames. A function that the compiler put into \
                  another one is a frame of its own, marked [inlined]. Without symbols a frame \
                  is module+0xOFFSET; see .sympath.",
        example: "-ShowStack",
        take: Take::Switch(|args| &mut args.stacks().show),
    }
}

pub(crate) const fn show_address_option<A: ShowsStacks>() -> Opt<A> {
    Opt {
        names: &["-ShowAddress"],
        help: "print offset and address of each frame",
        details: "With -ShowStack: module!function+0xOFFSET and the address.",
        example: "-ShowStack -ShowAddress",
        take: Take::Switch(|args| &mut args.stacks().address),
    }
}

pub(crate) const fn show_line_option<A: ShowsStacks>() -> Opt<A> {
    Opt {
        names: &["-ShowLine"],
        help: "print source file and line of each frame",
        details: "With -ShowStack, where the symbols have them: those of Microsoft's servers do \
                  not. Where a PDB has the address (Source Link) or the command (source server) to \
                  get the file with, that follows in brackets.",
        example: "-ShowStack -ShowLine",
        take: Take::Switch(|args| &mut args.stacks().line),
    }
}

/// Arguments of a query that groups by stacks.
pub(crate) trait TrimsStacks {
    /// What is left out of them.
    fn trims(&mut self) -> &mut StackTrims;
}

pub(crate) const fn fold_stack_option<A: TrimsStacks>(example: &'static str) -> Opt<A> {
    Opt {
        names: &["-FoldStack"],
        help: "leave frames out of the stacks of groups",
        details: "Stacks that differ in nothing but these frames are one group. A filter is compared \
                  with module!function.",
        example,
        take: Take::Filter(Texts::Frames, |args| &mut args.trims().fold),
    }
}

pub(crate) const fn stack_from_option<A: TrimsStacks>(example: &'static str) -> Opt<A> {
    Opt {
        names: &["-StackFrom"],
        help: "begin the stacks of groups at a frame",
        details: "What the first frame that matches calls is left out; a stack without such a frame \
                  stays whole.",
        example,
        take: Take::Filter(Texts::Frames, |args| &mut args.trims().from),
    }
}
