// The ids of the end user and the session that a client names in its request.
import { redactCredentials } from "../domain/redaction.ts";
import type { TracedExchange, TracedRequest } from "../domain/usage/trace.ts";

/** Headers in which clients name their session: in general, in Codex, and in Claude Code. */
const sessionHeaders = ["x-session-id", "session_id", "x-claude-code-session-id"];
/** Matches ids that Langfuse takes: fewer than 200 ASCII characters. */
const idPattern = /^[!-~]{1,199}$/;

/** Returns the end user's id: `safety_identifier`, `user`, or `metadata.user_id`. */
export function endUserIn({ body }: TracedRequest): string | undefined {
  return firstId([body["safety_identifier"], body["user"], memberOf(body["metadata"], "user_id")]);
}

/** Returns the session's id: a header, `metadata.session_id`, or the conversation of a response. */
export function sessionIn({ headers }: TracedExchange, { body }: TracedRequest): string | undefined {
  const { metadata, conversation } = body;
  return firstId([
    ...sessionHeaders.map((name) => headers.get(name)),
    ...[memberOf(metadata, "session_id"), conversation, memberOf(conversation, "id")],
  ]);
}

function firstId(values: readonly unknown[]): string | undefined {
  const found = values.find((value): value is string => typeof value === "string" && idPattern.test(value));
  return found === undefined ? undefined : redactCredentials(found);
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
