// Writes full-vocabulary log-probabilities that llama.cpp gives for 50 ChatML prompts of 50 to 800 tokens.
// Usage: node golden_logprobs.mjs MODEL.gguf [OUT.jsonl]
//
// The log-probability of ids[k] is read at position k-1; the labels are read at the last position of the prompt.
// K and V are kept in f32 and flash attention is off, so that what is left of llama.cpp's own rounding is its
// 8-bit activations. Each prompt is one batch from an empty cache.

import {writeFileSync} from "node:fs";
import {openModel, outPath} from "./model.mjs";
import {dialogues, paragraphs, seeded} from "./prose.mjs";

const PROMPTS = 50;
const SHORTEST = 50;
const LONGEST = 800;
const JUDGED_FROM = 150; // shorter prompts have no room for the question
const LABELS = ["A", "B", "C", " A", " B", " C"];
const QUESTION =
    "Which label does the last reply express?\nA: it follows the persona\nB: it could be anybody\nC: it goes against the persona\n" +
    "Answer with one letter.\nAnswer:";

const {model, close} = await openModel();
const plain = (text) => Array.from(model.tokenize(text, false));
const special = (text) => {
    const ids = Array.from(model.tokenize(text, true));
    if (ids.length !== 1)
        throw new Error(`${text} is not one control token`);
    return ids[0];
};
const START = special("<|im_start|>");
const END = special("<|im_end|>");
const vocabulary = model.fileInfo.metadata.tokenizer.ggml.tokens.length;

const open = (role) => [START, ...plain(`${role}\n`)];
const shut = () => [END, ...plain("\n")];
const turn = (role, content) => [...open(role), ...content, ...shut()];

/** Prompt number `k`: exactly as many tokens as its place between the shortest and the longest asks for. */
function prompt(k, random) {
    const length = SHORTEST + Math.round((k * (LONGEST - SHORTEST)) / (PROMPTS - 1));
    const {persona, context, aligned, off} = dialogues[k % dialogues.length];
    const judged = length >= JUDGED_FROM && k % 3 !== 1;

    const wanted = Math.min(20 + random.below(61), Math.floor(length * 0.45));
    const reply = plain(`${random.chance(0.7) ? aligned : off} ${random.pick(paragraphs)}`).slice(0, wanted + random.below(8));
    const closing = judged ? [...shut(), ...turn("user", plain(QUESTION)), ...open("assistant")] : [];
    const response = [...open("assistant"), ...reply];

    let asked = turn("user", plain(context.join("\n")));
    if (length - response.length - closing.length - asked.length < 8)
        asked = turn("user", plain("Go on."));
    if (length > 400 && k % 2 === 0)
        asked = [...turn("user", plain(random.pick(paragraphs))), ...turn("assistant", plain(off)), ...asked];

    // What is left is the system turn: the persona, then as much prose as fits, cut at a token.
    const room = length - response.length - closing.length - asked.length - turn("system", []).length;
    const story = [...paragraphs.slice(k % paragraphs.length), ...paragraphs].join("\n\n");
    const ids = [...turn("system", plain(`${persona}\n\n${story}`).slice(0, room)), ...asked, ...response];

    // A judged reply's span takes in its <|im_end|>; the others stop at the end of the prompt.
    const end = ids.length + (judged ? 1 : 0);
    const start = end - Math.min(wanted, reply.length);
    ids.push(...closing);
    if (ids.length !== length)
        throw new Error(`prompt ${k} has ${ids.length} tokens, not ${length}`);
    return {ids, start, end};
}

const context = await model.createContext({
    contextSize: 1024, batchSize: 1024, threads: 2, flashAttention: false,
    experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"
});
const sequence = context.getSequence();

// The default sampler is greedy: it picks the largest logit and changes none, so that `probabilities` is the
// softmax of the raw logits, whole. RAW goes the long way round (temperature 1, no cut) and must agree.
const RAW = {temperature: 1, topK: 0, topP: 1, minP: 0};

/** The log-probabilities (a Map from id) at each of `positions`, in one batch from an empty cache. */
async function logProbs(ids, positions, options = {}) {
    await sequence.clearHistory();
    const asked = new Set(positions);
    const output = await sequence.controlledEvaluate(
        ids.map((id, k) => (asked.has(k) ? [id, {generateNext: {probabilities: true, options}}] : id))
    );
    return positions.map((k) => {
        const probabilities = output[k].next.probabilities;
        let sum = 0;
        for (const p of probabilities.values())
            sum += p;
        if (probabilities.size !== vocabulary || Math.abs(sum - 1) > 1e-3)
            throw new Error(`not a full softmax: ${probabilities.size} entries with sum ${sum}`);
        // The addon sums 49,152 terms in f32, 1e-4 off; dividing by our f64 sum takes that error out again.
        return (id) => {
            const p = probabilities.get(id);
            if (!(p > 0))
                throw new Error(`probability of ${id} is ${p}: too small for an f32`);
            return Math.log(p / sum);
        };
    });
}

function agree(what, a, b, tolerance) {
    if (!(Math.abs(a - b) <= tolerance))
        throw new Error(`${what}: ${a} and ${b} differ by more than ${tolerance}`);
}

const random = seeded(20261130);
const labelIds = LABELS.map((label) => {
    const ids = plain(label);
    if (ids.length !== 1)
        throw new Error(`label "${label}" is not one token`);
    return ids[0];
});
const round = (x) => Number(x.toFixed(6));

const lines = [];
for (let k = 0; k < PROMPTS; k++) {
    const {ids, start, end} = prompt(k, random);
    const positions = Array.from({length: end - start}, (_, i) => start + i - 1);
    const readings = await logProbs(ids, [...new Set([...positions, ids.length - 1])]);
    const last = readings.at(-1);
    const span = positions.map((_, i) => readings[i](ids[start + i]));
    lines.push(JSON.stringify({
        ids,
        labels: {ids: labelIds, log_probs: labelIds.map((id) => round(last(id)))},
        span: {start, end, log_probs: span.map(round)}
    }));

    if (k % 10 === 0) {
        // Off by one? The prompt cut before the span must predict the span's first token at its own last position.
        const [cut] = await logProbs(ids.slice(0, start), [start - 1]);
        agree(`prompt ${k}, first token of the span`, cut(ids[start]), span[0], 2e-3);
        const [raw] = await logProbs(ids, [ids.length - 1], RAW);
        agree(`prompt ${k}, label A at temperature 1`, raw(labelIds[0]), last(labelIds[0]), 1e-5);
    }
}
writeFileSync(outPath("smollm2_logprobs.jsonl"), lines.join("\n") + "\n");
console.error(`${lines.length} prompts`);
await close();
