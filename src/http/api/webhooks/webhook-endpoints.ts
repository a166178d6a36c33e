// Declares the webhook endpoints, once for accounts and once for operators.
import { z } from "zod";
import type { DeliveryStore, WebhookOwner } from "../../../domain/notifications/webhook.ts";
import type { Principal } from "../../../domain/principal.ts";
import { deliveryToWire, type Webhooks, webhookToWire } from "../../../notifications/manage-webhooks.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import {
  createWebhookRequest,
  defaultOverlapSeconds,
  deletedWebhookShape,
  deliveryShape,
  rotateWebhookSecretRequest,
  securedWebhookShape,
  testedWebhookShape,
  updateWebhookRequest,
  webhookShape,
} from "../../../wire/webhooks.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps, scopedEndpoints } from "../endpoint.ts";
import { listOf, pageOf, pageQuery, wholeListOf } from "../list.ts";

export interface WebhookRouteDeps extends EndpointDeps {
  webhooks: Webhooks;
  webhookDeliveries: Pick<DeliveryStore, "list">;
  throttle: Pick<Throttle, "require">;
}

export interface WebhookKind {
  endpoint: ReturnType<typeof scopedEndpoints<WebhookRouteDeps>>;
  base: "/v1/webhooks" | "/v1/admin/webhooks";
  /** Inserted into the operation ids, between verb and noun. */
  infix: "" | "Operator";
  /** A phrase for the owner of the webhooks, used in the descriptions of endpoints. */
  whose: string;
  /** Returns the owner of the webhooks. Throws if the caller may not manage them. */
  ownerOf(principal: Principal): WebhookOwner;
}

const idParameter = [{ name: "id", in: "path", description: "Id of the webhook, `whk_…`." }] as const;
const webhookList = wholeListOf(webhookShape, "WebhookList");
const deliveryQuery = z.object(pageQuery);
const deliveryList = listOf(deliveryShape, "WebhookDeliveryList");
const guide = "The guide describes the events and the verification of signatures.";

export function webhookEndpoints(kind: WebhookKind): ((deps: WebhookRouteDeps) => ScopedRoute)[] {
  return [create(kind), list(kind), retrieve(kind), update(kind), remove(kind), ...working(kind)];
}

function create({ endpoint, base, infix, whose, ownerOf }: WebhookKind) {
  return endpoint("POST", base, {
    operationId: `create${infix}Webhook`,
    summary: `Create a webhook ${whose}`,
    description: `Events are posted to the webhook's URL in its format, signed by the Standard Webhooks specification. The secret is shown only in this response. ${guide}`,
    requestBody: createWebhookRequest,
    example: {
      url: "https://hooks.example.com/headrace",
      events: infix === "" ? ["quota.threshold"] : ["upstream.down"],
    },
    response: { description: "The new webhook, with its secret.", json: securedWebhookShape },
    showsSecret: true,
    first: ({ principal }) => ownerOf(principal),
    async answer({ deps, principal, found, body, origin }) {
      await deps.throttle.require("change", principal);
      const { webhook, secret } = await deps.webhooks.create(principal, found, body, origin);
      return { ...webhookToWire(webhook, origin.nowSeconds), secret };
    },
  });
}

function list({ endpoint, base, infix, whose, ownerOf }: WebhookKind) {
  return endpoint("GET", base, {
    operationId: `list${infix}Webhooks`,
    summary: `List the webhooks ${whose}`,
    description: "Oldest first, all in one page: there are at most 20.",
    response: { description: "The webhooks.", json: webhookList },
    first: ({ principal }) => ownerOf(principal),
    async answer({ deps, found, origin }) {
      const webhooks = await deps.webhooks.list(found);
      return { object: "list" as const, data: webhooks.map((webhook) => webhookToWire(webhook, origin.nowSeconds)) };
    },
  });
}

function retrieve({ endpoint, base, infix, whose, ownerOf }: WebhookKind) {
  return endpoint("GET", `${base}/:id`, {
    operationId: `retrieve${infix}Webhook`,
    summary: `Retrieve a webhook ${whose}`,
    parameters: idParameter,
    response: { description: "The webhook.", json: webhookShape },
    first: ({ deps, principal, id }) => deps.webhooks.require(ownerOf(principal), id),
    answer: ({ found, origin }) => webhookToWire(found, origin.nowSeconds),
  });
}

