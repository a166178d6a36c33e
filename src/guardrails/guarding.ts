// The guardrails of the configuration, ready to look at requests and answers.
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { forbidden, GatewayError } from "../base/errors.ts";
import { PatternSet } from "../base/patterns/pattern-set.ts";
import { scanObject } from "../base/text/json-text.ts";
import type { TextGuard } from "../dialects/texts/text-guard.ts";
import { askedTexts, type TextSlot } from "../dialects/texts/text-slots.ts";
import type { GuardrailSettings, GuardrailSide } from "../domain/models/policies/guardrail.ts";
import { rulesOf } from "../domain/secret-rules/secret-rules.ts";
import { DecodedRequest } from "../inference/decoded-request.ts";
import { marksOf } from "../inference/facts.ts";
import type { Finding, GuardedCall, Guarding, Guardrails } from "../inference/guarding.ts";
import type { OwnCalls } from "../inference/own-calls.ts";
import { httpAsk } from "./http-service.ts";
import { judgeAsk } from "./judge.ts";
import { type Ask, Findings, type Rail, SideGuard } from "./side-guard.ts";

export interface GuardrailsOptions {
  ownCalls: OwnCalls;
  /** The configuration as it is now. */
  settings(): readonly GuardrailSettings[];
  /** Told of all that is found, for metrics. */
  found(finding: Omit<Finding, "count">): void;
}

/** Between so many characters of a long text others have their turn. */
const sliceLength = 64 * 1024;

export class ConfiguredGuardrails implements Guardrails {
  readonly #options: GuardrailsOptions;
  #settings: readonly GuardrailSettings[] = [];
  #rails = new Map<string, Rail>();

  constructor(options: GuardrailsOptions) {
    this.#options = options;
  }

  begin(names: readonly string[], call: GuardedCall): Guarding {
    const rails = names.map((name) => this.#railOf(name));
    if (call.neverLeaves) for (const { settings } of rails) if (leaves(settings)) throw mustNotLeave(settings.name);
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
    if (!wanted) {
      const message = "A guardrail of this model is not configured any more: nothing is served without it.";
      throw new GatewayError("service_unavailable", message, { detail: `guardrail ${name}` });
    }
    const rail = railOf(wanted, this.#options.ownCalls);
    const staying = rail.ask && wanted.kind === "http" ? { ...rail, ask: this.#whereItStays(name, rail.ask) } : rail;
    this.#rails.set(name, staying);
    return staying;
  }

  /** An operator may take the mark away while a request is under way. */
  #whereItStays(name: string, ask: Ask): Ask {
    return async (texts, side, call) => {
      const now = call.neverLeaves ? this.#options.settings().find((one) => one.name === name) : undefined;
      if (call.neverLeaves && (!now || leaves(now))) throw mustNotLeave(name);
      return await ask(texts, side, call);
    };
  }
}

/** A judge is a model: where its requests may go is known there. */
function leaves(settings: GuardrailSettings): boolean {
  return settings.kind === "http" && !settings.local;
}

function mustNotLeave(name: string): GatewayError {
  return forbidden(
    `The requests of this key never leave (never_leaves), and the guardrail \`${name}\` of this model asks a service that no operator marked as local.`,
    { param: "model" },
  );
}

/** Throws a PatternFault for patterns that cannot be matched in linear time. */
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

/** Made once for each choice of rules: there are thousands of states in it. */
function secretsOf(names: readonly string[]): PatternSet {
  const key = names.join(" ");
  const known = sets.get(key) ?? new PatternSet(rulesOf(names).rules);
  sets.set(key, known);
  return known;
}

class RequestGuarding implements Guarding {
  readonly answer: TextGuard | undefined;
  readonly #findings: Findings;
  readonly #request: SideGuard | undefined;

  constructor(rails: readonly Rail[], call: GuardedCall, found: GuardrailsOptions["found"]) {
    const findings = new Findings(found);
    const guardOf = (side: GuardrailSide) => {
      const looking = rails.filter(({ settings }) => settings.sides.includes(side));
      return looking.length === 0 ? undefined : new SideGuard(side, looking, call, findings);
    };
    this.#findings = findings;
    this.#request = guardOf("request");
    this.answer = guardOf("answer");
  }

  get findings(): readonly Finding[] {
    return this.#findings.all;
  }

  async ofRequest(request: DecodedRequest): Promise<DecodedRequest | undefined> {
    const guard = this.#request;
    if (!guard) return undefined;
    const body = JSON.parse(request.text) as Record<string, unknown>;
    // Items of the client's own are kept as they were put, beside the whole that its model gets.
    const input = request.goesOn && (structuredClone(request.goesOn.input) as Record<string, unknown>[]);
    const slots = [...askedTexts(body), ...(input ?? []).flatMap((item) => askedTexts(item))];
    const isChanged = await lookAt(slots, guard);
    if (guard.blockedBy !== undefined) throw requestBlocked(guard.blockedBy);
    if (!isChanged) return undefined;
    if (request.form) throw cannotMask();
    const masked = maskedRequest(request, body);
    if (request.goesOn && input) masked.goesOn = { ...request.goesOn, input };
    return masked;
  }
}

/** Looks at texts that are whole, and puts in their places what may be passed on. Says whether that differs anywhere. */
export async function lookAt(slots: readonly TextSlot[], guard: TextGuard): Promise<boolean> {
  const passed: string[] = [];
  for (const { text, isJson } of slots) {
    const guarded = guard.open(isJson);
    let given = "";
    for (let from = 0; from < text.length; from += sliceLength) {
      if (from > 0) await new Promise<void>((resolve) => setImmediate(resolve));
      given += guarded.feed(text.slice(from, from + sliceLength));
    }
    passed.push(given + guarded.end());
  }
  const isAsked = guard.asks && guard.blockedBy === undefined && passed.length > 0;
  const answers = isAsked ? await guard.ask(passed.map((text) => ({ text, before: "" }))) : passed;
  let isChanged = false;
  slots.forEach(({ text, put }, index) => {
    const given = answers[index] ?? "";
    if (given === text) return;
    isChanged = true;
    put(given);
  });
  return isChanged;
}

function requestBlocked(guardrail: string): GatewayError {
  const message = `The guardrail \`${guardrail}\` of the operator does not let this request pass. Take out what it looks for; its operator knows what that is.`;
  return new GatewayError("content_blocked", message);
}

/** The form itself is what its model server gets. */
function cannotMask(): GatewayError {
  const message = "A guardrail of the operator masks a part of this request, which cannot be done in a form.";
  return new GatewayError("content_blocked", message);
}

/** The request with another body of the same shape. */
function maskedRequest(request: DecodedRequest, body: Record<string, unknown>): DecodedRequest {
  const text = JSON.stringify(body);
  const parsed = { text, members: scanObject(text), body };
  const { dialect } = request;
  const masked = new DecodedRequest(dialect, ByteSpan.of(text), marksOf(dialect, body), parsed);
  masked.messageHeaders = request.messageHeaders;
  masked.goesOn = request.goesOn;
  return masked;
}
