// A machine that joins a gateway in order, and then says over its connection whatever a test wants.
import type { NodeIdentity } from "../../src/domain/models/node-identity.ts";
import { joinGateway } from "../../src/nodes/join-gateway.ts";
import { messageTypes } from "../../src/nodes/tunnel/messages.ts";
import type { Gateway } from "./nodes.ts";
import { json, proofOf, type RawEnd, rawNode } from "./tunnel/raw-ends.ts";

export interface HostileNode {
  identity: NodeIdentity;
  /** Connects, proves who it is and announces; `answer` is told the stream of each request that comes. */
  connect(answer?: (end: RawEnd, stream: number) => void, at?: Pick<Gateway, "url">): Promise<RawEnd>;
}

/** Approved for whatever it announces. */
export async function hostileNode(
  gateway: Pick<Gateway, "url" | "token">,
  name: string,
  models: readonly string[],
): Promise<HostileNode> {
  const { token } = await gateway.token(["*"]);
  const signal = AbortSignal.timeout(10_000);
  const identity = await joinGateway({ gatewayUrl: gateway.url, token, name, signal });
  return {
    identity,
    async connect(answer = () => {}, at = gateway) {
      const end = await rawNode(at);
      const { node_id: id, private_key: key, gateway: signed } = identity;
      end.send(messageTypes.proof, 0, await proofOf(end, id, key, { text: { gateway: signed } }));
      await end.received(messageTypes.welcome);
      end.listener.onMessage = (bytes) => {
        if (bytes[0] === messageTypes.request) answer(end, bytes.readUInt32BE(1));
      };
      end.send(messageTypes.announce, 0, json({ version: "9.9.9", models: models.map((id) => ({ id })) }));
      return end;
    },
  };
}
