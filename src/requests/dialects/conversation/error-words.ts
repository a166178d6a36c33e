// Determines which member of a request the error of a model server is about. Recognises the wording of many vendors.
import { reportedReason } from "../reported-reason.ts";

type Body = Readonly<Record<string, unknown>>;

/** Maximum characters of a message that are searched. */
const maxMessageLength = 4_000;
/**
 * Matches the refusal of a whole member, as opposed to the refusal of a value or the complaint that a member is
 * missing.
 */
const refusing =
  /\bun(?:supported|known|recognized|recognised|expected)\b|\bforbidden\b|\bcannot find field\b|\binvalid (?:argument|parameter|field|property|key|member|option|input)s?\b(?! (?:value|name))|\bnot (?:currently |yet |be )?(?:supported|permitted|allowed|enabled|available|recognized|recognised|accepted)\b|\bdo(?:es)?(?: not|n't) (?:support|accept|allow|take|exist)\b/i;
const refusingValue = /\binvalid\b|\bnot valid\b|\b(?:must|should) be (?:one of|either)\b/i;
const missing =
  /\bmissing\b|\brequired\b|\bmust (?:not be empty|have|include|contain|be (?:passed|provided|present|set|specified|included))\b/i;
/** Matches the beginning of a list of names that the server does accept. The rest of the clause is not searched. */
const alternatives =
  /,? expected\b|\b(?:supported|allowed|permitted|valid|available|known) (?:values?|parameters?|fields?|properties|options|arguments)\b|\bmust be (?:one of|either)\b|\bdid you mean\b/i;
/** Matches a part of a path in a schema or in arguments, where the client chooses all names. */
const clientPart =
  /\binvalid schema\b|\b(?:parameters|properties|input_schema|json_schema|schema|arguments)(?:[.[]|['"`],)/;
/**
 * Matches errors about calls that the model itself wrote. The model chose the names in them, and its next answer may
 * have others.
 */
const modelFault =
  /\bdid not match schema\b|\btool call validation\b|\battempted to call\b|\bfailed to call a function\b/i;
const url = /\b[a-z][a-z\d+.-]{0,15}:\/\/[^\s"'`<>]+/gi;
const toolName = /\b((?:tool|function)s?(?: (?:call|choice|name|named|called))?:?) (["'`])[\w.-]+\2/gi;
/** Matches the first step of a path in a message. */
const pathRoot = /\b(messages|input|system|tools)(?=[.[]\d|\[\])/g;
/** Matches steps of paths that are no members: roles, kinds of tools, names of a server's own types, and indices. */
const noMember = /^(?:\d+|\*|body|system|developer|user|assistant|tool|function|custom|[A-Z]\w+|)$/;
const pathCharacter = /^[\w.[\]-]$/;
const quoted = /(?<![\w])(["'`])((?:(?!\1)[^\n]|(?<=\w)\1(?=\w))*)\1(?!\w)/g;

/** The name of a member, and the ways in which errors refer to it. */
export class MemberName {
  /** The steps of the path to the member, without steps that are no members. */
  readonly steps: readonly string[];
  readonly isAnywhere: boolean;
  readonly #patterns: readonly RegExp[];

  constructor(path: string) {
    this.isAnywhere = path.startsWith("**");
    this.steps = path.split(".").filter((step) => step !== "**" && !noMember.test(step));
    const [first = ""] = this.steps;
    const isOfList = path.includes("*");
    const whole = isOfList ? [] : [this.steps.join("."), ...(first.includes("_") ? [first] : [])];
    this.#patterns = [...new Set([this.last, ...whole])].map(patternOf);
  }

  get last(): string {
    return this.steps.at(-1) ?? "";
  }

  /** Reports whether the text contains a path to a part of the member. */
  hasPartIn(text: string): boolean {
    return new RegExp(`(?<!\\w)${this.last}[.[]\\w`).test(text);
  }

  isIn(clause: string): boolean {
    return this.#patterns.some((pattern) => {
      const match = pattern.exec(clause);
      return match !== null && (this.isAnywhere || this.#isOwnPath(clause, match.index));
    });
  }

  /**
   * Reports whether the path that ends at `end` leads to the member. A path of the client's own, such as `x.effort`,
   * does not.
   */
  #isOwnPath(clause: string, end: number): boolean {
    let start = end;
    while (pathCharacter.test(clause.charAt(start - 1))) start--;
    const steps = clause.slice(start, end).split(/[.[\]]+/);
    return steps.every((step) => noMember.test(step) || this.steps.includes(step));
  }
}

/**
 * Returns the pattern for a name. A name with an underscore or a dot is recognised anywhere. Any other name may be a
 * usual word, so it must be quoted, be at the end of a path, or follow a word such as "argument".
 */
function patternOf(name: string): RegExp {
  const text = name.replace(/[.]/g, "\\.");
  const spelled = name.includes("_") ? `(?:${text}|${camelCase(text)})` : text;
  if (/[_.]/.test(name)) return new RegExp(`(?<!\\w)${spelled}(?![\\w[])`);
  const before = "(?:[\"'`.\\]]|\\b(?:argument|parameter|field|property|name|key|input|option)s?(?: supplied)?:? )";
  return new RegExp(`(?:^|${before})${spelled}(?=["'\`:,]|\\s*$|\\.(?!\\w))`, "i");
}

function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

export interface Refusal {
  /** Matches errors that mean the member but do not name it. */
  readonly words?: RegExp;
  /** Set if servers refuse single values of the member. */
  readonly refusedValue?: unknown;
}

export interface ErrorWords {
  readonly message: string | undefined;
  readonly place: string | undefined;
  /**
   * Returns the part of the error that says that the member of `body` is refused, or undefined if there is none.
   * Without a body, `place` excludes no member.
   */
  about(name: MemberName, body: Body | undefined, refusal: Refusal): string | undefined;
}

/** Parses an error of any shape. */
export function errorWords(error: string): ErrorWords {
  const { message: whole, place } = reportedReason(error);
  // The message is searched without URLs, because clients may have chosen the words in them.
  const message = whole?.slice(0, maxMessageLength).replaceAll("\u2019", "'").replace(url, " ");
  const clauses = message === undefined ? [] : clausesOf(message);
  return {
    message,
    place,
    about(name, body, { words, refusedValue }) {
      if (message === undefined || modelFault.test(message)) return undefined;
      const isRefusing = (text: string) =>
        !missing.test(text) &&
        !clientPart.test(text) &&
        (refusing.test(text) || (refusedValue !== undefined && refusingValue.test(text)));
      if (words?.test(withoutProse(message))) return message;
      const relation = place === undefined ? "near" : relationOf(place, name, body);
      if (relation === "elsewhere") return undefined;
      if (relation === "at") return isRefusing(message) ? message : undefined;
      return clauses.find((clause) => {
        if (!isRefusing(clause) || isElsewhere(clause, name)) return false;
        const end = clause.search(alternatives);
        return name.isIn(end < 0 ? clause : clause.slice(0, end));
      });
    },
  };
}

/** Returns the sentences and lines of a message. Quoted texts from the request and names of its tools are removed. */
function clausesOf(message: string): string[] {
  return withoutProse(message)
    .replace(toolName, "$1 ")
    .split(/(?<=[.;!?])\s+|\n+/);
}

/** Reports whether a clause contains paths, but none that leads to the member. */
function isElsewhere(clause: string, { isAnywhere, steps: [first] }: MemberName): boolean {
  const roots = clause.match(pathRoot);
  return roots !== null && !isAnywhere && !roots.some((root) => root === first);
}

/**
 * Removes quoted texts that contain a space, because they may have any words. If such a text contains a refusal, the
 * refusal is kept.
 */
function withoutProse(message: string): string {
  return message.replace(quoted, (whole, _, inner: string) => {
    if (!/\s/.test(inner)) return whole;
    return refusing.test(inner) ? " not supported " : " ";
  });
}

/**
 * Compares the place that the error reports with the member. `at`: the place is the member or a part of it. `near`: the
 * message must also name the member.
 */
function relationOf(place: string, name: MemberName, body: Body | undefined): "at" | "near" | "elsewhere" {
  const steps = place.split(/[.[\]]+/).filter((step) => !noMember.test(step));
  const [first = ""] = steps;
  // Some servers put the kind of the error in place of the path.
  if (body !== undefined && !Object.hasOwn(body, first)) return "near";
  if (body && clientPart.test(`${place}.`)) return "elsewhere";
  if (name.isAnywhere) return steps.includes(name.last) ? "at" : "near";
  if (steps.some((step, index) => step !== (name.steps[index] ?? step))) return body ? "elsewhere" : "near";
  return steps.length >= name.steps.length ? "at" : "near";
}
