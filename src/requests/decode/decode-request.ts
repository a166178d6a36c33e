// Decodes the body of an inference request in one scan over its bytes. A body that the scan cannot handle is parsed
// completely.
import { isAscii, isUtf8 } from "node:buffer";
import { ByteSpan, withoutMark } from "../../base/bytes/byte-span.ts";
import { fieldError } from "../../base/errors.ts";
import { load } from "../../base/text/json-bytes.ts";
import { bodyMass } from "../../base/text/json-text.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { templateArguments } from "../../domain/models/ruling-members.ts";
import { DecodedRequest } from "../decoded-request.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { dialects } from "../dialects/dialects.ts";
import { neutralMembers } from "../dialects/neutral-members.ts";
import { type BodyFacts, factsOf } from "../facts.ts";
import { notes } from "./body-notes.ts";
import { compileRule, type MemberUse, type MemberUses } from "./compile-rule.ts";
import { FieldNames, namesOf } from "./field-names.ts";
import { type BodyLimits, type JsonBody, parseBody } from "./parse-body.ts";
import { RefusedMembers } from "./refused-members.ts";
import { scanBody } from "./request-scan.ts";
import type { ValueRule } from "./rule.ts";
import { requireFit, validate } from "./validation.ts";

export interface RequestLimits extends BodyLimits {
  messages: number;
  /** Names of members that no request may have. Undefined if all members are allowed. */
  refusedMembers?: readonly string[];
}

export function decodeRequest(operation: Operation, sent: ByteSpan, limits: RequestLimits): DecodedRequest {
  const bytes = withoutMark(sent);
  const dialect = dialects[operation];
  // A task is always parsed completely, because tokens and units are counted from the whole body.
  const facts = dialect.task ? undefined : marksIn(dialect, bytes, limits);
  const request = facts ? new DecodedRequest(dialect, bytes, facts) : parsedRequest(operation, sent, limits);
  requireAllowed(request, limits, facts);
  return request;
}

/**
 * The compiled checks for refused members, by the list of these members. A list changes only with the configuration.
 */
const refusals = new WeakMap<readonly string[], RefusedMembers>();

function requireAllowed(request: DecodedRequest, { refusedMembers: names }: RequestLimits, facts?: BodyFacts): void {
  if (!names) return;
  let refused = refusals.get(names);
  if (!refused) {
    refused = new RefusedMembers(names, new Set(decisiveNames));
    refusals.set(names, refused);
  }
  refused.require(request, facts?.templateStart ?? 0, facts?.templateEnd ?? 0);
}

/** Returns the same result as `decodeRequest`, but always parses the body completely. Throws a GatewayError. */
export function parsedRequest(operation: Operation, sent: ByteSpan, limits: RequestLimits): DecodedRequest {
  return checkedRequest(operation, sent, limits, ruleOf(dialects[operation]));
}

/** Decodes a request to count tokens, which needs no token limit. Throws a GatewayError. */
export function decodeCountRequest(operation: Operation, sent: ByteSpan, limits: RequestLimits): DecodedRequest {
  const dialect = dialects[operation];
  const { countSchema } = dialect;
  if (countSchema) countRules[operation] ??= compileRule(countSchema, bodyUse(dialect));
  const request = checkedRequest(operation, sent, limits, countRules[operation] ?? ruleOf(dialect));
  requireAllowed(request, limits);
  return request;
}

function checkedRequest(operation: Operation, sent: ByteSpan, limits: RequestLimits, rule: ValueRule): DecodedRequest {
  const dialect = dialects[operation];
  const parsed = rewritten(parseBody(sent, limits), dialect, limits);
  const { bytes, body } = parsed;
  const { messages } = body;
  if (Array.isArray(messages) && messages.length > limits.messages) {
    const got = `an array of ${messages.length} items`;
    throw fieldError("messages", `must be an array of 1 to ${limits.messages} items (got ${got}).`);
  }
  fieldNames().require(rule, body);
  requireFit(rule, body);
  dialect.task?.check(body);
  return new DecodedRequest(dialect, bytes, factsOf(dialect, body), parsed);
}

/**
 * Rewrites the body if its dialect requires that. From then on, the gateway and the model server read only the
 * rewritten body.
 */
function rewritten(parsed: JsonBody, dialect: Dialect, limits: RequestLimits): JsonBody {
  const body = dialect.rewritten?.(parsed.body, validate);
  return body === undefined ? parsed : parseBody(ByteSpan.of(JSON.stringify(body)), limits);
}

/**
 * Uses of members by the gateway in all operations. A body may have these members even if its schema does not list
 * them.
 */
