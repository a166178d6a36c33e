// The record of one tool or prompt: judges new definitions against it, and changes it by decisions.
import type { DefinitionState, ToolDefinition } from "../../domain/tools/tool-definition.ts";

type Json = Readonly<Record<string, unknown>>;

/** The definition that a server currently reports. */
export interface Said extends Pick<ToolDefinition, "server" | "kind" | "name" | "seen"> {
  /** True if the definition needs no approval. */
  readonly isApproved: boolean;
  /** True if the server may report different definitions to different users, of which several can be approved. */
  readonly isPersonal: boolean;
  readonly nowSeconds: number;
}

export interface Judged {
  /** State of the reported definition. The record may contain a definition that the server reports to other users. */
  readonly state: DefinitionState;
  /** The new record; absent if the record does not change. */
  readonly record?: ToolDefinition;
}

/**
 * Members of `_meta` that describe one message and not the tool (MCP, "_meta"; W3C Trace Context). They differ in every
 * message.
 */
const messageMeta = ["progressToken", "traceparent", "tracestate", "baggage"];
/** Longer texts of `icons` and `_meta`, such as pictures in data URIs, are recorded as their digest. */
const maxMetaText = 4_096;
/** Maximum number of definitions for other users, both approved and refused. The latest ones are kept. */
const maxOthers = 8;
/** Seconds for which one user's undecided definition stays on record before another user's definition replaces it. */
const turnSeconds = 3_600;

/**
 * Returns the whole definition of a tool or prompt as canonical text, which is compared and approved. Unknown members
 * are included, because a client may act on them, as MCP Apps opens the page that `_meta` names. `origin` ties an
 * approval to one machine.
 */
export function seenOf(item: Json, origin: string): string {
  const { icons, _meta, origin: ownOrigin, ...rest } = item;
  return canonical({
    ...rest,
    ...(icons !== undefined && { icons: withDigests(icons) }),
    ...(_meta !== undefined && { _meta: withDigests(withoutMessageMeta(_meta)) }),
    ...(ownOrigin !== undefined && { "origin (of the tool)": ownOrigin }),
    origin,
  });
}

function withoutMessageMeta(meta: unknown): unknown {
  if (typeof meta !== "object" || meta === null || Array.isArray(meta)) return meta;
  return Object.fromEntries(Object.entries(meta).filter(([name]) => !messageMeta.includes(name)));
}

function withDigests(value: unknown): unknown {
  const text = JSON.stringify(value, (_, member: unknown) =>
    typeof member === "string" && member.length > maxMetaText
      ? `${member.slice(0, 100)}… (${member.length} characters, SHA-256 ${digestOf(member)})`
      : member,
  );
  return JSON.parse(text) as unknown;
}

export function digestOf(seen: string): string {
  return new Bun.CryptoHasher("sha256").update(seen).digest("hex");
}

/** Judges a definition against `before`, the record; undefined if there is no record. */
export function judge(before: ToolDefinition | undefined, said: Said): Judged {
  const { seen, isApproved, nowSeconds: seenAt } = said;
  if (before?.seen === seen && !(isApproved && isWaiting(before))) return { state: before.state };
  const digest = digestOf(seen);
  const known = before && judgedBefore(before, digest, said);
  if (known) return { state: known };
  const of = (record: ToolDefinition): Judged => ({ state: record.state, record });
  if (!before) return of(firstRecord(said, digest));
  // With approval `all`, a refusal applies to every later definition of the tool, because operators do not decide on
  // them.
  if (isApproved && before.state === "refused") return of({ ...before, seen, seenAt });
  if (isApproved) return of({ ...before, state: "approved", approvedDigest: digest, approved: seen, seen, seenAt });
  // A tool that returns to its approved definition is approved again.
  if (before.approvedDigest === digest && before.state !== "refused")
    return of({ ...before, state: "approved", seen, seenAt });
  return of({ ...before, state: before.approvedDigest === null ? "pending" : "changed", seen, seenAt });
}

/** Returns the record after a decision about the latest definition. */
export function decided(
  before: ToolDefinition,
  {
    state,
    isPersonal,
    ...by
  }: Pick<ToolDefinition, "decidedAt" | "decidedBy"> & {
    state: "approved" | "refused";
    isPersonal: boolean;
  },
): ToolDefinition {
  const { seen, approved, approvedDigest } = before;
  const digest = digestOf(seen);
  if (state === "approved") {
    const former = isPersonal && approvedDigest !== null && approvedDigest !== digest ? [approvedDigest] : [];
    const others = latest([...former, ...before.approvedOthers.filter((one) => one !== digest)]);
    const refused = before.refused.filter((one) => one !== digest);
    return { ...before, ...by, state, approvedDigest: digest, approved: seen, approvedOthers: others, refused };
  }
  const refused = isPersonal ? latest([digest, ...before.refused]) : [];
  // Definitions for other users stay approved; only this definition is refused.
  if (isPersonal && isWaiting(before) && approved !== null) {
    return { ...before, ...by, state: "approved", seen: approved, seenAt: by.decidedAt ?? before.seenAt, refused };
  }
  // A refused definition may have been approved before. The approval is removed, so that the same definition does not
  // get it back later.
  const none = (isPersonal || approvedDigest === digest) && { approvedDigest: null, approved: null };
  return { ...before, ...by, ...none, state, approvedOthers: [], refused };
}

/** Returns the record of a server that has no item of a kind. */
export function nothingSeen(of: Pick<ToolDefinition, "server" | "kind" | "name" | "seenAt">): ToolDefinition {
  return { ...of, ...undecided, state: "approved", approvedDigest: null, approved: null, seen: "{}" };
}

const undecided = { approvedOthers: [], refused: [], decidedAt: null, decidedBy: null } as const;

function firstRecord({ server, kind, name, seen, isApproved, nowSeconds }: Said, digest: string): ToolDefinition {
  const approved = isApproved ? { approvedDigest: digest, approved: seen } : { approvedDigest: null, approved: null };
  const state = isApproved ? "approved" : "pending";
  return { server, kind, name, state, ...approved, seen, seenAt: nowSeconds, ...undecided };
}

/**
 * Returns the state of a definition that does not replace the one on record: the earlier decision about it, or, while a
 * decided definition on record has its turn, that one's state if no approval is needed; while an undecided one has its
 * turn, undecided if approval is needed. Undefined if the definition replaces the one on record.
 */
function judgedBefore(
  before: ToolDefinition,
  digest: string,
  { isApproved, isPersonal, nowSeconds }: Said,
): DefinitionState | undefined {
  if ((isPersonal || isApproved) && before.refused.includes(digest)) return "refused";
  if (!isPersonal) return undefined;
  const { state, approvedDigest, approvedOthers, seenAt } = before;
  if (state !== "refused" && (approvedDigest === digest || approvedOthers.includes(digest))) return "approved";
  const hasTurn = nowSeconds - seenAt < turnSeconds;
  if (isApproved) return hasTurn && !isWaiting(before) ? state : undefined;
  if (!hasTurn || !isWaiting(before)) return undefined;
  return approvedDigest === null ? "pending" : "changed";
}

function isWaiting({ state }: ToolDefinition): boolean {
  return state === "pending" || state === "changed";
}

function latest(digests: readonly string[]): readonly string[] {
  return [...new Set(digests)].slice(0, maxOthers);
}

/** Returns the same text for equal JSON values, whatever the order of their members. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
