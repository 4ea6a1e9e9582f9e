// Runs the prompts of whole judgements with llama.cpp, so that their speed and their log-probabilities can be compared.
// Usage: node judge.mjs MODEL.gguf PROMPTS.jsonl [THREADS] [FORM]
//
// PROMPTS.jsonl is what `prism-judge debug-prompts` printed. For each line on stdin the next group is judged and one
// JSON line printed: {"group", "judgements", "tokens", "evaluated", "seconds"}. The line `read` also asks for
// "log_probs", prompt by prompt in the order of the file: the sum over the span, or one a label.
//
// What is timed is llama.cpp computing the logits of every token that is read, and nothing that it need not compute: the
// prefix that prompts share stays in the K/V cache, and the last token of a span is not evaluated. Reading the logits is
// NOT timed: the API has no way to ask for one token's probability, only for the whole vocabulary in order (README.md
// has the cost). `read` pays that and its time is not used.

import {readFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {createInterface} from "node:readline";
import {openModel} from "./model.mjs";

const FORMS = ["copied", "single"];
const MOST_SEQUENCES = 8;
const BATCH = 1024;
const [, , , file, threads = "2", form = FORMS[0]] = process.argv;
if (file == null || !(Number(threads) > 0) || !FORMS.includes(form)) {
    console.error(`usage: node judge.mjs MODEL.gguf PROMPTS.jsonl [THREADS] [${FORMS.join("|")}]`);
    process.exit(64);
}

const groups = new Map();
for (const line of readFileSync(file, "utf8").trim().split("\n")) {
    const {group, candidate, ids, span, next} = JSON.parse(line);
    if (!groups.has(group))
        groups.set(group, []);
    const prompts = groups.get(group);
    const [start, end] = span ?? [ids.length, ids.length + 1];
    // ids[k] is predicted at position k - 1, so that nothing reads the position of the last one.
    prompts.push({at: prompts.length, candidate, ids, next, start, end, needed: ids.slice(0, end - 1)});
}

const {model, close} = await openModel();
const longest = Math.max(...[...groups.values()].flat().map((prompt) => prompt.ids.length));
const sequencesWanted = form === "single" ? 1 : MOST_SEQUENCES;
const context = await model.createContext({
    contextSize: longest + 8, batchSize: BATCH, sequences: sequencesWanted, threads: Number(threads), flashAttention: true
});
const sequences = Array.from({length: sequencesWanted}, () => context.getSequence());
const stateFile = `${process.platform === "linux" ? "/dev/shm" : tmpdir()}/prism-judge-peer-${process.pid}.state`;
let evaluated = 0;

function commonLength(a, b, limit = Infinity) {
    const most = Math.min(a.length, b.length, limit);
    let k = 0;
    while (k < most && a[k] === b[k])
        k++;
    return k;
}

/** Cuts the state of `sequence` to what it shares with `ids`, at most `limit` tokens; returns how many that is. */
async function keep(sequence, ids, limit) {
    const kept = commonLength(sequence.contextTokens, ids, limit);
    if (kept < sequence.nextTokenIndex)
        await sequence.eraseContextTokenRanges([{start: kept, end: sequence.nextTokenIndex}]);
    return kept;
}

/**
 * Evaluates `ids` from `from` on; the logits of the positions from `read` on are computed. They are looked at only if
 * `look` is given. `_decodeTokens` is what `controlledEvaluate` calls: the public call always samples as well.
 */
async function evaluate(sequence, ids, from, read, look) {
    const tokens = ids.slice(from);
    evaluated += tokens.length;
    if (look != null)
        return await sequence.controlledEvaluate(
            tokens.map((id, k) => (from + k >= read ? [id, {generateNext: {probabilities: true}}] : id)),
            {onTokenResult: (k, {next}) => look(from + k, next.probabilities)}
        );
    const logits = [];
    for (let k = Math.max(read - from, 0); k < tokens.length; k++)
        logits[k] = true;
    await sequence._decodeTokens(tokens, logits, 5, sequence.tokenMeter, {size: 1, strategy: "eraseBeginning"}, () => undefined);
}

/** The log-probabilities that `prompt` asks for, filled in by the returned function. */
function reader(prompt, answers) {
    const answer = (answers[prompt.at] = prompt.next == null ? 0 : null);
    return (position, probabilities) => {
        let sum = 0;
        for (const p of probabilities.values())
            sum += p; // the addon sums in f32; this takes its error out again
        const logProb = (id) => Math.log(probabilities.get(id) / sum);
        if (prompt.next != null)
            answers[prompt.at] = prompt.next.map(logProb);
        else
            answers[prompt.at] += logProb(prompt.ids[position + 1]);
    };
}

/** One prompt after the other on one sequence, in an order in which neighbours share most. */
async function single(prompts, answers) {
    const [sequence] = sequences;
    for (const prompt of [...prompts].sort((a, b) => compare(a.ids, b.ids))) {
        const kept = await keep(sequence, prompt.needed, prompt.start - 1);
        await evaluate(sequence, prompt.needed, kept, prompt.start - 1, answers && reader(prompt, answers));
    }
}

function compare(a, b) {
    const k = commonLength(a, b);
    return (a[k] ?? -1) - (b[k] ?? -1);
}

/**
 * A candidate a sequence, all in one batch. What they share is evaluated once, on the first sequence, and copied to the
 * others through a state file in memory, which is the only copy that the API offers.
 */
async function copied(prompts, answers) {
    const byCandidate = new Map();
    for (const prompt of prompts)
        byCandidate.set(prompt.candidate, [...(byCandidate.get(prompt.candidate) ?? []), prompt]);
    const candidates = [...byCandidate.values()];
    for (let first = 0; first < candidates.length; first += sequences.length) {
        const some = candidates.slice(first, first + sequences.length);
        // Neighbours share most, as in `single`: the prompts of a candidate have the same order for all.
        const waves = [...some[0].keys()].sort((a, b) => compare(some[0][a].ids, some[0][b].ids));
        for (const wave of waves)
            await together(some.map((candidate) => candidate[wave]), answers);
    }
}

async function together(prompts, answers) {
    const [{ids, start}] = prompts;
    const shared = Math.min(...prompts.map((prompt) => commonLength(ids, prompt.ids, Math.min(start, prompt.start) - 1)));
    const lacking = sequences.slice(0, prompts.length).filter((sequence) => commonLength(sequence.contextTokens, ids, shared) < shared);
    if (lacking.length > 0) {
        const [source] = sequences;
        const prefix = ids.slice(0, shared);
        const kept = await keep(source, prefix, shared);
        if (kept < shared)
            await evaluate(source, prefix, kept, Infinity);
        await source.saveStateToFile(stateFile);
        for (const sequence of lacking)
            if (sequence !== source)
                await sequence.loadStateFromFile(stateFile, {acceptRisk: true});
    }
    const kept = [];
    for (const [k, prompt] of prompts.entries())
        kept.push(await keep(sequences[k], prompt.needed, prompt.start - 1));
    await Promise.all(prompts.map((prompt, k) =>
        evaluate(sequences[k], prompt.needed, kept[k], prompt.start - 1, answers && reader(prompt, answers))
    ));
}

const judge = {single, copied}[form];
const waiting = [...groups];
for await (const command of createInterface({input: process.stdin})) {
    if (waiting.length === 0)
        break;
    const [group, prompts] = waiting.shift();
    const answers = command === "read" ? [] : null;
    evaluated = 0;
    const start = process.hrtime.bigint();
    await judge(prompts, answers);
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    if (context.currentThreads !== Number(threads))
        throw new Error(`llama.cpp used ${context.currentThreads} threads, not ${threads}`);
    const judgements = new Set(prompts.map((prompt) => prompt.candidate)).size;
    const tokens = prompts.reduce((sum, prompt) => sum + prompt.ids.length, 0);
    console.log(JSON.stringify({group, judgements, tokens, evaluated, seconds, log_probs: answers ?? undefined}));
}
rmSync(stateFile, {force: true});
await close();
