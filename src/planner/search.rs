//! The search: the first of the candidates, best first, that fits the budget; or the smallest of them as the floor.

use super::ledger::{Costs, PAGE_BYTES, Ring, pages};
use super::plan::Plan;
use super::request::{Request, SessionBytes};
use super::residents;
use super::weights::{SMALLEST_SLOT, Weights, streamed_per_token};
use crate::error::{Error, ErrorKind, Result};
use crate::model::Shape;

/// Decides what an engine takes and keeps. `price` says what a session of a size takes.
///
/// Short of memory it gives up residents first, then a context nobody asked for, then the chunk, then slots.
///
/// # Errors
/// `out_of_memory` with `needed_bytes` and `available_bytes` when nothing fits (unless the wishes say `force`);
/// `invalid_option` for wishes that no model can be run with.
pub fn plan(request: &Request<'_>, price: &dyn Fn(&Shape) -> SessionBytes) -> Result<Plan> {
    let search = Search::new(request, price)?;
    let floor = search.floor();
    let candidate = match search.best() {
        Some(candidate) => candidate,
        None if request.wishes.force && floor.bytes <= search.max_linear() => floor.candidate,
        None => return Err(search.refusal(&floor)),
    };
    Ok(search.finish(candidate, floor.bytes))
}

/// One way to run the model, residents aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    session: Shape,
    ring: Ring,
    keep: Keep,
}

/// Which weights stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// All, the embedding table too.
    All,
    /// All but an embedding table of its own, of which single rows are read.
    AllButTable,
    /// As many as there is room for.
    Some,
}

#[derive(Debug, Clone, Copy)]
struct Floor {
    candidate: Candidate,
    /// Linear memory, in whole pages.
    bytes: u64,
}

struct Search<'a> {
    request: &'a Request<'a>,
    price: &'a dyn Fn(&Shape) -> SessionBytes,
    weights: Weights,
    /// Linear memory that may be used, in whole pages.
    room: u64,
    /// The part of it that may hold what could also be read again.
    spare_room: u64,
    contexts: Vec<u32>,
    batches: Vec<u32>,
    rings: Vec<Ring>,
}

impl<'a> Search<'a> {
    fn new(request: &'a Request<'a>, price: &'a dyn Fn(&Shape) -> SessionBytes) -> Result<Self> {
        let weights = Weights::new(request)?;
        request.wishes.validate(weights.longest_row)?;
        let linear = request.limits.budget().saturating_sub(pages(request.js_buffer_bytes));
        let mut search = Self {
            request,
            price,
            room: 0,
            spare_room: 0,
            contexts: contexts(request),
            batches: Vec::new(),
            rings: rings(request, &weights),
            weights,
        };
        search.room = linear.min(search.max_linear()) / PAGE_BYTES * PAGE_BYTES;
        let spare = linear.saturating_sub(pages(request.limits.host_bytes));
        search.spare_room = search.room.min(spare / PAGE_BYTES * PAGE_BYTES);
        search.batches = search.batches();
        Ok(search)
    }

    fn max_linear(&self) -> u64 {
        self.request.limits.max_linear_bytes.unwrap_or(u64::MAX) / PAGE_BYTES * PAGE_BYTES
    }

    /// Chunks worth having, the largest first: of those that nobody asked for, the scratch takes at most an eighth of the memory.
    fn batches(&self) -> Vec<u32> {
        if self.request.whole_texts {
            return vec![u32::MAX];
        }
        if let Some(n) = self.request.wishes.n_batch {
            return vec![n];
        }
        let n_ctx = self.contexts[0];
        let affordable =
            |n: &u32| *n == 1 || self.price(n_ctx, *n).model.scratch_bytes <= self.room / 8;
        (0..=LARGEST_BATCH.ilog2()).rev().map(|bits| 1 << bits).filter(affordable).collect()
    }

    fn session(&self, n_ctx: u32, n_batch: u32) -> Shape {
        // A chunk is never longer than the context; a wish for more stays as it is.
        let n_batch = match self.request.wishes.n_batch {
            Some(n) if !self.request.whole_texts => n,
            _ => n_batch.min(n_ctx),
        };
        Shape { n_ctx, n_batch, n_logits: if self.request.wishes.all_logits { n_batch } else { 1 } }
    }

    fn price(&self, n_ctx: u32, n_batch: u32) -> SessionBytes {
        (self.price)(&self.session(n_ctx, n_batch))
    }

    /// The best candidate that fits.
    fn best(&self) -> Option<Candidate> {
        let fits = |candidate: &Candidate| self.linear_bytes(candidate) <= self.room;
        // With everything in memory a longer chunk than this gains nothing.
        let n_batch =
            self.batches.iter().copied().find(|n| *n <= RESIDENT_BATCH).unwrap_or(self.batches[0]);
        let resident = self.resident_candidates(self.session(self.contexts[0], n_batch)).find(fits);
        resident.or_else(|| self.candidates().find(fits)).map(|found| self.with_more_slots(found))
    }

