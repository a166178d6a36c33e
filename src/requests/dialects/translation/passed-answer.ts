// A whole answer of a model server that uses the client's API format. The server's bytes stay, except for members that
// the gateway sets.
import { type ByteSpan, type Bytes, type Patch, patched, withoutMark } from "../../../base/bytes/byte-span.ts";
import { editObject, scanObject } from "../../../base/text/json-text.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { Answer, AnswerNames, AskedRequest, Serving } from "../answer.ts";
import { type AnswerMember, type ScannedAnswer, scanAnswer } from "../answer-scan.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { ConversationFormat } from "../conversation/format.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { isObject } from "../conversation/said.ts";
import { needsComparison } from "../least-usage.ts";
import { malformed } from "../malformed.ts";
import { modelNameJson } from "../model-names.ts";
import { CountedReply, reportedOf, usageOf } from "./counted-reply.ts";
import { parsedAnswer } from "./engine-answer.ts";
import { type RepairHead, repairHead } from "./repair-head.ts";
import { isStream, streamedAnswer, wholeUsage } from "./translated-answer.ts";

const noNames: CallNames = new Map();

/** The functions and values of a format that are needed to forward whole answers from servers of the same format. */
export interface PassedWhole {
  readonly format: ConversationFormat;
  /** Name of the answer's member that contains its content as a list. */
  readonly list: AnswerMember;
  /** Reports whether this is a complete answer in this format. Most answers are. */
  isUsual(found: ScannedAnswer): boolean;
  /**
   * Returns the answer, with the members added that the server left out. If none is missing, returns the same object.
   */
  strict(answer: Readonly<Record<string, unknown>>, head: RepairHead): Readonly<Record<string, unknown>>;
  /**
   * The members that a server left out of an otherwise complete answer, and their values. Undefined if a format has no
   * such members.
   */
  readonly missing?: {
    names(found: ScannedAnswer): readonly AnswerMember[];
    values(head: RepairHead): Readonly<Record<string, unknown>>;
  };
  /** Returns the usage that the answer reports, or undefined if the answer must be parsed to find the usage. */
  usage(found: ScannedAnswer): ReplyUsage | undefined;
}

/**
 * Reads a whole answer. If the server streamed although the request did not ask for it, joins the events. Throws
 * `upstream_error` if the answer is unusable.
 */
export function passedAnswer(
  whole: PassedWhole,
  all: ByteSpan,
  request: AskedRequest,
  serving: Serving,
  names: AnswerNames,
): Answer {
  const bytes = withoutMark(all);
  if (isStream(bytes)) return streamedAnswer(bytes, request, serving, names, whole.format);
  serving.trace?.answer(bytes);
  return plainAnswer(whole, bytes, request, serving, names) ?? readAnswer(whole, bytes, request, serving, names);
}

class PlainAnswer implements Answer {
  readonly body: Bytes;
  readonly usage: TokenUsage;

  constructor(body: Bytes, usage: TokenUsage) {
    this.body = body;
    this.usage = usage;
  }

  get text(): string {
    return this.body.solid.text;
  }
}

const [quote, letterF] = [0x22, 0x66];
const nothing: readonly never[] = [];
const notKept = Buffer.from('"store":false,');

/**
 * Returns a complete answer, in which only the model's name, missing members and a missing `store: false` change.
 * Returns undefined for any other answer.
 */
