// Composes the network of nodes: nodes of this gateway, and this machine as a node of another.

import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Config, processEnvironment } from "../config/config.ts";
import type { ChangeFeed } from "../domain/change-feed.ts";
import { demoId } from "../engines/llama/model-store.ts";
import { errorAnswer } from "../http/exchange/errors.ts";
import type { Catalog } from "../inference/models/catalog.ts";
import type { Capacity } from "../inference/routing/capacity.ts";
import type { Router } from "../inference/routing/route.ts";
import { OfferedServers } from "../mcp/client/offered-servers.ts";
import { NodeAcceptor } from "../nodes/accept.ts";
import { Enrolment } from "../nodes/enrol.ts";
import { ForwardVerifier } from "../nodes/forward-signature.ts";
import { LocalServing } from "../nodes/local-serving.ts";
import { Nodes } from "../nodes/manage-nodes.ts";
import { NodeDirectory } from "../nodes/node-directory.ts";
import type { NodeEngine } from "../nodes/node-engine.ts";
import { ReplicaForwarder } from "../nodes/replica-forwarder.ts";
import { DirectoryToolNodes } from "../nodes/tool-nodes.ts";
import { Uplink } from "../nodes/uplink.ts";
import { deleteNodeReport, nodeIdentityMark, readNodeIdentity, writeNodeReport } from "../storage/files/node-files.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlNodeStore } from "../storage/tables/node-store.ts";
import type { EngineSources } from "./engine-sources.ts";
import type { Governance } from "./governance.ts";
import type { Opened } from "./opened.ts";

export interface NodeNetworkOptions {
  db: Database;
  config: Config;
  governance: Governance;
  feed: ChangeFeed;
  replicaId: string;
  sources: EngineSources;
  catalog: Catalog;
  router: Router;
  capacity: Capacity;
  clock: Clock;
  log: Log;
  version: string;
  /** Returns the base URL with `/v1`, once the server listens. */
  baseUrl(): string;
  /** Updates the sources of the catalog. */
  configure(): void;
  /** Reloads which upstreams and nodes are drained. */
  drainedChanged(): Promise<void>;
  opened: Opened;
}

export type NodeNetwork = Awaited<ReturnType<typeof openNodeNetwork>>;

/** The default timeouts of upstreams, in milliseconds. */
const [firstByteTimeoutMs, idleTimeoutMs] = [600_000, 900_000];

/** Levels of nesting that a body from the gateway may have, even if this machine's own limit is lower. */
const deepest = 256;

/**
 * Opens the node network. Call before the catalog is configured for the first time. Rejects if the database cannot be
 * read.
 */
export async function openNodeNetwork(options: NodeNetworkOptions) {
  const { db, governance, feed, replicaId, sources, catalog, router, capacity, clock, log, opened } = options;
  const gatewayUrl = () => options.baseUrl().replace(/\/v1$/, "");
  const store = new SqlNodeStore(db, feed);
  const forwardKey = governance.keyFor("replica-forward-v1");
  const forwarder = opened.add(new ReplicaForwarder({ key: forwardKey, clock, firstByteTimeoutMs, idleTimeoutMs }));
  let reachable: ReadonlySet<NodeEngine> = new Set();
  const follow = () => {
    options.configure();
    const engines = directory.engines().map(({ engine }) => engine);
    const before = reachable;
    reachable = new Set(engines.filter((engine) => engine.accepts));
    // Failures of the lost connection do not count against the reconnected node.
    for (const engine of reachable) if (!before.has(engine)) router.reached(engine);
    warnOfHidden();
    toolNodes.changed();
    // Waiting requests are routed again once the node's models are known.
    void catalog.refreshSource(...engines).then(() => capacity.regroup());
  };
  const directory: NodeDirectory = new NodeDirectory({
    ...{ store, feed, replicaId, forwarder, audit: governance.audit, clock, log },
    onChange: follow,
  });
  const toolNodes = new DirectoryToolNodes({ directory, router });
  sources.nodes = () => directory.engines();
  let hidden: ReadonlySet<string> = new Set();
  /** If an upstream of the file has the name of a node, the upstream hides the node. */
  const warnOfHidden = () => {
    const shown = new Set(sources.known().map(({ engine }) => engine));
    const now = directory.engines().filter(({ engine }) => !shown.has(engine));
    for (const { record } of now) {
      if (hidden.has(record.id)) continue;
      const detail = "headrace.yaml has an upstream of this name: rename either, or the node serves nothing";
      log.warn("node_name_taken", { node: record.name, detail });
    }
    hidden = new Set(now.map(({ record }) => record.id));
  };
  await directory.load();
  const tokenKey = governance.keyFor("node-token-v1");
  const isUpstream = (name: string) => sources.known().some((known) => known.name === name && known.source !== "node");
  const nodeAcceptor = new NodeAcceptor({
    ...{ gatewayUrl, firstByteTimeoutMs, idleTimeoutMs, log },
    findKey: (nodeId) => directory.findKey(nodeId),
    connected: (end) => directory.connected(end),
  });
  const serving = new LocalServing({
    ...{ catalog, router, capacity, clock, log, version: options.version, demoModel: demoId },
    // The gateway has checked the request by its own limits. This machine's owner decides which members its servers
    // get.
    requestLimits: () => ({
      bodyBytes: Number.MAX_SAFE_INTEGER,
      depth: Math.max(sources.config.limits.depth, deepest),
      messages: Number.MAX_SAFE_INTEGER,
      refusedMembers: sources.config.limits.refusedMembers,
    }),
    renderError: (error) => {
      const { status, headers, body } = errorAnswer(error);
      return { status, headers, body: String(body) };
    },
  });
  const tools = new OfferedServers({
    ...{ servers: () => sources.config.tools.servers, dataDir: options.config.dataDir, log },
    environment: processEnvironment(),
  });
  opened.onClose(() => tools.shut());
  const uplink = new Uplink({ serving, tools, files: uplinkFiles(options.config.dataDir), clock, log });
  return {
    directory,
    toolNodes,
    uplink,
    routes: {
      nodes: new Nodes({
        ...{ store, directory, capacity, router, isUpstream, gatewayUrl, tokenKey },
        async drainedChanged() {
          await options.drainedChanged();
          toolNodes.changed();
        },
      }),
      enrolment: new Enrolment({ store, directory, limits: governance.limits, isUpstream, gatewayUrl, tokenKey, log }),
      nodeAcceptor,
      nodeDirectory: directory,
      forwardVerifier: new ForwardVerifier(forwardKey, clock),
      replicaId,
    },
    /** Call it after a change of the configuration file. */
    reconfigured(): void {
      warnOfHidden();
      tools.reconfigured();
    },
    /** Call it once the server listens. */
    start(): void {
      directory.start();
      uplink.start();
      opened.onClose(async () => {
        uplink.close();
        nodeAcceptor.close();
        await directory.close();
      });
    },
    /**
     * Refuses new work in both directions: for this gateway's nodes, and from the gateway that this machine is a node
     * of. Resolves when requests of that gateway have ended.
     */
    async drain(): Promise<void> {
      directory.drain();
      await uplink.drain();
    },
  };
}

function uplinkFiles(dataDir: string) {
  return {
    mark: () => nodeIdentityMark(dataDir),
    identity: () => readNodeIdentity(dataDir),
    writeReport: (report: Parameters<typeof writeNodeReport>[1] | undefined) =>
      report ? writeNodeReport(dataDir, report) : deleteNodeReport(dataDir),
  };
}
