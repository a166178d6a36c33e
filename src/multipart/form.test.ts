// Buffering of forms in memory or on disk, for as long as a request needs the form, within bounds; and the duration of
// audio.

import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { wavOf } from "../../tests/support/media-server.ts";
import { type BodySource, bodyOf } from "../base/bytes/body-source.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { GatewayError } from "../base/errors.ts";
import type { SentForm } from "../domain/models/sent-form.ts";
import { audioSeconds } from "./audio-length.ts";
import { boundaryOf, isForm } from "./boundary.ts";
import { readForm } from "./read-form.ts";
import { SpoolSpace } from "./spool-space.ts";

/** Bytes of the field `model`, which count until the request ends, not until the form is released. */
const textBytes = 1;
let home: string;
let held = 0;
let maxHeld = Number.POSITIVE_INFINITY;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "headrace-forms-"));
  held = 0;
  maxHeld = Number.POSITIVE_INFINITY;
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function spaceOf(maxBytes = 1e9): SpoolSpace {
  const space = new SpoolSpace(join(home, "forms"), () => maxBytes);
  space.sweep();
  return space;
}

const form = (file: Uint8Array, model = "m") =>
  Buffer.concat([
    Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'),
    file,
    Buffer.from(`\r\n--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--b--\r\n`),
  ]);

function read(bytes: Buffer, space: SpoolSpace, { memoryBytes = 1_000, accountId = "a", source = bodyOf(bytes) } = {}) {
  const options = {
    ...{ space, accountId, memoryBytes, boundary: "b" },
    declaredBytes: bytes.length,
    hold(more: number) {
      if (held + more > maxHeld) return new GatewayError("service_unavailable", "no room");
      held += more;
      return undefined;
    },
  };
  return readForm(source, options, (error) => error);
}

/** Reads the whole source with a pause after each piece, as a slow upstream would. */
function taken(source: BodySource): Promise<Buffer> {
  const pieces: Buffer[] = [];
  return new Promise((resolve, reject) => {
    source.flow({
      data(bytes: ByteSpan) {
        pieces.push(Buffer.from(bytes.view));
        source.pause();
        setTimeout(() => source.resume(), 1);
      },
      end: () => resolve(Buffer.concat(pieces)),
      fail: reject,
    });
  });
}

/** Returns the form as the runtime parses it: names, texts, and the names and contents of files. */
async function fieldsOf(form: SentForm): Promise<unknown[]> {
  const bytes = await taken(form.open());
  expect(bytes.length).toBe(form.length);
  const response = new Response(new Uint8Array(bytes), { headers: { "content-type": form.contentType } });
  const fields: unknown[] = [];
  const values: [string, string | File][] = [];
  (await response.formData()).forEach((value, name) => void values.push([name, value]));
  for (const [name, value] of values) {
    if (typeof value === "string") fields.push([name, value]);
    else fields.push([name, value.name, Buffer.from(await value.arrayBuffer()).toString("latin1")]);
  }
  return fields;
}

test.each([
  ["in memory", 100],
  ["on the disk", 600_000],
])("writes a form %s anew with each requested model name", async (_, bytes) => {
  const space = spaceOf();
  const given = form(Buffer.alloc(bytes, "sound"));
  const kept = await read(given, space);
  expect(kept.files).toMatchObject([{ name: "file", filename: "a", bytes }]);
  const same = kept.sentFor("m");
  const other = kept.sentFor("another-model");
  const file = ["file", "a", Buffer.alloc(bytes, "sound").toString()];
  for (let time = 0; time < 2; time++) {
    expect(await fieldsOf(same)).toEqual([file, ["model", "m"]]);
    expect(await fieldsOf(other)).toEqual([file, ["model", "another-model"]]);
  }
  expect(held).toBe(textBytes + (bytes === 100 ? given.length : 0));
  expect(space.reservedBytes).toBe(bytes === 100 ? 0 : given.length);
  kept.release();
  kept.release();
  expect([held, space.reservedBytes]).toEqual([textBytes, 0]);
  await expect(taken(other.open())).rejects.toThrow();
});

