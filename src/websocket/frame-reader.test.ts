// The frame codec: frames that RFC 6455 forbids fail the connection with the right code, and messages are the same for
// every split and fragmentation.
import { describe, expect, test } from "bun:test";
import { seeded } from "../../tests/support/seeded.ts";
import { GatewayError } from "../base/errors.ts";
import { applyMask, FrameError, putFrameHead } from "./frame-format.ts";
import { FrameReader } from "./frame-reader.ts";

/** Returns a source of random integers below `below`: the same ones for the same seed. */
function random(seed: number): (below: number) => number {
  const next = seeded(seed);
  return (below) => Math.floor(next() * below);
}

interface FrameShape {
  opcode: number;
  payload: Uint8Array;
  final?: boolean;
  mask?: Uint8Array | null;
}

/** Encodes a frame by RFC 6455, 5.2, independently of the code under test. */
function frame({ opcode, payload, final = true, mask = Uint8Array.of(1, 2, 3, 4) }: FrameShape): Buffer {
  const { length } = payload;
  const size = length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 255] : undefined;
  const head = size ?? [127, ...new Uint8Array(new BigUint64Array([BigInt(length)]).buffer).toReversed()];
  head[0] = (head[0] as number) | (mask ? 0x80 : 0);
  const body = mask ? payload.map((byte, index) => byte ^ (mask[index % 4] as number)) : payload;
  return Buffer.concat([Buffer.from([(final ? 0x80 : 0) | opcode, ...head]), mask ?? Buffer.alloc(0), body]);
}

type Heard = [kind: string, what: string];

function reading(maxMessageBytes = 1_000, masked = true) {
  const heard: Heard[] = [];
  const hex = (bytes: Buffer) => bytes.toString("hex");
  const reader = new FrameReader(
    {
      message: (bytes) => void heard.push(["message", hex(bytes)]),
      ping: (bytes) => void heard.push(["ping", hex(bytes)]),
      pong: (bytes) => void heard.push(["pong", hex(bytes)]),
      closeFrame: (code, reason) => void heard.push(["close", `${code} ${reason}`]),
    },
    masked,
    maxMessageBytes,
  );
  return { reader, heard };
}

function failureOf(bytes: Buffer, maxMessageBytes?: number, masked?: boolean): string {
  try {
    reading(maxMessageBytes, masked).reader.push(Buffer.from(bytes));
    return "taken";
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    return `${error.closeCode}`;
  }
}

const bytes = (...given: number[]) => Buffer.from(given);
const of = (size: number) => Buffer.alloc(size, 7);
const closing = (code: number, reason = "") => Buffer.concat([bytes(code >> 8, code & 255), Buffer.from(reason)]);

