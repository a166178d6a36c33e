// Sends the requests for an MCP server at a node through the node's tunnel.
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { EngineResponse } from "../../domain/models/engine.ts";
import { passedToolHeaders, type ToolNodes, toolMethods } from "../../domain/tools/node-tools.ts";
import type { HttpWay } from "./http-transport.ts";

/** An MCP server at a node. `server` is the MCP server's name at the node. */
export interface NodeLocation {
  readonly nodes: Pick<ToolNodes, "send">;
  readonly nodeId: string;
  readonly server: string;
}

export class NodeRoute implements HttpWay {
  readonly #at: NodeLocation;

  constructor(at: NodeLocation) {
    this.#at = at;
  }

  /** `_timeouts` is unused, because the tunnel has its own timeouts. */
  async send(
    { method, headers, body = "" }: Parameters<HttpWay["send"]>[0],
    _timeouts: unknown,
    cancellation: Cancellation,
  ): Promise<EngineResponse> {
    const { nodes, nodeId, server } = this.#at;
    const known = toolMethods.find((one) => one === method);
    if (!known) throw new Error(`The protocol has no method ${method}.`);
    const request = { method: known, headers: passedToolHeaders(headers), body };
    const requestId = `req_${Bun.randomUUIDv7()}`;
    return await nodes.send(
      nodeId,
      { requestId, server, ...request, memoryAccount: bufferedBytes.bounded },
      cancellation,
    );
  }

  close(): void {}
}
