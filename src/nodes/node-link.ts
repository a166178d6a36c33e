// Keeps a node connected to its gateway: connects, announces the node's models, and reconnects until it is stopped.
import { exactMs, wallMs } from "../base/clock.ts";
import { connectUrl, dialGateway } from "./dial.ts";
import { signProof } from "./identity.ts";
import {
  defaultTunnelLimits,
  type NodeAnnouncement,
  type NodeHandler,
  type NodeStatus,
  type TunnelLimits,
  tunnelCloseCodes,
} from "./tunnel/contract.ts";
import type { NodeTunnel, NodeTunnelListener } from "./tunnel/node-tunnel.ts";

/**
 * `waiting`: until the next attempt. `draining`: no new requests. `refused`: by the gateway, permanently; an operator
 * must act. `closed`: stopped.
 */
export type NodeLinkStatus = "connecting" | "connected" | "waiting" | "draining" | "refused" | "closed";

export interface NodeLinkState {
  status: NodeLinkStatus;
  /** A message for the user; empty if there is none. */
  message: string;
  /** Number of attempts since the last connection; 0 while connected. */
  attempts: number;
  /** Unix milliseconds at which this state began. */
  since: number;
}

export interface NodeLinkTimings {
  connectMs: number;
  /** Maximum milliseconds before the next attempt. */
  backoffMs: number;
  /** Milliseconds before the second attempt; doubled for each further one. */
  firstBackoffMs: number;
  /** Milliseconds after which a connection counts as stable. The next wait then starts short again. */
  stableMs: number;
  /** Milliseconds to wait if gateway and node have no common protocol version, because one of them must be updated. */
  versionBackoffMs: number;
}

export interface NodeLinkOptions {
  /** Base URL of the gateway, as this machine reaches it. */
  url: string;
  /** The gateway's own URL, which the node got when it joined. */
  gateway: string;
  node: { id: string; privateKey: string };
  handle: NodeHandler;
  /** Returns the node's current announcement. Called for each connection and by `announce`. */
  announcement(): NodeAnnouncement;
  /** Called after each change of the state. */
  onState?(state: NodeLinkState): void;
  /** Called when the gateway sends the node's name and approved models. */
  onStatus?(status: NodeStatus): void;
  /** Called with an error of `handle` that is no GatewayError. */
  onFault?(error: unknown): void;
  /** URL of the proxy, `http://[user:password@]host:port`. */
  proxy?: string | undefined;
  /** Certificates (PEM) to trust instead of the system's. */
  ca?: string | undefined;
  limits?: Partial<TunnelLimits>;
  timings?: Partial<NodeLinkTimings>;
}

const defaultTimings: NodeLinkTimings = {
  connectMs: 3_000,
  backoffMs: 2_000,
  firstBackoffMs: 200,
  stableMs: 10_000,
  versionBackoffMs: 30_000,
};

/** Close codes after which the node must not connect again, with the message for the operator. */
const refusals: Readonly<Record<number, string>> = {
  [tunnelCloseCodes.revoked]: "The gateway has revoked this node: join again with a new token.",
  [tunnelCloseCodes.unknownNode]: "The gateway does not know this node: join again with a new token.",
  [tunnelCloseCodes.unauthenticated]:
    "The gateway does not accept this node's key, or is not the one that it joined: join again with a new token.",
  [tunnelCloseCodes.replaced]: "Another process has connected as this node: only one can.",
};

export class NodeLink implements NodeTunnelListener {
  readonly #options: NodeLinkOptions;
  readonly #limits: TunnelLimits;
  readonly #timings: NodeLinkTimings;
  #state: NodeLinkState = { status: "closed", message: "", attempts: 0, since: wallMs() };
  /** The current tunnel, which is connected or being connected. */
  #tunnel: NodeTunnel | undefined;
  /** Tunnels to gateway processes that are stopping. They only finish their requests. */
  readonly #leaving = new Set<NodeTunnel>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #started = false;
  #stopped = false;
  #attempts = 0;
  /** Number of failed attempts, which determines the next wait. */
  #failures = 0;
  #welcomeAtMs = Number.POSITIVE_INFINITY;

  /** Creates a link; `start` begins to connect. Throws if the key or URL is invalid. */
  constructor(options: NodeLinkOptions) {
    this.#options = options;
    this.#limits = { ...defaultTunnelLimits, ...options.limits };
    this.#timings = { ...defaultTimings, ...options.timings };
    connectUrl(options.url);
    signProof(options.node.privateKey, { protocol: "", gateway: "", nodeId: "", nonce: "" });
  }

  get state(): NodeLinkState {
    return this.#state;
  }

