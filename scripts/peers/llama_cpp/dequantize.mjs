// Rewrites a GGUF with every Q4_1 and Q8_0 tensor as f32, so that llama.cpp computes it without 8-bit activations.
// Usage: node dequantize.mjs MODEL.gguf OUT.gguf
// Layouts: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the block structs in ggml-common.h.

import {closeSync, openSync, readFileSync, writeSync} from "node:fs";

const [, , from, to] = process.argv;
if (to == null) {
    console.error("usage: node dequantize.mjs MODEL.gguf OUT.gguf");
    process.exit(64);
}
const file = readFileSync(from);
const BLOCK = 32; // weights a block, in both formats
const ALIGNMENT = 32;
const F32 = 0;
const STRING = 8;
const ARRAY = 9;
const VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8};

let at = 0;
const u32 = () => file.readUInt32LE((at += 4) - 4);
const u64 = () => Number(file.readBigUInt64LE((at += 8) - 8));
const string = () => {
    const length = u64();
    return file.toString("utf8", at, (at += length));
};

function skipValue(type) {
    if (type === STRING)
        string();
    else if (type === ARRAY) {
        const element = u32();
        for (let left = u64(); left > 0; left--)
            skipValue(element);
    } else
        at += VALUE_BYTES[type];
}

function half(bits) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/** f32 weights of `count` elements stored at byte `start`, by GGML type. */
const decoders = {
    [F32]: (start, count) => new Float32Array(file.buffer.slice(file.byteOffset + start, file.byteOffset + start + 4 * count)),
    // Q4_1: scale, minimum, then 16 bytes whose low halves are weights 0-15 and whose high halves are 16-31.
    3(start, count) {
        const out = new Float32Array(count);
        for (let i = 0, p = start; i < count; i += BLOCK, p += 20) {
            const scale = half(file.readUInt16LE(p));
            const minimum = half(file.readUInt16LE(p + 2));
            for (let j = 0; j < 16; j++) {
                out[i + j] = (file[p + 4 + j] & 15) * scale + minimum;
                out[i + j + 16] = (file[p + 4 + j] >> 4) * scale + minimum;
            }
        }
        return out;
    },
    // Q8_0: scale, then 32 signed bytes.
    8(start, count) {
        const out = new Float32Array(count);
        for (let i = 0, p = start; i < count; i += BLOCK, p += 34) {
            const scale = half(file.readUInt16LE(p));
            for (let j = 0; j < BLOCK; j++)
                out[i + j] = file.readInt8(p + 2 + j) * scale;
        }
        return out;
    }
};

at = 8; // magic and version
const tensorCount = u64();
for (let left = u64(); left > 0; left--) {
    string();
    skipValue(u32());
}
const header = Buffer.from(file.subarray(0, at));

const tensors = Array.from({length: tensorCount}, () => {
    const name = string();
    const shape = Array.from({length: u32()}, u64);
    return {name, shape, type: u32(), offset: u64()};
});
const align = (n) => Math.ceil(n / ALIGNMENT) * ALIGNMENT;
const data = align(at);

const infos = [];
let offset = 0;
for (const tensor of tensors) {
    tensor.count = tensor.shape.reduce((a, b) => a * b);
    const name = Buffer.from(tensor.name);
    const info = Buffer.alloc(8 + name.length + 4 + 8 * tensor.shape.length + 4 + 8);
    let p = info.writeBigUInt64LE(BigInt(name.length));
    p += name.copy(info, p);
    p = info.writeUInt32LE(tensor.shape.length, p);
    for (const n of tensor.shape)
        p = info.writeBigUInt64LE(BigInt(n), p);
    p = info.writeUInt32LE(F32, p);
    info.writeBigUInt64LE(BigInt(offset), p);
    infos.push(info);
    offset = align(offset + 4 * tensor.count);
}

const out = openSync(to, "w");
const head = Buffer.concat([header, ...infos]);
let written = writeSync(out, Buffer.concat([head, Buffer.alloc(align(head.length) - head.length)]));
for (const {name, type, offset: start, count} of tensors) {
    if (!(type in decoders))
        throw new Error(`tensor ${name} has GGML type ${type}, which is not decoded here`);
    const weights = decoders[type](data + start, count);
    const bytes = Buffer.alloc(align(weights.byteLength));
    Buffer.from(weights.buffer).copy(bytes);
    written += writeSync(out, bytes);
}
closeSync(out);
console.error(`${tensors.length} tensors, ${written} bytes`);
