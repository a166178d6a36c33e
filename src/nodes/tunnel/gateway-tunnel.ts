// The gateway's end of a tunnel to a verified node. Each request is a separate stream.

import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { EngineResponse } from "../../domain/models/engine.ts";
import { isTask } from "../../domain/models/operation.ts";
import { isOfOpen } from "../../domain/tools/node-tools.ts";
import {
  type GatewayEnd,
  type GatewayEndListener,
  type NodeAnnouncement,
  type NodeStatus,
  type TunnelLimits,
  type TunnelRequest,
  toolsFeature,
  tunnelCloseCodes,
} from "./contract.ts";
import { GatewayStream, type StreamOwner, type StreamTimes } from "./gateway-stream.ts";
import { creditPayload, maxPayloadBytes, messageTypes, ProtocolError, pieceBytes, readCredit } from "./messages.ts";
import { Orphans } from "./orphans.ts";
import { OutgoingBody } from "./outgoing-body.ts";
import {
  type Failure,
  type Proof,
  parseAnnouncement,
  parseAnswerHead,
  parseFailure,
  requestPayload,
} from "./payloads.ts";
import { StreamTable } from "./stream-table.ts";
import type { TunnelConnection, TunnelUser } from "./tunnel-connection.ts";

export interface GatewayTunnelOptions {
  connectionId: string;
  clientAddress: string;
  /** The proof of its identity that the node sent. */
  proof: Proof;
  limits: TunnelLimits;
  times: StreamTimes;
}

/** Minimum milliseconds between two announcements that are handled, because each may cause a database write. */
const announcementIntervalMs = 1_000;
const maxStreamId = 0xffff_ffff;
const { head, data, end, fail, credit } = messageTypes;
const ofStream: ReadonlySet<number> = new Set([head, data, end, fail, credit]);
const { hello, proof, welcome, status, request, body, cancel } = messageTypes;
const misplaced: ReadonlySet<number> = new Set([hello, proof, welcome, status, request, body, cancel]);

