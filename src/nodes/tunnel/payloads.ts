// The JSON payloads of tunnel messages. They are validated, because the other end may have another version or be
// malicious.

import { type Capabilities, capabilityNames } from "../../domain/models/capabilities.ts";
import { chatContinuations, type EngineRequest } from "../../domain/models/engine.ts";
import { modelProcessStates } from "../../domain/models/model-process-state.ts";
import { maxNodeModels } from "../../domain/models/node.ts";
import { type Operation, operationPaths } from "../../domain/models/operation.ts";
import { priorities } from "../../domain/models/policies/priority.ts";
import { mcpServerName } from "../../domain/tools/mcp-server.ts";
import {
  maxOfferedMcpServers,
  type NodeToolRequest,
  type OfferedMcpServer,
  offeredKinds,
  passedToolHeaders,
  toolMethods,
} from "../../domain/tools/node-tools.ts";
import type { AnnouncedConcurrency, AnnouncedModel, NodeAnnouncement, NodeStatus } from "./contract.ts";
import { maxAnnouncementBytes, ProtocolError, parsePayload } from "./messages.ts";

/** The first message of each end. */
export interface Greeting {
  major: number;
  minor: number;
  /** Features beyond this protocol version that this end supports. A node lists the task operations that it knows. */
  features: readonly string[];
  /** Maximum bytes of a body that this end accepts before it grants more. */
  window: number;
}

export interface Hello extends Greeting {
  /** Random value: 32 bytes in base64url. */
  nonce: string;
  /** The gateway's own URL. */
  gateway: string;
}

export interface Proof extends Greeting {
  node: string;
  signature: string;
  /** Maximum open streams. */
  streams: number;
}

/** A request without its body; `length` is the body's length in bytes. */
export type RequestHead = (
  | Omit<EngineRequest, "body" | "memoryAccount">
  | Omit<NodeToolRequest, "body" | "memoryAccount">
) & {
  length: number;
};

export interface AnswerHead {
  status: number;
  headers: ReadonlyMap<string, string>;
}

