// A connection to an MCP server through the SDK's client. Requests and responses are passed without the SDK's
// validation.
import {
  Client,
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type MessageExtraInfo,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "@modelcontextprotocol/client";
import { GatewayError } from "../../base/errors.ts";
import {
  asksTooOften,
  type JsonObject,
  maxAskedBack,
  type ToolAnswer,
  type ToolExchange,
} from "../../domain/tools/client-session.ts";
import type { ToolProtocolVersion } from "../../domain/tools/mcp-server.ts";
import { Call, type CallBounds, currentCall } from "./call.ts";
import { ServerNotifications } from "./server-notifications.ts";
import { type Line, SessionLost, unsupportedRevision } from "./transport.ts";

export interface ConnectionOptions {
  readonly bounds: CallBounds;
  /** Version of the gateway. */
  readonly version: string;
  /** Timeouts of the connection set-up, and of the probe for the server's protocol revision. */
  readonly connectMs: number;
  readonly probeMs: number;
  /** Aborted when no caller needs the connection any more. */
  readonly signal: AbortSignal;
  /** True if the server is known to support only protocol revisions with sessions. */
  readonly isLegacy: boolean;
  /** The only protocol revision to use. If null or absent, the newest one that both sides support. */
  readonly protocolVersion?: ToolProtocolVersion | null | undefined;
  /** Receives notifications that belong to no call. */
  readonly onNotification: (method: string, params: JsonObject) => void;
}

export const connectTimeoutMs = 30_000;
/** Timeout of a ping that tests whether the server still knows the session. */
const pingMs = 5_000;
/** Maximum unanswered requests from the server to the client during one call. */
const maxAsking = 16;
const [methodNotFound, internalError] = [-32_601, -32_603];
/** Capabilities for requests from the server. They are declared once per session, for all calls. */
const capabilities = { elicitation: { form: {} }, sampling: {} };
const meta = (name: string) => `io.modelcontextprotocol/${name}`;

export class Connection {
  readonly isLegacy: boolean;
  readonly revision: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  readonly notifications: ServerNotifications | undefined;
  readonly #line: Line;
  readonly #client: Client;
  readonly #options: ConnectionOptions;
  readonly #clientInfo: { name: string; version: string };
  readonly #calls = new Map<string | number, Call>();
  #lastId = 0;
  /** Number of open requests, including those that pause between two messages. */
  #open = 0;
  #hasEnded = false;
  #isRetired = false;
  /** The running ping, shared by all calls that need to know whether the server still has the session. */
  #pinging: Promise<boolean> | undefined;

  /** Connects to the server. On failure, closes the transport and rejects with a GatewayError. */
  static async open(line: Line, options: ConnectionOptions): Promise<Connection> {
    const clientInfo = { name: "headrace", version: options.version };
    const { protocolVersion } = options;
    const probe = { timeoutMs: options.probeMs };
    const client = new Client(clientInfo, { capabilities, ...negotiationOf(protocolVersion, probe) });
    const prior = options.isLegacy && !protocolVersion ? { prior: { kind: "legacy" } as const } : {};
    // While connecting, the only way to stop is to close the transport.
    const stop = () => void line.close();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      stop();
    }, options.connectMs);
    options.signal.addEventListener("abort", stop);
    let refusal: unknown;
    // The SDK's client does not report why a server refused a revision, so keep the transport's error.
    if (protocolVersion)
      line.transport.onerror = (error) => {
        refusal = error;
      };
    try {
      options.signal.throwIfAborted();
      await client.connect(line.transport, { timeout: options.connectMs, ...prior });
      const agreed = client.getNegotiatedProtocolVersion();
      if (protocolVersion && agreed !== protocolVersion) throw refusesRevision(options, { agreed });
      return new Connection(line, client, clientInfo, options);
    } catch (error) {
      const { server } = options.bounds;
      const found = protocolVersion ? revisionFault(error, refusal, options) : faultOf(error, server);
      const fault = isLate ? notReady(server) : (line.fault() ?? found);
      // Ignore this error; the one found above is thrown.
      await client.close().catch(() => {});
      await line.close();
      throw fault;
    } finally {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", stop);
    }
  }

  private constructor(
    line: Line,
    client: Client,
    clientInfo: { name: string; version: string },
    options: ConnectionOptions,
  ) {
    this.#line = line;
    this.#client = client;
    this.#clientInfo = clientInfo;
    this.#options = options;
    this.isLegacy = client.getProtocolEra() !== "modern";
    this.revision = client.getNegotiatedProtocolVersion() ?? "";
    this.capabilities = { ...client.getServerCapabilities() };
    this.serverInfo = { ...client.getServerVersion() };
    this.instructions = client.getInstructions();
    this.notifications = this.isLegacy ? undefined : new ServerNotifications(client, this.capabilities);
    const { transport } = line;
    const inner = transport.onmessage;
    transport.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) => {
      if (!this.#took(message)) inner?.(message, extra);
    };
    client.onclose = () => this.#end();
  }

  get hasEnded(): boolean {
    return this.#hasEnded || this.#isRetired;
  }

  /** Sends a request. Rejects with SessionLost if the server has forgotten the session. */
  async request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    if (this.hasEnded) throw this.#lost();
    this.#open++;
    try {
      let answer = await this.#round(method, params, exchange);
      for (;;) {
        const next = "result" in answer ? await exchange.next?.(answer.result) : undefined;
        if (!next) return answer;
        answer = await this.#round(next.method, next.params, exchange).catch((error: unknown) => {
          // The server has carried out a part of the request, so do not repeat it in another session.
          throw error instanceof SessionLost ? this.#lost() : error;
        });
      }
    } finally {
      this.#open--;
      if (this.#isRetired) this.retire();
    }
  }

  async #round(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    exchange.cancellation.throwIfCancelled();
    if (this.#hasEnded) throw this.#lost();
    const subscribed = this.notifications?.answer(method, params);
    if (subscribed) return subscribed;
    const id = `call-${++this.#lastId}`;
    const abort = new AbortController();
    const { _meta } = params;
    const given = isObject(_meta) ? _meta : {};
    const { progressToken } = given;
    const call = new Call(exchange, this.#options.bounds, { method, progressToken }, (isAnswered) => {
      this.#calls.delete(id);
      if (!isAnswered) {
        this.#cancel(id);
        abort.abort();
      }
    });
    this.#calls.set(id, call);
    const sent = { ...params, _meta: this.#metaOf(given, exchange, id) };
    currentCall.run(call, () => void this.#send(call, { jsonrpc: "2.0", id, method, params: sent }, abort.signal));
    return await call.answered;
  }

  /** Refuses new requests, and closes the connection once no request is open. */
  retire(): void {
    this.#isRetired = true;
    if (this.#open === 0 && !this.#hasEnded) void this.close();
  }

  /** Fails open requests. Never rejects. */
  async close(): Promise<void> {
    this.#end();
    await this.#line.close();
    // Ignore the error: the transport is closed already.
    await this.#client.close().catch(() => {});
  }

  #metaOf(given: JsonObject, { clientCapabilities = {}, notified }: ToolExchange, id: string): JsonObject {
    // Send the gateway's own progress token, because tokens of different clients may be equal.
    const own = notified ? { ...given, progressToken: id } : given;
    if (this.isLegacy) return own;
    return {
      [meta("protocolVersion")]: this.revision,
      [meta("clientInfo")]: this.#clientInfo,
      [meta("clientCapabilities")]: clientCapabilities,
      ...own,
    };
  }

  async #send(call: Call, message: JSONRPCMessage, requestSignal: AbortSignal): Promise<void> {
    const { transport } = this.#line;
    const headers = call.exchange.headers;
    try {
      await transport.send(message, {
        requestSignal,
        onRequestStreamEnd: () => call.fail(this.#lost()),
        ...(headers && { headers }),
      });
      // The response has ended, and contained no answer to this request.
      if (transport.hasPerRequestStream && !call.isStreamed && !call.isOver) call.fail(this.#lost());
    } catch (error) {
      await this.#notSent(call, error);
    }
  }

  async #notSent(call: Call, error: unknown): Promise<void> {
    const { status, text } = error instanceof SdkHttpError ? refusalIn(error) : {};
    const said = errorIn(text);
    const answer = said && { error: said.error };
    const isCertain = status === 404 || status === 410;
    const mayBeLost =
      this.isLegacy && this.#line.transport.sessionId !== undefined && forgetsSession(status, text, said?.id);
    // Clients share the session, so ping the server before one refused call ends the session for all.
    if (mayBeLost && (isCertain || this.#isRetired || !(await this.#knowsSession()))) {
      // Other running calls are refused for the same reason; they need no ping.
      this.#isRetired = true;
      call.fail(new SessionLost(isCertain ? undefined : (answer ?? faultOf(error, this.#options.bounds.server))));
    } else if (answer) call.answer(answer);
    else call.fail(faultOf(error, this.#options.bounds.server));
  }

  /** Resolves to whether the server answers a ping in this session. Never rejects. */
  #knowsSession(): Promise<boolean> {
    this.#pinging ??= currentCall
      .exit(() => this.#client.ping({ timeout: pingMs }))
      .then(
        () => true,
        // A server that does not support pings answers with a protocol error, so it knows the session.
        (error: unknown) => error instanceof ProtocolError,
      )
      .finally(() => {
        this.#pinging = undefined;
      });
    return this.#pinging;
  }

  /** Tells the server that a request is cancelled. */
  #cancel(requestId: string): void {
    if (this.#hasEnded || (!this.isLegacy && this.#line.transport.hasPerRequestStream)) return;
    const params = { requestId, reason: "The caller left, or waited for too long." };
    this.#notify({ jsonrpc: "2.0", method: "notifications/cancelled", params });
  }

  /** Sends a message without waiting for it. */
  #notify(message: JSONRPCMessage): void {
    // Ignore the error: if the transport is broken, the running calls fail anyway.
    currentCall.exit(() => void this.#line.transport.send(message).catch(() => {}));
  }

  /** Handles a message of the server. Returns false if the SDK's client must handle it. */
  #took(message: JSONRPCMessage): boolean {
    if (isJSONRPCResultResponse(message)) return this.#answered(message.id, { result: message.result });
    if (isJSONRPCErrorResponse(message)) return this.#answered(message.id, { error: message.error });
    const params: JsonObject = message.params ?? {};
    if (isJSONRPCRequest(message)) {
      if (message.method === "ping") return false;
      if (this.isLegacy) void this.#asked(message.id, message.method, params);
      return true;
    }
    if (!isJSONRPCNotification(message)) return true;
    const { method } = message;
    if (method === "notifications/progress") this.#progressed(params);
    else if (method === "notifications/message") this.#notifyCaller(this.#callOfMessage(), method, params);
    else {
      if (!own.has(method)) this.#options.onNotification(method, params);
      return false;
    }
    return true;
  }

  #answered(id: string | number | undefined, answer: ToolAnswer): boolean {
    const call = id === undefined ? undefined : this.#calls.get(id);
    call?.answer(answer);
    return call !== undefined;
  }

  #progressed(params: JsonObject): void {
    const token = params["progressToken"];
    const call = typeof token === "string" ? this.#calls.get(token) : undefined;
    if (!call) return;
    call.prolong();
    const { progressToken } = call;
    if (progressToken !== undefined) this.#notifyCaller(call, "notifications/progress", { ...params, progressToken });
  }

  #notifyCaller(call: Call | undefined, method: string, params: JsonObject): void {
    if (!call) return;
    // Over HTTP, the bytes were already counted on arrival.
    const isCounted = this.#line.transport.hasPerRequestStream === true;
    const refusal = isCounted ? undefined : call.hold(JSON.stringify(params).length);
    if (refusal) call.fail(refusal);
    else call.exchange.notified?.(method, params);
  }

  /**
   * Returns the call that a message belongs to: the call of its stream, or the only running call. Undefined if several
   * calls are possible.
   */
  #callOfMessage(): Call | undefined {
    const call = currentCall.getStore();
    if (call) return call.isOver ? undefined : call;
    const [only] = this.#calls.values();
    return this.#calls.size === 1 ? only : undefined;
  }

  async #asked(id: string | number, method: string, params: JsonObject): Promise<void> {
    const call = this.#callOfMessage();
    const ask = call?.exchange.asked;
    if (!call || !ask || call.asking >= maxAsking) {
      const message = call ? "The client cannot be asked that." : "It cannot be told by which call this is asked.";
      this.#notify({ jsonrpc: "2.0", id, error: { code: methodNotFound, message } });
      return;
    }
    if (++call.asked > maxAskedBack) {
      call.fail(asksTooOften(this.#options.bounds.server));
      return;
    }
    call.asking++;
    call.prolong();
    try {
      this.#notify({ jsonrpc: "2.0", id, result: { ...(await ask(method, params)) } });
    } catch (error) {
      this.#notify({ jsonrpc: "2.0", id, error: rpcErrorOf(error) });
    } finally {
      call.asking--;
      call.prolong();
    }
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.notifications?.close();
    for (const call of [...this.#calls.values()]) call.fail(this.#lost());
  }

  #lost(): GatewayError {
    const { server } = this.#options.bounds;
    const message = `The MCP server "${server}" ended the connection without an answer.`;
    // Over HTTP, each request reports its own failure.
    const fault = this.#line.transport.hasPerRequestStream ? undefined : this.#line.fault();
    return fault ?? new GatewayError("upstream_error", message);
  }
}

/** Notifications that only the SDK's client handles. */
const own = new Set(["notifications/cancelled", "notifications/subscriptions/acknowledged"]);

function notReady(server: string): GatewayError {
  return new GatewayError("upstream_timeout", `The MCP server "${server}" did not become ready in time.`);
}

/**
 * Returns the options for negotiating the protocol revision. A pinned revision with sessions is offered first, and the
 * server may answer with another revision.
 */
function negotiationOf(only: ToolProtocolVersion | null | undefined, probe: { timeoutMs: number }) {
  if (!only) return { versionNegotiation: { mode: "auto" as const, probe } };
  if (!SUPPORTED_PROTOCOL_VERSIONS.includes(only)) return { versionNegotiation: { mode: { pin: only }, probe } };
  return {
    versionNegotiation: { mode: "legacy" as const },
    supportedProtocolVersions: [only, ...SUPPORTED_PROTOCOL_VERSIONS.filter((version) => version !== only)],
  };
}

/** Returns the error for a server with a pinned revision: the revision is not supported, or the connection failed. */
function revisionFault(error: unknown, refusal: unknown, options: ConnectionOptions): GatewayError {
  const { server } = options.bounds;
  const isFailed = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed;
  // If the connection failed, the SDK's error has a 5xx status or a cause. Otherwise it only says that the revision was
  // not offered.
  const isNotOffered = isFailed && !(error instanceof SdkHttpError) && error.cause === undefined;
  if (isNotOffered && concernsNoRevision(refusal)) return faultOf(refusal, server);
  return isNotOffered || deniesRevision(error) ? refusesRevision(options, { error }) : faultOf(error, server);
}

function deniesRevision(error: unknown): boolean {
  const fault = error instanceof SdkHttpError ? errorIn(refusalIn(error).text)?.error : error;
  return isObject(fault) && (fault["code"] === unsupportedRevision || fault["code"] === methodNotFound);
}

/** Reports whether the server would refuse any request: it is temporarily unavailable, or is no MCP server. */
function concernsNoRevision(refusal: unknown): boolean {
  if (!(refusal instanceof SdkHttpError)) return false;
  const { status, text } = refusalIn(refusal);
  return status === 408 || status === 425 || status === 429 || (status === 404 && errorIn(text) === undefined);
}

function refusesRevision(
  { bounds, protocolVersion }: ConnectionOptions,
  { agreed, error }: { agreed?: string | undefined; error?: unknown },
): GatewayError {
  const what = `The MCP server "${bounds.server}" does not speak revision ${protocolVersion}`;
  const instead = agreed === undefined ? "" : `: it answers in ${agreed}`;
  return new GatewayError("upstream_error", `${what}${instead}. Change protocol_version, or leave it out.`, {
    ...(error !== undefined && { detail: detailOf(error) }),
  });
}

function detailOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500);
}

function faultOf(error: unknown, server: string): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    return notReady(server);
  }
  const status = error instanceof SdkHttpError ? error.data.status : undefined;
  const what =
    status === undefined
      ? "could not be reached, or gave no answer of the protocol"
      : status === 401 || status === 403
        ? `refuses the credentials of this gateway with status ${status}`
        : `answered with status ${status}`;
  return new GatewayError("upstream_error", `The MCP server "${server}" ${what}.`, {
    detail: detailOf(error),
  });
}

