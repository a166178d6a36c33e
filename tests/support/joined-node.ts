// A machine that joined a server as a node, without a server of its own: it announces what a test says.
import { GatewayError } from "../../src/base/errors.ts";
import { joinGateway } from "../../src/nodes/join-gateway.ts";
import { NodeLink } from "../../src/nodes/node-link.ts";
import type { NodeHandler } from "../../src/nodes/tunnel/contract.ts";
import { until } from "./headrace.ts";

export interface JoinedNode extends AsyncDisposable {
  id: string;
  /** In the place of what it announced before. */
  announce(models: readonly string[]): void;
}

interface Joining {
  /** The address of the server. */
  url: string;
  token: string;
  name: string;
  models?: readonly string[];
  /** Default: it refuses each request. */
  handle?: NodeHandler;
}

/** Resolves once it is connected; rejects with JoinRefused where it is not let in. */
export async function joinNode({ url, token, name, models = [], handle = refuse }: Joining): Promise<JoinedNode> {
  const signal = AbortSignal.timeout(10_000);
  const { node_id: id, gateway, private_key: privateKey } = await joinGateway({ gatewayUrl: url, token, name, signal });
  let announced = models;
  const link = new NodeLink({
    ...{ url, gateway, node: { id, privateKey } },
    handle,
    announcement: () => ({ version: "0.6.0", models: announced.map(modelOf) }),
  });
  link.start();
  await until(() => link.state.status === "connected", `${name} is connected`);
  return {
    id,
    announce(next) {
      announced = next;
      link.announce();
    },
    async [Symbol.asyncDispose]() {
      link.close();
    },
  };
}

const refuse = () => Promise.reject(new GatewayError("service_unavailable", "This node is there to be looked at."));

function modelOf(id: string) {
  const capabilities = id.includes("embed") ? { embeddings: true } : { chat: true, completion: true };
  return { id, created: 1_700_000_000, ownedBy: "lab", context: 32_768, capabilities };
}
