// Forms as they come: where their parts begin and end, and how long the sound in them is.
import { GatewayError } from "../../src/base/errors.ts";
import { audioSeconds } from "../../src/multipart/audio-length.ts";
import { MultipartReader } from "../../src/multipart/multipart.ts";
import type { Target } from "./targets.ts";

export const fuzzedBoundary = "b-1";

interface Part {
  name: string;
  filename: string | undefined;
  contentType: string | undefined;
  from: number;
  to: number;
  content: string;
}

/** The parts, as a form that is read tells them, or why it is none. */
function readParts(pieces: readonly Buffer[]): { parts: Part[] } | { refused: string } {
  const parts: Part[] = [];
  const last = () => parts.at(-1) as Part;
  const reader = new MultipartReader(fuzzedBoundary, {
    part: (head, from) => void parts.push({ ...head, from, to: -1, content: "" }),
    content: (bytes, start, end) => {
      last().content += bytes.toString("latin1", start, end);
    },
    partEnd: (at) => {
      last().to = at;
    },
  });
  try {
    for (const piece of pieces) reader.push(piece);
    reader.end();
    return { parts };
  } catch (error) {
    if (error instanceof GatewayError) return { refused: error.message };
    throw error;
  }
}

/** What is said to be the content of a part is what stands in that place, and has no boundary in it. */
function checkParts(bytes: Buffer): void {
  const read = readParts([bytes]);
  if ("refused" in read) return;
  for (const { name, from, to, content } of read.parts) {
    if (bytes.toString("latin1", from, to) !== content) throw new Error(`${name} is elsewhere`);
    if (/(?:^|[\r\n])--b-1/.test(content)) throw new Error(`${name} has a boundary in it`);
  }
}

const disposition = 'Content-Disposition: form-data; name="';

export const formTargets: readonly Target[] = [
  {
    name: "forms",
    files: ["src/multipart/multipart.ts", "src/multipart/part-head.ts"],
    seeds: [
      `--b-1\r\n${disposition}model"\r\n\r\nm\r\n--b-1--\r\n`,
      `\r\n\r\n--b-1\r\n${disposition}model"\r\n\r\nm\r\n--b-1--\r\n`,
      `--b-1\r\n${disposition}file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n\r\n--b-\r\n--b\r\n--b-1  \r\n${disposition}n"\r\n\r\n1\r\n--b-1--`,
      `--b-1\r\n${disposition}a"\r\n\r\n--b-1\r\n${disposition}model"\r\n\r\nhuge\r\n--b-1--\r\n`,
      `--b-1\r\n${disposition}a"\r\n\r\nx\n--b-1--\r\n`,
      `--b-1\r\ncontent-disposition: form-data; name=a; filename*=utf-8''b\r\nContent-Transfer-Encoding: binary\r\n\r\n\r\n--b-1--\r\n`,
    ],
    read: readParts,
    check: checkParts,
  },
  {
    name: "sound-files",
    files: ["src/multipart/audio-length.ts"],
    seeds: [
      "RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\x04\0\0\0abcd",
      "fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0\x0a\xc4\x42\xf0\0\0\0\0\0\0",
    ],
    read: (pieces) => audioSeconds(Buffer.concat(pieces), 1_000_000),
    check(bytes) {
      const seconds = audioSeconds(bytes, 1_000_000);
      if (!Number.isFinite(seconds) || seconds < 0) throw new Error(`${seconds} s`);
    },
    whole: true,
  },
];
