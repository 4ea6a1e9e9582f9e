// Texts of our own that the golden scripts and the benchmarks draw from. Changing a letter changes the goldens.

import {readFileSync} from "node:fs";

/** Persona, context and two replies each, written for this project. */
export const dialogues = JSON.parse(readFileSync(new URL("dialogues.json", import.meta.url), "utf8"));

/** Prose of many kinds, written for this project. */
export const paragraphs = JSON.parse(readFileSync(new URL("paragraphs.json", import.meta.url), "utf8"));

/** A small seeded generator (mulberry32): the same numbers on every machine. */
export function seeded(seed) {
    let state = seed >>> 0;
    const next = () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = state;
        t = Math.imul(t ^ (t >>> 15), t | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const below = (n) => Math.floor(next() * n);
    return {below, pick: (list) => list[below(list.length)], chance: (p) => next() < p};
}
