// The endpoints of the operators' webhooks.
import { operatorsOwner } from "../../../notifications/manage-webhooks.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import { type WebhookRouteDeps, webhookEndpoints } from "../webhooks/webhook-endpoints.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

const endpoints = webhookEndpoints({
  endpoint: adminEndpoints<WebhookRouteDeps>(),
  base: "/v1/admin/webhooks",
  infix: "Operator",
  whose: "of the operators",
  ownerOf: () => operatorsOwner,
});

export function adminWebhookRoutes(deps: WebhookRouteDeps): ScopedRoute[] {
  return endpoints.map((endpoint) => endpoint(deps));
}
