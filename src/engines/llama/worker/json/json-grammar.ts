// Builds JSON grammars in GBNF, llama.cpp's grammar notation (grammars/README.md there).

/**
 * The rules that every JSON grammar may use. White space and digits are limited, because a model could fill the
 * context with them.
 */
const baseRules: Readonly<Record<string, string>> = {
  space: '| " " | "\\n" [ \\t]{0,20}',
  char: '[^"\\\\\\x7F\\x00-\\x1F] | "\\\\" (["\\\\/bfnrt] | "u" [0-9a-fA-F]{4})',
  string: '"\\"" char* "\\""',
  integer: '"-"? ("0" | [1-9] [0-9]{0,15})',
  number: 'integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?',
  boolean: '"true" | "false"',
  null: '"null"',
  object: '"{" space (string ":" space value ("," space string ":" space value)* space)? "}"',
  array: '"[" space (value ("," space value)* space)? "]"',
  value: "object | array | string | number | boolean | null",
  date: '[0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01])',
  time: '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [-+] [0-2] [0-9] ":" [0-5] [0-9])',
  uuid: '[0-9a-f]{8} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{12}',
};

/** Returns a text as a GBNF literal. */
export function literal(text: string): string {
  let body = "";
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (character === '"' || character === "\\") body += `\\${character}`;
    else if (code < 32 || code === 127) body += `\\x${code.toString(16).padStart(2, "0")}`;
    else body += character;
  }
  return `"${body}"`;
}

export function alternatives(expressions: readonly string[]): string {
  return expressions.length === 1 ? (expressions[0] ?? "") : `(${expressions.join(" | ")})`;
}

/** Collects the named rules of a grammar. Equal expressions share one rule. */
export class GrammarRules {
  readonly #rules = new Map<string, string>();
  readonly #names = new Map<string, string>();

  /** Adds a rule for the expression, and returns the rule's name. */
  add(expression: string): string {
    const known = this.#names.get(expression);
    if (known !== undefined) return known;
    const name = this.reserve();
    this.#rules.set(name, expression);
    this.#names.set(expression, name);
    return name;
  }

  /** Returns a name for a rule that is defined later, for recursive schemas. */
  reserve(): string {
    const name = `r${this.#rules.size}`;
    this.#rules.set(name, '""');
    return name;
  }

  define(name: string, expression: string): void {
    this.#rules.set(name, expression);
  }

  /** Returns the whole grammar text. `root` is the expression for the whole output. */
  grammar(root: string): string {
    const lines = [`root ::= ${root}`];
    for (const [name, expression] of this.#rules) lines.push(`${name} ::= ${expression}`);
    for (const [name, expression] of Object.entries(baseRules)) lines.push(`${name} ::= ${expression}`);
    return lines.join("\n");
  }
}

/** The maximum characters that another string may have in common with the beginning of one of the texts. */
const deepestDifference = 100;

/**
 * Returns the rule for a JSON string that equals none of `texts`. No escape is allowed until the string differs from
 * all of them. Calls `spend` for the work of each rule.
 */
export function otherString(rules: GrammarRules, texts: readonly string[], spend: (rules: number) => void): string {
  const rest = (suffixes: readonly string[], depth: number): string => {
    spend(1);
    const groups = new Map<string, string[]>();
    for (const suffix of suffixes) {
      if (suffix === "") continue;
      const first = String.fromCodePoint(suffix.codePointAt(0) ?? 0);
      const group = groups.get(first);
      if (group === undefined) groups.set(first, [suffix.slice(first.length)]);
      else group.push(suffix.slice(first.length));
    }
    const plain = [...groups].filter(([first]) => JSON.stringify(first) === `"${first}"`);
    const going = depth < deepestDifference ? plain : [];
    const differing = plain.map(([first]) => `\\U${(first.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`);
    return rules.add(
      alternatives([
        ...(suffixes.includes("") ? [] : ['""']),
        ...going.map(([first, group]) => `${literal(first)} ${rest(group, depth + 1)}`),
        `[^"\\\\\\x7F\\x00-\\x1F${differing.join("")}] char*`,
      ]),
    );
  };
  return texts.length === 0 ? "string" : rules.add(`"\\"" ${rest(texts, 0)} "\\""`);
}

/** Returns the grammar for any JSON object, for `response_format: {"type": "json_object"}`. */
export function anyObjectGrammar(): string {
  return new GrammarRules().grammar("object");
}

/** Returns the grammar for exactly one of the texts. */
export function oneOfTextsGrammar(texts: readonly string[]): string {
  return `root ::= ${texts.map(literal).join(" | ")}`;
}
