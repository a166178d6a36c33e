// Suspends calls whose servers send requests of their own, for clients that answer by repeating the call.
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { longLived } from "../../base/long-lived.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { type ClientCall, keepAsked, ownerOf } from "./client-call.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import { isObject } from "./server-lists.ts";

/** Milliseconds that a user has to answer, and the limits of suspended calls. */
const { idleMs: patienceMs, bounds } = longLived.mcpHeldCall;
const [maxOfOwner, maxOfAccount, maxOfAll] = [bounds.key.most, bounds.account.most, bounds.total.most];

/** Request of a suspended call, as the server sees it. */
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
  /** Client whose connection receives progress notifications. */
  client: ClientCall;
  result: Promise<JsonObject> | undefined;
  /** The id of the suspended call; undefined until the server has sent a request. */
  id: string | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
  letGo = () => {};
  #asks = 0;
  #asked: PromiseWithResolvers<void> | undefined;

  constructor(client: ClientCall, subject: SuspendedSubject) {
    this.client = client;
    this.owner = ownerOf(client.principal);
    this.accountId = client.principal.account.id;
    this.subject = subject;
  }

  /** Asks the client. Rejects when the call ends; otherwise a server that awaits the response would wait forever. */
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
    this.#asked?.resolve();
    this.#asked = undefined;
    return promise;
  }

  /** Returns the request state that the client sends when it continues the call. Each new request of the server changes the state. */
  get state(): string {
    return `${this.id}.${this.#asks}`;
  }

  /** Reports whether the client was once given this state, because a client may repeat a request. */
  wasGiven(state: string): boolean {
    const asks = Number(state.slice(state.indexOf(".") + 1));
    return state === `${this.id}.${asks}` && asks > 0 && asks <= this.#asks;
  }

  /** Resolves when the server has sent a request. */
  whenAsked(): Promise<void> {
    if (this.asked.size > 0) return Promise.resolve();
    this.#asked ??= Promise.withResolvers();
    return this.#asked.promise;
  }
}

export class SuspendedCalls {
  readonly #held = new Map<string, Held>();

  /**
   * Runs `work` with a call that accepts server requests. `params` are kept and counted while the call is suspended.
   */
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
      notify: (method, members) => held.client.notify(method, members),
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
    // The waiting caller handles the failure.
    held.result.catch(() => {}).then(() => this.#end(held));
    return await this.#wait(held, client);
  }

  /**
   * Resumes the call of a state; undefined if no suspended call has the state. Rejects if the call belongs to another
   * owner, or if `isSame` rejects its request.
   */
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

  /** Cancels all suspended calls, because their clients cannot return. */
  close(): void {
    const error = new GatewayError("service_unavailable", "The gateway is about to stop.", { retryAfterSeconds: 5 });
    for (const held of this.#held.values()) {
      clearTimeout(held.timer);
      held.cancellation.cancel(error);
    }
  }

  /** Waits until the call has ended, or until the server sends a request. */
  async #wait(held: Held, client: ClientCall): Promise<JsonObject> {
    clearTimeout(held.timer);
    // If the client has returned meanwhile, it waits for the same call, so the call must continue.
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

  /** Throws if too many calls are suspended. */
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