    /// All candidates, the best first, but for those of `best` itself. Slots are given up last, and shrink before chunks become
    /// so short that a prompt costs a sweep over the weights for every few tokens.
    fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let mut counts: Vec<u32> = self.rings.iter().map(|ring| ring.n_slots).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.dedup();
        let levels = counts.into_iter().flat_map(|n_slots| [(n_slots, false), (n_slots, true)]);
        levels.flat_map(move |(n_slots, short)| {
            let rings = self.rings.iter().filter(move |ring| ring.n_slots == n_slots);
            rings.flat_map(move |&ring| {
                let batches = self.batches.iter().filter(move |n| (**n < SHORT_BATCH) == short);
                batches.flat_map(move |&n_batch| {
                    self.contexts.iter().flat_map(move |&n_ctx| self.of_size(n_ctx, n_batch, ring))
                })
            })
        })
    }

    fn of_size(&self, n_ctx: u32, n_batch: u32, ring: Ring) -> impl Iterator<Item = Candidate> {
        let session = self.session(n_ctx, n_batch);
        let streaming = Candidate { session, ring, keep: Keep::Some };
        let streaming = Some(streaming).filter(|_| self.request.wishes.streaming);
        self.resident_candidates(session).chain(streaming)
    }

    fn resident_candidates(&self, session: Shape) -> impl Iterator<Item = Candidate> {
        let without_table = self.weights.table.is_some() && self.request.wishes.streaming;
        let keeps = [Some(Keep::All), without_table.then_some(Keep::AllButTable)];
        keeps.into_iter().flatten().map(move |keep| Candidate { session, ring: Ring::NONE, keep })
    }

    /// The candidate that takes the least.
    fn floor(&self) -> Floor {
        let n_ctx = self.contexts[self.contexts.len() - 1];
        let n_batch = self.batches[self.batches.len() - 1];
        self.least(self.session(n_ctx, n_batch))
    }

    /// The candidate that takes the least for a session of this shape.
    fn least(&self, session: Shape) -> Floor {
        let floor_of = |candidate| Floor { candidate, bytes: pages(self.linear_bytes(&candidate)) };
        let resident = self.resident_candidates(session).map(floor_of);
        let rings = self.rings.iter().filter(|_| self.request.wishes.streaming);
        let streaming =
            rings.map(|ring| floor_of(Candidate { session, ring: *ring, keep: Keep::Some }));
        let all = floor_of(Candidate { session, ring: Ring::NONE, keep: Keep::All });
        resident
            .chain(streaming)
            .fold(all, |least, next| if next.bytes < least.bytes { next } else { least })
    }

    /// Further slots, as long as they take little of what would else be residents.
    fn with_more_slots(&self, mut candidate: Candidate) -> Candidate {
        let wishes = &self.request.wishes;
        if candidate.keep != Keep::Some || !wishes.prefetch || wishes.n_slots.is_some() {
            return candidate;
        }
        while candidate.ring.n_slots >= 2 && candidate.ring.n_slots < MOST_SLOTS {
            let left = self.spare_room.saturating_sub(self.linear_bytes(&candidate));
            if candidate.ring.slot_bytes > left / 16 {
                break;
            }
            candidate.ring.n_slots += 1;
        }
        candidate
    }

    /// Linear memory of a candidate, without the residents of one that streams.
    fn linear_bytes(&self, candidate: &Candidate) -> u64 {
        let residents = match candidate.keep {
            Keep::Some => 0,
            Keep::All => residents::bytes(&residents::all(&self.weights, true)),
            Keep::AllButTable => residents::bytes(&residents::all(&self.weights, false)),
        };
        self.costs(candidate).bytes().saturating_add(residents)
    }

    fn costs(&self, candidate: &Candidate) -> Costs {
        Costs::new(self.request, &self.weights, (self.price)(&candidate.session), candidate.ring)
    }

    fn finish(&self, candidate: Candidate, floor: u64) -> Plan {
        let request = self.request;
        let costs = self.costs(&candidate);
        let residents = match candidate.keep {
            Keep::All => residents::all(&self.weights, true),
            Keep::AllButTable => residents::all(&self.weights, false),
            Keep::Some => residents::fill(
                &self.weights,
                request.experts,
                self.spare_room.saturating_sub(costs.bytes()),
            ),
        };
        let ledger = costs.ledger(request, residents::bytes(&residents));
        let total_bytes = ledger.iter().fold(0_u64, |sum, item| sum.saturating_add(item.bytes));
        let js_bytes = pages(request.js_buffer_bytes);
        let linear_bytes = pages(costs.bytes().saturating_add(residents::bytes(&residents)));
        let budget_bytes = request.limits.budget();
        Plan {
            n_ctx: candidate.session.n_ctx,
            n_batch: candidate.session.n_batch,
            n_logits: candidate.session.n_logits,
            kv: request.wishes.kv,
            n_slots: candidate.ring.n_slots,
            slot_bytes: candidate.ring.slot_bytes,
            streamed_bytes_per_token: streamed_per_token(request.uses, request.experts, &residents),
            resident_bytes: residents.iter().map(super::ResidentRun::bytes).sum(),
            residents,
            ledger,
            total_bytes,
            linear_bytes,
            floor_bytes: floor.saturating_add(js_bytes),
            budget_bytes,
            forced: total_bytes > budget_bytes,
            weight_bytes: self.weights.bytes(),
        }
    }

    fn refusal(&self, floor: &Floor) -> Error {
        let js_bytes = pages(self.request.js_buffer_bytes);
        let needed = floor.bytes.saturating_add(js_bytes);
        let budget = self.request.limits.budget();
        let holds = self.max_linear();
        let kept = match self.request.wishes.streaming {
            true => "",
            false => " with all weights in memory, as nothing can be read again",
        };
        let n_ctx = floor.candidate.session.n_ctx;
        let mut ways = self.smaller_wishes();
        if ways.is_empty() {
            ways.push("take a smaller model".to_owned());
        }
        let limit = if floor.bytes > holds {
            format!("one linear memory holds {holds}")
        } else {
            ways.insert(0, format!("raise `memory` to {needed} or more"));
            format!("the budget is {budget}")
        };
        let message = format!(
            "the model needs at least {needed} bytes{kept} for a context of {n_ctx}; {limit}: {}",
            ways.join(", or ")
        );
        Error::new(ErrorKind::OutOfMemory, message)
            .with("needed_bytes", needed)
            .with("available_bytes", budget.min(holds.saturating_add(js_bytes)))
    }

    /// Which of the caller's wishes could be smaller so that the model fits: each one alone where that is enough, else all together.
    fn smaller_wishes(&self) -> Vec<String> {
        let Shape { n_ctx, n_logits, .. } = self.floor().candidate.session;
        let shape = |n_ctx: u32, n_batch: u32| Shape {
            n_ctx,
            n_batch: n_batch.min(n_ctx),
            n_logits: n_logits.min(n_batch),
        };
        let fits = |session| self.least(session).bytes <= self.room;
        let context = self.request.wishes.n_ctx.map(|_| "`context`");
        let batch = self.request.wishes.n_batch.map(|_| "`batch`");
        let alone = [
            context.filter(|_| fits(Shape { n_ctx: 1, ..self.floor().candidate.session })),
            batch.filter(|_| fits(shape(n_ctx, 1))),
        ];
        let ask = |what: &str| format!("ask for a smaller {what}");
        let ways: Vec<String> = alone.into_iter().flatten().map(ask).collect();
        match (context, batch) {
            (Some(_), Some(_)) if ways.is_empty() && fits(shape(1, 1)) => {
                vec![ask("`context` and a smaller `batch`")]
            }
            _ => ways,
        }
    }
}

