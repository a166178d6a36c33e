// Schemas of webhooks and their deliveries, and of the requests that create and change webhooks.
import { z } from "zod";
import { environments } from "../domain/api-key.ts";
import { notificationTypes } from "../domain/notifications/notification.ts";
import { webhookFormats } from "../domain/notifications/webhook.ts";
import { deletedShape, unixSeconds } from "./parts.ts";

const maxOverlapSeconds = 2_592_000;
export const defaultOverlapSeconds = 86_400;

const url = z
  .string()
  .min(1)
  .max(2_048)
  .describe(
    "URL that receives the events: https, on the public internet, without credentials. Operators' webhooks may also use the hosts and networks of `webhook_networks`, over http as well.",
  );
const format = z
  .enum(webhookFormats)
  .describe(
    "Body that the receiver gets: `standard` (Standard Webhooks), `slack`, `teams` (a workflow of Microsoft Teams), `pagerduty` (Events API v2) or `alertmanager` (API v2). It cannot be changed.",
  );
const routingKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/)
  .describe(
    "Integration key of PagerDuty. Required for the format `pagerduty`, and only allowed there. It is stored encrypted.",
  );
const description = z.string().max(200).describe("Description for people.");
const events = z
  .array(z.enum(notificationTypes))
  .max(notificationTypes.length)
  .describe("Event types to deliver. Empty: all types available to the owner, including future ones.");

export const createWebhookRequest = z
  .object({
    url,
    format: format.nullish(),
    routing_key: routingKey.nullish(),
    description: description.nullish(),
    events: events.nullish(),
  })
  .meta({ id: "CreateWebhookRequest" });

export const updateWebhookRequest = z
  .object({
    url: url.optional(),
    description: description.nullish(),
    events: events.nullish(),
    enabled: z
      .boolean()
      .optional()
      .describe("True if events are delivered. While disabled, pending deliveries fail at their next attempt."),
  })
  .meta({ id: "UpdateWebhookRequest", description: "Omitted members keep their values. null clears a value." });

export const rotateWebhookSecretRequest = z
  .object({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .nullish()
      .describe(
        `Seconds for which every delivery is also signed with the old secret. 0: not at all. Default: ${defaultOverlapSeconds}. Not for the format \`pagerduty\`.`,
      ),
    routing_key: routingKey.nullish(),
  })
  .meta({ id: "RotateWebhookSecretRequest" });

const webhookMembers = {
  object: z.literal("webhook"),
  id: z.string(),
  url: z.string(),
  format,
  description: z.string(),
  events: z.array(z.enum(notificationTypes)).describe("Empty: all."),
  environment: z
    .enum(environments)
    .nullable()
    .describe("Account whose events the webhook receives. null: operators' events."),
  enabled: z.boolean(),
  disabled_reason: z
    .enum(["gone"])
    .nullable()
    .describe("`gone`: the receiver answered 410, so nothing is sent until the webhook is enabled again."),
  secrets: z
    .array(
      z
        .object({
          last4: z.string(),
          expires_at: unixSeconds.nullable().describe("Time until which the secret signs, after a rotation."),
        })
        .meta({ id: "WebhookSecret" }),
    )
    .describe("Secrets that sign, newest last."),
  created_by: z.string().nullable().describe("Id of the person or key that created the webhook."),
  created_at: unixSeconds,
} as const;
const secret = z
  .string()
  .describe(
    "Secret to verify signatures, `whsec_…`; for the format `pagerduty`, the routing key. It is shown only in this response.",
  );

export const webhookShape = z.object(webhookMembers).meta({ id: "Webhook" });
export const securedWebhookShape = z.object({ ...webhookMembers, secret }).meta({ id: "WebhookWithSecret" });
export const deletedWebhookShape = deletedShape("webhook", "DeletedWebhook");
export type WebhookWire = z.infer<typeof webhookShape>;

export const deliveryShape = z
  .object({
    object: z.literal("webhook_delivery"),
    id: z.string(),
    event_id: z.string().describe("`webhook-id` of all attempts."),
    type: z.enum(notificationTypes),
    state: z.enum(["pending", "delivered", "failed"]).describe("`failed`: the delivery is not tried again."),
    attempts: z.array(
      z
        .object({
          at: unixSeconds,
          status: z.int().nullable().describe("HTTP status of the answer. null: no answer."),
          error: z
            .string()
            .nullable()
            .describe(
              "Reason for a missing answer: `timeout`, `not_connected`, `broke_off`, `no_http`, `name_not_found`, `address_not_public`, `not_https`, `disabled` and the like.",
            ),
          duration_ms: z.int(),
        })
        .meta({ id: "WebhookAttempt" }),
    ),
    created_at: unixSeconds,
    next_attempt_at: unixSeconds.nullable(),
    ended_at: unixSeconds.nullable(),
  })
  .meta({ id: "WebhookDelivery" });
export type DeliveryWire = z.infer<typeof deliveryShape>;

export const testedWebhookShape = z
  .object({
    object: z.literal("webhook_test"),
    event_id: z.string().describe("`event_id` of the delivery, which shows the result."),
  })
  .meta({ id: "WebhookTest" });

export const noticeSettingsShape = z
  .object({
    object: z.literal("notice_settings"),
    mail: z.boolean().describe("True if the person receives mail notifications."),
    mail_is_sent: z.boolean().describe("True if this server can send mail."),
  })
  .meta({ id: "NoticeSettings" });
export const updateNoticeSettingsRequest = z.object({ mail: z.boolean() }).meta({ id: "UpdateNoticeSettingsRequest" });
