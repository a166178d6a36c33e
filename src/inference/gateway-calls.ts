// Makes the gateway's own model calls, such as those for embeddings that the cache needs. They are charged to the
// operator's account.
import { NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { Account } from "../domain/account.ts";
import type { Model } from "../domain/models/model.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { ChainKey, Principal } from "../domain/principal.ts";
import { ownAppId } from "../domain/usage/usage.ts";
import { decodeRequest, type RequestLimits } from "../requests/decode/decode-request.ts";
import type { InferenceDeps } from "./call.ts";
import { isCovered } from "./guarding.ts";
import type { OwnCall, OwnCalls, OwnPurpose } from "./own-calls.ts";
import { run } from "./run.ts";
import { keepsNothing, WholeCall, type WholeRequest } from "./whole-call.ts";

/** The account and key for the gateway's own calls: the first ones of the installation. */
export interface Operator {
  readonly account: Account;
  readonly key: ChainKey;
}

export interface GatewayCallsOptions {
  inference: InferenceDeps;
  /** Returns the operator, or undefined if the installation has no account yet. */
  operator(): Promise<Operator | undefined>;
  /** Returns the limits for client requests, which apply to these calls too. */
  requestLimits(): RequestLimits;
  renderError(error: GatewayError): string;
}

/**
 * Maximum concurrent calls for one purpose, and in total. Further calls fail immediately, because their callers have
 * deadlines and alternatives.
 */
const [maxOfPurpose, maxOfAll] = [512, 1_024];

/** The gateway's own calls are exempt from quotas and rate limits. */
const noLimits: Principal["limits"] = { requests: [], tokens: [], quotas: [] };
const noScopes: Principal["scopes"] = new Set();

export class GatewayCalls implements OwnCalls {
  readonly #options: GatewayCallsOptions;
  readonly #underWay: Record<OwnPurpose, number> = { cache: 0, guardrail: 0, shadow: 0 };
  readonly #judges: InferenceDeps["catalog"];
  #all = 0;

  constructor(options: GatewayCallsOptions) {
    this.#options = options;
    const { catalog } = options.inference;
    this.#judges = catalogForOwn(catalog, () => true);
  }

  async ask(call: OwnCall): Promise<string> {
    const { purpose, memoryAccount, body } = call;
    if (this.#underWay[purpose] >= maxOfPurpose || this.#all >= maxOfAll) throw tooMany(purpose);
    const bytes = Buffer.byteLength(body);
    const refusal = memoryAccount.take("requests", bytes);
    if (refusal) throw refusal;
    this.#underWay[purpose]++;
    this.#all++;
    try {
      return await this.#run(call);
    } finally {
      memoryAccount.release("requests", bytes);
      this.#underWay[purpose]--;
      this.#all--;
    }
  }

  async #run(call: OwnCall): Promise<string> {
    const { inference, operator, requestLimits, renderError } = this.#options;
    const { purpose, operation, body, memoryAccount, requestId = `req_${Bun.randomUUIDv7()}` } = call;
    const request = decodeRequest(operation, ByteSpan.of(body), requestLimits());
    const known = await operator();
    if (!known) throw new GatewayError("service_unavailable", "There is no account yet that the gateway can ask for.");
    const principal = principalOf(known, call.neverLeaves);
    const tags = [ownTag(purpose)];
    const { onWanted, cancellation, priority } = call;
    const without = { ...keepsNothing, shadows: undefined, quotaWatch: undefined, requestTags: { of: () => tags } };
    const whole = new OwnRun(
      { requestId, principal, request, memoryAccount },
      { cancellation, onWanted, priority, renderError },
    );
    // The client may have left while the call was prepared.
    if (cancellation.cancelled) throw cancellation.reason;
    return await run(whole, { ...inference, ...without, catalog: this.#catalogFor(call) });
  }

  /**
   * Returns the model catalog for a call. For a guardrail's own call, the models have no guardrails. For other calls, a
   * model has no guardrails if all of them have already checked the request.
   */
  #catalogFor({ purpose, checkedBy }: OwnCall): InferenceDeps["catalog"] {
    if (purpose === "guardrail") return this.#judges;
    return catalogForOwn(this.#options.inference.catalog, (model) => isCovered(model, checkedBy));
  }
}

/** Returns the usage tag of the gateway's own calls. */
export function ownTag(purpose: OwnPurpose): string {
  return `gateway:${purpose}`;
}

class OwnRun extends WholeCall {
  readonly clientGone: Cancellation;
  readonly onWanted: (() => void) | undefined;
  readonly priority: Priority | undefined;
  readonly renderError: GatewayCallsOptions["renderError"];

  constructor(
    request: WholeRequest,
    {
      cancellation,
      onWanted,
      priority,
      renderError,
    }: Pick<OwnCall, "cancellation" | "onWanted" | "priority"> & Pick<GatewayCallsOptions, "renderError">,
  ) {
    super(request);
    this.clientGone = cancellation;
    this.onWanted = onWanted;
    this.priority = priority;
    this.renderError = renderError;
  }
}

function principalOf({ account, key }: Operator, neverLeaves: boolean): Principal {
  return {
    ...{ account, keys: [key], environment: key.environment },
    ...{ scopes: noScopes, appId: ownAppId, limits: noLimits },
    modelAccess: neverLeaves ? { models: [], neverLeaves } : undefined,
  };
}

/** Copies of models without the policies that are meant for clients, by model. */
const plain = new WeakMap<Model, Model>();

function plainOf(model: Model, policies: Model["policies"]): Model {
  const made = plain.get(model) ?? { ...model, policies };
  plain.set(model, made);
  return made;
}

/**
 * Returns the catalog without the policies that are meant for clients, such as caching. `isFree` reports whether the
 * model's guardrails can be left out too.
 */
function catalogForOwn(catalog: InferenceDeps["catalog"], isFree: (model: Model) => boolean): InferenceDeps["catalog"] {
  const own = (model: Model | undefined): Model | undefined => {
    if (!model?.policies) return model;
    const { cache: _cache, guardrails, shadow: _shadow, split: _split, ...policies } = model.policies;
    if (!guardrails || isFree(model)) return plainOf(model, policies);
    return { ...model, policies: { ...policies, guardrails } };
  };
  return {
    find: (name) => own(catalog.find(name)),
    get: (id) => own(catalog.get(id)),
    whenComplete: () => catalog.whenComplete(),
  };
}

function tooMany(purpose: OwnPurpose): NoRoomError {
  const message = `The gateway has as many calls of its own under way as it may (${ownTag(purpose)}).`;
  return new NoRoomError("service_unavailable", message, { retryAfterSeconds: 1 });
}
