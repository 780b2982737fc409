//! The frames of the kernels: every kernel against its definition, natively and in wasm.
