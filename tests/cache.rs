//! The verdict cache's budget, counted in bytes that the process really holds. Alone in this file: the counter counts
//! everything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prism_judge::cache::{CacheSettings, Judgement, VerdictCache};
use prism_judge::digest::Digest;
use prism_judge::prism::{Conclusion, Dimension, DimensionVerdict, DimensionVerdicts, Label, Posterior};

/// Bytes that are allocated and not yet freed.
static HELD: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(rounded(layout), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(rounded(layout), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What the allocator takes for a request: its header, and a multiple of 16 bytes.
fn rounded(layout: Layout) -> usize {
    (layout.size() + 8).next_multiple_of(16).max(32)
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn judgement(orders: usize) -> Arc<Judgement> {
    let dimension = || DimensionVerdict {
        posterior: Posterior { aligned: 0.5, indeterminate: 0.25, contradictory: 0.25 },
        evidence: 0.5,
        label_mass: None,
        label_order: vec![Label::ALL; orders],
    };
    Arc::new(Judgement {
        conclusion: Conclusion {
            s_prism: 0.5,
            dimensions: DimensionVerdicts {
                task_framing: dimension(),
                interpersonal_stance: dimension(),
                linguistic_style: dimension(),
            },
            weakest_dimension: Dimension::TaskFraming,
        },
        prompt_tokens: 7,
    })
}

#[test]
fn the_budget_bounds_what_the_process_holds_and_is_put_to_use() {
    for (megabytes, orders) in [(8, 0), (32, 6), (32, 0)] {
        let budget = megabytes << 20;
        let before = HELD.load(Ordering::Relaxed);
        let cache = VerdictCache::<()>::new(CacheSettings { bytes: budget, ttl: None }, None);
        let mut most = 0;
        for number in 0..200_000_u64 {
            cache.keep(Digest::of_bytes(&number.to_le_bytes()), &judgement(orders));
            most = most.max(HELD.load(Ordering::Relaxed) - before);
        }
        let (entries, _) = cache.size();
        println!("{megabytes} MiB, {orders} orders: {entries} judgements, {most} bytes at most");
        assert!(most as u64 <= budget + (1 << 20), "{most} of {budget}");
        assert!(most as u64 >= budget / 10 * 6, "{most} of {budget}");
    }
}
