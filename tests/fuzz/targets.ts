// What reads bytes from outside, each behind one function: the fuzzing and the tests of cost go through all of them.
import { formTargets } from "./form-targets.ts";
import { httpTargets } from "./http-targets.ts";
import { lineTargets } from "./line-targets.ts";
import { messageTargets } from "./message-targets.ts";
import { streamTargets } from "./stream-targets.ts";
import { textTargets } from "./text-targets.ts";
import { tunnelTargets } from "./tunnel-targets.ts";

export interface Target {
  name: string;
  /** Whose coverage leads the fuzzing, from the root of the repository. */
  files: readonly string[];
  /** Inputs to begin with. */
  seeds: readonly string[];
  /**
   * What is made of the bytes, which come in these pieces, as something to compare. A refusal is a result as well; what it
   * throws is a fault. The pieces are its own.
   */
  read(pieces: readonly Buffer[]): unknown | Promise<unknown>;
  /** What must hold beside that; throws where it does not. */
  check?(bytes: Buffer): void;
  /** The bytes come whole in life as well: as a message or a body. */
  whole?: boolean;
}

export const targets: readonly Target[] = [
  ...formTargets,
  ...httpTargets,
  ...lineTargets,
  ...messageTargets,
  ...streamTargets,
  ...textTargets,
  ...tunnelTargets,
];

export function targetNamed(name: string): Target {
  const target = targets.find((one) => one.name === name);
  if (!target) throw new Error(`There is no target ${name}.`);
  return target;
}
