// Opens the GGUF named on the command line with llama.cpp on the CPU.

import {fileURLToPath} from "node:url";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

/** Where a golden goes: the second argument, or tests/golden of this checkout. */
export function outPath(name) {
    return process.argv[3] ?? fileURLToPath(new URL(`../../../tests/golden/${name}`, import.meta.url));
}

/** The model, its path, and a `close` that frees both; exits with 64 when no path was given. */
export async function openModel() {
    const path = process.argv[2];
    if (path == null) {
        console.error("the first argument must be the path of a GGUF file");
        process.exit(64);
    }
    // "never": use the prebuilt library or fail; do not download or compile one.
    const llama = await getLlama({gpu: false, build: "never", maxThreads: 0, logLevel: LlamaLogLevel.error});
    const model = await llama.loadModel({modelPath: path});
    return {path, llama, model, close: () => llama.dispose()};
}
