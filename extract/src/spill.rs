//! Keeps memory in temporary files, for extractions with columns and hash tables that outgrow their memory limit.
//!
//! In a program that installs [`SpillingAllocator`] and holds a [`Spill`], large blocks come from process memory up to
//! three eighths of the limit. For growing columns, which are rarely read again soon, the bound is a tenth. Beyond
//! that, blocks are in mapped temporary files. The system writes file pages back and drops them when memory is short;
//! [`Spill`] drops them when the process comes near its limit. So everything that grows with a trace is limited,
//! whichever library keeps it, and the code that reads or writes it stays the same.
//!
//! Only on Linux and Windows: macOS cannot reserve the space of a mapped file, and a full disk would kill the program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, ptr};

use handlescope_model::guard::lock;
use memmap2::MmapMut;

use crate::options::MIN_MEMORY;

/// Smallest block that may be in a file.
const LARGE: usize = 4 << 20;

/// Divisor of the memory for large blocks, which gives the part that columns may fill. A column's page is rarely read
/// again soon, a hash table's often.
const COLUMN_SHARE_DIVISOR: usize = 4;

/// Time between two checks of the process's memory. It grows by some megabytes in between.
const INTERVAL: Duration = Duration::from_millis(5);

/// Minimum time between two times that pages of hash tables are dropped.
const TABLES_INTERVAL: Duration = Duration::from_millis(200);

/// Stack size of the checking thread in bytes.
const TRIMMER_STACK: usize = 256 << 10;

/// Large blocks of the process.
struct Blocks {
    /// Bytes of large blocks that may be in memory.
    limit: AtomicUsize,
    /// Bytes of large blocks that are in memory.
    in_memory: AtomicUsize,
    /// Folder of the files; `None` while no block goes to a file.
    folder: Mutex<Option<PathBuf>>,
    /// Blocks in files, by address.
    mapped: Mutex<BTreeMap<usize, MappedBlock>>,
}

static BLOCKS: Blocks = Blocks::new();

/// Block that is the content of an unnamed temporary file.
struct MappedBlock {
    map: MmapMut,
    file: File,
    /// Whether it is mostly read and written in order. In a hash table, any page may be the next.
    is_column: bool,
}

impl MappedBlock {
    /// Creates a block of zeros; `None` if the folder or the system has no room for it.
    #[allow(unsafe_code, reason = "a mapping of a file is unsafe")]
    fn new(folder: &Path, size: usize, is_column: bool) -> Option<Self> {
        let file = tempfile::tempfile_in(folder).ok()?;
        reserve(&file, size).ok()?;
        // SAFETY: the file has no name, so no other program changes or cuts it.
        let map = unsafe { MmapMut::map_mut(&file) }.ok()?;
        Some(Self { map, file, is_column })
    }

    /// Returns the same content in a block of another size.
    #[allow(unsafe_code, reason = "a mapping of a file is unsafe")]
    fn resized(self, size: usize) -> Result<Self, Self> {
        if reserve(&self.file, size).is_err() {
            return Err(self);
        }
        // SAFETY: as in `new`. The old mapping of the same pages is dropped before the new one is handed out.
        match unsafe { MmapMut::map_mut(&self.file) } {
            Ok(map) => Ok(Self { map, file: self.file, is_column: true }),
            Err(_) => Err(self),
        }
    }

    fn address(&self) -> usize {
        self.map.as_ptr() as usize
    }

    #[cfg(unix)]
    #[allow(unsafe_code, reason = "advice on private pages would lose them")]
    fn drop_pages(&self) {
        // SAFETY: the mapping is shared, so a page that is read again comes from the file with what was written. An
        // error means that the pages stay.
        let _ = unsafe { self.map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
    }

    /// Does nothing: Windows takes pages from a process when it needs them.
    #[cfg(not(unix))]
    fn drop_pages(&self) {}

    fn start(&mut self) -> *mut u8 {
        self.map.as_mut_ptr()
    }
}

/// Makes a file at least this long, with space reserved on the disk: writing a page without space would kill the
/// program.
#[cfg(target_os = "linux")]
fn reserve(file: &File, size: usize) -> io::Result<()> {
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size as u64)?;
    Ok(())
}

