// Connects this machine as a node to the gateway that it has joined. The identity file in the data directory names the
// gateway.
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { NodeIdentity, NodeLinkReport } from "../domain/models/node-identity.ts";
import type { OfferedTools } from "../domain/tools/node-tools.ts";
import type { LocalServing } from "./local-serving.ts";
import { NodeLink, type NodeLinkState } from "./node-link.ts";
import type { NodeAnnouncement } from "./tunnel/contract.ts";

export interface UplinkOptions {
  serving: Pick<LocalServing, "handle" | "announcement" | "running">;
  tools: OfferedTools;
  files: {
    /**
     * Returns a text that changes whenever the identity file does; undefined if the machine has not joined a gateway.
     */
    mark(): string | undefined;
    /** Reads the identity file. Throws if it is invalid. */
    identity(): NodeIdentity | undefined;
    /** Writes the state of the connection for other processes on this machine; `undefined` removes it. */
    writeReport(report: NodeLinkReport | undefined): void;
  };
  clock: Clock;
  log: Log;
  pollMs?: number;
}

export interface UplinkView extends NodeLinkReport {
  gatewayUrl: string;
  name: string;
  /** Number of running requests from the gateway. */
  running: number;
}

/** Milliseconds between checks whether the machine has joined or left a gateway or has other models. */
const defaultPollMs = 500;

export class Uplink {
  readonly #options: UplinkOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #mark: string | undefined;
  #joined: { identity: NodeIdentity; link: NodeLink } | undefined;
  #announced = "";
  #reported = "";
  /** Ids of the models that the gateway has approved, or `*`; undefined until the gateway has sent them. */
  #approved: readonly string[] | undefined;
  #isDraining = false;

  constructor(options: UplinkOptions) {
    this.#options = options;
  }

  start(): void {
    this.#check();
    this.#timer = setInterval(() => this.#check(), this.#options.pollMs ?? defaultPollMs);
    this.#timer.unref();
  }

  /** Returns the state for display; undefined if the machine has not joined a gateway. */
  view(): UplinkView | undefined {
    if (!this.#joined) return undefined;
    const { identity, link } = this.#joined;
    const { gateway_url: gatewayUrl, name } = identity;
    return { ...this.#report(identity, link.state), gatewayUrl, name, running: this.#options.serving.running };
  }

  /** Accepts no new requests. Resolves when running requests have ended. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.#joined?.link.drain();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#leave();
  }

  #check(): void {
    const mark = this.#options.files.mark();
    if (mark !== this.#mark) {
      this.#mark = mark;
      this.#leave();
      this.#join();
    }
    if (!this.#joined) return;
    const { version, models, toolServers } = this.#announcement();
    const announced = JSON.stringify([version, models, toolServers]);
    if (announced !== this.#announced) {
      this.#announced = announced;
      this.#joined.link.announce();
    }
    this.#writeReport();
  }

  #announcement(): NodeAnnouncement {
    const toolServers = this.#options.tools.offers();
    return { ...this.#options.serving.announcement(), ...(toolServers.length > 0 && { toolServers }) };
  }

  #join(): void {
    const { files, serving, tools, log } = this.#options;
    let identity: NodeIdentity | undefined;
    try {
      identity = files.identity();
    } catch (error) {
      log.error("node_identity_unusable", { detail: error instanceof Error ? error.message : String(error) });
    }
    if (!identity || this.#isDraining) return;
    const { gateway_url: url, gateway, node_id: id, private_key: privateKey, proxy, name } = identity;
    const link = new NodeLink({
      ...{ url, gateway, node: { id, privateKey }, proxy },
      handle: (request, cancellation) =>
        "server" in request ? tools.handle(request, cancellation) : serving.handle(request, cancellation),
      announcement: () => this.#announcement(),
      onState: (state) => {
        const detail = state.message === "" ? {} : { detail: state.message };
        log.info("node_link", { status: state.status, gateway: url, node: name, ...detail });
        this.#writeReport();
      },
      onStatus: ({ approvedModels }) => {
        this.#approved = approvedModels;
        this.#writeReport();
      },
      onFault: (error) => log.error("node_request_failed", { detail: describe(error) }),
    });
    this.#joined = { identity, link };
    link.start();
  }

  #leave(): void {
    this.#joined?.link.close();
    this.#joined = undefined;
    this.#announced = "";
    this.#approved = undefined;
    this.#writeReport();
  }

  #writeReport(): void {
    const report = this.#joined && this.#report(this.#joined.identity, this.#joined.link.state);
    const reportText = JSON.stringify(report ?? null);
    if (reportText === this.#reported) return;
    this.#reported = reportText;
    try {
      this.#options.files.writeReport(report);
    } catch (error) {
      this.#options.log.warn("node_report_not_written", { detail: String(error) });
    }
  }

  #report(identity: NodeIdentity, { status, message, since }: NodeLinkState): NodeLinkReport {
    const approved = this.#approved;
    return {
      node_id: identity.node_id,
      status,
      message,
      since: Math.floor(since / 1000),
      models: this.#options.serving.announcement().models.map(({ id }) => ({
        id,
        approved: approved ? approved.includes("*") || approved.includes(id) : null,
      })),
    };
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