test("forwards only the name, a plain filename and the type of a part's headers", async () => {
  const head = (more: string) => `--b\r\nContent-Disposition: form-data; name="file"${more}\r\n\r\nx\r\n`;
  const heads = [
    '; filename="../a\\"b\\\\;x=\u202egnp.w\u00e4v"\r\nContent-Type: audio/WAV; name="model"\r\nX-Forwarded: a',
    `; filename=""\r\nContent-Type: nonsense`,
    "; filename*=UTF-8''%e2%82%ac%20rate%0d%0a.mp3\r\nContent-Type: audio/ogg;codecs=opus",
    `; filename="${"y".repeat(300)}.mp3"\r\nContent-Length: 99`,
  ];
  const last = "--b\r\nContent-Disposition: form-data; x=y; name=model\r\nContent-Type: text/plain\r\n\r\nm\r\n--b--";
  const kept = await read(Buffer.from(heads.map(head).join("") + last), spaceOf());
  const sent = kept.sentFor("own");
  expect(await fieldsOf(sent)).toEqual([
    ["file", ".._a__b___x__gnp.w\u00e4v", "x"],
    ["file", "file", "x"],
    ["file", "_ rate__.mp3", "x"],
    ["file", `${"y".repeat(196)}.mp3`, "x"],
    ["model", "own"],
  ]);
  const bytes = (await taken(sent.open())).toString();
  expect([...bytes.matchAll(/Content-Type: (.*)/g)].map(([, type]) => type?.trim())).toEqual([
    ...["audio/WAV", "application/octet-stream", "audio/ogg", "application/octet-stream"],
  ]);
  expect(bytes).not.toMatch(/X-Forwarded|Content-Length|codecs|x=y/);
  expect(kept.sentFor("own").contentType).not.toBe(sent.contentType);
});