/// Makes a file this long. NTFS reserves the space of a file that is not sparse.
#[cfg(windows)]
fn reserve(file: &File, size: usize) -> io::Result<()> {
    file.set_len(size as u64)
}

#[cfg(not(any(target_os = "linux", windows)))]
fn reserve(_: &File, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Blocks {
    const fn new() -> Self {
        Self {
            limit: AtomicUsize::new(usize::MAX),
            in_memory: AtomicUsize::new(0),
            folder: Mutex::new(None),
            mapped: Mutex::new(BTreeMap::new()),
        }
    }

    /// Returns a block of the system's allocator, or for large ones possibly one in a file. Null if there is neither.
    fn allocate(&self, layout: Layout, in_system: impl FnOnce() -> *mut u8) -> *mut u8 {
        let size = layout.size();
        if is_small(size, layout) {
            return in_system();
        }
        let in_memory = self.in_memory.fetch_add(size, Ordering::Relaxed) + size;
        let has_room = in_memory <= self.limit.load(Ordering::Relaxed);
        let mapped = if has_room { None } else { self.map(size, is_column(layout)) };
        let start = mapped.unwrap_or_else(in_system);
        if mapped.is_some() || start.is_null() {
            self.in_memory.fetch_sub(size, Ordering::Relaxed);
        }
        start
    }

    /// Creates a block in a file; `None` if that fails.
    fn map(&self, size: usize, is_column: bool) -> Option<*mut u8> {
        let folder = lock(&self.folder).clone()?;
        let mut block = MappedBlock::new(&folder, size, is_column)?;
        let start = block.start();
        lock(&self.mapped).insert(block.address(), block);
        Some(start)
    }

    /// Copies a file's block that cannot grow to a larger block of memory; null if there is none.
    ///
    /// # Safety
    /// `size` must be at least that of `layout`, which is the block's, and not too large for its alignment.
    #[allow(unsafe_code, reason = "allocators are unsafe")]
    unsafe fn copied(&self, block: &MappedBlock, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        let new = unsafe { System.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks have at least this many bytes and do not overlap.
            unsafe { ptr::copy_nonoverlapping(block.map.as_ptr(), new, layout.size()) };
            self.in_memory.fetch_add(size, Ordering::Relaxed);
        }
        new
    }

    /// Takes a block out of the list if it is in a file.
    fn take(&self, start: *mut u8) -> Option<MappedBlock> {
        lock(&self.mapped).remove(&(start as usize))
    }

    /// Drops the pages of columns, or of all files, from the process. They stay in the system's cache and in the files.
    fn drop_pages(&self, of_all: bool) {
        let mapped = lock(&self.mapped);
        let blocks = mapped.values().filter(|block| of_all || block.is_column);
        blocks.for_each(MappedBlock::drop_pages);
    }
}

#[allow(unsafe_code, reason = "allocators are unsafe")]
// SAFETY: a block is either from the system's allocator and goes back to it with the same layout, or a mapping. A
// mapping has at least the block's size and lives until it is freed. It begins at a page boundary, and no large block
// has a larger alignment than a page.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        self.allocate(layout, || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's. A new file has zeros too.
        self.allocate(layout, || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if !is_small(layout.size(), layout) {
            if self.take(start).is_some() {
                return;
            }
            self.in_memory.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        // SAFETY: the caller's; the block is not mapped, so it is from the system's allocator.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (was_small, is_small) = (is_small(layout.size(), layout), is_small(size, layout));
        if was_small && is_small {
            // SAFETY: the caller's.
            return unsafe { System.realloc(start, layout, size) };
        }
        if !was_small && !is_small {
            if let Some(block) = self.take(start) {
                let (block, resized) = match block.resized(size) {
                    Ok(mut block) => {
                        let start = block.start();
                        (block, start)
                    }
                    // The disk is full.
                    Err(block) => {
                        // SAFETY: the caller's.
                        let copy = unsafe { self.copied(&block, layout, size) };
                        if !copy.is_null() {
                            return copy;
                        }
                        (block, copy)
                    }
                };
                lock(&self.mapped).insert(block.address(), block);
                return resized;
            }
            let others = self.in_memory.load(Ordering::Relaxed).saturating_sub(layout.size());
            let is_shrunk = size <= layout.size();
            if is_shrunk
                || others.saturating_add(size)
                    <= self.limit.load(Ordering::Relaxed) / COLUMN_SHARE_DIVISOR
            {
                // SAFETY: the caller's; the block is not mapped, so it is from the system's allocator.
                let resized = unsafe { System.realloc(start, layout, size) };
                if !resized.is_null() {
                    self.in_memory.fetch_add(size, Ordering::Relaxed);
                    self.in_memory.fetch_sub(layout.size(), Ordering::Relaxed);
                }
                return resized;
            }
        }
        // From memory into a file, or between the sizes of small and large blocks.
        // SAFETY: the size is not 0 and not too large, by the caller's contract.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let column = if was_small || is_small { None } else { self.map(size, true) };
        // SAFETY: the caller's.
        let new = column.unwrap_or_else(|| unsafe { self.alloc(new_layout) });
        if !new.is_null() {
            // SAFETY: both blocks have at least this many bytes and do not overlap; the old one is freed once.
            unsafe {
                ptr::copy_nonoverlapping(start, new, size.min(layout.size()));
                self.dealloc(start, layout);
            }
        }
        new
    }
}

/// Whether a block of this size is always in memory. Mappings begin at pages, of at least 4096 bytes.
fn is_small(size: usize, layout: Layout) -> bool {
    size < LARGE || layout.align() > 4096
}

/// Whether a block is certainly a column. Hash tables are aligned to the bytes they search at a time: 16 with SSE2
/// (hashbrown's `Group`), otherwise 8, like columns. In the latter case, columns are recognized because they grow in
/// place.
fn is_column(layout: Layout) -> bool {
    cfg!(target_feature = "sse2") && layout.align() < 16
}

/// Allocator for a program with memory-limited extractions: `#[global_allocator]`.
///
/// It is the system's allocator except during an extraction with a limit.
pub struct SpillingAllocator;

#[allow(unsafe_code, reason = "allocators are unsafe")]
// SAFETY: everything is left to another allocator.
unsafe impl GlobalAlloc for SpillingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { BLOCKS.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { BLOCKS.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { BLOCKS.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { BLOCKS.realloc(start, layout, size) }
    }
}

/// Memory limit for as long as this is held, in a program that installs [`SpillingAllocator`].
///
/// Only one at a time: while one is held, others have no effect.
pub struct Spill {
    trimmer: Option<Trimmer>,
}

impl Spill {
    /// Lets blocks that do not fit into `max_memory` bytes be in unnamed files in this folder.
    pub fn start(folder: &Path, max_memory: u64) -> Self {
        let mut current = lock(&BLOCKS.folder);
        if current.is_some() {
            return Self { trimmer: None };
        }
        *current = Some(folder.to_path_buf());
        drop(current);
        // Leaves room, because the process grows between two checks of its memory, and while pages are dropped.
        let max_memory = max_memory.max(MIN_MEMORY) / 4 * 3;
        let in_memory = usize::try_from(max_memory / 2).unwrap_or(usize::MAX);
        BLOCKS.limit.store(in_memory, Ordering::Relaxed);
        Self { trimmer: Some(Trimmer::start(max_memory)) }
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if let Some(trimmer) = self.trimmer.take() {
            BLOCKS.limit.store(usize::MAX, Ordering::Relaxed);
            *lock(&BLOCKS.folder) = None;
            trimmer.stop();
        }
    }
}

/// Thread that keeps the process below its limit.
struct Trimmer {
    /// The thread ends when this is dropped.
    alive: Arc<()>,
    thread: Option<JoinHandle<()>>,
}

impl Trimmer {
    fn start(max_memory: u64) -> Self {
        let alive = Arc::new(());
        let held = Arc::downgrade(&alive);
        let trim = move || trim_while(max_memory, || held.strong_count() > 0);
        // Without this thread, the system drops pages when it is short of memory.
        let thread = thread::Builder::new().stack_size(TRIMMER_STACK).spawn(trim).ok();
        Self { alive, thread }
    }

    fn stop(self) {
        let Self { alive, thread } = self;
        drop(alive);
        if let Some(thread) = thread {
            thread.thread().unpark();
            // The thread returns nothing of interest.
            let _ = thread.join();
        }
    }
}

/// Drops file pages whenever the process comes near its limit.
fn trim_while(max_memory: u64, is_held: impl Fn() -> bool) {
    let (mut left, mut dropped_all) = (0, Instant::now());
    while is_held()
        && let Some(mut resident) = Resident::now()
    {
        if resident.needs_trim(max_memory, left) {
            BLOCKS.drop_pages(false);
            resident = Resident::now().unwrap_or(resident);
            // Hash tables in files are read again soon, so dropping them more often costs more time.
            let is_due = dropped_all.elapsed() > TABLES_INTERVAL || resident.is_urgent(max_memory);
            if resident.all > max_memory && is_due {
                BLOCKS.drop_pages(true);
                resident = Resident::now().unwrap_or(resident);
                dropped_all = Instant::now();
            }
            left = resident.of_files;
        }
        left = left.min(resident.of_files);
        thread::park_timeout(INTERVAL);
    }
}

/// Resident memory of the process in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resident {
    all: u64,
    /// File pages, including those of programs and libraries.
    of_files: u64,
}

impl Resident {
    /// Returns the current memory of this process; `None` if the system does not tell.
    fn now() -> Option<Self> {
        // <https://docs.kernel.org/filesystems/proc.html>
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let bytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kilobytes << 10)
        };
        Some(Self { all: bytes("VmRSS:")?, of_files: bytes("RssFile:")? })
    }

    /// Whether the process is near its limit, and has enough file pages to be worth dropping. Pages left after the last
    /// drop (`left`) do not count: they are in use, or belong to programs.
    fn needs_trim(self, max_memory: u64, left: u64) -> bool {
        let Self { all, of_files } = self;
        all > max_memory / 4 * 3 && of_files.saturating_sub(left) > max_memory / 8
    }

    /// Whether the process is so near its limit that any page has to go, however soon it is read again.
    fn is_urgent(self, max_memory: u64) -> bool {
        self.all > max_memory / 7 * 8
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "allocators are unsafe")]
mod tests {
    use std::cell::RefCell;
    use std::ptr::NonNull;