describe("forbidden frames", () => {
  const cases: [what: string, frames: Buffer, code: string][] = [
    ["the first reserved bit", bytes(0xc2, 0x80), "1002"],
    ["the second reserved bit", bytes(0xa2, 0x80), "1002"],
    ["the third reserved bit", bytes(0x92, 0x80), "1002"],
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode): [string, Buffer, string] => [
      `the reserved opcode ${opcode}`,
      frame({ opcode, payload: of(1) }),
      "1002",
    ]),
    ["text", frame({ opcode: 1, payload: Buffer.from("hi") }), "1003"],
    ["a frame that is not masked", frame({ opcode: 2, payload: of(3), mask: null }), "1002"],
    ["a ping in fragments", frame({ opcode: 9, payload: of(1), final: false }), "1002"],
    ["a close frame in fragments", frame({ opcode: 8, payload: closing(1000), final: false }), "1002"],
    ["a ping of 126 bytes", frame({ opcode: 9, payload: of(126) }), "1002"],
    ["a continuation of nothing", frame({ opcode: 0, payload: of(1) }), "1002"],
    [
      "a message within another",
      Buffer.concat([frame({ opcode: 2, payload: of(1), final: false }), frame({ opcode: 2, payload: of(1) })]),
      "1002",
    ],
    ["a length of two bytes that fits into seven bits", bytes(0x82, 0xfe, 0, 125, 0, 0, 0, 0), "1002"],
    ["a length of eight bytes that fits into two", bytes(0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0), "1002"],
    ["a negative length", bytes(0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "1002"],
    ["a message that is too long", frame({ opcode: 2, payload: of(1_001) }), "1009"],
    ["a length beyond all bounds", bytes(0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0), "1009"],
    [
      "fragments that are too long together",
      Buffer.concat([frame({ opcode: 2, payload: of(600), final: false }), frame({ opcode: 0, payload: of(401) })]),
      "1009",
    ],
    ["a close frame of one byte", frame({ opcode: 8, payload: of(1) }), "1002"],
    ...[0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535].map((code): [string, Buffer, string] => [
      `the close code ${code}`,
      frame({ opcode: 8, payload: closing(code) }),
      "1002",
    ]),
    [
      "a close reason that is no UTF-8",
      frame({ opcode: 8, payload: Buffer.concat([closing(1000), of(1), bytes(0xff)]) }),
      "1007",
    ],
    [
      "a close reason cut within a character",
      frame({ opcode: 8, payload: Buffer.concat([closing(1000), bytes(0xc3)]) }),
      "1007",
    ],
    [
      "a surrogate in a close reason",
      frame({ opcode: 8, payload: Buffer.concat([closing(1000), bytes(0xed, 0xa0, 0x80)]) }),
      "1007",
    ],
  ];
  for (const [what, given, code] of cases) {
    test(`fails the connection with ${code} for a forbidden frame: ${what}`, () => expect(failureOf(given)).toBe(code));
  }

  test("fails the connection with 1002 for a server's masked frame", () => {
    expect(failureOf(frame({ opcode: 2, payload: of(3) }), 1_000, false)).toBe("1002");
    expect(failureOf(frame({ opcode: 2, payload: of(3), mask: null }), 1_000, false)).toBe("taken");
  });

  test("detects a fault in the first two bytes of a frame", () => {
    expect(failureOf(bytes(0x81, 0xfe))).toBe("1003");
    expect(failureOf(bytes(0x82, 0x7e))).toBe("1002");
    expect(failureOf(bytes(0x82))).toBe("taken");
  });
});

test("accepts empty messages, the largest one, every close code, and control frames within a message", () => {
  const { reader, heard } = reading();
  reader.push(frame({ opcode: 2, payload: of(0) }));
  reader.push(frame({ opcode: 2, payload: of(1_000) }));
  reader.push(frame({ opcode: 2, payload: bytes(1), final: false }));
  reader.push(frame({ opcode: 9, payload: of(125) }));
  reader.push(frame({ opcode: 0, payload: of(0), final: false }));
  reader.push(frame({ opcode: 10, payload: of(0) }));
  reader.push(frame({ opcode: 0, payload: bytes(2) }));
  reader.push(frame({ opcode: 2, payload: bytes(3) }));
  expect(heard).toEqual([
    ["message", ""],
    ["message", of(1_000).toString("hex")],
    ["ping", of(125).toString("hex")],
    ["pong", ""],
    ["message", "0102"],
    ["message", "03"],
  ]);
  for (const code of [1000, 1003, 1007, 1014, 3000, 4999]) {
    const it = reading();
    it.reader.push(Buffer.concat([frame({ opcode: 8, payload: closing(code, "ä") }), bytes(0xff, 0xff)]));
    expect(it.heard).toEqual([["close", `${code} ä`]]);
  }
  const silent = reading();
  silent.reader.push(frame({ opcode: 8, payload: of(0) }));
  expect(silent.heard).toEqual([["close", "1005 "]]);
});

test("applies a raised limit from then on", () => {
  const { reader, heard } = reading(10);
  reader.maxMessageBytes = 20;
  reader.push(frame({ opcode: 2, payload: of(20) }));
  expect(heard.length).toBe(1);
  expect(() => reader.push(frame({ opcode: 2, payload: of(21) }))).toThrow("at most 20 bytes");
});

