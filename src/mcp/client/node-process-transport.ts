// Transport to a process at a node. One request through the tunnel starts the process and streams its output; further
// requests carry its input.
import { type JSONRPCMessage, serializeMessage, type Transport } from "@modelcontextprotocol/client";
import { type BodySource, readAll } from "../../base/bytes/body-source.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { EngineResponse } from "../../domain/models/engine.ts";
import { sessionField } from "../../domain/tools/node-tools.ts";
import { MessageLines } from "./message-lines.ts";
import { type NodeLocation, NodeRoute } from "./node-route.ts";
import { PacedStream } from "./paced-stream.ts";
import type { Line } from "./transport.ts";

export interface NodeProcessTransportOptions {
  /** Name of the server at the gateway. */
  readonly name: string;
  readonly at: NodeLocation;
  readonly maxLineBytes: number;
}

/** Maximum bytes of a response to input, which should be empty. */
const maxNoteBytes = 1_024;

export class NodeProcessTransport implements Line, Transport {
  onclose: Transport["onclose"];
  onerror: Transport["onerror"];
  onmessage: Transport["onmessage"];
  /**
   * The SDK's client treats a transport with a member `stderr` as a local process: if a process ignores the probe, the
   * client uses an earlier protocol revision.
   */
  readonly stderr = null;
  readonly #options: NodeProcessTransportOptions;
  readonly #way: NodeRoute;
  readonly #leaving = new Cancellation();
  #said: BodySource | undefined;
  #lines: MessageLines | undefined;
  #process = "";
  #fault: GatewayError | undefined;
  #isClosed = false;
  #endedItself = false;

  constructor(options: NodeProcessTransportOptions) {
    this.#options = options;
    this.#way = new NodeRoute(options.at);
  }

  get transport(): Transport {
    return this;
  }

  get endedItself(): boolean {
    return this.#endedItself;
  }

  fault(): GatewayError | undefined {
    return this.#fault;
  }

  async start(): Promise<void> {
    const { status, headers, body } = await this.#ask("GET");
    const process = headers.get(sessionField);
    if (status !== 200 || process === null || this.#isClosed) {
      body.cancel();
      throw this.#failed("could not be started", `status ${status}`);
    }
    this.#process = process;
    this.#said = body;
    const lines = new MessageLines(this.#options.maxLineBytes, {
      take: (message) => {
        if (!this.#isClosed) this.onmessage?.(message);
      },
      refuse: (what, detail) => this.#failed(what, detail),
    });
    this.#lines = lines;
    const enqueue = (slice: Uint8Array) => {
      try {
        if (!lines.push(slice)) body.cancel();
      } catch (error) {
        this.#failed("could not be read", String(error));
      }
      if (!this.#isClosed) return;
      // Handling a message has closed the transport.
      paced.cancel();
      lines.end();
    };
    const paced = new PacedStream(body, { desiredSize: 1, enqueue });
    body.flow({
      data: (piece) => paced.push(new Uint8Array(piece.view)),
      end: () =>
        paced.end(() => {
          this.#endedItself = !this.#isClosed;
          this.#failed("has ended", "it ended by itself");
        }),
      fail: (error) =>
        paced.end(() => {
          this.#failed("was lost", error instanceof GatewayError ? (error.detail ?? error.message) : String(error));
        }),
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) throw this.#failed("is not there", "closed");
    this.#lines?.sent(message);
    const { status, body } = await this.#ask("POST", serializeMessage(message), { [sessionField]: this.#process });
    await readAll(body, maxNoteBytes, this.#leaving, () => {});
    if (status !== 202) throw this.#failed("is not there any more", `status ${status}`);
  }

  async close(): Promise<void> {
    this.#shut();
  }

  async #ask(method: "GET" | "POST", body = "", headers: Record<string, string> = {}): Promise<EngineResponse> {
    try {
      return await this.#way.send({ method, path: "/", headers, body }, undefined, this.#leaving);
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      throw this.#failed("is not there", String(error));
    }
  }

  /** Stores the first error and closes the transport. */
  #failed(what: string, detail: string): GatewayError {
    const { name, at } = this.#options;
    const message = `The process of the MCP server "${name}" at its node ${what}.`;
    this.#fault ??= new GatewayError("upstream_error", message, { detail: `${at.nodeId}: ${detail}` });
    this.#shut();
    return this.#fault;
  }

  #shut(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#leaving.cancel(new Error("The connection was closed."));
    this.#said?.cancel();
    this.#lines?.end();
    this.onclose?.();
  }
}
