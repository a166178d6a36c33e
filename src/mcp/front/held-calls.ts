// Calls whose servers ask back on their own connection, for clients that are asked by an answer and repeat their request.
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { JsonObject } from "../../domain/tools/tool-link.ts";
import { type ClientCall, ownerOf } from "./client-call.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import { isObject } from "./server-lists.ts";

/** Somebody may have to look something up before they answer. */
const patienceMs = 5 * 60_000;
const [mostOfOwner, mostOfAll] = [16, 512];

interface Asked {
  readonly method: string;
  readonly params: JsonObject;
  readonly answered: (result: JsonObject) => void;
}

class Held {
  readonly owner: string;
  readonly subject: string;
  readonly asked = new Map<string, Asked>();
  readonly cancellation = new Cancellation();
  /** Whose connection hears of progress. */
  client: ClientCall;
  result: Promise<JsonObject> | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
  #asks = 0;
  #told = () => {};

  constructor(client: ClientCall, subject: string) {
    this.client = client;
    this.owner = ownerOf(client.principal);
    this.subject = subject;
  }

  ask(method: string, params: JsonObject): Promise<JsonObject> {
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    this.asked.set(`ask_${++this.#asks}`, { method, params, answered: resolve });
    this.#told();
    return promise;
  }

  /** Resolves once something is asked. */
  whenAsked(): Promise<void> {
    if (this.asked.size > 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#told = resolve;
    });
  }
}

export class HeldCalls {
  readonly #held = new Map<string, Held>();

  /** Runs `work` with a call that can be asked. `subject`: what has to be the same where the client repeats its request. */
  async begin(
    client: ClientCall,
    subject: string,
    work: (call: ClientCall) => Promise<JsonObject>,
  ): Promise<JsonObject> {
    const held = new Held(client, subject);
    held.result = work({
      ...client,
      isAskable: true,
      cancellation: held.cancellation,
      notify: (method, params) => held.client.notify(method, params),
      ask: (method, params) => held.ask(method, params),
    });
    // Whoever waits for it later sees that it failed.
    held.result.catch(() => {});
    return await this.#wait(held, undefined);
  }

  /** Undefined where the state is none of these. Rejects where it is somebody else's, or of another request. */
  resume(client: ClientCall, subject: string, state: unknown, responses: unknown): Promise<JsonObject> | undefined {
    if (typeof state !== "string" || !state.startsWith("held_")) return undefined;
    const held = this.#held.get(state);
    if (!held || held.owner !== ownerOf(client.principal) || held.subject !== subject) {
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
    return this.#wait(held, state);
  }

  /** Until it has ended, or asks. */
  async #wait(held: Held, state: string | undefined): Promise<JsonObject> {
    clearTimeout(held.timer);
    const leave = () => held.cancellation.cancel(held.client.cancellation.reason);
    held.client.cancellation.onCancel(leave);
    try {
      const result = await Promise.race([held.result, held.whenAsked()]);
      if (result) {
        if (state !== undefined) this.#held.delete(state);
        return result;
      }
      return this.#asking(held, state ?? this.#keep(held));
    } catch (error) {
      if (state !== undefined) this.#held.delete(state);
      throw error;
    } finally {
      held.client.cancellation.off(leave);
    }
  }

  #keep(held: Held): string {
    const own = [...this.#held.values()].filter(({ owner }) => owner === held.owner).length;
    if (own >= mostOfOwner || this.#held.size >= mostOfAll) {
      const error = new GatewayError("rate_limit_exceeded", `At most ${mostOfOwner} calls may wait for their client.`);
      held.cancellation.cancel(error);
      throw error;
    }
    const state = `held_${crypto.randomUUID()}`;
    this.#held.set(state, held);
    return state;
  }

  #asking(held: Held, state: string): JsonObject {
    held.timer = setTimeout(() => {
      this.#held.delete(state);
      held.cancellation.cancel(
        new GatewayError("upstream_timeout", "The client did not answer what the server asked."),
      );
    }, patienceMs);
    const requests = [...held.asked].map(([key, { method, params }]) => [key, { method, params }]);
    return { resultType: "input_required", inputRequests: Object.fromEntries(requests), requestState: state };
  }
}
