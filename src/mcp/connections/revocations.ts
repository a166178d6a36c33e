// Revokes the tokens of deleted connections at their authorization servers, in the background.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { StoredToolConnection } from "../../domain/tools/tool-connection.ts";
import { Turns } from "../../policy/turns.ts";
import type { ToolAuthorization } from "./authorization.ts";
import type { ToolSeals } from "./tool-tokens.ts";

export interface RevocationsOptions {
  authorization: Pick<ToolAuthorization, "revoke">;
  seals: Pick<ToolSeals, "openTokens">;
  clock: Pick<Clock, "monotonicMs">;
  log: Log;
}

/** Maximum concurrent revocations for one server, and maximum running and waiting revocations in total. */
const [maxAtOnce, maxOpen] = [8, 2_000];
/** Milliseconds after which waiting revocations of a server are skipped. */
const patienceMs = 300_000;

export class Revocations {
  readonly #options: RevocationsOptions;
  /** Queues by MCP server, so that one slow authorization server does not delay others. */
  readonly #servers = new Map<string, { readonly turns: Turns; open: number }>();
  #open = 0;
  #isClosed = false;

  constructor(options: RevocationsOptions) {
    this.#options = options;
  }

  /** Starts revocations in the background. Their result is logged. */
  begin(ended: readonly StoredToolConnection[]): void {
    for (const [server, ofServer] of Map.groupBy(ended, (one) => one.server)) void this.#revokeAll(server, ofServer);
  }

  /** Asks the authorization server to revoke the tokens of a connection. Returns whether it did. Never rejects. */
  async revoke({ id, url, sealed }: StoredToolConnection): Promise<boolean> {
    const { seals, authorization } = this.#options;
    try {
      return await authorization.revoke(url, seals.openTokens(id, sealed));
    } catch {
      // Without the secret that encrypted them, the tokens cannot be read.
      return false;
    }
  }

  /** Skips all revocations that have not started yet. */
  close(): void {
    this.#isClosed = true;
  }

  async #revokeAll(server: string, ended: readonly StoredToolConnection[]): Promise<void> {
    const { clock, log } = this.#options;
    const untilMs = clock.monotonicMs() + patienceMs;
    const isOver = () => this.#isClosed || clock.monotonicMs() > untilMs;
    const taken = ended.slice(0, maxOpen - this.#open);
    const of = this.#servers.get(server) ?? { turns: new Turns(maxAtOnce, maxOpen), open: 0 };
    this.#servers.set(server, of);
    of.open += taken.length;
    this.#open += taken.length;
    const outcomes = await Promise.all(
      taken.map((one) => of.turns.run(async () => !isOver() && (await this.revoke(one)))),
    );
    of.open -= taken.length;
    this.#open -= taken.length;
    if (of.open === 0) this.#servers.delete(server);
    const revoked = outcomes.filter((isRevoked) => isRevoked === true).length;
    const fields = { server, revoked, not_revoked: ended.length - revoked };
    if (revoked === ended.length) log.info("tool_tokens_revoked", fields);
    else log.warn("tool_tokens_not_revoked", fields);
  }
}