  /** Number of running requests. */
  get openStreams(): number {
    return this.#tunnels().reduce((open, tunnel) => open + tunnel.openStreams, 0);
  }

  /** Begins to connect. Call this once. */
  start(): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    void this.#connect();
  }

  /** Announces the node's models to the gateway again. */
  announce(): void {
    if (this.#tunnel) this.#announceOn(this.#tunnel);
  }

  /** Accepts no new requests and never reconnects. Resolves when all open requests have ended. */
  async drain(): Promise<void> {
    if (!this.#stop()) return;
    this.#setState("draining", "");
    await Promise.all(this.#tunnels().map((tunnel) => tunnel.drain()));
    this.#setState("closed", "");
  }

  /** Closes the connection immediately; open requests fail. */
  close(): void {
    this.#stop();
    for (const tunnel of this.#tunnels()) tunnel.close(tunnelCloseCodes.normal, "the node is going away");
    if (this.#state.status !== "refused") this.#setState("closed", "");
  }

  welcome(tunnel: NodeTunnel): void {
    this.#tunnel = tunnel;
    this.#attempts = 0;
    this.#welcomeAtMs = exactMs();
    this.#announceOn(tunnel);
    if (!this.#stopped) this.#setState("connected", "");
  }

  status(status: NodeStatus): void {
    this.#options.onStatus?.(status);
  }

  draining(tunnel: NodeTunnel): void {
    if (this.#stopped || tunnel !== this.#tunnel) return;
    // Finish open requests on this tunnel, while the next one connects to another gateway process.
    this.#leaving.add(tunnel);
    this.#tunnel = undefined;
    void this.#connect();
  }

  closed(tunnel: NodeTunnel, code: number, reason: string): void {
    if (this.#leaving.delete(tunnel)) return;
    this.#tunnel = undefined;
    if (this.#stopped) return;
    const refusal = refusals[code];
    if (refusal !== undefined) this.#refuse(refusal);
    else if (code === tunnelCloseCodes.version) {
      this.#wait(`The gateway and this node have no version of their protocol in common: ${reason}.`, true);
    } else {
      const worked = exactMs() - this.#welcomeAtMs >= this.#timings.stableMs;
      if (worked) this.#failures = 0;
      this.#wait(`The connection to the gateway ended: ${reason}.`);
    }
    this.#welcomeAtMs = Number.POSITIVE_INFINITY;
  }

  fault(error: unknown): void {
    this.#options.onFault?.(error);
  }

  async #connect(): Promise<void> {
    this.#attempts++;
    this.#setState("connecting", "");
    const { url, gateway, node, handle, proxy, ca } = this.#options;
    try {
      const tunnel = await dialGateway({
        url,
        gateway,
        nodeId: node.id,
        privateKey: node.privateKey,
        handle,
        limits: this.#limits,
        listener: this,
        connectMs: this.#timings.connectMs,
        proxy,
        ca,
      });
      if (this.#stopped) tunnel.close(tunnelCloseCodes.normal, "the node is going away");
      else if (!tunnel.closed) this.#tunnel = tunnel;
    } catch (error) {
      if (this.#stopped) return;
      this.#wait(`The gateway cannot be reached: ${error instanceof Error ? error.message : String(error)}.`);
    }
  }

  #announceOn(tunnel: NodeTunnel): void {
    try {
      tunnel.announce(this.#options.announcement());
    } catch (error) {
      this.fault(error);
    }
  }

  #wait(message: string, longer = false): void {
    const { backoffMs, firstBackoffMs, versionBackoffMs } = this.#timings;
    const most = longer ? versionBackoffMs : Math.min(backoffMs, firstBackoffMs * 2 ** this.#failures);
    this.#failures++;
    this.#setState("waiting", message);
    // Randomize the wait; otherwise all nodes would reconnect to a restarted gateway at the same moment.
    this.#timer = setTimeout(() => void this.#connect(), most * (0.5 + Math.random() / 2));
  }

  #refuse(message: string): void {
    this.#stopped = true;
    for (const tunnel of this.#leaving) void tunnel.drain();
    this.#setState("refused", message);
  }

  /** Prevents further attempts. Returns false if that was done before. */
  #stop(): boolean {
    const stopped = this.#stopped;
    this.#stopped = true;
    clearTimeout(this.#timer);
    return !stopped;
  }

  #tunnels(): NodeTunnel[] {
    return this.#tunnel ? [...this.#leaving, this.#tunnel] : [...this.#leaving];
  }

  #setState(status: NodeLinkStatus, message: string): void {
    this.#state = { status, message, attempts: this.#attempts, since: wallMs() };
    this.#options.onState?.(this.#state);
  }
}