function refusalIn({ data }: SdkHttpError): { status: number | undefined; text: string | undefined } {
  const text = data["text"];
  return { status: data.status, text: typeof text === "string" ? text : undefined };
}

/**
 * Reports whether a refusal may mean that the server has forgotten the session. MCP defines status 404 for this. Other
 * servers answer 400 with a body that does not name the request's id, or another 4xx that mentions the session.
 */
function forgetsSession(status: number | undefined, text: string | undefined, answeredId: unknown): boolean {
  if (status === undefined || status < 400 || status > 499) return false;
  if (status === 404 || status === 410) return true;
  return (status === 400 && typeof answeredId !== "string") || /session/i.test(text ?? "");
}

/** Returns the JSON-RPC error in the body of a refusal; undefined if the body has none. */
function errorIn(text: string | undefined): { id?: unknown; error: RpcError } | undefined {
  try {
    const message: unknown = text === undefined ? undefined : JSON.parse(text);
    if (isJSONRPCErrorResponse(message)) return message;
    // If a whole request is refused, the id is null, which the SDK's schema does not allow.
    const { error } = isObject(message) ? message : {};
    return isObject(error) && isRpcError(error) ? { error } : undefined;
  } catch {
    return undefined;
  }
}

interface RpcError {
  readonly code: number;
  readonly message: string;
}

function isRpcError(error: JsonObject): error is JsonObject & RpcError {
  return Number.isInteger(error["code"]) && typeof error["message"] === "string";
}

function rpcErrorOf(error: unknown): { code: number; message: string; data?: unknown } {
  if (!isObject(error) || !Number.isInteger(error["code"]) || typeof error["message"] !== "string") {
    // The server must not see details of internal errors.
    return { code: internalError, message: "The client could not answer." };
  }
  const { code, message, data } = error;
  return { code: Number(code), message, ...(data !== undefined && { data }) };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
