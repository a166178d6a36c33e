// Suspended calls: the server waits for the response to a request to the client, for clients that return such responses
// by repeating the call.
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { longLived } from "../../base/long-lived.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { type ClientCall, keepAsked, ownerOf } from "./client-call.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import { isObject } from "./server-lists.ts";

/** Milliseconds that a user has to respond, and the maximum numbers of suspended calls. */
const { idleMs: patienceMs, bounds } = longLived.mcpHeldCall;
const [maxOfOwner, maxOfAccount, maxOfAll] = [bounds.key.most, bounds.account.most, bounds.total.most];

/** The effect of a suspended call at the server. A call that continues it must do the same. */
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

class SuspendedCall {
  readonly owner: string;
  readonly accountId: string;
  readonly subject: SuspendedSubject;
  readonly asked = new Map<string, Asked>();
  readonly cancellation = new Cancellation();
  /** The client's latest request for this call. It gets progress notifications. */
  client: ClientCall;
  result: Promise<JsonObject> | undefined;
  /** Id of the call; undefined until the server has sent its first request. */
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

  /** Sends a server's request to the client. Rejects when the call ends, because the server would wait forever. */
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

  /**
   * Returns the `requestState` with which the client continues the call. It changes with each request of the server.
   */
  get state(): string {
    return `${this.id}.${this.#asks}`;
  }

  /** Reports whether the client was given this state at any time, because a client may repeat a request. */
  wasGiven(state: string): boolean {
    const asks = Number(state.slice(state.indexOf(".") + 1));
    return state === `${this.id}.${asks}` && asks > 0 && asks <= this.#asks;
  }

  /** Resolves when a request of the server awaits a response. */
  whenAsked(): Promise<void> {
    if (this.asked.size > 0) return Promise.resolve();
    this.#asked ??= Promise.withResolvers();
    return this.#asked.promise;
  }
}

export class SuspendedCalls {
  readonly #calls = new Map<string, SuspendedCall>();

  /**
   * Runs `work` with a call that accepts requests of the server. While the call is suspended, `params` stay in memory
   * and are counted.
   */
  async begin(
    client: ClientCall,
    subject: SuspendedSubject,
    params: JsonObject,
    work: (call: ClientCall) => Promise<JsonObject>,
  ): Promise<JsonObject> {
    const suspended = new SuspendedCall(client, subject);
    suspended.result = work({
      ...client,
      isAskable: true,
      cancellation: suspended.cancellation,
      notify: (method, members) => suspended.client.notify(method, members),
      ask: (method, asked) => {
        try {
          suspended.id ??= this.#keep(suspended, params);
        } catch (error) {
          suspended.cancellation.cancel(error);
          return Promise.reject(error);
        }
        return suspended.ask(method, asked);
      },
    });
    // Ignore the error: the waiting client gets it.
    suspended.result.catch(() => {}).then(() => this.#end(suspended));
    return await this.#wait(suspended, client);
  }

  /**
   * Continues the call with this state. Returns undefined if `state` does not have the form of a suspended call's
   * state. Rejects if the call is unknown, has ended, belongs to another owner, or if `isSame` returns false.
   */
  resume(
    client: ClientCall,
    state: unknown,
    responses: unknown,
    isSame: (subject: SuspendedSubject) => boolean,
  ): Promise<JsonObject> | undefined {
    if (typeof state !== "string" || !state.startsWith("held_")) return undefined;
    const suspended = this.#calls.get(state.slice(0, Math.max(0, state.indexOf("."))));
    const isTheirs = suspended?.owner === ownerOf(client.principal) && suspended.wasGiven(state);
    if (!isTheirs || suspended.cancellation.cancelled || !isSame(suspended.subject)) {
      return Promise.reject(
        new RpcError(invalidParams, "requestState is unknown, or the server waits for it no more."),
      );
    }
    suspended.client = client;
    for (const [key, { answered }] of suspended.asked) {
      const response = isObject(responses) ? responses[key] : undefined;
      if (!isObject(response)) continue;
      suspended.asked.delete(key);
      answered(response);
    }
    return this.#wait(suspended, client);
  }

  /** Cancels all suspended calls, because the gateway stops and clients cannot return. */
  close(): void {
    const error = new GatewayError("service_unavailable", "The gateway is about to stop.", { retryAfterSeconds: 5 });
    for (const suspended of this.#calls.values()) {
      clearTimeout(suspended.timer);
      suspended.cancellation.cancel(error);
    }
  }

  /** Waits until the call has ended or the server sends a request. */
  async #wait(suspended: SuspendedCall, client: ClientCall): Promise<JsonObject> {
    clearTimeout(suspended.timer);
    // If the client has continued the call by another request meanwhile, it must go on.
    const leave = () => {
      if (suspended.client === client) suspended.cancellation.cancel(client.cancellation.reason);
    };
    client.cancellation.onCancel(leave);
    try {
      return (await Promise.race([suspended.result, suspended.whenAsked()])) ?? this.#asking(suspended);
    } finally {
      client.cancellation.off(leave);
    }
  }

  /** Stores a suspended call and returns its id. Throws if there are too many. */
  #keep(suspended: SuspendedCall, params: JsonObject): string {
    const ofAccount = [...this.#calls.values()].filter(({ accountId }) => accountId === suspended.accountId);
    const own = ofAccount.filter(({ owner }) => owner === suspended.owner);
    if (own.length >= maxOfOwner || ofAccount.length >= maxOfAccount || this.#calls.size >= maxOfAll) {
      const most = `${maxOfOwner} of one key, ${maxOfAccount} of one account and ${maxOfAll} in all`;
      throw new GatewayError("rate_limit_exceeded", `As many calls wait for their client as may: ${most}.`);
    }
    suspended.letGo = keepAsked(suspended.client, params);
    const id = `held_${crypto.randomUUID()}`;
    this.#calls.set(id, suspended);
    return id;
  }

  #end(suspended: SuspendedCall): void {
    clearTimeout(suspended.timer);
    suspended.letGo();
    if (suspended.id !== undefined) this.#calls.delete(suspended.id);
  }

  #asking(suspended: SuspendedCall): JsonObject {
    clearTimeout(suspended.timer);
    suspended.timer = setTimeout(() => {
      const error = new GatewayError("upstream_timeout", "The client did not answer what the server asked.");
      suspended.cancellation.cancel(error);
    }, patienceMs);
    const requests = [...suspended.asked].map(([key, { method, params }]) => [key, { method, params }]);
    return { resultType: "input_required", inputRequests: Object.fromEntries(requests), requestState: suspended.state };
  }
}
