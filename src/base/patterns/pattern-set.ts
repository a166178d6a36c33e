// Compiles patterns into one automaton, whose states are all followed in parallel, one step for each character.
import { PatternFault, type PatternNode, readPattern, type Units } from "./pattern-syntax.ts";

export interface NamedPattern {
  readonly name: string;
  readonly pattern: string;
  /** Decides whether a matched text counts, for example by a checksum. If undefined, every match counts. */
  isMeant?(text: string): boolean;
}

/** Maximum states of one pattern, because each state costs a step for each character. */
const maxStates = 2_000;
/**
 * Maximum transitions of one pattern. Optional parts add transitions, because the state before an optional part also
 * leads to the states after it.
 */
const maxWays = 20_000;
/** Maximum transitions of all patterns of a set: each character may need as many steps. */
const maxWaysOfSet = 20_000;

/**
 * A transition from a state. One of the characters in `units` leads to another state. Without `units`, the pattern has
 * matched.
 */
export interface Way {
  /** Assertions that must hold at this point, as bits. */
  readonly holds: number;
  /** Characters of the transition. Undefined if the pattern has matched. */
  readonly units: UnitSet | undefined;
  /** The next state, or the number of the pattern that has matched. */
  readonly to: number;
}

export class UnitSet {
  /** Accepted ASCII characters, one entry each. */
  readonly #ascii = new Uint8Array(128);
  readonly #units: Units;

  constructor(units: Units) {
    this.#units = units;
    for (let unit = 0; unit < 128; unit++) this.#ascii[unit] = this.#find(unit) ? 1 : 0;
  }

  has(unit: number): boolean {
    return unit < 128 ? this.#ascii[unit] === 1 : this.#find(unit);
  }

  #find(unit: number): boolean {
    const units = this.#units;
    for (let index = 0; index < units.length; index += 2) {
      if (unit < (units[index] ?? 0)) return false;
      if (unit <= (units[index + 1] ?? 0)) return true;
    }
    return false;
  }
}

/**
 * A step of the pattern during compilation. Each state is an array of transitions, which `#follow` computes once all
 * steps exist.
 */
type Step =
  | { readonly type: "units"; readonly units: UnitSet; to: number }
  | { readonly type: "split"; readonly to: number[] }
  | { readonly type: "assertion"; readonly holds: number; to: number }
  | { readonly type: "match"; readonly pattern: number };

export class PatternSet {
  readonly patterns: readonly NamedPattern[];
  /** The transitions from each state. */
  readonly states: readonly (readonly Way[])[];
  readonly wayCount: number;
  /** The transitions from the start for each ASCII character. The last entry has all transitions from the start. */
  readonly begins: readonly (readonly Way[])[];

  /** Throws a PatternFault whose message begins with the name of the pattern. */
  constructor(patterns: readonly NamedPattern[]) {
    this.patterns = patterns;
    const states: (readonly Way[])[] = [];
    const begins: Way[] = [];
    let wayCount = 0;
    patterns.forEach((pattern, number) => {
      try {
        const compiler = new Compiler(number, states);
        begins.push(...compiler.compile(readPattern(pattern.pattern)));
        wayCount += compiler.wayCount;
      } catch (error) {
        if (!(error instanceof PatternFault)) throw error;
        throw new PatternFault(`The pattern \`${pattern.name}\` ${error.message}.`);
      }
      if (wayCount > maxWaysOfSet) {
        throw new PatternFault(
          `The patterns up to \`${pattern.name}\` are too large together. Give some to a guardrail of its own, or make their repetitions shorter.`,
        );
      }
    });
    this.states = states;
    this.wayCount = wayCount;
    this.begins = [...Array.from({ length: 128 }, (_, unit) => begins.filter(({ units }) => units?.has(unit))), begins];
  }
}

class Compiler {
  readonly #number: number;
  readonly #states: (readonly Way[])[];
  readonly #steps: Step[] = [];
  /** Numbers of states, by the step at which each state begins. Each state is created once. */
  readonly #stateOf = new Map<number, number>();
  readonly #unset: number[] = [];
  wayCount = 0;

  constructor(number: number, states: (readonly Way[])[]) {
    this.#number = number;
    this.#states = states;
  }

  /** Adds the states of a pattern and returns the transitions from its start. */
  compile(node: PatternNode): readonly Way[] {
    const match = this.#add({ type: "match", pattern: this.#number });
    const first = this.#compiled(node, match);
    const begins = this.#follow(first);
    if (begins.some(({ units }) => units === undefined)) throw new PatternFault("matches a text of no characters");
    while (this.#unset.length > 0) {
      const step = this.#unset.pop() as number;
      this.#states[this.#stateOf.get(step) as number] = this.#follow(step);
    }
    return begins;
  }

  #add(step: Step): number {
    if (this.#steps.length >= maxStates) throw new PatternFault(`is too large: it has more than ${maxStates} states`);
    return this.#steps.push(step) - 1;
  }

  /** Returns the first step of the node, with `next` as the step after it. */
  #compiled(node: PatternNode, next: number): number {
    switch (node.type) {
      case "units":
        return this.#add({ type: "units", units: new UnitSet(node.units), to: next });
      case "assertion":
        return this.#add({ type: "assertion", holds: node.holds, to: next });
      case "all":
        return node.parts.reduceRight((behind, part) => this.#compiled(part, behind), next);
      case "either":
        return this.#add({ type: "split", to: node.parts.map((part) => this.#compiled(part, next)) });
      case "repeat":
        return this.#repeated(node.part, node.least, node.most, next);
    }
  }

  #repeated(part: PatternNode, least: number, most: number, next: number): number {
    let behind = next;
    if (most === Number.POSITIVE_INFINITY) {
      const to = [next];
      behind = this.#add({ type: "split", to });
      to.push(this.#compiled(part, behind));
    } else {
      for (let count = least; count < most; count++) {
        behind = this.#add({ type: "split", to: [this.#compiled(part, behind), next] });
      }
    }
    for (let count = 0; count < least; count++) behind = this.#compiled(part, behind);
    return behind;
  }

  /**
   * Returns all transitions from a step. Follows splits and assertions, which take no character, to the steps behind
   * them.
   */
  #follow(from: number): readonly Way[] {
    const ways: Way[] = [];
    const seen = new Set<number>();
    const open: (readonly [number, number])[] = [[from, 0]];
    for (let next = open.pop(); next; next = open.pop()) {
      const [number, holds] = next;
      const key = number * 16 + holds;
      if (seen.has(key)) continue;
      seen.add(key);
      const step = this.#steps[number] as Step;
      if (step.type === "split") for (const to of step.to) open.push([to, holds]);
      else if (step.type === "assertion") open.push([step.to, holds | step.holds]);
      else if (step.type === "match") ways.push({ holds, units: undefined, to: step.pattern });
      else ways.push({ holds, units: step.units, to: this.#stateBehind(step.to) });
    }
    this.wayCount += ways.length;
    if (this.wayCount > maxWays) throw new PatternFault("is too large: too much of it may be left out");
    return ways;
  }

  #stateBehind(step: number): number {
    const known = this.#stateOf.get(step);
    if (known !== undefined) return known;
    const state = this.#states.push([]) - 1;
    this.#stateOf.set(step, state);
    this.#unset.push(step);
    return state;
  }
}