function update({ endpoint, base, infix, whose, ownerOf }: WebhookKind) {
  return endpoint("PATCH", `${base}/:id`, {
    operationId: `update${infix}Webhook`,
    summary: `Change a webhook ${whose}`,
    description: "Omitted members keep their values. null clears a value.",
    parameters: idParameter,
    requestBody: updateWebhookRequest,
    example: { enabled: true },
    response: { description: "The webhook.", json: webhookShape },
    first: ({ deps, principal, id }) => deps.webhooks.require(ownerOf(principal), id),
    async answer({ deps, principal, found, body, origin }) {
      await deps.throttle.require("change", principal);
      return webhookToWire(await deps.webhooks.update(principal, found, body, origin), origin.nowSeconds);
    },
  });
}

function remove({ endpoint, base, infix, whose, ownerOf }: WebhookKind) {
  return endpoint("DELETE", `${base}/:id`, {
    operationId: `delete${infix}Webhook`,
    summary: `Delete a webhook ${whose}`,
    description: "Deletes the webhook with its deliveries. Pending events are not sent.",
    parameters: idParameter,
    response: { description: "The webhook is deleted.", json: deletedWebhookShape },
    first: ({ deps, principal, id }) => deps.webhooks.require(ownerOf(principal), id),
    async answer({ deps, principal, found, origin }) {
      await deps.webhooks.delete(principal, found, origin);
      return { object: "webhook" as const, id: found.id, deleted: true as const };
    },
  });
}

/** Declares the endpoints for operations on a webhook other than changing its settings. */
function working({ endpoint, base, infix, whose, ownerOf }: WebhookKind) {
  const rotate = endpoint("POST", `${base}/:id/rotate-secret`, {
    operationId: `rotate${infix}WebhookSecret`,
    summary: `Replace the secret of a webhook ${whose}`,
    description: "Until the end of the overlap, every delivery is signed with both secrets.",
    parameters: idParameter,
    requestBody: rotateWebhookSecretRequest,
    bodyIsOptional: true,
    example: { overlap_seconds: 3_600 },
    response: { description: "The webhook, with its new secret.", json: securedWebhookShape },
    showsSecret: true,
    first: ({ deps, principal, id }) => deps.webhooks.require(ownerOf(principal), id),
    async answer({ deps, principal, found, body, origin }) {
      await deps.throttle.require("change", principal);
      const overlapSeconds = body.overlap_seconds ?? defaultOverlapSeconds;
      const settings = { overlapSeconds, routingKey: body.routing_key };
      const { webhook, secret } = await deps.webhooks.rotateSecret(principal, found, settings, origin);
      return { ...webhookToWire(webhook, origin.nowSeconds), secret };
    },
  });
  const test = endpoint("POST", `${base}/:id/test`, {
    operationId: `test${infix}Webhook`,
    summary: `Send a test event to a webhook ${whose}`,
    description:
      "The event `webhook.test` is sent only to this webhook, immediately. The list of deliveries shows the result.",
    parameters: idParameter,
    response: { description: "The event is queued.", json: testedWebhookShape },
    first: ({ deps, principal, id }) => deps.webhooks.require(ownerOf(principal), id),
    async answer({ deps, principal, found, origin }) {
      await deps.throttle.require("change", principal);
      return { object: "webhook_test" as const, event_id: await deps.webhooks.test(found, origin.nowSeconds) };
    },
  });
  const deliveries = endpoint("GET", `${base}/:id/deliveries`, {
    operationId: `list${infix}WebhookDeliveries`,
    summary: `List the deliveries to a webhook ${whose}`,
    description:
      "Newest first, with every attempt. Deliveries are stored for 30 days. Of the receiver's answers, only the status is stored.",
    parameters: idParameter,
    query: deliveryQuery,
    response: { description: "One page of deliveries.", json: deliveryList },
    first: ({ deps, principal, id }) => deps.webhooks.require(ownerOf(principal), id),
    async answer({ deps, found, query: { limit, after } }) {
      const listed = await deps.webhookDeliveries.list(found.id, { after, limit: limit + 1 });
      return pageOf(listed.map(deliveryToWire), limit);
    },
  });
  return [rotate, test, deliveries];
}
