//! Holds the architecture: who may import whom, where browser bindings and unsafe code may stand, and how long a file may be.
//! A new arrow is a design decision: change the table here and `docs/architecture.md` in the same commit, and say why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Module → modules it may import. `cli` is the native command; `lib` and `main` are the crate's roots.
const IMPORTS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("quant", &["error"]),
    ("gguf", &["error", "quant"]),
    ("kernels", &["quant"]),
    ("team", &[]),
    ("tokenizer", &["error", "gguf"]),
    ("model", &["error", "gguf", "quant", "kernels", "team"]),
    ("planner", &["error", "gguf", "model"]),
    ("source", &["error", "gguf"]),
    ("loader", &["error", "quant", "gguf", "planner", "source", "model"]), // of `model` the uses only; `quant` for residency f32
    ("sampler", &["error", "kernels"]),
    (
        "runtime",
        &[
            "error",
            "quant",
            "gguf",
            "kernels",
            "team",
            "tokenizer",
            "model",
            "planner",
            "source",
            "loader",
            "sampler",
        ],
    ),
    ("bindings", &["runtime", "error"]),
    ("cli", &["runtime", "error", "gguf", "quant"]), // the last two to write model files
    ("main", &["cli", "runtime", "error"]),
    ("lib", &[]),
];

/// Files and folders in which unsafe code may stand; each block has its SAFETY line.
const UNSAFE: &[&str] = &[
    "src/kernels/simd128/lanes.rs",
    "src/kernels/simd128/relaxed.rs",
    "src/source/native/mmap.rs",
    "src/team/",
];

/// Crates of the browser, and where alone they may be named.
const BROWSER_CRATES: &[&str] = &["wasm_bindgen", "wasm_bindgen_futures", "js_sys", "web_sys"];
const BROWSER_PLACES: &[&str] = &["src/source/web/", "src/bindings/"];

/// Files of js/ by layer: a file imports from lower layers only. Leaves hold types and import nothing but each other's types.
const JS_LAYERS: &[&[&str]] = &[
    &["errors", "layout", "options", "protocol", "openai-wire"],
    &["rpc", "rpc-server", "capabilities", "given", "life", "rates", "store", "workers"],
    &["launch", "models"],
    &["engine", "inspect"],
    &["openai-checks", "openai-logprobs"],
    &["openai-params", "openai-fetch"],
    &["openai"],
    &["index"],
];

/// Layers that the worker (js/worker/) may import from, besides its own files.
const JS_WORKER_BELOW: usize = 2;

const MAX_LINES: usize = 600;

/// Longer than the limit, because they are tables.
const LONG_TABLES: &[&str] = &["src/quant/grids/", "src/tokenizer/unicode/"];

