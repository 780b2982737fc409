//! Keys and values of the positions that a session has seen.
//!
//! The memory of a full context is taken when the session begins and not touched before it is used: a layer grows page
//! by page inside what it has. A layer with a sliding window keeps its window and one chunk, and no more. Each head lies by
//! itself, position after position: attention goes through one head's keys or values, and a processor reads ahead of that.

use core::ops::Range;

use super::KvType;
use super::config::Shape;
use crate::error::{Error, ErrorKind, Result};
use crate::kernels::KvRows;
use crate::quant::GgmlType;

/// What one layer keeps of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KvLayer {
    /// Key-value heads.
    pub(crate) n_head_kv: u32,
    /// Values of a head.
    pub(crate) head_dim: u32,
    /// Token i sees token j when `i - j < window`; `None`: it sees all before it.
    pub(crate) window: Option<u32>,
}

impl KvLayer {
    /// Positions that the layer keeps; position p is row `p % capacity`.
    pub(crate) fn capacity(&self, shape: &Shape) -> u32 {
        match self.window {
            // While a chunk is written, its first token still sees a whole window before it.
            Some(window) => {
                match window.saturating_add(shape.n_batch).checked_next_multiple_of(PAGE) {
                    Some(n) => n.min(shape.n_ctx),
                    None => shape.n_ctx,
                }
            }
            None => shape.n_ctx,
        }
    }

    /// Bytes of one position's key of one head, and as many of its value.
    fn head_bytes(&self, ty: GgmlType) -> u64 {
        // The model was refused if its heads are no whole number of blocks.
        ty.row_bytes(u64::from(self.head_dim)).unwrap_or(0)
    }

    /// Bytes of the layer.
    pub(crate) fn bytes(&self, ty: GgmlType, shape: &Shape) -> u64 {
        let rows = 2 * u64::from(self.n_head_kv) * u64::from(self.capacity(shape));
        self.head_bytes(ty).saturating_mul(rows)
    }

    /// First position that the token at `pos` sees.
    pub(crate) fn first_seen(&self, pos: u32) -> u32 {
        self.window.map_or(0, |window| (pos + 1).saturating_sub(window))
    }

    /// Positions that the token at `pos` sees.
    pub(crate) fn span(&self, pos: u32) -> Range<usize> {
        self.first_seen(pos) as usize..pos as usize + 1
    }
}

/// The number format of a cache.
pub(crate) fn format_of(kv: KvType) -> GgmlType {
    match kv {
        KvType::F32 => GgmlType::F32,
        KvType::F16 => GgmlType::F16,
        KvType::Q8_0 => GgmlType::Q8_0,
    }
}

/// The cache of a session.
#[derive(Debug)]
pub(crate) struct KvCache {
    ty: GgmlType,
    layers: Vec<Kept>,
    /// One past the last position that was ever begun since the cache was empty: what a window still holds ends there.
    reached: u32,
}

#[derive(Debug)]
struct Kept {
    layer: KvLayer,
    capacity: u32,
    /// Bytes of a position's key of one head, and as many of its value.
    head_bytes: usize,
    heads: Vec<Head>,
}

/// Keys and values of one head, `[positions, head_bytes]` each.
#[derive(Debug)]
struct Head {
    keys: Vec<u8>,
    values: Vec<u8>,
    /// No key or value since the cache was empty had an infinity or a NaN.
    finite: bool,
}

impl KvCache {
    /// Bytes of a cache.
    pub(crate) fn price(layers: &[KvLayer], kv: KvType, shape: &Shape) -> u64 {
        let ty = format_of(kv);
        layers.iter().fold(0, |sum: u64, layer| {
            let heads = u64::from(layer.n_head_kv).saturating_mul(size_of::<Head>() as u64);
            let own = heads.saturating_add(size_of::<Kept>() as u64);
            sum.saturating_add(own).saturating_add(layer.bytes(ty, shape))
        })
    }

