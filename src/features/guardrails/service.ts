// Checks requests and answers with the configured guardrails.

import { bufferedBytes, lastingRefusal, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { fieldError, GatewayError } from "../../base/errors.ts";
import { PatternSet } from "../../base/patterns/pattern-set.ts";
import { scanObject } from "../../base/text/json-text.ts";
import { rulesOf } from "../../domain/secret-rules/secret-rules.ts";
import type { Finding, GuardedCall, Guarding, Guardrails } from "../../inference/guarding.ts";
import type { OwnCalls } from "../../inference/own-calls.ts";
import { DecodedRequest } from "../../requests/decoded-request.ts";
import { checkTexts, type TextGuard } from "../../requests/dialects/texts/text-guard.ts";
import { askedTexts } from "../../requests/dialects/texts/text-slots.ts";
import { factsOf } from "../../requests/facts.ts";
import { httpAsk } from "./http-service.ts";
import { judgeAsk } from "./judge.ts";
import type { GuardrailSettings, GuardrailSide } from "./model.ts";
import { missingGuardrail } from "./model.ts";
import { Findings, type Rail, SideGuard } from "./side-guard.ts";

export interface GuardrailsOptions {
  ownCalls: OwnCalls;
  /** Returns the guardrails of the current configuration. */
  settings(): readonly GuardrailSettings[];
  /** Called for each finding, for metrics. */
  found(finding: Omit<Finding, "count">): void;
}

/**
 * Bytes of memory for each byte of a request during a check: for its texts, and for a copy that is sent to a model or
 * service.
 */
const bytesForEach = 2;

export class ConfiguredGuardrails implements Guardrails {
  readonly #options: GuardrailsOptions;
  #settings: readonly GuardrailSettings[] = [];
  #rails = new Map<string, Rail>();

  constructor(options: GuardrailsOptions) {
    this.#options = options;
  }

  begin(names: readonly string[], call: GuardedCall): Guarding {
    const rails = names.map((name) => this.#railOf(name));
    return new RequestGuarding(rails, call, this.#options.found);
  }

  #railOf(name: string): Rail {
    const settings = this.#options.settings();
    if (settings !== this.#settings) {
      this.#settings = settings;
      this.#rails = new Map();
    }
    const known = this.#rails.get(name);
    if (known) return known;
    const wanted = settings.find((one) => one.name === name);
    if (!wanted) throw missingGuardrail(name);
    const rail = railOf(wanted, this.#options.ownCalls);
    this.#rails.set(name, rail);
    return rail;
  }
}

/** Prepares a guardrail for checking. Throws a PatternFault for a pattern that cannot be matched in linear time. */
export function railOf(settings: GuardrailSettings, ownCalls: OwnCalls): Rail {
  switch (settings.kind) {
    case "patterns":
      return { settings, patterns: new PatternSet(settings.patterns), ask: undefined };
    case "secrets":
      return { settings, patterns: secretsOf(settings.rules), ask: undefined };
    case "judge":
      return { settings, patterns: undefined, ask: judgeAsk(settings, ownCalls) };
    case "http":
      return { settings, patterns: undefined, ask: httpAsk(settings) };
  }
}

const sets = new Map<string, PatternSet>();

/**
 * Returns the patterns of the built-in rules. They are compiled once for each selection, because a set has
 * thousands of states.
 */
function secretsOf(names: readonly string[]): PatternSet {
  const key = names.join(" ");
  const known = sets.get(key) ?? new PatternSet(rulesOf(names).rules);
  sets.set(key, known);
  return known;
}

class RequestGuarding implements Guarding {
  readonly names: readonly string[];
  readonly answer: TextGuard | undefined;
  readonly #call: GuardedCall;
  readonly #findings: Findings;
  readonly #request: SideGuard | undefined;
  /** Bytes of memory that the check of the request needs, without those of requests to a model or service. */
  #neededBytes = 0;

  constructor(rails: readonly Rail[], call: GuardedCall, found: GuardrailsOptions["found"]) {
    const findings = new Findings(found);
    const guardOf = (side: GuardrailSide, its: GuardedCall) => {
      const active = rails.filter(({ settings }) => settings.sides.includes(side));
      return active.length === 0 ? undefined : new SideGuard(side, active, its, findings);
    };
    this.names = rails.map(({ settings }) => settings.name);
    this.#call = call;
    this.#findings = findings;
    this.#request = guardOf("request", { ...call, memoryAccount: this.#accountForQuestions() });
    this.answer = guardOf("answer", call);
  }

  get findings(): readonly Finding[] {
    return this.#findings.all;
  }

  async ofRequest(request: DecodedRequest): Promise<DecodedRequest | undefined> {
    if (this.answer && request.answersText) throw cannotInspect();
    const guard = this.#request;
    if (!guard) return undefined;
    const bytes = bytesForEach * request.bodyBytes + guard.bytesOfText;
    const release = bufferedBytes.takeCopies(this.#call.memoryAccount, bytes);
    if (typeof release !== "function") throw release;
    this.#neededBytes = bufferedBytes.neededWithCopies(request.bodyBytes, bytes);
    try {
      return await this.#checked(request, guard);
    } finally {
      release();
    }
  }

  /**
   * Returns a memory account for requests to a model or service. If the request could never fit, its refusals advise
   * against a retry.
   */
  #accountForQuestions(): MemoryAccount {
    const { memoryAccount } = this.#call;
    return {
      ids: memoryAccount.ids,
      take: (kind, bytes) => {
        const refusal = memoryAccount.take(kind, bytes);
        return refusal && lastingRefusal(refusal, this.#neededBytes + bytes);
      },
      release: (kind, bytes) => memoryAccount.release(kind, bytes),
    };
  }

  async #checked(request: DecodedRequest, guard: SideGuard): Promise<DecodedRequest | undefined> {
    const body = JSON.parse(request.text) as Record<string, unknown>;
    requireTexts(request.dialect.promptMember, body);
    // A continued response stores the client's new items separately from the model's whole input, so both are masked.
    const input = request.goesOn && (structuredClone(request.goesOn.input) as Record<string, unknown>[]);
    const isChanged = await checkTexts(textsOf([body, ...(input ?? [])]), guard, this.#call.clientGone);
    if (this.#call.clientGone.cancelled) throw this.#call.clientGone.reason;
    if (guard.blockedBy !== undefined) throw requestBlocked(guard.blockedBy);
    if (!isChanged) return undefined;
    if (request.form) throw cannotMask();
    const masked = maskedRequest(request, body);
    if (request.goesOn && input) masked.goesOn = { ...request.goesOn, input };
    return masked;
  }
}

function* textsOf(parts: readonly Record<string, unknown>[]) {
  for (const part of parts) yield* askedTexts(part);
}

function requestBlocked(guardrail: string): GatewayError {
  const message = `The guardrail \`${guardrail}\` of the operator does not let this request pass. Take out what it looks for; its operator knows what that is.`;
  return new GatewayError("content_blocked", message);
}

/** Throws if the prompt is an array of token ids, because guardrails cannot read them. */
function requireTexts(member: string, body: Readonly<Record<string, unknown>>): void {
  const asked = body[member];
  const isTokens = (value: unknown) => Array.isArray(value) && value.some((one) => typeof one === "number");
  if (!isTokens(asked) && !(Array.isArray(asked) && asked.some(isTokens))) return;
  throw fieldError(
    member,
    "must be text: the model has guardrails, which cannot look at tokens. Send the text itself.",
  );
}

function cannotInspect(): GatewayError {
  const member = "response_format";
  return fieldError(
    member,
    "must be `json`, `verbose_json` or left out: the model has guardrails, which look at answers in JSON.",
  );
}

/**
 * Returns the error for a form request with text to mask. The gateway sends a form to the model server unchanged, so
 * masking is impossible.
 */
function cannotMask(): GatewayError {
  const message = "A guardrail of the operator masks a part of this request, which cannot be done in a form.";
  return new GatewayError("content_blocked", message);
}

/** Returns a copy of the request with the masked body. */
function maskedRequest(request: DecodedRequest, body: Record<string, unknown>): DecodedRequest {
  const text = JSON.stringify(body);
  const parsed = { text, members: scanObject(text), body };
  const { dialect } = request;
  const masked = new DecodedRequest(dialect, ByteSpan.of(text), factsOf(dialect, body), parsed);
  masked.messageHeaders = request.messageHeaders;
  masked.goesOn = request.goesOn;
  masked.leastLimit = request.leastLimit;
  return masked;
}