    use allocator_api2::alloc::{AllocError, Allocator, Global};

    use super::*;

    /// Blocks with at most this many bytes in memory, and the folder of their files.
    fn blocks(limit: usize) -> (Blocks, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let blocks = Blocks::new();
        blocks.limit.store(limit, Ordering::Relaxed);
        *lock(&blocks.folder) = Some(folder.path().to_path_buf());
        (blocks, folder)
    }

    fn mapped(blocks: &Blocks) -> usize {
        lock(&blocks.mapped).len()
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn a_growing_block_moves_into_a_file_and_keeps_its_content() {
        let (blocks, _folder) = blocks(3 * LARGE);
        // SAFETY: the layouts are those of the block at the time, and everything read was written.
        unsafe {
            let mut size = 1000;
            let mut start = blocks.alloc(layout(size));
            let mut value = 1_u8;
            start.write_bytes(value, size);
            let mut moved = Vec::new();
            while size < 20 * LARGE {
                let larger = size * 3;
                start = blocks.realloc(start, layout(size), larger);
                assert!((0..size).step_by(511).all(|at| *start.add(at) != 0), "{size}");
                assert_eq!(*start.add(size - 1), value);
                value += 1;
                start.add(size).write_bytes(value, larger - size);
                size = larger;
                moved.push(mapped(&blocks));
            }
            assert_eq!((moved.first(), moved.last()), (Some(&0), Some(&1)));
            blocks.drop_pages(true);
            assert_eq!((*start, *start.add(size - 1)), (1, value), "after its pages were dropped");
            start = blocks.realloc(start, layout(size), LARGE - 1);
            assert_eq!((mapped(&blocks), *start), (0, 1), "small again");
            blocks.dealloc(start, layout(LARGE - 1));
        }
        assert_eq!(blocks.in_memory.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn large_blocks_lie_in_memory_until_the_limit_and_in_files_beyond() {
        let (blocks, _folder) = blocks(2 * LARGE);
        // SAFETY: each block is freed once, with its layout.
        unsafe {
            let all: Vec<*mut u8> = (0..4).map(|_| blocks.alloc_zeroed(layout(LARGE))).collect();
            assert_eq!(mapped(&blocks), 2);
            assert!(all.iter().all(|start| *start.add(LARGE - 1) == 0));
            all.into_iter().for_each(|start| blocks.dealloc(start, layout(LARGE)));
        }
        assert_eq!((mapped(&blocks), blocks.in_memory.load(Ordering::Relaxed)), (0, 0));
    }

    /// Layouts of the blocks a collection requested.
    #[derive(Default)]
    struct Requests(RefCell<Vec<Layout>>);

    // SAFETY: everything is left to another allocator.
    unsafe impl Allocator for &Requests {
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            self.0.borrow_mut().push(layout);
            Global.allocate(layout)
        }

        unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
            // SAFETY: the caller's.
            unsafe { Global.deallocate(start, layout) }
        }
    }

    #[test]
    #[cfg(target_feature = "sse2")]
    fn the_block_of_a_hash_table_is_known_from_that_of_a_column() {
        let requests = Requests::default();
        let mut table = hashbrown::HashMap::with_capacity_in(1000, &requests);
        table.insert(1_u64, 2_u32);
        let layouts = requests.0.borrow();
        assert!(matches!(layouts[..], [table] if !is_column(table)), "{layouts:?}");
        assert!(is_column(Layout::array::<u64>(1000).unwrap()));
    }

    #[test]
    fn a_block_in_a_file_is_of_a_column_or_of_a_hash_table_from_its_first_byte() {
        let (blocks, _folder) = blocks(0);
        let of_table = Layout::from_size_align(LARGE, 16).unwrap();
        for layout in [layout(LARGE), of_table] {
            // SAFETY: the block is freed once, with its layout.
            unsafe {
                let start = blocks.alloc_zeroed(layout);
                let kinds: Vec<bool> =
                    lock(&blocks.mapped).values().map(|block| block.is_column).collect();
                assert_eq!(kinds, [is_column(layout)]);
                blocks.dealloc(start, layout);
            }
        }
    }

    #[test]
    fn where_no_file_can_be_made_memory_is_used() {
        let (blocks, folder) = blocks(0);
        folder.close().unwrap();
        // SAFETY: the block is freed once, with its layout.
        unsafe {
            let start = blocks.alloc(layout(LARGE));
            start.write_bytes(1, LARGE);
            blocks.dealloc(start, layout(LARGE));
        }
        assert_eq!(blocks.in_memory.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_block_whose_file_cannot_grow_moves_to_memory_with_its_content() {
        let (blocks, _folder) = blocks(0);
        // SAFETY: the layouts are those of the block at the time, and everything read was written.
        unsafe {
            let start = blocks.alloc(layout(LARGE));
            start.write_bytes(7, LARGE);
            // As on a full disk, no space can be reserved.
            let full = File::open("/dev/null").unwrap();
            lock(&blocks.mapped).get_mut(&(start as usize)).unwrap().file = full;
            let start = blocks.realloc(start, layout(LARGE), 3 * LARGE);
            assert_eq!((mapped(&blocks), blocks.in_memory.load(Ordering::Relaxed)), (0, 3 * LARGE));
            assert_eq!((*start, *start.add(LARGE - 1)), (7, 7));
            start.add(LARGE).write_bytes(8, 2 * LARGE);
            blocks.dealloc(start, layout(3 * LARGE));
        }
        assert_eq!(blocks.in_memory.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_second_limit_has_no_effect_while_one_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let first = Spill::start(folder.path(), 0);
        let limit = BLOCKS.limit.load(Ordering::Relaxed);
        assert_eq!(limit as u64, MIN_MEMORY / 8 * 3);
        drop(Spill::start(folder.path(), 1 << 40));
        assert_eq!(BLOCKS.limit.load(Ordering::Relaxed), limit);
        drop(first);
        assert_eq!(BLOCKS.limit.load(Ordering::Relaxed), usize::MAX);
    }
}
