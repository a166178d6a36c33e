// What is on record of one tool or prompt: how what its server says now is judged by it, and what a decision makes of it.
import type { DefinitionState, ToolDefinition } from "../../domain/tools/tool-definition.ts";

type Json = Readonly<Record<string, unknown>>;

/** What a server says of one now. */
export interface Said extends Pick<ToolDefinition, "server" | "kind" | "name" | "seen"> {
  /** Whether it needs nobody's approval. */
  readonly isApproved: boolean;
  /** Whether the server may say something else to each person, of which several are approved at a time. */
  readonly isPersonal: boolean;
  readonly nowSeconds: number;
}

export interface Judged {
  /** That of what is said now; what is on record may be of something else that the server says to others. */
  readonly state: DefinitionState;
  /** What is on record from now on; left out: nothing new. */
  readonly record?: ToolDefinition;
}

/** Members of `_meta` that describe one message and not the tool (MCP, "_meta"; W3C Trace Context): they differ each time. */
const messageMeta = ["progressToken", "traceparent", "tracestate", "baggage"];
/** Longer texts of `icons` and `_meta`, such as pictures in data URIs, stand on record as their digest. */
const maxMetaText = 4_096;
/** Texts that a server says to others: those approved, and those refused. Where there are more, the latest hold. */
const maxOthers = 8;
/** What one person is told stands on record for so long before what another one is told takes its place without a decision. */
const turnSeconds = 3_600;

/**
 * Returns all that a server says of a tool or prompt, as the text that is compared and approved. Members that the gateway
 * does not know are part of it: a client may act on them, as MCP Apps opens the page that `_meta` names. `origin`: an
 * approval for one machine does not hold for another machine that says the same.
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

/** `before`: what is on record; undefined: nothing. */
export function judge(before: ToolDefinition | undefined, said: Said): Judged {
  const { seen, isApproved, nowSeconds: seenAt } = said;
  if (before?.seen === seen && !(isApproved && isWaiting(before))) return { state: before.state };
  const digest = digestOf(seen);
  const known = before && judgedBefore(before, digest, said);
  if (known) return { state: known };
  const of = (record: ToolDefinition): Judged => ({ state: record.state, record });
  if (!before) return of(firstRecord(said, digest));
  // Where all is offered, what is refused is so whatever it says: nobody would decide about it again.
  if (isApproved && before.state === "refused") return of({ ...before, seen, seenAt });
  if (isApproved) return of({ ...before, state: "approved", approvedDigest: digest, approved: seen, seen, seenAt });
  // A server that goes back to what was approved is as it was.
  if (before.approvedDigest === digest && before.state !== "refused")
    return of({ ...before, state: "approved", seen, seenAt });
  return of({ ...before, state: before.approvedDigest === null ? "pending" : "changed", seen, seenAt });
}

/** What `before` becomes with a decision about what was seen last. */
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
  // What other people are told goes on: this alone is refused.
  if (isPersonal && isWaiting(before) && approved !== null) {
    return { ...before, ...by, state: "approved", seen: approved, seenAt: by.decidedAt ?? before.seenAt, refused };
  }
  // What is refused was approved once, perhaps: to say it again later is no way back.
  const none = (isPersonal || approvedDigest === digest) && { approvedDigest: null, approved: null };
  return { ...before, ...by, ...none, state, approvedOthers: [], refused };
}

/** The mark of a server that was seen to have none of a kind, in place of any text. */
export function nothingSeen(of: Pick<ToolDefinition, "server" | "kind" | "name" | "seenAt">): ToolDefinition {
  return { ...of, ...undecided, state: "approved", approvedDigest: null, approved: null, seen: "{}" };
}

const undecided = { approvedOthers: [], refused: [], decidedAt: null, decidedBy: null } as const;

function firstRecord({ server, kind, name, seen, isApproved, nowSeconds }: Said, digest: string): ToolDefinition {
  const approved = isApproved ? { approvedDigest: digest, approved: seen } : { approvedDigest: null, approved: null };
  const state = isApproved ? "approved" : "pending";
  return { server, kind, name, state, ...approved, seen, seenAt: nowSeconds, ...undecided };
}

/** The state of what is not what was seen last: as it was decided, or, while that has its turn, with nothing new on record. */
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

/** The same text for the same meaning, in whatever order its members came. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
