// Runs one target in a process of its own; and the corpus, which is what such runs found before.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { FuzzOrder } from "./fuzz-process.ts";
import type { FuzzResult } from "./fuzzer.ts";
import type { Target } from "./targets.ts";

export async function runTarget(order: FuzzOrder): Promise<FuzzResult> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "fuzz-process.ts")], {
    env: { PATH: "/usr/bin:/bin", BUN_JSC_useControlFlowProfiler: "1" },
    stdin: Buffer.from(JSON.stringify(order)),
    stdout: "pipe",
    stderr: "inherit",
  });
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  if (code !== 0) throw new Error(`The process of ${order.target} ended with ${code}.`);
  return JSON.parse(text) as FuzzResult;
}

export function corpusFile({ name }: Pick<Target, "name">): string {
  return join(import.meta.dir, "corpus", `${name}.json`);
}

/** Seeds and what was found, as byte text. */
export function inputsOf(target: Target): string[] {
  return [...target.seeds, ...(JSON.parse(readFileSync(corpusFile(target), "utf8")) as string[])];
}
