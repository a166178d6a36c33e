// What a server without sessions tells of changes: a subscription that is open while somebody wants to know.
import type { Client, McpSubscription } from "@modelcontextprotocol/client";
import type { JsonObject, ToolAnswer } from "../../domain/tools/client-session.ts";

const [firstRetryMs, maxRetryMs] = [1_000, 60_000];
const patienceMs = 10_000;
/** Those of all who share the connection: one of them may have 100. */
const maxResources = 1_000;

export class ServerNotifications {
  readonly #client: Client;
  readonly #capabilities: JsonObject;
  readonly #uris = new Set<string>();
  #wanted = false;
  #isClosed = false;
  #open: McpSubscription | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #retryMs = firstRetryMs;
  /** Counts what is wanted: an older subscription makes room once the next one is there. */
  #round = 0;

  constructor(client: Client, capabilities: JsonObject) {
    this.#client = client;
    this.#capabilities = capabilities;
  }

  /** Somebody listens now, or nobody does any more. */
  want(wanted: boolean): void {
    if (wanted === this.#wanted) return;
    this.#wanted = wanted;
    this.#renew();
  }

  /** Answers what earlier revisions have requests for, and this one has in its subscription; undefined: it is something else. */
  answer(method: string, { uri }: JsonObject): ToolAnswer | undefined {
    if (method !== "resources/subscribe" && method !== "resources/unsubscribe") return undefined;
    const isAdded = method === "resources/subscribe";
    if (typeof uri !== "string" || (isAdded && this.#uris.size >= maxResources && !this.#uris.has(uri))) {
      return {
        error: { code: -32_602, message: `uri must be one of at most ${maxResources} that are subscribed to.` },
      };
    }
    if (isAdded) this.#uris.add(uri);
    else this.#uris.delete(uri);
    this.#renew();
    return { result: {} };
  }

  close(): void {
    this.#isClosed = true;
    this.#renew();
  }

  get #filter(): Parameters<Client["listen"]>[0] | undefined {
    const tells = (what: string) => {
      const capability = this.#capabilities[what];
      return typeof capability === "object" && capability !== null && "listChanged" in capability;
    };
    const filter = {
      ...(tells("tools") && { toolsListChanged: true }),
      ...(tells("prompts") && { promptsListChanged: true }),
      ...(tells("resources") && { resourcesListChanged: true }),
      ...(this.#uris.size > 0 && { resourceSubscriptions: [...this.#uris] }),
    };
    return this.#isClosed || !this.#wanted || Object.keys(filter).length === 0 ? undefined : filter;
  }

  #renew(): void {
    clearTimeout(this.#timer);
    const round = ++this.#round;
    const before = this.#open;
    this.#open = undefined;
    // The stream of before is given up, whatever its server says.
    void this.#listen(round).finally(() => void before?.close().catch(() => {}));
  }

  async #listen(round: number): Promise<void> {
    const filter = this.#filter;
    if (!filter) return;
    try {
      const subscription = await this.#client.listen(filter, { timeout: patienceMs });
      if (round !== this.#round) {
        await subscription.close();
        return;
      }
      this.#open = subscription;
      this.#retryMs = firstRetryMs;
      void subscription.closed.then(() => this.#again(round));
    } catch {
      // It may be busy; that it has no subscriptions at all looks the same.
      this.#again(round);
    }
  }

  #again(round: number): void {
    if (round !== this.#round || this.#isClosed) return;
    this.#timer = setTimeout(() => this.#renew(), this.#retryMs);
    this.#timer.unref();
    this.#retryMs = Math.min(2 * this.#retryMs, maxRetryMs);
  }
}