test("reads a text part of Apache's HttpClient, whose default charset is ISO 8859-1", async () => {
  const part = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${value}\r\n`;
  const sent = Buffer.from(`${part("model", "m")}${part("prompt", "caf\u00e9")}--b--\r\n`, "latin1");
  const kept = await read(sent, spaceOf());
  expect(await fieldsOf(kept.sentFor("own"))).toEqual([
    ["model", "own"],
    ["prompt", "caf\u00e9"],
  ]);
});

test.each([
  [
    "a charset of its texts",
    '--b\r\nContent-Disposition: form-data; name="_charset_"\r\n\r\nutf-7\r\n--b--',
    "_charset_",
  ],
  [
    "a text in another charset",
    '--b\r\nContent-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset="UTF-16LE"\r\n\r\nm\r\n--b--',
    "another charset than UTF-8",
  ],
  [
    "a text that is no UTF-8",
    '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n\xff\r\n--b--',
    "must be UTF-8",
  ],
])("refuses %s", async (_, text, words) => {
  await expect(read(Buffer.from(text, "latin1"), spaceOf())).rejects.toThrow(words);
});

test("stores a form's file without a name, and removes files of a killed process at the start", async () => {
  const directory = join(home, "forms");
  const space = spaceOf();
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  const kept = await read(form(Buffer.alloc(50_000)), space);
  expect(readdirSync(directory)).toEqual([]);
  kept.release();
  const left = join(directory, "left");
  writeFileSync(left, "x");
  spaceOf();
  expect(existsSync(left)).toBe(false);
});

test("gathers a form of single bytes in a few blocks, in memory and on disk, and returns it unchanged", async () => {
  const all = form(Buffer.alloc(40_000, "x"), "y".repeat(40_000));
  const buffers = () => Object.values(heapStats().objectTypeCounts).reduce((sum, count) => sum + count, 0);
  for (const memoryBytes of [1_000_000, 1_000]) {
    let most = 0;
    const source: BodySource = {
      flow(sink) {
        const before = buffers();
        for (let i = 0; i < all.length; i++) sink.data(ByteSpan.of(all.subarray(i, i + 1)));
        Bun.gc(true);
        most = buffers() - before;
        sink.end();
      },
      ...{ pause() {}, resume() {}, cancel() {} },
    };
    const kept = await read(all, spaceOf(), { memoryBytes, source });
    expect(most).toBeLessThan(20_000);
    expect(await fieldsOf(kept.sentFor("m"))).toEqual([
      ["file", "a", "x".repeat(40_000)],
      ["model", "m"],
    ]);
    kept.release();
  }
});

test("refuses a form on a full disk, names the cause, and forbids a retry", async () => {
  const space = spaceOf();
  space.file = () => open("/dev/full", "r+");
  const refusal = await read(form(Buffer.alloc(50_000)), space).catch((error: unknown) => error);
  expect(refusal).toMatchObject({
    ...{ code: "service_unavailable", shouldRetry: false, retryAfterSeconds: undefined },
    message: "The server's disk is full, so it cannot take this form. Its operator must make room first.",
  });
});

test("grants an account half of the disk space or one form, and reuses released space", async () => {
  const space = spaceOf(100_000);
  const small = form(Buffer.alloc(30_000));
  const first = await read(small, space);
  expect(() => read(small, space)).toThrow("forms of this account");
  const other = await read(small, space, { accountId: "b" });
  expect(() => read(form(Buffer.alloc(60_000)), space, { accountId: "c" })).toThrow("as much of the disk");
  first.release();
  other.release();
  const large = await read(form(Buffer.alloc(90_000)), space);
  expect(space.reservedBytes).toBeGreaterThan(90_000);
  large.release();
  expect(space.reservedBytes).toBe(0);
});

test("leaves nothing of a form that cannot be held, written or read to its end", async () => {
  const space = spaceOf();
  maxHeld = 500;
  await expect(read(form(Buffer.alloc(900)), space)).rejects.toThrow("no room");
  expect([held, space.reservedBytes]).toEqual([textBytes, 0]);
  maxHeld = Number.POSITIVE_INFINITY;
  const cut: BodySource = {
    flow(sink) {
      bodyOf(form(Buffer.alloc(50_000)).subarray(0, 20_000)).flow({
        ...sink,
        data: (bytes) => sink.data(bytes),
        end() {},
      });
      sink.fail(new Error("cut"));
    },
    ...{ pause() {}, resume() {}, cancel() {} },
  };
  await expect(read(form(Buffer.alloc(50_000)), space, { source: cut })).rejects.toThrow("cut");
  rmSync(join(home, "forms"), { recursive: true });
  await expect(read(form(Buffer.alloc(50_000)), space)).rejects.toThrow("cannot write");
  // Bytes in progress are released asynchronously.
  await Bun.sleep(0);
  expect([held, space.reservedBytes]).toEqual([2 * textBytes, 0]);
});

describe("the boundary of a form", () => {
  test.each([
    ["multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxk", "----WebKitFormBoundary7MA4YWxk"],
    ['Multipart/Form-Data; boundary="a b:c"', "a b:c"],
    ["multipart/form-data;boundary=x; charset=utf-8", "x"],
  ])("reads the boundary from %s", (type, boundary) => {
    expect([isForm(type), boundaryOf(type)]).toEqual([true, boundary]);
  });

  test.each([
    "multipart/form-data",
    "multipart/form-data; boundary=",
    'multipart/form-data; boundary="a "',
    "multipart/form-data; boundary=a; boundary=b",
    "multipart/form-data; boundary=a, multipart/form-data; boundary=b",
    `multipart/form-data; boundary=${"x".repeat(71)}`,
    "multipart/form-data; boundary=a\u00e9",
  ])("refuses the boundary in %p", (type) => {
    expect(() => boundaryOf(type)).toThrow("no boundary that can be used");
  });

  test("refuses media types other than multipart/form-data", () => {
    for (const type of [null, "application/json", "multipart/mixed; boundary=a", "multipart/form-dataX; boundary=a"]) {
      expect(() => boundaryOf(type)).toThrow("multipart/form-data");
    }
  });
});

describe("the length of sound", () => {
  test("reads the duration from the header of a WAV file, also one without a length", () => {
    const wav = wavOf(7.5);
    expect(audioSeconds(wav.subarray(0, 4_096), wav.length)).toBe(7.5);
    wav.writeUInt32LE(0xffffffff, 40);
    expect(audioSeconds(wav.subarray(0, 4_096), wav.length)).toBe(7.5);
    const list = Buffer.concat([wav.subarray(0, 36), Buffer.from("LIST\x03\0\0\0abc\0", "latin1"), wav.subarray(36)]);
    expect(audioSeconds(list.subarray(0, 4_096), list.length)).toBe(7.5);
  });

  test("reads the duration from the header of a FLAC file", () => {
    const flac = Buffer.alloc(42);
    flac.write("fLaC", 0, "latin1");
    flac.writeUIntBE((44_100 << 4) | 0x02, 18, 3);
    flac[21] = 0xf0;
    flac.writeUInt32BE(441_000, 22);
    expect(audioSeconds(flac, 500_000)).toBe(10);
  });

  test("estimates the duration from the bytes if the header is missing or impossible", () => {
    expect(audioSeconds(Buffer.from("ID3"), 160_000)).toBe(10);
    const wav = wavOf(1);
    wav.writeUInt32LE(0, 24);
    expect(audioSeconds(wav, 160_000)).toBe(10);
    // The header would mean two gigabytes a second and a duration of nearly zero.
    wav.writeUInt32LE(0x40000000, 24);
    expect(audioSeconds(wav, 3_840_000)).toBe(10);
  });

  test("bounds the sample rate in a header, so that the duration is not shortened", () => {
    const wav = wavOf(1);
    wav.writeUInt16LE(8, 22);
    wav.writeUInt32LE(192_000, 24);
    wav.writeUInt16LE(32, 34);
    expect(audioSeconds(wav, 38_400_044)).toBeCloseTo(100, 3);

    const flac = Buffer.alloc(42);
    flac.write("fLaC", 0, "latin1");
    flac.writeUIntBE((655_350 << 4) | 0x0f, 18, 3);
    flac[21] = 0xf0;
    flac.writeUInt32BE(1, 22);
    expect(audioSeconds(flac, 38_400_000)).toBe(100);
  });

  test.each([
    "ID3\x04",
    "\xff\xfb\x90",
    "OggS",
    "\0\0\0 ftypM4A ",
    "\x1aE\xdf\xa3",
    "FORM",
    "RF64",
    "",
    "fLaC",
    "RIFF",
  ])("estimates the duration of a file that begins with %p from its bytes", (start) => {
    expect(audioSeconds(Buffer.from(start, "latin1"), 160_000)).toBe(10);
  });

  test("ignores header fields that decoders ignore, so that the duration is not shortened", () => {
    const wav = wavOf(100);
    const start = wav.subarray(0, 4_096);
    wav.writeUInt32LE(6_000_000, 28);
    expect(audioSeconds(start, wav.length)).toBe(100);
    // The chunk `data` states two bytes, as if more chunks of samples followed.
    wav.writeUInt32LE(2, 40);
    expect(audioSeconds(start, wav.length)).toBe(100);
    // MP3 is the WAV format 0x55.
    wav.writeUInt16LE(0x55, 20);
    expect(audioSeconds(start, 160_044)).toBe(10);

    const flac = Buffer.alloc(42);
    flac.write("fLaC", 0, "latin1");
    flac.writeUIntBE((16_000 << 4) | 0x00, 18, 3);
    flac[21] = 0xf0;
    flac.writeUInt32BE(1, 22);
    expect(audioSeconds(flac, 320_000)).toBe(10);
  });
});
