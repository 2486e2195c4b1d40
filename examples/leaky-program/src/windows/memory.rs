//! Heap blocks and pages.

use leaky_program::truth::AllocationKind;
use windows::Win32::System::Memory::{
    GetProcessHeap, HEAP_FLAGS, HeapAlloc, HeapFree, MEM_COMMIT, MEM_RELEASE, MEM_RESERVE,
    PAGE_READWRITE, VirtualAlloc, VirtualFree,
};

use super::RoundResult;
use super::truth::Truth;

/// Size of a leaked block in bytes; nothing else is likely to have it.
const BLOCK_BYTES: usize = 4_242;

/// Size of a page allocation, bytes.
const PAGES_BYTES: usize = 0x4000;

/// Runs one round: a block leaks in every round, pages in every third.
pub fn round(truth: &Truth, round: u32) -> RoundResult {
    leak_blocks(truth)?;
    free_blocks(truth)?;
    commit_pages(truth, round.is_multiple_of(3))
}

#[inline(never)]
fn leak_blocks(truth: &Truth) -> RoundResult {
    allocate(truth, "leak_blocks").map(drop)
}

#[inline(never)]
fn free_blocks(truth: &Truth) -> RoundResult {
    let block = allocate(truth, "free_blocks")?;
    // SAFETY: the block is from this heap and is no longer used.
    unsafe { HeapFree(GetProcessHeap()?, HEAP_FLAGS(0), Some(block as *const _)) }?;
    truth.freed("free_blocks", AllocationKind::Heap, block)?;
    Ok(())
}

fn allocate(truth: &Truth, function: &str) -> Result<usize, Box<dyn std::error::Error>> {
    // SAFETY: the heap is the process's own.
    let block = unsafe { HeapAlloc(GetProcessHeap()?, HEAP_FLAGS(0), BLOCK_BYTES) } as usize;
    if block == 0 {
        return Err("no heap block".into());
    }
    truth.allocated(function, AllocationKind::Heap, block, BLOCK_BYTES)?;
    Ok(block)
}

/// Commits pages, and frees them unless they are to leak.
#[inline(never)]
fn commit_pages(truth: &Truth, is_leaked: bool) -> RoundResult {
    // SAFETY: the system chooses the address.
    let pages =
        unsafe { VirtualAlloc(None, PAGES_BYTES, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE) };
    if pages.is_null() {
        return Err(windows::core::Error::from_thread().into());
    }
    truth.allocated("commit_pages", AllocationKind::Commit, pages as usize, PAGES_BYTES)?;
    if !is_leaked {
        // SAFETY: nothing uses the pages.
        unsafe { VirtualFree(pages, 0, MEM_RELEASE) }?;
        truth.freed("commit_pages", AllocationKind::Commit, pages as usize)?;
    }
    Ok(())
}