    /// Takes the memory of all layers.
    pub(crate) fn new(layers: &[KvLayer], kv: KvType, shape: &Shape) -> Result<Self> {
        let ty = format_of(kv);
        let mut kept = reserve(layers.len() as u64)?;
        for layer in layers {
            kept.push(Kept::new(*layer, ty, shape)?);
        }
        Ok(Self { ty, layers: kept, reached: 0 })
    }

    /// Says that positions up to `end` (one past the last) will be written.
    pub(crate) fn reach(&mut self, end: u32) {
        self.reached = self.reached.max(end);
    }

    /// Whether a sequence can go on at `pos`: every window before it is still there.
    pub(crate) fn holds(&self, pos: u32) -> bool {
        pos == 0
            || self.layers.iter().all(|kept| {
                // The next token sees what the token at `pos` sees.
                kept.layer.first_seen(pos) >= self.reached.saturating_sub(kept.capacity)
            })
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.reached = 0;
        self.layers.iter_mut().flat_map(|kept| &mut kept.heads).for_each(|head| head.finite = true);
    }

    /// Writes the keys and values of one position.
    pub(crate) fn write(&mut self, layer: u32, pos: u32, key: &[f32], value: &[f32]) {
        let ty = self.ty;
        let kept = &mut self.layers[layer as usize];
        let row = (pos % kept.capacity) as usize;
        kept.grow_to(row + 1);
        let dim = kept.layer.head_dim as usize;
        let bytes = row * kept.head_bytes..(row + 1) * kept.head_bytes;
        let vectors = key.chunks_exact(dim).zip(value.chunks_exact(dim));
        for (head, (key, value)) in kept.heads.iter_mut().zip(vectors) {
            crate::kernels::kv_encode(ty, key, &mut head.keys[bytes.clone()]);
            crate::kernels::kv_encode(ty, value, &mut head.values[bytes.clone()]);
            head.finite &= key.iter().chain(value).all(|x| x.abs() <= F16_MAX);
        }
    }

    /// Keys and values of a layer as the queries of key-value head `head_kv` see them.
    pub(crate) fn rows(&self, layer: u32, head_kv: usize) -> (KvRows<'_>, KvRows<'_>) {
        let kept = &self.layers[layer as usize];
        let head = &kept.heads[head_kv];
        let rows = |bytes| KvRows {
            ty: self.ty,
            bytes,
            row_bytes: kept.head_bytes,
            head_offset: 0,
            // While the layer has not grown to its capacity, no position has come round to row 0 again.
            capacity: head.keys.len() / kept.head_bytes,
            finite: head.finite,
        };
        (rows(&head.keys), rows(&head.values))
    }

    /// What a layer is like.
    pub(crate) fn layer(&self, layer: u32) -> &KvLayer {
        &self.layers[layer as usize].layer
    }
}

impl Kept {
    fn new(layer: KvLayer, ty: GgmlType, shape: &Shape) -> Result<Self> {
        let capacity = layer.capacity(shape);
        let n_bytes = layer.head_bytes(ty).saturating_mul(u64::from(capacity));
        let head_bytes = usize::try_from(layer.head_bytes(ty)).map_err(|_| too_large(n_bytes))?;
        let mut heads = reserve(u64::from(layer.n_head_kv))?;
        for _ in 0..layer.n_head_kv {
            heads.push(Head { keys: reserve(n_bytes)?, values: reserve(n_bytes)?, finite: true });
        }
        Ok(Self { layer, capacity, head_bytes, heads })
    }

    /// Makes rows up to `n_rows` usable, a page at a time and never beyond what was taken.
    fn grow_to(&mut self, n_rows: usize) {
        if self.heads.first().is_some_and(|head| head.keys.len() < n_rows * self.head_bytes) {
            let n_rows = n_rows.next_multiple_of(PAGE as usize).min(self.capacity as usize);
            for head in &mut self.heads {
                head.keys.resize(n_rows * self.head_bytes, 0);
                head.values.resize(n_rows * self.head_bytes, 0);
            }
        }
    }
}

