//! Digests of outputs, checked in: the native build, scalar wasm, SIMD128 and relaxed SIMD all have to meet them.

use crate::numbers::Digest;

const DIGESTS: &str = include_str!("digests.txt");

/// The digest kept under `name` must be this one.
pub(crate) fn check(name: &str, digest: &Digest) {
    let got = digest.finish();
    #[cfg(not(target_arch = "wasm32"))]
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return native::update(name, &got);
    }
    let kept = DIGESTS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    assert_eq!(kept, Some(got.as_str()), "{name}: other bits than the digest kept");
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::{LazyLock, Mutex};

    static UPDATED: LazyLock<Mutex<BTreeMap<String, String>>> = LazyLock::new(|| {
        let kept = super::DIGESTS.lines().filter_map(|line| line.split_once(": "));
        Mutex::new(kept.map(|(name, digest)| (name.into(), digest.into())).collect())
    });

    pub(super) fn update(name: &str, digest: &str) {
        let mut all = UPDATED.lock().unwrap();
        all.insert(name.into(), digest.into());
        let text: String = all.iter().map(|(name, digest)| format!("{name}: {digest}\n")).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/digests.txt");
        std::fs::write(path, text).unwrap();
    }
}
