// Nodes that offer MCP servers: finds them, and sends requests to their servers.
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { EngineResponse } from "../domain/models/engine.ts";
import { nodeCalled } from "../domain/models/node.ts";
import type { NodeToolRequest, ToolNode, ToolNodes } from "../domain/tools/node-tools.ts";
import type { Router } from "../inference/routing/route.ts";
import type { NodeDirectory } from "./node-directory.ts";

export interface DirectoryToolNodesOptions {
  directory: Pick<NodeDirectory, "records" | "isReachable" | "send">;
  router: Pick<Router, "drained">;
}

export class DirectoryToolNodes implements ToolNodes {
  readonly #options: DirectoryToolNodesOptions;
  readonly #listeners = new Set<() => void>();

  constructor(options: DirectoryToolNodesOptions) {
    this.#options = options;
  }

  find(node: string): ToolNode | undefined {
    const { directory, router } = this.#options;
    const record = nodeCalled(directory.records(), node);
    if (!record) return undefined;
    const { id, name, local: isLocal, toolServers: offers } = record;
    return { id, name, offers, isLocal, isThere: directory.isReachable(id) && !router.drained.has(name) };
  }

  async send(nodeId: string, request: NodeToolRequest, cancellation: Cancellation): Promise<EngineResponse> {
    try {
      return await this.#options.directory.send(nodeId, request, cancellation);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const { code, detail, retryAfterSeconds } = error;
      const message = said[code];
      if (message === undefined) throw error;
      throw new GatewayError(code, message, {
        cause: error,
        ...(detail === undefined ? {} : { detail }),
        ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      });
    }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Call this when nodes or their announcements have changed. */
  changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Error messages for MCP servers, in place of those for models. */
const said: Readonly<Partial<Record<GatewayError["code"], string>>> = {
  upstream_timeout: "The MCP server did not answer its node in time.",
  service_unavailable: "The node of the MCP server is not connected, or takes no more for now. Retry in 2 s.",
};
