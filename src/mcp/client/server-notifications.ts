// Notifications of a server without sessions. A subscription stream to the server is open while somebody listens.
import type { Client, McpSubscription } from "@modelcontextprotocol/client";
import type { JsonObject, ToolAnswer } from "../../domain/tools/client-session.ts";

const [firstRetryMs, maxRetryMs] = [1_000, 60_000];
const patienceMs = 10_000;
/** Maximum subscribed resources of one connection, for all clients together. Each client may have 100. */
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
  /** Number of the current stream. It increases with each change of subscriptions; older streams then close. */
  #round = 0;

  constructor(client: Client, capabilities: JsonObject) {
    this.#client = client;
    this.#capabilities = capabilities;
  }

  /** Opens the stream if `wanted`, otherwise closes it. */
  want(wanted: boolean): void {
    if (wanted === this.#wanted) return;
    this.#wanted = wanted;
    this.#renew();
  }

  /**
   * Answers the subscription requests of earlier protocol revisions by means of the stream; undefined for other
   * methods.
   */
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
    const isNotified = (what: string) => {
      const capability = this.#capabilities[what];
      return typeof capability === "object" && capability !== null && "listChanged" in capability;
    };
    const filter = {
      ...(isNotified("tools") && { toolsListChanged: true }),
      ...(isNotified("prompts") && { promptsListChanged: true }),
      ...(isNotified("resources") && { resourcesListChanged: true }),
      ...(this.#uris.size > 0 && { resourceSubscriptions: [...this.#uris] }),
    };
    return this.#isClosed || !this.#wanted || Object.keys(filter).length === 0 ? undefined : filter;
  }

  #renew(): void {
    clearTimeout(this.#timer);
    const round = ++this.#round;
    const before = this.#open;
    this.#open = undefined;
    // Ignore errors of the previous stream while it closes.
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
      // Try again later: the server may be busy. The error does not show whether the server supports subscriptions at
      // all.
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
