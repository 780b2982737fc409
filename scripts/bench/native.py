"""Native llama.cpp for scripts/bench/run.mjs, through llama-cpp-python: opens a model and says so in a line of JSON, then reads
`{"prompt", "maxTokens"}` lines and answers each with the times of a greedy run.

    native.py MODEL CONTEXT THREADS
"""

import json
import sys
import time

import llama_cpp
import numpy


def main(model, context, threads):
    started = time.perf_counter()
    llm = llama_cpp.Llama(
        model_path=model, n_ctx=context, n_threads=threads, n_threads_batch=threads, n_gpu_layers=0, verbose=False
    )
    say({"openMs": milliseconds(started), "threads": threads, "version": llama_cpp.__version__})
    for line in sys.stdin:
        job = json.loads(line)
        say(generate(llm, job["prompt"], job["maxTokens"]))


def generate(llm, prompt, max_tokens):
    started = time.perf_counter()
    prompt = llm.tokenize(prompt.encode())
    llm.reset()
    llm.eval(prompt)
    token = likeliest(llm)
    first = milliseconds(started)
    for _ in range(max_tokens - 1):
        llm.eval([token])
        token = likeliest(llm)
    return {"promptTokens": len(prompt), "tokens": max_tokens, "firstMs": first, "decodeMs": milliseconds(started) - first}


def likeliest(llm):
    logits = llama_cpp.llama_get_logits_ith(llm.ctx, -1)
    return int(numpy.ctypeslib.as_array(logits, shape=(llm.n_vocab(),)).argmax())


def milliseconds(since):
    return (time.perf_counter() - since) * 1e3


def say(answer):
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