#[test]
fn modules_import_only_what_the_table_allows() {
    let table: BTreeMap<_, _> =
        IMPORTS.iter().map(|(module, allowed)| (*module, *allowed)).collect();
    let mut wrong = String::new();
    for file in sources(&["src"], &["rs"]) {
        let module = module_of(&file.path);
        let Some(allowed) = table.get(module) else {
            let _ = writeln!(wrong, "{}: module `{module}` is not in the table", file.path);
            continue;
        };
        let mut imported = imported_modules(&file.code);
        imported.extend(
            modules_by_super(&file).into_iter().filter(|name| table.contains_key(name.as_str())),
        );
        for imported in imported {
            if imported != module && !allowed.contains(&imported.as_str()) {
                let _ = writeln!(wrong, "{}: `{module}` may not import `{imported}`", file.path);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn the_page_shows_this_table() {
    let page = std::fs::read_to_string("docs/architecture.md").expect("the page");
    let mut above = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let module = cells[1].trim_matches('`');
        let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == module) else { continue };
        let shown: BTreeSet<_> = match cells[3] {
            "all above" => above.clone(),
            list => list.split(", ").filter_map(|name| name.split(' ').next()).collect(),
        };
        let allowed: BTreeSet<_> = allowed.iter().copied().collect();
        assert_eq!(&shown - &BTreeSet::from(["–"]), allowed, "{module}");
        above.insert(module);
    }
    let roots = ["cli", "main", "lib"];
    let missing = IMPORTS.iter().find(|(name, _)| !above.contains(name) && !roots.contains(name));
    assert_eq!(missing, None, "every module of the library");
}

#[test]
fn unsafe_code_and_browser_crates_stand_only_where_listed() {
    let mut wrong = String::new();
    for file in sources(&["src"], &["rs"]) {
        let listed = |places: &[&str]| places.iter().any(|place| file.path.starts_with(place));
        let words: BTreeSet<_> = words(&file.code).collect();
        if words.contains("unsafe") && !listed(UNSAFE) {
            let _ = writeln!(wrong, "{}: unsafe code", file.path);
        }
        for name in BROWSER_CRATES.iter().filter(|name| words.contains(**name)) {
            if !listed(BROWSER_PLACES) {
                let _ = writeln!(wrong, "{}: `{name}` outside {BROWSER_PLACES:?}", file.path);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn files_say_what_they_are_and_keep_to_the_limit() {
    let mut wrong = String::new();
    let rust = sources(&["src", "tests", "benches", "fuzz"], &["rs"]);
    let script = sources(&["js", "www", "scripts", "tests"], &["ts", "mjs", "js"]);
    assert!(rust.len() > 20, "found {} Rust files: is this the repository?", rust.len());
    for file in rust.iter().chain(&script) {
        let first = if file.path.ends_with(".rs") { "//! " } else { "// " };
        if !file.text.starts_with(first)
            && !file.text.starts_with("/**")
            && !file.path.ends_with(".d.ts")
        {
            let _ = writeln!(
                wrong,
                "{}: starts with no `{first}` line that says what it is",
                file.path
            );
        }
        let lines = file.text.lines().count();
        if lines > MAX_LINES && !LONG_TABLES.iter().any(|table| file.path.starts_with(table)) {
            let _ = writeln!(wrong, "{}: {lines} lines, at most {MAX_LINES}", file.path);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn typescript_imports_point_down_the_layers() {
    let mut wrong = String::new();
    for file in sources(&["js"], &["ts"]) {
        let worker = file.path.starts_with("js/worker/");
        // Node's half is both page and worker, and nobody imports it.
        if file.path.starts_with("js/node/") {
            continue;
        }
        let layer = js_layer(&file.path);
        if !worker && layer.is_none() {
            let _ = writeln!(wrong, "{}: has no layer: give it one in JS_LAYERS", file.path);
        }
        for (specifier, types_only) in imports_of_typescript(&file.code) {
            let target = resolve(&file.path, &specifier);
            let fine = match (worker, layer, js_layer(&target)) {
                _ if target.starts_with("js/wasm/") => worker,
                (true, _, _) if target.starts_with("js/worker/") => true,
                (false, _, _) if same_folder(&file.path, &target) => true,
                (true, _, Some(below)) => below < JS_WORKER_BELOW,
                (false, Some(own), Some(below)) if below == own => types_only,
                (false, Some(own), Some(below)) => below < own,
                _ => false,
            };
            if !fine {
                let _ = writeln!(wrong, "{}: may not import `{specifier}`", file.path);
            }
        }
    }
    for file in sources(&["www"], &["ts"]) {
        for (specifier, _) in imports_of_typescript(&file.code) {
            if specifier.starts_with("../") {
                let _ = writeln!(
                    wrong,
                    "{}: the demo imports the package by name, not `{specifier}`",
                    file.path
                );
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn the_two_manifests_state_one_version() {
    let version = |file: &str, key: &str| {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with(key)).unwrap().to_owned();
        line.split('"').rev().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        version("Cargo.toml", "version"),
        version("package.json", "\"version\""),
        "Cargo.toml and package.json"
    );
}

struct Source {
    /// From the repository's root, with `/`.
    path: String,
    text: String,
    /// Without comments.
    code: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folders: &[&str], extensions: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    for folder in folders {
        collect(&root().join(folder), extensions, &mut found);
    }
    found
}

fn collect(folder: &Path, extensions: &[&str], found: &mut Vec<Source>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !["fixtures", "node_modules", "target"].contains(&name) {
                collect(&path, extensions, found);
            }
        } else if path
            .extension()
            .is_some_and(|extension| extensions.iter().any(|known| extension == *known))
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or(""))
                .collect::<Vec<_>>()
                .join("\n");
            let path = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            found.push(Source { path, text, code });
        }
    }
}

/// `src/gguf/header.rs` and `src/gguf.rs` belong to `gguf`.
fn module_of(path: &str) -> &str {
    let inside = path.strip_prefix("src/").unwrap();
    inside.split('/').next().unwrap().trim_end_matches(".rs")
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Modules named as `crate::x` or `crate::{x, y::z}`; the command names the library `sluice`. Types at the root are free.
fn imported_modules(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for prefix in ["crate::", "sluice::"] {
        for (at, _) in code.match_indices(prefix) {
            let rest = &code[at + prefix.len()..];
            let names = match rest.strip_prefix('{') {
                Some(group) => top_level_names(group),
                None => vec![words(rest).next().unwrap_or("")],
            };
            found.extend(
                names
                    .into_iter()
                    .filter(|name| name.starts_with(|c: char| c.is_lowercase()))
                    .map(str::to_owned),
            );
        }
    }
    found
}

/// What a chain of `super::` long enough to reach the crate's root names there.
fn modules_by_super(file: &Source) -> Vec<String> {
    let depth = file.path.split('/').count() - 1 - usize::from(file.path.ends_with("/mod.rs"));
    let chain = "super::".repeat(depth.max(1));
    file.code
        .match_indices(&chain)
        .filter_map(|(at, _)| words(&file.code[at + chain.len()..]).next())
        .map(str::to_owned)
        .collect()
}

/// The first word of each element of a `{…}` group.
fn top_level_names(group: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                names.push(words(group[start..at].trim()).next().unwrap_or(""));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

/// Relative specifiers of `import … from`, `export … from` and `import(…)`, and whether only types are taken.
fn imports_of_typescript(code: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let statement = statement.trim_start();
        for marker in ["from '", "import '", "import('"] {
            if let Some((before, rest)) = statement.split_once(marker) {
                // A comment may stand before the statement.
                let keyword = before.rfind("import").max(before.rfind("export")).unwrap_or(0);
                let keyword = &before[keyword..];
                let specifier = rest.split('\'').next().unwrap_or("");
                if specifier.starts_with('.') {
                    let types_only =
                        keyword.starts_with("import type") || keyword.starts_with("export type");
                    found.push((specifier.to_owned(), types_only));
                }
            }
        }
    }
    found
}

/// `js/worker/main.ts` + `../errors.js` → `js/errors.ts`.
fn resolve(from: &str, specifier: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/").replace(".js", ".ts")
}

/// Whether both are files of one folder below `js/`.
fn same_folder(path: &str, target: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    folder(path) == folder(target) && folder(path).is_some_and(|folder| folder != "js")
}

/// The layer of a file, or of the folder it is in.
fn js_layer(path: &str) -> Option<usize> {
    let name = path.strip_prefix("js/")?.strip_suffix(".ts")?;
    let name = name.split_once('/').map_or(name, |(folder, _)| folder);
    JS_LAYERS.iter().position(|layer| layer.contains(&name))
}
