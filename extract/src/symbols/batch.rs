//! Names for the frames of many modules, side by side.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use handlescope_model::Cancel;

use super::frame::{CodeAddress, FrameChain};
use super::identity::ModuleIdentity;
use super::observer::{SymbolObserver, Watch};
use super::search::SearchLimits;
use super::symbolizer::Symbolizer;

/// The requests, and how far they are.
struct Batch<'a> {
    symbolizer: &'a Symbolizer,
    requests: &'a [(ModuleIdentity, Vec<CodeAddress>)],
    watch: Watch<'a>,
    answers: Vec<OnceLock<Vec<FrameChain>>>,
    done: AtomicUsize,
}

impl Symbolizer {
    /// The functions at addresses of many modules, in the order of the requests.
    ///
    /// Works on as many modules at once as there are processors. What is at hand comes first; only
    /// then are servers asked for the rest, for several files at a time. If cancelled, the rest is
    /// left without names; the next call goes on from there.
    pub fn resolve_all(
        &self,
        requests: &[(ModuleIdentity, Vec<CodeAddress>)],
        observer: &dyn SymbolObserver,
        cancel: &Cancel,
    ) -> Vec<Vec<FrameChain>> {
        let watch = Watch { observer, cancel };
        let batch = Batch {
            symbolizer: self,
            requests,
            watch,
            answers: requests.iter().map(|_| OnceLock::new()).collect(),
            done: AtomicUsize::new(0),
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        // The most frames first, so that no thread is left with a large module when the others are done.
        let mut all: Vec<usize> = (0..requests.len()).collect();
        all.sort_by_key(|&index| {
            requests.get(index).map_or(0, |(_, addresses)| usize::MAX - addresses.len())
        });
        batch.work(&all, threads, false);
        let missing: Vec<usize> = all.into_iter().filter(|&index| batch.is_open(index)).collect();
        let open = missing.iter().filter_map(|&index| requests.get(index));
        self.search.prepare(open.map(|(module, _)| module), watch);
        batch.work(&missing, threads, true);
        let answers = batch.answers.into_iter().zip(requests);
        answers
            .map(|(answer, (_, addresses))| {
                answer.into_inner().unwrap_or_else(|| vec![FrameChain::default(); addresses.len()])
            })
            .collect()
    }
}

impl Batch<'_> {
    fn work(&self, indexes: &[usize], threads: usize, may_download: bool) {
        let next = AtomicUsize::new(0);
        let run = || {
            while let Some(&index) = indexes.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.watch.cancel.is_cancelled() {
                    return;
                }
                self.resolve(index, may_download);
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads.min(indexes.len()) {
                scope.spawn(run);
            }
            run();
        });
    }

    fn is_open(&self, index: usize) -> bool {
        self.answers.get(index).is_some_and(|answer| answer.get().is_none())
    }

    fn resolve(&self, index: usize, may_download: bool) {
        let (Some((module, addresses)), Some(slot)) =
            (self.requests.get(index), self.answers.get(index))
        else {
            return;
        };
        let limits = SearchLimits { may_download, watch: self.watch };
        if let Some(chains) = self.symbolizer.resolve_one(module, addresses, limits) {
            // An index is handed out once only.
            let _ = slot.set(chains);
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            self.watch.observer.resolved(module, done, self.requests.len());
        }
    }
}
