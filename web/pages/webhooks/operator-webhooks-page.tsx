// The page of the operators' webhooks, which report that an upstream or a node is unreachable.
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { ofOperators } from "./webhook-kind.ts";
import { Webhooks } from "./webhooks.tsx";

const title = "Server webhooks";

export const OperatorWebhooksPage = operatorsOnly(title, OperatorWebhooks);

function OperatorWebhooks() {
  return (
    <Webhooks
      kind={ofOperators}
      title={title}
      about="Addresses that are notified when an upstream or a node is unavailable, and when requests of any account fail."
    />
  );
}