const commonUses: MemberUses = {
  model: { note: notes.model },
  stream: { note: notes.stream },
  stream_options: { note: notes.streamOptions, decisive: ["include_usage"] },
  n: { note: notes.choices },
  best_of: { note: notes.bestOf },
  store: { note: notes.store },
  stop: { note: notes.stop },
  user: { note: notes.user },
  safety_identifier: { note: notes.safetyIdentifier },
  metadata: { note: notes.metadata },
  prompt_cache_key: { note: notes.promptCacheKey },
  cache_salt: { note: notes.cacheSalt },
  priority: { note: notes.priority },
  background: { note: notes.background },
  previous_response_id: { note: notes.previous },
  conversation: { note: notes.conversation },
  [templateArguments]: { note: notes.templateArguments },
};
/** Types of tools that agents such as Codex send. A tool of another type may call other models. */
const toolTypes = ["function", "custom", "namespace", "web_search", "local_shell", "shell", "apply_patch"];
/** Uses of members that the model reads in addition to the prompt. */
const jsonUses: MemberUses = {
  // A tool whose `name` is next to its `type` has the form of another API. The dialect rewrites such a tool.
  tools: { as: "json", members: { type: { only: ["function"] }, name: { as: "unreadable" } } },
  functions: { as: "json" },
  response_format: { as: "json" },
  suffix: { as: "json" },
  documents: { as: "json" },
};
/** Types of input items that the byte scan accepts. An item that refers to another item requires a complete parse. */
const itemTypes = [
  ...["message", "reasoning", "compaction", "function_call", "function_call_output"],
  ...["custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output"],
];
/** Uses of the objects inside members whose tokens are counted. */
const shownWithin: Readonly<Record<string, MemberUse>> = {
  tools: { members: { type: { only: toolTypes } } },
  input: { members: { type: { only: itemTypes, identifies: true }, role: { identifies: true } } },
};
/** Members that are known, but that the gateway does not use. Any unknown name sets `BodyNotes.hasOthers`. */
const neutralUses: MemberUses = Object.fromEntries([...neutralMembers].map((name) => [name, {}]));
/**
 * Members that are token limits in any API format. In another format, a member with this name may be a setting of the
 * model server.
 */
const otherLimits: MemberUses = Object.fromEntries(
  Object.values(dialects).flatMap(({ limitMembers }) =>
    limitMembers.flatMap((name) => (name === undefined ? [] : [[name, { note: notes.otherLimit }]])),
  ),
);
const allUses: MemberUses = Object.assign({}, ...Object.values(dialects).map(usesOf));
/** Names of members that decide the cost of a request or how it is handled. */
const decisiveNames = Object.keys(allUses).filter((name) => name !== templateArguments);

function bodyUse(dialect: Dialect): MemberUse {
  return { members: { ...neutralUses, ...usesOf(dialect) }, decisive: decisiveNames };
}

function usesOf({ promptMember, shownMembers, limitMembers: [limit, olderLimit] }: Dialect): MemberUses {
  const limits: MemberUses = {
    ...otherLimits,
    [limit]: { note: notes.newerLimit },
    ...(olderLimit === undefined ? {} : { [olderLimit]: { note: notes.olderLimit } }),
  };
  if (!shownMembers) {
    return { ...commonUses, ...jsonUses, ...limits, [promptMember]: { as: "prompt", note: notes.prompt } };
  }
  const shown = shownMembers.map((name) => [name, { as: "shown", ...shownWithin[name] }] as const);
  const uses: MemberUses = { ...commonUses, ...limits, ...Object.fromEntries(shown) };
  return { ...uses, [promptMember]: { ...uses[promptMember], note: notes.prompt } };
}

/** Collected when first needed, so that the program starts quickly. */
let names: FieldNames | undefined;

/** Returns the names of members that any endpoint reads. All endpoints share these names. */
function fieldNames(): FieldNames {
  names ??= new FieldNames(
    [...Object.values(dialects).flatMap((dialect) => [...namesOf(ruleOf(dialect))]), ...decisiveNames],
    [
      ["", decisiveNames],
      ...Object.entries(allUses).flatMap(([name, { decisive }]) => (decisive ? [[name, decisive] as const] : [])),
    ],
  );
  return names;
}

const rules: Partial<Record<Operation, ValueRule>> = {};
const countRules: Partial<Record<Operation, ValueRule>> = {};

function ruleOf(dialect: Dialect): ValueRule {
  rules[dialect.operation] ??= compileRule(dialect.schema, bodyUse(dialect));
  return rules[dialect.operation] as ValueRule;
}

/** Returns the rule for a body member, or undefined if the name is unknown. */
export function memberRuleOf(operation: Operation, name: string): ValueRule | undefined {
  return ruleOf(dialects[operation]).object?.members.get(name)?.value;
}

/**
 * Scans the body and returns its facts. Returns undefined if the body must be parsed completely. The facts are valid
 * until the next scan.
 */
function marksIn(dialect: Dialect, bytes: ByteSpan, limits: RequestLimits): BodyFacts | undefined {
  if (!load(bytes) || !isText(bytes)) return undefined;
  const facts = scanBody(ruleOf(dialect), bytes.length, limits.depth, bodyMass);
  if (facts !== undefined && dialect.isConversation && facts.promptItems > limits.messages) return undefined;
  return facts;
}

/**
 * Reports whether the body is UTF-8. If the whole buffer is ASCII, which is common because the head is ASCII too, no
 * view of the body needs to be created.
 */
function isText(bytes: ByteSpan): boolean {
  return (bytes.end === bytes.buffer.length && isAscii(bytes.buffer)) || isUtf8(bytes.view);
}
