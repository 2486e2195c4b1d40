//! Stacks that begin with one function of the program; they are one suspect if its callers leak alike.

use std::cmp::Reverse;

use handlescope_model::StackIdx;
use hashbrown::HashMap;

use super::alike::{CallerLeaks, alike};
use super::list::AcquisitionGroups;
use super::program_groups::ProgramStack;
use super::programs::united;
use crate::frame_view::FrameIdentity;
use crate::program_frames::program_functions;

/// Maximum depth of callers of callers that is compared.
const MAX_DEPTH: usize = 16;

/// Stacks of one function that leak alike.
#[derive(Debug, Clone)]
pub struct SharedFunction {
    /// The acquiring function and the callers that all these stacks share, innermost first, as stack filters see them.
    pub path: Vec<String>,
    /// How many functions of the path tell its stacks from others of the function: 1 for all stacks that begin with it.
    pub telling: usize,
    /// Callers of the last function in the path, worst first; empty if only one stack leaks.
    pub callers: Vec<Caller>,
    /// Stacks of the function that do not leak like these.
    pub others: OtherCallers,
}

/// A function that calls the function of a suspect.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The function as stack filters see it; `None` if no function of the program calls.
    pub function: Option<String>,
    /// The stack through it that leaks most.
    pub stack: StackIdx,
    pub leaked: CallerLeaks,
}

/// Other callers of the same function, which leak differently from those of a suspect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherCallers {
    /// Number of stacks.
    pub stacks: usize,
    pub leaked: CallerLeaks,
}

/// Some stacks of a function, by index among all of its stacks.
struct Branch {
    stacks: Vec<usize>,
    /// Number of callers that all of them share.
    depth: usize,
}

/// Combines the stacks of one function that leak alike; every stack is in one of the results. `None` means the stack
/// stands alone.
pub fn put_together<'t>(
    acquired: &AcquisitionGroups<'_>,
    parts: Vec<ProgramStack<'t>>,
) -> Vec<(Vec<ProgramStack<'t>>, Option<SharedFunction>)> {
    let Some((frames, trims)) = acquired.frames.zip(acquired.stacks.as_deref()) else {
        return parts.into_iter().map(|part| (vec![part], None)).collect();
    };
    let named = frames.named();
    let mut numbers: HashMap<FrameIdentity<'_>, u32> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    let mut path = |part: &ProgramStack<'_>| -> Vec<u32> {
        let mut path = Vec::new();
        for view in part.stack.into_iter().flat_map(|it| program_functions(trims, &named, it)) {
            let number = *numbers.entry(view.identity()).or_insert_with(|| {
                names.push(view.to_string());
                names.len() as u32 - 1
            });
            // A function that calls itself is one caller.
            if path.last() != Some(&number) {
                path.push(number);
            }
        }
        path
    };
    let paths: Vec<Vec<u32>> = parts.iter().map(&mut path).collect();
    let leaked: Vec<CallerLeaks> = parts
        .iter()
        .map(|part| acquired.leaked(part.groups.iter().map(|(group, _)| *group)))
        .collect();
    let all = Branch { stacks: (0..parts.len()).collect(), depth: 0 };
    let whole = CallerLeaks::sum(leaked.iter().copied());
    let name = |number: &u32| names.get(*number as usize).cloned().unwrap_or_default();
    let mut parts: Vec<Option<ProgramStack<'t>>> = parts.into_iter().map(Some).collect();
    let count = parts.len();
    let mut together = Vec::new();
    for Branch { mut stacks, depth } in branches(all, &paths, &leaked) {
        stacks.sort_by_key(|stack| Reverse(leaked.get(*stack).map_or(0, |it| it.leaked)));
        let shared = shared(stacks.iter().filter_map(|stack| paths.get(*stack)));
        let by_caller = united(stacks.iter().filter_map(|place| {
            let caller = paths.get(*place)?.get(shared.len());
            let stack = parts.get(*place)?.as_ref()?.stack?;
            Some((Some(caller), (caller, stack, *leaked.get(*place)?)))
        }));
        let mut callers: Vec<Caller> = by_caller
            .iter()
            .filter_map(|parts| {
                let (caller, stack, _) = *parts.first()?;
                let leaked = CallerLeaks::sum(parts.iter().map(|(.., leaked)| *leaked));
                Some(Caller { function: caller.map(name), stack, leaked })
            })
            .collect();
        let sum = CallerLeaks::sum(callers.iter().map(|caller| caller.leaked));
        callers.sort_by_key(|caller| Reverse(caller.leaked.leaked));
        let (path, telling) = (shared.iter().map(name).collect(), shared.len().min(depth + 1));
        let others = OtherCallers { stacks: count - stacks.len(), leaked: whole.without(sum) };
        let leaking = stacks.iter().filter(|it| leaked.get(**it).is_some_and(|it| it.leaked > 0));
        let is_one = leaking.count() < 2;
        let taken = stacks.iter().filter_map(|place| parts.get_mut(*place)?.take());
        let function = SharedFunction { path, telling, callers, others };
        if is_one {
            // A caller that leaks nothing is not part of a single-stack suspect.
            for part in taken {
                let function = SharedFunction { callers: Vec::new(), ..function.clone() };
                together.push((vec![part], Some(function)));
            }
        } else {
            together.push((taken.collect(), Some(function)));
        }
    }
    together
}

/// Returns the common prefix of some paths.
fn shared<'p>(mut paths: impl Iterator<Item = &'p Vec<u32>>) -> &'p [u32] {
    let first = paths.next().map_or(&[][..], |path| path);
    paths.fold(first, |shared, path| {
        let same = shared.iter().zip(path).take_while(|(one, other)| one == other).count();
        shared.get(..same).unwrap_or_default()
    })
}

/// Splits the stacks of one function into those that leak alike. Callers are compared first, then their callers.
fn branches(all: Branch, paths: &[Vec<u32>], leaked: &[CallerLeaks]) -> Vec<Branch> {
    let (mut ahead, mut done) = (vec![all], Vec::new());
    while let Some(Branch { mut stacks, depth }) = ahead.pop() {
        for level in depth + 1..=depth + MAX_DEPTH {
            let classes = united(stacks.iter().map(|place| {
                let path = paths.get(*place).map_or(&[][..], |path| path);
                let path = path.get(depth + 1..path.len().min(level + 1)).unwrap_or_default();
                (Some(path), *place)
            }));
            let sum = |class: &Vec<usize>| {
                CallerLeaks::sum(class.iter().filter_map(|place| leaked.get(*place).copied()))
            };
            let sums: Vec<CallerLeaks> = classes.iter().map(sum).collect();
            let is_last = classes.len() == stacks.len();
            stacks.clear();
            for (class, is_alike) in classes.into_iter().zip(alike(&sums)) {
                if is_alike {
                    stacks.extend(class);
                } else {
                    ahead.push(Branch { stacks: class, depth: level });
                }
            }
            if is_last {
                break;
            }
        }
        done.push(Branch { stacks, depth });
    }
    done
}
