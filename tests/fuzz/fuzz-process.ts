// One target in a process of its own, whose coverage is its own: fuzzes it, or finds out which inputs tell something new.
import { Fuzzer } from "./fuzzer.ts";
import { plantedFault } from "./planted-fault.ts";
import { targetNamed } from "./targets.ts";

export interface FuzzOrder {
  target: string;
  /** The inputs as byte text. */
  inputs: readonly string[];
  seed: number;
  /** Undefined: only what of the inputs tells something. */
  forMs?: number | undefined;
}

const { target: name, inputs, seed, forMs } = JSON.parse(await Bun.stdin.text()) as FuzzOrder;
const target = name === plantedFault.name ? plantedFault : targetNamed(name);
const fuzzer = new Fuzzer(target, inputs, seed);
const result = await (forMs === undefined ? fuzzer.telling() : fuzzer.fuzz(performance.now() + forMs));
process.stdout.write(JSON.stringify(result));
process.exit(0);
