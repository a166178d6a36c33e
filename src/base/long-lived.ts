// Declares every object that outlives the request that created it: its bounds, its idle limit and the event that ends
// it. The code takes each bound from here, and docs/reference/long-lived.md is generated from here.

/** A maximum number of objects, enforced by the code. */
interface Count {
  readonly most: number;
}
/** A maximum as a share of the connections that one server process accepts. */
interface Share {
  readonly part: number;
}
/** A limit that is set or measured elsewhere, or that does not exist. The text says where, or why there is none. */
interface Described {
  readonly text: string;
}
export type Bound = Count | Share | Described;

export interface LongLived {
  readonly name: string;
  readonly bounds: {
    readonly key: Bound;
    readonly account: Bound;
    readonly address: Bound;
    readonly total: Bound;
  };
  /** Milliseconds without use after which the object ends. If undefined, `idle` says why there is no such limit. */
  readonly idleMs: number | undefined;
  readonly idle?: string;
  /** Milliseconds after which the object ends even if it is busy. Undefined if there is no such limit. */
  readonly maxMs: number | undefined;
  readonly ends: {
    /** Says when the object ends after its key or token is revoked or expires. */
    readonly credential: string;
    /** Says when the object ends after the person is removed or the account is closed. */
    readonly owner: string;
    /** Says when the object ends after the server stops. */
    readonly server: string;
  };
  /** The files that create such objects. */
  readonly files: readonly string[];
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const most = <const Most extends number>(count: Most) => ({ most: count });
const share = <const Part extends number>(part: Part) => ({ part });
const text = (said: string): Described => ({ text: said });

const keyNeeded = text("none: a key is needed");
const ofAccount = text("of its account");
const ofAll = text("of all together");
const noKey = text("none: no key is involved");
const byOpenRequests = text("`limits.open_requests_per_key`");
const withKey = "as with the credential";
/** Says how soon a revocation ends the sessions and streams of MCP clients. */
const atMcp = "within 5 s, or 1 s if suspended: it is ended";

/** Long-lived client connections, which policy/long-connections.ts admits, watches and ends. */
const connections = {
  responseSocket: {
    name: "WebSocket of `/v1/responses`",
    bounds: { key: share(1 / 8), account: share(1 / 4), address: keyNeeded, total: share(1 / 2) },
    idleMs: 10 * minute,
    maxMs: hour,
    ends: {
      credential:
        "within 1 s, by an `error` event and close code 1008; if only its token has expired, after the response under way",
      owner: withKey,
      server: "by close code 1001",
    },
    files: ["src/http/api/responses/response-socket.ts"],
  },
  realtimeSession: {
    name: "Session of `/v1/realtime`",
    bounds: { key: share(1 / 8), account: share(1 / 4), address: keyNeeded, total: share(1 / 2) },
    idleMs: 10 * minute,
    maxMs: hour,
    ends: {
      credential: "within 1 s, by an `error` event and close code 1008",
      owner: withKey,
      server: "by an `error` event and close code 1001",
    },
    files: ["src/http/api/realtime/realtime-routes.ts", "src/inference/realtime/session-watch.ts"],
  },
  responseFollower: {
    name: "Stream of a background response's events",
    bounds: { key: share(1 / 8), account: share(1 / 4), address: keyNeeded, total: share(1 / 2) },
    idleMs: undefined,
    idle: "ends with its response; cut off after 60 s in which the client takes nothing",
    maxMs: undefined,
    ends: { credential: "within 1 s: the stream is cut off", owner: withKey, server: "the stream is cut off" },
    files: ["src/responses/background/event-subscriber.ts", "src/http/api/responses/background-answer.ts"],
  },
} as const satisfies Record<string, LongLived>;

const others = {
  httpConnection: {
    name: "HTTP connection between requests",
    bounds: { key: noKey, account: noKey, address: text("none"), total: share(1) },
    idleMs: 75 * second,
    maxMs: undefined,
    ends: {
      credential: "stays; each request is authenticated by itself",
      owner: withKey,
      server: "closed at once",
    },
    files: ["src/http1/server/server.ts"],
  },
  request: {
    name: "Request under way, its upload and its streamed answer",
    bounds: {
      key: byOpenRequests,
      account: text("its share of `limits.held_bytes`"),
      address: keyNeeded,
      total: share(1),
    },
    idleMs: minute,
    idle: "60 s in which the client takes nothing, 30 s without a byte of its body",
    maxMs: undefined,
    ends: {
      credential: "revoked: goes on to its end; suspended: stopped within 1 s",
      owner: withKey,
      server: "after `drain_seconds`, by an `error` event",
    },
    files: [
      "src/http/api/inference-answer.ts",
      "src/http/api/usage/csv-answer.ts",
      "src/http/api/files/send-bytes.ts",
      "src/http/api/responses/response-routes.ts",
      "src/inference/hosted/run-response.ts",
    ],
  },
  backgroundResponse: {
    name: "Background response",
    bounds: {
      key: byOpenRequests,
      account: text("its share of `limits.held_bytes`"),
      address: keyNeeded,
      total: ofAll,
    },
    idleMs: undefined,
    idle: "ends with its model's answer, within the upstream's `idle_seconds`",
    maxMs: undefined,
    ends: {
      credential: "revoked: goes on to its end, and calls no tool any more; suspended: stopped within 1 s",
      owner: withKey,
      server: "fails; if the process was killed, another process ends it within 2 minutes",
    },
    files: ["src/responses/background/background-runs.ts", "src/responses/background/run-writer.ts"],
  },
  batch: {
    name: "Batch",
    bounds: { key: ofAccount, account: text("`batches.open_batches`"), address: keyNeeded, total: ofAll },
    idleMs: undefined,
    idle: "none: it waits for free slots",
    maxMs: day,
    ends: { credential: "the remaining lines fail", owner: withKey, server: "another process goes on with it" },
    files: ["src/batches/batch-runner.ts"],
  },
  upload: {
    name: "Upload in parts",
    bounds: { key: ofAccount, account: text("`files.account_bytes`"), address: keyNeeded, total: ofAll },
    idleMs: undefined,
    idle: "none: its age is its limit",
    maxMs: hour,
    ends: { credential: "takes no further part, and expires", owner: withKey, server: "stays" },
    files: ["src/http/api/files/upload-routes.ts"],
  },
  mcpSession: {
    name: "Session of an MCP client",
    bounds: {
      key: most(32),
      account: text("the account with the most sessions loses one first"),
      address: keyNeeded,
      total: most(4_096),
    },
    idleMs: 10 * minute,
    maxMs: undefined,
    ends: { credential: atMcp, owner: withKey, server: "ended" },
    files: ["src/mcp/server/sessions.ts"],
  },
  mcpStream: {
    name: "Notification stream of an MCP client",
    bounds: { key: most(32), account: most(1_024), address: keyNeeded, total: most(4_096) },
    idleMs: undefined,
    idle: "none: it waits for notifications; 60 s in which the client takes nothing",
    maxMs: undefined,
    ends: { credential: atMcp, owner: withKey, server: "ended" },
    files: ["src/mcp/server/endpoint.ts", "src/mcp/server/session-revoker.ts", "src/http/api/mcp/web-request.ts"],
  },
  mcpTask: {
    name: "Task of an MCP server",
    bounds: { key: most(64), account: most(1_024), address: keyNeeded, total: most(4_096) },
    idleMs: undefined,
    idle: "none: its server keeps it as long as it says",
    maxMs: day,
    ends: { credential: "stays, out of reach, until its age", owner: withKey, server: "forgotten" },
    files: ["src/mcp/server/tasks.ts"],
  },
  mcpHeldCall: {
    name: "MCP call that waits for its client",
    bounds: { key: most(16), account: most(128), address: keyNeeded, total: most(512) },
    idleMs: 5 * minute,
    maxMs: undefined,
    ends: { credential: "stays, out of reach, until its idle limit", owner: withKey, server: "cancelled" },
    files: ["src/mcp/server/suspended-calls.ts"],
  },
  mcpLink: {
    name: "Connection to an MCP server",
    bounds: { key: noKey, account: noKey, address: text("500 to one server"), total: most(2_000) },
    idleMs: 5 * minute,
    maxMs: undefined,
    ends: {
      credential: "a shared one stays; a person's own is out of reach, and ends at its idle limit",
      owner: withKey,
      server: "closed",
    },
    files: ["src/mcp/client/sessions.ts", "src/mcp/client/offered-servers.ts", "src/mcp/server/server-lists.ts"],
  },
  mcpProcess: {
    name: "Process of an MCP server",
    bounds: { key: noKey, account: noKey, address: text("16 of one server"), total: most(64) },
    idleMs: 5 * minute,
    maxMs: undefined,
    ends: {
      credential: "a shared one stays; a person's own is out of reach, and ends at its idle limit",
      owner: withKey,
      server: "ended by its guard, also after `kill -9`",
    },
    files: ["src/processes/guarded-process.ts", "src/processes/guard.ts"],
  },
  nodeTunnel: {
    name: "Tunnel of a node",
    bounds: {
      key: most(1),
      account: noKey,
      address: text("before the node has proven who it is, the address with the most gives way"),
      total: text("256 that have not proven who they are; then one for each node"),
    },
    idleMs: 8 * second,
    maxMs: undefined,
    ends: { credential: "within 2 s after the node is removed", owner: "stays", server: "closed after its requests" },
    files: [
      "src/nodes/accept.ts",
      "src/nodes/uplink.ts",
      "src/nodes/node-directory.ts",
      "src/nodes/tunnel/tunnel-connection.ts",
      "src/websocket/connect.ts",
      "src/websocket/client-socket.ts",
    ],
  },
  browserSession: {
    name: "Session of a browser",
    bounds: { key: noKey, account: noKey, address: text("sign-ins are limited"), total: text("none: a row each") },
    idleMs: 14 * day,
    maxMs: 90 * day,
    ends: {
      credential: "ended by sign-out and by a new password",
      owner: "ended with the person",
      server: "stays",
    },
    files: ["src/accounts/browser-sessions.ts"],
  },
  beginning: {
    name: "Sign-in at a provider, or with a passkey, that was begun",
    bounds: {
      key: noKey,
      account: noKey,
      address: text("if there are too many, the network with the most loses its oldest"),
      total: most(10_000),
    },
    idleMs: undefined,
    idle: "none: its age is its limit",
    maxMs: 10 * minute,
    ends: { credential: "no credential yet", owner: "no person yet", server: "stays" },
    files: [
      "src/accounts/single-sign-on.ts",
      "src/accounts/passkeys.ts",
      "src/accounts/sign-in.ts",
      "src/server/tools/tool-connections.ts",
    ],
  },
  deviceCode: {
    name: "Device code",
    bounds: { key: noKey, account: noKey, address: text("20 a minute"), total: text("600 a minute of one app") },
    idleMs: undefined,
    idle: "none: its age is its limit",
    maxMs: 10 * minute,
    ends: { credential: "no credential yet", owner: "its grant ends with the person", server: "stays" },
    files: ["src/oauth/authorize-device.ts"],
  },
  webhookDelivery: {
    name: "Delivery to a webhook",
    bounds: { key: noKey, account: most(4), address: text("2 at one receiver"), total: most(16) },
    idleMs: 15 * second,
    maxMs: undefined,
    idle: "15 s an attempt; 10 attempts in about three days",
    ends: { credential: "ends with its webhook", owner: "ends with the account", server: "another process repeats it" },
    files: ["src/notifications/delivery/deliverer.ts"],
  },
  modelProcess: {
    name: "Process of a model",
    bounds: { key: noKey, account: noKey, address: noKey, total: text("the memory that the models share") },
    idleMs: undefined,
    idle: "`idle_seconds` of its command; 10 minutes of the built-in engine",
    maxMs: undefined,
    ends: { credential: "stays", owner: "stays", server: "ended by its guard, also after `kill -9`" },
    files: [
      "src/engines/commands/commands.ts",
      "src/engines/commands/server-run.ts",
      "src/engines/llama/llama-engine.ts",
      "src/engines/llama/worker-process.ts",
    ],
  },
  upstreamConnection: {
    name: "Connection to a model server",
    bounds: { key: noKey, account: noKey, address: noKey, total: most(10_000) },
    idleMs: minute,
    maxMs: undefined,
    ends: { credential: "stays", owner: "stays", server: "closed" },
    files: ["src/http1/client/client.ts"],
  },
  worker: {
    name: "Worker process and its link to the primary",
    bounds: { key: noKey, account: noKey, address: noKey, total: text("one for each of `workers`") },
    idleMs: undefined,
    idle: "none: it serves for as long as the primary",
    maxMs: undefined,
    ends: {
      credential: "stays; a connection handed over ends as its kind does",
      owner: "stays",
      server: "ends with the primary, also after `kill -9`",
    },
    files: [
      "src/server/workers.ts",
      "src/server/primary/sockets.ts",
      "src/server/worker/worker.ts",
      "src/server/worker/worker-routing.ts",
      "src/workers/primary/worker-processes.ts",
    ],
  },
} as const satisfies Record<string, LongLived>;

export type LongConnectionKind = keyof typeof connections;
export const longConnectionKinds = Object.keys(connections) as LongConnectionKind[];

/** Milliseconds between two checks of all long-lived connections. */
export const longConnectionPollMs = second;
export const longLived = { ...connections, ...others };
export const longLivedKinds: readonly (readonly [id: string, kind: LongLived])[] = Object.entries(longLived);
