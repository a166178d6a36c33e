// The shapes of webhooks and of their deliveries on the wire, and of the requests that make and change them.
import { z } from "zod";
import { environments } from "../domain/api-key.ts";
import { notificationTypes } from "../domain/notifications/notification.ts";
import { deletedShape, unixSeconds } from "./parts.ts";

const maxOverlapSeconds = 2_592_000;
export const defaultOverlapSeconds = 86_400;

const url = z
  .string()
  .min(1)
  .max(2_048)
  .describe("Where events are posted to: https, on the public internet, without a user name in it.");
const description = z.string().max(200).describe("For people; whatever tells it from others.");
const events = z
  .array(z.enum(notificationTypes))
  .max(notificationTypes.length)
  .describe("The types of events that it gets; empty: all that there are for its owner, also later ones.");

export const createWebhookRequest = z
  .object({ url, description: description.nullish(), events: events.nullish() })
  .meta({ id: "CreateWebhookRequest" });

export const updateWebhookRequest = z
  .object({
    url: url.optional(),
    description: description.nullish(),
    events: events.nullish(),
    enabled: z.boolean().optional().describe("What waits for one that is disabled fails at its next attempt."),
  })
  .meta({ id: "UpdateWebhookRequest", description: "What is left out stays as it is; null clears." });

export const rotateWebhookSecretRequest = z
  .object({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .nullish()
      .describe(
        `How long every delivery is signed with the old secret as well; 0: not at all. Default ${defaultOverlapSeconds}.`,
      ),
  })
  .meta({ id: "RotateWebhookSecretRequest" });

const webhookMembers = {
  object: z.literal("webhook"),
  id: z.string(),
  url: z.string(),
  description: z.string(),
  events: z.array(z.enum(notificationTypes)).describe("Empty: all."),
  environment: z.enum(environments).nullable().describe("It gets events of this one; null: of the operators'."),
  enabled: z.boolean(),
  disabled_reason: z
    .enum(["gone"])
    .nullable()
    .describe("`gone`: the receiver answered 410, so nothing more is sent until somebody enables it."),
  secrets: z
    .array(
      z
        .object({
          last4: z.string(),
          expires_at: unixSeconds.nullable().describe("After a rotation: it signs until then."),
        })
        .meta({ id: "WebhookSecret" }),
    )
    .describe("Those that sign, the newest last."),
  created_by: z.string().nullable().describe("Id of the person or key that made it."),
  created_at: unixSeconds,
} as const;
const secret = z.string().describe("`whsec_…`, by which signatures are verified. It is shown this once.");

export const webhookShape = z.object(webhookMembers).meta({ id: "Webhook" });
export const securedWebhookShape = z.object({ ...webhookMembers, secret }).meta({ id: "WebhookWithSecret" });
export const deletedWebhookShape = deletedShape("webhook", "DeletedWebhook");
export type WebhookWire = z.infer<typeof webhookShape>;

export const deliveryShape = z
  .object({
    object: z.literal("webhook_delivery"),
    id: z.string(),
    event_id: z.string().describe("The `webhook-id` of all its attempts."),
    type: z.enum(notificationTypes),
    state: z.enum(["pending", "delivered", "failed"]).describe("`failed`: it is not tried again."),
    attempts: z.array(
      z
        .object({
          at: unixSeconds,
          status: z.int().nullable().describe("The status of the answer; null: there was none."),
          error: z
            .string()
            .nullable()
            .describe(
              "Why there was no answer: `timeout`, `not_connected`, `broke_off`, `no_http`, `name_not_found`, `address_not_public`, `not_https`, `disabled` and the like.",
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
    event_id: z.string().describe("The delivery with this `event_id` says what came of it."),
  })
  .meta({ id: "WebhookTest" });

export const noticeSettingsShape = z
  .object({
    object: z.literal("notice_settings"),
    mail: z.boolean().describe("Whether the person is told by mail."),
    mail_is_sent: z.boolean().describe("Whether this server sends mail at all."),
  })
  .meta({ id: "NoticeSettings" });
export const updateNoticeSettingsRequest = z.object({ mail: z.boolean() }).meta({ id: "UpdateNoticeSettingsRequest" });
