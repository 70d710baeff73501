// Makes a picture of a wanted size: real PNG bytes that no compressor can shrink.
import { randomFillSync } from "node:crypto";
import { deflateSync } from "node:zlib";

/** A square, colourful PNG of about so many bytes. */
export function bigPng(bytes) {
  const side = Math.ceil(Math.sqrt(bytes / 3));
  const row = 1 + side * 3;
  const pixels = randomFillSync(Buffer.alloc(row * side));
  // Every row begins with its filter: none.
  for (let y = 0; y < side; y += 1) pixels[y * row] = 0;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(pixels, { level: 0 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(body.length + 8);
  frame.writeUInt32BE(data.length, 0);
  body.copy(frame, 4);
  frame.writeUInt32BE(checksum(body), body.length + 4);
  return frame;
}

/** The CRC-32 of the PNG format; Node.js has one of its own only since 20.15. */
function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