function plainAnswer(
  { list, isUsual, usage: usageIn, missing }: PassedWhole,
  bytes: ByteSpan,
  request: AskedRequest,
  { model: { id: model, context } }: Serving,
  names: AnswerNames,
): Answer | undefined {
  if (names.ownId) return undefined;
  const found = scanAnswer(bytes);
  if (!found || !isUsual(found) || !found.hasObjects(list) || found.firstByteOf("id") !== quote) return undefined;
  const reported = usageIn(found);
  const usage = reported && reportedOf(reported, true);
  if (!usage || needsComparison(usage, found.endOf(list) - found.startOf(list), request, context)) return undefined;
  const patches: Patch[] = [];
  const { members } = names;
  for (const name in members) {
    const own = members[name];
    const first = found.firstByteOf(name as AnswerMember);
    if (own === null && found.isNothing(name as AnswerMember)) continue;
    if (own !== false || name !== "store" || (first !== 0 && first !== letterF)) return undefined;
    if (first === 0) patches.push({ from: found.within, to: found.within, insert: notKept });
  }
  if (!found.isText("model", model)) {
    const from = found.startOf("model");
    if (from === 0) return undefined;
    patches.push({ from, to: found.endOf("model"), insert: modelNameJson(model) });
  }
  const missingNames = missing?.names(found) ?? nothing;
  if (missing && missingNames.length > 0) {
    const counted = () => usageOf(usage, reported);
    const values = missing.values(repairHead(request, names, () => model, counted));
    const isOwn = (name: string) => members?.[name] !== undefined && members[name] !== null;
    patches.push(
      ...missingPatches(
        found,
        missingNames.filter((name) => !isOwn(name)),
        values,
      ),
    );
    patches.sort((one, other) => one.from - other.from);
  }
  return new PlainAnswer(patched(bytes, patches), usage);
}

/**
 * Returns patches that set these members. A null member is replaced in place. A missing member is put before all
 * others.
 */
function missingPatches(
  found: ScannedAnswer,
  names: readonly AnswerMember[],
  values: Readonly<Record<string, unknown>>,
): Patch[] {
  const patches: Patch[] = [];
  let added = "";
  for (const name of names) {
    const value = JSON.stringify(values[name]);
    const from = found.startOf(name);
    if (from === 0) added += `"${name}":${value},`;
    else patches.push({ from, to: found.endOf(name), insert: Buffer.from(value) });
  }
  const { within } = found;
  return added === "" ? patches : [{ from: within, to: within, insert: Buffer.from(added) }, ...patches];
}

/** Parses an answer of any kind, and returns it in the client's form. */
function readAnswer(
  { format, strict }: PassedWhole,
  bytes: ByteSpan,
  request: AskedRequest,
  serving: Serving,
  names: AnswerNames,
): Answer {
  const answer = parsedAnswer(bytes.text, serving);
  const reply = new CountedReply();
  format.reader(noNames, serving.deployment.engine).whole(answer, reply);
  const usage = wholeUsage(reply, request, serving);
  const counted = () => usageOf(usage, reply.reportedUsage);
  const head = repairHead(request, names, () => serving.model.id, counted);
  const edits = ownMembers(answer, serving, names);
  for (const [name, value] of Object.entries(strict(answer, head))) {
    if (value !== answer[name]) edits[name] ??= JSON.stringify(value);
  }
  const { text } = bytes;
  const body = Object.keys(edits).length > 0 ? edited(text, edits) : bytes;
  return { body, text: typeof body === "string" ? body : text, usage };
}

/**
 * Returns, as JSON, the members that the gateway sets: the public model id, the gateway's id if clients can retrieve
 * the answer by it, and others. A member is left out if the server sets it to the same value. A member with the value
 * null is left out if the server omits it.
 */
export function ownMembers(
  answer: Readonly<Record<string, unknown>>,
  serving: Serving | undefined,
  names: AnswerNames,
): Record<string, string> {
  const edits: Record<string, string> = {};
  const model = serving?.model.id;
  if (model !== undefined && answer["model"] !== model) edits["model"] = JSON.stringify(model);
  if (names.ownId || typeof answer["id"] !== "string") edits["id"] = JSON.stringify(names.id);
  for (const [name, own] of Object.entries(names.members ?? {})) {
    const said = answer[name] ?? null;
    if (own !== said && !(isObject(own) && JSON.stringify(own) === JSON.stringify(said))) {
      edits[name] = JSON.stringify(own);
    }
  }
  return edits;
}

export function edited(text: string, edits: Readonly<Record<string, string>>): string {
  try {
    return editObject(text, scanObject(text), edits);
  } catch {
    // The caught error may quote the answer, so the thrown error does not contain it.
    throw malformed("JSON that cannot be edited: a field appears twice, or there is too much of it");
  }
}
