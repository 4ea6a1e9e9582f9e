// Texts of our own that both golden scripts draw from. Changing a letter here changes the goldens.

import {readFileSync} from "node:fs";

/** Persona, context and two replies each, written for this project. */
export const dialogues = JSON.parse(readFileSync(new URL("dialogues.json", import.meta.url), "utf8"));

export const paragraphs = [
    "The ferry left at ten past six with eleven people on board and one bicycle that nobody claimed. By the second buoy the fog had " +
    "come down so thick that the mate rang the bell by hand. I counted the strokes, because counting is what I do when I cannot see.",
    "A judge that reads log-probabilities does not write an answer. It asks how likely each answer would have been, and stops there. " +
    "That makes it quick, and it makes it honest about doubt: a split of 0.41 to 0.39 says more than a loud \"yes\".",
    "My grandmother kept buttons in a biscuit tin. Horn, brass, mother-of-pearl, two from a coat that had been to Archangel and back. " +
    "On wet Sundays we sorted them by size, then by colour, then by how much we liked them, and the third order never came out twice the same.",
    "Before you open the valve, check three things: that the tank is level, that the gauge reads under 2.5 bar, and that the person " +
    "behind you knows you are about to do it. Most accidents in this yard began with the third.",
    "He spoke in short sentences. He left them lying about, like tools. You picked one up and found that it fitted the next thing you " +
    "had to do. It took me a year to notice that he never once told anybody what to think.",
    "The recipe is older than the oven. Take a kilo of flour, 640 grams of water, twenty of salt and a spoon of yesterday's dough. " +
    "Wait. Fold it four times in two hours, and wait again; what you call patience the dough calls dinner.",
    "Our survey covered 1,248 households in 17 villages between March 3rd and May 29th. Of those, 61.4% had a well, 22% shared a pump, " +
    "and the rest carried water from the river (mean distance 840 m; longest 3.1 km).",
    "If the tram is late, which it is, walk down to the canal and follow the smell of the brewery. There is a green door between the " +
    "bookbinder and the bank. Knock twice. If a dog answers, you are in the right place.",
    "Dear neighbour, I have your parcel, your ladder and, since Tuesday, your cat. The parcel is dry. The ladder is behind my shed. The " +
    "cat has moved into the airing cupboard and regards all talk of going home as a matter for her lawyers.",
    "Nothing in the harbour moved except the light. Gulls stood on the wall at even distances, as though somebody had measured, and a " +
    "boy in yellow boots went from one to the next asking each of them, politely, whether it was the one from yesterday.",
    "We argued about the map for most of the afternoon. She held that a path you cannot find is not a path, whatever the paper says; I " +
    "held that paper which cost nine crowns deserved a second look. In the end we asked a goat, who went straight up.",
    "Shift notes, Thursday. Line two stopped at 03:12 and again at 04:40, both times the label sensor, both times cured with a dry " +
    "cloth. Replaced the belt on the packer. Somebody has drawn a moustache on the safety poster; it rather suits her.",
    "You can tell a good bench by what has been done on it. There should be knife marks, a burn from a soldering iron and a ring from " +
    "one mug, always the same mug, and in the corner a list of measurements in pencil that no longer fit anything.",
    "What do I remember of the war? Queues. The cold inside a cinema. A man who played the accordion with three fingers and apologised " +
    "for the missing notes. People want to hear about the noise, but mostly it was quiet, and the quiet had a taste."
];

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
