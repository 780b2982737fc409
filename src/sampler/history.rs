//! The last tokens of the sequence, as far back as the penalties look.

use crate::TokenId;
use crate::error::Result;

/// A ring of the last tokens.
#[derive(Debug)]
pub(crate) struct History {
    ring: Vec<TokenId>,
    /// Where the next token goes once the ring is full.
    next: usize,
    capacity: usize,
}

impl History {
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        Ok(Self { ring: super::chain::room(capacity)?, next: 0, capacity })
    }

    pub(crate) fn push(&mut self, token: TokenId) {
        if self.ring.len() < self.capacity {
            self.ring.push(token);
        } else if self.capacity > 0 {
            self.ring[self.next] = token;
            self.next = (self.next + 1) % self.capacity;
        }
    }

    /// Tokens held.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// The token `back` places before the last one; `back < len`.
    pub(crate) fn back(&self, back: usize) -> TokenId {
        let newest = self.next + self.ring.len() - 1 - back;
        self.ring[newest % self.ring.len()]
    }
}
