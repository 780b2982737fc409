"""Runs the tests of a wasm module under wasmtime with deterministic relaxed SIMD: what the specification leaves to the processor has
one result there, so code that depends on a processor's choice meets another one than in a browser. Prints as cargo test does.

    python3 scripts/check/deterministic.py FILE.wasm
"""

import sys

import wasmtime


def main(file):
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    config.wasm_relaxed_simd_deterministic = True
    engine = wasmtime.Engine(config)
    module = wasmtime.Module.from_file(engine, file)
    linker = wasmtime.Linker(engine)
    # What the module imports is JavaScript's; no test gets there.
    linker.define_unknown_imports_as_traps(module)

    passed = failed = 0
    while True:
        # Each test has an instance of its own: a trap leaves one in no state to go on.
        store = wasmtime.Store(engine)
        exports = linker.instantiate(store, module).exports(store)
        if not exports["name_test"](store, passed + failed):
            break
        name = text(store, exports)
        try:
            exports["run_test"](store, passed + failed)
            print(f"test {name} ... ok")
            passed += 1
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            print(f"test {name} ... FAILED\n{text(store, exports) or error}")
            failed += 1

    for_browsers = sum(export.name.startswith("__wbgt_") for export in module.exports)
    if for_browsers != passed + failed:
        print(f"{for_browsers} tests are exported for browsers, {passed + failed} for this run: tests/kernels/host.rs lacks some")
        failed += 1
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed")
    return 1 if failed else 0


def text(store, exports):
    start = exports["text_start"](store)
    return exports["memory"].read(store, start, start + exports["text_bytes"](store)).decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