export interface Failure {
  code: string;
  /** Message for the log. */
  message: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Headers of an answer that are sent to the gateway; others are dropped at the node. */
export const passedHeaders = ["content-type", "retry-after", "x-headrace-ignored", "mcp-session-id"] as const;
const maxHeaderCharacters = 1_024;

const window = { least: 1024, most: 16 * 1024 * 1024 };

export function parseHello(payload: Buffer): Hello {
  const fields = parsePayload(payload);
  return { ...greeting(fields), nonce: text(fields, "nonce", 64), gateway: text(fields, "gateway", 2048) };
}

export function parseProof(payload: Buffer): Proof {
  const fields = parsePayload(payload);
  return {
    ...greeting(fields),
    node: text(fields, "node", 128),
    signature: text(fields, "signature", 128),
    streams: whole(fields, "streams", 1, 1_000_000),
  };
}

export function parseRequestHead(payload: Buffer): RequestHead {
  const fields = parsePayload(payload);
  const { tool } = fields;
  if (isFields(tool)) return toolHead(fields, tool);
  const operation = text(fields, "operation", 32);
  if (!Object.hasOwn(operationPaths, operation)) throw new ProtocolError("a request has an unknown operation");
  return {
    requestId: text(fields, "id", 128),
    operation: operation as Operation,
    model: text(fields, "model", 1024),
    stream: fields["stream"] === true,
    width: whole(fields, "width", 1, 1_000_000),
    length: whole(fields, "length", 0, Number.MAX_SAFE_INTEGER),
    // Ignore an unknown priority, which a later version may have.
    priority: priorities.find((priority) => priority === fields["priority"]),
  };
}

function toolHead(fields: Fields, tool: Fields): RequestHead {
  const { method, headers } = tool;
  const known = toolMethods.find((one) => one === method);
  if (!known) throw new ProtocolError("a request for an MCP server has an unknown method");
  return {
    requestId: text(fields, "id", 128),
    server: text(tool, "server", 64),
    method: known,
    headers: isFields(headers) ? passedToolHeaders(headers) : {},
    length: whole(fields, "length", 0, Number.MAX_SAFE_INTEGER),
  };
}

export function requestPayload(head: RequestHead): string {
  const { requestId, length } = head;
  if ("server" in head) {
    const { server, method, headers } = head;
    return JSON.stringify({ id: requestId, tool: { server, method, headers }, length });
  }
  const { operation, model, stream, width, priority } = head;
  return JSON.stringify({ id: requestId, operation, model, stream, width, length, priority });
}

export function parseAnswerHead(payload: Buffer): AnswerHead {
  const fields = parsePayload(payload);
  const headers = new Map<string, string>();
  const given = fields["headers"];
  for (const name of passedHeaders) {
    const value = isFields(given) ? given[name] : undefined;
    if (typeof value === "string" && value.length <= maxHeaderCharacters && /^[\t -~]*$/.test(value))
      headers.set(name, value);
  }
  return { status: whole(fields, "status", 200, 599), headers };
}

export function answerPayload(status: number, headers: { get(name: string): string | null }): string {
  const passed: Record<string, string> = {};
  for (const name of passedHeaders) {
    const value = headers.get(name);
    if (value !== null) passed[name] = value.slice(0, maxHeaderCharacters);
  }
  return JSON.stringify({ status, headers: passed });
}

export function parseFailure(payload: Buffer): Failure {
  const fields = parsePayload(payload);
  const message = fields["message"];
  return { code: text(fields, "code", 64), message: typeof message === "string" ? plain(message, 500) : "" };
}

/** Parses an announcement. Leaves out invalid members, models without an id, and models beyond `maxNodeModels`. */
export function parseAnnouncement(payload: Buffer): NodeAnnouncement {
  const fields = parsePayload(payload, maxAnnouncementBytes);
  const given = fields["models"];
  if (!Array.isArray(given)) throw new ProtocolError("an announcement has no list of models");
  const models = new Map<string, AnnouncedModel>();
  for (const entry of given as unknown[]) {
    const model = isFields(entry) ? modelOf(entry) : undefined;
    if (model && models.size < maxNodeModels) models.set(model.id, model);
  }
  const load = fields["load"];
  const toolServers = offeredOf(fields["toolServers"]);
  return {
    version: plain(text(fields, "version", 64), 64),
    models: [...models.values()],
    ...(toolServers.length > 0 ? { toolServers } : {}),
    ...(isFields(load)
      ? { load: { active: whole(load, "active", 0, 1e9), waiting: whole(load, "waiting", 0, 1e9) } }
      : {}),
  };
}

export function parseStatus(payload: Buffer): NodeStatus {
  const fields = parsePayload(payload, maxAnnouncementBytes);
  const given = fields["approvedModels"];
  const approved = Array.isArray(given) ? given.filter((id) => typeof id === "string") : [];
  return { name: plain(text(fields, "name", 256), 256), approvedModels: approved.slice(0, maxNodeModels) };
}

/** Returns the valid MCP servers in an announcement. */
function offeredOf(given: unknown): OfferedMcpServer[] {
  const servers = new Map<string, OfferedMcpServer>();
  for (const entry of Array.isArray(given) ? (given as unknown[]) : []) {
    if (!isFields(entry) || servers.size >= maxOfferedMcpServers) continue;
    const { name, title } = entry;
    const kind = offeredKinds.find((one) => one === entry["kind"]);
    if (typeof name !== "string" || !mcpServerName.test(name) || !kind) continue;
    servers.set(name, { name, title: typeof title === "string" && title !== "" ? plain(title, 128) : null, kind });
  }
  return [...servers.values()];
}

function modelOf(fields: Fields): AnnouncedModel | undefined {
  const { id, ownedBy, created, capabilities, context, shutdownAt, concurrency } = fields;
  const process = modelProcessStates.find((state) => state === fields["process"]);
  const continues = chatContinuations.find((how) => how === fields["continues"]);
  if (typeof id !== "string" || !/^[^\p{Cc}]{1,256}$/u.test(id)) return undefined;
  return {
    id,
    ...(typeof ownedBy === "string" && ownedBy !== "" ? { ownedBy: plain(ownedBy, 256) } : {}),
    ...(isCount(created) ? { created } : {}),
    ...(isCount(context) ? { context } : {}),
    ...(isCount(shutdownAt) ? { shutdownAt } : {}),
    ...(isFields(capabilities) ? { capabilities: truths(capabilities) } : {}),
    ...(isFields(concurrency) ? { concurrency: counts(concurrency) } : {}),
    // Unknown values, which a later version may have, are left out.
    ...(process === undefined ? {} : { process }),
    ...(continues === undefined ? {} : { continues }),
  };
}

function truths(fields: Fields): Capabilities {
  const names = capabilityNames.filter((name) => typeof fields[name] === "boolean");
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}

function counts(fields: Fields): AnnouncedConcurrency {
  const names = Object.keys(operationPaths).filter((name) => isCount(fields[name]) && fields[name] <= 1e6);
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}

function greeting(fields: Fields): Greeting {
  const features = fields["features"];
  return {
    major: whole(fields, "major", 0, 1_000_000),
    minor: whole(fields, "minor", 0, 1_000_000),
    features: Array.isArray(features) ? features.filter((name) => typeof name === "string").slice(0, 64) : [],
    window: whole(fields, "window", window.least, window.most),
  };
}

function text(fields: Fields, name: string, maxLength: number): string {
  const value = fields[name];
  if (typeof value === "string" && value !== "" && value.length <= maxLength) return value;
  throw new ProtocolError(`\`${name}\` must be text of 1 to ${maxLength} characters`);
}

function whole(fields: Fields, name: string, least: number, most: number): number {
  const value = fields[name];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) return value;
  throw new ProtocolError(`\`${name}\` must be a whole number from ${least} to ${most}`);
}

/** Returns the text without line breaks and other control characters, for the log. */
function plain(value: string, maxLength: number): string {
  return value.slice(0, maxLength).replace(/\p{Cc}+/gu, " ");
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
