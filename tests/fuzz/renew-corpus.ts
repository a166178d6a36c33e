// `bun tests/fuzz/renew-corpus.ts [seconds a target] [target ...]`: fuzzes on from the corpus, and keeps of it and what was found the least that reaches as much.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { corpusFile, inputsOf, runTarget } from "./run-target.ts";
import { targetNamed, targets } from "./targets.ts";

/** Characters kept for one target; the shortest come first. */
const maxCharacters = 48 * 1024;

const forMs = Number(process.argv[2] ?? 20) * 1000;
const named = process.argv.slice(3);
for (const target of named.length > 0 ? named.map(targetNamed) : targets) {
  const file = corpusFile(target);
  mkdirSync(dirname(file), { recursive: true });
  if (!existsSync(file)) writeFileSync(file, "[]\n");
  const inputs = inputsOf(target);
  const order = { target: target.name, seed: Date.now() };
  const { runs, found, fault } = await runTarget({ ...order, inputs, forMs });
  if (fault) {
    process.stderr.write(`${target.name}: ${fault.input}\n${fault.message}\n`);
    process.exitCode = 1;
  }
  const known = new Set(target.seeds);
  const candidates = [...new Set([...inputs, ...found])].filter((input) => !known.has(input));
  candidates.sort((a, b) => a.length - b.length);
  const kept = await runTarget({ ...order, inputs: [...target.seeds, ...candidates] });
  let characters = 0;
  const corpus = kept.found.filter((input) => {
    if (known.has(input)) return false;
    characters += JSON.stringify(input).length;
    return characters <= maxCharacters;
  });
  writeFileSync(file, `${JSON.stringify(corpus, null, 2)}\n`);
  process.stdout.write(`${target.name}: ${runs} runs, ${corpus.length} inputs kept\n`);
}
