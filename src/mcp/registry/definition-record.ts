// The approval record of one tool or prompt: compares new definitions with it, and applies operators' decisions.
import type { DefinitionState, ToolDefinition } from "../../domain/tools/tool-definition.ts";

type Json = Readonly<Record<string, unknown>>;

/** A definition as the server currently reports it. */
export interface Said extends Pick<ToolDefinition, "server" | "kind" | "name" | "seen"> {
  /** True if the server's definitions need no approval. */
  readonly isApproved: boolean;
  /** True if the server may report different definitions to different users. Several can then be approved. */
  readonly isPersonal: boolean;
  readonly nowSeconds: number;
}

export interface Judged {
  /** State of the reported definition, which may differ from the one in the record. */
  readonly state: DefinitionState;
  /** The new record; absent if the record does not change. */
  readonly record?: ToolDefinition;
}

/** Members of `_meta` that belong to one message and not to the definition (MCP, "_meta"; W3C Trace Context). */
const messageMeta = ["progressToken", "traceparent", "tracestate", "baggage"];
/** Maximum characters of a text in `icons` and `_meta`. A longer one, such as a picture, is recorded as a digest. */
const maxMetaText = 4_096;
/** Maximum approved and maximum refused definitions for other users; the latest ones are kept. */
const maxOthers = 8;
/** Seconds for which a user's undecided definition stays in the record before another user's definition replaces it. */
const turnSeconds = 3_600;

/**
 * Returns a definition as canonical text, which operators approve. Unknown members are included, because clients may
 * use them. `origin` binds the approval to one machine.
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

/** Compares a reported definition with its record. `before` is undefined if there is no record yet. */
export function judge(before: ToolDefinition | undefined, said: Said): Judged {
  const { seen, isApproved, nowSeconds: seenAt } = said;
  if (before?.seen === seen && !(isApproved && isWaiting(before))) return { state: before.state };
  const digest = digestOf(seen);
  const known = before && judgedBefore(before, digest, said);
  if (known) return { state: known };
  const of = (record: ToolDefinition): Judged => ({ state: record.state, record });
  if (!before) return of(firstRecord(said, digest));
  // If definitions need no approval, a refusal applies to all later definitions of the tool.
  if (isApproved && before.state === "refused") return of({ ...before, seen, seenAt });
  if (isApproved) return of({ ...before, state: "approved", approvedDigest: digest, approved: seen, seen, seenAt });
  // A tool that returns to its approved definition needs no new approval.
  if (before.approvedDigest === digest && before.state !== "refused")
    return of({ ...before, state: "approved", seen, seenAt });
  return of({ ...before, state: before.approvedDigest === null ? "pending" : "changed", seen, seenAt });
}

/** Returns the record after an operator's decision on the latest definition. */
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
  // Only this definition is refused; those of other users stay approved.
  if (isPersonal && isWaiting(before) && approved !== null) {
    return { ...before, ...by, state: "approved", seen: approved, seenAt: by.decidedAt ?? before.seenAt, refused };
  }
  // If this definition was approved before, remove that approval, so that it does not become valid again.
  const none = (isPersonal || approvedDigest === digest) && { approvedDigest: null, approved: null };
  return { ...before, ...by, ...none, state, approvedOthers: [], refused };
}

/** Returns a record that says: the server had no tool or prompt of this kind. */
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
 * Returns the state of a definition that does not replace the recorded one; undefined if it replaces the recorded one.
 * An earlier decision about the definition comes first. If users may get different definitions, a definition does not
 * replace the recorded one within an hour in two cases. If no approval is needed and the recorded one is decided, the
 * recorded state is returned. If approval is needed and the recorded one awaits it, `pending` or `changed` is returned.
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

/** Returns JSON text with sorted members, so that equal values give equal texts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