test("masks as RFC 6455 says for every alignment and length, reversibly", () => {
  const below = random(3);
  for (let run = 0; run < 600; run++) {
    const keys = Uint8Array.from({ length: 8 }, () => below(256));
    const keyAt = below(5);
    const memory = Uint8Array.from({ length: 64 }, () => below(256));
    const view = memory.subarray(below(9));
    const start = below(9);
    const end = start + below(40);
    const before = Uint8Array.from(view);
    applyMask(view, start, end, keys, keyAt);
    for (const [at, byte] of view.entries()) {
      const key = at >= start && at < end ? (keys[keyAt + ((at - start) % 4)] as number) : 0;
      expect(byte).toBe((before[at] as number) ^ key);
    }
    applyMask(view, start, end, keys, keyAt);
    expect(view).toEqual(before);
  }
});

test("writes the shortest frame heads at every length border", () => {
  for (const [length, size] of [
    [0, 2],
    [125, 2],
    [126, 4],
    [65_535, 4],
    [65_536, 10],
    [1_000_000, 10],
  ] as const) {
    for (const masked of [true, false]) {
      const target = new Uint8Array(16).fill(255);
      expect(putFrameHead(target, 1, 2, length, masked)).toBe(1 + size);
      const wanted = frame({ opcode: 2, payload: Buffer.alloc(length), mask: masked ? new Uint8Array(4) : null });
      expect(wanted.subarray(0, size).equals(target.subarray(1, 1 + size))).toBe(true);
    }
  }
});

/** Returns the frames of a random conversation, and the events that the reader must report for them. */
function conversation(below: (limit: number) => number): { frames: Buffer; heard: Heard[] } {
  const frames: Buffer[] = [];
  const heard: Heard[] = [];
  const some = (limit: number) => Buffer.from(Array.from({ length: below(limit) }, () => below(256)));
  const mask = () => Uint8Array.from({ length: 4 }, () => below(256));
  for (let message = 0; message < 12; message++) {
    const pieces = Array.from({ length: 1 + below(4) }, () => some([4, 130, 300][below(3)] as number));
    for (const [index, payload] of pieces.entries()) {
      if (below(3) === 0) {
        const opcode = 9 + below(2);
        const payload = some(126);
        frames.push(frame({ opcode, payload, mask: mask() }));
        heard.push([opcode === 9 ? "ping" : "pong", payload.toString("hex")]);
      }
      frames.push(frame({ opcode: index === 0 ? 2 : 0, payload, final: index === pieces.length - 1, mask: mask() }));
    }
    heard.push(["message", Buffer.concat(pieces).toString("hex")]);
  }
  return { frames: Buffer.concat(frames), heard };
}

test("reads messages alike, however they are cut", () => {
  const below = random(17);
  for (let run = 0; run < 150; run++) {
    const { frames, heard: wanted } = conversation(below);
    const { reader, heard } = reading(2_000);
    const size = [1, 7, 200, frames.length][run % 4] as number;
    for (let at = 0; at < frames.length; ) {
      const end = Math.min(frames.length, at + 1 + below(size));
      reader.push(Buffer.from(frames.subarray(at, end)));
      at = end;
    }
    expect(heard).toEqual(wanted);
  }
});

test("fails the connection for damaged frames and reads nothing afterwards", () => {
  const below = random(29);
  const codes = new Set<number>();
  for (let run = 0; run < 1_500; run++) {
    const { frames } = conversation(below);
    for (let change = 0; change <= below(3); change++) frames[below(frames.length)] = below(256);
    const { reader, heard } = reading(2_000);
    try {
      for (let at = 0; at < frames.length; at += 400) reader.push(Buffer.from(frames.subarray(at, at + 400)));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      codes.add(error.closeCode);
      const count = heard.length;
      reader.push(frame({ opcode: 2, payload: of(3) }));
      expect(heard.length).toBe(count);
    }
    for (const [kind, what] of heard) if (kind === "message") expect(what.length).toBeLessThanOrEqual(4_000);
  }
  expect([...codes].every((code) => [1002, 1003, 1007, 1009].includes(code))).toBe(true);
  expect(codes.size).toBeGreaterThan(1);
});

