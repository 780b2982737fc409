//! The native command as a user types it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::generate::fixture;

fn sluice(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command is built");
    child.stdin.take().expect("stdin").write_all(input.as_bytes()).expect("write");
    child.wait_with_output().expect("output")
}

fn json(args: &[&str]) -> Value {
    let output = sluice(args, "");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn refused(args: &[&str]) -> String {
    let output = sluice(args, "");
    assert!(!output.status.success(), "{args:?} must fail");
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn path(name: &str) -> String {
    fixture(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn run_prints_ids_reason_and_stats() {
    let model = path("models/llama-gqa.gguf");
    let report =
        json(&["run", &model, "--ids", "1,2,3", "-n", "4", "--greedy", "--ignore-eog", "--json"]);
    assert_eq!(report["ids"].as_array().expect("ids").len(), 4, "{report}");
    assert_eq!(report["finishReason"], "length", "{report}");
    for field in [
        "promptTokens",
        "generatedTokens",
        "ttftMs",
        "bytesRead",
        "stallMs",
        "kvBytes",
        "memoryPeakBytes",
        "residentShare",
    ] {
        assert!(report["stats"][field].is_number(), "{field} in {report}");
    }
    assert_eq!(report["stats"]["promptTokens"], 3, "{report}");
}

#[test]
fn every_way_to_hold_the_weights_gives_the_same_logits_file() {
    let model = path("quant/llama-q4_k_m.gguf");
    let folder = std::env::temp_dir().join(format!("sluice-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let write = |name: &str, more: &[&str]| {
        let out = folder.join(name);
        let out_text = out.to_str().expect("UTF-8");
        let mut args =
            vec!["logits", &model, "--ids", "5,6,7,8,9,10,11", "--ctx", "64", "--out", out_text];
        args.extend(more);
        assert!(sluice(&args, "").status.success(), "{args:?}");
        std::fs::read(out).expect("file")
    };
    let expected = write("resident", &[]);
    let floor = json(&["inspect", &model, "--ctx", "64", "--n-batch", "1", "--json"]);
    let floor = floor["plan"]["floorBytes"].as_u64().expect("floor").to_string();
    let tight = ["--ram-budget", floor.as_str(), "--n-batch", "1"];
    assert!(write("floor", &tight) == expected, "at the floor");
    assert!(write("mmap", &[&tight[..], &["--mmap"]].concat()) == expected, "through a map");
    let no_async = [&tight[..], &["--no-async"]].concat();
    assert!(write("no-async", &no_async) == expected, "without reading ahead");
    assert!(write("f16", &["--kv", "f16"]) == expected, "f16 is the default");
    let f32_kv = write("kv", &["--kv", "f32"]);
    assert!(f32_kv != expected, "another cache has other bits");
    let f32_tight = ["--kv", "f32", "--ram-budget", "64K", "--ram-budget-force", "--n-batch", "1"];
    assert!(write("kv-tight", &f32_tight) == f32_kv, "the same at every budget");
    let forced = ["--ram-budget", "64K", "--ram-budget-force", "--n-batch", "1"];
    assert!(write("forced", &forced) == expected, "forced below the floor");
    let exact = write("exact", &["--precision", "exact"]);
    assert!(exact != expected, "exact is other arithmetic");
    assert!(write("f32", &["--residency", "f32"]) == exact, "f32 residency is exact");
    std::fs::remove_dir_all(folder).expect("clean up");
}

#[test]
fn inspect_says_what_a_model_is_and_takes() {
    let verdict = json(&["inspect", &path("models/gemma3.gguf"), "--json"]);
    assert_eq!(verdict["architecture"], "gemma3", "{verdict}");
    assert!(verdict["plan"]["floorBytes"].as_u64().expect("floor") > 0, "{verdict}");
    assert_eq!(verdict["refused"], Value::Null, "{verdict}");
    let kv = |kv_type| {
        let verdict = json(&["inspect", &path("models/gemma3.gguf"), "--kv", kv_type, "--json"]);
        verdict["plan"]["ledger"]["kv"].as_u64().expect("bytes")
    };
    assert!(kv("f32") > kv("f16") && kv("f16") > kv("q8_0"), "{} {}", kv("f16"), kv("q8_0"));
    let verdict = json(&["inspect", &path("models/gemma3.gguf"), "--ram-budget", "64K", "--json"]);
    assert_eq!(verdict["refused"]["code"], "out_of_memory", "{verdict}");
}

#[test]
fn a_budget_prints_the_report() {
    let model = path("models/llama-gqa.gguf");
    let output = sluice(&["run", &model, "--ids", "1", "-n", "1", "--ram-budget", "64M"], "");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for word in ["budget", "residents", "keys and values", "total"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn tokenize_reads_lines_of_json_and_decodes_back() {
    use flate2::read::GzDecoder;
    let file = std::fs::File::open(fixture("vocab/smollm2.vocab.gguf.gz")).expect("fixture");
    let vocab = std::env::temp_dir().join(format!("sluice-vocab-{}.gguf", std::process::id()));
    let mut out = std::fs::File::create(&vocab).expect("file");
    std::io::copy(&mut GzDecoder::new(file), &mut out).expect("unpack");
    let model = vocab.to_str().expect("UTF-8");
    let output = sluice(&["tokenize", model, "--jsonl"], "\"Hello world\"\n\n\"é\\u0000🍕\"\n");
    let lines: Vec<Value> = output
        .stdout
        .split(|&b| b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "a line each, blank ones skipped");
    assert_eq!(lines[0]["text"], "Hello world", "decoded back");
    assert_eq!(lines[1]["text"], "é\u{0}🍕", "decoded back");
    assert!(lines[0]["ids"].as_array().expect("ids").len() == 2, "{lines:?}");
    let bad = sluice(&["tokenize", model, "--jsonl"], "\"fine\"\nnot JSON\n");
    assert!(
        !bad.status.success() && String::from_utf8_lossy(&bad.stderr).contains("line 2"),
        "names the line"
    );
    std::fs::remove_file(vocab).expect("clean up");
}

#[test]
fn output_that_nobody_reads_ends_the_command_quietly() {
    let model = path("models/llama-gqa.gguf");
    for args in [
        vec!["inspect", &model],
        vec!["run", &model, "--ids", "1,2,3", "-n", "8", "--greedy", "--ignore-eog"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .args(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command is built");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("output");
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn failures_are_one_line_with_the_code() {
    let model = path("models/llama-gqa.gguf");
    for (args, code, words) in [
        (vec!["run", "/nowhere.gguf", "-p", "x"], "source_failed", "/nowhere.gguf"),
        (
            vec!["logits", &model, "--ids", "1", "--out", "/nowhere/l"],
            "output_failed",
            "/nowhere/l",
        ),
        (
            vec!["make-model", "smollm2-135m", "--zeros", "-o", "/nowhere/m"],
            "output_failed",
            "/nowhere/m",
        ),
        (vec!["run", &model, "-p", ""], "invalid_option", "prompt"),
        (vec!["run", &model, "--ids", "1,2,3", "--ctx", "2"], "context_full", "3"),
        (vec!["run", "/nowhere.gguf"], "invalid_option", "-p"),
        (vec!["run", &path("README.md"), "-p", "x"], "invalid_model", "#"),
        (vec!["run", &model, "--ids", "1", "--ram-budget", "100K"], "out_of_memory", "memory"),
    ] {
        let said = refused(&args);
        assert!(said.contains(&format!("[{code}]")), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
}

#[test]
fn greedy_and_a_temperature_contradict_each_other() {
    let model = path("models/llama-gqa.gguf");
    let said = refused(&["run", &model, "--ids", "1", "--greedy", "--temperature", "0.5"]);
    assert!(said.contains("'--greedy' cannot be used with '--temperature <X>'"), "{said}");
}
