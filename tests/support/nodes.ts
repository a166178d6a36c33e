// A gateway with nodes for tests: machines that join it, each a server of its own with a model server behind it.

import { makeOperatorKey } from "../../src/maintenance/operator-key.ts";
import { joinGateway } from "../../src/nodes/join-gateway.ts";
import { deleteNodeIdentity, writeNodeIdentity } from "../../src/storage/files/node-files.ts";
import type { CreatedJoinTokenWire, NodeWire } from "../../src/wire/nodes.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "./headrace.ts";
import { type Answer, adminOf } from "./operated.ts";
import { upstreamYaml } from "./scripted-upstream.ts";

export interface Gateway extends TestServer {
  operator: string;
  admin(method: string, path: string, body?: unknown): Promise<Answer>;
  node(name: string): Promise<NodeWire | undefined>;
  token(models?: readonly string[]): Promise<CreatedJoinTokenWire>;
}

export interface TestNode extends TestServer {
  id: string;
  leave(): void;
}

export async function startGateway(options: TestServerOptions = {}): Promise<Gateway> {
  return await operate(await startHeadrace(options), options.env?.["HEADRACE_SECRET"]);
}

/** `secretHex`: where the server has it from its environment. */
export async function operate(server: TestServer, secretHex?: string): Promise<Gateway> {
  const { key: operator } = await makeOperatorKey({
    dataDir: server.dataDir,
    secretsHex: secretHex === undefined ? undefined : [secretHex],
    databaseUrl: server.config.databaseUrl,
    environment: undefined,
    request: { name: "Operator", scopes: ["admin:manage"] },
    nowSeconds: Math.floor(Date.now() / 1000),
  });
  const admin = adminOf(server, operator);
  return {
    ...server,
    operator,
    admin,
    node: async (name) => (await admin("GET", "/nodes")).body.data.find((node: NodeWire) => node.name === name),
    token: async (models) =>
      (await admin("POST", "/node-tokens", models ? { approved_models: models } : {})).body as CreatedJoinTokenWire,
  };
}

export interface JoinOptions extends TestServerOptions {
  /** Approved with the token. */
  models?: readonly string[];
  name?: string;
  /** Where it connects to, in place of the gateway's own address. */
  through?: string;
}

/** Starts a server, and has it join; resolves once it is connected and has announced what it serves. */
export async function joinNode(gateway: Gateway, options: JoinOptions): Promise<TestNode> {
  const { models, name = "gpu-1", through, ...serverOptions } = options;
  const { token } = await gateway.token(models);
  const server = await startHeadrace(serverOptions);
  const signal = AbortSignal.timeout(10_000);
  const identity = await joinGateway({ gatewayUrl: gateway.url, token, name, signal });
  writeNodeIdentity(server.dataDir, { ...identity, gateway_url: through ?? identity.gateway_url });
  await connected(gateway, name);
  return { ...server, id: identity.node_id, leave: () => deleteNodeIdentity(server.dataDir) };
}

export function connected(gateway: Pick<Gateway, "node">, name: string, deadlineMs?: number): Promise<NodeWire> {
  const isThere = async () => {
    const node = await gateway.node(name);
    return node && node.status !== "offline" && node.announced_models.length > 0 ? node : undefined;
  };
  return until(isThere, `${name} is connected`, deadlineMs);
}

export { upstreamYaml };
