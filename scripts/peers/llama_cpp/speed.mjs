// Times llama.cpp's prefill, one JSON line a repeat: {"tokens":512,"seconds":1.37}
// Usage: node speed.mjs MODEL.gguf N_TOKENS [REPEATS] [THREADS]
//
// With REPEATS it runs so often and ends. Without (or with 0) it waits for a line on stdin before each repeat, so
// that a driver can take turns between this and another program, and ends when stdin does.
//
// What is timed: one llama_decode from an empty cache, with up to 512 tokens a batch (n_batch = n_ubatch = 512),
// the logits of the last token only, and the greedy pick from them (about 0.1 ms). Calling the addon without the
// JavaScript layer was not faster. Of the settings tried on a two-core AVX-512 machine at 512 tokens this is the
// fastest: flash attention on with f16 K and V 369 tokens/s, off 307, on with one thread 190.

import {createInterface} from "node:readline";
import {openModel} from "./model.mjs";
import {paragraphs} from "./prose.mjs";

const BATCH = 512;
const WARM_UPS = 2;

const [tokens, repeats, threads] = [process.argv[3], process.argv[4] ?? "0", process.argv[5] ?? "2"].map(Number);
if (!(tokens > 0 && repeats >= 0 && threads > 0)) {
    console.error("usage: node speed.mjs MODEL.gguf N_TOKENS [REPEATS] [THREADS]");
    process.exit(64);
}

const {model, close} = await openModel();
const context = await model.createContext({contextSize: tokens + 8, batchSize: BATCH, threads, flashAttention: true});
const sequence = context.getSequence();

const prose = Array.from(model.tokenize(paragraphs.join("\n\n"), false));
const ids = Array.from({length: tokens}, (_, k) => prose[k % prose.length]);
const input = [...ids.slice(0, -1), [ids[tokens - 1], {generateNext: {token: true}}]];

async function prefill() {
    await sequence.clearHistory();
    const start = process.hrtime.bigint();
    await sequence.controlledEvaluate(input);
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    if (context.currentThreads !== threads)
        throw new Error(`llama.cpp used ${context.currentThreads} threads, not ${threads}`);
    return seconds;
}

const report = async () => console.log(JSON.stringify({tokens, seconds: Number((await prefill()).toFixed(6))}));

for (let k = 0; k < WARM_UPS; k++)
    await prefill();
if (repeats > 0)
    for (let k = 0; k < repeats; k++)
        await report();
else
    for await (const _ of createInterface({input: process.stdin}))
        await report();
await close();
