//! Stacks of a large trace, and the modules of their frames.

use super::large_trace::LargeTrace;
use super::open_handles::BenchHandles;
use crate::bytes::Guid;
use crate::rng::Rng;
use crate::scenario::TraceBuilder;

/// A module of every process, or of the kernel.
struct BenchModule {
    path: &'static str,
    base: u64,
    size: u64,
}

const KERNEL: BenchModule = BenchModule {
    path: r"C:\Windows\system32\ntoskrnl.exe",
    base: 0xffff_f801_2a00_0000,
    size: 0x104_7000,
};

const SYSTEM_DLLS: [BenchModule; 3] = [
    BenchModule { path: r"C:\Windows\System32\ntdll.dll", base: 0x7ffb_1000_0000, size: 0x21_7000 },
    BenchModule {
        path: r"C:\Windows\System32\kernel32.dll",
        base: 0x7ffb_0f00_0000,
        size: 0xc_4000,
    },
    BenchModule {
        path: r"C:\Windows\System32\KernelBase.dll",
        base: 0x7ffb_0d00_0000,
        size: 0x3a_d000,
    },
];

/// Base address of the executable of every process.
const APP_BASE: u64 = 0x7ff6_0000_0000;
/// Bytes between the call sites that make stacks distinct.
const APP_STEP: u64 = 0x10;

/// Adds the kernel, and the processes with their modules.
pub fn add_modules(frame: &mut TraceBuilder, trace: &LargeTrace) {
    let pdb = |n: u32| Guid::new(0x5eed_0000_0000_0000_0000_0000_0000_0000 + u128::from(n));
    frame.module(0, KERNEL.path, KERNEL.base, KERNEL.size).pdb("ntkrnlmp.pdb", pdb(1), 1);
    let app_size = (trace.distinct_stacks as u64 * APP_STEP + 0x2000).next_multiple_of(0x1000);
    for n in 0..trace.processes {
        let name = format!("app{n}.exe");
        let pid = BenchHandles::pid(n as usize);
        frame.process(pid, &name).parent(4).command_line(&format!("{name} -worker {n}"));
        let path = format!(r"C:\Program Files\Large\{name}");
        frame.module(pid, &path, APP_BASE, app_size).pdb(&format!("app{n}.pdb"), pdb(100 + n), 1);
        for (index, dll) in SYSTEM_DLLS.iter().enumerate() {
            let file = dll.path.rsplit('\\').next().unwrap_or(dll.path);
            let name = file.replace(".dll", ".pdb");
            frame.module(pid, dll.path, dll.base, dll.size).pdb(&name, pdb(2 + index as u32), 1);
        }
    }
}

/// The stacks events choose from, as (kernel frames, user frames).
#[derive(Debug)]
pub struct StackPool {
    stacks: Vec<(Vec<u64>, Vec<u64>)>,
    used: Vec<bool>,
}

impl StackPool {
    pub fn new(trace: &LargeTrace) -> Self {
        assert!(trace.distinct_stacks > 0, "events choose from at least one stack");
        assert!((4..=250).contains(&trace.stack_depth), "a stack has 4 to 250 frames");
        let mut rng = Rng::new(trace.seed ^ 0x57ac);
        let count = trace.distinct_stacks;
        let stacks = (0..count).map(|n| stack(n as u64, trace.stack_depth, &mut rng)).collect();
        Self { stacks, used: vec![false; count] }
    }

    /// Chooses a stack for the next event. Leaks take theirs from the first hundredth of the stacks.
    pub fn choose(&mut self, leaks: bool, rng: &mut Rng) -> (&[u64], &[u64]) {
        let choices = if leaks { self.stacks.len().div_ceil(100) } else { self.stacks.len() };
        // The smaller of two random numbers makes some stacks far more frequent than others.
        let index = rng.index(choices).min(rng.index(choices));
        self.used[index] = true;
        let (kernel, user) = &self.stacks[index];
        (kernel, user)
    }

    /// Returns the number of stacks chosen at least once.
    pub fn used(&self) -> u64 {
        self.used.iter().filter(|used| **used).count() as u64
    }
}

/// Builds stack number `n`: system call, system library, the program, and the thread start.
fn stack(n: u64, depth: usize, rng: &mut Rng) -> (Vec<u64>, Vec<u64>) {
    let kernel_depth = depth.div_ceil(3);
    // Call sites repeat as in real programs: there are a few hundred per module.
    let mut site = |module: &BenchModule, sites: u64| {
        let site = 1 + rng.below(sites);
        module.base + site * (module.size / (sites + 2))
    };
    let kernel: Vec<u64> = (0..kernel_depth).map(|_| site(&KERNEL, 60)).collect();
    let user_depth = depth - kernel_depth;
    let mut user = vec![site(&SYSTEM_DLLS[0], 20)];
    // The program's call site makes the stack distinct.
    user.push(APP_BASE + 0x1000 + n * APP_STEP);
    while user.len() < user_depth {
        user.push(site(&SYSTEM_DLLS[2], 300));
    }
    // All stacks end the same way: kernel32!BaseThreadInitThunk, ntdll!RtlUserThreadStart.
    if let [.., before_last, last] = &mut user[2..] {
        *before_last = SYSTEM_DLLS[1].base + 0x1_2d24;
        *last = SYSTEM_DLLS[0].base + 0x6_3c21;
    }
    (kernel, user)
}