fn reserve<T>(n: u64) -> Result<Vec<T>> {
    let n_bytes = n.saturating_mul(size_of::<T>() as u64);
    let mut items = Vec::new();
    let n = usize::try_from(n).map_err(|_| too_large(n_bytes))?;
    items.try_reserve_exact(n).map_err(|_| too_large(n_bytes))?;
    Ok(items)
}

fn too_large(n_bytes: u64) -> Error {
    let message =
        format!("{n_bytes} bytes for keys and values cannot be had: choose a smaller context");
    Error::new(ErrorKind::OutOfMemory, message).with("needed_bytes", n_bytes)
}

/// The largest half: what is not larger is finite in every format.
const F16_MAX: f32 = 65_504.0;
/// Positions of a page.
pub(crate) const PAGE: u32 = 1 << 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(n_ctx: u32, n_batch: u32) -> Shape {
        Shape { n_ctx, n_batch, n_logits: 1 }
    }

    fn layer(window: Option<u32>) -> KvLayer {
        KvLayer { n_head_kv: 2, head_dim: 32, window }
    }

    #[test]
    fn a_window_keeps_itself_and_a_chunk_in_whole_pages() {
        assert_eq!(layer(Some(512)).capacity(&shape(4096, 64)), 576);
        assert_eq!(layer(Some(512)).capacity(&shape(4096, 65)), 640);
        assert_eq!(layer(Some(512)).capacity(&shape(100, 64)), 100);
        assert_eq!(layer(Some(u32::MAX)).capacity(&shape(100, 64)), 100);
        assert_eq!(layer(None).capacity(&shape(4096, 64)), 4096);
    }

    #[test]
    fn a_window_of_n_sees_n_positions() {
        assert_eq!(layer(Some(4)).first_seen(2), 0);
        assert_eq!(layer(Some(4)).first_seen(3), 0);
        assert_eq!(layer(Some(4)).first_seen(4), 1);
        assert_eq!(layer(None).first_seen(1000), 0);
    }

    #[test]
    fn a_layer_grows_by_pages_up_to_its_capacity() {
        let shape = shape(100, 1);
        let mut cache = KvCache::new(&[layer(None)], KvType::F16, &shape).unwrap();
        let (key, value) = ([1.0; 64], [2.0; 64]);
        for (pos, kept) in [(0, 64), (63, 64), (64, 100), (99, 100)] {
            cache.write(0, pos, &key, &value);
            let (keys, values) = cache.rows(0, 1);
            assert_eq!(
                (keys.capacity, keys.head_offset, values.row_bytes),
                (kept, 0, 64),
                "after {pos}"
            );
        }
        for head in &cache.layers[0].heads {
            let taken = (head.keys.capacity(), head.values.capacity());
            assert_eq!(taken, (6400, 6400), "nothing was taken later");
        }
    }

    #[test]
    fn a_head_knows_whether_all_it_holds_is_finite() {
        for bad in [65_505.0, f32::NEG_INFINITY, f32::NAN] {
            for in_keys in [true, false] {
                let shape = shape(100, 1);
                let mut cache = KvCache::new(&[layer(None)], KvType::F16, &shape).unwrap();
                let finite = |cache: &KvCache| [0, 1].map(|head| cache.rows(0, head).1.finite);
                let good = [65_504.0; 64];
                let mut with_bad = good;
                with_bad[40] = bad;
                cache.write(0, 0, &good, &good);
                assert_eq!(finite(&cache), [true, true]);
                let (key, value) = if in_keys { (&with_bad, &good) } else { (&good, &with_bad) };
                cache.write(0, 1, key, value);
                assert_eq!(finite(&cache), [true, false], "{bad}");
                cache.write(0, 1, &good, &good);
                assert_eq!(finite(&cache), [true, false], "{bad}: nobody has looked at the rest");
                cache.clear();
                assert_eq!(finite(&cache), [true, true], "{bad}");
            }
        }
    }
}