/// Contexts to try, the longest first: the one asked for, or what the model was trained for and halves of it.
fn contexts(request: &Request<'_>) -> Vec<u32> {
    if let Some(n) = request.wishes.n_ctx {
        return vec![n];
    }
    let trained = if request.n_ctx_train == 0 { UNKNOWN_CONTEXT } else { request.n_ctx_train };
    let mut n = trained.min(LONGEST_CONTEXT);
    let mut contexts = vec![n];
    while n > SHORTEST_CONTEXT {
        n = (n / 2).max(SHORTEST_CONTEXT);
        contexts.push(n);
    }
    contexts
}

/// Rings to try, the best first: slots shrink before the second one is given up, since reading ahead is worth more than long reads.
fn rings(request: &Request<'_>, weights: &Weights) -> Vec<Ring> {
    let wishes = &request.wishes;
    let least = weights.longest_row.max(SMALLEST_SLOT);
    let mut sizes = Vec::new();
    match wishes.slot_bytes {
        Some(bytes) => sizes.push(bytes),
        None => {
            let mut bytes = weights.natural_slot.max(least);
            sizes.push(bytes);
            while bytes > least {
                bytes = (bytes / 2).max(least);
                sizes.push(bytes);
            }
        }
    }
    let smallest = sizes[sizes.len() - 1];
    let ring = |n_slots: u32, slot_bytes: u64| Ring { n_slots, slot_bytes };
    match wishes.n_slots {
        Some(n) => sizes.iter().map(|bytes| ring(n, *bytes)).collect(),
        None if !wishes.prefetch => sizes.iter().map(|bytes| ring(1, *bytes)).collect(),
        None => {
            // Rows that a router names come into the ring as well, beside what is read ahead.
            let n = if request.experts.is_some() { 4 } else { 2 };
            let ahead = sizes.iter().map(|bytes| ring(n, *bytes));
            ahead.chain((1..n).rev().map(|fewer| ring(fewer, smallest))).collect()
        }
    }
}

const LONGEST_CONTEXT: u32 = 4096;
const UNKNOWN_CONTEXT: u32 = 2048;
const SHORTEST_CONTEXT: u32 = 512;
const LARGEST_BATCH: u32 = 512;
const RESIDENT_BATCH: u32 = 128;
const SHORT_BATCH: u32 = 16;
const MOST_SLOTS: u32 = 4;
