// Runs of plain bytes are skipped whole where the processor can, and byte by byte where it cannot, with the same result.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { afterPlain, memory } from "./plain-run.ts";

const bytes = new Uint8Array(memory.buffer);

test("ends a run at the first byte that is not plain, for all bytes", () => {
  for (let code = 0; code < 256; code++) {
    bytes.fill(0x61, 0, 200);
    bytes[150] = 0x22;
    bytes[77] = code;
    const isPlain = code >= 0x20 && code !== 0x22 && code !== 0x5c;
    for (const at of [0, 1, 15, 16, 61, 62, 76, 77])
      expect([code, at, afterPlain(at)]).toEqual([code, at, isPlain ? 150 : 77]);
  }
});

test("reads strings without special processor instructions", () => {
  const script = `
    const { ByteSpan } = await import("../bytes/byte-span.ts");
    const { load, afterString } = await import("./json-bytes.ts");
    const { afterPlain } = await import("./plain-run.ts");
    const ends = ['"' + "x".repeat(100) + '"', '"' + "x".repeat(50) + '\\\\n' + "x".repeat(50) + '"', '"' + "x".repeat(50) + '\\n"'].map((text) => {
      load(ByteSpan.of(text));
      return afterString(0);
    });
    console.log(JSON.stringify([afterPlain(5), ...ends]));`;
  const outcomes = ["0", "1"].map((useWasmSIMD) => {
    const env = { BUN_JSC_useWasmSIMD: useWasmSIMD };
    const { stdout } = Bun.spawnSync([process.execPath, "-e", script], { cwd: join(import.meta.dir), env });
    return JSON.parse(stdout.toString());
  });
  expect(outcomes).toEqual([
    [5, 102, 104, -1],
    [51, 102, 104, -1],
  ]);
});
