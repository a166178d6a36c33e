// Runs a model's guardrails on a request or on an answer: first the guardrails with patterns, then those that ask a
// model or service.
import { NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import { PatternScan } from "../../base/patterns/pattern-scan.ts";
import type { PatternSet } from "../../base/patterns/pattern-set.ts";
import type { Finding, GuardedCall } from "../../inference/guarding.ts";
import type { AskedText, GuardedText, TextGuard } from "../../requests/dialects/texts/text-guard.ts";
import type { GuardrailAction, GuardrailSettings, GuardrailSide } from "./model.ts";
import { JsonText, type PatternStage, PatternText } from "./pattern-text.ts";

/** The decision of a model or service about texts. */
export interface Verdict {
  readonly action: "pass" | "block" | "mask";
  /** If the action is `mask`: the masked texts, in the order of the texts in the question. */
  readonly texts?: readonly string[];
}

/** Asks a model or service about texts of a request or an answer. Rejects if there is no valid answer. */
export type Ask = (texts: readonly AskedText[], side: GuardrailSide, call: GuardedCall) => Promise<Verdict>;

/** A guardrail that is ready to check. Either `patterns` or `ask` is set. */
export interface Rail {
  readonly settings: GuardrailSettings;
  readonly patterns: PatternSet | undefined;
  readonly ask: Ask | undefined;
}

/** Counts the findings of one request. */
export class Findings {
  readonly #counts = new Map<string, Finding>();
  readonly #onFinding: (finding: Omit<Finding, "count">) => void;

  constructor(onFinding: (finding: Omit<Finding, "count">) => void) {
    this.#onFinding = onFinding;
  }

  get all(): readonly Finding[] {
    return [...this.#counts.values()];
  }

  add(finding: Omit<Finding, "count">): void {
    const key = `${finding.guardrail} ${finding.rule} ${finding.side}`;
    this.#counts.set(key, { ...finding, count: (this.#counts.get(key)?.count ?? 0) + 1 });
    this.#onFinding(finding);
  }
}

/**
 * Maximum steps of pattern matching before other requests run. `minPiece` is the minimum number of characters to check.
 */
const waysAtOnce = 2_000_000;
const minPiece = 64;

export class SideGuard implements TextGuard {
  blockedBy: string | undefined;
  readonly #side: GuardrailSide;
  readonly #rails: readonly Rail[];
  readonly #asking: readonly Rail[];
  readonly #call: GuardedCall;
  readonly #findings: Findings;
  /** Scans of finished texts, for reuse. */
  readonly #idle = new Map<Rail, PatternScan[]>();

  constructor(side: GuardrailSide, rails: readonly Rail[], call: GuardedCall, findings: Findings) {
    this.#side = side;
    this.#rails = rails.filter(({ patterns }) => patterns !== undefined);
    this.#asking = rails.filter(({ ask }) => ask !== undefined);
    this.#call = call;
    this.#findings = findings;
  }

  /**
   * The number of characters to check before other requests run. Larger pattern sets need more steps for each
   * character.
   */
  get pieceLength(): number {
    return Math.max(minPiece, Math.floor(waysAtOnce / Math.max(1, this.#ways)));
  }

  /** The bytes of memory for the scans of one text. Each scan stores two numbers for each state. */
  get bytesOfText(): number {
    return 8 * this.#rails.reduce((sum, { patterns }) => sum + (patterns?.states.length ?? 0), 0);
  }

  get #ways(): number {
    return this.#rails.reduce((sum, { patterns }) => sum + (patterns?.wayCount ?? 0), 0);
  }

  get asks(): boolean {
    return this.#asking.length > 0;
  }

  open(isJson: boolean): GuardedText {
    const texts = this.#rails.map((rail) => {
      const stage = this.#stageOf(rail);
      return isJson ? new JsonText(stage) : new PatternText(stage);
    });
    return texts.length === 1 ? (texts[0] as GuardedText) : new ChainedText(texts);
  }

  async ask(texts: readonly AskedText[]): Promise<readonly string[]> {
    let now = texts;
    for (const rail of this.#asking) {
      const { settings, ask } = rail;
      const verdict = await (ask as Ask)(now, this.#side, this.#call).catch((error) => this.#unasked(settings, error));
      // If the client has left, no finding is counted and nothing is sent.
      if (this.#call.clientGone.cancelled) return this.#blocked(settings);
      const { action, texts: masked } = verdict;
      if (action === "pass") continue;
      this.#count(settings, settings.kind, settings.action === "note" ? "note" : action);
      if (settings.action === "note") continue;
      if (action === "block" || masked === undefined) {
        return this.#blocked(settings);
      }
      now = now.map(({ before }, index) => ({ before, text: masked[index] ?? "" }));
    }
    return now.map(({ text }) => text);
  }

  /**
   * Returns the verdict if the model or service gave none. A client that has used up a limit must not get past a
   * guardrail with `otherwise: pass`. So a NoRoomError refuses a request, and blocks an answer.
   */
  #unasked(settings: GuardrailSettings, error: unknown): Verdict {
    if (!(error instanceof NoRoomError)) return unanswered(settings);
    if (this.#side === "request") throw error;
    return { action: "block" };
  }

  #blocked({ name }: GuardrailSettings): readonly string[] {
    this.blockedBy = name;
    return [];
  }

  #stageOf(rail: Rail): PatternStage {
    const { settings, patterns } = rail;
    const idle = this.#idle.get(rail) ?? [];
    this.#idle.set(rail, idle);
    const scan = idle.pop() ?? new PatternScan(patterns as PatternSet);
    return {
      scan,
      found: (rule) => {
        this.#count(settings, rule, settings.action);
        if (settings.action === "note") return "stays";
        if (settings.action === "mask") return { text: `[${rule}]` };
        this.blockedBy ??= settings.name;
        return "ends";
      },
      release: () => void idle.push(scan),
    };
  }

  #count({ name }: GuardrailSettings, rule: string, action: GuardrailAction): void {
    this.#findings.add({ guardrail: name, rule, side: this.#side, action });
  }
}

/** Returns the configured verdict for a missing answer. If none is configured, blocks the text. */
function unanswered(settings: GuardrailSettings): Verdict {
  return { action: "otherwise" in settings && settings.otherwise === "pass" ? "pass" : "block" };
}

/** Passes a text through several guardrails, one after the other. */
class ChainedText implements GuardedText {
  readonly #texts: readonly GuardedText[];

  constructor(texts: readonly GuardedText[]) {
    this.#texts = texts;
  }

  feed(piece: string): string {
    return this.#texts.reduce((passed, text) => text.feed(passed), piece);
  }

  end(): string {
    return this.#texts.reduce((passed, text) => text.feed(passed) + text.end(), "");
  }
}
