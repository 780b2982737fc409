//! The same tests for a host that knows no JavaScript, such as a deterministic `wasmtime`: exports name them, run one of
//! them, and say what it panicked with. A panic traps.
#![allow(unsafe_code, reason = "exported names are unsafe attributes")]

use std::sync::Mutex;

use crate::{attention, matmul, quantize, vectors};

/// A name and a function for each path.
macro_rules! tests {
    ($($test:path),+ $(,)?) => { &[$((stringify!($test), $test)),+] };
}

/// Every test of this binary; the host compares their number with that of the tests exported for browsers.
const TESTS: &[(&str, fn())] = tests![
    attention::a_value_that_is_no_number_shows_in_every_token_that_sees_it,
    attention::attention_follows_the_definition,
    attention::queries_of_any_size_follow_the_definition,
    attention::the_parts_of_one_token_make_the_whole,
    matmul::exact_products_follow_the_definition,
    matmul::fast_products_follow_the_definition_at_the_extremes,
    matmul::fast_products_follow_the_definition_in_every_shape,
    matmul::products_are_close_to_those_in_f64,
    quantize::activations_are_rounded_as_defined,
    quantize::keys_and_values_are_stored_as_defined,
    vectors::elementary_functions_have_the_same_bits_everywhere,
    vectors::nonlinear_functions_follow_the_definition,
    vectors::norms_follow_the_definition,
    vectors::reductions_have_sixteen_sums_and_one_tree,
    vectors::rope_turns_pairs,
    vectors::simple_vector_operations_do_what_they_say,
    vectors::softmax_sums_to_one,
];

/// What the host reads by [`text_start`] and [`text_bytes`].
static TEXT: Mutex<String> = Mutex::new(String::new());

fn say(text: String) {
    if let Ok(mut kept) = TEXT.lock() {
        *kept = text;
    }
}

/// Makes the text the name of test `i`; whether there is one.
#[unsafe(no_mangle)]
extern "C" fn name_test(i: usize) -> bool {
    let test = TESTS.get(i);
    say(test.map_or_else(String::new, |(name, _)| (*name).into()));
    test.is_some()
}

/// Runs test `i`. The text is then what it panicked with.
#[unsafe(no_mangle)]
extern "C" fn run_test(i: usize) {
    std::panic::set_hook(Box::new(|panic| say(panic.to_string())));
    TESTS[i].1();
}

/// Where the text is.
#[unsafe(no_mangle)]
extern "C" fn text_start() -> *const u8 {
    TEXT.lock().map_or(core::ptr::null(), |text| text.as_ptr())
}

/// How long it is.
#[unsafe(no_mangle)]
extern "C" fn text_bytes() -> usize {
    TEXT.lock().map_or(0, |text| text.len())
}
