// Sends copies of some of a model's requests to a second model. Clients do not see these shadow requests, which only
// use idle slots.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Model } from "../../domain/models/model.ts";
import { defaultPriority } from "../../domain/models/policies/priority.ts";
import type { ShadowPolicy } from "../../domain/models/policies/traffic.ts";
import { shadowIdOf } from "../../domain/usage/comparison.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { InferenceCall, InferenceDeps, ShadowSender } from "../call.ts";
import { beginGuarding, blockedCode, type Guardrails } from "../guarding.ts";
import type { OwnCalls } from "../own-calls.ts";
import { isServable } from "../routing/servable.ts";

/**
 * Results of shadow requests. `gave_way`: a client's request needed the slot. `dropped`: there was no idle slot or no
 * memory. `skipped`: the second model cannot or may not serve the request.
 */
export const shadowResults = ["answered", "failed", "gave_way", "dropped", "skipped"] as const;
export type ShadowResult = (typeof shadowResults)[number];

export interface ShadowCount {
  readonly model: string;
  readonly shadow: string;
  readonly result: ShadowResult;
  readonly count: number;
}

export interface ShadowsOptions {
  ownCalls: OwnCalls;
  catalog: Pick<InferenceDeps["catalog"], "get">;
  capacity: Pick<InferenceDeps["capacity"], "idleSlots">;
  guardrails: Guardrails | undefined;
  /** The memory account of all shadow requests together, separate from the accounts of clients. */
  memoryAccount: MemoryAccount;
}

type ShadowedCall = Pick<InferenceCall<unknown>, "request" | "principal" | "requestId" | "onWanted" | "guarding">;

interface Shadowed {
  readonly second: Model;
  readonly request: DecodedRequest;
  readonly requestId: string;
  readonly neverLeaves: boolean;
  /**
   * Names of the second model's guardrails that must still check the request. `checkedBy` names those that have already
   * checked it.
   */
  readonly names: readonly string[];
  readonly checkedBy: readonly string[] | undefined;
}

/** Maximum concurrent shadow requests in this process. */
const maxAtOnce = 64;
/** Milliseconds after which a shadow request is cancelled, because it might otherwise hold its slot forever. */
const maxMs = 10 * 60_000;

export class Shadows implements ShadowSender {
  readonly #options: ShadowsOptions;
  #underWay = 0;
  readonly #counts = new Map<string, { -readonly [Name in keyof ShadowCount]: ShadowCount[Name] }>();

  constructor(options: ShadowsOptions) {
    this.#options = options;
  }

  get counts(): Iterable<ShadowCount> {
    return this.#counts.values();
  }

  /** Called when a client's request is being sent. Starts the shadow request afterwards. Never throws. */
  sent(policy: ShadowPolicy, model: string, call: ShadowedCall): void {
    const { request, requestId, onWanted } = call;
    // Lines of a batch are background requests themselves. Sealed content can only be opened for the client.
    if (onWanted || request.form || request.background || request.maySeal || !request.dialect.generates) return;
    if (!isSampled(requestId, policy.percent)) return;
    setImmediate(() => this.#begin(policy, model, call));
  }

  #begin(policy: ShadowPolicy, model: string, { request, principal, requestId, guarding }: ShadowedCall): void {
    const count = (result: ShadowResult) => this.#count(model, policy.model, result);
    const neverLeaves = principal.modelAccess?.neverLeaves === true;
    const checkedBy = guarding?.names;
    const second = this.#options.catalog.get(policy.model);
    if (!second || !isServable(second, request) || (neverLeaves && !isLocal(second))) {
      count("skipped");
      return;
    }
    if (!this.#hasRoom(second, request)) {
      count("dropped");
      return;
    }
    const { guardrails = [] } = second.policies ?? {};
    const names = guardrails.filter((name) => !checkedBy?.includes(name));
    void this.#ask({ second, request, requestId, neverLeaves, names, checkedBy }).then(count);
  }

  #hasRoom(second: Model, request: DecodedRequest): boolean {
    if (this.#underWay >= maxAtOnce) return false;
    const open = second.deployments.filter(({ engine }) => engine.accepts !== false);
    const { operation, width } = request;
    const whose = { priority: defaultPriority, accountId: "", partyId: "" };
    const asked = { ...whose, operation, stream: false, width, model: second.id, onWanted: () => {} };
    return this.#options.capacity.idleSlots(open, asked) > 0;
  }

  async #ask({ second, request, requestId, neverLeaves, names, checkedBy = [] }: Shadowed): Promise<ShadowResult> {
    const cancellation = new Cancellation();
    let gaveWay = false;
    const timer = setTimeout(() => cancellation.cancel(), maxMs);
    this.#underWay++;
    const { ownCalls, guardrails, memoryAccount } = this.#options;
    const id = shadowIdOf(requestId);
    try {
      let masked: DecodedRequest | undefined;
      if (names.length > 0) {
        const about = { requestId: id, model: second.id, memoryAccount, clientGone: cancellation, neverLeaves };
        masked = await beginGuarding(guardrails, names, { ...about, priority: "low" }).ofRequest(request);
      }
      await ownCalls.ask({
        ...{ purpose: "shadow", operation: request.operation, body: bodyOf(masked ?? request, second.id) },
        ...{ memoryAccount, cancellation, neverLeaves, checkedBy: [...checkedBy, ...names], requestId: id },
        onWanted: () => {
          gaveWay = true;
          cancellation.cancel();
        },
      });
      return "answered";
    } catch (error) {
      if (gaveWay) return "gave_way";
      if (error instanceof GatewayError && error.code === blockedCode) return "skipped";
      return error instanceof GatewayError && error.code === "service_unavailable" ? "dropped" : "failed";
    } finally {
      clearTimeout(timer);
      this.#underWay--;
    }
  }

  #count(model: string, shadow: string, result: ShadowResult): void {
    const name = JSON.stringify([model, shadow, result]);
    const counted = this.#counts.get(name);
    if (counted) counted.count++;
    else this.#counts.set(name, { model, shadow, result, count: 1 });
  }
}

/**
 * Decides whether a request gets a shadow request. The decision depends on a hash of the request id, so a retry of the
 * request gets the same decision.
 */
export function isSampled(requestId: string, percent: number): boolean {
  return (Bun.hash.xxHash32(requestId) / 2 ** 32) * 100 < percent;
}

function isLocal({ deployments }: Model): boolean {
  return deployments.length > 0 && deployments.every(({ local }) => local);
}

/** Returns the body of the shadow request. It requests no stream and no storage. */
function bodyOf({ body, dialect }: DecodedRequest, model: string): string {
  const { stream: _stream, stream_options: _options, store: _store, ...asked } = body;
  return JSON.stringify({ ...asked, model, ...(dialect.kept && { store: false }) });
}
