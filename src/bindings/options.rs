//! Options as JS names them → the runtime's configs. A key that is not in these tables is refused; what is not given keeps the
//! config's own default. `js/options.ts` has the same keys, and a test compares them.

use wasm_bindgen::JsValue;

use super::given::{Field, Given, read};
use crate::error::Result;
use crate::runtime::{GenerateConfig, KvType, Letters, OpenConfig, Precision, THREADS, parse_size};

/// The config of `open`; `device_bytes` and `base_bytes` come from the host.
pub(super) fn open_config(
    options: &JsValue,
    device_bytes: Option<u64>,
    base_bytes: u64,
) -> Result<OpenConfig> {
    let mut config =
        OpenConfig { device_bytes, base_bytes, reads_beside: THREADS, ..OpenConfig::default() };
    read(options, OPEN, &mut config)?;
    config.stack_bytes = u64::from(config.n_threads - 1) * STACK_BYTES;
    let n_workers = u64::from(config.n_threads) + u64::from(THREADS); // one more reads
    config.host_bytes = n_workers * WORKER_BYTES;
    config.validate()?;
    Ok(config)
}

/// The config of `generate`; `seed` is used where none is given.
pub(super) fn generate_config(options: &JsValue, seed: u64) -> Result<GenerateConfig> {
    let mut config = GenerateConfig::default();
    config.sampler.seed = seed;
    read(options, GENERATE, &mut config)?;
    config.validate()?;
    Ok(config)
}

const OPEN: &[Field<OpenConfig>] = &[
    ("allLogits", |c, given| set(&mut c.all_logits, given.flag())),
    ("batch", |c, given| set(&mut c.n_batch, given.count().map(Some))),
    ("context", |c, given| set(&mut c.n_ctx, given.count().map(Some))),
    ("embeddings", |c, given| set(&mut c.embeddings, given.flag())),
    ("force", |c, given| set(&mut c.force, given.flag())),
    ("kvType", |c, given| set(&mut c.kv, given.one_of(KV_TYPES).map(Some))),
    ("memory", |c, given| set(&mut c.budget_bytes, byte_size(given).map(Some))),
    ("precision", |c, given| set(&mut c.precision, given.one_of(PRECISIONS))),
    ("threads", |c, given| set(&mut c.n_threads, threads(given))),
];

const GENERATE: &[Field<GenerateConfig>] = &[
    ("dryAllowedLength", |c, given| set(&mut c.sampler.dry_allowed_length, count(given))),
    ("dryBase", |c, given| set(&mut c.sampler.dry_base, given.float())),
    ("dryBreakers", |c, given| set(&mut c.dry_breakers, given.texts())),
    ("dryLastN", |c, given| set(&mut c.sampler.dry_last_n, count(given))),
    ("dryMultiplier", |c, given| set(&mut c.sampler.dry_multiplier, given.float())),
    ("frequencyPenalty", |c, given| set(&mut c.sampler.frequency_penalty, given.float())),
    ("ignoreEog", |c, given| set(&mut c.ignore_eog, given.flag())),
    ("logitBias", |c, given| set(&mut c.sampler.logit_bias, logit_bias(given))),
    ("logprobs", |c, given| set(&mut c.sampler.logprobs, given.count().map(Some))),
    ("maxTokens", |c, given| set(&mut c.max_tokens, given.count())),
    ("minP", |c, given| set(&mut c.sampler.min_p, given.float())),
    ("mirostat", |c, given| set(&mut c.sampler.mirostat, count(given))),
    ("mirostatEta", |c, given| set(&mut c.sampler.mirostat_eta, given.float())),
    ("mirostatTau", |c, given| set(&mut c.sampler.mirostat_tau, given.float())),
    ("parseSpecial", |c, given| set(&mut c.parse_special, given.flag())),
    ("presencePenalty", |c, given| set(&mut c.sampler.presence_penalty, given.float())),
    ("repeatLastN", |c, given| set(&mut c.sampler.repeat_last_n, count(given))),
    ("repeatPenalty", |c, given| set(&mut c.sampler.repeat_penalty, given.float())),
    ("resume", |c, given| set(&mut c.resume, given.flag())),
    ("seed", |c, given| set(&mut c.sampler.seed, given.whole(0, MAX_SAFE).map(i64::cast_unsigned))),
    ("stop", |c, given| set(&mut c.stop, given.texts())),
    ("temperature", |c, given| set(&mut c.sampler.temperature, given.float())),
    ("topK", |c, given| set(&mut c.sampler.top_k, count(given))),
    ("topP", |c, given| set(&mut c.sampler.top_p, given.float())),
    ("typicalP", |c, given| set(&mut c.sampler.typical_p, given.float())),
    ("xtcProbability", |c, given| set(&mut c.sampler.xtc_probability, given.float())),
    ("xtcThreshold", |c, given| set(&mut c.sampler.xtc_threshold, given.float())),
];

const KV_TYPES: &[(&str, KvType)] =
    &[("f32", KvType::F32), ("f16", KvType::F16), ("q8_0", KvType::Q8_0)];

const PRECISIONS: &[(&str, Precision)] = &[("fast", Precision::Fast), ("exact", Precision::Exact)];

/// The largest whole number up to which JS has all of them.
const MAX_SAFE: i64 = (1 << 53) - 1;

/// What a compute worker takes: the stack that it is given (`STACK_BYTES` of `js/worker/wasm.ts`), and its thread-local values.
const STACK_BYTES: u64 = (256 + 4) << 10;

/// What a worker takes outside of linear memory: its heap, its instance of the module, what compiling left behind. Measured in
/// Chromium (`scripts/measure/memory.mjs`), where a page then stays within its budget and 25 MB over a blank one.
const WORKER_BYTES: u64 = 6 << 20;

const MAX_THREADS: i64 = 64;

pub(super) fn set<T>(place: &mut T, value: Result<T>) -> Result<()> {
    *place = value?;
    Ok(())
}

/// A whole number; its range is the sampler's to check.
fn count(given: &Given) -> Result<i64> {
    given.whole(-MAX_SAFE, MAX_SAFE)
}

fn byte_size(given: &Given) -> Result<u64> {
    match given.text() {
        Some(text) => parse_size(given.key(), &text, Letters::Refused),
        None => given.whole(1, MAX_SAFE).map(i64::cast_unsigned),
    }
}

/// How many is decided before the module starts: `auto` comes as a number where threads can be had, and a build without them
/// has one whatever is asked.
fn threads(given: &Given) -> Result<u32> {
    let n = match given.text() {
        Some(text) if text == "auto" => 1,
        Some(_) => return Err(given.refused("'auto' or a number of threads")),
        None => given.whole(1, MAX_THREADS)?,
    };
    Ok(if THREADS { u32::try_from(n).unwrap_or(1) } else { 1 })
}

fn logit_bias(given: &Given) -> Result<Vec<(u32, f32)>> {
    #[allow(clippy::cast_possible_truncation, reason = "the rounding is meant")]
    given
        .numbers_by_id()
        .map(|pairs| pairs.into_iter().map(|(id, bias)| (id, bias as f32)).collect())
}
