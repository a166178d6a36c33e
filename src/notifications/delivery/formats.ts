// Writes a notification in the format of its receiver: Standard Webhooks, Slack, Teams, PagerDuty or Alertmanager.
import type { Notification, NotificationType } from "../../domain/notifications/notification.ts";
import type { WebhookFormat } from "../../domain/notifications/webhook.ts";
import { wordsOf } from "./notification-mail.ts";

export interface BodyOptions {
  /** Public URL of the gateway. */
  origin: string;
  /** Only for PagerDuty: the integration key. */
  routingKey: string;
}

/** Events that end an incident, with the event that began it. */
const beginnings: Partial<Record<NotificationType, NotificationType>> = {
  "upstream.up": "upstream.down",
  "upstream.recovered": "upstream.failing",
  "node.back": "node.away",
};
const incidents: ReadonlySet<NotificationType | undefined> = new Set(Object.values(beginnings));
/**
 * Seconds after which Alertmanager ends an alert by itself. Usually the second event of an incident ends the alert
 * earlier.
 */
const [incidentSeconds, eventSeconds] = [7 * 86_400, 3_600];
/** The maximum length of a summary at PagerDuty. */
const maxSummary = 1_024;

/** Returns the body of a webhook request; the same bytes for each attempt. */
export function bodyIn(format: WebhookFormat, notice: Notification, options: BodyOptions): string {
  if (format === "slack") return JSON.stringify(slackMessage(notice, options));
  if (format === "teams") return JSON.stringify(teamsMessage(notice, options));
  if (format === "pagerduty") return JSON.stringify(pagerDutyEvent(notice, options));
  if (format === "alertmanager") return JSON.stringify([alert(notice, options)]);
  const { type, at, data } = notice;
  return JSON.stringify({ type, timestamp: timeOf(at), data });
}

/** Writes a Slack message. Source: Slack, "Sending messages using incoming webhooks" and "Formatting text". */
function slackMessage(notice: Notification, { origin }: BodyOptions) {
  const { subject, text } = wordsOf(notice);
  return { text: `*${slackText(subject)}*\n${slackText(text)}\n<${origin}|Headrace>` };
}

/** Escapes the three characters that Slack reads as markup for links and mentions. */
function slackText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Writes a Teams message. Source: Microsoft, "Create incoming webhooks with Workflows" and the schema of Adaptive Cards 1.4. */
function teamsMessage(notice: Notification, { origin }: BodyOptions) {
  const { subject, text } = wordsOf(notice);
  const card = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      { type: "TextBlock", text: plain(subject), weight: "Bolder", size: "Medium", wrap: true },
      { type: "TextBlock", text: plain(text), wrap: true },
    ],
    actions: [{ type: "Action.OpenUrl", title: "Open Headrace", url: origin }],
  };
  return {
    type: "message",
    attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content: card }],
  };
}

/** Escapes the Markdown of a TextBlock, because names in the text come from people. */
function plain(text: string): string {
  return text.replace(/[\\`*_[\]()#<>]/g, (mark) => `\\${mark}`);
}

/** Writes a PagerDuty event. Source: PagerDuty, "Send an Alert Event" of the Events API v2. */
function pagerDutyEvent(notice: Notification, { origin, routingKey }: BodyOptions) {
  const { subject, text } = wordsOf(notice);
  return {
    routing_key: routingKey,
    event_action: beginnings[notice.type] ? "resolve" : "trigger",
    dedup_key: isIncident(notice) ? incidentKey(notice) : notice.id,
    client: "Headrace",
    client_url: origin,
    payload: {
      summary: `${subject}. ${text}`.slice(0, maxSummary),
      source: origin,
      severity: severityOf(notice),
      timestamp: timeOf(notice.at),
      class: notice.type,
      custom_details: notice.data,
    },
  };
}

/** Returns the incident's key, which is the same for its first and its last event. */
function incidentKey(notice: Notification): string {
  return `${beginnings[notice.type] ?? notice.type} ${subjectOf(notice)}`.slice(0, 255);
}

/**
 * Writes an alert. Alertmanager finds the alert to end by its labels, so both events of an incident have the same ones.
 * Source: Prometheus, "Alerts API" and the OpenAPI document of Alertmanager's API v2.
 */
function alert(notice: Notification, { origin }: BodyOptions) {
  const { subject, text } = wordsOf(notice);
  const beginning = beginnings[notice.type];
  const severity = severityOf(beginning ? { ...notice, type: beginning } : notice);
  const seconds = isIncident(notice) ? incidentSeconds : eventSeconds;
  return {
    labels: {
      ...{ alertname: beginning ?? notice.type, service: "headrace", subject: subjectOf(notice), severity },
      ...partsOf(notice),
    },
    annotations: { summary: subject, description: text },
    ...(beginning ? {} : { startsAt: timeOf(notice.at) }),
    endsAt: timeOf(beginning ? notice.at : notice.at + seconds),
    generatorURL: origin,
  };
}

function isIncident({ type }: Pick<Notification, "type">): boolean {
  return incidents.has(type) || beginnings[type] !== undefined;
}

/**
 * Returns the labels that distinguish events about the same subject, such as two quotas of one owner, or a higher
 * threshold of the same quota. Without them Alertmanager would report only one of the alerts.
 */
function partsOf({ data }: Pick<Notification, "data">): Record<string, string> {
  const { environment, unit, per, models, tag, threshold, days } = data as Record<string, unknown>;
  const quota = unit === undefined ? {} : { environment, unit, per, models, tag };
  const labels = Object.entries({ ...quota, threshold, days }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(labels.map(([name, value]) => [name, String(value)]));
}

/** Returns what the notification is about: an upstream, a node, a key, the owner of a quota, or all requests. */
function subjectOf({ data }: Pick<Notification, "data">): string {
  const members = data as Record<string, unknown>;
  const named = subjects.find((name) => members[name] != null);
  return String(named === undefined ? "all" : members[named]);
}

const subjects = [
  ...(["upstream", "node_id", "key_id", "owner_id", "request_id", "server", "model", "webhook_id"] as const),
  "environment",
] as const;

const warnings: ReadonlySet<Notification["type"]> = new Set([
  ...(["node.away", "tool.changed", "key.expiring", "key.rotation_due", "model.shutdown"] as const),
]);

function severityOf({ type, data }: Pick<Notification, "type" | "data">): "critical" | "error" | "warning" | "info" {
  if (type === "upstream.down" || type === "errors.rate") return "critical";
  if (type === "upstream.failing") return "error";
  if (type === "quota.threshold") return (data as { threshold?: number }).threshold === 100 ? "error" : "warning";
  return warnings.has(type) ? "warning" : "info";
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}
