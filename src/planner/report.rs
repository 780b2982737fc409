//! The plan in words, for the terminal.

use core::fmt::Write as _;

use super::plan::Plan;
use crate::model::KvType;

impl Plan {
    /// A report of several lines: decisions first, then the ledger.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_decisions(&mut text);
        let _ = self.write_ledger(&mut text);
        text
    }

    fn write_decisions(&self, text: &mut String) -> core::fmt::Result {
        let kv = match self.kv {
            KvType::F32 => "f32",
            KvType::F16 => "f16",
            KvType::Q8_0 => "q8_0",
        };
        let forced = if self.forced { " (does not fit; forced)" } else { "" };
        writeln!(text, "budget     {} bytes{forced}", grouped(self.budget_bytes))?;
        writeln!(
            text,
            "needs      {} bytes, at least {}",
            grouped(self.total_bytes),
            grouped(self.floor_bytes)
        )?;
        writeln!(text, "context    {} positions, keys and values in {kv}", self.n_ctx)?;
        writeln!(text, "chunk      {} tokens", self.n_batch)?;
        match self.n_slots {
            0 => writeln!(text, "ring       none: all weights stay in memory")?,
            1 => writeln!(text, "ring       1 slot of {} bytes", grouped(self.slot_bytes))?,
            n => writeln!(text, "ring       {n} slots of {} bytes", grouped(self.slot_bytes))?,
        }
        let (kept, all) = (self.resident_bytes, self.weight_bytes);
        let percent = (kept.min(all) * 100).checked_div(all).unwrap_or(100);
        writeln!(
            text,
            "residents  {} of {} bytes of weights ({percent} %)",
            grouped(kept),
            grouped(all)
        )?;
        writeln!(text, "streamed   {} bytes a token", grouped(self.streamed_bytes_per_token))
    }

    fn write_ledger(&self, text: &mut String) -> core::fmt::Result {
        writeln!(text)?;
        for item in self.ledger.iter().filter(|item| item.bytes > 0) {
            writeln!(text, "  {:<24}{:>16}", label(item.name), grouped(item.bytes))?;
        }
        writeln!(text, "  {:<24}{:>16}", "total", grouped(self.total_bytes))
    }
}

fn label(name: &'static str) -> &'static str {
    match name {
        "code" => "code and static data",
        "vectors" => "norms, biases, factors",
        "kv" => "keys and values",
        "scratch" => "scratch of a chunk",
        "session" => "sampler and history",
        "embeddingRows" => "embedding rows",
        "pageRounding" => "rounding to pages",
        "jsBuffers" => "JS buffers",
        "host" => "workers and their code",
        other => other,
    }
}

/// Digits in groups of three.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}
