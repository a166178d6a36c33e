// Subjects and texts of notification mails.

import type { Notification, NotificationData, NotificationType } from "../../domain/notifications/notification.ts";
import type { MailMessage } from "../../domain/people/mail.ts";
import { attemptCauseNames } from "../../domain/usage/attempt-health.ts";

/** Subjects have no line breaks, because names contain no control characters. */
const words: { [Type in NotificationType]: (data: NotificationData[Type]) => { subject: string; text: string } } = {
  "quota.threshold": ({ owner, owner_id: id, unit, limit, used, threshold, window, tag }) => ({
    subject: `${threshold} % of a quota in ${unit} is used`,
    text: `${used} of ${limit} ${unit} of the ${owner} ${id}${tag === undefined ? "" : ` with the tag ${tag}`} are used in the time from ${time(window.starts_at)} to ${time(window.ends_at)}. Requests that do not fit into what is left are refused until then.`,
  }),
  "key.unused": ({ key_id: id, name, last_used_at: last, created_at: made, days }) => ({
    subject: `An API key was not used for ${days} days`,
    text: `The key "${name}" (${id}) was ${last === null ? `made on ${time(made)} and never used` : `used last on ${time(last)}`}. Revoke it if nobody needs it.`,
  }),
  "key.expiring": ({ key_id: id, name, expires_at: end, days }) => ({
    subject: `An API key ends within ${days === 1 ? "a day" : `${days} days`}`,
    text: `The key "${name}" (${id}) ends on ${time(end)}. Give it a later end, or rotate it, if it is to go on.`,
  }),
  "key.rotation_due": ({ key_id: id, name, ends_at: end }) => ({
    subject: "An API key is to be replaced",
    text: `The key "${name}" (${id}) ends on ${time(end)}, as its rotation is scheduled. Fetch its successor before then: headrace keys rotate ${id}.`,
  }),
  "model.shutdown": ({ model, shutdown_date: date, days }) => ({
    subject: `The model ${model} ends within ${days === 1 ? "a day" : `${days} days`}`,
    text: `The model ${model} is shut down on ${date}, as its provider announced. Keys of your account used it in the last 30 days. Change them to another model before.`,
  }),
  "errors.rate": ({ requests, failed, rate, window_seconds: seconds, environment }) => ({
    subject: `${rate} % of the requests fail`,
    text: `${failed} of ${requests} requests${environment === null ? "" : ` in ${environment}`} of the last ${seconds / 60} minutes failed by no fault of their clients. The page Logs says why each of them did.`,
  }),
  "upstream.down": ({ upstream, since }) => ({
    subject: `The upstream ${upstream} is down`,
    text: `The upstream ${upstream} has not answered since ${time(since)} or before. Requests go to others that have the model, where there are any.`,
  }),
  "upstream.up": ({ upstream, down_seconds: seconds }) => ({
    subject: `The upstream ${upstream} is up again`,
    text: `The upstream ${upstream} answers again, after ${span(seconds)}.`,
  }),
  "upstream.failing": ({ upstream, models, cause, status, failed, attempts, window_seconds: seconds }) => ({
    subject: `The upstream ${upstream} fails requests`,
    text: `${failed} of ${attempts} attempts at ${models.length === 0 ? upstream : `${models.join(", ")} on ${upstream}`} failed in the last ${span(seconds)}. The last one failed because of: ${cause === null ? "unknown" : attemptCauseNames[cause]}${status === null ? "" : ` (status ${status})`}. Requests go to other servers that have the model, where there are any.`,
  }),
  "upstream.recovered": ({ upstream, failing_seconds: seconds }) => ({
    subject: `The upstream ${upstream} works again`,
    text: `The upstream ${upstream} answers requests again, after ${span(seconds)}.`,
  }),
  "node.away": ({ name, since }) => ({
    subject: `The node ${name} is away`,
    text: `The node ${name} has been without a connection since ${time(since)} or before.`,
  }),
  "node.back": ({ name, away_seconds: seconds }) => ({
    subject: `The node ${name} is back`,
    text: `The node ${name} is connected again, after ${span(seconds)}.`,
  }),
  "tool.changed": ({ server, waiting }) => ({
    subject: `Tools of ${server} wait for approval`,
    text: `The MCP server ${server} says something new of ${waiting} of its tools or prompts. They are not offered until an operator has approved them.`,
  }),
  "limit.requested": ({ email, owner, amount, unit, per, reason, request_id: id }) => ({
    subject: `${email} asks for more of a limit`,
    text: `${email} asks for ${amount === null ? "" : `${amount} `}more ${unit} per ${per} of ${owner === "member" ? "their quota" : "the quota of the account"}. Reason: ${reason}

Answer with: headrace limits grant ${id} --amount ${amount ?? "<amount>"} --for 24h${owner === "account" ? " --all-accounts" : ""}
or refuse it with headrace limits refuse. The dashboard shows the request under ${owner === "member" ? "Members" : "Accounts"}.`,
  }),
  "limit.decided": ({ amount, until, unit, per }) => ({
    subject: amount === null ? "Your limit is not raised" : "Your limit is raised",
    text:
      amount === null || until === null
        ? `Your request for more ${unit} per ${per} was refused, or the raise was ended.`
        : `You have ${amount} more ${unit} per ${per} until ${time(until)}. Then the limit is as before.`,
  }),
  "webhook.test": () => ({ subject: "A test", text: "This is a test of a webhook." }),
};

/** Returns the subject and the text of a notification, for people. */
export function wordsOf({ type, data }: Notification): { subject: string; text: string } {
  // The cast is needed because TypeScript cannot see that `type` and `data` belong together.
  const write = words[type] as (data: NotificationData[NotificationType]) => { subject: string; text: string };
  return write(data);
}

export function noticeMail(to: string, notice: Notification, origin: string): MailMessage {
  const { subject, text } = wordsOf(notice);
  return {
    to,
    subject: `Headrace: ${subject}`.replace(/\p{Cc}/gu, " ").slice(0, 200),
    text: `${text}

${origin}

${notice.type === "limit.decided" ? "You get this because you asked for more." : "You get this as an owner, an admin or an operator."} Under Settings, Profile and sign-in, you turn these mails off for yourself.
`,
  };
}

function time(seconds: number): string {
  return new Date(seconds * 1000)
    .toISOString()
    .replace("T", " ")
    .replace(/:\d\d\.\d+Z$/, " UTC");
}

function span(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} minutes`;
}
