// Calls whose servers ask back on their own connection, for clients that are asked by an answer and repeat their request.
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { longLived } from "../../base/long-lived.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { type ClientCall, keepAsked, ownerOf } from "./client-call.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import { isObject } from "./server-lists.ts";

/** Somebody may have to look something up before they answer. */
const { idleMs: patienceMs, bounds } = longLived.mcpHeldCall;
const [maxOfOwner, maxOfAccount, maxOfAll] = [bounds.key.most, bounds.account.most, bounds.total.most];

/** The request that the call is of, as its server knows it. */
export interface SuspendedSubject {
  readonly server: string;
  readonly method: string;
  readonly name: string | null;
}

interface Asked {
  readonly method: string;
  readonly params: JsonObject;
  readonly answered: (result: JsonObject) => void;
}

class Held {
  readonly owner: string;
  readonly accountId: string;
  readonly subject: SuspendedSubject;
  readonly asked = new Map<string, Asked>();
  readonly cancellation = new Cancellation();
  /** Whose connection hears of progress. */
  client: ClientCall;
  result: Promise<JsonObject> | undefined;
  /** By which it is known; undefined: it has asked nothing yet. */
  id: string | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
  letGo = () => {};
  #asks = 0;
  #told: PromiseWithResolvers<void> | undefined;

  constructor(client: ClientCall, subject: SuspendedSubject) {
    this.client = client;
    this.owner = ownerOf(client.principal);
    this.accountId = client.principal.account.id;
    this.subject = subject;
  }

  /** Rejects once the call has ended: a server that waits for the answer by itself would wait for ever. */
  ask(method: string, params: JsonObject): Promise<JsonObject> {
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>();
    const { cancellation } = this;
    const end = () => reject(cancellation.reason);
    const answered = (result: JsonObject) => {
      cancellation.off(end);
      resolve(result);
    };
    cancellation.onCancel(end);
    this.asked.set(`ask_${++this.#asks}`, { method, params, answered });
    this.#told?.resolve();
    this.#told = undefined;
    return promise;
  }

  /** By which its client comes back: another one, each time that more was asked. */
  get state(): string {
    return `${this.id}.${this.#asks}`;
  }

  /** Whether its client was given that at some time: a request may come twice. */
  wasGiven(state: string): boolean {
    const asks = Number(state.slice(state.indexOf(".") + 1));
    return state === `${this.id}.${asks}` && asks > 0 && asks <= this.#asks;
  }

  /** Resolves once something is asked. */
  whenAsked(): Promise<void> {
    if (this.asked.size > 0) return Promise.resolve();
    this.#told ??= Promise.withResolvers();
    return this.#told.promise;
  }
}

export class SuspendedCalls {
  readonly #held = new Map<string, Held>();

  /** Runs `work` with a call that can be asked. `params`: with what it is asked, which is held for as long as it goes on. */
  async begin(
    client: ClientCall,
    subject: SuspendedSubject,
    params: JsonObject,
    work: (call: ClientCall) => Promise<JsonObject>,
  ): Promise<JsonObject> {
    const held = new Held(client, subject);
    held.result = work({
      ...client,
      isAskable: true,
      cancellation: held.cancellation,
      notify: (method, told) => held.client.notify(method, told),
      ask: (method, asked) => {
        try {
          held.id ??= this.#keep(held, params);
        } catch (error) {
          held.cancellation.cancel(error);
          return Promise.reject(error);
        }
        return held.ask(method, asked);
      },
    });
    // Whoever waits for it later sees that it failed.
    held.result.catch(() => {}).then(() => this.#end(held));
    return await this.#wait(held, client);
  }

  /** Undefined where the state is none of these. Rejects where it is somebody else's, or of a request that is not `isSame`. */
  resume(
    client: ClientCall,
    state: unknown,
    responses: unknown,
    isSame: (subject: SuspendedSubject) => boolean,
  ): Promise<JsonObject> | undefined {
    if (typeof state !== "string" || !state.startsWith("held_")) return undefined;
    const held = this.#held.get(state.slice(0, Math.max(0, state.indexOf("."))));
    const isTheirs = held?.owner === ownerOf(client.principal) && held.wasGiven(state);
    if (!isTheirs || held.cancellation.cancelled || !isSame(held.subject)) {
      return Promise.reject(
        new RpcError(invalidParams, "requestState is unknown, or the server waits for it no more."),
      );
    }
    held.client = client;
    for (const [key, { answered }] of held.asked) {
      const response = isObject(responses) ? responses[key] : undefined;
      if (!isObject(response)) continue;
      held.asked.delete(key);
      answered(response);
    }
    return this.#wait(held, client);
  }

  /** Nobody can come back any more. */
  close(): void {
    const error = new GatewayError("service_unavailable", "The gateway is about to stop.", { retryAfterSeconds: 5 });
    for (const held of this.#held.values()) {
      clearTimeout(held.timer);
      held.cancellation.cancel(error);
    }
  }

  /** Until it has ended, or asks. */
  async #wait(held: Held, client: ClientCall): Promise<JsonObject> {
    clearTimeout(held.timer);
    // Whoever came back meanwhile waits for the same.
    const leave = () => {
      if (held.client === client) held.cancellation.cancel(client.cancellation.reason);
    };
    client.cancellation.onCancel(leave);
    try {
      return (await Promise.race([held.result, held.whenAsked()])) ?? this.#asking(held);
    } finally {
      client.cancellation.off(leave);
    }
  }

  /** Throws where there is no room for it. */
  #keep(held: Held, params: JsonObject): string {
    const ofAccount = [...this.#held.values()].filter(({ accountId }) => accountId === held.accountId);
    const own = ofAccount.filter(({ owner }) => owner === held.owner);
    if (own.length >= maxOfOwner || ofAccount.length >= maxOfAccount || this.#held.size >= maxOfAll) {
      const most = `${maxOfOwner} of one key, ${maxOfAccount} of one account and ${maxOfAll} in all`;
      throw new GatewayError("rate_limit_exceeded", `As many calls wait for their client as may: ${most}.`);
    }
    held.letGo = keepAsked(held.client, params);
    const id = `held_${crypto.randomUUID()}`;
    this.#held.set(id, held);
    return id;
  }

  #end(held: Held): void {
    clearTimeout(held.timer);
    held.letGo();
    if (held.id !== undefined) this.#held.delete(held.id);
  }

  #asking(held: Held): JsonObject {
    clearTimeout(held.timer);
    held.timer = setTimeout(() => {
      const error = new GatewayError("upstream_timeout", "The client did not answer what the server asked.");
      held.cancellation.cancel(error);
    }, patienceMs);
    const requests = [...held.asked].map(([key, { method, params }]) => [key, { method, params }]);
    return { resultType: "input_required", inputRequests: Object.fromEntries(requests), requestState: held.state };
  }
}