describe("text messages", () => {
  const heard: string[] = [];
  const ignored = () => {};
  const readText = (...frames: readonly Buffer[]) => {
    heard.length = 0;
    const listener = { message: (text: Buffer) => void heard.push(text.toString()), ping: ignored, pong: ignored };
    const reader = new FrameReader({ ...listener, closeFrame: ignored }, true, 1_000, "text");
    for (const one of frames) reader.push(one);
    return heard;
  };

  test.each([
    ["a lone continuation byte", [0x22, 0x80, 0x22]],
    ["an overlong NUL", [0xc0, 0x80]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a character that is cut", [0xe2, 0x82]],
    ["a code point above U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
  ])("fails the connection with 1007 for %s", (_, text) => {
    expect(() => readText(frame({ opcode: 1, payload: Buffer.from(text) }))).toThrow("a text is no UTF-8");
    expect(heard).toEqual([]);
  });

  test("accepts a character that is split between two frames", () => {
    const [first, second] = [Buffer.from([0xe2, 0x82]), Buffer.from([0xac])];
    const frames = [frame({ opcode: 1, payload: first, final: false }), frame({ opcode: 0, payload: second })];
    expect(readText(...frames)).toEqual(["€"]);
  });
});

test("holds no memory for a flood of empty fragments", () => {
  const { reader } = reading(1_000);
  reader.push(frame({ opcode: 2, payload: of(1), final: false }));
  const empty = Buffer.concat(Array.from({ length: 1_000 }, () => frame({ opcode: 0, payload: of(0), final: false })));
  const before = process.memoryUsage().rss;
  for (let index = 0; index < 200; index++) reader.push(Buffer.from(empty));
  expect(process.memoryUsage().rss - before).toBeLessThan(100e6);
});

describe("incomplete messages", () => {
  function held(maxBytes: number) {
    const ledger = { bytes: 0 };
    const messages: number[] = [];
    const ignored = () => {};
    const reader = new FrameReader(
      // The receiver counts a delivered message itself.
      {
        message: ({ length }) => void messages.push(length, ledger.bytes),
        ping: ignored,
        pong: ignored,
        closeFrame: ignored,
      },
      ...([true, 1_000, "text"] as const),
      {
        take(_, bytes) {
          if (ledger.bytes + bytes > maxBytes) return new GatewayError("rate_limit_exceeded", "too much");
          ledger.bytes += bytes;
          return undefined;
        },
        release: (_, bytes) => {
          ledger.bytes -= bytes;
        },
      },
    );
    return { ledger, messages, reader };
  }

  const payload = Buffer.alloc(600, "x");

  test("charges an incomplete message to its sender by its announced length, or its received fragments", () => {
    const { ledger, messages, reader } = held(1_500);
    const whole = frame({ opcode: 1, payload });
    reader.push(Buffer.from(whole.subarray(0, 10)));
    expect(ledger.bytes).toBe(600);
    reader.push(Buffer.from(whole.subarray(10)));
    reader.push(frame({ opcode: 1, payload, final: false }));
    expect(ledger.bytes).toBe(600);
    reader.push(frame({ opcode: 0, payload: payload.subarray(300) }));
    expect(messages).toEqual([600, 0, 900, 0]);
    reader.push(frame({ opcode: 1, payload, final: false }));
    reader.stop();
    expect(ledger.bytes).toBe(0);
  });

  test("fails the connection for a message without room, and holds nothing of it", () => {
    const { ledger, reader } = held(500);
    let fault: unknown;
    try {
      reader.push(Buffer.from(frame({ opcode: 1, payload }).subarray(0, 10)));
    } catch (error) {
      fault = error;
    }
    expect((fault as FrameError).closeCode).toBe(1013);
    expect(ledger.bytes).toBe(0);
  });
});
