//! Files that are no models, damaged ones, and parts that do not belong together.

use super::attempt::{LLAMA, read};
use super::{Case, refuse_all};

#[test]
fn each_is_refused_and_the_next_open_works() {
    refuse_all(CASES);
}

pub(super) const CASES: &[Case] = &[
    Case {
        what: "an empty file",
        code: "invalid_model",
        says: &["the file is empty"],
        spoil: |a| a.bytes(b""),
    },
    Case {
        what: "a web page instead of the model",
        code: "invalid_model",
        says: &["<!DOCTYPE html", "a web page, not a model", "does the address lead to the file"],
        spoil: |a| a.bytes(b"<!DOCTYPE html>\n<html><title>404</title></html>"),
    },
    Case {
        what: "a JSON answer instead of the model",
        code: "invalid_model",
        says: &["JSON, not a model"],
        spoil: |a| a.bytes(b"{\"error\":\"gated\"}"),
    },
    Case {
        what: "a Git LFS pointer",
        code: "invalid_model",
        says: &["a Git LFS pointer"],
        spoil: |a| a.bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
    },
    Case {
        what: "a safetensors file",
        code: "invalid_model",
        says: &["safetensors", "a GGUF file is needed"],
        spoil: |a| a.bytes(b"\x40\x01\0\0\0\0\0\0{\"__metadata__\":{}}"),
    },
    Case {
        what: "an archive",
        code: "invalid_model",
        says: &["gzip archive", "unpack it"],
        spoil: |a| a.bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\0"),
    },
    Case {
        what: "a format older than GGUF",
        code: "invalid_model",
        says: &["'GGML'", "convert the model again"],
        spoil: |a| a.fixtures(&["parser/bad/magic-47474d4c.gguf"]),
    },
    Case {
        what: "any other bytes",
        code: "invalid_model",
        says: &["00 00 00 00", "neither 'GGUF' nor 'LLMW'"],
        spoil: |a| a.fixtures(&["parser/bad/magic-00000000.gguf"]),
    },
    Case {
        what: "a GGUF version that is not read",
        code: "unsupported_model",
        says: &["GGUF version 4", "only 2 and 3", "convert the model again"],
        spoil: |a| a.fixtures(&["parser/bad/version-4.gguf"]),
    },
    Case {
        what: "a big-endian file",
        code: "unsupported_model",
        says: &["big-endian", "only little-endian"],
        spoil: |a| a.fixtures(&["parser/bad/big-endian.gguf"]),
    },
    Case {
        what: "a file cut off in its header",
        code: "invalid_model",
        says: &["cut off or damaged", "it has 1500"],
        spoil: |a| a.files[0].truncate(1500),
    },
    Case {
        what: "a file cut off in its tensors",
        code: "invalid_model",
        says: &["blk.0.", "cut off", "the file has 60000 bytes"],
        spoil: |a| a.files[0].truncate(60_000),
    },
    Case {
        what: "a file that lacks its last byte",
        code: "invalid_model",
        says: &["blk.2.ffn_down.weight", "cut off"],
        spoil: |a| a.files[0].truncate(421_887),
    },
    Case {
        what: "counts larger than the file",
        code: "invalid_model",
        says: &["1099511627776 tensors are declared at byte 24"],
        spoil: |a| a.fixtures(&["parser/bad/huge-n-tensors-10000000000.gguf"]),
    },
    Case {
        what: "lengths larger than the file",
        code: "invalid_model",
        says: &["18446744073709551615 bytes are needed"],
        spoil: |a| a.fixtures(&["parser/bad/string-length-ffffffffffffffff.gguf"]),
    },
    Case {
        what: "a split model of which a part is missing",
        code: "invalid_model",
        says: &["2 of 3 parts", "part 2 is missing", "all are needed"],
        spoil: |a| a.fixtures(&[PARTS[0], PARTS[2]]),
    },
    Case {
        what: "one part of a split model alone",
        code: "invalid_model",
        says: &["1 of 3 parts"],
        spoil: |a| a.fixtures(&[PARTS[0]]),
    },
    Case {
        what: "a part that is given twice",
        code: "invalid_model",
        says: &["part 3 of 3 is given twice"],
        spoil: |a| a.fixtures(&[PARTS[0], PARTS[2], PARTS[2]]),
    },
    Case {
        what: "parts of different models",
        code: "invalid_model",
        says: &["the parts are of different models"],
        spoil: |a| a.fixtures(&WRONG_PARTS),
    },
    Case {
        what: "a whole model among parts",
        code: "invalid_model",
        says: &["a whole model is among the parts"],
        spoil: |a| a.fixtures(&[PARTS[0], LLAMA, PARTS[2]]),
    },
    Case {
        what: "two whole models",
        code: "invalid_model",
        says: &["2 files are given, but the first is a whole model"],
        spoil: |a| a.files.push(read(LLAMA)),
    },
    Case {
        what: "parts that lack tensors",
        code: "invalid_model",
        says: &["the parts hold 12 tensors, 15 are declared"],
        spoil: |a| a.fixtures(&SHORT_PARTS),
    },
    Case {
        what: "no file at all",
        code: "invalid_model",
        says: &["no file is given"],
        spoil: |a| a.files.clear(),
    },
];

const PARTS: [&str; 3] = [
    "parser/ok/split/split-00001-of-00003.gguf",
    "parser/ok/split/split-00002-of-00003.gguf",
    "parser/ok/split/split-00003-of-00003.gguf",
];

const WRONG_PARTS: [&str; 3] = [
    "parser/bad/split-wrong-count/s-00001-of-00003.gguf",
    "parser/bad/split-wrong-count/s-00002-of-00003.gguf",
    "parser/bad/split-wrong-count/s-00003-of-00003.gguf",
];

const SHORT_PARTS: [&str; 3] = [
    "parser/bad/split-tensor-count/s-00001-of-00003.gguf",
    "parser/bad/split-tensor-count/s-00002-of-00003.gguf",
    "parser/bad/split-tensor-count/s-00003-of-00003.gguf",
];