export class GatewayTunnel implements GatewayEnd, TunnelUser, StreamOwner {
  readonly nodeId: string;
  readonly connectionId: string;
  readonly clientAddress: string;
  listener: GatewayEndListener | undefined;
  readonly #connection: TunnelConnection;
  readonly #options: GatewayTunnelOptions;
  readonly #streams = new StreamTable<GatewayStream>();
  /** Streams whose request body waits until the connection can send again. */
  readonly #paused = new Set<GatewayStream>();
  readonly #orphans = new Orphans();
  readonly #maxStreams: number;
  #lastId = 0;
  #announcement: NodeAnnouncement | undefined;
  #announcedAtMs = Number.NEGATIVE_INFINITY;
  /** The last announcement that was not handled yet. */
  #nextAnnouncement: Buffer | undefined;
  /** True once the gateway has told the node that it sends no new requests. */
  #drainSent = false;
  #draining = false;
  /** True once the node has announced that it stops. It closes the connection after the gateway has confirmed that. */
  #nodeLeaves = false;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(connection: TunnelConnection, options: GatewayTunnelOptions) {
    this.#connection = connection;
    this.#options = options;
    this.nodeId = options.proof.node;
    this.connectionId = options.connectionId;
    this.clientAddress = options.clientAddress;
    this.#maxStreams = Math.min(options.limits.streams, options.proof.streams);
  }

  get name(): string {
    return this.nodeId;
  }

  get announcement(): NodeAnnouncement | undefined {
    return this.#announcement;
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  get draining(): boolean {
    return this.#draining;
  }

  get closed(): boolean {
    return this.#connection.isOver;
  }

  get roundTripMs(): number | undefined {
    return this.#connection.roundTripMs;
  }

  sendStatus({ name, approvedModels }: NodeStatus): void {
    this.#connection.sendText(status, 0, JSON.stringify({ name, approvedModels }));
  }

  send(request: TunnelRequest, cancellation: Cancellation): Promise<EngineResponse> {
    if (cancellation.cancelled) return Promise.reject(cancellation.reason);
    const { body, memoryAccount } = request;
    const bytes = typeof body === "string" ? ByteSpan.of(body) : body;
    const head = Buffer.from(requestPayload({ ...request, length: bytes.length }));
    const refusal = this.#refusal(request, head);
    if (refusal) return Promise.reject(refusal);
    const { limits, proof, times } = this.#options;
    const outgoing = new OutgoingBody(bytes, proof.window);
    const stream = new GatewayStream(
      this.#newId(),
      this,
      outgoing,
      times,
      limits.windowBytes,
      memoryAccount,
      cancellation,
    );
    this.#streams.add(stream);
    this.#begin(stream, head);
    return stream.response;
  }

  drain(): Promise<void> {
    this.#drained ??= Promise.withResolvers<void>();
    if (this.closed) this.#drained.resolve();
    else {
      this.#sendDrain();
      this.#endIfDrained();
    }
    return this.#drained.promise;
  }

  close(code: number, reason: string): void {
    this.#connection.close(code, reason);
  }

  received(type: number, id: number, payload: Buffer): void {
    if (ofStream.has(type)) this.#receivedOf(type, id, payload);
    else if (type === messageTypes.announce) this.#announced(payload);
    else if (type === messageTypes.drain) this.#nodeDrains();
    else if (misplaced.has(type)) throw new ProtocolError(`a node must not send a message of type ${type} here`);
    // Ignore unknown types, which a later minor version may have.
  }

  drained(): void {
    for (const stream of [...this.#paused]) {
      this.#paused.delete(stream);
      this.#sendBody(stream);
      if (this.#connection.behind) return;
    }
  }

  tick(nowMs: number): void {
    for (const stream of this.#streams) stream.checkDeadline(nowMs);
    if (this.#nextAnnouncement && nowMs - this.#announcedAtMs >= announcementIntervalMs) this.#takeAnnouncement(nowMs);
  }

  ended(code: number, reason: string): void {
    const streams = [...this.#streams];
    for (const stream of streams) this.#streams.delete(stream);
    this.#paused.clear();
    this.#nextAnnouncement = undefined;
    const detail = `${this.nodeId}: ${reason} (${code})`;
    for (const stream of streams) {
      const what = stream.waits
        ? "The connection to the node broke."
        : "The connection to the node broke in the middle of its answer.";
      stream.fail(new GatewayError("upstream_error", what, { detail }));
    }
    this.#draining = true;
    this.#drained?.resolve();
    this.listener?.closed(code, reason);
  }

  grant(stream: GatewayStream, bytes: number): void {
    this.#connection.send(messageTypes.credit, stream.id, creditPayload(bytes));
  }

  cancel(stream: GatewayStream): void {
    if (!this.#forget(stream)) return;
    this.#connection.send(messageTypes.cancel, stream.id);
    this.#orphans.expect(stream.answer.grantedBytes);
    this.#endIfDrained();
  }

  #refusal(request: TunnelRequest, head: Buffer): GatewayError | undefined {
    const detail = this.nodeId;
    // Check the node's features first: an older node would close the connection because of an unknown request.
    const needed = "server" in request ? toolsFeature : isTask(request.operation) ? request.operation : undefined;
    if (needed !== undefined && !this.#options.proof.features.includes(needed)) {
      const message = "The node's version does not know this endpoint; its operator has to update it.";
      return new GatewayError("upstream_error", message, { detail: `${detail}: ${needed}` });
    }
    if (head.length > maxPayloadBytes) {
      return new GatewayError("request_too_large", "The request has longer headers than a node takes.", { detail });
    }
    if (this.closed) return new GatewayError("upstream_error", "The connection to the node broke.", { detail });
    const full = this.#streams.size >= this.#maxStreams;
    if (!full && (!this.#draining || this.#mayGoOn(request))) return undefined;
    return new GatewayError("service_unavailable", "The node takes no more requests for now.", {
      detail: `${detail}: ${full ? `${this.#maxStreams} requests are open` : "it is going away"}`,
      retryAfterSeconds: 1,
    });
  }

  /**
   * Reports whether a request may still be sent to a stopping node: only a message of an open MCP call, before the
   * gateway has confirmed the stop.
   */
  #mayGoOn(request: TunnelRequest): boolean {
    return !this.#drainSent && "server" in request && isOfOpen(request);
  }

  #newId(): number {
    do this.#lastId = this.#lastId >= maxStreamId ? 1 : this.#lastId + 1;
    while (this.#streams.get(this.#lastId));
    return this.#lastId;
  }

  #begin(stream: GatewayStream, head: Buffer): void {
    const piece = this.#connection.behind ? undefined : stream.body.next();
    const payload = Buffer.allocUnsafe(2 + head.length + (piece?.byteLength ?? 0));
    payload.writeUInt16BE(head.length);
    head.copy(payload, 2);
    if (piece) payload.set(piece, 2 + head.length);
    this.#connection.send(messageTypes.request, stream.id, payload);
    this.#sendBody(stream);
  }

  #sendBody(stream: GatewayStream): void {
    while (!stream.body.complete) {
      if (this.#connection.behind) {
        this.#paused.add(stream);
        return;
      }
      const piece = stream.body.next();
      if (!piece) return;
      this.#connection.send(messageTypes.body, stream.id, piece);
    }
  }

  #receivedOf(type: number, id: number, payload: Buffer): void {
    const stream = this.#streams.get(id);
    if (!stream) {
      this.#orphans.came(payload.length);
      return;
    }
    try {
      if (type === data) receiveData(stream, payload);
      else if (type === credit) this.#granted(stream, readCredit(payload));
      else if (type === head) receiveHead(stream, payload);
      else if (type === end) this.#over(stream, undefined);
      else this.#over(stream, parseFailure(payload));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // An error in one stream must not affect the others.
      this.cancel(stream);
      stream.failedAtNode({ code: "upstream_error", message: error.message });
    }
  }

  #granted(stream: GatewayStream, bytes: number): void {
    stream.body.grant(bytes);
    this.#sendBody(stream);
  }

  /** Ends a stream for which the node will send no more. */
  #over(stream: GatewayStream, failure: Failure | undefined): void {
    if (!failure && stream.waits) throw new ProtocolError("an answer ended before it began");
    this.#forget(stream);
    this.#orphans.expect(0);
    if (failure) stream.failedAtNode(failure);
    else stream.complete();
    this.#endIfDrained();
  }

  #forget(stream: GatewayStream): boolean {
    this.#paused.delete(stream);
    return this.#streams.delete(stream);
  }

  #announced(payload: Buffer): void {
    this.#nextAnnouncement = payload;
    const nowMs = exactMs();
    if (nowMs - this.#announcedAtMs >= announcementIntervalMs) this.#takeAnnouncement(nowMs);
  }

  #takeAnnouncement(nowMs: number): void {
    const payload = this.#nextAnnouncement;
    if (!payload) return;
    this.#nextAnnouncement = undefined;
    this.#announcedAtMs = nowMs;
    this.#announcement = parseAnnouncement(payload);
    this.listener?.announced(this.#announcement);
  }

  #nodeDrains(): void {
    const wasDraining = this.#draining;
    this.#draining = true;
    // During this call, the listener may stop using this tunnel.
    if (!wasDraining) this.listener?.draining();
    this.#nodeLeaves = true;
    this.#endIfDrained();
  }

  #sendDrain(): void {
    this.#draining = true;
    if (this.#drainSent) return;
    this.#drainSent = true;
    this.#connection.send(messageTypes.drain, 0);
  }

  /**
   * When no stream is open, closes the connection, or confirms the node's stop. The node closes the connection after
   * that.
   */
  #endIfDrained(): void {
    if (this.#streams.size > 0) return;
    if (this.#drained) this.close(tunnelCloseCodes.goingAway, "the gateway is going away");
    else if (this.#nodeLeaves) this.#sendDrain();
  }
}

function receiveHead(stream: GatewayStream, payload: Buffer): void {
  if (!stream.waits) throw new ProtocolError("an answer began twice");
  stream.began(parseAnswerHead(payload));
}

function receiveData(stream: GatewayStream, payload: Buffer): void {
  if (stream.waits) throw new ProtocolError("the body of an answer came before its head");
  if (payload.length > pieceBytes) throw new ProtocolError(`a piece must be at most ${pieceBytes} bytes`);
  if (!stream.answer.push(payload)) throw new ProtocolError("more came on a stream than was granted");
}
