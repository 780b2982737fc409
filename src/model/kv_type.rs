//! The formats of the KV cache.

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvType {
    /// 4 bytes a value.
    F32,
    /// 2 bytes a value.
    F16,
    /// 34 bytes per 32 values.
    Q8_0,
}
