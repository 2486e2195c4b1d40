//! Parts of stacks to rows of the stacks table.

use std::hash::BuildHasher;

use handlescope_model::tables::Stacks;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::{AddressSpaces, FragmentRef, Fragments, FrameInterner, FrameKey};

/// Turns the parts of a stack into frames and numbers the distinct stacks.
///
/// The same parts mean the same stack as long as no module involved is loaded or unloaded, so each
/// answer is kept with the time for which it holds.
pub struct StackResolver<'a> {
    fragments: &'a Fragments,
    spaces: &'a AddressSpaces,
    frames: FrameInterner,
    lists: Vec<Vec<u32>>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    known: HashMap<(FragmentRef, FragmentRef, u32), Vec<Answer>>,
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    from: i64,
    to: i64,
    stack: Option<u32>,
}

impl<'a> StackResolver<'a> {
    /// A resolver of these fragments.
    pub fn new(fragments: &'a Fragments, spaces: &'a AddressSpaces) -> Self {
        Self {
            fragments,
            spaces,
            frames: FrameInterner::default(),
            lists: Vec::new(),
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            known: HashMap::new(),
        }
    }

    /// The stack of an event: its parts, and the process and raw time that decide the modules.
    ///
    /// `None` when no part has frames.
    pub fn stack(
        &mut self,
        parts: [FragmentRef; 2],
        more: &[FragmentRef],
        pid: u32,
        time: i64,
    ) -> Option<u32> {
        if parts[0] == FragmentRef::NONE {
            return None;
        }
        let key = (parts[0], parts[1], pid);
        if more.is_empty()
            && let Some(answers) = self.known.get(&key)
            && let Some(answer) = answers.iter().find(|a| a.from <= time && time < a.to)
        {
            return answer.stack;
        }
        let answer = self.resolve(parts.iter().chain(more), pid, time);
        if more.is_empty() {
            self.known.entry(key).or_default().push(answer);
        }
        answer.stack
    }

    /// The frames of the stacks.
    pub fn frames(&self) -> &FrameInterner {
        &self.frames
    }

    /// The stacks table.
    pub fn into_table(self) -> Stacks {
        Stacks { frames: self.lists }
    }

    fn resolve<'f>(
        &mut self,
        parts: impl Iterator<Item = &'f FragmentRef>,
        pid: u32,
        time: i64,
    ) -> Answer {
        let (mut from, mut to) = (i64::MIN, i64::MAX);
        let mut list = Vec::new();
        for part in parts {
            for address in self.fragments.addresses(*part) {
                let located = self.spaces.locate(pid, *address, time);
                from = from.max(located.from);
                to = to.min(located.to);
                let key = match located.place {
                    Some((module, rva)) => FrameKey::InModule(module, rva),
                    None => FrameKey::Address(*address),
                };
                list.push(self.frames.intern(key));
            }
        }
        let stack = (!list.is_empty()).then(|| self.intern(list));
        Answer { from, to, stack }
    }

    fn intern(&mut self, list: Vec<u32>) -> u32 {
        let Self { lists, table, hasher, .. } = self;
        let hash = hasher.hash_one(&list);
        if let Some(stack) = table.find(hash, |stack| lists[*stack as usize] == list) {
            return *stack;
        }
        let stack = lists.len() as u32;
        lists.push(list);
        table.insert_unique(hash, stack, |stack| hasher.hash_one(&lists[*stack as usize]));
        stack
    }
}
