// The endpoints of an account's webhooks.
import { accountOwner } from "../../../notifications/manage-webhooks.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import { scopedEndpoints } from "../endpoint.ts";
import { type WebhookRouteDeps, webhookEndpoints } from "./webhook-endpoints.ts";

const endpoints = webhookEndpoints({
  endpoint: scopedEndpoints<WebhookRouteDeps>("keys:manage", { tag: "Webhooks", errors: ["permission_denied"] }),
  base: "/v1/webhooks",
  infix: "",
  whose: "of the account",
  ownerOf: accountOwner,
});

export function webhookRoutes(deps: WebhookRouteDeps): ScopedRoute[] {
  return endpoints.map((endpoint) => endpoint(deps));
}
