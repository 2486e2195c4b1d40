//! Heap blocks of a large trace.

use super::large_trace::LargeTrace;
use super::open_handles::{BenchAction, BenchHandles};
use crate::bytes::PointerSize;
use crate::payload::HeapCall;
use crate::rng::Rng;

/// Maximum number of live blocks that are not leaked.
const MAX_LIVE: usize = 100_000;
/// The one heap of every process.
const HEAP: u64 = 0x1d0_f2a3_0000;
/// Address of the first block that gets freed; these addresses are reused.
const BLOCKS: u64 = 0x1d0_f300_0000;
/// Address of the first block that is never freed.
const LEAKED_BLOCKS: u64 = 0x2d0_0000_0000;

/// The heaps of all processes. Memory use does not grow with the number of events.
#[derive(Debug)]
pub struct BenchHeaps {
    leak_percent: u32,
    processes: usize,
    /// Live blocks as (process, number).
    live: Vec<(usize, u64)>,
    free: Vec<u64>,
    pub allocs: u64,
    pub frees: u64,
    pub leaked_blocks: u64,
}

impl BenchHeaps {
    pub fn new(trace: &LargeTrace) -> Self {
        Self {
            leak_percent: trace.leak_percent,
            processes: trace.processes as usize,
            live: Vec::new(),
            free: Vec::new(),
            allocs: 0,
            frees: 0,
            leaked_blocks: 0,
        }
    }

    /// Returns the next event, and whether it has a stack; frees have none.
    pub fn next_action(&mut self, rng: &mut Rng) -> (BenchAction, bool) {
        let size = 16 + 8 * rng.below(200);
        let is_free = rng.percent(50) || self.live.len() >= MAX_LIVE;
        if is_free && !self.live.is_empty() {
            let (process, block) = self.live.swap_remove(rng.index(self.live.len()));
            self.free.push(block);
            self.frees += 1;
            return (
                action(process, HeapCall::Free { address: BLOCKS + block * 0x800 }, false),
                false,
            );
        }
        self.allocs += 1;
        let process = rng.index(self.processes);
        if rng.percent(self.leak_percent) {
            self.leaked_blocks += 1;
            let address = LEAKED_BLOCKS + self.leaked_blocks * 0x800;
            return (action(process, HeapCall::Alloc { size, address }, true), true);
        }
        let block = self.free.pop().unwrap_or(self.live.len() as u64 + 1);
        self.live.push((process, block));
        (action(process, HeapCall::Alloc { size, address: BLOCKS + block * 0x800 }, false), true)
    }
}

fn action(process: usize, event: HeapCall, leaks: bool) -> BenchAction {
    let payload = event.payload(HEAP, PointerSize::Eight);
    BenchAction { payload, pid: BenchHandles::pid(process), leaks }
}
