// Records the trail of a request, which is its log of attempts. No trail is written if the first model server simply
// answers.

import { NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { GatewayError } from "../base/errors.ts";
import { maxCompared, withoutEcho } from "../base/text/echo.ts";
import type { Engine } from "../domain/models/engine.ts";
import type { Deployment } from "../domain/models/model.ts";
import { redactCredentials } from "../domain/redaction.ts";
import { publicReason } from "../domain/usage/public-reason.ts";
import {
  maxReasonLength,
  maxSteps,
  type StepResult,
  type Trail,
  type TrailStep,
  wasAsked,
} from "../domain/usage/trail.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { Finding } from "./guarding.ts";

/** A step for the trail, such as an attempt that has just ended. */
export interface Tried {
  /** The deployment that was asked. Missing if the step concerns no deployment. */
  deployment?: Deployment;
  /** Public id of the model that was tried. */
  model: string;
  result: StepResult;
  /** Time in monotonic milliseconds at which the step began. Missing if the step took no time. */
  sinceMs?: number;
  status?: number;
  /** The error message of the engine, or a description of the failure. */
  said?: string | undefined;
  /** A text of the gateway itself. It replaces the engine's error message. */
  reason?: string;
}

const foundResults = { mask: "masked", block: "blocked", note: "noted" } as const satisfies Record<string, StepResult>;

export class TrailWriter {
  readonly #request: DecodedRequest;
  readonly #startedMs: number;
  readonly #steps: TrailStep[] = [];

  /** `startedMs` is the time in monotonic milliseconds at which the request began. */
  constructor(request: DecodedRequest, startedMs: number) {
    this.#request = request;
    this.#startedMs = startedMs;
  }

  get trail(): Trail {
    return this.#steps;
  }

  /**
   * Adds a step. Returns known phrases from the model server's message, which operators of all accounts may see.
   * Returns null if there are none.
   */
  add({ deployment, model, result, sinceMs, status, said, reason }: Tried, nowMs: number): string | null {
    const beganMs = sinceMs ?? nowMs;
    // If the trail is full, the newest step replaces the one before it.
    const given = this.#steps.length === maxSteps ? this.#steps.pop() : undefined;
    const leftOut = given && { leftOut: (given.leftOut ?? 0) + Number(wasAsked(given)) };
    const message = said === undefined || deployment === undefined ? null : this.#reason(said, deployment.engine);
    this.#steps.push({
      upstream: deployment?.engine.name ?? null,
      upstreamModel: deployment?.model ?? null,
      model,
      result,
      status: status ?? null,
      reason: reason ?? message,
      startedMs: Math.max(0, beganMs - this.#startedMs),
      durationMs: Math.max(0, nowMs - beganMs),
      ...leftOut,
    });
    return publicReason(message);
  }

  /** Adds the findings of guardrails as a step: the rules and their counts, never the text. */
  found(model: string, findings: readonly Finding[], nowMs: number): void {
    const steps = Map.groupBy(findings, ({ guardrail, side, action }) => `${guardrail} ${side} ${action}`);
    for (const [first, ...others] of steps.values()) {
      if (!first) continue;
      const { guardrail, side, action } = first;
      const all = [first, ...others];
      const count = all.reduce((sum, one) => sum + one.count, 0);
      const result = foundResults[action];
      const rules = all.map((one) => `${one.rule} ${one.count}`).join(", ");
      this.add({ model, result, reason: cut(`${count} ${result} by ${guardrail} in the ${side}: ${rules}`) }, nowMs);
    }
  }

  /** Returns the error text without credentials and without parts of the request. */
  #reason(said: string, engine: Engine): string | null {
    const prefix = `${engine.name}: `;
    const own = said.startsWith(prefix) ? said.slice(prefix.length) : said;
    const { bodyBytes, model } = this.#request;
    const safe = redactCredentials(engine.redact(own));
    const reason = bodyBytes > maxCompared ? tooLarge : withoutEcho(safe, this.#request.text, model).trim();
    return reason === "" ? null : cut(reason);
  }
}

const tooLarge = "Not shown: the request is too large to tell whether this repeats a part of it.";

function cut(text: string): string {
  return text.length <= maxReasonLength ? text : `${text.slice(0, maxReasonLength - 1)}…`.toWellFormed();
}

/** Returns the result to record for an attempt without an answer. */
export function resultOf(error: unknown, isCancelled: boolean): StepResult {
  if (isCancelled) return "cancelled";
  if (error instanceof NoRoomError) return "no_room";
  if (!(error instanceof GatewayError)) return "broke_off";
  switch (error.code) {
    case "upstream_timeout":
      return "timed_out";
    case "upstream_error":
    case "service_unavailable":
      return "unreachable";
    default:
      return "refused";
  }
}

/**
 * Returns the error text for the trail. If the error has details for the log, these are used instead of its message.
 */
export function faultSaid(error: unknown): string | undefined {
  return error instanceof GatewayError ? (error.detail ?? error.message) : undefined;
}
